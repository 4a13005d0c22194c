"""What the reports of ``check`` and ``fix`` are made from."""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.documents.base import Document, Position, line_starts, position
from torchpin.named import NamedTuple
from torchpin.rules.model import DISPLAY, ERROR, INFO, SAFE, UNSAFE, WARNING, Because, Finding, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:  # what is kept is shown again without the rules
    from torchpin.rules.ignores import Ignored


class CheckView(NamedTuple):
    """The findings of one run with what a report says beside them."""

    findings: tuple[Finding, ...]
    """Sorted by place; see ``ordered``."""
    files: int
    """Number of documents that were read."""
    catalog_date: str
    """ISO date of the catalog."""
    catalog_digest: str
    unsafe_fixes: bool = False
    """Whether unsafe fixes count as fixable."""
    stale: bool = False
    """Whether the catalog is older than the settings allow."""
    documents: tuple[Document, ...] = ()
    """What was read, to show other places that belong to a finding."""
    baseline: str = ""
    """Path of the baseline that the settings name."""
    ignored: tuple[Ignored, ...] | None = None
    """What comments, settings and the baseline silence, in reading order; None: not asked for."""


class Counts(NamedTuple):
    """How many findings of which severity, and what ``fix`` would mend."""

    errors: int
    warnings: int
    infos: int
    fixable: int
    """Findings that ``fix`` mends with the options of this run."""
    hidden: int
    """Findings that ``fix`` mends only with ``--unsafe-fixes`` (0 if that is given)."""


class Place(NamedTuple):
    """Where a finding is; the end is exclusive; 1-based, columns count characters."""

    line: int
    column: int
    end_line: int
    end_column: int


class Locator:
    """Turn spans into places; the line starts of each document are computed once."""

    def __init__(self) -> None:
        self._starts: dict[int, tuple[Document, list[int]]] = {}

    def starts(self, document: Document) -> list[int]:
        """Return the offsets of the line starts of ``document``."""
        known = self._starts.get(id(document))
        if known is None:
            # The document is kept beside its line starts: its id stays its own.
            known = self._starts[id(document)] = (document, line_starts(document.text))
        return known[1]

    def at(self, document: Document, offset: int) -> Position:
        """Return the position of ``offset`` in ``document``."""
        return position(self.starts(document), offset)

    def place(self, document: Document | None, start: int, end: int) -> Place:
        """Return the place of ``[start, end)``; without a document the first character."""
        if document is None:
            return Place(1, 1, 1, 1)
        starts = self.starts(document)
        first, last = position(starts, start), position(starts, end)
        return Place(first.line, first.column, last.line, last.column)

    def finding(self, finding: Finding) -> Place:
        """Return the place of ``finding``."""
        return self.place(finding.document, finding.span.start, finding.span.end)


MOST_CELLS = 3
"""Cells of a matrix that one line names."""


def cells_text(cells: Sequence[tuple[tuple[str, str], ...]]) -> str:
    """Return cells of a matrix as lines name them: ``python 3.11, cuda cu124``; some of many."""
    shown = ["; ".join(", ".join(map(" ".join, cell)) for cell in cells[:MOST_CELLS])]
    if len(cells) > MOST_CELLS:
        shown.append(f"and {len(cells) - MOST_CELLS} more")
    return " ".join(shown)


def in_matrix(finding: Finding) -> str:
    """Return where in a matrix a finding holds, ``""`` if everywhere: behind its message."""
    return f" (in matrix {cells_text(finding.cells)})" if finding.cells else ""


def with_grounds(finding: Finding) -> tuple[str, tuple[Because, ...]]:
    """Return the message of a finding for programs that show text, and its other grounds.

    Where the message itself is a ground, how it is known stands behind it.
    """
    message = finding.message + in_matrix(finding)
    same = next((one.evidence for one in finding.because if one.text == finding.message), None)
    if same is not None:
        message += f" [{same}]"
    return message, tuple(one for one in finding.because if one.text != finding.message)


def fix_text(fix: Fix) -> str:
    """Return what a fix does, with the command that is to be run afterwards or instead."""
    return f"{fix.message}; then run: {fix.command}" if fix.command else fix.message


def ordered(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return ``findings`` in reading order: by path, place, code."""
    return tuple(
        sorted(findings, key=lambda f: (f.path, f.span.start, f.code, f.group or "", f.message))
    )


def has_edits(finding: Finding, *, unsafe: bool) -> bool:
    """Tell whether ``fix`` mends ``finding``, with unsafe fixes or without."""
    fix = finding.fix
    if fix is None or fix.safety == DISPLAY or not fix.edits:
        return False
    return fix.safety == SAFE or (unsafe and fix.safety == UNSAFE)


def count(findings: tuple[Finding, ...], *, unsafe: bool) -> Counts:
    """Count ``findings``; ``unsafe`` says whether unsafe fixes are asked for."""
    fixable = sum(has_edits(f, unsafe=unsafe) for f in findings)
    return Counts(
        errors=sum(f.severity == ERROR for f in findings),
        warnings=sum(f.severity == WARNING for f in findings),
        infos=sum(f.severity == INFO for f in findings),
        fixable=fixable,
        hidden=sum(has_edits(f, unsafe=True) for f in findings) - fixable,
    )


def plural(number: int, word: str) -> str:
    """Return ``1 error`` or ``3 errors``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
