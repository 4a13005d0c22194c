"""What a refresh found, in lines for people; ``torchpin catalog diff`` tells all of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from packaging.version import Version

from torchpin.catalog.model import Build
from torchpin.catalog.refresh.settings import Change
from torchpin.catalog.store import Catalog
from torchpin.evidence import PROOF

_ALL = 8
"""So many names are listed; of more, the rest is counted."""


def changes(old: Catalog, new: Catalog) -> tuple[Change, ...]:
    """Return what is new, changed or gone, by package; kinds that do not occur are left out.

    Kinds: ``channel``, ``version``, ``default`` (what PyPI serves), ``newest``, ``builds``,
    ``yanked``, ``withdrawn``, ``refuted``, ``requires``, ``evidence``, ``kernels``, ``pins``.
    """
    out: list[Change] = []
    for package in new.packages():
        out += (Change(kind, package, text) for kind, text in _package(package, old, new))
    return tuple(out)


def _place(build: Build) -> str:
    return "PyPI" if build.home == "pypi" else build.channel


def _key(build: Build) -> tuple[str, str, str, str]:
    place = build.channel if build.home == "channel" else "pypi"
    return (build.version, build.label, place, build.platform)


def _package(package: str, old: Catalog, new: Catalog) -> Iterator[tuple[str, str]]:
    before = {_key(b): b for b in old.builds(package)}
    after = {_key(b): b for b in new.builds(package)}
    channels = [c for c in new.channels(package) if c not in old.channels(package)]
    if channels:
        yield "channel", f"new channel {_names(channels)}"
    versions = [v for v in new.versions(package) if v not in old.versions(package)]
    if len(versions) > _ALL:
        yield "version", f"{len(versions) - _ALL} new versions before {versions[-_ALL]}"
    for version in versions[-_ALL:]:
        here = [b for b in after.values() if b.version == version]
        places = sorted({_place(b) for b in here}, key=lambda p: (p != "PyPI", p))
        yield "version", f"new version {version} on {_names(places) or 'PyPI (no wheels)'}"
    yield from _defaults(package, old, new)
    yield from _grouped(
        "builds",
        [b for k, b in after.items() if k not in before and b.version not in versions],
        "new builds of",
    )
    gone = [v for v in old.versions(package) if v not in new.versions(package)]
    if gone:
        yield "withdrawn", f"withdrawn: {_names(gone)}"
    lost = [b for k, b in before.items() if k not in after and b.version not in gone]
    yield from _grouped("withdrawn", [b for b in lost if b.evidence in PROOF], "no longer listed:")
    yield from _grouped(
        "refuted", [b for b in lost if b.evidence not in PROOF], "only inferred, and not there:"
    )
    both = [(before[k], b) for k, b in after.items() if k in before]
    yield from _grouped("yanked", [b for a, b in both if b.yanked and not a.yanked], "yanked:")
    yield from _grouped(
        "yanked", [b for a, b in both if a.yanked and not b.yanked], "yanked no more:"
    )
    for a, b in both:
        if a.requires_torch is not None and a.requires_torch != b.requires_torch:
            text = f"{b.place} requires torch {b.requires_torch or 'not'}, not {a.requires_torch}"
            yield "requires", text
        if a.requires_python and a.requires_python != b.requires_python:
            yield "requires", f"{b.place} requires Python {b.requires_python}"
    told = [b for a, b in both if a.requires_torch is None and b.requires_torch is not None]
    yield from _grouped("requires", told, "requirements read:")
    known: dict[tuple[str, str], int] = defaultdict(int)
    for a, b in both:
        if a.evidence != b.evidence:
            known[a.evidence, b.evidence] += 1
    for (was, now), count in sorted(known.items()):
        yield "evidence", f"{count} builds that were {was} are {now}"
    listed = [b for a, b in both if a.kernels and b.kernels and a.kernels[:3] != b.kernels[:3]]
    yield from _grouped("kernels", listed, "other kernels than thought:")
    first = [b for a, b in both if a.kernels is None and b.kernels is not None]
    yield from _grouped("kernels", first, "kernels read:")


def _defaults(package: str, old: Catalog, new: Catalog) -> Iterator[tuple[str, str]]:
    """Yield how the build changed that PyPI serves where no index is named."""
    was, now = old.newest(package), new.newest(package)
    if not now or (was == now and old.find(package, version=now) == new.find(package, version=now)):
        return
    for build in new.find(package, version=now, home="pypi"):
        earlier = (
            old.find(package, version=was, home="pypi", platform=build.platform) if was else ()
        )
        if earlier and build.channel and earlier[0].channel != build.channel:
            text = f"{earlier[0].channel or 'unknown'} ({was}) → {build.channel} ({now})"
            yield "default", f"PyPI's build for {build.platform}: {text}"


def _grouped(kind: str, builds: list[Build], text: str) -> Iterator[tuple[str, str]]:
    """Yield one line a place: versions with the platforms that they have in common."""
    by_place: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for build in builds:
        by_place[_place(build)][build.version].append(build.platform)
    for place in sorted(by_place, key=lambda p: (p != "PyPI", p)):
        found = by_place[place]
        if len(found) == 1:
            ((version, platforms),) = found.items()
            yield kind, f"{text} {version} on {place} ({', '.join(platforms)})"
        else:
            yield kind, f"{text} {_names(sorted(found, key=Version))} on {place}"


def _names(names: list[str]) -> str:
    more = len(names) - _ALL
    shown = ", ".join(names[-_ALL:] if more > 0 else names)
    return f"{more} more and {shown}" if more > 0 else shown
