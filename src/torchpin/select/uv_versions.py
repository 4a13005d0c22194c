"""The versions that uv sees of a package on the index of a source, or on all the other indexes.

uv looks at versions, not at files: a version counts if one of its wheels suits the Pythons of the
project, whatever the platforms of the others (``uv-resolver/src/version_map.rs``), and the wheels
imply the markers for which it has files (``implied_markers`` of ``uv-distribution-types``).
"""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from torchpin.catalog.model import Build
from torchpin.documents.pins import same_version
from torchpin.named import NamedTuple
from torchpin.select import pip, uv
from torchpin.select.asks import Ask, pin_of
from torchpin.select.facts import Facts
from torchpin.select.grid import Grid, UnknownMarkerError
from torchpin.select.model import Install, PlacedIndex
from torchpin.select.pools import Candidate, Pool, version_of
from torchpin.select.uv_reading import specifier_of
from torchpin.select.uv_settings import UvSettings

_SYSTEMS = {"linux": "linux", "windows": "win32", "macos": "darwin"}
_BEST, _FIRST = "unsafe-best-match", ("unsafe-first-match", "unsafe-any-match")
_WINDOWS = {"x86_64": "AMD64", "arm64": "ARM64"}


class Offered(NamedTuple):
    """One version as uv sees it."""

    version: Version
    """With its label."""
    candidates: tuple[Candidate, ...]
    """Its builds, one a platform; all from one index."""
    compatible: bool
    """Whether any of its files can be for a Python of the project."""
    mask: int
    """Where its files are for (uv's implied markers)."""
    python: int
    """The lowest Python that it requires, as a point of the grid."""
    source: bool = False
    """It has a source distribution, which is for every platform and Python."""

    @property
    def first(self) -> Candidate:
        """The build whose METADATA uv reads for all of them: the first by file name."""
        return self.candidates[0]

    @property
    def local(self) -> bool:
        """Whether the version has a label."""
        return self.version.local is not None


class Table(NamedTuple):
    """All versions of a package in one place in the order of preference, highest first."""

    name: str
    place: PlacedIndex | None
    """The index that a source names; None for the others together."""
    versions: tuple[Offered, ...]
    pool: Pool
    unclear: str
    """Why more or other versions may be there."""
    elsewhere: tuple[Version, ...]
    """Versions that are published, and not here: a requirement may name them all the same."""
    cache: dict[str, int]
    """Of ``bits``."""

    @property
    def size(self) -> int:
        """How many versions a requirement can tell apart."""
        return len(self.versions) + len(self.elsewhere)

    @property
    def has_local(self) -> bool:
        """Whether any version has a label."""
        return any(offered.local for offered in self.versions)

    def bits(self, specifier: str) -> int:
        """Return the versions that a specifier admits, those ``elsewhere`` behind the others.

        Raises:
            UnknownMarkerError: it cannot be parsed.
        """
        if not specifier:
            return (1 << self.size) - 1
        if specifier not in self.cache:
            try:
                parsed = specifier_of(specifier)
            except InvalidSpecifier:
                raise UnknownMarkerError(f"{self.name}{specifier}") from None
            versions = [*(offered.version for offered in self.versions), *self.elsewhere]
            self.cache[specifier] = sum(
                1 << at
                for at, version in enumerate(versions)
                if parsed.contains(version, prereleases=True)
            )
        return self.cache[specifier]


class Tables:
    """The tables of one project, each made when first asked for."""

    def __init__(
        self,
        install: Install,
        facts: Facts,
        grid: Grid,
        python: tuple[int, int],
        settings: UvSettings,
    ) -> None:
        self._install = install
        self._facts = facts
        self._grid = grid
        self._python = python
        self._settings = settings
        self._strategy = "" if settings.strategy == "first-index" else settings.strategy
        self._made: dict[tuple[str, str | None], Table] = {}
        self._masks: dict[tuple[str, tuple[str, ...]], int] = {}
        self._requires: dict[str, dict[str, str]] = {}
        self._suits: dict[tuple[str, tuple[int, int]], bool] = {}

    def of(self, name: str, place: PlacedIndex | None, pinned: SpecifierSet) -> Table:
        """Return the versions of ``name`` on ``place``; ``pinned`` admits yanked ones by ``==``."""
        key = (name, None if place is None else place.url)
        if key not in self._made:
            self._made[key] = self._make(name, place, pinned)
        return self._made[key]

    def _make(self, name: str, place: PlacedIndex | None, pinned: SpecifierSet) -> Table:
        install = self._install
        if place is not None:  # link pages do not count for a package with a source
            install = install._replace(indexes=(place,))
        ask = Ask(name, None, None, pinned, name, pin_of(pinned), frozenset(), None)
        together = place is None and bool(self._strategy)
        pool = (pip if together else uv).pool_of(ask, install, self._facts)
        unclear = pool.hidden or (pool.nightly and f"{pool.nightly} holds development releases")
        if pool.broad:
            unclear = unclear or f"{pool.broad} lists the wheels of many channels"
        found = list(pool.candidates)
        if not self._settings.takes_wheels(name):
            unclear = unclear or f"the project takes no wheels of {name} (no-binary)"
        cutoff = self._settings.cutoff_of(name)
        if cutoff is not None:
            verdicts = [cutoff.admits(c.build.released) for c in found]
            if None in verdicts:
                text = f"it is not known which files of {name} were uploaded before {cutoff.text}"
                unclear = unclear or f"{text} (exclude-newer)"
            found = [c for c, good in zip(found, verdicts, strict=True) if good]
        if together and self._strategy in _FIRST:
            offered: list[Offered] = []
            for index in (*install.indexes,):
                here = [c for c in found if c.place == index]
                known = {o.version for o in offered if o.compatible}
                more = self._sorted(here, ask)
                new = {o.version for o in more if o.version not in known}
                offered = [o for o in offered if o.version not in new]
                offered += [o for o in more if o.version in new]
        else:
            offered = self._sorted(found, ask)
        present = {one.version.public for one in offered}
        elsewhere = tuple(
            version_of(text) for text in self._facts.versions(name) if text not in present
        )
        return Table(name, place, tuple(offered), pool, unclear, elsewhere, {})

    def _sorted(self, candidates: list[Candidate], ask: Ask) -> list[Offered]:
        by_version: dict[Version, list[Candidate]] = {}
        for candidate in candidates:
            by_version.setdefault(candidate.version, []).append(candidate)
        return [
            self._offered(version, found, ask)
            for version, found in sorted(by_version.items(), reverse=True)
        ]

    def _offered(self, version: Version, found: list[Candidate], ask: Ask) -> Offered:
        # Of equal versions uv takes the one of the first index that has a usable one.
        places = list(dict.fromkeys(c.place for c in sorted(found, key=lambda c: -c.rank)))
        if self._strategy:
            places = [p for p in self._install.indexes if p in places] or places
        fitting: list[Candidate] = []
        for place in places:
            here = [c for c in found if c.place == place]
            fitting = [c for c in here if self._usable(c.build, ask)]
            if fitting:
                break
        kept = fitting or [c for c in found if c.place == places[0]]
        kept.sort(key=lambda c: self._file_name(c.build))
        mask = 0
        for candidate in fitting:
            mask |= self._implied(candidate.build)
        lowest = next((b for c in kept if (b := c.build.requires_python)), None)
        lowest = lowest or self._pythons_of(ask.package).get(kept[0].build.version)
        low = 0
        if lowest:
            try:
                low = self._grid.bounds_of(lowest)[0]
            except UnknownMarkerError:
                low = 0
        source = self._has_source(kept[0].build, ask)
        mask = self._grid.all if source else mask
        return Offered(version, tuple(kept), bool(fitting) or source, mask, low, source)

    def _has_source(self, build: Build, ask: Ask) -> bool:
        """Return whether uv may build a version (its ``PrioritizedDist::insert_source``)."""
        return (
            build.home == "pypi"
            and not build.yanked
            and self._settings.builds(ask.package)
            and self._facts.has_sdist(ask.package, build.version)
        )

    def _file_name(self, build: Build) -> str:
        """Return the end of the first file name of a build, as far as its order goes."""
        tags = [*build.pythons, *build.pythons_inferred]
        tag = min((tag for tag in tags if self._tag_suits(tag, self._python)), default="")
        system, _, machine = build.platform.partition("-")
        if system == "macos":
            low = build.macos or ("10.9" if machine == "x86_64" else "11.0")
            place = f"macosx_{low.replace('.', '_')}_{machine}"
        elif system == "linux":
            old = {"2.5": "manylinux1", "2.12": "manylinux2010", "2.17": "manylinux2014"}
            floor = build.glibc or ""
            place = f"{old.get(floor, 'manylinux_' + floor if floor else 'linux')}_{machine}"
        else:
            place = "win_amd64" if machine == "x86_64" else "win_arm64"
        torch_on_macos = build.package == "torch" and system == "macos"
        return f"{tag}-{'none' if torch_on_macos else tag}-{place}"

    def _pythons_of(self, package: str) -> dict[str, str]:
        """Return the Requires-Python of each version, as any of its builds tells it."""
        if package not in self._requires:
            self._requires[package] = {
                b.version: b.requires_python
                for b in self._facts.builds(package)
                if b.requires_python
            }
        return self._requires[package]

    def _usable(self, build: Build, ask: Ask) -> bool:
        if build.yanked and not (
            ask.pin is not None
            and same_version(ask.pin[0], build.version)
            and ask.pin[1] in ("", build.label)
        ):
            return False
        tags = (*build.pythons, *build.pythons_inferred)
        return not tags or any(self._tag_suits(tag, self._python) for tag in tags)

    def suits(self, offered: Offered, python: tuple[int, int]) -> bool:
        """Return whether a file of a version can be for a Python of a fork.

        Measured with uv 0.13.9: files for newer Pythons than those of the fork do not count, files
        for older ones do, unless they are too old for all of the project.
        """
        return offered.source or any(
            not tags
            or any(self._tag_suits(t, python) and self._tag_suits(t, self._python) for t in tags)
            for candidate in offered.candidates
            for tags in [(*candidate.build.pythons, *candidate.build.pythons_inferred)]
        )

    def _tag_suits(self, tag: str, python: tuple[int, int]) -> bool:
        """Return whether a wheel tag can be for one of these Pythons (``matches_wheel_tag``)."""
        key = (tag, python)
        if key not in self._suits:
            self._suits[key] = self._suit(tag, python)
        return self._suits[key]

    def _suit(self, tag: str, python: tuple[int, int]) -> bool:
        if tag.startswith(("cp2", "py2")):
            return False
        minor, exact = _minor(tag)
        if minor is None:
            return True
        points = self._grid.points
        low, high = python
        below = high >= len(points) or minor < points[high].release[1] or (
            minor == points[high].release[1] and len(points[high].release) > 2
        )  # fmt: skip
        above = minor >= (points[low].release[1] if low else 0)
        return below and (above or not exact)

    def _implied(self, build: Build) -> int:
        tags = tuple(tag for tag in (*build.pythons, *build.pythons_inferred))
        key = (build.platform, tags)
        if key in self._masks:
            return self._masks[key]
        grid = self._grid
        system, _, machine = build.platform.partition("-")
        mask = grid.system(_SYSTEMS[system])
        mask &= grid.machine(_WINDOWS[machine] if system == "windows" else machine)
        pythons = 0 if tags else grid.all
        for tag in tags:
            if not self._tag_suits(tag, self._python):
                continue
            minor, exact = _minor(tag)
            if minor is None or (not exact and "abi3" not in tag):
                pythons |= grid.all
            elif "abi3" in tag:
                start = next(at for at, p in enumerate(grid.points) if at and p.release[1] >= minor)
                pythons |= grid.pythons(start, len(grid.points)) & grid.cpython
            else:
                pythons |= grid.minor(minor) & grid.cpython
        self._masks[key] = mask & pythons
        return mask & pythons


def _minor(tag: str) -> tuple[int | None, bool]:
    """Return the minor version in a tag (None for ``py3``), and whether it means only that one."""
    found = re.match(r"(cp|py)3(\d*)", tag)
    if found is None or not found[2]:
        return None, False
    return int(found[2]), found[1] == "cp" and "abi3" not in tag
