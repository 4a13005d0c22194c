"""Assemble builds, absences and channel spans from facts and measurements (pure)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from packaging.utils import parse_sdist_filename
from packaging.version import Version
from tools._contents import Content
from tools._facts import (
    PLATFORM,
    Facts,
    Row,
    Wheel,
    order_pythons,
    partners,
    pypi_wheels,
)
from tools._pypi import (
    KEY,
    common,
    content_of,
    kernels_of_row,
    key_of,
    lowest,
    pypi_builds,
)
from tools._spans import Span, absences, spans
from tools._wheels import Read

from torchpin.catalog.existence import file_list
from torchpin.catalog.labels import cuda_of
from torchpin.catalog.model import FAMILY, Build
from torchpin.catalog.records import order
from torchpin.evidence import INFERRED, LOCKFILE, ORDER

ELSEWHERE = {"torch": ["1.8.2"], "torchvision": ["0.9.2"], "torchaudio": ["0.8.2"]}
"""Published neither on PyPI nor on a channel that the facts hold."""
UNLABELLED = ("xformers", "triton", "pytorch-triton-rocm", "pytorch-triton-xpu", "torchtext")
"""Packages whose channel wheels carry no label where no file name is known."""


class Part(NamedTuple):
    """All that is known of one package."""

    package: str
    builds: list[Build]
    rows: list[list[Any]]
    """[version, channel, platform, exists (false or null), evidence, source]"""
    pypi: list[str]
    elsewhere: list[str]
    spans: list[Span]
    newest: str
    files: list[Wheel]
    """Wheels whose digest is known."""
    sdists: tuple[str, ...] = ()
    """Versions with a source archive on PyPI."""


class Assembly(NamedTuple):
    parts: list[Part]
    partners: dict[str, Any]
    contradictions: list[str]


def source_versions(package: str, files: list[list[Any]]) -> tuple[str, ...]:
    """Return the versions of which a PyPI file list names a source archive, ascending."""
    found = set()
    for name, *_ in files:
        if not name.endswith((".tar.gz", ".zip")):
            continue
        try:
            own, version = parse_sdist_filename(name)
        except ValueError:
            continue
        if own == package:
            found.add(version)
    return tuple(str(version) for version in sorted(found))


def assemble(facts: Facts, measured: dict[str, Any]) -> Assembly:
    """Return everything that the data files hold."""
    contradictions: list[str] = []
    index = measured["index"]
    listing = file_list(measured["dates"]["index"])
    versions = {p: list(index[p]["versions"]) for p in index}
    pairs = partners(facts.pairs, versions)
    defaults = {
        (pair["torch"], PLATFORM[place]): label.partition(" ")[0]
        for pair in facts.pairs
        for place, label in pair["pypi_default"].items()
    }
    contents = {row[1]: Content(*row) for row in measured["contents"]["rows"]}
    reads = {row[1]: Read(*row) for row in measured["wheels"]["rows"]}
    contents |= {name: content_of(read) for name, read in reads.items() if name not in contents}
    packages = sorted({r.package for r in facts.rows if r.exists} | set(index))
    parts = []
    for package in packages:
        rows = [r for r in facts.rows if r.package == package]
        files = pypi_wheels(package, index.get(package, {"files": []})["files"])
        locked = [w for w in facts.locked if w.package == package]
        pairs_here = {f[0]: f[1] for t in pairs.values() for f in t.get(package, ()) if f[2] == 1}
        table = pypi_builds(
            package, rows, files, pairs_here, defaults, listing, contents, reads, contradictions
        )
        channel_builds(package, rows, files, table)
        lock_builds(package, rows, locked, table, contradictions)
        builds = [with_libraries(b, table) if package == "torch" else b for b in table.values()]
        builds.sort(key=order)
        absent = absences(package, rows, facts.health)
        pypi = versions.get(package, [])
        stable = [
            v
            for v in pypi
            if not Version(v).is_prerelease
            and not all(w.yanked for w in files if same(w.version, v))
        ]
        known = set(map(Version, pypi)) | {Version(b.version) for b in builds}
        parts.append(
            Part(
                package,
                builds,
                absent,
                pypi,
                ELSEWHERE.get(package, []),
                spans(package, builds, absent, sorted(known), facts.health),
                stable[-1] if stable else "",
                [*files, *(w for w in locked if w.proved and w.sha256)],
                source_versions(package, index.get(package, {"files": []})["files"]),
            )
        )
    made = {
        (r.raw["built_for_torch"], r.package, r.version)
        for r in facts.rows
        if r.raw.get("built_for_torch")
    }
    for torch, entry in pairs.items():
        for package, found in entry.items():
            for item in found:
                item[2] = int(bool(item[2]) or (torch, package, item[0]) in made)
            found.sort(key=lambda f: -int(f[2]))
    return Assembly(parts, pairs, sorted(set(contradictions)))


def same(left: str, right: str) -> bool:
    return Version(left) == Version(right)


def derived_label(package: str, version: str, channel: str, platform: str, raw: Any) -> list[str]:
    """Return the labels of the file names of a channel build.

    macOS wheels carry none; Linux aarch64 wheels carry one from torch 2.6.0, torchvision 0.25.0
    and torchaudio 2.10.0 on (lock files; pytorch/test-infra@bc22a9c8c).
    """
    if raw.get("file_versions"):
        return [v.partition("+")[2] for v in raw["file_versions"]]
    if platform.startswith("macos") or channel == "root" or package in UNLABELLED:
        return [""]
    since = {"torch": "2.6.0", "torchvision": "0.25.0", "torchaudio": "2.10.0"}.get(package, "0")
    if platform == "linux-aarch64" and Version(version) < Version(since):
        return [""]
    return [channel]


def channel_builds(
    package: str, rows: list[Row], files: list[Wheel], table: dict[KEY, Build]
) -> None:
    """Add the builds of the channels."""
    tags: dict[tuple[str, str], set[str]] = defaultdict(set)
    python_of: dict[str, list[str | None]] = defaultdict(list)
    stable: dict[str, set[str]] = defaultdict(set)  # rows name no ABI; a release has one
    for file in files:
        stable[file.version].update(t for t in file.pythons if t.endswith("-abi3"))
        python_of[file.version].append(file.requires_python)
        for platform in file.platforms:
            tags[file.version, platform].update(file.pythons)
    of_pypi = {(b.version, b.platform): b for b in table.values() if b.home == "pypi"}
    for row in rows:
        if not row.exists or row.channel in ("pypi", "*"):
            continue
        if row.channel == "root" and package in FAMILY:
            continue
        raw = row.raw
        said = {
            f"{tag}-abi3" if f"{tag}-abi3" in stable[row.version] else tag for tag in raw["pythons"]
        }
        guess = (
            "inferred" in (raw.get("pythons_basis") or "") and "lower" not in (raw["pythons_basis"])
        )
        proved = set() if guess or row.evidence == INFERRED else said
        likely = said | set(raw.get("pythons_pypi") or ()) | tags[row.version, row.platform]
        if "3.15/3.15t" in (raw.get("note") or ""):
            likely |= {"cp315", "cp315t"}
        requires: str | None = None
        if "requires_torch" in raw:
            requires = raw["requires_torch"] or ""
        twin = of_pypi.get((row.version, row.platform))
        if twin is not None and twin.requires_torch is not None:
            unlabelled = derived_label(package, row.version, row.channel, row.platform, raw) == [""]
            arm = row.platform == "linux-aarch64" and twin.channel == row.channel and unlabelled
            if arm or (package in UNLABELLED and requires is None):
                requires = twin.requires_torch  # the same file, or the same METADATA
        tag = [t for t in (raw.get("manylinux") or ()) if "macosx" in t]
        macos = [re.sub(r"macosx_(\d+)_(\d+)_.*", r"\1.\2", t) for t in tag]
        for label in derived_label(package, row.version, row.channel, row.platform, raw):
            build = Build(
                package=package,
                version=row.version,
                label=label,
                channel=row.channel,
                home="channel",
                platform=row.platform,
                pythons=order_pythons(proved),
                pythons_inferred=order_pythons(likely - proved),
                kernels=kernels_of_row(raw),
                libraries=(),
                cuda=cuda_of(row.channel),
                glibc=raw.get("glibc_floor"),
                macos=lowest(macos),
                requires_torch=requires,
                requires_python=common(python_of[row.version]),
                yanked=False,
                released=None,
                evidence=row.evidence,
                source=row.source,
            )
            table[key_of(build)] = build


def lock_builds(
    package: str,
    rows: list[Row],
    locked: list[Wheel],
    table: dict[KEY, Build],
    contradictions: list[str],
) -> None:
    """Let proved file names win: they prove tags, labels and builds that rows do not hold."""
    denied = {(r.version, r.channel, r.platform) for r in rows if r.exists is False}
    labels: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for wheel in locked:
        if wheel.channel == "root" or not wheel.proved:
            continue
        for platform in wheel.platforms:
            place = (wheel.version, wheel.channel, platform)
            labels[place].add(wheel.label)
            key = (wheel.version, "channel", wheel.channel, platform, wheel.label)
            build = table.get(key)
            if build is None:
                if place in denied:
                    contradictions.append(f"{package} {place}: rows deny the locked {wheel.name}")
                twin = next((b for k, b in table.items() if k[:4] == key[:4]), None)
                if twin is not None:
                    contradictions.append(
                        f"{package} {place}: file name says label {wheel.label!r}, "
                        f"not {twin.label!r}"
                    )
                else:
                    contradictions.append(f"{package} {place}: only a lock file knows this build")
                base = twin or empty(package, wheel, platform)
                build = base._replace(label=wheel.label, pythons=(), pythons_inferred=())
            proved = {*build.pythons, *wheel.pythons}
            table[key] = build._replace(
                pythons=order_pythons(proved),
                pythons_inferred=order_pythons({*build.pythons_inferred} - proved),
                evidence=min(build.evidence, LOCKFILE, key=ORDER.index),
                glibc=build.glibc or wheel.glibc,
                macos=build.macos or wheel.macos,
            )
    for key in [k for k in table if k[1] == "channel"]:
        seen = labels.get((key[0], key[2], key[3]))
        if seen and key[4] not in seen and not rows_name(rows, key):
            del table[key]  # the derived label is refuted by the real file names


def rows_name(rows: list[Row], key: KEY) -> bool:
    """Return whether a row itself names this label in a file version that was seen."""
    wanted = f"{key[0]}+{key[4]}" if key[4] else key[0]
    return any(
        (r.version, r.channel, r.platform) == (key[0], key[2], key[3])
        and wanted in (r.raw.get("file_versions") or ())
        and "naming rule" not in (r.raw.get("file_versions_basis") or "")
        for r in rows
    )


def empty(package: str, wheel: Wheel, platform: str) -> Build:
    return Build(
        package=package,
        version=wheel.version,
        label=wheel.label,
        channel=wheel.channel,
        home="channel",
        platform=platform,
        pythons=(),
        pythons_inferred=(),
        kernels=None,
        libraries=(),
        cuda=cuda_of(wheel.channel),
        glibc=wheel.glibc,
        macos=wheel.macos,
        requires_torch=None,
        requires_python=None,
        yanked=False,
        released=None,
        evidence=LOCKFILE,
        source=f"a public lock file names {wheel.name} sha256:{wheel.sha256}",
    )


def with_libraries(build: Build, table: Mapping[KEY, Build]) -> Build:
    """Add the libraries of PyPI's wheel of the same version, platform and CUDA."""
    if build.home == "pypi":
        return build
    twin = next(
        (
            b
            for b in table.values()
            if (b.version, b.home, b.platform) == (build.version, "pypi", build.platform)
        ),
        None,
    )
    if twin is None or twin.channel != build.channel:
        return build
    return build._replace(libraries=twin.libraries)
