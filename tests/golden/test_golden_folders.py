"""Every golden folder: findings, fix, second fix, and what the fixed files install."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.record_golden import GOLDEN, answer, differs, files_of, findings, torchpin  # noqa: E402

from torchpin.catalog.model import WATCHED  # noqa: E402

FOLDERS = sorted(path.parent for path in GOLDEN.glob("*/options.json"))


def test_there_are_golden_folders() -> None:
    assert len(FOLDERS) >= 30


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_answer_is_as_recorded(folder: Path) -> None:
    expected, fixed = answer(folder)
    assert differs(folder, expected, fixed) == ""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_fixed_files_stay_and_are_clean(folder: Path, tmp_path: Path) -> None:
    arguments = json.loads((folder / "options.json").read_text("utf-8"))["arguments"]
    work = tmp_path / "project"
    shutil.copytree(folder / "input", work)
    if (folder / "fixed").exists():
        shutil.copytree(folder / "fixed", work, dirs_exist_ok=True)
    before = files_of(work)
    assert torchpin("fix", "--unsafe-fixes", *arguments, str(work)).returncode in (0, 1)
    assert files_of(work) == before
    left = [
        one
        for one in findings(work, arguments)
        if one["fix"] is not None and one["fix"]["safety"] == "safe"
    ]
    assert left == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_fix_makes_no_error_that_was_not_there(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    assert errors(expected["findings_after"]) <= errors(expected["findings"])


def errors(lines: list[str]) -> set[tuple[str, str, str]]:
    """Return the file, the code and the package of the errors among recorded findings."""
    found = set()
    for line in lines:
        place, severity, code, *words = line.split()
        package = next((one for one in words if one in WATCHED), "")
        if severity == "error":
            found.add((place.split(":")[0], code, package))
    return found
