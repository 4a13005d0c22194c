"""How two catalogs differ: builds, what is known of them, channels, pins, drivers (pure).

The texts of sources do not count: they name the day on which an index was read, so each refresh
changes all of them. What they prove does: evidence has a direction, stronger or weaker.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from packaging.version import Version

from torchpin.catalog.model import Build, Kernels
from torchpin.catalog.records import order
from torchpin.catalog.store import Catalog
from torchpin.errors import CatalogError
from torchpin.evidence import MEASURED, ORDER
from torchpin.named import NamedTuple

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
SUBJECTS = (
    "build",
    "version",
    "newest",
    "channel",
    "absence",
    "digest",
    "partner",
    "pin",
    "health",
    "driver",
)


class Entry(NamedTuple):
    """One difference."""

    kind: str
    """``added``, ``removed`` or ``changed``."""
    subject: str
    """One of ``SUBJECTS``."""
    package: str
    """``""`` for what belongs to no package."""
    name: str
    """What differs: ``2.15.0+cu132 linux-x86_64``."""
    fact: str
    """Which fact changed; ``""`` for what was added or removed."""
    before: str
    after: str
    grave: bool
    """Someone should look: a build or measured fact that went, weaker evidence, another digest."""


class Side(NamedTuple):
    """One of the two catalogs."""

    name: str
    date: str
    digest: str


class Diff(NamedTuple):
    """All differences, by package, then subject, then version."""

    old: Side
    new: Side
    entries: tuple[Entry, ...]


def compare(old: Catalog, new: Catalog, names: tuple[str, str] = ("old", "new")) -> Diff:
    """Return how two catalogs differ; equal catalogs have no entries.

    Raises:
        CatalogError: the data of one of them cannot be read.
    """
    entries: list[Entry] = []
    for package in sorted({*old.packages(), *new.packages()}):
        entries += _builds(package, old, new)
        entries += _lists(package, old, new)
        entries += _channels(package, old, new)
        entries += _absences(package, old, new)
        entries += _digests(package, old, new)
    entries += _partners(old, new)
    entries += _table("pin", "pins.json", old, new, _pins)
    entries += _table("health", "health.json", old, new, _health)
    entries += _table("driver", "drivers.json", old, new, _drivers)
    return Diff(
        Side(names[0], old.date, old.digest), Side(names[1], new.date, new.digest), tuple(entries)
    )


def holds(catalog: Catalog, name: str) -> bool:
    """Return whether a catalog has a data file."""
    return os.path.exists(os.path.join(catalog.folder, name))


def raw(catalog: Catalog, name: str) -> Any:
    """Return the records of a data file.

    Raises:
        CatalogError: it cannot be read.
    """
    path = os.path.join(catalog.folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise CatalogError(f"catalog data cannot be read: {error}", path=path) from error


def _entry(kind: str, subject: str, package: str, name: str, **rest: Any) -> Entry:
    return Entry(
        kind,
        subject,
        package,
        name,
        rest.get("fact", ""),
        rest.get("before", ""),
        rest.get("after", ""),
        rest.get("grave", False),
    )


def _key(build: Build) -> tuple[str, str, str, str]:
    """Name a build; what a PyPI build really is may become known later."""
    place = build.channel if build.home == "channel" else "pypi"
    return (build.version, build.label, place, build.platform)


def name_of(build: Build) -> str:
    """Return the name of a build in a diff: ``2.15.0 pypi linux-x86_64``."""
    place = f" {build.channel}" if build.home == "channel" and not build.label else ""
    return f"{build.full_version}{place}{' pypi' if build.home == 'pypi' else ''} {build.platform}"


def _builds(package: str, old: Catalog, new: Catalog) -> Iterator[Entry]:
    before = {_key(build): build for build in old.builds(package)}
    after = {_key(build): build for build in new.builds(package)}
    for build in sorted({**before, **after}.values(), key=order):
        was, now = before.get(_key(build)), after.get(_key(build))
        name = name_of(build)
        if was is None:
            yield _entry(ADDED, "build", package, name, after=summary(build))
        elif now is None:
            yield _entry(REMOVED, "build", package, name, before=summary(build), grave=True)
        else:
            yield from _facts(package, name, was, now)


def summary(build: Build) -> str:
    """Return a build in a few words."""
    words = [build.channel or "?", " ".join((*build.pythons, *build.pythons_inferred))]
    if build.kernels is not None:
        words.append(kernel_words(build.kernels))
    return " · ".join((*filter(None, words), f"[{build.evidence}]"))


def kernel_words(kernels: Kernels | None) -> str:
    """Return a kernel list with its evidence, ``""`` for none."""
    if kernels is None:
        return ""
    names = [f"sm_{name}" for name in kernels.sass]
    names += [f"compute_{name}" for name in kernels.ptx]
    return f"{' '.join([*names, *kernels.gfx]) or 'none'} [{kernels.evidence}]"


def _facts(package: str, name: str, was: Build, now: Build) -> Iterator[Entry]:
    def changed(fact: str, before: str, after: str, *, grave: bool = False) -> Entry:
        return _entry(
            *(CHANGED, "build", package, name), fact=fact, before=before, after=after, grave=grave
        )

    if was.evidence != now.evidence:
        yield changed("evidence", was.evidence, now.evidence, grave=weaker(was, now))
    pairs = [("kernels", was.kernels, now.kernels)]
    libraries = (dict(was.libraries), dict(now.libraries))
    pairs += [
        (f"kernels of {library}", libraries[0].get(library), libraries[1].get(library))
        for library in sorted({*libraries[0], *libraries[1]})
    ]
    for fact, left, right in pairs:
        if kernel_words(left) != kernel_words(right):
            measured = left is not None and left.evidence == MEASURED
            yield changed(fact, kernel_words(left), kernel_words(right), grave=measured)
    plain: tuple[tuple[str, Callable[[Build], str]], ...] = (
        ("channel", lambda build: build.channel),
        ("pythons", lambda build: " ".join(build.pythons)),
        ("pythons inferred", lambda build: " ".join(build.pythons_inferred)),
        ("cuda", lambda build: build.cuda or ""),
        ("glibc", lambda build: build.glibc or ""),
        ("macos", lambda build: build.macos or ""),
        ("requires torch", lambda build: _requirement(build.requires_torch)),
        ("requires python", lambda build: build.requires_python or ""),
        ("yanked", lambda build: "yes" if build.yanked else "no"),
        ("released", lambda build: build.released or ""),
    )
    for fact, read in plain:
        if read(was) != read(now):
            lost = fact not in ("pythons inferred", "yanked") and bool(read(was))
            grew = fact == "pythons" and set(was.pythons) <= set(now.pythons)
            yield changed(fact, read(was), read(now), grave=lost and not grew)


def weaker(was: Build, now: Build) -> bool:
    """Return whether the existence of a build is known less well than before."""
    return ORDER.index(now.evidence) > ORDER.index(was.evidence)


def _requirement(specifier: str | None) -> str:
    return {"": "no torch", ">=0": "any torch", None: ""}.get(specifier, specifier or "")


def _lists(package: str, old: Catalog, new: Catalog) -> Iterator[Entry]:
    before, after = old.versions(package), new.versions(package)
    for version in sorted({*before, *after}, key=lambda text: (Version(text), text)):
        if (version in before) != (version in after):
            gone = version in before
            yield _entry(REMOVED if gone else ADDED, "version", package, version, grave=gone)
    if old.newest(package) != new.newest(package):
        yield _entry(
            CHANGED,
            "newest",
            package,
            "newest",
            fact="newest",
            before=old.newest(package),
            after=new.newest(package),
            grave=_falls(old.newest(package), new.newest(package)),
        )


def _falls(before: str, after: str) -> bool:
    try:
        return bool(before) and (not after or Version(after) < Version(before))
    except ValueError:  # InvalidVersion, or more digits than Python reads
        return True


def _channels(package: str, old: Catalog, new: Catalog) -> Iterator[Entry]:
    names = sorted({*old.channels(package), *new.channels(package)})
    for channel in names:
        was, now = old.channel_span(package, channel), new.channel_span(package, channel)
        texts = [
            ""
            if span is None
            else f"{span.first}–{span.last}{' closed' if span.closed else ''} [{span.evidence}]"
            for span in (was, now)
        ]
        if channel not in old.channels(package):
            yield _entry(ADDED, "channel", package, channel, after=texts[1])
        elif channel not in new.channels(package):
            yield _entry(REMOVED, "channel", package, channel, before=texts[0], grave=True)
        elif texts[0] != texts[1]:
            yield _entry(
                CHANGED,
                "channel",
                package,
                channel,
                fact="releases",
                before=texts[0],
                after=texts[1],
                grave=was is not None and (now is None or _falls(was.last, now.last)),
            )


def _absences(package: str, old: Catalog, new: Catalog) -> Iterator[Entry]:
    sides = []
    for catalog in (old, new):
        held = raw(catalog, f"builds-{package}.json") if package in catalog.packages() else {}
        sides.append({tuple(row[:3]): row for row in held.get("rows", ())})
    for key in sorted({*sides[0], *sides[1]}, key=lambda key: (Version(key[0]), key[1:])):
        texts = [
            ""
            if key not in side
            else f"{'absent' if side[key][3] is False else 'unknown'} [{side[key][4]}]"
            for side in sides
        ]
        if texts[0] != texts[1]:
            kind = ADDED if not texts[0] else REMOVED if not texts[1] else CHANGED
            fact = "absence" if kind == CHANGED else ""
            yield _entry(
                *(kind, "absence", package, " ".join(key)),
                fact=fact,
                before=texts[0],
                after=texts[1],
            )


def _digests(package: str, old: Catalog, new: Catalog) -> Iterator[Entry]:
    sides: list[dict[tuple[str, str], str]] = []
    for catalog in (old, new):
        name = f"hashes-{package}.json"
        held = raw(catalog, name) if holds(catalog, name) else {"files": []}
        sides.append({(record[2], record[3]): record[4] for record in held["files"]})
    before, after = sides
    for place, file in sorted(set(before) & set(after)):
        if before[place, file] != after[place, file]:
            yield _entry(
                CHANGED,
                "digest",
                package,
                f"{file} on {place}",
                fact="sha256",
                before=before[place, file],
                after=after[place, file],
                grave=True,
            )
    for kind, names in ((ADDED, set(after) - set(before)), (REMOVED, set(before) - set(after))):
        for place, file in sorted(names):
            yield _entry(kind, "digest", package, f"{file} on {place}", grave=kind == REMOVED)


def _partners(old: Catalog, new: Catalog) -> Iterator[Entry]:
    sides = [raw(catalog, "partners.json") for catalog in (old, new)]
    for torch in sorted({*sides[0], *sides[1]}, key=Version):
        lists = [side.get(torch, {}) for side in sides]
        for package in sorted({*lists[0], *lists[1]}):
            before, after = (
                ", ".join(f"{v} {s or ''}{'' if made else ' (accepts it)'}" for v, s, made in found)
                for found in (one.get(package, ()) for one in lists)
            )
            if before != after:
                kind = ADDED if not before else REMOVED if not after else CHANGED
                yield _entry(
                    kind,
                    "partner",
                    package,
                    f"of torch {torch}",
                    fact="partners" if kind == CHANGED else "",
                    before=before,
                    after=after,
                    grave=kind == REMOVED,
                )


Rows = Mapping[tuple[str, str], str]
"""(package or ``""``, name) → text."""


def _table(
    subject: str, file: str, old: Catalog, new: Catalog, read: Callable[[Any], Rows]
) -> Iterator[Entry]:
    if not (holds(old, file) and holds(new, file)):
        return  # a catalog of one's own has no driver tables: torchpin's are used
    before, after = (read(raw(catalog, file)) for catalog in (old, new))
    for package, name in sorted({*before, *after}, key=natural):
        was, now = before.get((package, name), ""), after.get((package, name), "")
        if was == now:
            continue
        kind = ADDED if not was else REMOVED if not now else CHANGED
        yield _entry(
            kind,
            subject,
            package,
            name,
            fact=subject if kind == CHANGED else "",
            before=was,
            after=now,
            grave=kind == REMOVED and subject == "driver",
        )


def natural(key: tuple[str, str]) -> tuple[str, list[tuple[int, str]]]:
    """Return a key that sorts numbers in names as numbers."""
    import re

    parts = re.findall(r"\d+|\D+", key[1])
    return key[0], [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _pins(data: Any) -> Rows:
    return {(row[0], row[1]): f"torch{row[2]}" for row in data["pins"]}


def _health(data: Any) -> Rows:
    rows = {("", f"{r[0]} {r[1]}: {r[2]}"): f"{r[4]}: {r[6]}" for r in data["health"]}
    rows |= {("", f"stale copies: {name}"): "yes" for name in data["stale"]}
    return rows | {("", f"mirrored: {name}"): "yes" for name in data["mirrored"]}


_DRIVER_KEYS = ("package", "cuda", "os", "platform", "capability")
"""What names a record of ``drivers.json``, as far as it has it."""
_KEYS_OF = {"date": (), "branch": ("branch",), "jetpack": ("jetpack",)}


def _drivers(data: Any) -> Rows:
    rows: dict[tuple[str, str], str] = {}
    for record in data:
        keys = _KEYS_OF.get(record["kind"], _DRIVER_KEYS)
        name = " ".join([record["kind"], *(str(record[key]) for key in keys if key in record)])
        rest = {k: v for k, v in record.items() if k not in (*keys, "kind", "sources")}
        rows["", name] = json.dumps(rest, sort_keys=True)
    return rows


def counts(entries: Iterable[Entry]) -> dict[str, dict[str, dict[str, int]]]:
    """Return package → subject → kind → number of differences (changed: of things, not facts)."""
    seen: dict[tuple[str, str, str], set[str]] = {}
    for entry in entries:
        seen.setdefault((entry.package, entry.subject, entry.kind), set()).add(entry.name)
    out: dict[str, dict[str, dict[str, int]]] = {}
    for (package, subject, kind), names in seen.items():
        out.setdefault(package, {}).setdefault(subject, {})[kind] = len(names)
    return out


def open_wheel(path: str, folder: str) -> str:
    """Unpack the catalog of a torchpin wheel into ``folder`` and return where it lies.

    Raises:
        CatalogError: it is no wheel of torchpin.
    """
    import zipfile

    prefix = "torchpin/catalog/data/"
    try:
        with zipfile.ZipFile(path) as archive:
            found = [info for info in archive.infolist() if info.filename.startswith(prefix)]
            found = [info for info in found if info.filename.count("/") == prefix.count("/")]
            found = [info for info in found if info.filename.endswith(".json")]
            if not any(info.filename == f"{prefix}catalog.json" for info in found):
                raise CatalogError("is no wheel of torchpin: it holds no catalog", path=path)
            if len(found) > 200 or sum(info.file_size for info in found) > 256 * 1024 * 1024:
                raise CatalogError("holds a catalog too big to be true", path=path)
            for info in found:
                name = info.filename.removeprefix(prefix)
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(archive.read(info))
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise CatalogError(f"cannot be read as a wheel: {error}", path=path) from error
    return folder
