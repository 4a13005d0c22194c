"""``fix --relock`` by real Poetry and PDM: manifest and lock together, or neither."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.installs import catalog_wheels, plain_wheel
from tests.clients.stub_server import Stub
from tests.projects.lock_tools import program, tool_environment, why_not
from tests.projects.uv_lock_walk import parse
from tools.record_golden import torchpin

pytestmark = [pytest.mark.clients, pytest.mark.oracle]

FLEET = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\npython = "3.11"\n'
POETRY = """\
[tool.poetry]
package-mode = false

[tool.poetry.dependencies]
python = ">=3.11,<3.14"
torch = { version = "2.14.1", source = "pytorch-cu130" }
old = "{OLD}"

[[tool.poetry.source]]
name = "stub"
url = "{BASE}/pypi/simple"
priority = "primary"

[[tool.poetry.source]]
name = "pytorch-cu130"
url = "{BASE}/whl/cu130"
priority = "explicit"
"""
PDM = """\
[project]
name = "app"
version = "0"
requires-python = ">=3.11,<3.14"
dependencies = ["torch==2.14.1", "old{OLD}"]

[tool.pdm]
distribution = false

[[tool.pdm.source]]
name = "pypi"
url = "{BASE}/pypi/simple"

[[tool.pdm.source]]
name = "pytorch-cu130"
url = "{BASE}/whl/cu130"
include_packages = ["torch"]
exclude_packages = ["*"]
"""
PROJECTS = {"poetry": (POETRY, "<2", "*"), "pdm": (PDM, "<2", "")}
COMMANDS = {"poetry": "poetry update --lock torch", "pdm": "pdm update --no-sync torch"}


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    olds = [plain_wheel("old", version) for version in ("1.0", "2.0")]
    with Stub(wheels=[*catalog_wheels(), *olds]) as running:
        yield running


@pytest.fixture(params=sorted(PROJECTS))
def tool(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if why_not(name):
        pytest.skip(why_not(name))
    return name


@pytest.fixture
def project(tool: str, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A locked project, and an environment in which its tool knows nothing but the stub."""
    work = tmp_path / "project"
    work.mkdir()
    text, low, free = PROJECTS[tool]
    text = text.replace("{BASE}", stub.base)
    (work / "torchpin.toml").write_text(FLEET, "utf-8")
    for name, value in tool_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    folder = str(Path(str(program(tool))).parent)
    monkeypatch.setenv("PATH", os.pathsep.join((folder, os.environ["PATH"])))
    for old in (low, free):
        manifest = text.replace("{OLD}", old)
        (work / "pyproject.toml").write_text(manifest, "utf-8", newline="\n")
        keep = ("--update-reuse",) if tool == "pdm" else ()
        done = os.spawnvp(
            os.P_WAIT, tool, [tool, "lock", "-q", *(keep if old == free else ()), *at(tool, work)]
        )
        assert done == 0
    return work


def at(tool: str, work: Path) -> tuple[str, ...]:
    return ("--project" if tool == "pdm" else "--directory", str(work))


def contents(work: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in work.iterdir() if path.is_file()}


def packages(work: Path, tool: str) -> dict[str, str]:
    lock = parse((work / f"{tool}.lock").read_text("utf-8"))
    found = {}
    for package in lock["package"]:
        labels = {f["file"].split("-")[1] for f in package["files"]}
        found[package["name"]] = f"{package['version']} {' '.join(sorted(labels))}"
    return found


def test_without_relock_the_command_is_told(project: Path, tool: str) -> None:
    lock = (project / f"{tool}.lock").read_bytes()
    done = torchpin("fix", str(project))
    assert done.returncode == 1, done.stdout + done.stderr
    assert COMMANDS[tool] in done.stdout
    assert (project / f"{tool}.lock").read_bytes() == lock
    assert "/whl/cu126" in (project / "pyproject.toml").read_text("utf-8")


def test_relock_mends_both(project: Path, tool: str) -> None:
    before = packages(project, tool)
    assert "cu130" in before["torch"]
    assert before["old"].startswith("1.0")
    done = torchpin("fix", "--relock", str(project))
    assert done.returncode == 0, done.stdout + done.stderr
    after = packages(project, tool)
    assert "2.14.1+cu126" in after["torch"]
    assert "cu130" not in after["torch"]
    assert after["old"] == before["old"]
    assert "TP503" not in torchpin("check", str(project)).stdout
    seen = contents(project)
    again = torchpin("fix", "--relock", str(project))
    assert again.returncode == 0, again.stdout + again.stderr
    assert contents(project) == seen


def test_a_failing_tool_changes_nothing(project: Path, tool: str, stub: Stub) -> None:
    manifest = project / "pyproject.toml"
    text = manifest.read_text("utf-8")
    gone = text.replace(f"{stub.base}/whl", "http://127.0.0.1:9/whl")
    manifest.write_text(gone, "utf-8", newline="\n")
    before = contents(project)
    done = torchpin("fix", "--relock", str(project))
    assert done.returncode == 2, done.stdout + done.stderr
    assert "failed; nothing was changed" in done.stderr
    assert contents(project) == before


def test_no_tool_changes_nothing(
    project: Path, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(project)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    done = torchpin("fix", "--relock", str(project))
    assert done.returncode == 2
    assert f"--relock needs {tool}, which is not installed" in done.stderr
    assert contents(project) == before
