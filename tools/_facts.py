"""Read the gathered facts and bring them to the words of the catalog."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlparse

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version
from tools._common import FloorError, digest, unique

FACTS = (
    "torch_channels.json",
    "companion_channels.json",
    "torch_companions.json",
    "channel_health.json",
    "lockfile_wheels.json",
)
EVIDENCE = {
    "measured": "measured",
    "lockfile": "lockfile",
    "official-doc": "published",
    "build-script": "published",
    "inferred": "inferred",
}
PLATFORM = {
    "linux_x86_64": "linux-x86_64",
    "linux_aarch64": "linux-aarch64",
    "win_amd64": "windows-x86_64",
    "win_arm64": "windows-arm64",
    "macos_arm64": "macos-arm64",
    "macos_x86_64": "macos-x86_64",
}
PLATFORMS = tuple(PLATFORM.values())
TEST_PAGES = ("test", "variant")
"""Pages that are no release channel: release candidates and experimental wheel variants."""
HOSTS = ("github.com", "pytorch.org", "dev-discuss.pytorch.org", "download.pytorch.org")


class Row(NamedTuple):
    """One row of a channel table; ``exists`` None: unknown."""

    package: str
    version: str
    channel: str
    """``pypi``, a channel, ``root`` or ``*``."""
    platform: str
    """One of PLATFORMS or ``*``."""
    exists: bool | None
    evidence: str
    source: str
    raw: dict[str, Any]


class Wheel(NamedTuple):
    """One file of PyPI or of a lock file."""

    package: str
    version: str
    label: str
    channel: str
    platforms: tuple[str, ...]
    pythons: tuple[str, ...]
    name: str
    sha256: str
    proved: bool
    glibc: str | None
    macos: str | None
    date: str = ""
    yanked: bool = False
    requires_python: str | None = None


class Facts(NamedTuple):
    rows: list[Row]
    pairs: list[dict[str, Any]]
    health: list[dict[str, Any]]
    locked: list[Wheel]
    digests: dict[str, str]


def read_facts(folder: Path) -> Facts:
    """Read the five fact files.

    Raises:
        FloorError: a file is missing or does not have its shape.
    """
    raw: dict[str, list[dict[str, Any]]] = {}
    digests = {}
    for name in FACTS:
        path = folder / name
        if not path.is_file():
            raise FloorError(f"{name} is missing in the facts folder")
        data = path.read_bytes()
        digests[name] = digest(data)
        raw[name] = json.loads(data)
        if not isinstance(raw[name], list) or not all(isinstance(r, dict) for r in raw[name]):
            raise FloorError(f"{name} is not a list of records")
    rows = [row for r in raw["torch_channels.json"] for row in read_row(r, "torch", r["torch"])]
    rows += [
        row
        for r in raw["companion_channels.json"]
        for row in read_row(r, canonicalize_name(r["package"]), r["version"])
    ]
    locked = [w for r in raw["lockfile_wheels.json"] if (w := locked_wheel(r)) is not None]
    return Facts(
        rows, raw["torch_companions.json"], raw["channel_health.json"], locked, dict(digests)
    )


def read_row(raw: dict[str, Any], package: str, version: str) -> list[Row]:
    """Return the rows of one record: one a platform for a wheel that fits any platform."""
    channel = raw["channel"]
    if channel.partition("/")[0] in TEST_PAGES:
        return []
    platform = raw["platform"]
    if platform == "*":
        platforms: tuple[str, ...] = ("*",)
    elif platform == "any":
        everywhere = channel in ("cpu", "pypi", "root")
        platforms = tuple(p for p in PLATFORMS if everywhere or not p.startswith("macos"))
    elif platform in PLATFORM:
        platforms = (PLATFORM[platform],)
    else:
        raise FloorError(f"unknown platform {platform!r} of {package} {version}")
    if raw["confidence"] not in EVIDENCE:
        raise FloorError(f"unknown confidence {raw['confidence']!r} of {package} {version}")
    source = sources(raw["source"])
    if note := raw.get("note"):
        source = f"{source} [{note}]"
    return [
        Row(package, version, channel, p, raw["exists"], EVIDENCE[raw["confidence"]], source, raw)
        for p in platforms
    ]


def sources(items: Iterable[str] | str) -> str:
    """Join sources; of many lock files that prove the same, the first four are named."""
    listed = unique([items] if isinstance(items, str) else items)
    for item in listed:
        for url in re.findall(r"https?://\S+", item):
            host = urlparse(url).hostname or ""
            if host not in HOSTS:
                raise FloorError(f"a source names the host {host}")
    if len(listed) > 4:
        listed = [*listed[:4], f"and {len(listed) - 4} more"]
    return "; ".join(listed)


def places(tags: Iterable[str]) -> tuple[tuple[str, ...], str | None, str | None]:
    """Return the platforms of wheel tags, the glibc floor and the lowest macOS version."""
    found: list[str] = []
    glibc: list[Version] = []
    macos: list[Version] = []
    legacy = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
    for tag in tags:
        if tag == "any":
            found += PLATFORMS
        elif tag in ("win_amd64", "win_arm64"):
            found.append(PLATFORM[tag])
        elif match := re.fullmatch(r"macosx_(\d+)_(\d+)_(arm64|x86_64|universal2)", tag):
            machines = ("arm64", "x86_64") if match[3] == "universal2" else (match[3],)
            found += [f"macos-{m}" for m in machines]
            macos.append(Version(f"{match[1]}.{match[2]}"))
        elif match := re.fullmatch(r"(manylinux\w*?|linux)_?(x86_64|aarch64)", tag):
            found.append(f"linux-{match[2]}")
            kind = match[1].rstrip("_")
            if kind in legacy:
                glibc.append(Version(legacy[kind]))
            elif newer := re.fullmatch(r"manylinux_(\d+)_(\d+)", kind):
                glibc.append(Version(f"{newer[1]}.{newer[2]}"))
    return (
        tuple(p for p in PLATFORMS if p in found),
        str(min(glibc)) if glibc else None,
        str(min(macos)) if macos else None,
    )


def tag_names(name: str) -> tuple[tuple[str, ...], list[str]]:
    """Return Python tags and platform tags of a wheel name.

    Python tags are ``cp311``, ``cp313t``, ``py3`` and, of the stable ABI, ``cp39-abi3``.
    """
    _, _, _, tags = parse_wheel_filename(name)
    pythons = set()
    for tag in tags:
        free = tag.interpreter.startswith("cp") and tag.abi == f"{tag.interpreter}t"
        stable = f"{tag.interpreter}-abi3" if tag.abi == "abi3" else tag.interpreter
        pythons.add(tag.abi if free else stable)
    return order_pythons(pythons), sorted({t.platform for t in tags})


def order_pythons(tags: Iterable[str]) -> tuple[str, ...]:
    def key(tag: str) -> tuple[str, int, int, str]:
        match = re.fullmatch(r"([a-z]+)(\d)(\d*)(t?|-abi3)", tag)
        if not match:
            return (tag, 0, 0, "")
        return (match[1], int(match[2]), int(match[3] or 0), match[4])

    return tuple(sorted(set(tags), key=key))


def locked_wheel(raw: dict[str, Any]) -> Wheel | None:
    """Return a wheel of a public lock file; None off the release channels and known platforms."""
    folder, _, name = unquote(urlparse(raw["url"]).path).rpartition("/")
    channel = folder.rpartition("/whl")[2].strip("/") or "root"
    if channel.partition("/")[0] in TEST_PAGES or not name.endswith(".whl"):
        return None
    package, version, _, _ = parse_wheel_filename(name)
    pythons, tags = tag_names(name)
    where, glibc, macos = places(tags)
    if not where:
        return None
    return Wheel(
        package=str(package),
        version=version.public,
        label=version.local or "",
        channel=channel,
        platforms=where,
        pythons=pythons,
        name=name,
        sha256=raw.get("sha256") or "",
        proved=raw["confidence"] == "lockfile",
        glibc=glibc,
        macos=macos,
    )


def pypi_wheels(package: str, files: list[list[Any]]) -> list[Wheel]:
    """Return the wheels of a PyPI file list as recorded by ``measure_wheels.py``."""
    out = []
    for name, sha256, date, yanked, requires_python in files:
        if not name.endswith(".whl"):
            continue
        try:
            _, version, _, _ = parse_wheel_filename(name)
        except ValueError:
            continue
        pythons, tags = tag_names(name)
        where, glibc, macos = places(tags)
        if where:
            out.append(
                Wheel(
                    package,
                    str(version),
                    version.local or "",
                    "pypi",
                    where,
                    pythons,
                    name,
                    sha256,
                    True,
                    glibc,
                    macos,
                    date,
                    bool(yanked),
                    requires_python,
                )
            )
    return out


def partners(pairs: list[dict[str, Any]], versions: dict[str, list[str]]) -> dict[str, Any]:
    """Return ``{torch: {package: [[version, specifier, made for it], …]}}`` from the pair table.

    The made-for-it version comes first, then the newest first.
    """
    out: dict[str, Any] = {}
    for pair in pairs:
        torch = pair["torch"]
        entry: dict[str, list[list[Any]]] = {}
        for package in sorted(set(pair) & set(versions) - {"torch"}):
            listed = pair[package]
            exact = listed.get("exact_pin", []) if isinstance(listed, dict) else []
            other = (
                [*listed.get("range", []), *listed.get("unpinned", [])]
                if isinstance(listed, dict)
                else listed
            )
            found = [[v, f"=={torch}", 1] for v in exact]
            if package == "triton":
                found = [[v, None, 1] for v in asked(other, "triton", versions[package])]
                other = []
            for text in other:
                head, _, rest = text.partition(" ")
                match = re.match(r"\(torch\s*([^)]*)\)", rest)
                specifier = match[1] if match else None
                if specifier:
                    SpecifierSet(specifier)
                for version in versions[package]:
                    if version == head or (head.count(".") == 1 and in_line(version, head)):
                        found.append([version, specifier, 0])
            known = [f for f in found if f[0] in versions[package]]
            known.sort(key=lambda f: Version(f[0]), reverse=True)
            known.sort(key=lambda f: -int(f[2]))
            if known:
                entry[package] = known
        out[torch] = entry
    return out


def asked(requirements: Iterable[str], name: str, versions: list[str]) -> list[str]:
    """Return the versions that requirements like ``triton (==2.0.0) ; …`` accept."""
    wanted = [Requirement(text) for text in requirements if text.startswith(name)]
    return [v for v in versions if any(r.specifier.contains(v) for r in wanted)]


def in_line(version: str, line: str) -> bool:
    return Version(version).release[:2] == Version(line).release
