"""What the stub index serves: recorded file names and METADATA, as plain records.

PyPI's side is what ``tools/record_metadata.py`` read from the index. A channel's files are those
that public lock files prove (``tools/record_channels.py``). Nothing comes from torchpin's catalog,
or the comparison with it would agree with itself.

Made up, because no public record holds it:

- METADATA of a channel's wheel: that of PyPI's wheel of the same version, without the CUDA
  libraries; the tests in ``test_stub_facts.py`` say where that is known to be right.
- Stale copies of general packages on channels (``STALE``): channels are known to mirror some
  packages incompletely; which versions is of no matter to a test of shadowing.
- The wheels of ``nvidia-*`` and ``cuda-*`` packages, from the pins that name them.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

FACTS = Path(__file__).parent / "facts"
FAMILY = ("torch", "torchvision", "torchaudio")
STALE = ("jinja2", "markupsafe", "numpy", "requests")
"""General packages of which every channel holds one old version."""
PYPI = "pypi"


class Wheel(NamedTuple):
    """One file of the stub."""

    home: str
    """``pypi`` or a channel."""
    package: str
    version: str
    filename: str
    requires_python: str | None
    requires: tuple[str, ...]
    extras: tuple[str, ...]
    uploaded: str | None
    yanked: str | bool


def records(name: str) -> list[dict[str, Any]]:
    """Return the records of one fact file."""
    data: list[dict[str, Any]] = json.loads((FACTS / name).read_text("utf-8"))
    return data


def public(version: str) -> str:
    """Return a version without its local label."""
    return Version(version).public


def platform_of(filename: str) -> str:
    """Return the platform word of a wheel file name: ``linux-x86_64``, ``macos-arm64``, ``any``."""
    tail = filename.removesuffix(".whl").rsplit("-", 1)[1]
    machine = next((m for m in ("aarch64", "arm64", "s390x") if m in tail), "x86_64")
    if "linux" in tail:
        return f"linux-{machine}"
    if tail.startswith("win"):
        return f"windows-{machine}"
    return f"macos-{machine}" if tail.startswith("macosx") else "any"


class Metadata(NamedTuple):
    requires: tuple[str, ...]
    extras: tuple[str, ...]


class Known:
    """METADATA by package, public version and platform."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Metadata] = {}
        self._pythons: dict[tuple[str, str], str | None] = {}
        for record in records("pypi.json"):
            filename = record.get("metadata") or record["file"]
            version = str(parse_wheel_filename(filename)[1])
            if "file" in record:
                self._pythons[record["package"], version] = record["requires-python"]
                continue
            value = Metadata(tuple(record["requires"]), tuple(record["extras"]))
            for platform in (platform_of(filename), ""):
                key = (record["package"], version, platform)
                if platform or key not in self._found or "x86_64" in filename:
                    self._found[key] = value

    def of(self, package: str, filename: str) -> Metadata | None:
        """Return METADATA of a wheel: of its own platform if recorded, else of another one."""
        version = public(str(parse_wheel_filename(filename)[1]))
        own = self._found.get((package, version, platform_of(filename)))
        return own or self._found.get((package, version, ""))

    def pythons(self, package: str, version: str) -> str | None:
        """Return Requires-Python of a release."""
        return self._pythons[package, public(version)]


@lru_cache
def known() -> Known:
    """Return the METADATA records, read once."""
    return Known()


def lean_requires(requires: tuple[str, ...]) -> tuple[str, ...]:
    """Return the requirements inside the family."""
    return _kept(requires, PYPI, True)


def _kept(requires: tuple[str, ...], home: str, lean: bool) -> tuple[str, ...]:
    out = []
    for text in requires:
        name = canonicalize_name(Requirement(text).name)
        if name in FAMILY or (not lean and (home == PYPI or name in STALE or name == "triton")):
            if name == "triton" and not (home == PYPI or home.startswith("cu")):
                continue
            out.append(text)
    return tuple(out)


def _cuda_wheels(wheels: list[Wheel]) -> list[Wheel]:
    """Return a wheel for each exact pin on a CUDA library, with the extras that pins name."""
    extras: dict[tuple[str, str], set[str]] = {}
    for wheel in wheels:
        for text in wheel.requires:
            requirement = Requirement(text)
            name = canonicalize_name(requirement.name)
            if not name.startswith(("nvidia-", "cuda-")):
                continue
            versions = [s.version for s in requirement.specifier if s.operator == "=="]
            floors = [s.version for s in requirement.specifier if s.operator in (">=", "~=")]
            version = (versions or floors or ["1.0"])[0].replace(".*", ".0")
            extras.setdefault((name, version), set()).update(requirement.extras)
    return [
        Wheel(
            PYPI,
            name,
            version,
            f"{name.replace('-', '_')}-{version}-py3-none-any.whl",
            ">=3",
            (),
            tuple(sorted(names)),
            "2020-01-01T00:00:00Z",
            False,
        )
        for (name, version), names in sorted(extras.items())
    ]


@lru_cache
def load(lean: bool = False) -> tuple[Wheel, ...]:
    """Return every wheel of the stub; ``lean`` keeps only requirements inside the family."""
    metadata_of = known()
    wheels: list[Wheel] = []
    for record in (*records("pypi.json"), *records("channels.json")):
        if "file" not in record:
            continue
        package, filename = record["package"], record["file"]
        home = record.get("channel", PYPI)
        metadata = metadata_of.of(package, filename)
        if metadata is None or (home != PYPI and any("+" in r for r in metadata.requires)):
            continue
        version = str(parse_wheel_filename(filename)[1])
        wheels.append(
            Wheel(
                home=home,
                package=package,
                version=version,
                filename=filename,
                requires_python=metadata_of.pythons(package, version),
                requires=_kept(metadata.requires, home, lean),
                extras=metadata.extras,
                uploaded=record.get("uploaded"),
                yanked=record.get("yanked", False),
            )
        )
    wheels += _mirrored(wheels)
    wheels += _cuda_wheels(wheels)
    return tuple(wheels)


def _mirrored(wheels: list[Wheel]) -> list[Wheel]:
    """Return the copies of PyPI's general packages on channels: stale ones, and all of triton."""
    channels = sorted({w.home for w in wheels} - {PYPI})
    out = []
    for package in STALE:
        versions = sorted({Version(w.version) for w in wheels if w.package == package})
        if versions:
            copies = [w for w in wheels if w.package == package and w.version == str(versions[0])]
            out += [w._replace(home=channel) for channel in channels for w in copies]
    triton = [w for w in wheels if w.package == "triton"]
    out += [w._replace(home=c) for c in channels if c.startswith("cu") for w in triton]
    return out


def unanswered() -> list[str]:
    """Return channel files that the stub does not serve because no METADATA is recorded."""
    served = {(w.home, w.filename) for w in load()}
    return [
        f"{r['channel']}/{r['file']}"
        for r in records("channels.json")
        if (r["channel"], r["file"]) not in served
    ]
