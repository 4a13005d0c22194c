"""The stub's own records in the shape of torchpin's catalog: selection on known, closed facts.

With these facts nothing is unknown, so that a difference between ``select`` and a client is a
difference of the algorithm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version
from tests.clients.stub_facts import FAMILY, PYPI, Wheel, platform_of
from tests.clients.stub_server import Content

from torchpin.catalog.model import PLATFORMS, Build, ChannelSpan, Existence
from torchpin.evidence import LOCKFILE, MEASURED

_GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}


def glibc_of(filename: str) -> str | None:
    """Return the lowest glibc floor that a wheel's platform tags name."""
    tags = filename.removesuffix(".whl").rsplit("-", 1)[1].split(".")
    floors = [f"2.{m[1]}" for tag in tags if (m := re.match(r"manylinux_2_(\d+)_", tag))]
    floors += [_GLIBC[m[0]] for tag in tags if (m := re.match(r"manylinux\d+", tag))]
    return min(floors, key=Version, default=None)


def macos_of(filename: str) -> str | None:
    """Return the lowest macOS version that a wheel's platform tag names."""
    found = re.search(r"macosx_(\d+)_(\d+)_", filename)
    return f"{found[1]}.{found[2]}" if found else None


def python_tags(filename: str) -> set[str]:
    """Return the Python tags of a wheel in the catalog's words."""
    words = set()
    for tag in parse_wheel_filename(filename)[3]:
        free = tag.abi.startswith("cp") and tag.abi.endswith("t")
        words.add(f"{tag.interpreter}t" if free else tag.interpreter)
        if tag.abi == "abi3":
            words.add(f"{tag.interpreter}-abi3")
    return words


class StubFacts:
    """What ``select`` asks of a catalog, answered from the files of the stub."""

    date = "2026-11-30"

    def __init__(self, wheels: Iterable[Wheel]) -> None:
        self.wheels = tuple(w for w in wheels if w.package in FAMILY)
        self._content = Content(self.wheels)
        rows: dict[tuple[str | None, ...], list[Wheel]] = {}
        for wheel in self.wheels:
            platform = platform_of(wheel.filename)
            if platform in PLATFORMS:
                floor, macos = glibc_of(wheel.filename), macos_of(wheel.filename)
                key = (wheel.home, wheel.package, wheel.version, platform, floor, macos)
                rows.setdefault(key, []).append(wheel)
        self._builds: dict[str, list[Build]] = {name: [] for name in FAMILY}
        self._by_place: dict[tuple[str, str], list[Build]] = {}
        for group in rows.values():
            build = self._build(group)
            self._builds[build.package].append(build)
            home = PYPI if build.home == PYPI else build.channel
            self._by_place.setdefault((build.package, home), []).append(build)
        for builds in self._builds.values():
            builds.sort(key=lambda b: (Version(b.version), b.label, b.home, b.channel, b.platform))

    def _build(self, wheels: list[Wheel]) -> Build:
        first = wheels[0]
        version = Version(first.version)
        torch = [Requirement(text) for text in first.requires]
        pins = [str(r.specifier) or ">=0" for r in torch if r.name == "torch"]
        return Build(
            package=first.package,
            version=version.public,
            label=version.local or "",
            channel="cpu" if first.home == PYPI else first.home,
            home=PYPI if first.home == PYPI else "channel",
            platform=platform_of(first.filename),
            pythons=tuple(sorted({tag for w in wheels for tag in python_tags(w.filename)})),
            pythons_inferred=(),
            kernels=None,
            libraries=(),
            cuda=None,
            glibc=glibc_of(first.filename),
            macos=macos_of(first.filename),
            requires_torch=pins[0] if pins else "",
            requires_python=first.requires_python,
            yanked=any(bool(w.yanked) for w in wheels),
            released=first.uploaded,
            evidence=MEASURED if first.home == PYPI else LOCKFILE,
            source=first.filename,
        )

    def builds(self, package: str) -> tuple[Build, ...]:
        return tuple(self._builds.get(package, ()))

    def find(
        self,
        package: str,
        *,
        version: str | None = None,
        channel: str | None = None,
        platform: str | None = None,
        home: str | None = None,
    ) -> tuple[Build, ...]:
        if home == PYPI:
            found = self._by_place.get((package, PYPI), [])
        elif home == "channel" and channel is not None:
            found = self._by_place.get((package, channel), [])
        else:
            found = self._builds.get(package, [])
        wanted = None if version is None else Version(version)
        return tuple(
            b
            for b in found
            if (wanted is None or Version(b.version) == wanted)
            and channel in (None, b.channel)
            and platform in (None, b.platform)
            and home in (None, b.home)
        )

    def has_sdist(self, package: str, version: str) -> bool:
        """The stub serves wheels alone."""
        return False

    def existence(
        self,
        package: str,
        version: str,
        *,
        channel: str | None = None,
        home: str | None = None,
        platform: str | None = None,
    ) -> Existence:
        found = self.find(package, version=version, channel=channel, home=home, platform=platform)
        return Existence(bool(found), MEASURED, "the stub")

    def versions(self, package: str) -> tuple[str, ...]:
        return tuple(sorted({b.version for b in self.builds(package)}, key=Version))

    def channel_span(
        self, package: str, channel: str, platform: str | None = None
    ) -> ChannelSpan | None:
        found = self.find(package, channel=channel, platform=platform, home="channel")
        if not found:
            return None
        order = sorted((b.version for b in found), key=Version)
        return ChannelSpan(package, channel, order[0], order[-1], MEASURED, "the stub", True)

    @cached_property
    def _requirements(self) -> dict[tuple[str, str], str]:
        return {
            (b.package, b.version): b.requires_torch or "" for p in FAMILY for b in self.builds(p)
        }

    def partners(self, torch_version: str, package: str) -> tuple[str, ...]:
        known = self._requirements
        return tuple(
            version
            for version in reversed(self.versions(package))
            if SpecifierSet(known[package, version]).contains(torch_version, prereleases=True)
        )

    def pins(self, package: str, version: str) -> str | None:
        return None

    def hashes(
        self, package: str, full_version: str, platform: str, channel: str | None = None
    ) -> tuple[tuple[str, str], ...]:
        return tuple(
            (w.filename, self._content.digest(w))
            for w in self.wheels
            if w.package == package
            and w.version == full_version
            and platform_of(w.filename) == platform
            and channel in (None, w.home)
        )
