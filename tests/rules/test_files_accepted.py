"""Fixed files of sections are accepted by the tools that own them, where these are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FILES = Path(__file__).resolve().parents[2] / "fixtures" / "files"


def fixed(name: str) -> list[Path]:
    return sorted(path for path in FILES.glob(f"*/fixed/{name}"))


def tool(name: str) -> str:
    """Return the path of a tool; skip where it is not installed."""
    beside = str(Path(sys.executable).parent)
    path = shutil.which(name, path=os.pathsep.join((beside, os.environ.get("PATH", ""))))
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


@pytest.mark.parametrize("path", fixed(".pre-commit-config.yaml"), ids=lambda p: p.parts[-3])
def test_pre_commit_takes_the_file(path: Path) -> None:
    run([tool("pre-commit"), "validate-config", str(path)], path.parent)


@pytest.mark.parametrize("path", fixed("noxfile.py"), ids=lambda p: p.parts[-3])
def test_nox_lists_the_sessions(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path)
    assert "tests" in run([tool("nox"), "--list"], tmp_path)


@pytest.mark.parametrize("path", fixed("tox.ini"), ids=lambda p: p.parts[-3])
def test_tox_reads_the_lines_that_were_written(path: Path, tmp_path: Path) -> None:
    for other in path.parent.iterdir():
        shutil.copy(other, tmp_path)
    for other in (path.parent.parent / "input").glob("*.txt"):
        shutil.copy(other, tmp_path)
    said = run([tool("tox"), "config", "-k", "deps", "set_env", "install_command"], tmp_path)
    assert "cu126" in said and "cu124" not in said and "cu128" not in said


@pytest.mark.parametrize("path", fixed("Pipfile"), ids=lambda p: p.parts[-3])
def test_pipenv_reads_the_file_as_torchpin_does(path: Path) -> None:
    from torchpin.documents.pipfile import content_hash

    plette = pytest.importorskip("plette", reason="plette (pipenv's reader) is not installed")
    with path.open(encoding="utf-8") as file:
        assert plette.Pipfile.load(file).get_hash().value == content_hash(path.read_text("utf-8"))
