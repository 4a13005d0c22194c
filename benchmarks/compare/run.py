"""Compare torchpin with its peers: ``python -m benchmarks.compare.run [--write]``.

Each tool is installed into an environment of its own (``--programs DIR`` keeps them), asked about
the same machines and files, and its answer is judged by the kernel lists and driver floors of the
catalog. ``--write`` puts the tables into ``docs/explanation/comparison.md``.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.compare.peers import (
    PEERS,
    Answer,
    dockerfile_by_env_doctor,
    dockerfile_by_torchpin,
    surroundings,
)
from benchmarks.compare.scenarios import FILES, MACHINES, Machine
from packaging.version import Version

from torchpin.catalog.drivers import load_drivers
from torchpin.catalog.model import Build
from torchpin.catalog.store import load_catalog
from torchpin.fleet.model import Target
from torchpin.fleet.options import fleet_from_options
from torchpin.judge.verdict import judge
from torchpin.select.environments import wheel_fits

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "comparison.md"
BEGIN = "<!-- compared: python -m benchmarks.compare.run --write -->"
END = "<!-- end -->"


def install(programs: Path) -> dict[str, str]:
    """Install the tools that are not there yet; return their versions."""
    versions = {}
    for name, (wanted, _) in PEERS.items():
        home = programs / name
        python = home / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            what = str(ROOT) if wanted == "." else wanted
            subprocess.run([str(python), "-m", "pip", "install", "-q", what], check=True)
        code = f"import importlib.metadata as m; print(m.version({name!r}))"
        done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True)
        versions[name] = done.stdout.strip()
    return versions


def target_of(machine: Machine) -> Target:
    """Return the machine as torchpin knows it."""
    fleet = fleet_from_options(
        gpus=list(machine.gpus),
        driver=machine.driver,
        python=[machine.python],
        platform="linux-x86_64",
        glibc=None,
    )
    return fleet.targets()[0]


def build_of(answer: Answer, machine: Machine) -> Build | None:
    """Return the build that an answer leads to on a machine."""
    catalog = load_catalog(isolated=True)
    target = target_of(machine)
    for channel in answer.channels:
        held = (
            catalog.find("torch", home="pypi", platform="linux-x86_64")
            if channel == "pypi"
            else catalog.find("torch", home="channel", channel=channel, platform="linux-x86_64")
        )
        fitting = tuple(
            one
            for one in held
            if (answer.version is None or one.version == answer.version)
            and not Version(one.version).is_prerelease
            and wheel_fits(one, target)[0]
        )
        if fitting and answer.as_text:
            return max(fitting, key=lambda one: one.version)
        if fitting:
            return max(fitting, key=lambda one: Version(one.version))
    return None


def outcome(answer: Answer, machine: Machine) -> tuple[str, str]:
    """Return what comes of an answer: (what it is, ``runs``, ``fails`` …)."""
    if answer.refused:
        return "none", answer.refused
    build = build_of(answer, machine)
    if build is None:
        version = answer.version or "newest"
        return f"{version} from {' '.join(answer.channels) or 'nowhere'}", "no such wheel"
    verdict = judge(build, target_of(machine), load_drivers())
    title = f"{build.version} ({build.channel})"
    reasons = [one.question for one in verdict.reasons if one.status == "fails"]
    word = {"kernels": "no kernels", "driver": "driver too old"}
    told = ", ".join(dict.fromkeys(word.get(one, one) for one in reasons))
    return title, f"{verdict.status}: {told}" if told else verdict.status


def machines_table(programs: Path) -> list[str]:
    """Return the rows of the table of machines."""
    rows = [
        "| machine | driver, Python | " + " | ".join(PEERS) + " |",
        "|---|---|" + "---|" * len(PEERS),
    ]
    for machine in MACHINES:
        cells = []
        for _, ask in PEERS.values():
            with tempfile.TemporaryDirectory() as temp:
                folder = Path(temp)
                answer = ask(programs, machine, surroundings(machine, folder), folder)
            title, told = outcome(answer, machine)
            cells.append(f"{title}: **{told}**")
        rows.append(
            f"| {machine.about} | {machine.driver}, {machine.python} | {' | '.join(cells)} |"
        )
    return rows


def files_table(programs: Path) -> list[str]:
    """Return the rows of the table of Dockerfiles."""
    rows = ["| Dockerfile | it is | torchpin | env-doctor |", "|---|---|---|---|"]
    for file in FILES:
        with tempfile.TemporaryDirectory() as temp:
            folder = Path(temp)
            (folder / "Dockerfile").write_text(file.text)
            env = dict(os.environ, PYTHONUTF8="1", NO_COLOR="1")
            told = (
                dockerfile_by_torchpin(programs, env, folder),
                dockerfile_by_env_doctor(programs, env, folder),
            )
        truth = "right" if file.right else "wrong"
        because = f": {file.because}" if file.because else ""
        rows.append(f"| {file.about} | {truth}{because} | {' | '.join(told)} |")
    return rows


def main() -> int:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--programs", metavar="DIR", help="where the tools are installed, and stay")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temp:
        programs = Path(args.programs or temp).resolve()
        versions = install(programs)
        told = ", ".join(f"{name} {version}" for name, version in versions.items())
        day = datetime.date.today().isoformat()
        lines = [
            f"Measured on {day} with {told}.",
            "",
            *machines_table(programs),
            "",
            *files_table(programs),
        ]
    print("\n".join(lines))
    if args.write:
        page = PAGE.read_text("utf-8")
        head, _, rest = page.partition(BEGIN)
        _, _, tail = rest.partition(END)
        PAGE.write_text("\n".join((f"{head}{BEGIN}", "", *lines, "", f"{END}{tail}")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
