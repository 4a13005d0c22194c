"""Entries on disk: ``CACHE/results/<question>.json``, the first line a digest of the rest.

``CACHE`` is as ``torchpin.catalog.location`` says. An entry counts only if it belongs to the user
who runs torchpin and nobody else may write it. Each is written under a name of its own and then
renamed, so that several processes may share the folder. The oldest go when there are too many.
"""

from __future__ import annotations

import json
import os
import stat
import time

from torchpin import seen
from torchpin.catalog.location import cache_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST = 200
"""Entries that are kept."""
LARGEST = 8 * 1024 * 1024
"""Bytes of one entry."""
WHOLE = 64 * 1024 * 1024
"""Bytes of all entries."""
_ABANDONED = 3600
"""Seconds after which a file that was never renamed is nobody's any more."""


def results_dir() -> str:
    """Return the folder of the entries; it need not exist."""
    return os.path.join(cache_dir(), "results")


def read(name: str) -> tuple[dict[str, Any] | None, str]:
    """Return an entry, or None and why there is none that counts. Never raises."""
    path = os.path.join(results_dir(), f"{name}.json")
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
                return None, "is no entry"
            if hasattr(os, "geteuid") and (
                status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            ):
                return None, "is not the user's own"
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return None, "there is none"
    except (OSError, ValueError) as error:
        return None, f"cannot be read: {error}"
    head, _, body = data.partition(b"\n")
    if head != seen.digest(body).encode():
        return None, "is damaged"
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError):
        return None, "is damaged"
    return (entry, "") if isinstance(entry, dict) else (None, "is damaged")


def write(name: str, entry: dict[str, Any]) -> str:
    """Write an entry; return ``""``, or why it was not written. Never raises."""
    body = json.dumps(entry, separators=(",", ":")).encode("ascii")
    if len(body) > LARGEST:
        return "is too large"
    folder = results_dir()
    if folder.startswith("~"):  # a user without a home: the name was not expanded
        return "has no place"
    temporary = os.path.join(folder, f"{name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        handle = os.open(temporary, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(seen.digest(body).encode() + b"\n" + body)
            os.replace(temporary, os.path.join(folder, f"{name}.json"))
        except OSError:
            os.unlink(temporary)
            raise
        _prune(folder)
    except (OSError, ValueError) as error:  # a full disk, a home that may not be written
        return f"cannot be written: {error}"
    return ""


def _prune(folder: str) -> None:
    """Remove the oldest entries beyond what is kept, and what an ended process left."""
    kept: list[tuple[float, int, str]] = []
    now = time.time()
    with os.scandir(folder) as listing:
        for one in listing:
            try:
                status = one.stat(follow_symlinks=False)
                if one.name.endswith(".json"):
                    kept.append((status.st_mtime, status.st_size, one.path))
                elif one.name.endswith(".tmp") and now - status.st_mtime > _ABANDONED:
                    os.unlink(one.path)
            except FileNotFoundError:  # another process removed it
                continue
    total = 0
    for index, (_, size, path) in enumerate(sorted(kept, reverse=True)):
        total += size
        if index >= MOST or total > WHOLE:
            try:
                os.unlink(path)
            except FileNotFoundError:
                continue
