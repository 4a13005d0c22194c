"""Compares what ``select`` predicts of a uv project with the lock that real uv makes of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import product
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version
from tests.clients.oracle import bases
from tests.clients.runners import (
    GLIBC,
    MACOS,
    Picked,
    Where,
    clean_environment,
    marker_values,
    platform_tags,
    uv_binary,
)
from tests.clients.stub_facts import FAMILY, PYPI
from tests.clients.stub_server import Address
from tests.projects.generate_projects import PYTHONS, WRONG_KEY, ProjectCase
from tests.projects.uv_lock_walk import clashing, parse, walked

from torchpin.documents.base import Document, Problem
from torchpin.documents.pyproject import read_pyproject, read_uv_toml
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.select.model import Install, SelectedSet
from torchpin.select.projects import project_installs
from torchpin.select.selection import select
from torchpin.select.uv_prediction import lock_of

ERROR, UNKNOWN = "error", "unknown"
PLATFORMS = ("linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64", "macos-x86_64")
MINORS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
NAME = "app"


class Answer(NamedTuple):
    """A build, and whether one of its wheels suits the target."""

    picked: Picked | None
    """None where only the want of a wheel is predicted."""
    fits: bool


Said = dict[str, Answer] | str
"""Family packages by name; ``error``: uv stops; ``unknown: why``."""


class Difference(NamedTuple):
    """An environment in which prediction and lock disagree."""

    install: str | None
    where: Where
    predicted: Said
    said: Said


class Compared(NamedTuple):
    """A case with everything that was said about it."""

    case: ProjectCase
    locked: bool
    log: str
    environments: int
    """How many environments were compared."""
    unknown: str
    """Why nothing is predicted, ``""`` if it is."""
    differences: tuple[Difference, ...]

    @property
    def text(self) -> str:
        """The case and the first differences, to read and to keep."""
        lines = [*(f"# {path}\n{text}" for path, text in self.case.files)]
        lines.append(f"uv: {'locks' if self.locked else self.log.strip()[-900:]}")
        for one in self.differences[:3]:
            where = f"{one.install}, {one.where.platform}, {one.where.python}"
            lines += [f"{where}:", f"  predicted {one.predicted}", f"  uv        {one.said}"]
        return "\n".join(lines)


class UvLock:
    """Real uv with a cache of its own."""

    def __init__(self, stub: Address) -> None:
        found = uv_binary()
        assert found is not None, "there is no uv in the test environment"
        self.binary = found
        self.stub = stub
        self._cache = tempfile.TemporaryDirectory(prefix="uv-lock-")

    def __enter__(self) -> UvLock:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cache.cleanup()

    def run(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a project command of uv in a folder with a ``pyproject.toml``."""
        text = (folder / "pyproject.toml").read_text("utf-8")
        beside = folder / "uv.toml"
        settings = beside.read_text("utf-8") if beside.exists() else text
        environment = clean_environment()
        del environment["UV_NO_CONFIG"]
        environment["UV_CACHE_DIR"] = self._cache.name
        if WRONG_KEY in settings or not re.search(r"^(default = true|index-url)", settings, re.M):
            environment["UV_DEFAULT_INDEX"] = self.stub.pypi
        texts = [text, *(p.read_text("utf-8") for p in folder.glob("packages/*/pyproject.toml"))]
        python = interpreter_for("\n".join(texts))
        command = [self.binary, *arguments, "--no-progress", "--python", python]
        return subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )


@lru_cache
def interpreters() -> tuple[tuple[str, str], ...]:
    """Return version and path of every Python that can be had here, this one first."""
    found = [(".".join(map(str, sys.version_info[:3])), sys.executable)]
    homes = [Path.home() / ".pyenv" / "versions"]
    paths = [p for home in homes if home.is_dir() for p in sorted(home.glob("3.*/bin/python3"))]
    paths += [Path(p) for m in range(10, 16) if (p := shutil.which(f"python3.{m}"))]
    for path in paths:
        done = subprocess.run(
            [str(path), "-c", "import platform; print(platform.python_version())"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        version = done.stdout.strip()
        if done.returncode == 0 and version not in dict(found):
            found.append((version, str(path)))
    return tuple(found)


def interpreter_for(text: str) -> str:
    """Return an interpreter that a project admits; uv refuses to lock without one."""
    wanted = ",".join(re.findall(r'^requires-python = "([^"]*)"', text, re.M))
    try:
        pythons = SpecifierSet(wanted)
    except InvalidSpecifier:
        return interpreters()[0][1]
    for version, path in interpreters():
        if pythons.contains(version, prereleases=True):
            return path
    return interpreters()[0][1]


def possible_pythons() -> tuple[str, ...]:
    """Return the ``requires-python`` of the generator that can be tried with what is here."""
    versions = [version for version, _ in interpreters()]
    return tuple(t for t in PYTHONS if any(SpecifierSet(t).contains(v) for v in versions))


def target_of(where: Where) -> Target:
    """Return a place of the clients as a target."""
    version = Version(where.python)
    python = Python(version.major, version.minor)
    group = NodeGroup(
        name=where.platform,
        gpus=(),
        pythons=(python,),
        platform=where.platform,
        glibc=where.glibc if where.platform.startswith("linux") else None,
        macos=where.macos if where.platform.startswith("macos") else None,
    )
    return Target(group, python)


def values_of(where: Where) -> dict[str, str]:
    """Return all marker values of a target."""
    rest = {"platform_release": "", "platform_version": "", "extra": ""}
    rest |= {"platform_python_implementation": "CPython", "implementation_name": "cpython"}
    patch = {"python_full_version": f"{where.python}.99"}
    patch["implementation_version"] = patch["python_full_version"]
    return {**rest, **marker_values(where), **patch}


def fits(filename: str, where: Where) -> bool:
    """Return whether a wheel installs on a target."""
    tags = parse_wheel_filename(filename.replace("%2B", "+"))[3]
    places = {*platform_tags(where), "any"}
    if where.platform.startswith("macos"):
        machine, top = where.platform.split("-")[1], int(where.macos.split(".")[0])
        places |= {f"macosx_{major}_0_{machine}" for major in range(11, top + 1)}
        places |= {f"macosx_10_{minor}_{machine}" for minor in range(4, 17)}
    minor = int(where.python.split(".")[1])
    for tag in tags:
        if tag.platform not in places:
            continue
        own = tag.interpreter in (f"cp3{minor}",) and tag.abi in (f"cp3{minor}", "none", "abi3")
        stable = tag.abi == "abi3" and tag.interpreter.startswith("cp3")
        older = stable and int(tag.interpreter[3:]) <= minor
        pure = tag.abi == "none" and tag.interpreter in ("py3", *(f"py3{m}" for m in range(minor)))
        if own or older or pure:
            return True
    return False


def agree(predicted: Said, said: Said) -> bool:
    """Return whether two answers say the same."""
    if isinstance(predicted, str) or isinstance(said, str):
        return predicted == said
    return predicted.keys() == said.keys() and all(
        one.fits == said[name].fits and one.picked in (None, said[name].picked)
        for name, one in predicted.items()
    )


class ProjectOracle:
    """Runs cases through ``uv lock`` and through ``select``."""

    def __init__(self, stub: Address, uv: UvLock, facts: Any, folder: Path) -> None:
        self.stub = stub
        self.uv = uv
        self.facts = facts
        self.folder = folder

    def compare_all(self, cases: list[ProjectCase], workers: int = 2) -> Iterator[Compared]:
        """Compare cases; uv runs in parallel, the prediction is made in this thread."""
        with ThreadPoolExecutor(workers) as pool:
            for case, (lock, log) in zip(cases, pool.map(self.lock, cases), strict=True):
                yield self.judge(case, lock, log)

    def compare(self, case: ProjectCase) -> Compared:
        """Return what uv and the prediction say about a case."""
        lock, log = self.lock(case)
        return self.judge(case, lock, log)

    def lock(self, case: ProjectCase) -> tuple[str | None, str]:
        """Return the lock that uv makes of a case (None if it stops), and its messages."""
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            for path, text in case.files:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(self.filled(text), "utf-8")
            done = self.uv.run(folder, "lock")
            if done.returncode != 0:
                return None, done.stderr
            return (folder / "uv.lock").read_text("utf-8"), done.stderr

    def filled(self, text: str) -> str:
        """Return a text with the address of the stub in it, plain (``$B``) or with a password."""
        for sign, base in bases(self.stub).items():
            text = text.replace(sign, base)
        return text

    def documents(self, case: ProjectCase) -> list[Document]:
        """Return the files of a case, the project's own first."""
        return [
            (read_uv_toml if path == "uv.toml" else read_pyproject)(
                path, self.filled(text).encode()
            )
            for path, text in case.files
        ]

    def installs(self, case: ProjectCase) -> tuple[Install, ...]:
        """Return the ways in of a case."""
        found = self.documents(case)
        for one in found:
            assert all(p.code == "misplaced" for p in one.problems), one.problems
        document, rest = found[0], found[1:]
        ways = project_installs(
            document,
            lock=None,
            client="uv",
            siblings=tuple(one for one in rest if one.kind == "pyproject"),
            settings=next((one for one in rest if one.kind == "uv.toml"), None),
        )
        project = document.project
        assert project is not None
        if len(project.extras) > 1:
            both = ways[0]._replace(name="two extras", extras=project.extras[:2])
            ways = (*ways, both)
        return ways

    def installed(self, lock: str, case: ProjectCase, name: str, where: Where) -> list[str]:
        """Return what a lock installs as words: ``torch==2.13.0+cu126@cu126``.

        ``!`` at the end: the lock has no wheel for the target. ``name`` is that of an install,
        ``plain`` for the one without.
        """
        install = next(i for i in self.installs(case) if (i.name or "plain") == name)
        said = self.said(parse(lock), install, where)
        assert not isinstance(said, str)
        words = []
        for package in (p for p in FAMILY if p in said):
            picked = said[package].picked
            assert picked is not None
            missing = "" if said[package].fits else "!"
            words.append(f"{package}=={picked.version}@{picked.home}{missing}")
        return words

    def judge(self, case: ProjectCase, lock: str | None, log: str) -> Compared:
        """Compare a lock with the prediction in every environment."""
        data = parse(lock) if lock is not None else None
        problems = [p for one in self.documents(case) for p in one.problems]
        refused = [p for p in problems if p.code != "misplaced"]
        if refused:
            return self.judge_refused(case, refused, lock, log)
        differences: list[Difference] = []
        count, unknown = 0, ""
        running = interpreters()[0][0].rpartition(".")[0]
        for install in self.installs(case):
            for platform, python in product(PLATFORMS, MINORS):
                where = Where(python, platform, GLIBC, MACOS)
                if not case.pythons and python != running:
                    continue  # uv takes the Python that runs it
                chosen = select(install, target_of(where), self.facts)
                predicted = self.predicted(chosen)
                if predicted == "outside":
                    continue
                count += 1
                said = ERROR if data is None else self.said(data, install, where)
                if isinstance(predicted, str) and predicted.startswith(UNKNOWN):
                    unknown = predicted
                elif not predicted and lock_of(install, self.facts).unclear:
                    unknown = f"{UNKNOWN}: {lock_of(install, self.facts).unclear}"
                elif said == "conflict" and predicted == ERROR:
                    continue
                elif not agree(predicted, said):
                    differences.append(Difference(install.name, where, predicted, said))
        return Compared(case, lock is not None, log, count, unknown, tuple(differences))

    def judge_refused(
        self, case: ProjectCase, refused: list[Problem], lock: str | None, log: str
    ) -> Compared:
        """Compare where a reader says that the installer stops.

        uv mends some specifiers of projects that are none (``>=2.9.*``); builds stop at them.
        """
        where = Where(MINORS[0], PLATFORMS[0], GLIBC, MACOS)
        mended = all(problem.code == "specifier" for problem in refused)
        wrong = [] if lock is None or mended else [Difference(None, where, ERROR, "a lock")]
        return Compared(case, lock is not None, log, 1, "", tuple(wrong))

    def said(self, data: dict[str, Any], install: Install, where: Where) -> Said:
        """Return what the lock installs in an environment."""
        found, active = walked(data, NAME, values_of(where), install.extras, install.groups)
        if clashing(data, active):
            return "conflict"
        return {
            name: Answer(placed.picked, any(fits(wheel, where) for wheel in placed.wheels))
            for name, placed in found.items()
            if name in FAMILY
        }

    def predicted(self, chosen: SelectedSet) -> Said:
        """Return a selection as one answer; ``outside`` where the project is not for the target."""
        if chosen.conflict is not None:
            return ERROR
        out: dict[str, Answer] = {}
        for one in chosen.selections:
            if one.status == UNKNOWN:
                return f"{UNKNOWN}: {one.because}"
            if one.package not in FAMILY or one.status == "skipped":
                continue
            if one.miss is not None and not one.because.startswith("uv locks"):
                return "outside"
            picked = None
            if one.build is not None:
                home = PYPI if one.build.home == PYPI else one.build.channel
                picked = Picked(one.build.full_version, home)
            out[one.package] = Answer(picked, one.build is not None)
        return out


def shrink(case: ProjectCase, fails: Callable[[ProjectCase], bool]) -> ProjectCase:
    """Return a smaller case that still fails: lines and array items go one at a time."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller_cases(case):
            try:
                if fails(smaller):
                    case, changed = smaller, True
                    break
            except (AssertionError, KeyError):
                continue
    return case


def _smaller_cases(case: ProjectCase) -> Iterator[ProjectCase]:
    for at, (name, _) in enumerate(case.members):
        if name in case.text.replace("[tool.uv.workspace]", ""):
            continue
        yield case._replace(members=case.members[:at] + case.members[at + 1 :])
    if case.beside is not None:
        yield case._replace(beside=None)
        for text in _smaller(case.beside):
            yield case._replace(beside=text)
    for text in _smaller(case.text):
        yield case._replace(text=text)
    for at, (name, whole) in enumerate(case.members):
        for text in _smaller(whole):
            members = (*case.members[:at], (name, text), *case.members[at + 1 :])
            yield case._replace(members=members)


def _smaller(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    tables = [at for at, line in enumerate(lines) if line.startswith("[[")]
    for at in tables:
        end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("[")), len(lines))
        yield "".join(lines[:at] + lines[end:])
    for at, line in enumerate(lines):
        header = line.startswith("[") and not "".join(lines[at + 1 : at + 2]).startswith("[")
        if header and at + 1 < len(lines):
            continue
        if line.startswith(("[project]", "name =", "version =")):
            continue
        yield "".join(lines[:at] + lines[at + 1 :])
        parts = line.split(", ")
        if " = [" in line and len(parts) > 1:
            head, _, body = line.partition("[")
            items = body.rstrip("\n").removesuffix("]").split(", ")
            for n in range(len(items)):
                kept = ", ".join(items[:n] + items[n + 1 :])
                yield "".join([*lines[:at], f"{head}[{kept}]\n", *lines[at + 1 :]])
        for mark in (" ; ",):
            if mark in line:
                head, _, tail = line.rpartition(mark)
                yield "".join([*lines[:at], head + tail[tail.index('"') :], *lines[at + 1 :]])
