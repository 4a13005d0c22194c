"""Fixed files of sections are accepted by the tools that own them, where these are installed."""

from __future__ import annotations

import json
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
    """Return the program of a tool: the one that ``TORCHPIN_TOX`` … names, else one on the path.

    Skip where there is none; the session ``owners`` of nox installs them.
    """
    named = os.environ.get(f"TORCHPIN_{name.upper().replace('-', '_')}")
    beside = str(Path(sys.executable).parent)
    path = shutil.which(named or name, path=os.pathsep.join((beside, os.environ.get("PATH", ""))))
    if path is None:
        assert named is None, f"{named} is no program"
        pytest.skip(f"{name} is not installed (`nox -s owners` does it)")
    return path


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout + done.stderr


@pytest.mark.parametrize("path", fixed(".pre-commit-config.yaml"), ids=lambda p: p.parts[-3])
def test_pre_commit_takes_the_file(path: Path) -> None:
    run([tool("pre-commit"), "validate-config", str(path)], path.parent)


@pytest.mark.parametrize("path", fixed("noxfile.py"), ids=lambda p: p.parts[-3])
def test_nox_lists_the_sessions(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path)
    assert "tests" in run([tool("nox"), "--list"], tmp_path)


TOX = [
    *fixed("tox.ini"),
    *fixed("tox.toml"),
    *(path for path in fixed("pyproject.toml") if "tool.tox" in path.read_text("utf-8")),
]


@pytest.mark.parametrize("path", TOX, ids=lambda p: p.parts[-3])
def test_tox_reads_the_lines_that_were_written(path: Path, tmp_path: Path) -> None:
    for other in path.parent.iterdir():
        shutil.copy(other, tmp_path)
    for other in (path.parent.parent / "input").glob("*.txt"):
        shutil.copy(other, tmp_path)
    said = run([tool("tox"), "config", "-k", "deps", "set_env", "install_command"], tmp_path)
    assert "cu126" in said and "cu124" not in said and "cu128" not in said


@pytest.mark.parametrize("path", fixed("Pipfile"), ids=lambda p: p.parts[-3])
def test_pipenv_reads_the_file_as_torchpin_does(path: Path, tmp_path: Path) -> None:
    from torchpin.documents.pipfile import content_hash

    pipenv = tool("pipenv")
    shutil.copy(path, tmp_path)
    lock = {
        "_meta": {
            "hash": {"sha256": content_hash(path.read_text("utf-8"))},
            "pipfile-spec": 6,
            "requires": {},
            "sources": [],
        },
        "default": {},
        "develop": {},
    }
    (tmp_path / "Pipfile.lock").write_text(json.dumps(lock), "utf-8")
    environment = {**os.environ, "PIPENV_PIPFILE": str(tmp_path / "Pipfile"), "CI": "1"}
    assert "up-to-date" in run([pipenv, "verify"], tmp_path, environment)
