"""What a project of Poetry installs, by the lock that ``poetry lock`` would make of it.

Measured with Poetry 2.5.1: a package comes from the source that it names, else from all primary
sources together (the highest version wins, a label sorts above none, the first source wins a tie),
from the supplemental ones only where no primary one has what is asked for. All groups and extras
are locked together, but for what is for no Python of the project. Where there are several
declarations of a package, their markers divide the lock into forks, each with a version of its own,
unless all ask for the same and no place is left without; a fork that cannot be solved stops the
lock, and so do two sources for one place. Else there is one version of a package, and a marker only
says where it is installed; in a fork where it holds nowhere, nothing is asked for
(``Provider.complete_package``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations

from packaging.version import Version

from torchpin.documents.base import Declaration
from torchpin.documents.project import Source
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.select.asks import Ask, combine, name_of
from torchpin.select.environments import marker_holds
from torchpin.select.facts import Facts
from torchpin.select.joint import Accepts, Choice
from torchpin.select.model import Install, Placed, SelectedSet
from torchpin.select.poetry_metadata import as_told
from torchpin.select.poetry_search import choose
from torchpin.select.pools import Candidate, Pool
from torchpin.select.whole_lock import Solved, WholeLock, evaluate, named

_PRIMARY = ("primary", "default")
_SUPPLEMENTAL = ("supplemental", "secondary")
_PLATFORMS = ("linux-x86_64", "linux-aarch64", "macos-arm64", "macos-x86_64", "windows-x86_64")
_EXTRAS = 4
"""Forks of up to so many extras are looked through."""

_ATOM = regex(
    r"""(?:[a-z_]+|"[^"]*"|'[^']*')\s*(?:not\s+in|in|[<>=!~]+)\s*(?:[a-z_]+|"[^"]*"|'[^']*')"""
)
_holds = lru_cache(4096)(evaluate)
Place = tuple[str, str, frozenset[str]]
"""Platform, Python and extras."""


class Variant(NamedTuple):
    """Declarations of a package with one constraint and one source."""

    placed: tuple[Placed, ...]
    source: str | None
    markers: tuple[str | None, ...]
    """One of them holds."""
    extras: tuple[str, ...]
    """Of each marker the extra whose declaration it is, ``""`` for none."""

    @property
    def text(self) -> str:
        """What it asks for."""
        one = self.placed[0].declaration
        return one.specifier + (one.url or "")

    def active(self, platform: str, python: str, extras: frozenset[str]) -> bool:
        """Return whether it is asked for in an environment."""
        return any(
            (not extra or extra in extras)
            and (marker is None or _holds(marker, platform, python, extras) is not False)
            for marker, extra in zip(self.markers, self.extras, strict=True)
        )


class Fork(NamedTuple):
    """A part of the lock that is solved for itself."""

    places: list[Place]
    held: dict[str, list[Variant]]
    """What the packages ask for that divided the lock, by name; none: it is not divided."""


def select_poetry_project(install: Install, target: Target, catalog: Facts) -> SelectedSet:
    """Return what ``poetry install`` installs on ``target`` after ``poetry lock``."""
    return _PoetryLock(install, target, catalog).selected()


class _PoetryLock(WholeLock):
    tool = "poetry"

    def __init__(self, install: Install, target: Target, facts: Facts) -> None:
        super().__init__(install, target, facts)
        self.minors: set[tuple[int, int]] = set()
        """Of the fork that is being solved; empty: all of the project's."""
        self.variants = {
            name: some
            for name, placed in named(self.whole()).items()
            if (some := self._variants(placed))
        }
        python = target.python
        self.python = f"{python.major}.{python.minor}.99" if python is not None else "3.12.99"
        self.extras = frozenset(install.extras)

    # -- declarations

    def _variants(self, placed: Sequence[Placed]) -> list[Variant]:
        found: dict[tuple[str, str | None, str], Variant] = {}
        for one in placed:
            extra = one.declaration.scope.partition("extra:")[2]
            for source, declaration in self._routed(one.declaration):
                marker = declaration.marker
                if not self._for_some_python(marker):
                    continue
                key = (declaration.specifier, source, declaration.url or "")
                have = found.get(key, Variant((), source, (), ()))
                found[key] = Variant(
                    (*have.placed, one._replace(declaration=declaration)),
                    source,
                    (*have.markers, marker),
                    (*have.extras, extra),
                )
        return list(found.values())

    def _routed(self, one: Declaration) -> Iterator[tuple[str | None, Declaration]]:
        """Yield source and declaration: its own, or as entries of Poetry's tables enrich it.

        What ``[project]`` asks for becomes one requirement for each entry whose marker can hold
        together with its own.
        """
        group = one.scope.partition("group:")[2] or None
        own = [source for source in self.project.sources if _inside(source, one)]
        entries = [e for e in self.project.enriched if e.package == one.name and e.group == group]
        text, start = self.install.root.text, one.span.start
        if own or start == 0 or text[start - 1] not in "\"'":
            yield own[0].value if own else None, one
            return
        possible = [e for e in entries if self._possible(_both(one.marker, e.marker))]
        for entry in possible:
            both = ",".join(part for part in (one.specifier, entry.specifier) if part)
            marker = _both(one.marker, entry.marker)
            if entry.understood:
                yield entry.source, one._replace(specifier=both, marker=marker)
            else:
                yield entry.source, one._replace(specifier="", marker=marker, valid=False)
        if not possible:
            yield None, one

    def _possible(self, marker: str | None) -> bool:
        """Return whether a marker can hold anywhere; one of extras counts as one that can."""
        if marker is None or "extra" in marker:
            return True
        pythons = [f"{Version(text).major}.{Version(text).minor}.99" for text in self.pythons()]
        nobody = frozenset[str]()
        return any(
            _holds(marker, platform, python, nobody) is not False
            for platform in _PLATFORMS
            for python in pythons
        )

    def _for_some_python(self, marker: str | None) -> bool:
        """Return whether a marker leaves a Python of the project, whatever else it asks."""
        if marker is None or "python" not in marker:
            return True
        pythons = _ATOM.sub(_python_alone, marker)
        nobody = frozenset[str]()
        return any(
            _holds(pythons, _PLATFORMS[0], python, nobody) is not False for python in self.pythons()
        )

    # -- forks

    def _places(self, variants: Sequence[Variant]) -> list[Place]:
        """Return the places that markers and extras of declarations can tell apart."""
        names = tuple(self.project.extras)
        sets = [frozenset[str]()]
        if len(names) <= _EXTRAS:
            sizes = range(1, len(names) + 1)
            sets += [frozenset(some) for size in sizes for some in combinations(names, size)]
        if not any(any(one.extras) or "extra" in str(one.markers) for one in variants):
            sets = sets[:1]
        else:
            sets = list(dict.fromkeys((*sets, self.extras)))
        platforms = dict.fromkeys((*_PLATFORMS, self.target.group.platform))
        return [
            (platform, python, extras)
            for python in self.pythons()
            for platform in platforms
            for extras in sets
        ]

    def forks(self) -> list[Fork]:
        """Return the parts of the lock."""
        return self._split(self._places([v for some in self.variants.values() for v in some]), {})

    def _split(self, places: list[Place], held: dict[str, list[Variant]]) -> list[Fork]:
        """Divide places by the first package that has several declarations for them, and each part
        by the next one. What is for none of the places does not count."""
        for name, some in self.variants.items():
            markers = [marker for variant in some for marker in variant.markers]
            if name in held or sum(_meets(marker, places) for marker in markers) < 2:
                continue
            parts: dict[object, tuple[list[Place], list[Variant]]] = {}
            for place in places:
                active = [variant for variant in some if variant.active(*place)]
                key = (
                    bool(active),
                    frozenset(one.text for one in active) - {""},
                    frozenset(one.source for one in active) - {None},
                )
                parts.setdefault(key, ([], active))[0].append(place)
            if len(parts) > 1:
                return [
                    fork
                    for part, active in parts.values()
                    for fork in self._split(part, {**held, name: active})
                ]
        return [Fork(places, held)]

    def _of(self, forks: list[Fork], extras: frozenset[str]) -> Fork:
        """Return the fork of the target with some extras, or one that is like it where the project
        is not for it."""

        def like(fork: Fork) -> tuple[int, ...]:
            return max(
                (
                    (
                        platform == self.target.group.platform,
                        python == self.python,
                        chosen == extras,
                    )
                    for platform, python, chosen in fork.places
                ),
                default=(0, 0, 0),
            )

        return max(forks, key=like)

    # -- the lock

    def solve(self) -> Solved:
        """Return the fork of the target; another that cannot be solved stops the lock, too."""
        forks = self.forks()
        mine = self._of(forks, self.extras)
        solved = self.fork(mine)
        plain = self._of(forks, frozenset())
        if any(some and set(some) <= set(mine.held.get(n, ())) for n, some in plain.held.items()):
            solved = self._beside(solved, plain if plain is not mine else None)
        if solved.misses or solved.unclear or solved.choice.conflict is not None:
            return solved
        for fork in forks:
            other = self.fork(fork) if fork is not mine else solved
            missing = next(iter(other.misses.values()), None)
            stop = other.choice.conflict or (missing.message if missing is not None else None)
            if stop is not None:
                return solved._replace(choice=solved.choice._replace(conflict=stop))
        return solved

    def fork(self, fork: Fork) -> Solved:
        """Return the lock of one fork."""
        asks: dict[str, Ask] = {}
        markers: dict[str, tuple[str | None, ...]] = {}
        sources: dict[str, str | None] = {}
        releases = [Version(python).release for _, python, _ in fork.places]
        self.minors = {(release[0], release[1]) for release in releases} if fork.held else set()
        for name, some in self.variants.items():
            divides = name in fork.held
            active = fork.held.get(name, some)
            if not divides and fork.held:
                active = [v for v in some if any(_meets(m, fork.places) for m in v.markers)]
            named_ = {variant.source for variant in active} - {None}
            if len(named_) > 1:
                text = f"{name} has two sources in one place: {', '.join(map(str, named_))}"
                return Solved({}, {}, {}, Choice({}, text), {}, {})
            if not active:
                continue
            asks[name] = self.asked(name, [p for variant in active for p in variant.placed])
            markers[name] = tuple(m for v in active for m in v.markers) if not divides else ()
            sources[name] = next(iter(named_), None)
        solved = Solved(asks, {}, {}, Choice({}, None), {}, {})
        for name in list(asks):
            self._list(name, solved, sources[name], markers[name])
        if "torch" not in asks and any(c.requires for one in solved.lists.values() for c in one):
            asks["torch"] = self.implied_torch(next(iter(solved.lists)))
            self._list("torch", solved, None, ())
        if solved.unclear or solved.misses:
            why = next(iter(solved.unclear.items()), None)
            if why is not None:
                text = f"{why[0]} is locked together with it: {why[1]}"
                solved.unclear.update({n: text for n in asks if n not in solved.unclear})
            return solved
        return solved._replace(choice=self._choose(solved, markers))

    def _beside(self, solved: Solved, plain: Fork | None) -> Solved:
        """Return the lock of an extra that narrows what is asked for without it: Poetry locks both,
        and an installation with the extra finds two versions."""
        if plain is None:
            return solved
        other, mine = self.fork(plain).choice.chosen, solved.choice.chosen
        differ = {n for n in mine if n in other and other[n].version != mine[n].version}
        unclear = tuple(sorted({*solved.choice.unclear, *differ}))
        return solved._replace(choice=solved.choice._replace(unclear=unclear))

    def _choose(self, solved: Solved, markers: dict[str, tuple[str | None, ...]]) -> Choice:
        """Return what is locked together.

        Whether torch has to be for the Pythons of its own marker or of the companion that requires
        it follows from what Poetry meets first: where they lead to different locks, the answer is
        not known.
        """
        lists, accepts = solved.lists, Accepts(self.facts)
        choice = choose(lists, solved.asks, accepts)
        own = markers.get("torch") or (None,)
        needing = [
            n for n, found in lists.items() if n != "torch" and any(c.requires for c in found)
        ]
        wide = {*own, *(m for name in needing for m in markers.get(name) or (None,))}
        if wide == set(own):
            return choice
        kept = self.admitted(solved.asks["torch"], solved.pools["torch"], tuple(wide))
        other = choose({**lists, "torch": self.versions(kept)}, solved.asks, accepts)
        names = set(choice.chosen) | set(other.chosen)
        differ = {
            name
            for name in names
            if (one := choice.chosen.get(name)) is None
            or (two := other.chosen.get(name)) is None
            or one.version != two.version
        }
        if (choice.conflict is None) != (other.conflict is None):
            return choice._replace(conflict=None, unclear=tuple(sorted(names)))
        return choice._replace(unclear=tuple(sorted({*choice.unclear, *differ})))

    def _list(
        self, name: str, solved: Solved, source: str | None, markers: tuple[str | None, ...]
    ) -> None:
        """Add the versions of a package that Poetry may lock."""
        ask = solved.asks[name]
        if ask.unclear or ask.url is not None:
            solved.unclear[name] = ask.unclear or "it comes from a URL"
            return
        pool = self.merged(ask, source, markers or (None,))
        solved.pools[name] = pool
        if pool.hidden or pool.nightly:
            text = pool.hidden or f"{pool.nightly} holds development releases"
            solved.unclear[name] = text
            return
        kept = [] if ask.invalid else self.admitted(ask, pool, markers or (None,))
        if kept:
            solved.lists[name] = self.versions(kept)
            return
        reason = self.why_not(ask, pool, markers or (None,))
        if isinstance(reason, str):
            solved.unclear[name] = reason
        else:
            solved.misses[name] = reason

    def versions(self, kept: list[Candidate]) -> list[Candidate]:
        """Return one candidate a version and place, with the requirements that Poetry reads."""
        wheels: dict[tuple[Version, int], list[Candidate]] = {}
        for one in kept:
            wheels.setdefault((one.version, one.rank), []).append(one)
        return [as_told(one, wheels[one.version, one.rank]) for one in super().versions(kept)]

    def pythons(self) -> list[str]:
        """Return the Pythons of the project, or of the fork that is being solved."""
        some = super().pythons()
        return [t for t in some if not self.minors or Version(t).release[:2] in self.minors]

    def own(self, python: str) -> tuple[str, ...]:
        """Return the version if the project, or the fork that is being solved, is for it."""
        if self.minors and Version(python).release[:2] not in self.minors:
            return ()
        return super().own(python)

    # -- sources

    def merged(self, ask: Ask, source: str | None, markers: tuple[str | None, ...]) -> Pool:
        """Return what the sources of a package offer together."""
        own = self.own_indexes()
        if source is not None:
            pools = [self.pool(ask, index) for index in own if index.name == source]
            if not pools and source.lower() == "pypi":
                pools = [self.pool(ask, None)]
        else:
            primary = [index for index in own if index.priority in _PRIMARY]
            pools = [self.pool(ask, index) for index in primary] or [self.pool(ask, None)]
            for index in (one for one in own if one.priority in _SUPPLEMENTAL):
                if any(p.hidden or p.nightly or self._offers(ask, p) for p in pools):
                    break
                pools.append(self.pool(ask, index))
        found: list[Candidate] = []
        for rank, pool in enumerate(pools):
            found += [c._replace(rank=-rank) for c in pool.candidates]
        return Pool(
            tuple(found),
            next((text for pool in pools if (text := pool.hidden or pool.broad)), ""),
            tuple(dict.fromkeys(c for pool in pools for c in pool.channels)),
            any(pool.pypi for pool in pools),
            next((pool.nightly for pool in pools if pool.nightly), ""),
        )

    @staticmethod
    def _offers(ask: Ask, pool: Pool) -> bool:
        return any(ask.specifier.contains(c.version, prereleases=True) for c in pool.candidates)

    # -- the installation

    def reached(self, solved: Solved) -> dict[str, Ask]:
        """Return what the groups, extras and markers of the install ask for."""
        found: dict[str, Ask] = {}
        for name, placed in named(self.install.requirements).items():
            variants = self.variants.get(name, [])
            active = [p for p in placed if self._holds_here(p.declaration.marker) is not False]
            platform = self.target.group.platform
            if not any(v.active(platform, self.python, self.extras) for v in variants):
                active = []  # the markers of Poetry's tables hold nowhere here
            ask = combine(name, [], (), self.target)
            if not active and self._merged_elsewhere(name, variants):
                text = f"the lock may install {name} for what another group or extra asks"
                ask = ask._replace(unclear=text, skipped=False, placed=placed[0])
                solved.unclear.setdefault(name, text)
            if active:
                ask = self.asked(name, active)._replace(placed=active[0])
                if all(self._holds_here(p.declaration.marker) is None for p in active):
                    marker = active[0].declaration.marker
                    text = f"it cannot be known whether the marker '{marker}' holds"
                    ask = ask._replace(unclear=text)
                    solved.unclear.setdefault(name, text)
            found[name] = ask
        torch = found.get("torch")
        if torch is None or torch.skipped:
            for name, ask in found.items():
                chosen = solved.choice.chosen.get(name)
                needs = chosen is not None and chosen.requires != ""
                if not ask.skipped and needs and "torch" in solved.choice.chosen:
                    found.pop("torch", None)
                    found["torch"] = self.implied_torch(name)
                    break
        return found

    def _merged_elsewhere(self, name: str, variants: list[Variant]) -> bool:
        """Return whether a declaration of another group or extra, of the same constraint and source
        as one of this install, holds here: Poetry merges their markers."""
        own = {p.declaration.span for p in self.install.requirements if name_of(p) == name}
        return any(
            any(p.declaration.span in own for p in variant.placed)
            and any(
                p.declaration.span not in own
                and self._holds_here(p.declaration.marker) is not False
                for p in variant.placed
            )
            for variant in variants
        )

    def _holds_here(self, marker: str | None) -> bool | None:
        if marker is None or "extra" not in marker:
            return marker_holds(marker, self.target)
        return _holds(marker, self.target.group.platform, self.python, self.extras)

    def files(self, package: str, chosen: Candidate, solved: Solved) -> list[Candidate]:
        """Return the files of the locked version: all of one source."""
        pool = solved.pools[package].candidates
        return [c for c in pool if c.version == chosen.version and c.rank == chosen.rank]


def _python_alone(atom: re.Match[str]) -> str:
    """Return a comparison of Pythons as it is, and any other as one that holds."""
    return atom[0] if "python_" in atom[0] else "python_version >= '0'"


def _meets(marker: str | None, places: list[Place]) -> bool:
    """Return whether a marker holds in one of the places."""
    return marker is None or any(_holds(marker, *place) is not False for place in places)


def _inside(source: Source, one: Declaration) -> bool:
    return one.span.start <= source.span.start and source.span.end <= one.span.end


def _both(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return one or other
    return f"({one}) and ({other})"
