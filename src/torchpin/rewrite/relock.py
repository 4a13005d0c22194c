"""Locks are made anew by the tool that owns them, with their manifests: all of a run or none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence

from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Document
from torchpin.errors import RewriteError, UsageError
from torchpin.named import NamedTuple
from torchpin.rewrite.apply import write_all

TIMEOUT = 1800
"""Seconds for one run of a tool: Poetry may fetch METADATA of every wheel."""
_TAIL = 15
"""Lines of the tool's message that are shown."""


class Relock(NamedTuple):
    """One lock to make anew."""

    lock: str
    """Path of the lock file."""
    command: tuple[str, ...]
    """As the user would type it."""


def packages_of(lock: Document, declared: Iterable[str]) -> list[str]:
    """Return the family packages that a relock must be free to move: asked for or locked."""
    locked = {one.name for one in lock.lock.packages} if lock.lock is not None else set()
    asked = set(declared)
    return [name for name in FAMILY if name in asked or name in locked]


def command_of(lock: Document, declared: Iterable[str]) -> tuple[str, ...]:
    """Return the command that makes a lock anew for the family; everything else stays locked."""
    names = packages_of(lock, declared)
    tool = lock.lock.tool if lock.lock is not None else "uv"
    if tool == "poetry":
        return ("poetry", "update", "--lock", *names)
    if tool == "pdm":
        return ("pdm", "update", "--no-sync", *names)
    script = os.path.basename(lock.path).removesuffix(".lock")
    of_script = ("--script", script) if script.endswith(".py") else ()
    return (
        "uv",
        "lock",
        *of_script,
        *(word for name in names for word in ("--upgrade-package", name)),
    )


def relock_command(lock: Document, declared: Iterable[str]) -> str:
    """Return ``command_of`` as text."""
    return " ".join(command_of(lock, declared))


def executable(name: str, option: str = "--relock") -> str:
    """Return the path of a tool, which ``option`` needs; the one beside this Python wins.

    Raises:
        UsageError: it is not installed.
    """
    beside = os.path.dirname(sys.executable)
    path = shutil.which(name, path=os.pathsep.join((beside, os.environ.get("PATH", ""))))
    if path is None:
        raise UsageError(
            f"{option} needs {name}, which is not installed",
            hint=f"install {name}, or run torchpin fix without {option} and lock elsewhere",
        )
    return path


def relock(
    changes: Sequence[tuple[str, bytes, bytes]],
    locks: Sequence[Relock],
    environment: Mapping[str, str] | None = None,
) -> None:
    """Write manifests and run the owners of their locks: all of it, or nothing is changed.

    Args:
        changes: path, bytes that were read, new bytes: of files that no lock's owner writes.
        locks: what to run, in order, each in the folder of its lock.
        environment: of the tools; None: this process's own.

    Raises:
        UsageError: a tool is not installed; nothing was written.
        RewriteError: a file cannot be written, or a tool fails; every file is as it was.
    """
    programs = [executable(one.command[0]) for one in locks]
    before: dict[str, bytes] = {}
    for one in locks:
        with open(one.lock, "rb") as file:
            before[one.lock] = file.read()
    write_all(changes)
    try:
        for one, program in zip(locks, programs, strict=True):
            _run(one, program, environment)
    except BaseException:  # an interrupt must not leave half a run either
        _put_back(changes, before)
        raise


def _put_back(changes: Sequence[tuple[str, bytes, bytes]], before: Mapping[str, bytes]) -> None:
    back: list[tuple[str, bytes, bytes]] = [(path, new, old) for path, old, new in changes]
    for path, old in before.items():
        try:
            with open(path, "rb") as file:
                now = file.read()
        except FileNotFoundError:
            with open(path, "wb"):
                now = b""
        back.append((path, now, old))
    write_all(back)


def _run(one: Relock, program: str, environment: Mapping[str, str] | None) -> None:
    """Run a lock's owner.

    Raises:
        RewriteError: it fails or does not end.
    """
    try:
        done = subprocess.run(
            (program, *one.command[1:]),
            cwd=os.path.dirname(os.path.abspath(one.lock)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            env=None if environment is None else dict(environment),
        )
    except subprocess.TimeoutExpired:
        raise RewriteError(
            f"`{' '.join(one.command)}` gave no answer in {TIMEOUT} s; nothing was changed",
            path=one.lock,
        ) from None
    except OSError as error:
        raise RewriteError(
            f"{one.command[0]} cannot be run: {error.strerror or error}; nothing was changed",
            path=one.lock,
        ) from error
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise RewriteError(
            f"`{' '.join(one.command)}` failed; nothing was changed",
            path=one.lock,
            hint="\n  ".join(lines[-_TAIL:]),
        )
