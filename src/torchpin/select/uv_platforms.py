"""Where a version divides a fork by platform: wheels that other platforms lack.

Two cases only (``fork_version_registry`` of ``uv-resolver``): a declared environment without a
wheel, and a labelled version whose bare twin serves other platforms.
"""

from __future__ import annotations

from torchpin.select.forks import Environment
from torchpin.select.grid import Grid
from torchpin.select.pubgrub import name_of
from torchpin.select.uv_state import State, UnclearError
from torchpin.select.uv_versions import Offered, Table

Parts = list[tuple[Environment, int | None]]
"""What a fork is divided into, and the version that is tried first in each."""
_PLACES = (
    ("linux", "x86_64"),
    ("linux", "aarch64"),
    ("win32", "AMD64"),
    ("win32", "ARM64"),
    ("darwin", "x86_64"),
    ("darwin", "arm64"),
)
"""The platforms of which the catalog knows wheels."""


class Platforms:
    """Tells whether a chosen version can stand for all platforms of a fork."""

    def __init__(self, grid: Grid, required: tuple[int, ...]) -> None:
        self.grid = grid
        self.required = required
        """Environments that must have a wheel: ``environments``, ``required-environments``."""
        self._known = sum(
            grid.system(system) & grid.machine(machine) for system, machine in _PLACES
        )

    def decide(self, state: State, name: str, at: int, possible: int) -> int | Parts:
        """Return the version to take or its bare twin, -1 if it cannot be taken, or the parts into
        which the fork is divided for it.

        Raises:
            UnclearError: a declared environment is of a machine that the catalog does not know.
        """
        table = state.tables[name_of(name)]
        offered = table.versions[at]
        mask = state.environment.mask
        if offered.mask == self.grid.all:
            return at
        for required in self.required:
            if not mask & required or offered.mask & required & mask:
                continue
            if not state.reach.get(table.name, 0) & required:
                continue
            if not mask & required & self._known:
                text = "the catalog knows nothing of wheels for the other machines of"
                raise UnclearError(f"{text} a declared environment")
            side = self._side(offered.mask & mask, required)
            if not mask & side or not mask & ~side:
                state.solver.forbid(name, 1 << at)
                return -1
            inside = state.environment.narrow(side, "a required platform has no wheel")
            outside = state.environment.narrow(self.grid.all ^ side, "the other platforms")
            return [(inside, None), (outside, None)]
        if not offered.local:
            return at
        bare = self._bare(table, offered, possible)
        if bare is None:
            return at
        base = table.versions[bare]
        remainder = base.mask & ~offered.mask
        if not remainder or not remainder & mask:
            return at
        if not mask & offered.mask:
            return bare
        for system in ("darwin", "linux", "win32"):
            cells = self.grid.system(system)
            if not offered.mask & cells and remainder & cells:
                remainder |= cells
        if not mask & ~remainder:
            return at
        words = f"{table.name} {base.version} has wheels and {offered.version} has none"
        with_base = state.environment.narrow(remainder, words)
        rest = state.environment.narrow(
            self.grid.all ^ remainder, f"{table.name} {offered.version}"
        )
        return [(with_base, bare), (rest, at)]

    def _bare(self, table: Table, offered: Offered, possible: int) -> int | None:
        public = offered.version.public
        for at, other in enumerate(table.versions):
            if str(other.version) == public and other.compatible and possible >> at & 1:
                return at
        return None

    def _side(self, covered: int, required: int) -> int:
        """Return the part that uv cuts off for a required environment without wheels.

        It keeps the required environment apart from what the version has wheels for, and says no
        more than that: a system or machine of which neither speaks goes with the first of which
        one does, in alphabetical order (measured with uv 0.13.9).
        """
        grid = self.grid
        parts: dict[str, int | None] = {}
        for system in grid.system_names:
            cells = grid.system(system)
            parts[system] = self._machines(covered & cells, required & cells)
        first = next((part for part in parts.values() if part is not None), 0)
        side = 0
        for system, part in parts.items():
            side |= grid.system(system) & (first if part is None else part)
        return side if side & required == required else required

    def _machines(self, covered: int, required: int) -> int | None:
        """Return the machines that go with the required environment; None if nothing is said."""
        grid = self.grid
        wanted = {
            name: True if required & grid.machine(name) else False if covered & grid.machine(name)
            else None
            for name in grid.machine_names
        }  # fmt: skip
        first = next((value for value in wanted.values() if value is not None), None)
        if first is None:
            return None
        mask = 0
        for name, value in wanted.items():
            if first if value is None else value:
                mask |= grid.machine(name)
        return mask
