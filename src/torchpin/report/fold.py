"""Fold the long lines of a report to the width of a terminal.

Only sentences are folded. What may be copied (requirement lines, patches) and what stands in
columns (code frames, tables) stays as it is; so does everything that goes to a file or a pipe.
"""

from __future__ import annotations

from torchpin.patterns import regex
from torchpin.report.style import width

NARROW = 40
"""On fewer columns nothing is folded: it would not be read better."""
_PAINT = regex(r"\x1b\[[0-9;]*m")
_SENTENCE = regex(
    r"\s*(?:= )?(?:because|see|in matrix|fix|fix \(unsafe\)|advice|without it):"
    r"|.*: (?:error|warning|info)\[TP\d+\] "
    r"|(?:  )+\S.* \[[a-z]+\]$"
    r"|(?:torchpin|note): |Found \d|Mended \d"
)
_LEAD = regex(r" *(?:= )?")


def fold(text: str, columns: int, *, every: bool = False) -> str:
    """Return ``text`` with its sentences broken at blanks where they pass ``columns``.

    ``every``: all lines are sentences.
    """
    if columns < NARROW:
        return text
    out: list[str] = []
    for line in text.split("\n"):
        plain = _PAINT.sub("", line)
        if width(plain) > columns and (every or _SENTENCE.match(plain)):
            out += _folded(line, _hang(plain), columns)
        else:
            out.append(line)
    return "\n".join(out)


def _hang(plain: str) -> int:
    """Return how far the later lines of a sentence stand in: behind its bullet, or by four."""
    lead = _LEAD.match(plain)
    assert lead is not None
    return lead.end() + 2 if lead.end() else 4


def _folded(line: str, hang: int, columns: int) -> list[str]:
    words = line.lstrip(" ").split(" ")
    out: list[str] = []
    current = " " * (len(line) - len(line.lstrip(" ")))
    used = len(current)
    fresh = True
    for word in words:
        size = width(_PAINT.sub("", word))
        if not fresh and used + 1 + size > columns:
            out.append(current)
            current, used, fresh = " " * hang, hang, True
        current += word if fresh else f" {word}"
        used += size if fresh else size + 1
        fresh = False
    return [*out, current]
