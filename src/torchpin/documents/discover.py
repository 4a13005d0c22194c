"""Which files to read: by name in folders, always where a file is named."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from typing import NamedTuple

from torchpin.documents.loader import load
from torchpin.errors import TorchpinError, UsageError

__all__ = ["FILES_PATTERN", "Found", "FoundFile", "discover", "kind_of", "load"]

FILES_PATTERN = re.compile(
    r"(?:^|/)(?:"
    r"[^/]*(?:requirements|requirments|constraints)[^/]*\.(?:txt|in)"
    r"|[^/]*requirements[^/]*\.lock"
    r"|(?:requirements|constraints)/[^/]+\.(?:txt|in)"
    r")$"
)
"""Paths, with ``/``, that are requirements files by their name (``requirments`` is a common slip).
The pre-commit hooks use the same pattern."""
_SKIPPED_FOLDERS = frozenset(("node_modules", "site-packages", "__pycache__"))
_OTHER_KINDS = (".toml", ".lock", ".json", ".yaml", ".yml", ".py", ".cfg", ".whl", ".zip")


class FoundFile(NamedTuple):
    """A file to read and its kind (``requirements``)."""

    path: str
    kind: str


class Found(NamedTuple):
    """What was found; ``skipped`` are folders that could not be listed, with the reason."""

    files: tuple[FoundFile, ...]
    skipped: tuple[tuple[str, str], ...] = ()


def kind_of(path: str) -> str | None:
    """Return the kind of a file by its path, None if the name says nothing."""
    name = path.replace(os.sep, "/")
    if FILES_PATTERN.search(name) is not None:
        return "requirements"
    return None


def discover(paths: Sequence[str]) -> Found:
    """Return the dependency files among ``paths`` and, sorted, in the folders among them.

    Each file comes once, also where links or overlapping arguments lead to it twice. Hidden
    folders, virtual environments, ``node_modules`` and ``site-packages`` are passed over unless
    named. A file that is named is taken whatever its name, as a requirements file if the name
    does not tell.

    Raises:
        UsageError: a path does not exist, or is a file of a kind that torchpin does not read.
        TorchpinError: a path may not be looked at.
    """
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
        if stat.S_ISDIR(status.st_mode):
            for file in _walk(path, folders, skipped):
                _add(file, "requirements", files, seen)
            continue
        kind = kind_of(path)
        if kind is None and path.lower().endswith(_OTHER_KINDS):
            raise UsageError(
                "is no kind of file that torchpin reads",
                path=path,
                hint="requirements and constraints files are read",
            )
        _add(path, kind or "requirements", files, seen)
    return Found(tuple(files), tuple(skipped))


def _add(path: str, kind: str, files: list[FoundFile], seen: set[str]) -> None:
    real = os.path.realpath(path)
    if real not in seen:
        seen.add(real)
        files.append(FoundFile(path, kind))


def _walk(root: str, folders: set[tuple[int, int]], skipped: list[tuple[str, str]]) -> list[str]:
    """Return the matching files under ``root``; links to folders are followed once."""
    found: list[str] = []
    stack = [root]
    top = os.path.basename(os.path.abspath(root))
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
        for entry in entries:
            path = entry.name if folder in (".", "") else os.path.join(folder, entry.name)
            try:
                if entry.is_dir():
                    if not entry.name.startswith(".") and entry.name not in _SKIPPED_FOLDERS:
                        below.append(path)
                elif entry.is_file():
                    shown = path if folder != root else os.path.join(top, entry.name)
                    if kind_of(shown) is not None and not entry.name.startswith("."):
                        found.append(path)
            except OSError as error:  # a link that leads to itself
                skipped.append((path, error.strerror or str(error)))
        stack += reversed(below)
    return sorted(found)
