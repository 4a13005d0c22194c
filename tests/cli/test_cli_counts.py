"""What ``check`` says that ``fix`` mends is what ``fix`` then says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
FOLDERS = [
    folder
    for kind in ("rules", "files", "projects", "golden")
    for folder in sorted((FIXTURES / kind).iterdir())[3::9]
    if (folder / "input").is_dir()
]


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_fix_mends_as_many_as_check_says(
    folder: Path,
    unsafe: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(folder / "input", tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    options = ["--unsafe-fixes"] if unsafe else []
    guarded(["check", *options])
    said = capsys.readouterr().out
    promised = number(rf"`torchpin fix{' --unsafe-fixes' * unsafe}` mends (\d+)", said)
    if not unsafe and promised == 0:
        assert "`torchpin fix` mends" not in said
    guarded(["fix", *options])
    done = capsys.readouterr()
    mended = number(r"Mended (\d+) findings?", done.out)
    waiting = number(r"(\d+) findings? will go when the lock is made anew", done.out)
    if "cannot" not in done.err:  # a fix that is refused says so
        assert mended + waiting == promised, said + done.out + done.err


def test_what_goes_with_the_mended_is_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.15.0\ntorchvision==0.29.2\n")
    fleet = ["--gpu", "V100", "--driver", "550.54.15", "--python", "3.11", str(tmp_path)]
    guarded(["check", "--unsafe-fixes", *fleet])
    said = capsys.readouterr().out
    total = number(r"Found (\d+) error", said)
    promised = number(r"mends (\d+)", said)
    assert total == promised > 0
    guarded(["fix", "--unsafe-fixes", *fleet])
    assert f"Mended {promised} findings in 1 file" in capsys.readouterr().out
