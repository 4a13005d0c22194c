"""Which cells of a matrix a finding concerns, in as few words as tell them from the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchpin.documents.base import line_starts, position
from torchpin.rules.context import Way
from torchpin.rules.model import Finding, Related

if TYPE_CHECKING:
    from torchpin.documents.parts import Part

Cell = tuple[tuple[str, str], ...]


def told_apart(findings: Sequence[Finding], ways: Sequence[Way]) -> tuple[Finding, ...]:
    """Return the findings with their cells told by the names that matter; none if all are meant.

    One in a list that a command of a matrix installs names the command, too.
    """
    inside = [(way, way.part) for way in ways if way.part is not None and way.part.cell]
    parts = [part for _, part in inside]
    out: list[Finding] = []
    for finding in findings:
        if finding.cells:
            mine = [
                part
                for way, part in inside
                if part.cell in finding.cells and finding.path in way.paths
                if part.document.path != finding.path
                or (part.span.start <= finding.span.start and finding.span.end <= part.span.end)
            ]
            places = {(part.document.path, part.span) for part in mine}
            every = {part.cell for part in parts if (part.document.path, part.span) in places}
            cells = fewest(finding.cells, every, finding.message)
            finding = finding._replace(
                cells=cells,
                related=(*finding.related, *installed_at(finding, mine)[: len(cells)]),
            )
        out.append(finding)
    return tuple(out)


def installed_at(finding: Finding, parts: Sequence[Part]) -> tuple[Related, ...]:
    """Return the first command of a matrix that installs the list in which a finding is."""
    for part in parts:
        document = part.document
        if document.path != finding.path:
            line = position(line_starts(document.text), part.span.start).line
            return (Related(document.path, line, "installed here"),)
    return ()


def fewest(cells: Sequence[Cell], every: set[Cell], message: str = "") -> tuple[Cell, ...]:
    """Return cells without the names that do not tell them from the rest of ``every``.

    Names whose values the message holds are kept rather than others.

    >>> fewest([(("py", "3.11"), ("cuda", "a")), (("py", "3.12"), ("cuda", "a"))],
    ...        {(("py", p), ("cuda", c)) for p in ("3.11", "3.12") for c in "ab"})
    ((('cuda', 'a'),),)
    """
    meant = set(cells)
    if every and every <= meant:
        return ()
    rest = every - meant
    names = list(dict.fromkeys(name for cell in cells for name, _ in cell))
    words = message.replace(":", " ").replace("+", " ").split()
    names.sort(key=lambda name: any(one[0] == name and one[1] in words for c in cells for one in c))
    kept = list(dict.fromkeys(name for cell in cells for name, _ in cell))
    for name in names:
        fewer = [one for one in kept if one != name]
        shown = {_only(cell, fewer) for cell in meant}
        if fewer and not any(_only(cell, fewer) in shown for cell in rest):
            kept = fewer
    return tuple(dict.fromkeys(_only(cell, kept) for cell in cells))


def _only(cell: Cell, names: Sequence[str]) -> Cell:
    return tuple(one for one in cell if one[0] in names)
