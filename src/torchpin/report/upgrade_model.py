"""What the reports of ``upgrade`` are made from."""

from __future__ import annotations

from torchpin.catalog.model import Build
from torchpin.named import NamedTuple
from torchpin.resolve.model import Plan
from torchpin.resolve.upgrade import Goal, Reach, Standing
from torchpin.rules.model import Because

SAFE = "safe"
"""Nothing breaks: only the pins of the family move."""
CHANGES = "changes"
"""Something breaks that a change of the files mends."""
LIMITED = "limited"
"""Nothing else breaks, but on some group less works than today."""
BLOCKED = "blocked"
"""On some group the release cannot be had."""
NOT_KNOWN = "unknown"
"""It is not known, for some group or for all."""


class Break(NamedTuple):
    """One thing that an upgrade breaks."""

    kind: str
    """``python`` · ``gpu`` · ``driver`` · ``platform`` · ``channel`` · ``companion`` · ``pin``
    (a package that asks for another torch) · ``limit`` (less works than today) · ``source``."""
    text: str
    groups: tuple[str, ...] = ()
    """Node groups; empty where it concerns the files whatever the fleet."""
    pythons: tuple[str, ...] = ()
    path: str | None = None
    line: int | None = None
    package: str | None = None
    remedy: str = ""
    """What to change in the files; ``""`` if no change of them helps."""
    blocking: bool = False
    """The groups cannot have the release."""
    because: tuple[Because, ...] = ()
    code: str | None = None
    """The rule that says so, for Python code."""


class Move(NamedTuple):
    """A package whose version goes with torch."""

    package: str
    path: str
    line: int
    before: str
    """As the file says it: ``==2.14.1``, ``<2.15``; ``""`` where it says nothing."""
    after: tuple[str, ...]
    """Full versions, one for each plan."""


class Unit(NamedTuple):
    """One file, or command in a file, or project, and what it becomes."""

    path: str
    name: str | None
    """The extra, group or command, where the file has several."""
    client: str
    groups: tuple[str, ...]
    plans: tuple[Plan, ...]
    moves: tuple[Move, ...]
    advice: str = ""
    """What to do where no edit is made; ``""`` if there is one, or if there is nothing to do."""
    command: str | None = None
    """What to run afterwards."""


class Diff(NamedTuple):
    """What an edit would change in a file."""

    path: str
    before: str
    after: str


class Row(NamedTuple):
    """One target: what it has today, what the release is there, and how far it can go."""

    standing: Standing
    today: Build | None
    """The build that the first of its files gives."""
    reach: Reach | None
    """None where nothing of the hardware is declared."""
    others: tuple[Build, ...] = ()
    """What else its files give today."""
    open_index: str | None = None
    """The channel that its files name, if it is not known whether that holds the release."""


class Upgrade(NamedTuple):
    """The answer of ``upgrade``."""

    goal: Goal
    verdict: str
    """``safe``, ``changes``, ``limited``, ``blocked`` or ``unknown``."""
    rows: tuple[Row, ...]
    """Empty if no fleet is declared."""
    breaks: tuple[Break, ...]
    units: tuple[Unit, ...]
    diffs: tuple[Diff, ...]
    last_for_all: str | None
    """The newest release that runs on every target, each with a build of its own."""
    one_set: Plan | None
    """The newest set that serves all targets together."""
    facts: tuple[Because, ...]
    """What there is to know of the release where no fleet is declared."""
    doubts: tuple[Because, ...]
    """What is not known."""
    declared: bool
    asked_for: bool
    """Something that was read asks for torch."""
    open_files: tuple[str, ...] = ()
    """Files whose index may hold the release: that is not known."""
    stale: bool = False
    """The catalog is older than the settings allow."""
    notes: tuple[str, ...] = ()
    """What to know of the run: of the catalog, of files that cannot be read."""

    @property
    def blocked(self) -> tuple[str, ...]:
        """The groups that cannot have the release, whatever the files say."""
        return tuple(
            dict.fromkeys(name for one in self.breaks if one.blocking for name in one.groups)
        )

    @property
    def unknown(self) -> tuple[str, ...]:
        """The groups of which it is not known."""
        names = (row.standing.target.group.name for row in self.rows if not row.standing.proved)
        return tuple(name for name in dict.fromkeys(names) if name not in self.blocked)

    @property
    def limited(self) -> tuple[str, ...]:
        """The groups on which less works than today."""
        return tuple(
            dict.fromkeys(n for one in self.breaks if one.kind == "limit" for n in one.groups)
        )

    @property
    def changes(self) -> tuple[Break, ...]:
        """What breaks and can be mended in the files."""
        return tuple(one for one in self.breaks if one.remedy and not one.blocking)
