"""Golden projects: what is said and written, and that real uv and Poetry lock what is promised."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.clients.installs import catalog_wheels, plain_wheel  # noqa: E402
from tests.clients.runners import Where, clean_environment, home_of  # noqa: E402
from tests.clients.stub_facts import FAMILY  # noqa: E402
from tests.clients.stub_server import Stub  # noqa: E402
from tests.projects.project_oracle import UvLock, values_of  # noqa: E402
from tests.projects.uv_lock_walk import holds, installed, parse  # noqa: E402
from tools.record_golden import (  # noqa: E402
    PROJECTS,
    answer,
    differs,
    files_of,
    findings,
    torchpin,
)

from torchpin.documents.pyproject import read_pyproject  # noqa: E402
from torchpin.fleet.profile import load_profile  # noqa: E402

FOLDERS = sorted(path.parent for path in PROJECTS.glob("*/options.json"))
FIXED = [folder for folder in FOLDERS if (folder / "fixed").exists()]
UV = [folder for folder in FIXED if folder.name.startswith("uv-")]
CHANNELS = "https://download.pytorch.org"
PROMISE = re.compile(r"(\S+) \((pypi|channel) (\S+)\) (\S+)")


@pytest.fixture(scope="module")
def world() -> Iterator[Stub]:
    """A stub that serves everything that the shipped catalog holds to exist."""
    others = [plain_wheel(name) for name in ("numpy", "ultralytics")]
    others.append(plain_wheel("pytorch-triton-rocm", "3.5.1")._replace(home="rocm6.4"))
    with Stub(wheels=[*catalog_wheels(), *others]) as stub:
        yield stub


@pytest.fixture(scope="module")
def uv_lock(world: Stub) -> Iterator[UvLock]:
    """Real uv on it."""
    with UvLock(world) as uv:
        yield uv


def test_there_are_golden_projects() -> None:
    assert len(FOLDERS) >= 60
    assert len(UV) >= 35


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_answer_is_as_recorded(folder: Path) -> None:
    expected, fixed = answer(folder)
    assert differs(folder, expected, fixed) == ""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_second_fix_changes_nothing(folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "project"
    shutil.copytree(folder / "input", work)
    if (folder / "fixed").exists():
        shutil.copytree(folder / "fixed", work, dirs_exist_ok=True)
    before = files_of(work)
    assert torchpin("fix", "--unsafe-fixes", str(work)).returncode in (0, 1)
    assert files_of(work) == before
    left = [one["fix"] for one in findings(work, []) if one["fix"] is not None]
    assert [fix for fix in left if fix["safety"] == "safe"] == []


@pytest.mark.parametrize("folder", FIXED, ids=lambda path: path.name)
def test_what_a_fix_never_writes(folder: Path) -> None:
    """No label, no cap; base dependencies, extras and the index of others stay."""
    before = read_pyproject("pyproject.toml", (folder / "input/pyproject.toml").read_bytes())
    after = read_pyproject("pyproject.toml", (folder / "fixed/pyproject.toml").read_bytes())
    old = {(one.name, one.scope): one.specifier for one in before.declarations}
    for one in after.declarations:
        was = old.get((one.name, one.scope))
        assert "+" not in one.specifier
        if was is None:
            assert "<" not in one.specifier
        elif was != one.specifier:
            assert was.startswith("==")
            assert one.specifier.startswith("==")
    assert {key for key in old if key not in {(d.name, d.scope) for d in after.declarations}} == (
        set()
    )
    assert before.project is not None
    assert after.project is not None
    assert set(before.project.extras) <= set(after.project.extras)
    for package in FAMILY:
        mine = [one for one in after.project.sources if one.package == package]
        scoped = [one for one in mine if one.extra or one.group]
        assert not scoped or len(scoped) == len(mine)


def promises(folder: Path) -> Iterator[tuple[str, str, str, dict[str, tuple[str, str]]]]:
    """Yield group, Python and way in with package → version and home."""
    known = json.loads((folder / "expected.json").read_text("utf-8"))
    for key, packages in known["installs"].items():
        _, group, python, *way = key.split(" ")
        found = {
            package: (match[1], "pypi" if match[2] == "pypi" else match[3])
            for package, text in packages.items()
            if (match := PROMISE.match(text)) and package in FAMILY
        }
        if found and len(found) == sum(package in FAMILY for package in packages):
            yield group, python, (way or [""])[0], found


def lay_out(folder: Path, work: Path, stub: Stub) -> dict[str, Where]:
    """Write the fixed project with the stub's addresses; return where each group installs."""
    shutil.copytree(folder / "input", work)
    shutil.copytree(folder / "fixed", work, dirs_exist_ok=True)
    manifest = work / "pyproject.toml"
    manifest.write_text(manifest.read_text("utf-8").replace(CHANNELS, stub.base), "utf-8")
    fleet = load_profile(str(folder / "input" / "torchpin.toml"))
    places = {}
    for target in fleet.targets():
        assert target.python is not None
        version = f"{target.python.major}.{target.python.minor}"
        places[target.group.name] = Where(version, target.group.platform)
    (work / "torchpin.toml").unlink()
    return places


@pytest.mark.clients
@pytest.mark.parametrize("folder", UV, ids=lambda path: path.name)
def test_real_uv_locks_what_is_promised(
    folder: Path, tmp_path: Path, world: Stub, uv_lock: UvLock
) -> None:
    work = tmp_path / "project"
    places = lay_out(folder, work, world)
    done = uv_lock.run(work, "lock")
    assert done.returncode == 0, done.stderr
    lock = parse((work / "uv.lock").read_text("utf-8"))
    seen = 0
    for group, _, way, promised in promises(folder):
        extras = [way.removeprefix("extra:")] if way.startswith("extra:") else []
        got = installed(lock, "app", values_of(places[group]), extras, [])
        said = {
            name: (one.picked.version, one.picked.home)
            for name, one in got.items()
            if name in FAMILY
        }
        assert said == promised, f"{folder.name} {group} {way}"
        seen += 1
    assert seen
    assert uv_lock.run(work, "lock", "--check").returncode == 0


@pytest.mark.clients
@pytest.mark.parametrize(
    "folder", [one for one in UV if "b200" in one.name], ids=lambda path: path.name
)
def test_each_extra_of_a_split_syncs(
    folder: Path, tmp_path: Path, world: Stub, uv_lock: UvLock
) -> None:
    """``uv sync --extra …`` (dry run) installs the planned build of each group."""
    work = tmp_path / "project"
    lay_out(folder, work, world)
    assert uv_lock.run(work, "lock").returncode == 0
    count = 0
    for _, _, way, promised in promises(folder):
        if not way.startswith("extra:"):
            continue
        extra = way.removeprefix("extra:")
        done = uv_lock.run(work, "sync", "--dry-run", "--locked", "--extra", extra)
        assert done.returncode == 0, done.stderr
        lines = set(done.stderr.split("\n"))
        for package, (version, _) in promised.items():
            assert f" + {package}=={version}" in lines, done.stderr
        count += 1
    both = uv_lock.run(work, "sync", "--dry-run", "--locked", "--all-extras")
    assert count < 2 or both.returncode != 0  # they exclude each other


@pytest.fixture(scope="session")
def poetry(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Real Poetry: the one on PATH, else from the package registry into an environment of its own.

    It needs other versions of torchpin's own dependencies, so it never goes beside them.
    """
    found = shutil.which("poetry")
    if found is not None:
        return found
    home = tmp_path_factory.mktemp("poetry")
    steps = [
        [sys.executable, "-m", "venv", str(home)],
        [str(home / "bin" / "pip"), "install", "--quiet", "poetry>=2"],
    ]
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=300, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"Poetry cannot be had: {error}")
        if done.returncode != 0:
            pytest.skip(f"Poetry cannot be had: {done.stderr[-300:]}")
    return str(home / "bin" / "poetry")


def poetry_installs(lock: dict[str, Any], where: Where) -> dict[str, tuple[str, str]]:
    """Return what ``poetry install`` takes of the family from a lock."""
    found: dict[str, tuple[str, str]] = {}
    for package in lock["package"]:
        marker = package.get("markers")
        if package["name"] not in FAMILY or not holds(marker, values_of(where), frozenset()):
            continue
        assert package["name"] not in found
        home = home_of(package["source"]["url"])
        found[package["name"]] = package["version"], home
    return found


@pytest.mark.clients
@pytest.mark.parametrize(
    "folder", [one for one in FIXED if one.name.startswith("poetry")], ids=lambda path: path.name
)
def test_real_poetry_locks_what_is_promised(
    folder: Path, tmp_path: Path, world: Stub, poetry: str
) -> None:
    work = tmp_path / "project"
    places = lay_out(folder, work, world)
    with (work / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[[tool.poetry.source]]\nname = "main"\nurl = "{world.pypi}/"\n')
        file.write('priority = "primary"\n')
    environment = {
        **clean_environment(),
        "POETRY_CACHE_DIR": str(tmp_path / "cache"),
        "POETRY_VIRTUALENVS_CREATE": "false",
        "POETRY_KEYRING_ENABLED": "false",
    }
    done = subprocess.run(
        [poetry, "lock", "--no-interaction"],
        cwd=work,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lock = parse((work / "poetry.lock").read_text("utf-8"))
    told = list(promises(folder))
    assert told
    for group, _, way, promised in told:
        assert not way
        assert poetry_installs(lock, places[group]) == promised
