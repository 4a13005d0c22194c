"""PDM projects in which two packages have to move: source and pins are written, and real PDM locks
what was promised."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.installs import catalog_wheels, plain_wheel
from tests.clients.stub_server import Stub
from tests.projects.lock_tools import program, tool_environment, why_not
from tests.projects.uv_lock_walk import parse
from tools.record_golden import torchpin

FLEET = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\npython = "3.11"\n'
PROJECT = """\
[project]
name = "app"
version = "0"
requires-python = ">=3.11,<3.14"
dependencies = ["torch=={torch}", "torchvision=={vision}", "old"]

[tool.pdm]
distribution = false

[[tool.pdm.source]]
name = "pypi"
url = "{base}/pypi/simple"

{source}"""
NAMED = """\
[[tool.pdm.source]]
name = "pytorch-cu130"
url = "{base}/whl/cu130"
include_packages = ["torch"]
exclude_packages = ["*"]
"""
OPEN = """\
[[tool.pdm.source]]
name = "pytorch"
url = "{base}/whl/cu130"
verify_ssl = true
"""
CASES = {
    "one is not named": ("2.14.1", "0.29.1", NAMED),
    "none is named": ("2.14.1", "0.29.1", OPEN),
    "labels": ("2.14.1+cu130", "0.29.1+cu130", OPEN),
    "newer ones": ("2.15.0", "0.29.2", NAMED),
    "no source": ("2.15.0", "0.29.2", ""),
}


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub(wheels=[*catalog_wheels(), plain_wheel("old", "1.0")]) as running:
        yield running


def project(folder: Path, base: str, case: str) -> Path:
    torch, vision, source = CASES[case]
    text = PROJECT.format(base=base, torch=torch, vision=vision, source=source.format(base=base))
    path = folder / "pyproject.toml"
    path.write_text(text, "utf-8", newline="\n")
    (folder / "torchpin.toml").write_text(FLEET, "utf-8")
    return path


@pytest.mark.parametrize("case", CASES)
def test_both_move_in_one_fix(tmp_path: Path, case: str) -> None:
    path = project(tmp_path, "https://download.pytorch.org", case)
    text = path.read_text("utf-8").replace("download.pytorch.org/pypi", "pypi.example")
    path.write_text(text, "utf-8", newline="\n")
    done = torchpin("fix", "--unsafe-fixes", str(tmp_path))
    assert done.returncode == 0, done.stdout
    after = path.read_text("utf-8")
    assert '"torch==2.14.1", "torchvision==0.29.1"' in after
    assert after.count("https://download.pytorch.org/whl/cu126") == 1
    assert "cu130" not in after
    assert 'include_packages = ["torch", "torchvision"]' in after
    assert 'exclude_packages = ["*"]' in after


@pytest.mark.parametrize(
    "source",
    [
        # It stands in for PyPI: nothing else would be found.
        '[[tool.pdm.source]]\nname = "pypi"\nurl = "https://download.pytorch.org/whl/cu130"\n',
        OPEN.format(base="https://download.pytorch.org") + 'exclude_packages = ["numpy"]\n',
    ],
)
def test_what_is_left_to_the_user(tmp_path: Path, source: str) -> None:
    path = project(tmp_path, "https://download.pytorch.org", "no source")
    text = path.read_text("utf-8").partition("[[tool.pdm.source]]")[0]
    path.write_text(text + source, "utf-8", newline="\n")
    before = path.read_bytes()
    torchpin("fix", "--unsafe-fixes", str(tmp_path))
    assert path.read_bytes() == before


@pytest.mark.clients
@pytest.mark.oracle
@pytest.mark.parametrize("case", [case for case in CASES if case != "newer ones"])
def test_real_pdm_locks_what_was_promised(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    if why_not("pdm"):
        pytest.skip(why_not("pdm"))
    work = tmp_path / "project"
    work.mkdir()
    path = project(work, stub.base, case)
    for name, value in tool_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    tool = str(program("pdm"))
    monkeypatch.setenv("PATH", os.pathsep.join((str(Path(tool).parent), os.environ["PATH"])))
    assert subprocess.run([tool, "lock", "-q", "--project", str(work)], check=False).returncode == 0
    if case == "no source":  # what is added is the real channel, which is not served here
        assert torchpin("fix", "--unsafe-fixes", str(work)).returncode in (0, 1)
        text = path.read_text("utf-8").replace("https://download.pytorch.org", stub.base)
        path.write_text(text, "utf-8", newline="\n")
    done = torchpin("fix", "--relock", "--unsafe-fixes", str(work))
    assert done.returncode == 0, done.stdout + done.stderr
    lock = parse((work / "pdm.lock").read_text("utf-8"))
    held = {
        one["name"]: {file["file"].split("-")[1] for file in one["files"]}
        for one in lock["package"]
    }
    assert held == {"torch": {"2.14.1+cu126"}, "torchvision": {"0.29.1+cu126"}, "old": {"1.0"}}
    again = subprocess.run([tool, "lock", "--check", "--project", str(work)], check=False)
    assert again.returncode == 0
