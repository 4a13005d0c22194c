"""Markers and wheel tags with the values of a target, never of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpin.catalog.model import Build
from torchpin.fleet.model import Python, Target

if TYPE_CHECKING:
    from packaging.markers import Marker

_PLATFORMS = {
    "linux-x86_64": ("linux", "Linux", "x86_64", "posix"),
    "linux-aarch64": ("linux", "Linux", "aarch64", "posix"),
    "windows-x86_64": ("win32", "Windows", "AMD64", "nt"),
    "windows-arm64": ("win32", "Windows", "ARM64", "nt"),
    "macos-arm64": ("darwin", "Darwin", "arm64", "posix"),
    "macos-x86_64": ("darwin", "Darwin", "x86_64", "posix"),
}
_SUPPORTED = tuple(Python(3, minor) for minor in range(10, 16))
"""The Pythons that an undeclared one may be: every one that current wheels are made for."""
_DEFAULT = Python(3, 12)
_PATCH = 99
"""A target declares no patch release; markers see a high one, and a marker whose answer
depends on the patch release is unknown."""

_parsed: dict[str, Marker | None] = {}


def _environment(platform: str, python: Python, patch: int, kernel: str) -> dict[str, str]:
    sys_platform, system, machine, os_name = _PLATFORMS[platform]
    version = f"{python.major}.{python.minor}"
    return {
        "implementation_name": "cpython",
        "implementation_version": f"{version}.{patch}",
        "os_name": os_name,
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_release": kernel,
        "platform_system": system,
        "platform_version": kernel,
        "python_full_version": f"{version}.{patch}",
        "python_version": version,
        "sys_platform": sys_platform,
        "extra": "",
    }


def marker_environment(target: Target) -> dict[str, str]:
    """Return the marker environment (PEP 508) of ``target``; an undeclared Python reads 3.12."""
    return _environment(target.group.platform, target.python or _DEFAULT, _PATCH, "")


def _parse(marker: str) -> Marker | None:
    if marker not in _parsed:
        from packaging.markers import Marker as Parsed

        try:
            _parsed[marker] = Parsed(marker)
        except (ValueError, RecursionError):  # InvalidMarker is a ValueError
            _parsed[marker] = None
    return _parsed[marker]


def marker_holds(marker: str | None, target: Target, extra: str = "") -> bool | None:
    """Return whether ``marker`` is true on ``target``; None if that cannot be known.

    Not known: the text is no valid marker, or its answer differs between the values that the
    target leaves open (an undeclared Python, the patch release, the kernel's release).
    """
    if marker is None or not marker.strip():
        return True
    parsed = _parse(marker)
    if parsed is None:
        return None
    from packaging.markers import UndefinedEnvironmentName

    pythons = (target.python,) if target.python is not None else _SUPPORTED
    patches = (_PATCH, 0) if "_version" in marker else (_PATCH,)
    kernels = ("0", "99999") if "platform_" in marker else ("0",)
    answers: set[bool] = set()
    for python in pythons:
        for patch in patches:
            for kernel in kernels:
                values = _environment(target.group.platform, python, patch, kernel)
                values["extra"] = extra
                try:
                    answers.add(parsed.evaluate(values))
                except (ValueError, UndefinedEnvironmentName):
                    return None  # UndefinedComparison, or a number that Python refuses to read
                if len(answers) > 1:
                    return None
    return answers.pop()


def _release(text: str) -> tuple[int, ...]:
    """Return a dotted version as numbers that compare: ``14`` equals ``14.0``."""
    numbers = [int(part) if part.isdigit() else 0 for part in text.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def python_fits(build: Build, python: Python | None) -> tuple[bool, bool]:
    """Return whether the tags of ``build`` admit ``python``, and whether that is inferred.

    The known tags of a channel's wheels are a lower bound: a missing one is inferred to be missing.
    """
    if python is None:
        return True, False
    if build.requires_python:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            admitted = SpecifierSet(build.requires_python)
        except InvalidSpecifier:
            admitted = SpecifierSet("")
        if not admitted.contains(f"{python.major}.{python.minor}.{_PATCH}", prereleases=True):
            return False, False
    fits = False
    inferred = False
    for tags, guessed in ((build.pythons, False), (build.pythons_inferred, True)):
        for tag in tags:
            if tag_admits(tag, python):
                fits, inferred = True, guessed
                break
        if fits:
            break
    if fits:
        return True, inferred
    if not build.pythons and not build.pythons_inferred:
        return True, True
    return False, build.home == "channel" and not _outside(build, python)


def _outside(build: Build, python: Python) -> bool:
    """Return whether ``python`` is far from every tag that the build may have.

    A channel now and then holds one Python more than PyPI (torch 2.5.1 for 3.13), never two.
    """
    minors = [
        int(digits[1:])
        for tag in (*build.pythons, *build.pythons_inferred)
        if tag.startswith("cp3") and (digits := tag[2:].split("_")[0].rstrip("tm")).isdigit()
    ]
    return bool(minors) and not min(minors) <= python.minor <= max(minors) + 1


def tag_admits(tag: str, python: Python) -> bool:
    """Return whether one Python tag of the catalog admits ``python``.

    ``py3`` and ``py39`` admit every later Python 3; ``cp39-abi3`` every later CPython with the
    GIL (PEP 425, PEP 703: free-threaded CPython has no abi3).
    """
    if tag == python.tag:
        return True
    if tag.startswith("py3"):
        minor = tag[3:]
        return python.major == 3 and (not minor or int(minor) <= python.minor)
    if tag.startswith("cp3") and tag.endswith("abi3") and not python.free_threaded:
        minor = tag[3 : -len("abi3")].rstrip("-_.")
        return minor.isdigit() and int(minor) <= python.minor
    return False


def wheel_fits(build: Build, target: Target) -> tuple[bool, str, bool]:
    """Return whether ``build`` can be installed on ``target``.

    Returns:
        Whether it fits; else the kind of miss (``platform``, ``python``, ``glibc``), ``""`` if it
        fits; and whether the answer rests on inferred tags.
    """
    group = target.group
    if build.platform != group.platform:
        return False, "platform", False
    if group.platform.startswith("linux") and group.musl:
        return False, "glibc", False
    fits, inferred = python_fits(build, target.python)
    if not fits:
        return False, "python", inferred
    if build.glibc and group.glibc and _release(build.glibc) > _release(group.glibc):
        return False, "glibc", inferred
    if build.macos and group.macos and _release(build.macos) > _release(group.macos):
        return False, "platform", inferred
    return True, "", inferred
