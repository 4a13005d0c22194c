"""INI files with positions, as Python's ``configparser`` reads them (``setup.cfg``, ``tox.ini``).

A value is a list of lines, each with its place, so that one requirement a line keeps its span.
Comments are full lines that begin with ``#`` or ``;``, indented or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.documents.base import Problem, Span
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_SECTION = regex(r"\[(.+)\]")
_OPTION = regex(r"(.*?)\s*(?:[=:])\s*(.*)\Z", re.DOTALL)


class Line(NamedTuple):
    """One line of a value, stripped; empty lines are left out."""

    text: str
    start: int

    @property
    def span(self) -> Span:
        """Its place."""
        return Span(self.start, self.start + len(self.text))


class Option(NamedTuple):
    """A key with its value."""

    key: str
    """In lower case, as ``configparser`` has it."""
    key_span: Span
    lines: tuple[Line, ...]
    span: Span
    """From the key to the end of the last line of the value."""
    inline: bool
    """The value begins behind the ``=``."""

    @property
    def value(self) -> str:
        """The lines of the value, joined."""
        return "\n".join(line.text for line in self.lines)


class Section(NamedTuple):
    """One section; a section that is written twice comes twice."""

    name: str
    span: Span
    """The header."""
    options: tuple[Option, ...]

    def get(self, key: str) -> Option | None:
        """Return an option by its key (in lower case), None if it is missing."""
        return next((one for one in reversed(self.options) if one.key == key), None)


class Ini(NamedTuple):
    """A whole file."""

    sections: tuple[Section, ...]
    comments: tuple[Span, ...]
    problems: tuple[Problem, ...]

    def section(self, name: str) -> Section | None:
        """Return the first section of a name, None if it is missing."""
        return next((one for one in self.sections if one.name == name), None)


def scan_ini(text: str) -> Ini:
    """Return the sections of ``text``; never raises. What ``configparser`` stops at is a problem of
    the code ``ini``."""
    sections: list[tuple[str, Span, list[Option]]] = []
    comments: list[Span] = []
    problems: list[Problem] = []
    option: tuple[str, Span, list[Line], bool] | None = None
    indent = 0

    def close() -> None:
        nonlocal option
        if option is not None and sections:
            key, span, lines, inline = option
            end = lines[-1].span.end if lines else span.end
            sections[-1][2].append(Option(key, span, tuple(lines), Span(span.start, end), inline))
        option = None

    for start, raw in _lines(text):
        content = raw.strip()
        at = start + len(raw) - len(raw.lstrip())
        if content[:1] in ("#", ";"):
            comments.append(Span(at, at + len(content)))
            continue
        if not content:
            continue
        depth = at - start
        if option is not None and depth > indent:
            option[2].append(Line(content, at))
            continue
        close()
        indent = depth
        header = _SECTION.match(content)
        if header is not None:
            sections.append((header[1], Span(at, at + header.end()), []))
            continue
        found = _OPTION.match(content)
        if not sections or found is None or not found[1]:
            if len(problems) < 20:
                what = "stands before the first section" if not sections else "is no option"
                problem = Problem(f"{content[:60]!r} {what}", Span(at, at + len(content)), "ini")
                problems.append(problem)
            continue
        key, value = found[1].rstrip(), found[2].strip()
        lines = [Line(value, at + found.start(2))] if value else []
        option = (key.lower(), Span(at, at + len(key)), lines, bool(value))
    close()
    return Ini(
        tuple(Section(name, span, tuple(options)) for name, span, options in sections),
        tuple(comments),
        tuple(problems),
    )


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield offset and text of each line, as text files are read: LF, CRLF and CR end one."""
    at = 0
    for match in re.finditer(r"[^\r\n]*(?:\r\n|\r|\n|\Z)", text):
        if match.start() < len(text) or match[0]:
            yield match.start(), match[0].rstrip("\r\n")
        at = match.end()
        if at >= len(text):
            return
