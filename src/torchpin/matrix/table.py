"""Rows × releases, each cell judged: the matrix of the terminal and of the machine formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.fleet.model import Target
from torchpin.judge.model import FAILS, UNKNOWN
from torchpin.matrix.judged import judged, offered
from torchpin.matrix.model import Cell, Line, Matrix, Row
from torchpin.matrix.rows import join
from torchpin.resolve.space import Space
from torchpin.resolve.upgrade import standing

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog


def matrix(
    rows: Iterable[Row],
    versions: tuple[str, ...],
    catalog: Catalog,
    *,
    package: str = "torch",
    joined: bool = False,
    stale: bool = False,
) -> Matrix:
    """Return the matrix of a package.

    Args:
        rows: what to judge.
        versions: the releases, ascending.
        catalog: where builds come from.
        package: canonical name.
        joined: rows beside each other with the same answers become one.
        stale: whether the catalog is old.
    """
    space = Space(catalog)
    lines = [
        Line(row, tuple(cell(row, package, version, space) for version in versions)) for row in rows
    ]
    if joined:
        answers = [(line.row, tuple(map(answer, line.cells))) for line in lines]
        lines = [lines[at]._replace(row=row) for row, at in join(answers)]
    return Matrix(package, versions, tuple(lines), catalog.date, catalog.digest, stale)


def cell(row: Row, package: str, version: str, space: Space) -> Cell:
    """Return the builds of a release for the row's platform, judged.

    The CPU build of a companion goes with the CPU build of torch, which leaves GPUs idle.
    """
    found = offered(space.catalog.find(package, version=version, platform=row.group.platform))
    if row.group.gpus and package != "torch":
        found = tuple(one for one in found if one.home == "pypi" or one.channel != "cpu")
    told = Cell(version, tuple(judged(build, row.group) for build in found))
    if package != "torch" or any(one.status != FAILS for one in told.builds):
        return told
    return _doubted(told, row, space)


def _doubted(told: Cell, row: Row, space: Space) -> Cell:
    """Return a cell of torch of which nothing runs, with what ``upgrade`` says of it."""
    where = [Target(row.group, python) for python in row.group.pythons or (None,)]
    found = [standing(space, told.version, target) for target in where]
    open_ = [one for one in found if one.status == UNKNOWN]
    if not open_ or any(one.status == FAILS for one in found):
        return told
    return told._replace(doubt=open_[0].reasons[0], maybe=open_[0].maybe)


def answer(one: Cell) -> tuple[tuple[str, str, str], ...]:
    """Return what a reader sees of a cell: places and verdicts of what does not fail."""
    shown = tuple(
        (judged.build.channel, judged.build.home, judged.status)
        for judged in one.builds
        if judged.status != FAILS
    )
    return shown if one.doubt is None else (("", "", UNKNOWN),)
