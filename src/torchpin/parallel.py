"""Floor 5: read the files of a large folder in several processes.

Reading is two fifths of a check of many files, and each file is read by itself. So some children
are forked, each reads a share and sends the documents back. Nothing else changes: the documents
are put where the one process would have put its own, in its order, and what a child could not read
is read again, and told, by the one process. Where there is no ``fork`` (Windows), or other threads
run, there is one process.
"""

from __future__ import annotations

import os
import sys

from torchpin import seen
from torchpin.documents.kinds import kind_of
from torchpin.documents.loader import load
from torchpin.errors import TorchpinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchpin.documents.base import Document

    Answers = dict[tuple[str, str], str]

AUTO = 0
"""As many processes as pay."""
_MANY = 200
"""Files; for fewer, starting processes takes longer than it saves."""
_ENOUGH = 4
"""Free processors; with two, the time of the children is hardly less than what they save."""
_MOST = 4
"""Processes; more have too little to read."""


def jobs_for(asked: int, files: int) -> int:
    """Return in how many processes some files are read: as asked for, or as many as pay."""
    if not hasattr(os, "fork") or sys.platform in ("win32", "darwin") or files < 2:
        return 1
    threads = sys.modules.get("threading")
    if threads is not None and threads.active_count() > 1:  # a fork may inherit a held lock
        return 1
    if asked != AUTO:
        return min(asked, files)
    if files < _MANY:
        return 1
    free = free_cores()
    return min(free, _MOST) if free >= _ENOUGH else 1


def free_cores() -> int:
    """Return how many processors this process may use that seem to have nothing to do."""
    try:
        own = len(os.sched_getaffinity(0))
        busy, _, _ = os.getloadavg()
    except (AttributeError, OSError):  # not Linux, or it does not tell
        return 1
    return own - round(busy)


def read_ahead(paths: Sequence[str], cache: dict[str, Document], jobs: int) -> None:
    """Read files into ``cache`` as ``load`` does, in several processes.

    What cannot be read is left out. One file of each kind is read here first, so that the modules
    that read it are there when the processes begin.
    """
    kinds: set[str | None] = set()
    rest: list[str] = []
    for path in paths:
        kind = kind_of(path)
        if path in cache:
            continue
        if kind in kinds:
            rest.append(path)
            continue
        kinds.add(kind)
        try:
            load(path, cache)
        except TorchpinError:
            rest.append(path)  # its turn comes
    jobs = min(jobs, len(rest))
    if jobs < 2:
        return
    trace = seen.current()
    children: list[tuple[int, int]] = []
    found: dict[str, Document] = {}
    try:
        for number in range(jobs - 1):
            children.append(_start(rest[number::jobs], [end for _, end in children]))
        _read(rest[jobs - 1 :: jobs], found)
        for _, end in children:
            documents, answers = _received(end)
            found.update(documents)
            if trace is not None:
                for (question, about), answer in answers.items():
                    trace.note(question, about, answer)
    finally:
        for child, end in children:
            os.close(end)  # a child that still writes ends by that
            try:
                os.waitpid(child, 0)
            except ChildProcessError:  # who started torchpin lets the system bury its children
                continue
    for path in rest:
        if path in found:
            cache[path] = found[path]


def _read(paths: Sequence[str], found: dict[str, Document]) -> None:
    for path in paths:
        try:
            load(path, found)
        except TorchpinError:  # told where the one process reads it
            continue


def _start(paths: Sequence[str], others: Sequence[int]) -> tuple[int, int]:
    """Start a child that reads some files; return its number and where it sends them."""
    mine, its = os.pipe()
    child = os.fork()
    if child:
        os.close(its)
        return child, mine
    try:
        for end in (mine, *others):
            os.close(end)
        _send(paths, its)
    finally:
        os._exit(0)  # the parent's output, its temporary files and exit handlers are its own


def _send(paths: Sequence[str], end: int) -> None:
    import pickle

    trace = seen.start() if seen.current() is not None else None
    found: dict[str, Document] = {}
    _read(paths, found)
    answers = trace.answers if trace is not None and trace.sound else {}
    if trace is not None and not trace.sound:
        found = {}
    with open(end, "wb") as file:
        pickle.dump((found, answers), file, protocol=pickle.HIGHEST_PROTOCOL)


def _received(end: int) -> tuple[dict[str, Document], Answers]:
    """Return what a child of ours has sent; nothing if it has ended before."""
    import pickle

    with open(end, "rb", closefd=False) as file:
        data = file.read()
    try:
        received: tuple[dict[str, Document], Answers] = pickle.loads(data)
    except (EOFError, pickle.UnpicklingError):  # it was killed: its files are read here
        return {}, {}
    return received
