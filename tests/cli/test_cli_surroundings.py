"""The command line where the ground is missing: a removed folder, a closed or full stream."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX shells and devices")

TORCHPIN = f"{sys.executable} -m torchpin"
FLEET = "--gpu V100 --driver 550.54.15 --python 3.11"


def shell(command: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_a_folder_that_was_removed(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    code, said = shell(f"cd gone && rmdir ../gone && {TORCHPIN} check . {FLEET}", tmp_path)
    assert (code, said) == (2, "torchpin: the current folder does not exist any more\n")


def test_a_closed_standard_input(tmp_path: Path) -> None:
    code, said = shell(f"{TORCHPIN} check - {FLEET} <&-", tmp_path)
    assert (code, said) == (2, "torchpin: standard input is closed\n")


def test_a_standard_input_without_end(tmp_path: Path) -> None:
    code, said = shell(f"yes torch | {TORCHPIN} check - {FLEET}", tmp_path)
    assert code == 2
    assert "too large" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_a_filter(tmp_path: Path) -> None:
    code, said = shell(f"echo torch | {TORCHPIN} fix - {FLEET} >/dev/full", tmp_path)
    assert code == 2
    assert "the output cannot be written" in said


def test_the_traceback_of_a_defect_holds_no_credentials(tmp_path: Path) -> None:
    script = (
        "import os, torchpin.cli.main as cli\n"
        "def fail(argv): raise RuntimeError('https://u:s3cret@h.example')\n"
        "cli.main = fail\n"
        "raise SystemExit(cli.guarded([]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TORCHPIN_DEBUG": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "RuntimeError" in done.stderr and "Traceback" in done.stderr
    assert "s3cret" not in done.stderr.replace("raise RuntimeError('https://u:s3cret", "")


def test_names_of_files_do_not_act_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a\x1b[31m\nb"
    folder.mkdir()
    (folder / "torchpin.toml").write_text("[fleet.\n")
    (folder / "requirements.txt").write_text("torch\n")
    assert guarded(["check", str(folder)]) == 2
    first = capsys.readouterr().err.splitlines()[0]
    assert "a\\x1b[31m b/torchpin.toml:1: not valid TOML" in first
