"""What the simulation of ``uv lock`` passes on: forks on their way, solved forks, why it stops."""

from __future__ import annotations

from collections.abc import Mapping

from torchpin.named import NamedTuple
from torchpin.select.forks import Environment, Need
from torchpin.select.model import PlacedIndex
from torchpin.select.pubgrub import Solver
from torchpin.select.uv_lowering import Unit
from torchpin.select.uv_versions import Offered, Table


class Stopped(Exception):  # noqa: N818 - uv stops, torchpin does not
    """uv stops with an error, of which ``reason`` is one sentence.

    ``state`` is the fork that has no solution; None if the requirements themselves are refused.
    """

    def __init__(self, reason: str, state: State | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.state = state
        self.packages: frozenset[str] = frozenset()
        self.solved: tuple[Resolution, ...] = ()
        """The forks that have a solution, as if uv went on."""


class UnclearError(Exception):
    """It cannot be known what uv does; the argument says why."""


class Preference(NamedTuple):
    """What an earlier fork, or the lock, chose."""

    mask: int
    offered: Offered
    place: PlacedIndex


class Resolution(NamedTuple):
    """One solved fork."""

    environment: Environment
    chosen: Mapping[str, Offered]
    tables: Mapping[str, Table]
    needs: Mapping[str, tuple[Need, ...]]
    """The requirements of the project on each package in this fork."""


class State:
    """One fork on its way (uv's ``ForkState``)."""

    def __init__(self, environment: Environment, python: tuple[int, int]) -> None:
        self.environment = environment
        self.python = python
        self.units: list[Unit] = []
        self.solver = Solver()
        self.tables: dict[str, Table] = {}
        self.needs: dict[str, tuple[Need, ...]] = {}
        self.reach: dict[str, int] = {}
        self.initial: tuple[str, int | None] | None = None

    def moved(self, environment: Environment, python: tuple[int, int]) -> State:
        """Return an independent copy in a narrower environment."""
        other = State(environment, python)
        other.units = self.units.copy()
        other.solver = self.solver.clone()
        other.tables = self.tables.copy()
        other.needs = self.needs.copy()
        other.reach = self.reach.copy()
        return other
