"""Read the single values of a profile: Pythons, platforms, versions. Each says what it accepts."""

from __future__ import annotations

import re

from torchpin.catalog.model import PLATFORMS
from torchpin.errors import ConfigError
from torchpin.fleet.model import Python
from torchpin.patterns import regex

RELEASED_MINORS = range(8, 16)
"""CPython 3.8 to 3.15: the released minors (python.org, 2026-10) that a specifier stands for."""
OLDEST_MINOR = 6
"""torch 1.8, the oldest release in the catalog, has wheels for CPython 3.6."""
NEWEST_MINOR = 20
FREE_THREADED_FROM = 13
"""PEP 703: the first release with a free-threaded build."""

_PYTHON = regex(r"(?:cp|py|python ?)?([0-9]{1,3})\.([0-9]{1,3})(?:\.[0-9]+)?(t?)")
_TAG = regex(r"cp([0-9])([0-9]{1,2})(t?)")
_OPERATOR = regex(r"[<>=!~]")
_DRIVER = regex(r"r?([0-9]{3})(?:\.[0-9]{1,3}){0,2}", re.I)
_WDDM = regex(r"[0-9]{2}\.[0-9]{1,2}\.[0-9]{0,2}([0-9])\.([0-9]{4})")


def parse_pythons(
    value: object, *, path: str | None = None, line: int | None = None
) -> tuple[Python, ...]:
    """Return the Pythons that ``value`` names, ascending.

    Args:
        value: a version (``3.11``, ``3.14t``), a specifier (``>=3.10,<3.13``: every released
            minor with a release that it admits), or a list of these.
        path: file of the value, for the error.
        line: line of the value, for the error.

    Raises:
        ConfigError: not a version, or a specifier that admits no released minor.
    """
    items = value if isinstance(value, list) else [value]
    if not items:
        raise ConfigError(
            "python is an empty list", path=path, line=line, hint="leave the key out, or name one"
        )
    found: set[Python] = set()
    for item in items:
        if not isinstance(item, str):
            raise ConfigError(
                f"python must be a string or a list of strings, not {kind(item)}",
                path=path,
                line=line,
                hint=f'write python = "{item}"' if isinstance(item, float) else "",
            )
        found.update(_pythons(item.strip(), path, line))
    return tuple(sorted(found))


def _pythons(text: str, path: str | None, line: int | None) -> list[Python]:
    hint = 'write a version ("3.11", "3.14t"), a specifier (">=3.10,<3.13") or a list of these'
    if _OPERATOR.search(text):
        return _admitted(text, path, line, hint)
    match = _PYTHON.fullmatch(text) or _TAG.fullmatch(text)
    if match is None:
        raise ConfigError(f"{quote(text)} is no Python version", path=path, line=line, hint=hint)
    major, minor, threaded = int(match.group(1)), int(match.group(2)), bool(match.group(3))
    if major != 3 or not OLDEST_MINOR <= minor <= NEWEST_MINOR:
        raise ConfigError(
            f"there is no PyTorch wheel for Python {major}.{minor}",
            path=path,
            line=line,
            hint=f"released: 3.{RELEASED_MINORS[0]} to 3.{RELEASED_MINORS[-1]}",
        )
    if threaded and minor < FREE_THREADED_FROM:
        raise ConfigError(
            f"Python {major}.{minor} has no free-threaded build",
            path=path,
            line=line,
            hint=f"free-threaded builds begin with 3.{FREE_THREADED_FROM}t",
        )
    return [Python(major, minor, threaded)]


def _admitted(text: str, path: str | None, line: int | None, hint: str) -> list[Python]:
    from packaging.specifiers import SpecifierSet

    try:
        specifier = SpecifierSet(text)
        specifier.contains("3.0")
    except ValueError as error:  # InvalidSpecifier, or a number that Python refuses to read
        raise ConfigError(
            f"{quote(text)} is no version specifier", path=path, line=line, hint=hint
        ) from error
    minors = [
        Python(3, minor)
        for minor in RELEASED_MINORS
        if any(specifier.contains(f"3.{minor}.{patch}") for patch in range(60))
    ]
    if not minors:
        raise ConfigError(
            f"{quote(text)} admits no released Python",
            path=path,
            line=line,
            hint=f"released: 3.{RELEASED_MINORS[0]} to 3.{RELEASED_MINORS[-1]}",
        )
    return minors


_SYSTEMS = (
    (regex(r"musllinux|linux[-_ ]musl"), "musl"),
    (regex(r"linux"), "linux"),
    (regex(r"darwin|mac|osx"), "macos"),
    (regex(r"win"), "windows"),
)
_MACHINES = (
    (regex(r"x86[-_]64|amd64|x64|x86_64"), "x86_64"),
    (regex(r"aarch64|arm64|armv8"), "arm64"),
    (regex(r"^(?:linux|osx|win)[-_]64$"), "x86_64"),  # conda
)
_SHORT = {
    **dict.fromkeys(("linux", "windows", "win", "win64"), "x86_64"),
    **dict.fromkeys(("macos", "mac", "osx", "darwin"), "arm64"),
}
"""Systems without their machine: what most have."""


def parse_platform(text: str, *, path: str | None = None, line: int | None = None) -> str:
    """Return the canonical platform word of ``text`` (``win_amd64`` → ``windows-x86_64``).

    Raises:
        ConfigError: none of ``catalog.model.PLATFORMS``.
    """
    low = text.strip().lower()
    if low in PLATFORMS:
        return low
    hint = "known platforms: " + ", ".join(PLATFORMS)
    system = next((word for pattern, word in _SYSTEMS if pattern.search(low)), None)
    machine = next((word for pattern, word in _MACHINES if pattern.search(low)), None)
    if system == "musl":
        raise ConfigError(
            f"unknown platform {quote(text)}",
            path=path,
            line=line,
            hint='declare platform = "linux-x86_64" and libc = "musl" in torchpin.toml',
        )
    if machine is None and low in _SHORT:
        machine = _SHORT[low]
    if system == "linux" and machine == "arm64":
        machine = "aarch64"
    found = f"{system}-{machine}"
    if found not in PLATFORMS:
        if system is None and machine is not None:
            of_it = {machine, "aarch64"} if machine == "arm64" else {machine}
            fit = [one for one in PLATFORMS if one.partition("-")[2] in of_it]
            hint = f"name the system too: {', '.join(fit[:-1])} or {fit[-1]}"
        raise ConfigError(f"unknown platform {quote(text)}", path=path, line=line, hint=hint)
    return found


def parse_driver(text: str, *, path: str | None = None, line: int | None = None) -> str:
    """Return an NVIDIA driver version: a branch (``535``) or a release (``550.54.15``).

    Raises:
        ConfigError: no such version.
    """
    clean = text.strip()
    if _DRIVER.fullmatch(clean) and int(clean.lower().removeprefix("r")[:3]) >= 300:
        return clean.lower().removeprefix("r")
    hint = 'write what nvidia-smi prints, e.g. "550.54.15", or the branch, "550"'
    long = _WDDM.fullmatch(clean)
    if long:
        number = f"{long.group(1)}{long.group(2)[:2]}.{long.group(2)[2:]}"
        hint = f"Windows shows driver {number} in this long form: write {number}"
    raise ConfigError(f"{quote(text)} is no driver version", path=path, line=line, hint=hint)


def branch_of(driver: str) -> int:
    """Return the branch of a driver version: 550 for ``550.54.15``."""
    return int(driver.partition(".")[0])


def parse_glibc(text: str, *, path: str | None = None, line: int | None = None) -> str:
    """Return a glibc version, ``2.N``.

    Raises:
        ConfigError: no such version.
    """
    match = re.fullmatch(r"(?:glibc[ _-]?|manylinux[_-])?2[._]([0-9]{1,2})", text.strip())
    if match and int(match.group(1)) >= 5:
        return f"2.{int(match.group(1))}"
    raise ConfigError(
        f"{quote(text)} is no glibc version",
        path=path,
        line=line,
        hint='write what "ldd --version" prints, e.g. "2.31"',
    )


def parse_macos(text: str, *, path: str | None = None, line: int | None = None) -> str:
    """Return a macOS version: 10.9 to 10.16, 11 to 15, from 26 on.

    Raises:
        ConfigError: no such version.
    """
    match = re.fullmatch(r"([0-9]{2})(?:\.([0-9]{1,2}))?(?:\.[0-9]+)?", text.strip())
    if match:
        major, minor = int(match.group(1)), int(match.group(2) or 0)
        if 11 <= major <= 15 or 26 <= major <= 40 or (major == 10 and 9 <= minor <= 16):
            return f"{major}.{minor}" if match.group(2) else f"{major}"
    raise ConfigError(
        f"{quote(text)} is no macOS version", path=path, line=line, hint='write e.g. "14" or "15.2"'
    )


def parse_release(
    text: str, what: str, lowest: int, *, path: str | None = None, line: int | None = None
) -> str:
    """Return a version of two or three numbers (CUDA, ROCm, JetPack), the first ≥ ``lowest``.

    Raises:
        ConfigError: anything else.
    """
    clean = text.strip()
    if re.fullmatch(r"[0-9]{1,2}(?:\.[0-9]{1,2}){1,2}", clean) and int(
        clean.partition(".")[0]
    ) in range(lowest, 30):
        return clean
    raise ConfigError(
        f"{quote(text)} is no {what} version", path=path, line=line, hint='write e.g. "7.2"'
    )


def quote(text: str) -> str:
    """Return ``text`` in quotes, short and printable, for a message."""
    shown = text if len(text) <= 60 else text[:57] + "…"
    return '"' + "".join(c if c.isprintable() else "?" for c in shown) + '"'


def kind(value: object) -> str:
    """Return the TOML name of a value's type, with its article."""
    names = {
        bool: "a boolean",
        int: "an integer",
        str: "a string",
        list: "an array",
        dict: "a table",
    }
    if isinstance(value, float):
        return "a float"
    return names.get(type(value), "a date or time")
