"""What a project of uv installs, by the lock that ``uv lock`` would make of it.

``uv lock`` solves for all environments of ``requires-python`` × ``environments`` at once and stops
if any part of them has no solution; ``uv sync`` then takes from the lock what the extras and groups
of the command ask for. So an install is judged by the fork that covers its target.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from torchpin.documents.base import Document
from torchpin.documents.requirement import canonical
from torchpin.evidence import PROOF, PUBLISHED
from torchpin.fleet.model import Target
from torchpin.select.asks import Ask, pin_of, watched
from torchpin.select.facts import Facts
from torchpin.select.forks import Need, UnknownMarkerError
from torchpin.select.misses import Unclear, why_none
from torchpin.select.model import Install, Miss, Placed, SelectedSet, Selection
from torchpin.select.pools import Candidate, fitting, index_text
from torchpin.select.uv_needs import Needs, Refused, Unit, project_of, setting
from torchpin.select.uv_resolution import Resolution, Resolver, Settings, Stopped, UnclearError
from torchpin.select.uv_versions import Offered, Tables

_SOURCE = "https://docs.astral.sh/uv/concepts/resolution/#universal-resolution"


class Missing(NamedTuple):
    """A requirement for which ``uv lock`` stops: no version of its index serves it."""

    package: str
    placed: tuple[Placed, ...]
    """The declarations that ask for it in the fork."""
    miss: Miss


class Locked(NamedTuple):
    """What ``uv lock`` makes of a project."""

    needs: Needs | None
    """None if the project cannot be read at all."""
    resolutions: tuple[Resolution, ...]
    conflict: str | None
    """Why uv stops."""
    unclear: str
    """Why it cannot be known."""
    python: tuple[int, int] = (0, 0)
    environments: int = 0
    """Cells of the supported environments."""
    missing: tuple[Missing, ...] = ()
    """If it stops: the requirements that nothing serves; ``resolutions`` are the other forks."""


_Key = tuple[Document, tuple[Document, ...], tuple[object, ...], Facts, str]
_memory: list[tuple[_Key, Locked]] = []
"""The last few projects, compared by identity: every target and extra asks for the same lock."""


def select_uv_project(install: Install, target: Target, catalog: Facts) -> SelectedSet:
    """Return what ``uv sync`` installs on ``target`` after ``uv lock``, with the install's extras.

    Pure. A project that uv refuses or cannot lock gives a ``conflict`` in one sentence; sources
    from git, URLs and paths, unknown indexes and markers that depend on more than the platform and
    the Python give unknown selections.
    """
    default = ""
    if target.python is not None and not _requires_python(install):
        default = f">={target.python.major}.{target.python.minor}"
    locked = lock_of(install, catalog, default)
    return _Answer(install, target, catalog, locked).selected()


def _requires_python(install: Install) -> bool:
    documents = (install.root, *install.siblings)
    return any(d.project is not None and d.project.requires_python for d in documents)


def lock_of(install: Install, facts: Facts, default_python: str = "") -> Locked:
    """Return what ``uv lock`` makes of the project of an install (remembered).

    ``default_python`` stands in for a missing ``requires-python``, where uv takes the version that
    runs it.
    """
    places = (
        install.private,
        tuple((index.option, index.url, index.kind) for index in install.indexes),
    )
    key: _Key = (install.root, install.siblings, places, facts, default_python)
    for known, locked in _memory:
        same = known[0] is key[0] and known[3] is key[3] and known[4] == key[4]
        if same and known[2] == key[2] and list(map(id, known[1])) == list(map(id, key[1])):
            return locked
    locked = _lock(install, facts, default_python)
    _memory.insert(0, (key, locked))
    del _memory[4:]
    return locked


def _lock(install: Install, facts: Facts, default_python: str) -> Locked:
    root = install.root
    siblings = tuple(d for d in install.siblings if d.project is not None)
    needs: Needs | None = None
    python, supported = (0, 0), 0
    if setting(root, "uv.resolution") == "lowest-direct":
        return Locked(None, (), None, "the project asks for the lowest direct versions")
    if setting(root, "uv.exclude-newer"):
        return Locked(None, (), None, "the project asks for versions of a certain date")
    try:
        needs = Needs(root, siblings, dict(install.private), default_python)
        for unit in needs.units():
            needs.declared(unit)  # uv reads all of the file before it resolves anything
        python = needs.grid.bounds_of(needs.requires_python) if needs.requires_python else (
            0, len(needs.grid.points)
        )  # fmt: skip
        own = project_of(root)
        environments = tuple((needs.grid.mask(text), text) for text in own.environments)
        for (one, text), (other, text2) in pairwise(environments):
            if one & other:
                raise Refused(f"two environments overlap: {text} and {text2}")
        inside = needs.grid.pythons(*python)
        for mask, text in environments:
            if not mask & inside:
                raise Refused(f"requires-python excludes the environment {text}")
            supported |= mask
        resolver = Resolver(
            needs,
            Tables(install, facts, needs.grid, python, setting(root, "uv.index-strategy")),
            facts,
            Settings(
                setting(root, "uv.fork-strategy") != "fewest",
                setting(root, "uv.resolution") == "lowest",
            ),
            python,
            environments,
            tuple(needs.grid.mask(text) for text in own.required_environments),
        )
        resolver.pinned = _pinned(needs)
        resolutions = resolver.solve()
    except Refused as refused:
        return Locked(None, (), str(refused), "", python, supported)
    except Stopped as stopped:
        doubt, missing = _doubt(stopped, install, facts)
        if doubt:
            return Locked(needs, (), None, doubt, python, supported)
        supported = supported or (needs.grid.all if needs is not None else 0)
        return Locked(needs, stopped.solved, stopped.reason, "", python, supported, missing)
    except UnclearError as unclear:
        return Locked(needs, (), None, str(unclear), python, supported)
    except UnknownMarkerError as unknown:
        text = f"it cannot be known where '{unknown}' holds"
        return Locked(None, (), None, text, python, supported)
    return Locked(needs, tuple(resolutions), None, "", python, supported or needs.grid.all)


def _pinned(needs: Needs) -> dict[str, SpecifierSet]:
    """Return exact pins of the project: they admit yanked versions."""
    found: dict[str, SpecifierSet] = {}
    for unit in needs.units():
        for need in needs.declared(unit):
            for one in needs.overrides.get(need.name, [need]):
                try:
                    parsed = SpecifierSet(one.specifier)
                except ValueError:
                    continue
                if pin_of(parsed) is not None:
                    found[need.name] = parsed
    return found


def _doubt(stopped: Stopped, install: Install, facts: Facts) -> tuple[str, tuple[Missing, ...]]:
    """Return why it cannot be known that there is no solution; ``""`` if it can, and what is
    missing.

    Whatever is missing must be proved to be missing, not only unknown to the catalog.
    """
    state = stopped.state
    if state is None:
        return "", ()
    target = None
    missing: list[Missing] = []
    for name in sorted(stopped.packages):
        table = state.tables.get(name)
        if table is None:
            continue
        specifier = SpecifierSet(",".join(n.specifier for n in state.needs.get(name, ()) if n))
        inside = table.bits(str(specifier))
        if any(inside >> at & 1 and o.compatible for at, o in enumerate(table.versions)):
            if any(
                o.first.requires is None
                for at, o in enumerate(table.versions)
                if inside >> at & 1 and name != "torch"
            ):
                return f"what {name} requires of torch is not known", ()
            continue
        ask = Ask(
            name, None, None, specifier, f"{name}{specifier}", pin_of(specifier), frozenset(), None
        )
        if target is None:
            from torchpin.fleet.model import NodeGroup

            target = Target(NodeGroup("any", (), (), "linux-x86_64"), None)
        reason = why_none(ask, table.pool, install, target, facts)
        if isinstance(reason, Unclear):
            return str(reason), ()
        if reason.evidence not in PROOF:
            return reason.message, ()
        asking = tuple(n.placed for n in state.needs.get(name, ()) if n and n.placed is not None)
        where = state.environment.text
        told = f"uv lock stops{f' {where}' if where else ''}: {reason.message}"
        missing.append(Missing(name, asking, reason._replace(message=told)))
    return "", tuple(missing)


class _Answer:
    """The selections of one install on one target, taken from the lock."""

    def __init__(self, install: Install, target: Target, facts: Facts, locked: Locked) -> None:
        self.install = install
        self.target = target
        self.facts = facts
        self.locked = locked
        self.active = self._units()

    def _units(self) -> list[Unit]:
        project = project_of(self.install.root)
        name = canonical(project.name)
        extras = [(name, "extra", canonical(extra)) for extra in self.install.extras]
        groups = [(name, "group", canonical(group)) for group in self.install.groups]
        return [(name, "", ""), *extras, *groups]

    def selected(self) -> SelectedSet:
        """Return the selections, in the order of declaration, an implied torch last."""
        locked, needs = self.locked, self.locked.needs
        if needs is None:
            told = locked.unclear or f"uv stops: {locked.conflict}"
            return self._all("unknown", told)._replace(conflict=locked.conflict)
        cells = needs.grid.target(self.target)
        declared = self._declared(needs, cells)
        if locked.conflict is not None:
            return self._stopped(needs, declared, cells)
        if locked.unclear:
            return self._many(declared, "unknown", locked.unclear)
        clash = self._clash(needs)
        if clash is not None:
            empty = tuple(
                self._plain(name, found, "unknown", f"uv stops: {clash}")
                for name, found in declared.items()
            )
            return SelectedSet(self.install, self.target, empty, clash)
        outside = self._outside(needs, cells)
        if outside is not None:
            return self._many(declared, "none", outside.message, outside)
        # A target without a Python covers those of requires-python.
        cells &= needs.grid.pythons(*locked.python)
        found = [r for r in locked.resolutions if self._covers(r, cells)]
        if not found:
            return self._many(declared, "unknown", "no fork of the lock covers the target")
        return self._from(found, declared, cells)

    def _stopped(self, needs: Needs, declared: dict[str, list[Need]], cells: int) -> SelectedSet:
        """Return what is missing, and what the forks that have a solution would hold."""
        locked = self.locked
        told = f"uv stops: {locked.conflict}"
        found = [
            r
            for r in locked.resolutions
            if self._covers(r, cells & needs.grid.pythons(*locked.python))
        ]
        if found and self._outside(needs, cells) is None and self._clash(needs) is None:
            selections = self._from(found, declared, cells).selections
        else:
            selections = tuple(
                self._plain(name, asked, "unknown", told) for name, asked in declared.items()
            )
        missing = {
            one.package: one.miss
            for one in locked.missing
            if any(need.placed in one.placed for need in declared.get(one.package, ()))
        }
        selections = tuple(
            self._plain(one.package, declared[one.package], "none", miss.message, miss)
            if (miss := missing.get(one.package)) is not None
            else one
            for one in selections
        )
        return SelectedSet(self.install, self.target, selections, locked.conflict)

    def _covers(self, resolution: Resolution, cells: int) -> bool:
        environment, active = resolution.environment, set(self.active)
        return (
            bool(environment.mask & cells)
            and environment.include <= active
            and not environment.exclude & active
        )

    def _declared(self, needs: Needs, cells: int) -> dict[str, list[Need]]:
        """Return the watched requirements of the active parts, those that do not apply too."""
        found: dict[str, list[Need]] = {}
        for unit in self.active:
            for need in needs.declared(unit):
                for one in needs.overrides.get(need.name, [need]):
                    if watched(one.name, self.facts):
                        found.setdefault(one.name, []).append(
                            one._replace(placed=need.placed or one.placed)
                        )
        return {
            name: [need for need in all_ if need.mask & cells] or [all_[0]._replace(mask=0)]
            for name, all_ in found.items()
        }

    def _outside(self, needs: Needs, cells: int) -> Miss | None:
        locked, target = self.locked, self.target
        if not cells & needs.grid.pythons(*locked.python):
            text = (
                f"the project requires Python {needs.requires_python}, and {target.text} is outside"
            )
            return Miss("python", text, PUBLISHED, _SOURCE)
        if not cells & locked.environments:
            text = f"{target.text} is outside the environments that the project declares"
            return Miss("platform", text, PUBLISHED, _SOURCE)
        return None

    def _clash(self, needs: Needs) -> str | None:
        for members in needs.conflicts:
            both = sorted(set(members) & set(self.active))
            if len(both) > 1:
                names = " and ".join(f"{kind} {name}" for _, kind, name in both)
                return f"{names} are declared to conflict"
        return None

    # -- selections

    def _from(
        self, found: list[Resolution], declared: dict[str, list[Need]], cells: int
    ) -> SelectedSet:
        out: list[Selection] = []
        names = [name for name, needs in declared.items()]
        wanted = {name for name, needs in declared.items() if needs[0].mask}
        implied: dict[str, str] = {}
        for name in list(wanted):
            for resolution in found:
                offered = resolution.chosen.get(name)
                if offered is not None and name != "torch" and offered.first.requires != "":
                    known = offered.first.requires is not None
                    known = known or "torch" in resolution.chosen
                    if known and "torch" not in wanted and self._reaches(cells):
                        implied.setdefault("torch", name)
        for name in [*(n for n in names if n not in implied), *implied]:
            if name not in wanted and name not in implied:
                text = f"no declaration of {name} applies to {self.target.text}"
                out.append(self._plain(name, declared[name], "skipped", text))
                continue
            by = implied.get(name)
            out.append(self._one(name, declared.get(name, []) if by is None else [], by, found))
        return SelectedSet(self.install, self.target, tuple(out))

    def _reaches(self, cells: int) -> bool:
        """Return whether a torch that another package needs is installed: overrides may end it."""
        needs = self.locked.needs
        overrides = None if needs is None else needs.overrides.get("torch")
        return overrides is None or any(need.mask & cells for need in overrides)

    def _one(
        self, name: str, needs: list[Need], by: str | None, found: list[Resolution]
    ) -> Selection:
        offered = [o for r in found if (o := r.chosen.get(name)) is not None]
        if not offered:
            return self._plain(name, needs, "unknown", f"the lock holds no {name} here", by=by)
        if len({(o.version, o.first.place.url) for o in offered}) > 1 or len(offered) < len(found):
            text = "the lock holds several builds, and the Python of the target decides"
            return self._plain(name, needs, "unknown", text, by=by)
        choice = offered[0]
        fits = fitting(list(choice.candidates), self.target)
        if not fits:
            return self._missing(name, needs, by, choice, found[0])
        return self._pick(name, needs, by, choice, fits[0])

    def _pick(
        self, name: str, needs: list[Need], by: str | None, choice: Offered, candidate: Candidate
    ) -> Selection:
        place = index_text(candidate.place)
        text = f"uv locks {name} {choice.version} from {place} for {self.target.text}"
        return Selection(
            package=name,
            placed=needs[0].placed if needs else None,
            implied_by=by,
            target=self.target,
            status="selected",
            build=candidate.build,
            chosen_from=candidate.place,
            miss=None,
            because=text,
            exact=_exact(needs),
            inferred=candidate.inferred,
        )

    def _missing(
        self,
        name: str,
        needs: list[Need],
        by: str | None,
        choice: Offered,
        resolution: Resolution,
    ) -> Selection:
        """The locked version has no wheel for the target: uv finds out when it installs."""
        version = choice.version
        table = resolution.tables[name]
        pinned = SpecifierSet(f"=={version}")
        ask = Ask(
            name,
            needs[0].placed if needs else None,
            by,
            pinned,
            f"{name}=={version}",
            (version.public, version.local or ""),
            frozenset(),
            None,
        )
        pool = table.pool._replace(candidates=choice.candidates)
        reason = why_none(ask, pool, self.install, self.target, self.facts)
        told = f"uv locks {name} {version} for {self.target.text}, and "
        if isinstance(reason, Unclear):
            return self._plain(name, needs, "unknown", told + str(reason), by=by)
        miss = reason._replace(message=told + reason.message)
        return self._plain(name, needs, "none", miss.message, miss, by)

    def _plain(
        self,
        name: str,
        needs: list[Need],
        status: str,
        because: str,
        miss: Miss | None = None,
        by: str | None = None,
    ) -> Selection:
        return Selection(
            package=name,
            placed=needs[0].placed if needs else None,
            implied_by=by,
            target=self.target,
            status=status,
            build=None,
            chosen_from=None,
            miss=miss,
            because=because,
            exact=_exact(needs),
        )

    def _many(
        self, declared: dict[str, list[Need]], status: str, because: str, miss: Miss | None = None
    ) -> SelectedSet:
        selections = tuple(
            self._plain(name, needs, status, because, miss)
            if needs[0].mask or status == "none"
            else self._plain(
                name, needs, "skipped", f"no declaration of {name} applies to {self.target.text}"
            )
            for name, needs in declared.items()
        )
        return SelectedSet(self.install, self.target, selections)

    def _all(self, status: str, because: str) -> SelectedSet:
        """Return one selection a watched declaration, where nothing more can be said."""
        out: dict[str, Selection] = {}
        for placed in self.install.requirements:
            name = placed.declaration.name
            if watched(name, self.facts) and name not in out:
                need = Need(name, 1, "", placed.declaration.specifier, None, placed)
                out[name] = self._plain(name, [need], status, because)
        return SelectedSet(self.install, self.target, tuple(out.values()))


def _exact(needs: list[Need]) -> bool:
    for need in needs:
        try:
            if pin_of(SpecifierSet(need.specifier)) is not None:
                return True
        except ValueError:
            continue
    return False
