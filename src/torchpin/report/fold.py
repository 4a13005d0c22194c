"""Fold the long lines of a report to the width of a terminal.

Only sentences are folded. What may be copied (requirement lines, patches) and what stands in
columns (code frames, tables) stays as it is; so does everything that goes to a file or a pipe.
"""

from __future__ import annotations

from torchpin.patterns import regex
from torchpin.report.wrap import NARROW, plain, shown_width, wrap

_SENTENCE = regex(
    r"\s*(?:= )?(?:because|see|in matrix|fix|fix \(unsafe\)|advice|change|without it):"
    r"|\S.*, Python \S+: from \S|torch \d\S*(?: on |, the newest, )"
    r"|(?:error|warning|info)\[TP\d+\] |Not served: |To judge your machines"
    r"|\s*(?:whole fleet|today): |  \S.* \(.*\): (?:does not run|not known)"
    r"|(?:  )+\S.* \[[a-z]+\]$"
    r"|(?:torchpin|note): |Found \d|Mended \d|Nothing |No findings|`torchpin fix"
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
        bare = plain(line)
        if shown_width(line) > columns and (every or _SENTENCE.match(bare)):
            text = line.lstrip(" ")
            lead = line[: len(line) - len(text)]
            out += wrap(text, columns, lead, _hang(bare))
        else:
            out.append(line)
    return "\n".join(out)


def _hang(bare: str) -> int:
    """Return how far the later lines of a sentence stand in: behind its bullet, or by four."""
    lead = _LEAD.match(bare)
    assert lead is not None
    return lead.end() + 2 if lead.end() else 4
