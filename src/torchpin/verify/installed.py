"""What a Python has installed of torch and its companions, read from files; nothing is imported."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.wheel_facts import assigned
from torchpin.errors import UsageError
from torchpin.fleet.model import Python
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.verify.run import Died, TimedOut, converse
from torchpin.verify.secrets import hide

_FOLDER = regex(r"([A-Za-z0-9_.-]+?)-([A-Za-z0-9_.!+]+?)(?:-py[0-9.]+)?\.(?:dist|egg)-info\Z")
_MOST_TEXT = 4 * 1024 * 1024
_SECONDS = 60.0


class Interpreter(NamedTuple):
    """A Python, as it tells of itself."""

    executable: str
    """As it was asked for: what it calls itself may be another (a wrapper's Python)."""
    version: str
    """``3.11.7``"""
    python: Python
    path: tuple[str, ...]
    """Where it looks for packages."""


class Package(NamedTuple):
    """An installed package."""

    name: str
    version: str
    """As installers see it."""
    folder: str
    """The folder in which the package's own folder lies."""
    label: str = ""
    """Of its version, or of what its ``version.py`` says: ``cu126``."""
    cuda: str | None = None
    hip: str | None = None
    told: bool = False
    """It has a ``version.py``."""
    requires: tuple[str, ...] = ()
    """``Requires-Dist``."""

    @property
    def full_version(self) -> str:
        """Version with its label: ``2.14.1+cu126``, whether installers see that or not."""
        public = self.version.partition("+")[0]
        return f"{public}+{self.label}" if self.label else public

    @property
    def channel(self) -> str:
        """What it is built for: ``cu126``, ``rocm7.2``, ``cpu``; ``""``: that is not known."""
        if kind_of_label(self.label):
            return self.label
        if self.cuda:
            return "cu" + "".join(self.cuda.split(".")[:2])
        if self.hip:
            return "rocm" + ".".join(self.hip.split(".")[:2])
        return "cpu" if self.told and self.name == "torch" and not self.label else ""


def ask(python: str, environ: Mapping[str, str]) -> Interpreter:
    """Return what an interpreter tells of itself.

    Args:
        python: its path, or the folder of a virtual environment.
        environ: its environment.

    Raises:
        UsageError: it does not start, or is no CPython that the worker runs in.
    """
    if os.path.isdir(python):
        place = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
        python = os.path.join(python, *place)
    told: dict[str, Any] | None = None
    problem = "it tells nothing of itself"
    try:
        for event in converse(python, "describe", timeout=_SECONDS, environ=environ):
            if isinstance(event, (Died, TimedOut)):
                problem = hide(event.message, environ)
            elif event.get("event") == "python":
                told = event
    except OSError as error:
        problem = str(error.strerror)
    except ValueError:  # a NUL in the name
        problem = "not a file name"
    if told is None:
        raise UsageError(
            f"--python {python}: {problem}", hint="write the path of a Python of 3.8 or newer"
        )
    major, minor = (int(part) for part in str(told["version"]).split(".")[:2])
    return Interpreter(
        python,
        str(told["version"]),
        Python(major, minor, bool(told["free_threaded"])),
        tuple(map(str, told["path"])),
    )


def read_installed(path: Sequence[str], names: Iterable[str]) -> tuple[Package, ...]:
    """Return the installed packages among ``names``, sorted by name.

    Args:
        path: where a Python looks for packages, in its order: the first of a name counts.
        names: canonical names.
    """
    wanted = frozenset(names)
    found: dict[str, Package] = {}
    for folder in dict.fromkeys(path):
        for name, version, info in _distributions(folder):
            if name in wanted and name not in found:
                found[name] = _package(name, version, folder, info)
        if "torch" in wanted and "torch" not in found:
            bare = _bare_torch(folder)
            if bare is not None:
                found["torch"] = bare
    return tuple(found[name] for name in sorted(found))


def _distributions(folder: str) -> list[tuple[str, str, str]]:
    try:
        entries = sorted(os.listdir(folder))
    except OSError:  # a zip file, or a folder that is not there
        return []
    found = []
    for entry in entries:
        match = _FOLDER.match(entry)
        if match is not None:
            name = match[1].lower().replace("_", "-").replace(".", "-")
            found.append((name, match[2].replace("_", "-"), os.path.join(folder, entry)))
    return found


def _package(name: str, version: str, folder: str, info: str) -> Package:
    requires: tuple[str, ...] = ()
    text = _read(os.path.join(info, "METADATA"))
    if text:
        from packaging.metadata import parse_email

        try:
            raw, _ = parse_email(text)
        except (ValueError, TypeError, LookupError):
            raw = {}  # damaged: what the name of its folder says stands
        version = raw.get("version") or version
        requires = tuple(raw.get("requires_dist", ()))
    stem = name.replace("-", "_")
    data = _read(os.path.join(folder, stem, "version.py"))
    said = assigned(data or _read(os.path.join(folder, stem, "_version.py")))
    label = version.partition("+")[2] or said.get("__version__", "").partition("+")[2]
    return Package(
        *(name, version, folder, label, said.get("cuda"), said.get("hip")),
        told="__version__" in said,
        requires=requires,
    )


def _bare_torch(folder: str) -> Package | None:
    """Return a torch that nobody installed: a source tree that was built in its place."""
    said = assigned(_read(os.path.join(folder, "torch", "version.py")))
    version = said.get("__version__")
    if version is None:
        return None
    label = version.partition("+")[2]
    return Package("torch", version, folder, label, said.get("cuda"), said.get("hip"), told=True)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_TEXT)
    except OSError:  # not there
        return b""
