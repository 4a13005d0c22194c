"""From a catalog, index pages and readings of wheels to the next catalog (pure).

Rules of evidence:

* what a page lists exists: ``published``, with the page and its date as the source. A build that
  was known by better evidence keeps it; one that was ``inferred`` becomes ``published``;
* what was read from a wheel is ``measured``, with the wheel's digest, and so is the existence of
  its build; without a digest on the page it stays ``published``;
* a page that was read whole proves the Python tags, and denies the rest: a build that was known
  by proof and is listed no more is *withdrawn* (a row says since when), an inferred one just goes;
* a page that could not be read changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packaging.version import Version

from torchpin.catalog.labels import cuda_of
from torchpin.catalog.model import FAMILY, Build
from torchpin.catalog.records import Part, State, order
from torchpin.catalog.refresh.kernels import (
    Reading,
    channel_of,
    kernels_of_reading,
    torch_specifier,
)
from torchpin.catalog.refresh.listing import PYPI, ROOT, Listing, Wheel
from torchpin.catalog.refresh.metadata import key_of
from torchpin.catalog.refresh.partners import with_partners
from torchpin.catalog.wheel_names import order_pythons
from torchpin.evidence import INFERRED, MEASURED, PROOF, PUBLISHED, weakest

OF_PYTORCH = (*FAMILY, "torchcodec")
Key = tuple[str, str, str, str]
"""Version, ``pypi`` or channel, platform, label: what a PyPI build really is may become known."""
Readings = Mapping[str, Reading]
"""By the digest of the file, else its URL."""


def key_of_build(build: Build) -> Key:
    """Return what names a build."""
    place = build.channel if build.home == "channel" else PYPI
    return (str(Version(build.version)), place, build.platform, build.label)


def merge(state: State, listings: Sequence[Listing], readings: Readings) -> State:
    """Return the catalog that follows; the head keeps its date and provenance.

    Args:
        state: what is known.
        listings: pages that were read whole, this time or (unchanged) before.
        readings: what was read of wheels.
    """
    by_package: dict[str, list[Listing]] = defaultdict(list)
    for listing in listings:
        by_package[listing.package].append(listing)
    parts = dict(state.parts)
    for package, pages in by_package.items():
        known = parts.get(package) or Part(package, [], [], [], [], [], [], [], None)
        parts[package] = merge_part(known, pages, readings)
    parts = {n: parts[n] for n in sorted(parts) if parts[n].builds or n in state.parts}
    head = dict(state.head)
    head["newest"] = {name: newest(part) for name, part in parts.items()}
    head["builds"] = {name: len(part.builds) for name, part in parts.items()}
    found = State(head, parts, state.partners, state.pins, state.health)
    return found._replace(partners=with_partners(found, readings))


def merge_part(part: Part, listings: Sequence[Listing], readings: Readings) -> Part:
    """Return what is known of a package with these pages."""
    builds = {key_of_build(b): b for b in part.builds}
    rows = list(part.rows)
    pypi = next((one for one in listings if one.channel == PYPI), None)
    pythons = _requires_python(part, pypi)
    for listing in sorted(listings, key=lambda one: (one.channel != PYPI, one.channel)):
        seen = _groups(listing)
        for key, wheels in seen.items():
            builds[key] = _build(builds.get(key), key, wheels, listing, readings, pythons)
        if listing.channel == ROOT:
            continue
        here = {(key[0], key[2]) for key in seen}
        for key in [k for k in builds if k[1] == listing.channel and k not in seen]:
            gone = builds.pop(key)
            if gone.evidence in PROOF and (key[0], key[2]) not in here:
                rows.append(_withdrawn(gone, listing))
    rows = _without_contradictions(rows, builds.values())
    ordered = sorted(builds.values(), key=order)
    versions = list(pypi.versions) if pypi is not None else part.pypi
    found = part._replace(
        builds=ordered,
        pypi=versions,
        sdists=list(pypi.sdists) if pypi is not None else part.sdists,
        elsewhere=[v for v in part.elsewhere if v not in versions],
        hashes=_hashes(part, listings),
        rows=sorted(rows, key=lambda r: (Version(r[0]), r[1], r[2])),
    )
    return found._replace(
        spans=_spans(part, ordered, {one.channel for one in listings}),
        pages=_pages(found, listings),
    )


def newest(part: Part) -> str:
    """Return the newest stable version on PyPI of which not everything is yanked."""
    yanked: dict[Version, bool] = {}
    for build in part.builds:
        if build.home == "pypi":
            version = Version(build.version)
            yanked[version] = yanked.get(version, True) and build.yanked
    stable = [
        v for v in part.pypi if not Version(v).is_prerelease and not yanked.get(Version(v), False)
    ]
    return stable[-1] if stable else ""


def _groups(listing: Listing) -> dict[Key, list[Wheel]]:
    out: dict[Key, list[Wheel]] = defaultdict(list)
    for wheel in listing.wheels:
        for platform in wheel.name.platforms:
            key = (str(Version(wheel.name.version)), listing.channel, platform, wheel.name.label)
            out[key].append(wheel)
    return dict(out)


def _requires_python(part: Part, pypi: Listing | None) -> dict[str, str]:
    """Return what PyPI says of each version: the pages of channels do not."""
    out = {
        str(Version(b.version)): b.requires_python
        for b in part.builds
        if b.requires_python and b.home == "pypi"
    }
    for wheel in pypi.wheels if pypi else ():
        if wheel.file.requires_python:
            out[str(Version(wheel.name.version))] = wheel.file.requires_python
    return out


def live(wheels: Sequence[Wheel]) -> list[Wheel]:
    """Return the wheels that are not yanked; all if all are."""
    return [w for w in wheels if not w.file.yanked] or list(wheels)


def _build(
    old: Build | None,
    key: Key,
    wheels: list[Wheel],
    listing: Listing,
    readings: Readings,
    pythons: Mapping[str, str],
) -> Build:
    version, channel, platform, label = key
    usable = live(wheels)
    base = old or _new(listing, key, usable, label)
    if old is not None and old.evidence not in PROOF:
        base = base._replace(evidence=PUBLISHED, source=listing.source)
    requires = next((w.file.requires_python for w in usable if w.file.requires_python), None)
    linux, macos = platform.startswith("linux"), platform.startswith("macos")
    base = base._replace(
        pythons=order_pythons(tag for w in usable for tag in w.name.pythons),
        pythons_inferred=(),
        requires_python=requires or base.requires_python or pythons.get(version),
        glibc=(base.glibc or _lowest(w.name.glibc for w in wheels)) if linux else None,
        macos=(_lowest(w.name.macos for w in wheels) or base.macos) if macos else None,
        yanked=all(w.file.yanked for w in wheels),
    )
    if channel == PYPI and base.released is None:
        dates = [w.file.uploaded for w in wheels if w.file.uploaded]
        base = base._replace(released=min(dates) if dates else None)
    for wheel in sorted(usable, key=lambda w: w.file.name):
        reading = readings.get(key_of(wheel.file))
        if reading is not None and reading.file == wheel.file.name:
            return _with_reading(base, reading, listing)
    return base


def _new(listing: Listing, key: Key, wheels: Sequence[Wheel], label: str) -> Build:
    _, channel, platform, _ = key
    home = "pypi" if channel == PYPI else "channel"
    kind = "" if channel == PYPI else channel
    if home == "pypi" and platform.startswith("macos") and listing.package in OF_PYTORCH:
        kind = "cpu"  # one build, without CUDA: https://pytorch.org/get-started/locally/
    return Build(
        package=listing.package,
        version=wheels[0].name.version,
        label=label,
        channel=kind,
        home=home,
        platform=platform,
        pythons=(),
        pythons_inferred=(),
        kernels=None,
        libraries=(),
        cuda=cuda_of(kind),
        glibc=None,
        macos=None,
        requires_torch=None,
        requires_python=None,
        yanked=False,
        released=None,
        evidence=PUBLISHED,
        source=listing.source,
    )


def _with_reading(build: Build, reading: Reading, listing: Listing) -> Build:
    """Return a build with what its wheel says."""
    if reading.requires_python:
        build = build._replace(requires_python=build.requires_python or reading.requires_python)
    if build.package != "torch":
        build = build._replace(requires_torch=torch_specifier(reading.requires))
    if not reading.ranged:
        return build
    channel = channel_of(reading, build.platform, build.package)
    if build.home == "pypi" and channel:
        build = build._replace(channel=channel)
    cuda = cuda_of(build.channel) or (reading.cuda if build.channel.startswith("cu") else None)
    build = build._replace(cuda=build.cuda or cuda)
    if reading.device:
        main, libraries = kernels_of_reading(reading, build.package, listing.where)
        same = (
            main is not None
            and build.kernels is not None
            and build.kernels[:4] == main[:4]
            and [(n, k[:4]) for n, k in build.libraries] == [(n, k[:4]) for n, k in libraries]
        )
        if main is not None and not same:
            build = build._replace(kernels=main, libraries=libraries)
    proof = f"{listing.where}: {reading.file} sha256:{reading.sha256}"
    if not reading.sha256 or build.evidence == MEASURED:
        return build
    return build._replace(evidence=MEASURED, source=f"{build.source}; {proof}")


def _withdrawn(build: Build, listing: Listing) -> list[Any]:
    text = f"withdrawn: known before [{build.evidence}], {listing.source} does not list it"
    return [build.version, listing.channel, build.platform, False, PUBLISHED, text]


def _without_contradictions(rows: list[list[Any]], builds: Iterable[Build]) -> list[list[Any]]:
    """Return the rows that no proved build refutes, each place once (the last word counts)."""
    there: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for build in builds:
        if build.evidence in PROOF:
            place = build.channel if build.home == "channel" else PYPI
            there[str(Version(build.version))].add((place, build.platform))
    out: dict[tuple[str, str, str], list[Any]] = {}
    for row in rows:
        version = str(Version(row[0]))
        refuted = any(
            row[1] in (place, "*") and row[2] in (platform, "*")
            for place, platform in there.get(version, ())
        )
        if not refuted:
            out[version, row[1], row[2]] = row
    return list(out.values())


def _hashes(part: Part, listings: Sequence[Listing]) -> list[list[str]] | None:
    """Return the digests, new ones of these pages; no longer listed files go."""
    if part.hashes is None:
        return None
    read = {one.channel: one for one in listings if one.channel != ROOT}
    silent = {
        (one.channel, wheel.file.name)
        for one in read.values()
        for wheel in one.wheels
        if not wheel.file.sha256
    }  # a page without a digest takes none back
    rows = [row for row in part.hashes if row[2] not in read or (row[2], row[3]) in silent]
    for listing in read.values():
        for wheel in listing.wheels:
            name = wheel.name
            if not wheel.file.sha256:
                continue
            full = f"{name.version}+{name.label}" if name.label else name.version
            for platform in name.platforms:
                place = [full, platform, listing.channel, wheel.file.name, wheel.file.sha256]
                rows.append(place)
    unique = {tuple(row): row for row in rows}
    return sorted(unique.values(), key=lambda r: (Version(r[0]), r[1:]))


def _spans(part: Part, builds: Sequence[Build], read: set[str]) -> list[list[Any]]:
    """Return first and last proved release of each channel; an end that was proved stays one.

    A later release than the proved end opens it again, an earlier one than the proved begin too.
    """
    old = {span[0]: span for span in part.spans}
    out = []
    held = [b for b in builds if b.home == "channel" and b.channel not in (ROOT, "")]
    for channel in sorted({b.channel for b in held}):
        if channel not in read and channel in old:
            out.append(old[channel])
            continue
        proved = [b for b in held if b.channel == channel and b.evidence in PROOF]
        if not proved:
            continue
        first, last = proved[0], proved[-1]
        was = old.get(channel)
        closed = was is not None and was[5] and Version(last.version) <= Version(was[2])
        begun = was is not None and Version(first.version) >= Version(was[1])
        start = was[6] if was is not None and begun else None
        out.append(
            [
                channel,
                first.version,
                last.version,
                weakest(first.evidence, last.evidence),
                was[4] if was is not None and closed else last.source,
                int(closed),
                start,
            ]
        )
    return out


def _pages(part: Part, listings: Sequence[Listing]) -> list[list[str]]:
    known = {*part.pypi, *(b.version for b in part.builds if b.evidence != INFERRED)}
    stable = [v for v in known if not Version(v).is_prerelease]
    top = max(stable, key=Version, default="")
    pages = {page[0]: page for page in part.pages}
    for listing in listings:
        if listing.channel != ROOT:
            pages[listing.channel] = [listing.channel, listing.date, top]
    return [pages[channel] for channel in sorted(pages)]


def _lowest(values: Iterable[str | None]) -> str | None:
    return min((v for v in values if v), key=Version, default=None)
