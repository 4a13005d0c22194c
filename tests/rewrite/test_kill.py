"""Kill -9 in the middle of writing: every file is whole, as it was or as it should be."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL")

NUMBER = 40
SIZE = 200_000
CHILD = """
import sys
from torchpin.rewrite.apply import write_all
folder, number, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
changes = [
    (f"{folder}/requirements-{n}.txt", b"old\\n" * size, b"new\\n" * size) for n in range(number)
]
print("ready", flush=True)
sys.stdin.readline()
write_all(changes)
print("done", flush=True)
"""
STEPS = """
import os, signal, sys
from torchpin.rewrite import apply
folder, number, size, stop = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
count = 0
def counted(name):
    real = getattr(os, name)
    def call(*args, **kwargs):
        global count
        count += 1
        if count == stop:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    setattr(os, name, call)
for name in ("open", "replace", "link", "unlink", "fsync", "chmod", "stat"):
    counted(name)
apply.write_all([
    (f"{folder}/requirements-{n}.txt", b"old\\n" * size, b"new\\n" * size) for n in range(number)
])
print(count)
"""


def fill(folder: Path, number: int, size: int) -> None:
    for n in range(number):
        (folder / f"requirements-{n}.txt").write_bytes(b"old\n" * size)


def states(folder: Path, number: int, size: int) -> set[str]:
    """Return ``old`` and ``new``, or fail where a file is neither."""
    found = set()
    for n in range(number):
        data = (folder / f"requirements-{n}.txt").read_bytes()
        assert data in (b"old\n" * size, b"new\n" * size), f"file {n} is torn: {data[:20]!r}"
        found.add(data[:3].decode())
    return found


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}


def test_killed_at_every_step(tmp_path: Path) -> None:
    """A kill at each system call that could tear a file, one after the other."""
    number, size, seen, step = 3, 2, set(), 1
    while True:
        folder = tmp_path / str(step)
        folder.mkdir()
        fill(folder, number, size)
        done = subprocess.run(
            [sys.executable, "-c", STEPS, str(folder), str(number), str(size), str(step)],
            capture_output=True,
            text=True,
            timeout=60,
            env=environment(),
        )
        seen.add("+".join(sorted(states(folder, number, size))))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        step += 1
    assert seen == {"old", "new+old", "new"}
    assert states(folder, number, size) == {"new"}
    assert sorted(p.name for p in folder.iterdir()) == [
        f"requirements-{n}.txt" for n in range(number)
    ]


def test_killed_at_random_moments(tmp_path: Path) -> None:
    rng = random.Random(20261130)
    killed = 0
    for run in range(12):
        folder = tmp_path / str(run)
        folder.mkdir()
        fill(folder, NUMBER, SIZE // NUMBER)
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder), str(NUMBER), str(SIZE // NUMBER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.stdin.write("go\n")
        child.stdin.flush()
        try:
            child.wait(rng.uniform(0, 0.05))
        except subprocess.TimeoutExpired:
            child.kill()
            killed += 1
        child.communicate(timeout=60)
        states(folder, NUMBER, SIZE // NUMBER)
    assert killed


def test_a_run_after_a_kill_goes_through(tmp_path: Path) -> None:
    """What a killed run leaves behind is no hindrance."""
    from torchpin.rewrite.apply import write_all

    fill(tmp_path, 3, 2)
    killed = subprocess.run(
        [sys.executable, "-c", STEPS, str(tmp_path), "3", "2", "20"],
        capture_output=True,
        timeout=60,
        env=environment(),
    )
    assert killed.returncode == -signal.SIGKILL
    now = [(p, p.read_bytes()) for p in sorted(tmp_path.glob("requirements-*.txt"))]
    write_all([(str(path), data, b"new\n" * 2) for path, data in now])
    assert states(tmp_path, 3, 2) == {"new"}
