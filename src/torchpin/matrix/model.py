"""The words of the matrix: rows, cells, what is told of one build."""

from __future__ import annotations

from torchpin.catalog.model import Build
from torchpin.fleet.model import NodeGroup
from torchpin.judge.model import Reason
from torchpin.named import NamedTuple


class Row(NamedTuple):
    """One kind of machine, or several that get the same answers."""

    titles: tuple[str, ...]
    """Names for people: ``Volta sm_70``, or a group of the fleet; several if rows were joined."""
    group: NodeGroup
    """What is judged (of joined rows: the first)."""


class Judged(NamedTuple):
    """One build on one row."""

    build: Build
    status: str
    """A word of ``judge.model.BADNESS``: the worst over the Pythons of the row."""
    reasons: tuple[Reason, ...]
    """Every reason, the existence of the build included where it is inferred only."""
    leaves_out: tuple[str, ...] = ()
    """What was not looked at: see ``judge.model.Verdict``."""

    @property
    def grounds(self) -> tuple[Reason, ...]:
        """The reasons for the verdict: those that are as bad as it."""
        return tuple(reason for reason in self.reasons if reason.status == self.status)


class Cell(NamedTuple):
    """One release on one row."""

    version: str
    builds: tuple[Judged, ...]
    """PyPI's first, then channels by kind and number; those that fail, too."""
    doubt: Reason | None = None
    """Nothing that is known runs, and this is why it is not said that nothing does."""
    maybe: tuple[str, ...] = ()
    """The channels that the doubt is about, if any."""


class Line(NamedTuple):
    """A row with its cells."""

    row: Row
    cells: tuple[Cell, ...]


class Matrix(NamedTuple):
    """The whole table."""

    package: str
    versions: tuple[str, ...]
    """Columns, ascending."""
    lines: tuple[Line, ...]
    date: str
    """Of the catalog, ISO."""
    digest: str
    stale: bool = False
