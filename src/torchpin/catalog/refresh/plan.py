"""Which wheels a refresh must read (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from packaging.version import Version

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import Build
from torchpin.catalog.records import State
from torchpin.catalog.refresh.kernels import COMPILED, Reading
from torchpin.catalog.refresh.listing import PYPI, ROOT, Listing, Wheel
from torchpin.catalog.refresh.merge import key_of_build, live
from torchpin.catalog.refresh.metadata import key_of
from torchpin.catalog.refresh.pages import File
from torchpin.evidence import MEASURED
from torchpin.named import NamedTuple
from torchpin.patterns import regex

SILENT = (
    "torch",
    "triton",
    "pytorch-triton-rocm",
    "pytorch-triton-xpu",
    "triton-rocm",
    "triton-xpu",
)
"""Packages that require no torch: their METADATA hold nothing that the catalog wants."""
_DATE = regex(r"\d{4}-\d\d-\d\d\Z")
NEWEST_PINS = 12
"""So many newest releases of a package that depends on torch are followed."""


class Task(NamedTuple):
    """A wheel to read."""

    file: File
    device: bool
    package: str
    channel: str


def tasks(
    state: State,
    listings: Sequence[Listing],
    done: Mapping[str, Reading],
    newest: Mapping[str, str],
    since: str,
) -> tuple[Task, ...]:
    """Return the wheels to read: one of each build that lacks facts, of the same file only once.

    Small reads (METADATA) come first, then torch. Older releases are read only with ``since``: a
    first look at all channels would otherwise read thousands of wheels.

    Args:
        state: with the pages merged.
        listings: the pages.
        done: what was read already, by ``key_of``.
        newest: package → newest version of the catalog that torchpin came with; builds of it and
            of later ones are read.
        since: a version of torch, an ISO date, or ``""``.
    """
    day = _day(state, since)
    wheels = _by_key(listings)
    out: dict[str, Task] = {}
    for package, part in state.parts.items():
        released = {b.version: b.released for b in part.builds if b.home == "pypi" and b.released}
        for build in part.builds:
            key = key_of_build(build)
            here = wheels.get((package, *key))
            device = _device(build)
            if not here or not _lacks(build):
                continue
            if since:
                when = build.released or released.get(build.version)
                wanted = _later(build, since, day, when)
            else:
                wanted = Version(build.version) >= Version(newest.get(package) or "0")
            if not wanted:
                continue
            file = min(live(here), key=lambda w: w.file.name).file
            name = key_of(file)
            had = done.get(name)
            if had is not None and (had.device or not device):
                continue
            if name not in out or device:
                out[name] = Task(file, device, package, key[1])
    return tuple(
        sorted(
            out.values(),
            key=lambda t: (t.device, t.package != "torch", t.channel != PYPI, t.file.name),
        )
    )


def _by_key(listings: Iterable[Listing]) -> dict[tuple[str, ...], list[Wheel]]:
    out: dict[tuple[str, ...], list[Wheel]] = {}
    for listing in listings:
        if listing.channel == ROOT:
            continue
        for wheel in listing.wheels:
            version = str(Version(wheel.name.version))
            for platform in wheel.name.platforms:
                key = (listing.package, version, listing.channel, platform, wheel.name.label)
                out.setdefault(key, []).append(wheel)
    return out


def _device(build: Build) -> bool:
    """Tell whether the libraries of a build say something that the catalog wants."""
    if build.package not in COMPILED or build.platform.startswith("macos"):
        return False
    if build.home == "pypi":
        return True  # what it was built for is in the wheel alone
    return kind_of_label(build.channel) in ("cuda", "rocm")


def _lacks(build: Build) -> bool:
    """Tell whether a known build lacks a fact that its wheel holds."""
    if build.package not in SILENT and build.requires_torch is None:
        return True
    if not _device(build):
        return False
    if build.home == "pypi" and not build.channel:
        return True
    kernels = build.kernels
    coded = kind_of_label(build.channel) in ("cuda", "rocm")
    return coded and (kernels is None or kernels.evidence != MEASURED)


def _day(state: State, since: str) -> str:
    """Return the day from which other packages count: that of the torch release."""
    if not since or _DATE.match(since):
        return since
    torch = state.parts.get("torch")
    dates = [
        b.released
        for b in (torch.builds if torch else ())
        if b.released and b.home == "pypi" and Version(b.version) >= Version(since)
    ]
    return min(dates, default="9999-12-31")


def _later(build: Build, since: str, day: str, released: str | None) -> bool:
    """Tell whether a build is of the release or day that ``--since`` names, or later."""
    if build.package == "torch" and day != since:
        return Version(build.version) >= Version(since)
    return released is not None and released >= day


def pins_to_read(state: State, listing: Listing) -> tuple[tuple[str, File], ...]:
    """Return version and wheel of the releases whose pin of torch is not known yet."""
    known = [Version(pin[1]) for pin in state.pins if pin[0] == listing.package]
    best: dict[Version, File] = {}
    for wheel in sorted(listing.wheels, key=lambda w: w.file.name):
        version = Version(wheel.name.version)
        if not version.is_prerelease and not wheel.file.yanked:
            best.setdefault(version, wheel.file)
    newest = sorted(best, reverse=True)[:NEWEST_PINS]
    return tuple(
        (str(version), best[version])
        for version in newest
        if version not in known and (not known or version > max(known))
    )
