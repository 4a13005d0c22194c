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
from torchpin.select.asks import Ask, combine
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
Signature = frozenset[tuple[str, int]]
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

    def active(self, platform: str, python: str, extras: frozenset[str]) -> bool:
        """Return whether it is asked for in an environment."""
        return any(
            (not extra or extra in extras)
            and (marker is None or _holds(marker, platform, python, extras) is not False)
            for marker, extra in zip(self.markers, self.extras, strict=True)
        )


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
        self.forking = {name: some for name, some in self.variants.items() if self._divides(some)}
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

    def _divides(self, some: list[Variant]) -> bool:
        """Return whether the declarations of a package divide the lock: they ask for different
        things, or several ask for one thing and leave a place without."""
        if len(some) > 1:
            return True
        (one,) = some
        return len(one.placed) > 1 and not all(one.active(*place) for place in self._places(some))

    def _places(self, variants: Sequence[Variant]) -> list[Place]:
        """Return the places that markers and extras of declarations can tell apart."""
        names = tuple(self.project.extras)
        sets = [frozenset[str]()]
        if len(names) <= _EXTRAS:
            sizes = range(1, len(names) + 1)
            sets += [frozenset(some) for size in sizes for some in combinations(names, size)]
        if not any(any(one.extras) or "extra" in str(one.markers) for one in variants):
            sets = sets[:1]
        return [
            (platform, python, extras)
            for python in self.pythons()
            for platform in _PLATFORMS
            for extras in sets
        ]

    def signature(self, platform: str, python: str, extras: frozenset[str]) -> Signature:
        """Return which variants of the packages that divide the lock hold in an environment."""
        return frozenset(
            (name, at)
            for name, some in self.forking.items()
            for at, variant in enumerate(some)
            if variant.active(platform, python, extras)
        )

    def forks(self) -> dict[Signature, list[Place]]:
        """Return every fork with the places that it is for."""
        found: dict[Signature, list[Place]] = {}
        variants = [variant for some in self.forking.values() for variant in some]
        for place in self._places(variants):
            found.setdefault(self.signature(*place), []).append(place)
        return found

    # -- the lock

    def solve(self) -> Solved:
        """Return the fork of the target; another that cannot be solved stops the lock, too."""
        mine = self.signature(self.target.group.platform, self.python, self.extras)
        forks = self.forks() if self.forking else {}
        solved = self.fork(mine, forks.get(mine, []))
        if solved.misses or solved.unclear or solved.choice.conflict is not None:
            return solved
        for signature, places in forks.items():
            other = self.fork(signature, places) if signature != mine else solved
            missing = next(iter(other.misses.values()), None)
            stop = other.choice.conflict or (missing.message if missing is not None else None)
            if stop is not None:
                return solved._replace(choice=solved.choice._replace(conflict=stop))
        return solved

    def fork(self, signature: Signature, places: list[Place]) -> Solved:
        """Return the lock of one fork; no places: the lock is not divided."""
        asks: dict[str, Ask] = {}
        markers: dict[str, tuple[str | None, ...]] = {}
        sources: dict[str, str | None] = {}
        releases = [Version(python).release for _, python, _ in places]
        self.minors = {(release[0], release[1]) for release in releases}
        for name, some in self.variants.items():
            divides = name in self.forking
            active = [v for at, v in enumerate(some) if not divides or (name, at) in signature]
            named_ = {variant.source for variant in active} - {None}
            if len(named_) > 1:
                text = f"{name} has two sources in one place: {', '.join(map(str, named_))}"
                return Solved({}, {}, {}, Choice({}, text), {}, {})
            if not divides and places and not self._meets(active[0], places):
                continue
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
        return solved._replace(choice=choose(solved.lists, asks, Accepts(self.facts)))

    @staticmethod
    def _meets(variant: Variant, places: list[Place]) -> bool:
        """Return whether a marker holds in one of the places, whatever extra it is of."""
        return any(
            marker is None or _holds(marker, *place) is not False
            for marker in variant.markers
            for place in places
        )

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


def _inside(source: Source, one: Declaration) -> bool:
    return one.span.start <= source.span.start and source.span.end <= one.span.end


def _both(one: str | None, other: str | None) -> str | None:
    if one is None or other is None:
        return one or other
    return f"({one}) and ({other})"
