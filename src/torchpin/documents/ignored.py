"""What git ignores below a folder, as git itself tells.

Only its owner knows all rules (nested ``.gitignore``, ``.git/info/exclude``, the user's own file,
and that a file that git follows is never ignored). Reading them with ``pathspec`` was tried: its
import alone costs more than ten times what one ``git ls-files`` takes.
"""

from __future__ import annotations

import os

_SECONDS = 20.0
"""A repository that git cannot look through in this time is walked whole."""
WHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""Set inside of hooks, for another folder than ours."""


def ignored_below(folder: str) -> frozenset[str]:
    """Return the files and folders below ``folder`` that git ignores, relative to it, with ``/``.

    Folders come without a slash at the end, and without what is in them. Empty outside of a
    repository, without git, and where ``folder`` is itself ignored: who names it means it.
    """
    if not _in_repository(folder):
        return frozenset()
    import subprocess

    environment = {name: value for name, value in os.environ.items() if name not in WHERE}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    command = ["git", "-c", "core.fsmonitor=false", "-C", folder, "ls-files", "-z", "--others"]
    command += ["--ignored", "--exclude-standard", "--directory"]
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):  # no git: nothing is known to be ignored
        return frozenset()
    if done.returncode != 0:
        return frozenset()
    found = frozenset(os.fsdecode(one).rstrip("/") for one in done.stdout.split(b"\0") if one)
    return frozenset() if found & {".", ""} else found


def _in_repository(folder: str) -> bool:
    """True if a ``.git`` stands in the folder or above it."""
    place = os.path.realpath(folder)
    while True:
        if os.path.lexists(os.path.join(place, ".git")):
            return True
        above = os.path.dirname(place)
        if above == place:
            return False
        place = above
