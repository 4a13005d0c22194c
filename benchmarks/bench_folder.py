"""Measure a folder of 1,000 mixed files: ``python benchmarks/bench_folder.py``.

The yardstick is a Python process that reads and hashes the same files. Three folders: one as most
are (one file in fifty installs torch), one with a tenth, and one in which every second file does.
``cold`` uses no cache, ``first`` fills it, ``changed`` finds one file changed since, ``again``
finds all as it was. Wall time, the minimum of several rounds in turn; ``--processor``: the time of
processors, which other work on the machine changes less. ``run.py`` checks the ratio of ``again``.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
_SCRIPT = shutil.which("torchpin", path=str(Path(sys.executable).parent))
TORCHPIN = (_SCRIPT,) if _SCRIPT is not None else (sys.executable, "-m", "torchpin")
FLEET = """\
[fleet.training]
gpus = ["A100-SXM4-80GB"]
driver = "580.65.06"
python = "3.11"
platform = "linux-x86_64"
"""
FILES = 1_000
HASH = """\
import hashlib, os
for folder, _, names in os.walk("."):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            hashlib.sha256(file.read()).hexdigest()
"""
FILLER = "# A line of text as files have them, which says nothing of packages.\n"
WORKFLOW = """\
name: checks
on: [push]
jobs:
  unit:
    runs-on: ubuntu-24.04
    strategy:
      matrix:
        python: ["3.11", "3.12"]
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with: {python-version: "${{ matrix.python }}"}
      - run: |
          pip install -U pip
          pip install PACKAGE
          pytest
"""
TEXTS = {
    "requirements-{}.txt": "numpy>=2\nrequests\nPACKAGE\n",
    "Dockerfile.{}": "FROM python:3.12\nRUN pip install numpy\nRUN pip install PACKAGE\n",
    "script-{}.sh": "#!/bin/sh\nset -e\npython -m pip install PACKAGE\npython train.py\n",
    ".github/workflows/w{}.yml": WORKFLOW,
    "p{}/pyproject.toml": '[project]\nname = "p"\nversion = "0"\ndependencies = ["PACKAGE"]\n',
    "p{}/setup.py": 'from setuptools import setup\nsetup(install_requires=["PACKAGE"])\n',
    "module_{}.py": "import json\n\n\ndef main() -> None:\n    print(json)\n",
    "notes_{}.md": "# Notes\n",
    "env{}/environment.yml": "dependencies:\n  - pip:\n      - PACKAGE\n",
    "compose-{}.yml": "services:\n  a:\n    image: python\n    command: pip install PACKAGE\n",
}


def build(folder: Path, every: int) -> None:
    """Write the files; one in ``every`` of those that can names torch."""
    names = list(TEXTS)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        name = names[number % len(names)]
        torch = (number // len(names)) % every == 0
        text = TEXTS[name].replace("PACKAGE", "torch==2.14.1" if torch else "scipy==1.16.0")
        path = folder / name.format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = "//" if name.endswith(".md") else ""
        path.write_text(text + f"\n{mark}{FILLER}" * 30)
    (folder / "torchpin.toml").write_text(FLEET)


class Times(NamedTuple):
    """Milliseconds of each kind of run on one folder."""

    hashed: float
    """Read and hash all files with Python."""
    cold: float
    first: float
    changed: float
    again: float


def spent(command: tuple[str, ...], folder: Path, cache: Path, *, processor: bool) -> float:
    """Return the time of a process in milliseconds: by the clock, or of the processor."""
    environment = ENVIRONMENT | {"TORCHPIN_CACHE_DIR": str(cache)}
    environment.pop("TORCHPIN_NO_CACHE", None)
    start, used = time.perf_counter(), children_time()
    done = subprocess.run(command, cwd=folder, capture_output=True, env=environment)
    took = children_time() - used if processor else time.perf_counter() - start
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command} failed:\n{done.stderr.decode()}")
    return took * 1000


def children_time() -> float:
    """Return the processor time of ended children in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(every: int, runs: int, *, processor: bool) -> Times:
    """Return the times of a folder in which one file in ``every`` names torch."""
    with tempfile.TemporaryDirectory() as name:
        folder, cache = Path(name, "folder"), Path(name, "cache")
        build(folder, every)
        check = (*TORCHPIN, "check", ".")
        best = Times(*(float("inf") for _ in Times._fields))
        for _ in range(runs):
            shutil.rmtree(cache, ignore_errors=True)
            took = [
                spent((sys.executable, "-c", HASH), folder, cache, processor=processor),
                spent((*check, "--no-cache"), folder, cache, processor=processor),
                spent(check, folder, cache, processor=processor),
            ]
            with (folder / "requirements-0.txt").open("a", encoding="utf-8") as file:
                file.write("# one more line\n")
            took += [spent(check, folder, cache, processor=processor) for _ in range(2)]
            best = Times(*map(min, best, took))
    return best


def main() -> int:
    """Print the times and their ratios to reading and hashing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--processor", action="store_true", help="measure the processor's time")
    args = parser.parse_args()
    print(f"{os.cpu_count()} cores, {FILES} files")
    for every in (50, 10, 2):
        times = measure(every, args.runs, processor=args.processor)
        shown = ", ".join(
            f"{name} {value:6.1f} ms ({value / times.hashed:4.1f} x)"
            for name, value in times._asdict().items()
            if name != "hashed"
        )
        print(f"1 of {every:2} names torch: read and hash {times.hashed:5.1f} ms, {shown}")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process: {peak:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
