"""Comments that silence findings: ``# torchpin: ignore[TP201,TP3] reason``.

Behind a requirement it holds for that logical line, on a line of its own for the next one;
``# torchpin: ignore-file[TP…]`` holds for the whole file. A code may be a prefix (``TP3``: all
of that family). ``ignore TP201 reason`` means the same: codes that come first count without
brackets, and a bracket that nothing closes holds codes too. Without any code every code is meant.
"""

from __future__ import annotations

import re

from torchpin.documents.base import Document, Span, line_starts, position
from torchpin.documents.lines import logical_lines
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_COMMENT = regex(
    r"#[ \t]*torchpin[ \t]*:[ \t]*ignore(?P<file>-file)?(?![\w-])[ \t]*"
    r"(?:\[(?P<codes>[^\[\]]*)(?:\]|\Z))?[ \t:-]*"
    r"(?P<bare>(?:TP[0-9]{1,3}\b[ \t,]*)*)(?P<reason>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SEPARATOR = regex(r"[\s,]+")


class Suppression(NamedTuple):
    """One such comment; lines are 1-based."""

    codes: tuple[str, ...]
    """Codes or prefixes, upper case; empty: every code."""
    first_line: int
    """First line that it covers; 0 with ``last_line`` 0 if it stands above nothing."""
    last_line: int
    whole_file: bool
    line: int
    """Where the comment stands."""
    reason: str
    span: Span

    def covers(self, code: str, line: int) -> bool:
        """Tell whether a finding ``code`` at ``line`` is silenced."""
        if not self.whole_file and not self.first_line <= line <= self.last_line:
            return False
        return not self.codes or code.upper().startswith(self.codes)


def suppressions(document: Document) -> tuple[Suppression, ...]:
    """Return the suppressions of a document in order."""
    text = document.text
    if "torchpin" not in text and "torchpin" not in text.lower():
        return ()
    starts = line_starts(text)
    found: list[Suppression] = []
    waiting: list[int] = []
    above = 0
    for logical in logical_lines(text, {}):
        first = position(starts, logical.line_span.start).line
        last = position(starts, max(logical.line_span.end - 1, logical.line_span.start)).line
        if waiting and first > above + 1:  # a blank line between: the comment belongs to nothing
            waiting = []
        if logical.text:
            for index in waiting:
                found[index] = found[index]._replace(first_line=first, last_line=last)
            waiting = []
        above = last
        if logical.comment is None:
            continue
        match = _COMMENT.match(text[logical.comment.start : logical.comment.end])
        if match is None:
            continue
        named = match["codes"] if match["codes"] is not None else match["bare"]
        codes = tuple(code for code in _SEPARATOR.split(named.upper()) if code)
        if match["codes"] is not None and not codes:
            continue  # ``ignore[]`` names nothing
        alone = not logical.text
        whole_file = match["file"] is not None
        if alone and not whole_file:
            waiting.append(len(found))
        found.append(
            Suppression(
                codes,
                0 if alone else first,
                0 if alone else last,
                whole_file,
                position(starts, logical.comment.start).line,
                (
                    match["reason"] if named == match["bare"] else match["bare"] + match["reason"]
                ).strip(),
                logical.comment,
            )
        )
    return tuple(found)
