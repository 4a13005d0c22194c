"""What a project of uv installs, by the lock that ``uv lock`` would make of it.

``uv sync`` takes from the lock what the extras and groups of the command ask for, so an install is
judged by the fork that covers its target.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchpin.documents.requirement import canonical
from torchpin.evidence import PUBLISHED
from torchpin.fleet.model import Target
from torchpin.select.asks import Ask, pin_of, watched
from torchpin.select.facts import Facts
from torchpin.select.forks import Environment, Need
from torchpin.select.grid import UnknownMarkerError
from torchpin.select.misses import Unclear, why_none
from torchpin.select.model import Install, Miss, SelectedSet, Selection
from torchpin.select.pools import Candidate, fitting, index_text
from torchpin.select.uv_demands import demanded, required
from torchpin.select.uv_lowering import Unit, project_of
from torchpin.select.uv_needs import Needs
from torchpin.select.uv_prediction import Locked, lock_of
from torchpin.select.uv_state import Resolution
from torchpin.select.uv_versions import Offered

_SOURCE = "https://docs.astral.sh/uv/concepts/resolution/#universal-resolution"


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


class _Answer:
    """The selections of one install on one target, taken from the lock."""

    def __init__(self, install: Install, target: Target, facts: Facts, locked: Locked) -> None:
        self.install = install
        self.target = target
        self.facts = facts
        self.locked = locked
        self.active = self._units()
        self.partial = ""
        if locked.needs is not None:
            try:
                cells = locked.needs.grid.target(target)
                self.active = locked.needs.enabled(self.active, cells)
            except UnknownMarkerError as marker:
                self.partial = f"it is not known whether the marker '{marker}' holds"

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
        if locked.unclear or self.partial:
            return self._many(declared, "unknown", locked.unclear or self.partial)
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
                if not {*need.via} <= {*self.active}:
                    continue
                for one in needs.overrides.get(need.name, [need]):
                    excluded = one.name in needs.settings.excluded
                    one = one._replace(mask=0 if excluded else one.mask & need.within)
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
        for name, kind, part in self.active:
            if kind != "group" or not needs.settings.group_pythons:
                continue
            project = next(
                p for d in needs.documents if canonical((p := project_of(d)).name) == name
            )
            if not cells & needs.group_pythons(project, part):
                text = f"the group {part} requires another Python than {target.text}"
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
        for resolution in found:
            for bringer in () if "torch" in wanted else self._bringers(resolution, wanted, cells):
                implied.setdefault("torch", bringer)
        for name in [*(n for n in names if n not in implied), *implied]:
            if name not in wanted and name not in implied:
                text = f"no declaration of {name} applies to {self.target.text}"
                out.append(self._plain(name, declared[name], "skipped", text))
                continue
            here = 0
            for need in declared.get(name, ()):
                here |= need.mask
            if name not in implied and self.target.python is not None and cells & ~here:
                text = f"the patch release of Python decides whether {name} is asked for"
                out.append(self._plain(name, declared[name], "unknown", text))
                continue
            by = implied.get(name)
            out.append(self._one(name, declared.get(name, []) if by is None else [], by, found))
        return SelectedSet(self.install, self.target, tuple(out))

    def _bringers(self, resolution: Resolution, wanted: set[str], cells: int) -> Iterator[str]:
        """Yield the packages that bring a torch which nothing declares."""
        needs = self.locked.needs
        if needs is None or "torch" not in resolution.chosen:
            return
        for name in (name for name in resolution.chosen if name in wanted):
            offered = resolution.chosen[name]
            if self._brings(required(needs, offered), (name, offered.version), cells):
                yield name
        for unit in self.active:
            for need in needs.declared(unit):
                if need.mask & cells and not watched(need.name, self.facts):
                    texts = demanded(needs, self.facts, need)
                    if texts and self._brings(needs.parsed(texts), (need.name, None), cells):
                        yield need.name

    def _brings(
        self, requirements: list[Need], parent: tuple[str, Version | None], cells: int
    ) -> bool:
        needs = self.locked.needs
        assert needs is not None
        python = self.locked.python
        applied = needs.applied(requirements, Environment(cells), python, parent)
        return any(one.name == "torch" for one in applied)

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
