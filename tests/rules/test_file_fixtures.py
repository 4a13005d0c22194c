"""Files of commands are read, judged and mended exactly as the folders record it."""

from __future__ import annotations

import functools
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.record_golden import FILES, answer, differs, files_of, folders, torchpin  # noqa: E402

FOLDERS = folders(FILES)


@functools.cache
def answer_of(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    return answer(folder)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_answer_is_as_recorded(folder: Path) -> None:
    assert differs(folder, *answer_of(folder)) == ""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_fixing_again_changes_nothing(folder: Path, tmp_path: Path) -> None:
    arguments = json.loads((folder / "options.json").read_text("utf-8"))["arguments"]
    work = tmp_path / "project"
    shutil.copytree(folder / "input", work)
    if (folder / "fixed").exists():
        shutil.copytree(folder / "fixed", work, dirs_exist_ok=True)
    before = files_of(work)
    assert torchpin("fix", "--unsafe-fixes", *arguments, str(work)).returncode in (0, 1)
    assert files_of(work) == before


@pytest.mark.parametrize("kind", ["docker", "shell", "make", "just"])
def test_every_kind_has_folders(kind: str) -> None:
    assert any(folder.name.startswith(f"{kind}-") for folder in FOLDERS)
