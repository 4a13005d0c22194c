"""Which files to read: by name in folders, always where a file is named."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from torchpin.documents.ignored import ignored_below
from torchpin.documents.kinds import FILES_PATTERN, KINDS, LOCKS, LONE, PART_KINDS, kind_of
from torchpin.documents.loader import load, read_bytes
from torchpin.errors import TorchpinError, UsageError
from torchpin.named import NamedTuple

__all__ = [
    "FILES_PATTERN",
    "KINDS",
    "PROFILE",
    "Found",
    "FoundFile",
    "discover",
    "kind_of",
    "load",
]

PROFILE = "torchpin.toml"
"""The file that declares the fleet; named as a path it stands for its folder."""
_SKIPPED_FOLDERS = frozenset(("node_modules", "site-packages", "__pycache__", "bower_components"))
_HIDDEN_FOLDERS = frozenset(
    (
        *(".github", ".gitlab", ".circleci", ".azure-pipelines", ".azure", ".azuredevops"),
        *(".devcontainer", ".ci", ".docker"),
    )
)
"""Hidden folders that hold what others run."""
_REQUIREMENTS = frozenset(("requirements",))
_HINT = "requirements and constraints files are read"
_HINT_ALL = (
    "requirements and constraints files, pyproject.toml, uv.toml, uv.lock, poetry.lock, pdm.lock "
    "and pylock.toml are read, and files that install by commands: Dockerfiles, shell scripts, "
    "Makefiles, justfiles, CI files, compose files; or list it in sections: tox.ini, setup.py, "
    "noxfile.py, Pipfile, pixi.toml, environment.yml"
)
_NAMES = (
    *(b"torch", b"triton", b"xformers", b"vllm", b"accelerate", b"bitsandbytes", b"fairseq"),
    *(b"fastai", b"lightning", b"tensordict", b"timm", b"ultralytics", b"sentence-transformers"),
    *(b"sentence_transformers", b"sentence.transformers"),
)
"""What a project file that matters holds somewhere: the family, or a package that pins torch."""
_INCLUDES = (b"requirements", b"constraints")
"""What a file of commands may hold instead: the name of a list of requirements."""
_LISTED = frozenset(("tox.ini", "environment.yml"))
"""Kinds of files that install a list of requirements without the word ``install``."""
_SNIFFED = frozenset(("pyproject", *LONE, *PART_KINDS))
"""Kinds that a folder holds for many other reasons: taken only if they name something known."""
_SMALL = 64 * 1024
"""Bytes; what people write by hand is seldom larger."""
_HEAD = 32 * 1024
"""Bytes of a Python file in which a block of metadata is looked for."""
_LARGEST = 1024 * 1024
"""Bytes; a larger script carries data (a self-extracting installer), not pins."""
_OTHER_KINDS = (".toml", ".lock", ".json", ".yaml", ".yml", ".py", ".cfg", ".whl", ".zip")


class FoundFile(NamedTuple):
    """A file to read and its kind (``requirements``, ``pyproject``, ``uv.lock`` …)."""

    path: str
    kind: str


class Found(NamedTuple):
    """What was found; ``skipped`` are folders that could not be listed, with the reason."""

    files: tuple[FoundFile, ...]
    skipped: tuple[tuple[str, str], ...] = ()


def discover(paths: Sequence[str], kinds: frozenset[str] | None = None) -> Found:
    """Return the dependency files among ``paths`` and, sorted, in the folders among them.

    Each file comes once, also where links or overlapping arguments lead to it twice. What git
    ignores, hidden folders but for those of CI systems, virtual environments, ``node_modules`` and
    ``site-packages`` are passed over unless named. A file that is named is taken whatever its
    name, as a requirements file if the name does not tell; a ``torchpin.toml`` stands for its
    folder, since every file there is judged by it. ``kinds`` are those wanted
    (``KINDS``: all), None for requirements files only. A project file that a folder holds is left
    out if it names nothing that torchpin knows and no lock stands beside it.

    Raises:
        UsageError: a path does not exist, or is a file of a kind that torchpin does not read.
        TorchpinError: a path may not be looked at.
    """
    wanted = kinds if kinds is not None else _REQUIREMENTS
    files: list[FoundFile] = []
    skipped: list[tuple[str, str]] = []
    seen: set[str] = set()
    folders: set[tuple[int, int]] = set()
    for path in paths:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UsageError("there is no such file or folder", path=path) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TorchpinError(f"cannot be looked at: {reason}", path=path) from error
        profile = os.path.basename(path) == PROFILE
        if stat.S_ISDIR(status.st_mode) or profile:
            folder = (os.path.dirname(path) or ".") if profile else path
            for file, kind in _walk(folder, wanted, folders, skipped):
                _add(file, kind, files, seen)
            continue
        named = kind_of(path)
        if named not in wanted and path.lower().endswith(_OTHER_KINDS):
            raise UsageError(
                "is no kind of file that torchpin reads",
                path=path,
                hint=_HINT if wanted == _REQUIREMENTS else _HINT_ALL,
            )
        _add(path, named or "requirements", files, seen)
    return Found(tuple(files), tuple(skipped))


def python_files(places: Sequence[str]) -> tuple[str, ...]:
    """Return the Python files among some places and in the folders among them, sorted.

    Hidden folders and virtual environments are passed over; so is what does not exist.
    """
    found: dict[str, None] = {}
    for place in places:
        if place.endswith(".py") and os.path.isfile(place):
            found[place] = None
        for folder, below, names in os.walk(place):
            below[:] = sorted(
                name
                for name in below
                if not name.startswith(".")
                and name not in _SKIPPED_FOLDERS
                and not os.path.isfile(os.path.join(folder, name, "pyvenv.cfg"))
            )
            found.update(
                (os.path.join(folder, one), None) for one in sorted(names) if one.endswith(".py")
            )
    return tuple(found)


def _add(path: str, kind: str, files: list[FoundFile], seen: set[str]) -> None:
    real = os.path.realpath(path)
    if real not in seen:
        seen.add(real)
        files.append(FoundFile(path, kind))


def _walk(
    root: str,
    wanted: frozenset[str],
    folders: set[tuple[int, int]],
    skipped: list[tuple[str, str]],
) -> list[tuple[str, str]]:
    """Return the matching files under ``root`` and their kinds; links to folders are followed
    once."""
    found: list[tuple[str, str]] = []
    stack = [root]
    top = os.path.basename(os.path.abspath(root))
    ignored = ignored_below(root or ".")
    begin = 0 if root in (".", "") else len(os.path.join(root, ""))
    while stack:
        folder = stack.pop()
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in folders:
                continue
            folders.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            if folder == root:
                raise TorchpinError(
                    f"cannot be listed: {error.strerror or error}", path=folder
                ) from error
            skipped.append((folder, error.strerror or str(error)))
            continue
        if folder != root and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        below: list[str] = []
        here: list[tuple[str, str]] = []
        locked = False
        for entry in entries:
            path = entry.name if folder in (".", "") else os.path.join(folder, entry.name)
            if ignored and path[begin:].replace(os.sep, "/") in ignored:
                continue
            try:
                if entry.is_dir():
                    if entry.name not in _SKIPPED_FOLDERS and (
                        not entry.name.startswith(".") or entry.name in _HIDDEN_FOLDERS
                    ):
                        below.append(path)
                elif entry.is_file():
                    shown = path if folder != root else os.path.join(top, entry.name)
                    kind = kind_of(shown)
                    if kind is None or (entry.name.startswith(".") and kind not in PART_KINDS):
                        continue
                    locked = locked or (kind in LOCKS and not entry.name.endswith(".py.lock"))
                    if kind in wanted:
                        here.append((path, kind))
            except OSError as error:  # a link that leads to itself
                skipped.append((path, error.strerror or str(error)))
        found += [
            (path, kind)
            for path, kind in here
            if kind not in _SNIFFED or (kind == "pyproject" and locked) or _matters(path, kind)
        ]
        stack += reversed(below)
    return sorted(found)


def _matters(path: str, kind: str) -> bool:
    """Tell whether a file holds a name that torchpin knows; unreadable project files do.

    Of a Python file only the head is looked at, for a block of metadata.
    """
    if kind == "script":
        return _has_block(path)
    parts = kind in PART_KINDS
    data = _peek(path) if parts else None
    if data is None:
        try:
            data = read_bytes(path, _LARGEST) if parts and kind != "pixi.lock" else read_bytes(path)
        except TorchpinError:
            return not parts  # to be told by who reads it
    if parts and b"\0" in data[:8192]:
        return False
    if parts and _holds(data, _INCLUDES) and (b"install" in data or kind in _LISTED):
        return True
    return _holds(data, _NAMES)


def _peek(path: str) -> bytes | None:
    """Return a small file in two calls of the system; None for one that is not small, or odd."""
    try:
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        try:
            data = os.read(handle, _SMALL)
        finally:
            os.close(handle)
    except (OSError, ValueError):
        return None
    return data if len(data) < _SMALL else None


def _holds(data: bytes, names: tuple[bytes, ...]) -> bool:
    """Tell whether one of some names stands in a file, in whatever case.

    Plain searches of the text in lower case take a tenth of the time of one regular expression.
    """
    lower = data.lower()
    return any(name in lower for name in names)


def _has_block(path: str) -> bool:
    """Tell whether the head of a Python file holds a block of metadata with a known name."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD)
    except OSError:  # no file of dependencies, as far as one can see
        return False
    return b"# /// script" in head and _holds(head, _NAMES)
