"""``fix --relock``: manifest and lock together, by real uv, or neither."""

from __future__ import annotations

import contextlib
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.clients.installs import catalog_wheels, plain_wheel  # noqa: E402
from tests.clients.stub_server import Stub  # noqa: E402
from tests.projects.project_oracle import UvLock  # noqa: E402
from tests.projects.surroundings import uv_knows_only  # noqa: E402
from tests.projects.uv_lock_walk import parse  # noqa: E402
from tools.record_golden import torchpin  # noqa: E402

pytestmark = pytest.mark.clients

PROJECT = """\
[project]
name = "app"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["torch==2.14.1", "torchvision", "old"]

[tool.uv]
package = false

[tool.uv.sources]
torch = {{ index = "pytorch-cu130", marker = "sys_platform == 'linux'" }}
torchvision = {{ index = "pytorch-cu130", marker = "sys_platform == 'linux'" }}

[[tool.uv.index]]
name = "pytorch-cu130"
url = "{base}/whl/cu130"
explicit = true
"""
FLEET = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\npython = "3.11"\n'


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    olds = [plain_wheel("old", version) for version in ("1.0", "2.0")]
    with Stub(wheels=[*catalog_wheels(), *olds]) as running:
        yield running


@pytest.fixture
def project(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A locked project, and an environment in which uv knows nothing but the stub."""
    work = tmp_path / "project"
    work.mkdir()
    text = PROJECT.format(base=stub.base)
    (work / "torchpin.toml").write_text(FLEET, "utf-8")
    manifest = work / "pyproject.toml"
    manifest.write_text(text.replace('"old"', '"old<2"'), "utf-8", newline="\n")
    with UvLock(stub) as uv:
        assert uv.run(work, "lock").returncode == 0
        manifest.write_text(text, "utf-8", newline="\n")
        assert uv.run(work, "lock").returncode == 0
    uv_knows_only(stub, tmp_path, monkeypatch)
    return work


def contents(work: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in work.iterdir() if path.is_file()}


def versions(work: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for package in parse((work / "uv.lock").read_text("utf-8"))["package"]:
        found.setdefault(package["name"], set()).add(package["version"])
    return found


def test_without_relock_the_command_is_told(project: Path) -> None:
    lock = (project / "uv.lock").read_bytes()
    done = torchpin("fix", str(project))
    assert done.returncode == 1
    assert "uv lock --upgrade-package torch --upgrade-package torchvision" in done.stdout
    assert (project / "uv.lock").read_bytes() == lock
    assert "cu126" in (project / "pyproject.toml").read_text("utf-8")


def test_relock_mends_both(project: Path) -> None:
    before = versions(project)
    assert before["torch"] == {"2.14.1", "2.14.1+cu130"}
    mode = stat.S_IMODE((project / "uv.lock").stat().st_mode)
    done = torchpin("fix", "--relock", str(project))
    assert done.returncode == 0, done.stdout + done.stderr
    after = versions(project)
    assert after["torch"] == {"2.14.1", "2.14.1+cu126"}
    assert "0.29.1+cu126" in after["torchvision"]
    assert after["old"] == before["old"] == {"1.0"}
    assert stat.S_IMODE((project / "uv.lock").stat().st_mode) == mode
    seen = contents(project)
    again = torchpin("fix", "--relock", str(project))
    assert again.returncode == 0
    assert "Nothing to change" in again.stdout
    assert contents(project) == seen


def test_relock_of_a_right_manifest(project: Path) -> None:
    assert torchpin("fix", str(project)).returncode == 1
    manifest = (project / "pyproject.toml").read_bytes()
    done = torchpin("fix", "--relock", str(project))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project / "pyproject.toml").read_bytes() == manifest
    assert versions(project)["torch"] == {"2.14.1", "2.14.1+cu126"}


def test_a_failing_tool_changes_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(project)
    monkeypatch.setenv("UV_OFFLINE", "1")
    done = torchpin("fix", "--relock", str(project))
    assert done.returncode == 2
    assert "failed; nothing was changed" in done.stderr
    assert "unsatisfiable" in done.stderr  # the tool's own words
    assert contents(project) == before


def test_no_tool_changes_nothing(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(project)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    done = torchpin("fix", "--relock", str(project))
    assert done.returncode == 2
    assert "--relock needs uv, which is not installed" in done.stderr
    assert contents(project) == before


def test_an_interrupt_changes_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(project)

    def interrupt(*_: object, **__: object) -> None:
        (project / "uv.lock").write_bytes(b"half a lock")
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", interrupt)
    with contextlib.suppress(KeyboardInterrupt):
        torchpin("fix", "--relock", str(project))
    assert contents(project) == before


def test_relock_does_not_go_with_diff(project: Path) -> None:
    done = torchpin("fix", "--relock", "--diff", str(project))
    assert done.returncode == 2
    assert "--relock" in done.stderr
