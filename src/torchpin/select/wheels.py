"""What the file name of a wheel says (PEP 427)."""

from __future__ import annotations

import re

from packaging.version import Version

from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.select.channels import unescape

_CPYTHON = regex(r"cp3\d+")


class WheelName(NamedTuple):
    """The parts of a wheel's file name that decide where it installs."""

    project: str
    """Canonical name."""
    version: str
    """Public version."""
    label: str
    pythons: tuple[str, ...]
    """Tags in the catalog's words: ``cp311``, ``cp314t``, ``py3``."""
    platforms: tuple[str, ...]
    """Of ``catalog.model.PLATFORMS``; empty for one that torchpin does not know."""


def wheel_name(url: str) -> WheelName | None:
    """Return what the file name at the end of ``url`` (or path) says; None if it is no wheel."""
    file = unescape(re.split(r"[?#]", url, maxsplit=1)[0]).replace("\\", "/").rpartition("/")[2]
    if not file.endswith(".whl"):
        return None
    parts = file[: -len(".whl")].split("-")
    if len(parts) not in (5, 6):
        return None
    try:
        version = Version(parts[1].replace("_", "+", 1) if "+" not in parts[1] else parts[1])
    except ValueError:  # InvalidVersion, or a number that Python refuses to read
        return None
    tags, abis, places = parts[-3].split("."), parts[-2].split("."), parts[-1].split(".")
    pythons: list[str] = []
    for tag in tags:
        if "abi3" in abis and _CPYTHON.match(tag):
            pythons.append(f"{tag}-abi3")
        elif any(abi.endswith("t") and _CPYTHON.match(abi) for abi in abis):
            pythons.append(f"{tag}t")
        else:
            pythons.append(tag)
    platforms: list[str] = []
    for place in places:
        platform = _platform(place)
        if platform and platform not in platforms:
            platforms.append(platform)
    return WheelName(
        re.sub(r"[-_.]+", "-", parts[0]).lower(),
        version.public,
        version.local or "",
        tuple(pythons),
        tuple(platforms),
    )


def _platform(tag: str) -> str | None:
    machine = {"x86_64": "x86_64", "aarch64": "aarch64", "arm64": "arm64", "amd64": "x86_64"}
    for ending, word in machine.items():
        if tag.endswith("_" + ending):
            if tag.startswith(("linux", "manylinux", "musllinux")):
                return f"linux-{word}"
            if tag.startswith("win"):
                return f"windows-{word}"
            if tag.startswith("macosx"):
                return f"macos-{word}"
    return None
