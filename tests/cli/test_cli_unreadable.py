"""Folders that the user may not look into: they are told of, and are no reason to fail inside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
FLEET = ("--gpu", "V100", "--driver", "550.54.15", "--python", "3.11")


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that may not be listed, with a file that would be a finding."""
    (tmp_path / "requirements.txt").write_text("torch==2.7.1\n")
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "requirements.txt").write_text("torch==2.15.0\n")
    folder.chmod(0)
    yield folder
    folder.chmod(0o755)


def torchpin(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it as one who has no more rights than the modes of files give."""
    command = [sys.executable, "-m", "torchpin", *words]
    if os.getuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root may look into everything, and setpriv is not installed")
        command = [setpriv, "--bounding-set=-dac_override,-dac_read_search", *command]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=60
    )


@pytest.mark.parametrize("command", ["check", "check --output-format=json", "show", "fix"])
def test_a_folder_that_was_passed_over_is_told(closed: Path, command: str) -> None:
    for _ in range(2):  # the second time from what is kept
        done = torchpin(closed.parent, *command.split(), *FLEET)
        assert done.returncode == 0, done.stderr
        assert "closed was not looked into: Permission denied" in done.stderr
    assert "closed" not in torchpin(closed.parent, *command.split(), "-q", *FLEET).stderr


def test_many_folders_are_counted(closed: Path) -> None:
    for number in range(5):
        (closed.parent / f"more{number}").mkdir(mode=0)
    done = torchpin(closed.parent, "check", *FLEET)
    assert done.stderr.count("was not looked into") == 3
    assert "3 more folders were not looked into" in done.stderr


@pytest.mark.parametrize("command", ["check", "show", "fix", "resolve", "upgrade --to=2.15"])
@pytest.mark.parametrize("mode", [0, 0o100, 0o400])
def test_a_path_in_it_is_no_failure_inside(closed: Path, command: str, mode: int) -> None:
    closed.chmod(mode)
    name = "absent.txt" if mode == 0o100 else "requirements.txt"
    done = torchpin(closed.parent, *command.split(), f"closed/{name}", *FLEET)
    assert done.returncode == 2, done.stderr
    wanted = "no such file" if mode == 0o100 else "cannot be looked at: Permission denied"
    assert wanted in done.stderr
