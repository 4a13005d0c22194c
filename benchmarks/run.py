"""Measure the speed budgets as ratios, in one run on one machine: ``python benchmarks/run.py``.

Each figure is the minimum of several runs, in processor time (torchpin runs on one thread and waits
for nothing, so on an idle machine it is the wall time); what is compared runs in turn (A B A B …),
so that load on the machine hits both. A budget is broken if the ratio is above it by more than
``TOLERANCE``: two runs of the same code on a busy machine of two cores differ by up to a fifth.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

TOLERANCE = 1.2
"""Factor on each budget for the noise of the machine."""
FLEET = """\
[fleet.training]
gpus = ["A100-SXM4-80GB"]
driver = "580.65.06"
python = "3.11"
platform = "linux-x86_64"
"""
PROJECT = """\
[project]
name = "app"
version = "0"
requires-python = "==3.11.*"
dependencies = ["torch==2.13.0"]

[tool.uv]
package = false
"""
LOCK = """\
version = 1
revision = 3
requires-python = "==3.11.*"

[[package]]
name = "app"
version = "0"
source = { virtual = "." }
dependencies = [
    { name = "torch" },
]

[package.metadata]
requires-dist = [{ name = "torch", specifier = "==2.13.0" }]

[[package]]
name = "torch"
version = "2.13.0"
source = { registry = "https://pypi.example/simple" }
wheels = [
    { url = "https://files.example/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl", \
hash = "sha256:60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7", size = 1 },
]
"""
CLEAN = "numpy>=2\nrequests\ntorch==2.14.1\ntorchvision==0.29.1\n"
BROKEN = """\
torch==2.14.0+cu124
torchvision==0.19.0+cu124
torchaudio==2.14.0+cu124
--extra-index-url https://download.pytorch.org/whl/cu124
"""
PLAIN = "numpy>=2\nrequests\n"


ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()
    # A user's Python keeps compiled modules; without them each run would compile them again.
    if key not in ("PYTHONDONTWRITEBYTECODE", "FORCE_COLOR")
}
ENVIRONMENT["TORCHPIN_NO_CACHE"] = "1"
"""A check of a folder would show its first result again (``bench_folder`` measures that)."""


class Result(NamedTuple):
    """One figure and its budget."""

    name: str
    value: float
    budget: float | None
    """None: shown, not judged."""
    unit: str

    @property
    def broken(self) -> bool:
        """True if the budget does not hold, noise allowed for."""
        return self.budget is not None and self.value > self.budget * TOLERANCE


PYTHON = (sys.executable,)
_SCRIPT = shutil.which("torchpin", path=str(Path(sys.executable).parent))
TORCHPIN = (_SCRIPT,) if _SCRIPT is not None else (sys.executable, "-m", "torchpin")
"""The console script: what users run (``-m`` costs some milliseconds more)."""


def process(*args: str, cwd: Path) -> float:
    """Return the processor time of a process in milliseconds."""
    start = children_time()
    done = subprocess.run(args, cwd=cwd, capture_output=True, env=ENVIRONMENT)
    took = children_time() - start
    if done.returncode not in (0, 1):
        raise SystemExit(f"{args} failed:\n{done.stderr.decode()}")
    return took * 1000


def children_time() -> float:
    """Return the processor time of ended children in seconds (Windows: a clock)."""
    if sys.platform == "win32":
        return time.perf_counter()
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def alternating(runs: int, *tasks: Callable[[], float]) -> list[float]:
    """Return the minimum of each task over ``runs`` rounds of all of them."""
    best = [float("inf")] * len(tasks)
    for _ in range(runs):
        for index, task in enumerate(tasks):
            best[index] = min(best[index], task())
    return best


def cold_check(folder: Path, runs: int) -> list[Result]:
    """Compare a cold ``check`` of one file with an interpreter that does nothing."""
    (folder / "torchpin.toml").write_text(FLEET)
    names = {"clean": CLEAN, "broken": BROKEN, "plain": PLAIN}
    for name, text in names.items():
        (folder / f"requirements-{name}.txt").write_text(text)

    def check(name: str) -> Callable[[], float]:
        return lambda: process(*TORCHPIN, "check", f"requirements-{name}.txt", cwd=folder)

    project = folder / "project"
    project.mkdir()
    (project / "torchpin.toml").write_text(FLEET)
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "uv.lock").write_text(LOCK)
    bare, clean, broken, plain, locked = alternating(
        runs,
        lambda: process(*PYTHON, "-c", "pass", cwd=folder),
        check("clean"),
        check("broken"),
        check("plain"),
        lambda: process(*TORCHPIN, "check", "pyproject.toml", cwd=project),
    )
    return [
        Result("bare python -c pass", bare, None, "ms"),
        Result("cold check, one file that runs / bare python", clean / bare, 7, "x"),
        Result("cold check, one file without torch / bare python", plain / bare, 7, "x"),
        Result("cold check, pyproject and small uv.lock / bare python", locked / bare, 8, "x"),
        Result(
            "cold check, one file with findings and fixes / bare python", broken / bare, None, "x"
        ),
    ]


def warm(runs: int) -> list[Result]:
    """Measure what runs after import: the catalog and a whole resolution."""
    load = (
        "import time, json\n"
        "from torchpin.catalog import store\n"
        "start = time.process_time()\n"
        "catalog = store.load_catalog()\n"
        "catalog.builds('torch')\n"
        "print((time.process_time() - start) * 1000)\n"
    )
    solve = (
        "import time\n"
        "from torchpin.catalog.store import load_catalog\n"
        "from torchpin.fleet.profile import fleet_from_options\n"
        "from torchpin.resolve.solve import solve\n"
        "from torchpin.resolve.model import Origin, Request, Want\n"
        "catalog = load_catalog()\n"
        "fleet = fleet_from_options(gpus=['V100', 'B200'], driver='580.65.06', python='3.11')\n"
        "for name in ('torch', 'torchvision', 'torchaudio'): catalog.builds(name)\n"
        "origin = Origin('r.txt', 1, 'torch')\n"
        "wants = tuple(Want(n, '', origin) for n in ('torch', 'torchvision', 'torchaudio'))\n"
        "start = time.process_time()\n"
        "outcome = solve(Request(wants, fleet.targets(), 'newest'), catalog)\n"
        "took = (time.process_time() - start) * 1000\n"
        "assert outcome.plans, outcome\n"
        "print(took)\n"
    )

    def inside(code: str) -> Callable[[], float]:
        def task() -> float:
            done = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                check=True,
                env=ENVIRONMENT,
            )
            return float(done.stdout)

        return task

    loaded, solved = alternating(runs, inside(load), inside(solve))
    return [
        Result("load the catalog with the builds of torch", loaded, 5, "ms"),
        Result("resolve the family on V100 + B200, catalog loaded", solved, 20, "ms"),
    ]


def many(folder: Path) -> list[Result]:
    """Measure whether the time for many files grows as their number does."""
    times: dict[int, float] = {}
    for number in (250, 1000):
        root = folder / f"many-{number}"
        (root / "deps").mkdir(parents=True)
        (root / "torchpin.toml").write_text(FLEET)
        for index in range(number):
            (root / "deps" / f"requirements-{index}.txt").write_text(CLEAN)
        times[number] = min(process(*TORCHPIN, "check", ".", cwd=root) for _ in range(2))
    empty = min(process(*TORCHPIN, "--version", cwd=folder) for _ in range(3))
    growth = (times[1000] - empty) / (times[250] - empty) / 4
    return [
        Result("1,000 files", times[1000], None, "ms"),
        Result("time of 1,000 files / 4 x time of 250 files", growth, 1.25, "x"),
    ]


def again(runs: int) -> list[Result]:
    """Compare a check of an unchanged folder with reading and hashing its files."""
    if sys.platform == "win32":  # bench_folder asks for the processor time of POSIX
        return []
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from benchmarks.bench_folder import measure

    results = []
    for every, some in ((50, "few"), (2, "half")):
        times = measure(every, runs, processor=True)
        name = f"1,000 mixed files, {some} with torch"
        results += [
            Result(f"{name}: check / read and hash", times.cold / times.hashed, None, "x"),
            Result(f"{name}: check again / read and hash", times.again / times.hashed, 2, "x"),
        ]
    return results


def main() -> int:
    """Print the figures; 1 if a budget is broken."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=15, help="rounds (default: 15)")
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = [*cold_check(folder, runs), *warm(max(3, runs // 3)), *many(folder)]
        results += again(max(3, runs // 3))
    for result in results:
        budget = "" if result.budget is None else f"budget {result.budget:g} {result.unit}"
        mark = "BROKEN" if result.broken else "ok" if result.budget is not None else ""
        print(f"{result.value:9.2f} {result.unit:<3} {result.name:<62} {budget:<15} {mark}")
    broken = [result.name for result in results if result.broken]
    if broken:
        print(f"{len(broken)} budgets are broken (noise of x{TOLERANCE} allowed for)")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
