"""Physical lines of a requirements file to the logical lines that pip sees, with their origin.

pip breaks where ``str.splitlines`` breaks (form feed, U+0085, U+2028, a lone CR …), joins lines
that end in a backslash, cuts comments, strips, and only then replaces ``${VARIABLES}``. Source:
``pip/_internal/req/req_file.py``, ``preprocess``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping

from torchpin.documents.base import Span
from torchpin.patterns import regex

_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
VARIABLE = regex(r"\$\{([A-Z0-9_]+)\}")


class Logical:
    """One logical line: its text without comment, and where each character comes from."""

    __slots__ = (
        "_order",
        "_raw",
        "_starts",
        "_variable_ends",
        "comment",
        "line_span",
        "text",
        "variables",
    )

    def __init__(
        self,
        text: str,
        starts: list[int],
        raw: list[int],
        variable_ends: dict[int, int],
        line_span: Span,
        comment: Span | None,
    ) -> None:
        self.text = text
        self._starts = starts
        self._raw = raw
        self._variable_ends = variable_ends
        self._order: list[int] | None = None
        self.line_span = line_span
        self.comment = comment
        self.variables = bool(variable_ends)

    def start(self, offset: int) -> int:
        """Return the offset in the document of the character at ``offset`` of this line."""
        piece = bisect_right(self._starts, offset) - 1 if len(self._starts) > 1 else 0
        if piece in self._variable_ends:
            return self._raw[piece]
        return self._raw[piece] + offset - self._starts[piece]

    def end(self, offset: int) -> int:
        """Return the offset in the document just behind the character before ``offset``."""
        if offset <= 0:
            return self.start(0)
        piece = bisect_right(self._starts, offset - 1) - 1 if len(self._starts) > 1 else 0
        if piece in self._variable_ends:
            return self._variable_ends[piece]
        return self._raw[piece] + offset - self._starts[piece]

    def span(self, start: int, end: int) -> Span:
        """Return the span in the document of ``text[start:end]``."""
        if start >= end:
            at = self.start(start)
            return Span(at, at)
        if self.variables:
            return Span(self.start(start), self.end(end))
        starts = self._starts
        if len(starts) == 1:
            shift = self._raw[0]
            return Span(start + shift, end + shift)
        piece = bisect_right(starts, start) - 1
        shift = self._raw[piece] - starts[piece]
        if piece + 1 == len(starts) or end <= starts[piece + 1]:
            return Span(start + shift, end + shift)
        return Span(start + shift, self.end(end))

    def touches_variable(self, start: int, end: int) -> bool:
        """Tell whether some part of ``text[start:end]`` comes from a ``${VARIABLE}``."""
        if not self.variables:
            return False
        if self._order is None:
            self._order = sorted(self._variable_ends)
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, max(end - 1, start)) - 1
        at = bisect_left(self._order, first)
        return at < len(self._order) and self._order[at] <= last


def logical_lines(text: str, environ: Mapping[str, str]) -> Iterator[Logical]:
    """Yield the logical lines of ``text``; lines with a comment only have an empty ``text``.

    Variables are taken from ``environ`` only; as in pip, one that is not set (or is empty) stays.
    """
    parts: list[tuple[str, int]] = []
    at = 0
    line_start = 0
    end = 0
    for raw in text.splitlines(True):
        start = at
        at += len(raw)
        content = raw
        if raw[-1] in _LINE_ENDS:
            content = raw[:-2] if raw.endswith("\r\n") else raw[:-1]
        end = start + len(content)
        if not parts:
            line_start = start
        is_comment = content.lstrip()[:1] == "#" if "#" in content else False
        if content.endswith("\\") and not is_comment:
            bare = content.lstrip("\\")
            parts.append((bare.rstrip("\\"), start + len(content) - len(bare)))
            continue
        if not parts:
            if content:
                yield _logical(content, [0], [start], Span(start, end), environ)
            continue
        if is_comment:
            parts.append((" ", start))  # so that the comment counts as one, as in pip
        parts.append((content, start))
        yield _joined(parts, Span(line_start, end), environ)
        parts = []
    if parts:
        yield _joined(parts, Span(line_start, end), environ)


def _joined(parts: list[tuple[str, int]], span: Span, environ: Mapping[str, str]) -> Logical:
    starts: list[int] = []
    raw: list[int] = []
    length = 0
    for content, start in parts:
        starts.append(length)
        raw.append(start)
        length += len(content)
    return _logical("".join(content for content, _ in parts), starts, raw, span, environ)


def comment_start(line: str) -> int:
    """Return the offset of the ``#`` that begins a comment (first or behind a blank), or -1."""
    at = line.find("#")
    while at > 0 and not line[at - 1].isspace():
        at = line.find("#", at + 1)
    return at


def _logical(
    line: str, starts: list[int], raw: list[int], span: Span, environ: Mapping[str, str]
) -> Logical:
    whole = Logical(line, starts, raw, {}, span, None)
    comment = None
    at = comment_start(line)
    if at >= 0:
        comment = Span(whole.start(at), span.end)
        line = line[:at]
    line = line.rstrip()
    lead = len(line) - len(line.lstrip())
    variables: dict[int, int] = {}
    if "${" in line:
        line, starts, raw, variables = _expand(line, lead, whole, environ)
    else:
        line = line[lead:]
        if lead:
            if len(starts) == 1:
                raw = [raw[0] + lead]
            else:
                starts, raw = _cut(starts, raw, lead)
    return Logical(line, starts, raw, variables, span, comment)


def _cut(starts: list[int], raw: list[int], lead: int) -> tuple[list[int], list[int]]:
    """Drop the first ``lead`` characters of the piece table."""
    first = bisect_right(starts, lead) - 1
    new_starts = [max(start - lead, 0) for start in starts[first:]]
    new_raw = raw[first:]
    new_raw[0] += lead - starts[first]
    return new_starts, new_raw


def _expand(
    line: str, lead: int, whole: Logical, environ: Mapping[str, str]
) -> tuple[str, list[int], list[int], dict[int, int]]:
    """Replace variables; each becomes a piece of its own, known or not."""
    out: list[str] = []
    starts: list[int] = []
    raw: list[int] = []
    variables: dict[int, int] = {}
    length = 0

    def literal(start: int, end: int) -> None:
        nonlocal length
        while start < end:
            piece = bisect_right(whole._starts, start) - 1
            stop = whole._starts[piece + 1] if piece + 1 < len(whole._starts) else end
            stop = min(stop, end)
            starts.append(length)
            raw.append(whole.start(start))
            out.append(line[start:stop])
            length += stop - start
            start = stop

    at = lead
    for match in VARIABLE.finditer(line, lead):
        literal(at, match.start())
        value = environ.get(match[1]) or match[0]
        variables[len(starts)] = whole.end(match.end())
        starts.append(length)
        raw.append(whole.start(match.start()))
        out.append(value)
        length += len(value)
        at = match.end()
    literal(at, len(line))
    if not starts:
        return "", [0], [whole.start(lead)], {}
    return "".join(out), starts, raw, variables
