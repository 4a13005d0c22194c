"""Run the worker in a child process: its events as they come, a time-out, and how it ended."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from typing import IO, Any

from torchpin.named import NamedTuple

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker.py")
_GRACE = 10.0
"""Seconds that a killed child gets: one that hangs in the driver may not die at all."""
_TAIL = 20_000
Event = dict[str, Any]


class Died(NamedTuple):
    """A child ended before it had told all."""

    message: str
    """How, in words, with the last thing that it printed."""


class TimedOut(NamedTuple):
    """A child said nothing for too long and was killed."""

    message: str


def converse(
    python: str, task: str, *arguments: str, timeout: float, environ: Mapping[str, str]
) -> Iterator[Event | Died | TimedOut]:
    """Start the worker and yield what it tells; a ``Died`` or ``TimedOut`` is the last.

    Args:
        python: the interpreter.
        task: what the worker is to do, and its arguments.
        timeout: seconds that it may be silent.
        environ: its environment.

    Raises:
        OSError: the interpreter cannot be started.
    """
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [python, WORKER, task, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=dict(environ),
            start_new_session=sys.platform != "win32",
        )
        try:
            yield from _events(child, errors, timeout)
        finally:
            _end(child)


def _events(
    child: subprocess.Popen[bytes], errors: IO[bytes], timeout: float
) -> Iterator[Event | Died | TimedOut]:
    assert child.stdout is not None
    lines: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=timeout)
        except queue.Empty:
            yield TimedOut(f"nothing came of it in {timeout:g} s; the process was ended")
            return
        if line is None:
            break
        try:
            event = json.loads(line)
        except ValueError:
            continue  # cut off, or not from the worker
        if not isinstance(event, dict):
            continue
        if event.get("event") == "end-of-task":
            return
        yield event
    try:
        code = child.wait(timeout)
    except subprocess.TimeoutExpired:
        yield TimedOut(f"the process did not end in {timeout:g} s")
        return
    yield Died(_how(code, _last_line(errors)))


def _read(stream: IO[bytes], lines: queue.Queue[bytes | None]) -> None:
    try:
        for line in stream:
            lines.put(line)
    except (OSError, ValueError):  # closed by the other thread
        pass
    lines.put(None)


def _how(code: int, last: str) -> str:
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        text = f"the process was ended by {name}"
        if name == "SIGKILL":
            text += ", as the kernel does when memory runs out"
    elif code > 0x80000000:
        text = f"the process was ended by Windows error {code:#x}"
    else:
        text = f"the process ended by itself with exit code {code}"
    return f"{text}: {last}" if last else text


def _last_line(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - _TAIL))
    lines = errors.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and what it started."""
    begun = time.monotonic()
    while child.poll() is None:
        # One that has told all ends by itself within a moment.
        if time.monotonic() - begun > 0.2:
            break
        time.sleep(0.005)
    if child.poll() is None or sys.platform != "win32":
        try:
            if sys.platform == "win32":
                child.kill()
            else:
                os.killpg(child.pid, signal.SIGKILL)
        except OSError:  # all of them have ended
            pass
    try:
        child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        return  # it hangs in the kernel; its pipe stays open with it
    if child.stdout is not None:
        child.stdout.close()
