"""``fix --relock`` of a script with a lock of its own: by real ``uv lock --script``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.clients.installs import catalog_wheels, plain_wheel  # noqa: E402
from tests.clients.runners import uv_binary  # noqa: E402
from tests.clients.stub_server import Stub  # noqa: E402
from tests.projects.surroundings import uv_knows_only  # noqa: E402
from tests.projects.uv_lock_walk import parse  # noqa: E402
from tools.record_golden import torchpin  # noqa: E402

pytestmark = pytest.mark.clients

SCRIPT = """\
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch{pin}", "old{old}"]
#
# [[tool.uv.index]]
# name = "{name}"
# url = "{base}/whl/{channel}"
# explicit = true
#
# [tool.uv.sources]
# torch = {{ index = "{name}" }}
# ///

import torch
"""
FLEET = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\npython = "3.11"\n'


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    olds = [plain_wheel("old", version) for version in ("1.0", "2.0")]
    with Stub(wheels=[*catalog_wheels(), *olds]) as running:
        yield running


@pytest.fixture
def folder(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, and an environment in which uv knows nothing but the stub."""
    if uv_binary() is None:
        pytest.skip("uv is not installed")
    uv_knows_only(stub, tmp_path, monkeypatch)
    work = tmp_path / "scripts"
    work.mkdir()
    (work / "torchpin.toml").write_text(FLEET, "utf-8")
    return work


def uv(folder: Path, *arguments: str) -> int:
    command = [str(uv_binary()), *arguments, "--no-progress"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


def write(path: Path, stub: Stub, pin: str, channel: str, old: str = "") -> None:
    name = f"pytorch-{channel}"
    text = SCRIPT.format(pin=pin, old=old, name=name, base=stub.base, channel=channel)
    path.write_text(text, "utf-8", newline="\n")


def versions(lock: Path) -> dict[str, str]:
    return {one["name"]: one["version"] for one in parse(lock.read_text("utf-8"))["package"]}


def test_script_and_lock_move_together_and_nothing_else(folder: Path, stub: Stub) -> None:
    script, lock = folder / "a.py", folder / "a.py.lock"
    write(script, stub, "==2.11.0", "cu128", old="<2")
    assert uv(folder, "lock", "--script", "a.py") == 0
    write(script, stub, "==2.11.0", "cu128")
    assert uv(folder, "lock", "--script", "a.py") == 0
    other = folder / "pyproject.toml"
    other.write_text('[project]\nname = "x"\nversion = "1"\ndependencies = []\n', "utf-8")
    (folder / "torchpin.toml").write_text(
        f'{FLEET}[indexes]\n"{stub.base}/whl/cu128" = "cu128"\n"{stub.base}/whl/cu126" = "cu126"\n',
        "utf-8",
    )
    done = torchpin("fix", "--relock", "--unsafe-fixes", str(folder))
    assert "uv lock --script a.py --upgrade-package torch" in done.stdout + done.stderr
    assert not (folder / "uv.lock").exists()
    assert versions(lock) == {"torch": "2.11.0+cu126", "old": "1.0"}
    assert uv(folder, "lock", "--script", "a.py", "--check") == 0


@pytest.mark.parametrize("pin", [">=2.13,<2.15", "==2.10.0"])
def test_a_script_that_was_changed(folder: Path, stub: Stub, pin: str) -> None:
    script, lock = folder / "a.py", folder / "a.py.lock"
    write(script, stub, "==2.11.0", "cu126")
    assert uv(folder, "lock", "--script", "a.py") == 0
    assert "TP503" not in torchpin("check", str(folder)).stdout
    write(script, stub, pin, "cu126")
    # What TP503 says of a script is what uv says of it.
    assert uv(folder, "lock", "--script", "a.py", "--check") != 0
    assert "TP503" in torchpin("check", str(folder)).stdout
    torchpin("fix", "--relock", str(folder))
    assert uv(folder, "lock", "--script", "a.py", "--check") == 0
    assert versions(lock)["torch"].startswith("2.14.1" if pin.startswith(">") else "2.10.0")


def test_a_lock_of_a_script_is_none_of_the_project_beside(folder: Path, stub: Stub) -> None:
    write(folder / "a.py", stub, "==2.11.0", "cu126")
    assert uv(folder, "lock", "--script", "a.py") == 0
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\nrequires-python = ">=3.11"\n'
        'dependencies = ["torch==2.10.0"]\n\n[tool.uv]\npackage = false\n',
        "utf-8",
    )
    assert "TP503" not in torchpin("check", str(folder)).stdout
