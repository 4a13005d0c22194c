"""Dockerfiles and Containerfiles: stages, arguments, and what their ``RUN`` lines install.

Source of the format: https://docs.docker.com/reference/dockerfile/. Variables, continuations,
comments between continued lines and heredocs are followed as BuildKit follows them; the shell
reader takes what ``RUN`` runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from torchpin.documents.atoms import Atom, Source, Word, cut, is_known, span_of, text_of, unknown
from torchpin.documents.base import Document, Span
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.docker_lines import (
    FLAG,
    HEREDOC,
    Instruction,
    instructions,
    json_words,
    words_of,
)
from torchpin.documents.docker_stage import Stage, mounted, normal, virtual, with_copies
from torchpin.documents.image_part import image_part
from torchpin.documents.parts import Image, Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import Shell, read_script
from torchpin.documents.shell_commands import Command
from torchpin.documents.shell_words import Text
from torchpin.patterns import regex

_VARIABLE = regex(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+?])([^{}]*))?\})")
_AS = regex(r"\s+as\s+(\S+)\s*$", re.IGNORECASE)
_LONGEST = 300
"""Atoms of one value: one that is made of itself grows without end."""
_MANY = 5_000
"""Instructions of one file that are followed."""


def read_dockerfile(path: str, data: bytes) -> Document:
    """Return the document of a Dockerfile; never raises."""
    file = file_of(path, data, "dockerfile")
    if INSTALLS.search(file.text) is None and "pytorch/pytorch" not in file.text:
        return file
    file = file._replace(comments=notes_in(file.text))
    return file._replace(parts=build(file, {}))


def build(file: Document, given: Mapping[str, Word]) -> tuple[Part, ...]:
    """Return the parts of a Dockerfile that is built with some values of its arguments."""
    builder = _Builder(file, given)
    for number, instruction in enumerate(instructions(file.text)):
        if number >= _MANY:
            break
        builder.take(instruction)
    return tuple(builder.parts())


class _Builder:
    """Follows the instructions of one file."""

    def __init__(self, file: Document, given: Mapping[str, Word] | None = None) -> None:
        self.file = file
        self.given = given or {}
        """Values of ``--build-arg``: they win over defaults."""
        self.globals: dict[str, Word] = {}
        self.stages: list[Stage] = []
        self.names: dict[str, Stage] = {}
        self.readers: list[Reader] = []

    def parts(self) -> Iterator[Part]:
        """Yield the parts of all stages, in order."""
        for reader in self.readers:
            yield from reader.parts
        if self.stages:
            yield from self.own_torch(self.stages[-1])

    def own_torch(self, stage: Stage) -> Iterator[Part]:
        """Yield the image of the last stage, the one that is built, if it brings a torch."""
        part = image_part(
            self.file,
            stage.image,
            name="base image",
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
        word = self.substituted(source.cut(at, end), self.globals)
        reference = text_of(word).strip()
        base = self.names.get(reference.lower())
        name = named[1] if named is not None else f"{len(self.stages)}"
        label = name if named is not None else (f"{name}" if self.stages else "")
        image = base.image if base is not None else Image(reference, span_of(word))
        if image is not None and not is_known(word):
            image = None
        stage = Stage(label or "0", image, base)
        if platform is not None and "$" not in platform:
            machine = platform.rsplit("linux/", 1)[-1]
            known = {"amd64": "linux-x86_64", "arm64": "linux-aarch64", "x86_64": "linux-x86_64"}
            stage.platform = known.get(machine.split("/")[0], stage.platform)
        prefix = f"stage {name}, " if named is not None or self.stages else ""
        setting = Setting(
            self.file,
            prefix=prefix,
            environment=stage.environment,
            platform=stage.platform or "linux",
            image=image,
        )
        stage.reader = Reader(setting)
        self.readers.append(stage.reader)
        self.stages.append(stage)
        if named is not None:
            self.names[named[1].lower()] = stage
        self.names.setdefault(str(len(self.stages) - 1), stage)

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
                scope[name] = self.substituted(cut(word.atoms, len(name) + 1), scope)
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
            scope[old[1]] = self.substituted(source.cut(old.end(), end), scope)
            return
        before = dict(scope)  # one instruction sees the values from before it
        for word in words_of(source):
            name, equals, _ = word.value.partition("=")
            if equals and re.fullmatch(r"[A-Za-z_]\w*", name):
                scope[name] = self.substituted(cut(word.atoms, len(name) + 1), before)

    def substituted(self, word: Word, scope: dict[str, Word]) -> Word:
        """Return a word with Docker's own variables replaced."""
        text = text_of(word)
        if "$" not in text:
            return word
        found: list[Atom] = []
        at = 0
        for match in _VARIABLE.finditer(text):
            if match.start() and text[match.start() - 1] == "\\":
                continue
            found += cut(word, at, match.start())
            at = match.end()
            span = span_of(cut(word, match.start(), match.end()))
            name = match[1] or match[2]
            operator = match[3] or ""
            value = scope.get(name)
            is_set = value is not None and (bool(text_of(value)) or not operator.startswith(":"))
            if operator.endswith("+"):
                if is_set:
                    found += cut(word, match.start(4), match.end(4))
            elif is_set and value is not None and len(value) <= _LONGEST >= len(found):
                found += [atom.used_at(*span, name) for atom in value]
            elif operator.endswith("-"):
                inner = self.substituted(cut(word, match.start(4), match.end(4)), scope)
                found += [atom.used_at(*span, name) for atom in inner]
            else:
                found.append(unknown(name, *span))
        found += cut(word, at)
        return tuple(found)

    # -- files

    def work_in(self, instruction: Instruction) -> None:
        """Take in ``WORKDIR``."""
        stage = self.stages[-1]
        path = text_of(
            self.substituted(
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
                return
        words = json_words(instruction.source) or words_of(
            Source(instruction.source.cut(at, len(text)))
        )
        paths = [text_of(self.substituted(word.atoms, stage.variables)) for word in words]
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

    def write(self, stage: Stage, instruction: Instruction, target: str) -> None:
        """Take in ``COPY <<EOF requirements.txt``: variables in it are the builder's.

        Several documents go into a folder, each by its own name.
        """
        if not target.startswith("/"):
            target = f"{stage.folder}/{target}"
        marks = list(HEREDOC.finditer(instruction.source.text))
        for mark, (body, span) in zip(marks, instruction.heredocs, strict=False):
            lines: list[Text] = []
            at = span.start
            for line in body.split("\n"):
                begin = at + len(line) - len(line.lstrip())
                end = at + len(re.sub(r"(?:^|\s)#.*", "", line).rstrip())
                if begin < end:
                    word: Word = (Atom(self.file.text[begin:end], begin, end, True),)
                    if not mark[2]:
                        word = self.substituted(word, stage.variables)
                    lines.append(Text(word, Span(begin, end)))
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
        rest = Source(instruction.source.cut(at, len(text)))
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
        elif instruction.heredocs and re.match(r"\s*<<", rest.text):
            body, span = instruction.heredocs[0]
            if not body.startswith("#!") or re.match(r"#!.*\b(?:ba|da|k|z|a)?sh\b", body):
                source = Source((Atom(body, span.start, span.end, True),))
                reader.read(read_script(source, environ, shell=Shell()))
        elif re.search(r"pwsh|powershell|cmd", stage.shell[0] if stage.shell else ""):
            return
        else:
            reader.read(read_script(rest, environ))
            for body, span in instruction.heredocs:
                if re.match(r"\s*(?:ba|da|k|z|a)?sh\b[^|;&]*<<", rest.text):
                    source = Source((Atom(body, span.start, span.end, True),))
                    reader.read(read_script(source, environ, shell=Shell()))
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
