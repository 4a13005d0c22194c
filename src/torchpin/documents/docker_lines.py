"""The instructions of a Dockerfile, and the words that they are written in.

Source of the format: https://docs.docker.com/reference/dockerfile/. Continuations, comments between
continued lines and here-documents are followed as BuildKit follows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from torchpin.documents.atoms import Atom, Source
from torchpin.documents.base import Span
from torchpin.documents.shell_words import Text
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_ESCAPE = regex(r"#\s*escape\s*=\s*([`\\])\s*$", re.IGNORECASE)
_DIRECTIVE = regex(r"#\s*[A-Za-z]+\s*=")
_INSTRUCTION = regex(r"\s*([A-Za-z]+)(?:\s+|$)")
FLAG = regex(r"--[A-Za-z-]+(?:=(\"[^\"]*\"|\S+))?\s+")
"""An option of an instruction: ``--mount=type=bind``."""
HEREDOC = regex(r"(?<![0-9<])<<(-?)([\"']?)([A-Za-z_][A-Za-z0-9_]*)\2(?![<])")
"""The mark of a here-document."""


class Instruction(NamedTuple):
    """One instruction."""

    name: str
    """Upper case."""
    source: Source
    """What follows the name: continuations joined, comments between them left out."""
    span: Span
    heredocs: tuple[Source, ...] = ()
    """Each here-document."""


def instructions(written: Source) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile."""
    text = written.text
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
        source = Source(atom for piece in pieces for atom in written.cut(*piece))
        name = _INSTRUCTION.match(source.text)
        if name is None:
            continue
        upper = name[1].upper()
        heredocs: list[Source] = []
        if upper in ("RUN", "COPY", "ADD", "ONBUILD"):
            for mark in HEREDOC.finditer(source.text):
                begin = at
                while at < len(lines):
                    line_text = lines[at][0].rstrip("\r\n")
                    closing = line_text.lstrip("\t") if mark[1] else line_text
                    at += 1
                    if closing == mark[3]:
                        break
                if begin < len(lines):
                    last = lines[min(at, len(lines)) - 1].start()
                    start = lines[begin].start()
                    heredocs.append(Source(written.cut(start, max(last, start))))
        yield _instruction(source, written.span(first.start(), end), tuple(heredocs))


def _instruction(source: Source, span: Span, heredocs: tuple[Source, ...]) -> Instruction:
    name = _INSTRUCTION.match(source.text)
    at = name.end() if name is not None else 0
    rest = Source(source.cut(at, len(source.text)))
    return Instruction(name[1].upper() if name is not None else "", rest, span, heredocs)


def triggered(instruction: Instruction) -> Instruction:
    """Return what ``ONBUILD`` keeps for the build of the next image."""
    return _instruction(instruction.source, instruction.span, instruction.heredocs)


def json_words(source: Source) -> list[Text] | None:
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


def words_of(source: Source) -> list[Text]:
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
