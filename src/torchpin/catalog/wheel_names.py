"""What the file name of a wheel says: version, label, platforms, Python tags, glibc, macOS."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.utils import parse_wheel_filename
from packaging.version import Version

from torchpin.catalog.model import PLATFORMS
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_MACOS = regex(r"macosx_(\d+)_(\d+)_(arm64|x86_64|universal2)")
_LINUX = regex(r"(manylinux\w*?|linux)_?(x86_64|aarch64)")
_NEWER = regex(r"manylinux_(\d+)_(\d+)")
_LEGACY = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
"""PEP 513, 571 and 599."""
_WINDOWS = {"win_amd64": "windows-x86_64", "win_arm64": "windows-arm64"}
_TAG = regex(r"([a-z]+)(\d)(\d*)(t?|-abi3)")


class WheelName(NamedTuple):
    """A wheel's file name, read."""

    package: str
    version: str
    """Public version, in normal form."""
    label: str
    platforms: tuple[str, ...]
    """Of ``PLATFORMS``, in their order; empty: for none of them."""
    pythons: tuple[str, ...]
    """``cp311``, ``cp313t``, ``py3``; of the stable ABI ``cp39-abi3``."""
    glibc: str | None
    """The lowest that a tag admits."""
    macos: str | None


def read_name(name: str) -> WheelName | None:
    """Return what a file name says; None if it is not the name of a wheel."""
    try:
        package, version, _, tags = parse_wheel_filename(name)
    except ValueError:  # InvalidWheelFilename, InvalidVersion, or too many digits
        return None
    pythons = set()
    for tag in tags:
        free = tag.interpreter.startswith("cp") and tag.abi == f"{tag.interpreter}t"
        stable = f"{tag.interpreter}-abi3" if tag.abi == "abi3" else tag.interpreter
        pythons.add(tag.abi if free else stable)
    platforms, glibc, macos = places(tag.platform for tag in tags)
    return WheelName(
        str(package),
        version.public,
        version.local or "",
        platforms,
        order_pythons(pythons),
        glibc,
        macos,
    )


def places(tags: Iterable[str]) -> tuple[tuple[str, ...], str | None, str | None]:
    """Return the platforms of platform tags, the glibc floor and the lowest macOS version."""
    found: set[str] = set()
    glibc: list[Version] = []
    macos: list[Version] = []
    for tag in tags:
        if tag == "any":
            found.update(PLATFORMS)
        elif tag in _WINDOWS:
            found.add(_WINDOWS[tag])
        elif match := _MACOS.fullmatch(tag):
            machines = ("arm64", "x86_64") if match[3] == "universal2" else (match[3],)
            found.update(f"macos-{machine}" for machine in machines)
            macos.append(Version(f"{match[1]}.{match[2]}"))
        elif match := _LINUX.fullmatch(tag):
            found.add(f"linux-{match[2]}")
            kind = match[1].rstrip("_")
            if kind in _LEGACY:
                glibc.append(Version(_LEGACY[kind]))
            elif newer := _NEWER.fullmatch(kind):
                glibc.append(Version(f"{newer[1]}.{newer[2]}"))
    return (
        tuple(platform for platform in PLATFORMS if platform in found),
        str(min(glibc)) if glibc else None,
        str(min(macos)) if macos else None,
    )


def order_pythons(tags: Iterable[str]) -> tuple[str, ...]:
    """Return Python tags in order: ``cp39``, ``cp310``, ``cp313``, ``cp313t``."""

    def key(tag: str) -> tuple[str, int, int, str]:
        match = _TAG.fullmatch(tag)
        if not match:
            return (tag, 0, 0, "")
        return (match[1], int(match[2]), int(match[3] or 0), match[4])

    return tuple(sorted(set(tags), key=key))
