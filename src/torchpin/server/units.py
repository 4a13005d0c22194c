"""Which files are judged together: those of a folder of the workspace that share a profile."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from torchpin.documents.discover import discover
from torchpin.documents.kinds import KINDS
from torchpin.errors import ConfigError
from torchpin.fleet.profile import find_profile
from torchpin.named import NamedTuple
from torchpin.server.buffers import Buffer
from torchpin.ways import project_folder

MOST_FILES = 400
"""In a folder with more dependency files only the projects of open files are judged."""


class Unit(NamedTuple):
    """What one run of the engine judges."""

    root: str
    """A folder; of a unit that is ``lone`` the file itself."""
    profile: str | None
    lone: bool = False
    """Only the open file: it lies in no folder of the workspace, or has no file at all."""


def unit_of(buffer: Buffer, folders: Sequence[str], overlay: Mapping[str, bytes]) -> Unit:
    """Return the unit of an open file."""
    profile = profile_of(buffer.path, overlay)
    folder = folder_of(buffer.path, folders) if buffer.named else None
    if folder is None:
        return Unit(buffer.path, profile, lone=True)
    own = os.path.dirname(profile) if profile is not None else ""
    return Unit(own if own and inside(own, folder) else folder, profile)


def profile_of(path: str, overlay: Mapping[str, bytes]) -> str | None:
    """Return the profile that holds for a file: the nearest, open ones as they stand.

    One that cannot be read, or whose table is misspelt, is named all the same: reading it tells.
    """
    try:
        return find_profile(path, overlay)
    except ConfigError as error:
        return error.path


def folder_of(path: str, folders: Iterable[str]) -> str | None:
    """Return the innermost of some folders that holds a file; None if none does."""
    return max((one for one in folders if inside(path, one)), key=len, default=None)


def inside(path: str, folder: str) -> bool:
    """Tell whether a path is a folder or lies in it."""
    return path == folder or path.startswith(os.path.join(folder, ""))


def found_files(unit: Unit, overlay: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the dependency files on disk that belong to a unit, sorted.

    What lies below a profile of its own belongs to another unit.

    Raises:
        TorchpinError: the folder may not be listed, or is gone.
    """
    if unit.lone:
        return ()
    known: dict[str, bool] = {}
    files: list[str] = []
    for one in discover((unit.root,), KINDS).files:
        folder = os.path.dirname(one.path)
        if folder not in known:
            known[folder] = folder == unit.root or profile_of(one.path, overlay) == unit.profile
        if known[folder]:
            files.append(one.path)
    return tuple(files)


def files_of(unit: Unit, found: Sequence[str], buffers: Iterable[Buffer]) -> tuple[str, ...]:
    """Return the files that a unit judges: those found on disk, and those that are open."""
    mine = [one for one in buffers if one.kind is not None]
    if len(found) > MOST_FILES:
        near = {project_folder(one.path) for one in mine}
        found = [path for path in found if project_folder(path) in near]
    known = {os.path.realpath(path): path for path in found}
    for buffer in mine:
        known[buffer.real] = buffer.path
    return tuple(sorted(known.values()))
