"""What a fix changes, as a small diff below a finding."""

from __future__ import annotations

from bisect import bisect_right

from torchpin.documents.base import Document, Edit, Span, apply_edits
from torchpin.named import NamedTuple
from torchpin.report.frame import cut, room
from torchpin.report.model import Locator, plural
from torchpin.report.style import Style, clean
from torchpin.rules.model import UNSAFE, Finding

MOST = 8
"""Lines that a small diff shows."""


class Hunk(NamedTuple):
    """Lines of a document that become others."""

    first: int
    """Number of the first line."""
    old: tuple[str, ...]
    new: tuple[str, ...]


def hunks(document: Document, edits: tuple[Edit, ...], locator: Locator) -> list[Hunk]:
    """Return what becomes of the lines that ``edits`` touch, without lines that stay."""
    text, starts = document.text, locator.starts(document)
    out: list[Hunk] = []
    groups: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(set(edits)):
        first = bisect_right(starts, edit.span.start) - 1
        last = bisect_right(starts, max(edit.span.start, edit.span.end - 1)) - 1
        end = starts[last + 1] if last + 1 < len(starts) else len(text)
        if groups and starts[first] < groups[-1][1]:
            begin, until, before = groups[-1]
            groups[-1] = begin, max(until, end), [*before, edit]
        else:
            groups.append((starts[first], end, [edit]))
    for begin, end, mine in groups:
        moved = tuple(
            Edit(Span(one.span.start - begin, one.span.end - begin), one.text) for one in mine
        )
        old = _lines(text[begin:end])
        new = _lines(apply_edits(text[begin:end], moved))
        first = bisect_right(starts, begin)
        while old and new and old[0] == new[0]:
            first, old, new = first + 1, old[1:], new[1:]
        while old and new and old[-1] == new[-1]:
            old, new = old[:-1], new[:-1]
        if not old:  # what is only added is shown without the blank lines around it
            while len(new) > 1 and not new[0].strip():
                new = new[1:]
            while len(new) > 1 and not new[-1].strip():
                new = new[:-1]
        if old or new:
            out.append(Hunk(first, tuple(old), tuple(new)))
    return out


def _lines(text: str) -> list[str]:
    """Return lines as editors see them, without their ends."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def last_number(finding: Finding, locator: Locator) -> int:
    """Return the greatest line number in the diff of the fix of ``finding``; 0 without one."""
    return max(
        (
            hunk.first + max(len(hunk.old) - 1, 0)
            for part in (finding.fix.edits if finding.fix is not None else ())
            for hunk in hunks(part.document, part.edits, locator)
        ),
        default=0,
    )


def patch(finding: Finding, locator: Locator, style: Style, gutter: int) -> list[str]:
    """Return the lines of the small diff of the fix of ``finding``, without line ends.

    Files other than that of the finding are named; what is too long is counted.
    """
    assert finding.fix is not None
    out: list[str] = []
    left = MOST
    hidden = 0
    for part in finding.fix.edits:
        changed = hunks(part.document, part.edits, locator)
        rows: list[str] = []
        for hunk in changed:
            for sign, lines in (("-", hunk.old), ("+", hunk.new)):
                for number, line in enumerate(lines):
                    if left <= 0:
                        hidden += 1
                        continue
                    left -= 1
                    number = hunk.first + min(number, max(len(hunk.old) - 1, 0))
                    rows.append(_row(number, sign, line, hunk, style, gutter))
        if rows:
            if part.document.path != finding.path:
                arrow = style.paint("blue", f"{' ' * gutter}:::")
                out.append(f"{arrow} {clean(part.document.path)}")
            out += rows
    if hidden:
        option = " --unsafe-fixes" if finding.fix.safety == UNSAFE else ""
        more = f"… {plural(hidden, 'more line')}: `torchpin fix --diff{option}`"
        out.append(f"{' ' * gutter} {style.paint('dim', more)}")
    return out


def _row(number: int, sign: str, line: str, hunk: Hunk, style: Style, gutter: int) -> str:
    others = hunk.new if sign == "-" else hunk.old
    start = _parting(line, others)
    source, _ = cut(line, start, start + 1, room(style, gutter))
    label = style.paint("blue", str(number).rjust(gutter))
    return f"{label} {style.paint('bad' if sign == '-' else 'good', f'{sign} {source}'.rstrip())}"


def _parting(line: str, others: tuple[str, ...]) -> int:
    """Return where ``line`` parts from the line of ``others`` that begins most like it."""
    longest = 0
    for other in others:
        same = 0
        for one, two in zip(line, other, strict=False):
            if one != two:
                break
            same += 1
        longest = max(longest, same)
    return min(longest, max(len(line) - 1, 0))
