"""What a rule sees: the ways in, what each selects on each target, and the verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torchpin.catalog.drivers import Drivers
from torchpin.catalog.model import FAMILY, Build
from torchpin.catalog.store import Catalog
from torchpin.documents.base import Document, Span
from torchpin.fleet.model import Fleet, Target
from torchpin.judge.model import FAILS, Reason, Verdict
from torchpin.named import NamedTuple
from torchpin.rules.model import INFO, Because, Finding
from torchpin.select.model import Install, PlacedIndex, SelectedSet, Selection

if TYPE_CHECKING:
    from torchpin.documents.parts import Part
    from torchpin.select.parts import Installed


class Judged(NamedTuple):
    """A selection with what the judges say of it."""

    selection: Selection
    verdict: Verdict | None
    """None where nothing was selected, or the target is not declared."""
    would_be: Build | None = None
    """The build that the pin means, where it cannot be installed for another reason (its glibc,
    its Python): ``verdict`` speaks of its hardware then."""
    beside_torch: tuple[Reason, ...] = ()
    """For companions: does it fit the torch that is selected with it?"""

    @property
    def build(self) -> Build | None:
        """The build that is spoken of: selected, or meant."""
        return self.selection.build or self.would_be

    @property
    def fails(self) -> bool:
        """True if it is proved that the selection does not work on its target."""
        return (
            self.selection.status == "none"
            or (self.verdict is not None and self.verdict.status == FAILS)
            or any(reason.status == FAILS for reason in self.beside_torch)
        )


class JudgedSet(NamedTuple):
    """All that one install selects on one target."""

    chosen: SelectedSet
    judged: tuple[Judged, ...]
    earlier: Judged | None = None
    """The torch of an earlier command that stays, where this one installs none."""

    @property
    def torch(self) -> Judged | None:
        """The torch that is there afterwards, if it is known."""
        return self.of("torch") or self.earlier

    @property
    def target(self) -> Target:
        """The target of the set."""
        return self.chosen.target

    @property
    def serves(self) -> bool:
        """True unless it is proved that the install does not work on the target."""
        return self.chosen.conflict is None and not any(one.fails for one in self.judged)

    def of(self, package: str) -> Judged | None:
        """Return what is selected for ``package``, if anything asks for it here."""
        for one in self.judged:
            if one.selection.package == package:
                return one
        return None

    def place(self, selection: Selection) -> tuple[Document, Span]:
        """Return where to point for a selection: its declaration, or the one that implies it."""
        seen: set[str] = set()
        one: Selection | None = selection
        while one is not None and one.placed is None and one.implied_by not in seen:
            seen.add(one.implied_by or "")
            by = self.of(one.implied_by or "")
            one = by.selection if by else None
        if one is not None and one.placed is not None:
            return one.placed.document, one.placed.declaration.span
        for placed in self.chosen.install.requirements:
            if placed.declaration.name == selection.implied_by:
                return placed.document, placed.declaration.span
        return self.chosen.install.root, Span(0, 0)


class Way(NamedTuple):
    """One way in: a root document, and what it installs on each of its targets."""

    install: Install
    project: str
    """Ways of one project stand in for one another: a folder."""
    sets: tuple[JudgedSet, ...]
    bound: frozenset[str] = frozenset()
    """Groups whose profile names this file: for them it must run."""
    private: tuple[tuple[str, str], ...] = ()
    """Private URLs of the settings, as ``install_of`` takes them."""
    extra_indexes: tuple[str, ...] = ()
    """Index URLs of the group's command line."""
    part: Part | None = None
    """The command or section that installs, where the root is part of a file."""
    before: Mapping[str, Installed] = {}
    """What is installed before the part runs."""

    def tells(self, finding: Finding) -> bool:
        """True if the finding is on a file of this way; of a file of parts, on this part of it."""
        if self.part is not None and finding.path == self.install.root.path:
            return finding.document is self.install.root
        return finding.path in self.paths

    @property
    def has_family(self) -> bool:
        """True if anything of the PyTorch family is installed at all."""
        return any(
            one.selection.package in FAMILY and one.selection.status != "skipped"
            for judged_set in self.sets
            for one in judged_set.judged
        )

    def serves(self, group: str) -> bool:
        """True if the way works on every target of the group (unknown counts as working)."""
        sets = [one for one in self.sets if one.target.group.name == group]
        return bool(sets) and all(one.serves for one in sets)

    @property
    def paths(self) -> frozenset[str]:
        """The files of the way, its lock included."""
        lock = self.install.lock
        return frozenset(
            document.path for document in (*self.install.documents, *((lock,) if lock else ()))
        )

    @property
    def implied_only(self) -> bool:
        """True if no file of the way names torch or its companions: another package brings them."""
        return self.install.lock is None and not any(
            placed.declaration.name in FAMILY for placed in self.install.requirements
        )

    @property
    def optional(self) -> bool:
        """True for the ways of a project: an extra for other hardware may serve nobody here."""
        return self.install.root.kind not in ("requirements", "part")

    @property
    def cpu_only(self) -> bool:
        """True if the file is meant for CPUs: its name and its only channel say ``cpu``.

        A service that reserves a GPU is not.
        """
        return (self.part is None or self.part.gpu is None) and self.takes_cpu

    @property
    def takes_cpu(self) -> bool:
        """True if name and only channel say ``cpu``, meant so or not."""
        import re

        channels = {index.kind.channel for index in self.install.indexes if index.kind.channel}
        name = f"{base_name(self.install.root.path)} {self.install.name or ''}".lower()
        named = re.search(r"(^|[^a-z])cpu([^a-z]|$)", name)
        return channels == {"cpu"} or (named is not None and not channels - {"cpu"})


def base_name(path: str) -> str:
    """Return the last component of a path written with ``/`` or ``\\``."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


class Context:
    """All that rules may ask. What they ask again and again is worked out once."""

    __slots__ = (
        *("_checks", "_projects", "_served"),
        *("catalog", "declared", "documents", "drivers", "fleet", "memo", "ways"),
    )

    def __init__(
        self,
        ways: tuple[Way, ...],
        fleet: Fleet,
        declared: bool,
        catalog: Catalog,
        drivers: Drivers,
        documents: tuple[Document, ...] = (),
    ) -> None:
        self.ways = ways
        self.documents = documents
        """Every document that was read, those that are no way in too (``uv.toml``)."""
        self.fleet = fleet
        self.declared = declared
        """False if no fleet is declared: the targets are neutral, hardware is not judged."""
        self.catalog = catalog
        self.drivers = drivers
        self.memo: dict[object, Any] = {}
        """What a rule has worked out once for all ways, by a key of its own."""
        self._projects: dict[str, list[Way]] | None = None
        self._served: dict[int, frozenset[str]] = {}
        self._checks: dict[int, bool] = {}

    def served_by(self, way: Way) -> frozenset[str]:
        """Return the groups that a way of this context works for."""
        found = self._served.get(id(way))
        if found is None:
            sets = {one.target.group.name: True for one in way.sets}
            sets.update((one.target.group.name, False) for one in way.sets if not one.serves)
            found = frozenset(one.name for one in self.fleet.groups if sets.get(one.name))
            self._served[id(way)] = found
        return found

    def severity(self, way: Way, target: Target, default: str, *, hardware: bool = False) -> str:
        """Return how grave it is that ``way`` does not work on ``target``.

        A file that the profile binds to the group must work. Of several unbound ways of one
        project each must serve some group, and each group must be served by some way; beyond
        that a file for other hardware is only told of.

        Args:
            hardware: the fault is one of hardware; a file that is meant for CPUs may have it
                where the project has other files.
        """
        group = target.group.name
        if not self.declared or group in way.bound:
            return default
        rivals = self.rivals(way)
        if not rivals:
            return default
        served = any(group in self.served_by(other) for other in rivals)
        if served and (way.optional or way.implied_only or self.served_by(way)):
            return INFO
        if hardware and way.cpu_only and target.group.gpus:
            other_kind = any(not other.takes_cpu for other in rivals)
            return INFO if served or other_kind else default
        return default

    def rivals(self, way: Way) -> list[Way]:
        """Return the other ways of the project that install anything of the family.

        An environment that only checks the project (of tox, nox, a hook) stands in for no other
        kind of way.
        """
        if self._projects is None:
            self._projects = {}
            for one in self.ways:
                if one.has_family:
                    self._projects.setdefault(one.project, []).append(one)
        own = (way.install.root.path, way.install.name)
        checks = checks_only(way)
        return [
            other
            for other in self._projects.get(way.project, ())
            if (other.install.root.path, other.install.name) != own
            and not together(way, other)
            and (checks or not self.checks_only(other))
        ]

    def checks_only(self, way: Way) -> bool:
        """Return what ``checks_only`` does of a way of this context, told once."""
        found = self._checks.get(id(way))
        if found is None:
            found = self._checks[id(way)] = checks_only(way)
        return found

    def pairs(self, way: Way) -> Iterator[tuple[JudgedSet, Judged]]:
        """Yield every selection of a way with its set."""
        for judged_set in way.sets:
            for one in judged_set.judged:
                yield judged_set, one


def checks_only(way: Way) -> bool:
    """True if a way is an environment of tox, nox or a hook, wherever that is declared."""
    if way.part is None:
        return False
    from torchpin.documents.kinds import CHECKS, kind_of

    kind = kind_of(way.install.root.path)
    return kind in CHECKS or (kind == "pyproject" and way.part.name.startswith("tox "))


def together(way: Way, other: Way) -> bool:
    """True if two parts of one file install into one environment: neither stands in for the
    other."""
    if way.part is None or other.part is None or way.install.root.path != other.install.root.path:
        return False
    one, two = f"{way.part.environment}/", f"{other.part.environment}/"
    return one.startswith(two) or two.startswith(one)


def because(reason: Reason) -> Because:
    """Return a judge's reason as the ground of a finding."""
    return Because(reason.text, reason.evidence, reason.source)


def index_text(index: PlacedIndex | None) -> str:
    """Return an index as messages name it."""
    if index is None:
        return "no index"
    if index.kind.kind == "pypi":
        return "PyPI"
    if index.kind.channel is not None:
        return f"the {index.kind.channel} index"
    return "the index"
