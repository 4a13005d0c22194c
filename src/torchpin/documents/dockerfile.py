"""Dockerfiles and Containerfiles: stages, arguments, and what their ``RUN`` lines install.

Source of the format: https://docs.docker.com/reference/dockerfile/. Variables, continuations,
comments between continued lines and heredocs are followed as BuildKit follows them; the shell
reader takes what ``RUN`` runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from torchpin.documents.atoms import Atom, Source, Word, cut, is_known, span_of, text_of
from torchpin.documents.base import Document, Span
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.docker_lines import (
    FLAG,
    HEREDOC,
    Instruction,
    instructions,
    json_words,
    triggered,
    words_of,
)
from torchpin.documents.docker_stage import Stage, mounted, normal, virtual, with_copies
from torchpin.documents.docker_variables import substituted
from torchpin.documents.image_part import image_part
from torchpin.documents.parts import Image, Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import Shell, read_script
from torchpin.documents.shell_commands import Command
from torchpin.documents.shell_words import Text
from torchpin.patterns import regex

_AS = regex(r"\s+as\s+(\S+)\s*$", re.IGNORECASE)
_MANY = 5_000
"""Instructions of one file that are followed."""


def read_dockerfile(path: str, data: bytes) -> Document:
    """Return the document of a Dockerfile; never raises."""
    file = file_of(path, data, "dockerfile")
    if INSTALLS.search(file.text) is None and "pytorch/pytorch" not in file.text:
        return file
    file = file._replace(comments=notes_in(file.text))
    return file._replace(parts=build(file, {}))


def build(
    file: Document,
    given: Mapping[str, Word],
    *,
    target: str | None = None,
    source: Source | None = None,
    prefix: str = "",
) -> tuple[Part, ...]:
    """Return the parts of a Dockerfile that is built with some values of its arguments.

    Args:
        file: what holds the Dockerfile.
        given: the values, by the names of the arguments.
        target: the stage that is built, ``""`` for the last one: parts of stages that it does not
            need are left out. None: whatever may be built.
        source: the Dockerfile where it is a part of ``file``.
        prefix: before the names of parts and environments.
    """
    builder = _Builder(file, given, prefix)
    written = source if source is not None else Source.of(file.text)
    for number, instruction in enumerate(instructions(written)):
        if number >= _MANY:
            break
        builder.take(instruction)
    return tuple(builder.parts(target))


def arguments(file: Document) -> frozenset[str]:
    """Return the names that ``ARG`` declares in a Dockerfile."""
    found = (one for one in instructions(Source.of(file.text)) if one.name == "ARG")
    return frozenset(word.value.partition("=")[0] for one in found for word in words_of(one.source))


class _Builder:
    """Follows the instructions of one file."""

    def __init__(self, file: Document, given: Mapping[str, Word], prefix: str) -> None:
        self.file = file
        self.prefix = prefix
        self.given = given
        """Values of ``--build-arg``: they win over defaults."""
        self.globals: dict[str, Word] = {}
        self.stages: list[Stage] = []
        self.names: dict[str, Stage] = {}

    def parts(self, target: str | None) -> Iterator[Part]:
        """Yield the parts of all stages, in order, or of those that ``target`` needs."""
        if not self.stages:
            return
        last = self.stages[-1]
        if target:
            last = self.names.get(target.lower(), last)
        for stage in [one for one in self.stages if one.triggers]:  # for images yet to come
            self.start(stage.name, stage.image, stage, "on build, ")
        wanted = last.reached() if target is not None else self.stages
        for stage in self.stages:
            if stage in wanted and stage.reader is not None:
                yield from (self.with_image(stage, part) for part in stage.reader.parts)
        yield from (self.with_image(last, part) for part in self.own_torch(last))

    def with_image(self, stage: Stage, part: Part) -> Part:
        """Return a part that tells of the arguments that choose its image."""
        word = stage.image_word
        if part.image is None or not any(atom.name.startswith("args ") for atom in word):
            return part
        return part._replace(words=(*part.words, (part.image.span, word)))

    def own_torch(self, stage: Stage) -> Iterator[Part]:
        """Yield the image of the last stage, the one that is built, if it brings a torch."""
        part = image_part(
            self.file,
            stage.image,
            name=f"{self.prefix}base image",
            platform=stage.platform,
            environment=stage.environment,
        )
        if part is not None:
            yield part

    def take(self, instruction: Instruction) -> None:
        """Follow one instruction."""
        name = instruction.name
        if name == "FROM":
            self.begin(instruction)
        elif name == "ARG":
            self.argument(instruction)
        elif not self.stages:
            return
        elif name == "ENV":
            self.set_environment(instruction)
        elif name == "WORKDIR":
            self.work_in(instruction)
        elif name in ("COPY", "ADD"):
            self.copy(instruction)
        elif name == "SHELL":
            words = json_words(instruction.source)
            if words:
                self.stages[-1].shell = [word.value for word in words]
        elif name == "RUN":
            self.run(instruction)
        elif name == "ONBUILD":
            self.stages[-1].triggers.append(triggered(instruction))

    # -- stages and variables

    def begin(self, instruction: Instruction) -> None:
        """Begin a stage."""
        source = instruction.source
        text = source.text
        platform = None
        at = 0
        for match in FLAG.finditer(text):
            if match.start() != at:
                break
            at = match.end()
            if match[0].startswith("--platform="):
                platform = match[1]
        named = _AS.search(text)
        end = named.start() if named is not None else len(text.rstrip())
        word = substituted(source.cut(at, end), self.globals)
        reference = text_of(word).strip()
        base = self.names.get(reference.lower())
        name = named[1] if named is not None else f"{len(self.stages)}"
        label = name if named is not None else (f"{name}" if self.stages else "")
        image = base.image if base is not None else Image(reference, span_of(word))
        if image is not None and not is_known(word):
            image = None
        self.start(label or "0", image, base, f"stage {name}, " if label else "", platform)
        if base is None:
            self.stages[-1].image_word = word
        if named is not None:
            self.names[named[1].lower()] = self.stages[-1]
        self.names.setdefault(str(len(self.stages) - 1), self.stages[-1])

    def start(
        self,
        label: str,
        image: Image | None,
        base: Stage | None,
        prefix: str,
        platform: str | None = None,
    ) -> None:
        """Start a stage; what ``ONBUILD`` keeps in its base runs at once, and once."""
        stage = Stage(label if base is not None else f"{self.prefix}{label}", image, base)
        if platform is not None and "$" not in platform:
            machine = platform.rsplit("linux/", 1)[-1]
            known = {"amd64": "linux-x86_64", "arm64": "linux-aarch64", "x86_64": "linux-x86_64"}
            stage.platform = known.get(machine.split("/")[0], stage.platform)
        setting = Setting(
            self.file,
            prefix=f"{self.prefix}{prefix}",
            environment=stage.environment,
            platform=stage.platform or "linux",
            image=image,
        )
        stage.reader = Reader(setting)
        self.stages.append(stage)
        for one in (*base.triggers,) if base is not None else ():
            self.take(one)
        if base is not None:
            base.triggers = []

    def argument(self, instruction: Instruction) -> None:
        """Take in ``ARG NAME=default``."""
        scope = self.stages[-1].variables if self.stages else self.globals
        for word in words_of(instruction.source):
            text = word.value
            name, equals, _ = text.partition("=")
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                continue
            if name in self.given:
                scope[name] = self.given[name]
            elif equals:
                scope[name] = substituted(cut(word.atoms, len(name) + 1), scope)
            elif self.stages and name in self.globals:
                scope[name] = self.globals[name]
            elif self.stages and name not in scope:
                machine = self.stages[-1].platform
                if name == "TARGETARCH" and machine:
                    arch = "amd64" if machine.endswith("x86_64") else "arm64"
                    scope[name] = (Atom(arch, *word.span, False, None, name),)

    def set_environment(self, instruction: Instruction) -> None:
        """Take in ``ENV NAME=value …`` and the old ``ENV NAME value``."""
        scope = self.stages[-1].variables
        source = instruction.source
        old = re.match(r"([A-Za-z_]\w*)\s+(?!=)", source.text)
        if old is not None and "=" not in source.text[: old.end()]:
            end = len(source.text.rstrip())
            scope[old[1]] = substituted(source.cut(old.end(), end), scope)
            return
        before = dict(scope)  # one instruction sees the values from before it
        for word in words_of(source):
            name, equals, _ = word.value.partition("=")
            if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
                scope[name] = substituted(cut(word.atoms, len(name) + 1), before)

    # -- files

    def work_in(self, instruction: Instruction) -> None:
        """Take in ``WORKDIR``."""
        stage = self.stages[-1]
        path = text_of(
            substituted(
                instruction.source.cut(0, len(instruction.source.text.rstrip())), stage.variables
            )
        ).strip("\"'")
        stage.folder = path.rstrip("/") if path.startswith("/") else f"{stage.folder}/{path}"

    def copy(self, instruction: Instruction) -> None:
        """Take in ``COPY`` and ``ADD`` of files from the build context."""
        stage = self.stages[-1]
        text = instruction.source.text
        at = 0
        for match in FLAG.finditer(text):
            if match.start() != at:
                break
            at = match.end()
            if match[0].startswith("--from="):
                self.copy_from(stage, match[1] or "", Source(instruction.source.cut(0, len(text))))
                return
        words = json_words(instruction.source) or words_of(
            Source(instruction.source.cut(at, len(text)))
        )
        paths = [text_of(substituted(word.atoms, stage.variables)) for word in words]
        if instruction.heredocs:
            self.write(stage, instruction, paths[-1] if paths else "")
            return
        if len(paths) < 2:
            return
        target = paths[-1]
        if not target.startswith("/"):
            target = f"{stage.folder}/{target}"
        many = len(paths) > 2 or target.endswith(("/", "/.", "/./"))
        target = normal(target)
        for path in paths[:-1]:
            source = normal(path)
            name = source.rsplit("/", 1)[-1]
            stage.copied.append((source, target))
            if many or "*" in name:
                stage.copied.append((source, normal(f"{target}/{name}")))

    def copy_from(self, stage: Stage, name: str, source: Source) -> None:
        """Take in ``COPY --from=STAGE``."""
        other = self.names.get(name.strip("\"'").lower())
        words = [word.value for word in words_of(source) if not word.value.startswith("--")]
        if other is None or other is stage or len(words) < 2:
            return
        for path in words[:-1]:
            stage.take_from(other, path, words[-1])

    def write(self, stage: Stage, instruction: Instruction, target: str) -> None:
        """Take in ``COPY <<EOF requirements.txt``: variables in it are the builder's.

        Several documents go into a folder, each by its own name.
        """
        if not target.startswith("/"):
            target = f"{stage.folder}/{target}"
        marks = list(HEREDOC.finditer(instruction.source.text))
        for mark, body in zip(marks, instruction.heredocs, strict=False):
            lines: list[Text] = []
            at = 0
            for line in body.text.split("\n"):
                begin = at + len(line) - len(line.lstrip())
                end = at + len(re.sub(r"(?:^|\s)#.*", "", line).rstrip())
                if begin < end:
                    word = body.cut(begin, end)
                    if not mark[2]:
                        word = substituted(word, stage.variables)
                    lines.append(Text(word, body.span(begin, end)))
                at += len(line) + 1
            into = len(marks) > 1 or target.endswith("/")
            stage.written[normal(f"{target}/{mark[3]}" if into else target)] = tuple(lines)

    # -- commands

    def run(self, instruction: Instruction) -> None:
        """Take in ``RUN``."""
        stage = self.stages[-1]
        reader = stage.reader
        if reader is None:
            return
        text = instruction.source.text
        at = 0
        bound: list[tuple[str, str]] = []
        for match in FLAG.finditer(text):
            if match.start() != at:
                break
            at = match.end()
            if match[0].startswith("--mount=") and "type=bind" in match[0]:
                bound += mounted(match[1] or "")
                name = re.search(r"(?<![a-z])from=([^,\s\"]+)", match[0])
                if name is not None and name[1].lower() in self.names:
                    stage.sources.append(self.names[name[1].lower()])
        rest = Source(instruction.source.cut(at, len(text)))
        text = rest.text
        before = len(reader.parts)
        environ = dict(stage.variables)
        for place, lines in stage.written.items():
            reader.files[place] = (lines, None)
            inside = f"{normal(stage.folder)}/".replace("//", "/")
            if place.startswith(inside):
                reader.files[place[len(inside) :]] = (lines, None)
        reader.fresh()
        reader.activated = virtual(environ)
        words = json_words(rest)
        if words is not None:
            self.listed(stage, reader, words, environ, instruction.span)
        elif instruction.heredocs and HEREDOC.fullmatch(rest.text.strip()):
            body = instruction.heredocs[0]
            text = body.text
            if not text.startswith("#!") or re.match(r"#!.*\b(?:ba|da|k|z|a)?sh\b", text):
                reader.read(read_script(body, environ, shell=Shell()))
        elif re.search(r"pwsh|powershell|cmd", stage.shell[0] if stage.shell else ""):
            return
        else:
            reader.read(read_script(rest, environ))
            if re.match(r"\s*(?:(?:ba|da|k|z|a)?sh\b[^|;&]*<<|<<\S+\s+(?:ba|da|k|z|a)?sh\b)", text):
                for body in instruction.heredocs:
                    reader.read(read_script(body, environ, shell=Shell()))
        if bound:
            stage = with_copies(stage, bound)
        for number in range(before, len(reader.parts)):
            part = reader.parts[number]
            includes = tuple(
                one._replace(path=stage.in_context(one.path)) for one in part.document.includes
            )
            reader.parts[number] = part._replace(document=part.document._replace(includes=includes))

    def listed(
        self,
        stage: Stage,
        reader: Reader,
        words: Sequence[Text],
        environ: dict[str, Word],
        span: Span,
    ) -> None:
        """Take in ``RUN ["pip", "install", …]``: no shell replaces anything."""
        if not words:
            return
        before = len(reader.parts)
        reader.read([Command(tuple(words), environ, span, "", None)])
        shell = words[0].value.rsplit("/", 1)[-1] in ("sh", "bash", "dash", "ash", "zsh")
        for number in range(before, len(reader.parts)):
            if not shell:
                reader.parts[number] = reader.parts[number]._replace(syntax="argument-list")
            else:  # an option would have to go into the string of commands
                reader.parts[number] = reader.parts[number]._replace(options_at=None)
