"""Several commands at a time, their lines as they come, and an end to those that take too long."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import IO

from torchpin.named import NamedTuple
from torchpin.verify.cluster.collect import LONGEST

_TICK = 0.2
_GRACE = 60.0
"""Seconds that ``srun`` gets to end its task: Slurm itself waits for half a minute."""
_AGAIN = 2.0
_KEPT, _WIDE = 40, 500


class Line(NamedTuple):
    """A job printed a line."""

    name: str
    text: str


class Ended(NamedTuple):
    """A job has ended."""

    name: str
    code: int
    errors: tuple[str, ...]
    """The last lines on its standard error."""


class Late(NamedTuple):
    """A job was ended, for it took too long."""

    name: str
    errors: tuple[str, ...]
    """The last lines on its standard error until then."""
    begun: bool


Event = Line | Ended | Late


class _Job:
    def __init__(self, name: str, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self.name = name
        self.since = time.monotonic()
        self.begun = False
        self.late: tuple[str, ...] | None = None
        """What it had said when it was late."""
        self.asked_first = self.asked_last = 0.0
        self.errors: deque[str] = deque(maxlen=_KEPT)
        self.by_slurm: deque[str] = deque(maxlen=_KEPT)
        self.child = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            start_new_session=sys.platform != "win32",  # Ctrl-C is handled here, not by each
        )

    def follow(self, events: queue.Queue[Line | _Job]) -> None:
        """Read until the job ends; runs in a thread of its own."""
        assert self.child.stdout is not None and self.child.stderr is not None
        reader = threading.Thread(target=self._read_errors, args=(self.child.stderr,), daemon=True)
        reader.start()
        with self.child.stdout as stream:
            for line in lines(stream):
                events.put(Line(self.name, line))
        self.child.wait()
        reader.join()
        events.put(self)

    def _read_errors(self, stream: IO[bytes]) -> None:
        with stream:
            for line in lines(stream):
                text = line.strip()[:_WIDE]
                ours = text.startswith(("srun:", "slurmstepd"))
                if text:
                    (self.by_slurm if ours else self.errors).append(text)

    def said(self) -> tuple[str, ...]:
        return (*self.by_slurm, *self.errors)

    def end(self) -> None:
        """Ask the job to end, again every other second; kill it if it was asked long ago.

        While it waits for its nodes, ``srun`` may miss a signal.
        """
        now = time.monotonic()
        self.asked_first = self.asked_first or now
        if now - self.asked_first > _GRACE:
            self.child.kill()
        elif now - self.asked_last > _AGAIN:
            self.asked_last = now
            self.child.terminate()


def lines(stream: IO[bytes]) -> Iterator[str]:
    """Yield the lines of a stream; what is longer than any of ours comes in pieces."""
    while True:
        line = stream.readline(LONGEST)
        if not line:
            return
        yield line.decode("utf-8", "replace").rstrip("\r\n")


def run(
    commands: Sequence[tuple[str, Sequence[str]]],
    environ: Mapping[str, str],
    *,
    at_once: int,
    begin_within: float,
    end_within: float,
    begun: Callable[[str], bool],
    tick: Callable[[int, int], None],
) -> Generator[Event, None, None]:
    """Run commands and yield what they print and how they end.

    Args:
        commands: name and words of each; names are different.
        environ: their environment.
        at_once: how many run at a time.
        begin_within: seconds from the start of a job until ``begun``.
        end_within: seconds from then until its end.
        begun: tells whether a job has begun to answer.
        tick: called several times a second with how many have ended and how many run.

    Raises:
        OSError: a command cannot be started.
    """
    events: queue.Queue[Line | _Job] = queue.Queue(maxsize=256)
    left = deque(commands)
    running: dict[str, _Job] = {}
    done = 0
    try:
        while left or running:
            while left and len(running) < at_once:
                name, words = left.popleft()
                job = running[name] = _Job(name, words, environ)
                threading.Thread(target=job.follow, args=(events,), daemon=True).start()
            tick(done, len(running))
            for event in _waiting(events):
                if isinstance(event, Line):
                    yield event
                    continue
                del running[event.name]
                done += 1
                if event.late is not None:
                    yield Late(event.name, event.late, event.begun)
                else:
                    yield Ended(event.name, event.child.returncode, event.said())
            now = time.monotonic()
            for job in running.values():
                if not job.begun and begun(job.name):
                    job.begun, job.since = True, now
                limit = end_within if job.begun else begin_within
                if job.late is None and now - job.since > limit:
                    job.late = job.said()
                if job.late is not None:
                    job.end()
    finally:
        _end_all(running.values(), events)


def _waiting(events: queue.Queue[Line | _Job]) -> Iterator[Line | _Job]:
    """Yield what has come; wait a moment for the first."""
    try:
        yield events.get(timeout=_TICK)
        for _ in range(events.qsize()):
            yield events.get_nowait()
    except queue.Empty:
        return


def _end_all(jobs: Iterable[_Job], events: queue.Queue[Line | _Job]) -> None:
    """End what still runs, so that no job stays in the queue of Slurm."""
    left = list(jobs)
    while any(job.child.poll() is None for job in left):
        for job in left:
            if job.child.poll() is None:
                job.end()
        for _ in _waiting(events):  # the threads that read must not wait for us
            pass
