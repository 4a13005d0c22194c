"""Dockerfiles and Containerfiles: stages, arguments, and what their ``RUN`` lines install.

Source of the format: https://docs.docker.com/reference/dockerfile/. Variables, continuations,
comments between continued lines and heredocs are followed as BuildKit follows them; the shell
reader takes what ``RUN`` runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from torchpin.documents.atoms import Atom, Source, Word, cut, is_known, span_of, text_of, unknown
from torchpin.documents.base import Document, Span
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.image_part import image_part
from torchpin.documents.parts import Image, Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import Shell, read_script
from torchpin.documents.shell_commands import Command
from torchpin.documents.shell_words import Text
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_ESCAPE = regex(r"#\s*escape\s*=\s*([`\\])\s*$", re.IGNORECASE)
_DIRECTIVE = regex(r"#\s*[A-Za-z]+\s*=")
_INSTRUCTION = regex(r"\s*([A-Za-z]+)(?:\s+|$)")
_FLAG = regex(r"--[A-Za-z-]+(?:=(\"[^\"]*\"|\S+))?\s+")
_HEREDOC = regex(r"(?<![0-9<])<<(-?)([\"']?)([A-Za-z_][A-Za-z0-9_]*)\2(?![<])")
_VARIABLE = regex(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+?])([^{}]*))?\})")
_AS = regex(r"\s+as\s+(\S+)\s*$", re.IGNORECASE)
_LONGEST = 300
"""Atoms of one value: one that is made of itself grows without end."""
_MANY = 5_000
"""Instructions of one file that are followed."""


class Instruction(NamedTuple):
    """One instruction."""

    name: str
    """Upper case."""
    source: Source
    """What follows the name: continuations joined, comments between them left out."""
    span: Span
    heredocs: tuple[tuple[str, Span], ...] = ()
    """Text and place of each here-document."""


class Stage:
    """A build stage, and what it has set so far."""

    def __init__(self, name: str, image: Image | None, base: Stage | None) -> None:
        self.name = name
        self.image = image
        self.environment: str = f"{base.environment}/{name}" if base is not None else name
        self.variables: dict[str, Word] = dict(base.variables) if base is not None else {}
        self.folder: str = base.folder if base is not None else ""
        self.copied: list[tuple[str, str]] = list(base.copied) if base is not None else []
        """(path in the context, path in the image), folders with a slash at the end."""
        self.written: dict[str, tuple[Text, ...]] = dict(base.written) if base is not None else {}
        """Path in the image → lines of a here-document that ``COPY`` puts there."""
        self.platform: str | None = base.platform if base is not None else None
        self.shell: list[str] = list(base.shell) if base is not None else ["/bin/sh", "-c"]
        self.reader: Reader | None = None


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


def instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile."""
    lines = list(re.finditer(r"[^\n]*(?:\n|\Z)", text))
    escape = "\\"
    at = 0
    while at < len(lines):  # directives stand at the very top
        directive = lines[at][0].strip()
        match = _ESCAPE.match(directive)
        if match is not None:
            escape = match[1]
        if not _DIRECTIVE.match(directive):
            break
        at += 1
    while at < len(lines):
        first = lines[at]
        stripped = first[0].strip()
        if not stripped or stripped.startswith("#"):
            at += 1
            continue
        pieces: list[tuple[int, int]] = []
        end = first.end()
        while at < len(lines):
            line = lines[at]
            body = line[0].rstrip("\r\n")
            at += 1
            if pieces and (not body.strip() or body.lstrip().startswith("#")):
                continue
            end = line.start() + len(body)
            bare = body.rstrip(" \t")
            if bare.endswith(escape):
                pieces.append((line.start(), line.start() + len(bare) - 1))
                continue
            pieces.append((line.start(), end))
            break
        source = Source(Atom(text[a:b], a, b, True) for a, b in pieces)
        name = _INSTRUCTION.match(source.text)
        if name is None:
            continue
        upper = name[1].upper()
        heredocs: list[tuple[str, Span]] = []
        if upper in ("RUN", "COPY", "ADD"):
            for mark in _HEREDOC.finditer(source.text):
                begin = at
                while at < len(lines):
                    line_text = lines[at][0].rstrip("\r\n")
                    closing = line_text.lstrip("\t") if mark[1] else line_text
                    at += 1
                    if closing == mark[3]:
                        break
                if begin < len(lines):
                    last = lines[min(at, len(lines)) - 1].start()
                    span = Span(lines[begin].start(), max(last, lines[begin].start()))
                    heredocs.append((text[span.start : span.end], span))
        rest = Source(source.cut(name.end(), len(source.text)))
        yield Instruction(upper, rest, Span(first.start(), end), tuple(heredocs))


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
            words = _json_words(instruction.source)
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
        for match in _FLAG.finditer(text):
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
        for word in _words(instruction.source):
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
        for word in _words(source):
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
        for match in _FLAG.finditer(text):
            if match.start() != at:
                break
            at = match.end()
            if match[0].startswith("--from="):
                return
        words = _json_words(instruction.source) or _words(
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
        target = _normal(target)
        for path in paths[:-1]:
            source = _normal(path)
            name = source.rsplit("/", 1)[-1]
            stage.copied.append((source, target))
            if many or "*" in name:
                stage.copied.append((source, _normal(f"{target}/{name}")))

    def write(self, stage: Stage, instruction: Instruction, target: str) -> None:
        """Take in ``COPY <<EOF requirements.txt``: variables in it are the builder's.

        Several documents go into a folder, each by its own name.
        """
        if not target.startswith("/"):
            target = f"{stage.folder}/{target}"
        marks = list(_HEREDOC.finditer(instruction.source.text))
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
            stage.written[_normal(f"{target}/{mark[3]}" if into else target)] = tuple(lines)

    def in_context(self, stage: Stage, folder: str, path: str) -> str:
        """Return where in the build context a file of the image lies, as far as it is known."""
        if "://" in path or "$" in path:
            return path
        place = _normal(path if path.startswith("/") else f"{folder}/{path}")
        for source, target in reversed(stage.copied):
            if place == target and source not in ("", "."):
                if "*" in source:
                    return _beside(source, place)
                return source
            name = source.rsplit("/", 1)[-1]
            if "." in name.lstrip(".") and "*" not in name:
                continue  # by its name a file, not a folder
            if target in ("", "/") or place.startswith(f"{target}/"):
                inside = place[len(target) :].lstrip("/") if target not in ("", "/") else place[1:]
                if "*" in source:
                    return _beside(source, place)
                return f"{source}/{inside}" if source not in ("", ".") else inside
        return path.lstrip("/") if not path.startswith("/") else path

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
        for match in _FLAG.finditer(text):
            if match.start() != at:
                break
            at = match.end()
            if match[0].startswith("--mount=") and "type=bind" in match[0]:
                bound += _mounted(match[1] or "")
        rest = Source(instruction.source.cut(at, len(text)))
        before = len(reader.parts)
        environ = dict(stage.variables)
        for place, lines in stage.written.items():
            reader.files[place] = (lines, None)
            inside = f"{_normal(stage.folder)}/".replace("//", "/")
            if place.startswith(inside):
                reader.files[place[len(inside) :]] = (lines, None)
        reader.fresh()
        reader.activated = _virtual(environ)
        words = _json_words(rest)
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
            stage = _with_copies(stage, bound)
        for number in range(before, len(reader.parts)):
            part = reader.parts[number]
            includes = tuple(
                one._replace(path=self.in_context(stage, stage.folder, one.path))
                for one in part.document.includes
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


def _virtual(environ: dict[str, Word]) -> str:
    """Return the virtual environment that ``ENV`` has put first on the path, ``""`` if none."""
    chosen = text_of(environ.get("VIRTUAL_ENV", ()))
    if chosen:
        return f"{chosen}/bin/activate"
    first = text_of(environ.get("PATH", ())).partition(":")[0]
    match = re.fullmatch(r"(.*venv[^/]*)/bin/?", first)
    return f"{match[1]}/bin/activate" if match is not None else ""


def _with_copies(stage: Stage, more: list[tuple[str, str]]) -> Stage:
    other = Stage(stage.name, stage.image, None)
    other.folder = stage.folder
    other.copied = [
        *stage.copied,
        *(
            (source, target if target.startswith("/") else _normal(f"{stage.folder}/{target}"))
            for source, target in more
        ),
    ]
    return other


def _mounted(options: str) -> list[tuple[str, str]]:
    values = {
        key: value
        for key, _, value in (one.partition("=") for one in options.strip('"').split(","))
    }
    if "from" in values:
        return []
    source = values.get("source", values.get("src", "."))
    target = values.get("target", values.get("dst", values.get("destination", "")))
    return [(_normal(source), _normal(target) if target.startswith("/") else target)]


def _normal(path: str) -> str:
    """Return a path without ``.`` components and doubled slashes."""
    absolute = path.startswith("/")
    kept: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        else:
            kept.append(part)
    return ("/" if absolute else "") + "/".join(kept)


def _beside(pattern: str, place: str) -> str:
    """Return a copied file in the folder of the pattern that it was copied by."""
    folder = pattern.rpartition("/")[0]
    name = place.rsplit("/", 1)[-1]
    return f"{folder}/{name}" if folder else name


def _json_words(source: Source) -> list[Text] | None:
    """Return the strings of a JSON array with their places; None if it is none."""
    text = source.text.strip()
    if not text.startswith("["):
        return None
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        return None
    found: list[Text] = []
    at = source.text.index("[")
    for value, match in zip(
        values, re.finditer(r'"((?:[^"\\]|\\.)*)"', source.text[at:]), strict=False
    ):
        begin, end = at + match.start(1), at + match.end(1)
        span = source.span(begin - 1, end + 1)
        if source.text[begin:end] == value:
            found.append(Text(source.cut(begin, end), span))
        else:
            found.append(Text((Atom(value, *source.span(begin, end), False),), span))
    return found


def _words(source: Source) -> list[Text]:
    """Return the words of ``ARG``, ``ENV`` and ``COPY``: quotes taken away, variables left."""
    text = source.text
    found: list[Text] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        begin = at
        atoms: list[Atom] = []
        while at < len(text) and not text[at].isspace():
            char = text[at]
            if char in "\"'":
                close = at + 1
                while close < len(text) and text[close] != char:
                    close += 2 if text[close] == "\\" and char == '"' else 1
                close = min(close, len(text))
                atoms += source.cut(at + 1, close)
                at = close + 1
            elif char == "\\" and at + 1 < len(text):
                atoms += source.cut(at + 1, at + 2)
                at += 2
            else:
                stop = at
                while stop < len(text) and not text[stop].isspace() and text[stop] not in "\"'\\":
                    stop += 1
                atoms += source.cut(at, stop)
                at = stop
        at = min(at, len(text))
        found.append(Text(tuple(atoms), source.span(begin, at)))
    return found
