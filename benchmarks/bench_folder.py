"""Measure a folder of 1,000 mixed files: ``python benchmarks/bench_folder.py``.

The yardstick is a Python process that reads and hashes the same files. Three folders: one as most
are (one file in fifty installs torch), one with a tenth, and one in which every second file does.
Wall time, the minimum of several rounds in turn.
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
    for number in range(FILES):
        name = names[number % len(names)]
        torch = (number // len(names)) % every == 0
        text = TEXTS[name].replace("PACKAGE", "torch==2.14.1" if torch else "scipy==1.16.0")
        path = folder / name.format(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = "//" if name.endswith(".md") else ""
        path.write_text(text + f"\n{mark}{FILLER}" * 30)
    (folder / "torchpin.toml").write_text(FLEET)


def wall(command: tuple[str, ...], folder: Path) -> float:
    """Return the wall time of a process in milliseconds."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, env=ENVIRONMENT)
    took = time.perf_counter() - start
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command} failed:\n{done.stderr.decode()}")
    return took * 1000


def main() -> int:
    """Print the times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="rounds (default: 5)")
    runs = parser.parse_args().runs
    print(f"{os.cpu_count()} cores, {FILES} files")
    for every in (50, 10, 2):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            build(folder, every)
            hashed = checked = float("inf")
            for _ in range(runs):
                hashed = min(hashed, wall((sys.executable, "-c", HASH), folder))
                checked = min(checked, wall((*TORCHPIN, "check", "."), folder))
        print(
            f"1 of {every:2} names torch: read and hash {hashed:7.1f} ms, check {checked:7.1f} ms, "
            f"{checked / hashed:5.2f} x"
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process: {peak:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
