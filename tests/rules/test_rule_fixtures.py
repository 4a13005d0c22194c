"""Every rule fires somewhere and stays silent nearby, exactly as the folders record it."""

from __future__ import annotations

import functools
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from torchpin.evidence import PROOF
from torchpin.rules.registry import all_rules

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.record_golden import (  # noqa: E402
    RULES,
    answer,
    differs,
    files_of,
    findings,
    folders,
    torchpin,
)

FOLDERS = folders(RULES)
CODES = [rule.code for rule in all_rules()]


def options_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "options.json").read_text("utf-8"))
    return found


@functools.cache
def answer_of(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    return answer(folder)


def codes_in(lines: list[str]) -> set[str]:
    """Return the codes of findings as ``line_of`` writes them."""
    return {line.split(" ")[2] for line in lines}


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("word", ["fires", "silent"])
def test_every_rule_has_a_folder(code: str, word: str) -> None:
    assert [folder.name for folder in FOLDERS if code in options_of(folder).get(word, ())]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_folder_is_named_for_a_rule_it_speaks_of(folder: Path) -> None:
    options = options_of(folder)
    code, _, rest = folder.name.partition("-")
    assert code in CODES
    assert code in (options.get("silent", ()) if rest.startswith("not-") else options["fires"])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_rules_fire_and_stay_silent(folder: Path) -> None:
    options, (expected, _) = options_of(folder), answer_of(folder)
    found = codes_in(expected["findings"])
    assert set(options.get("fires", ())) <= found
    assert not set(options.get("silent", ())) & found


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_answer_is_as_recorded(folder: Path) -> None:
    assert differs(folder, *answer_of(folder)) == ""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_fixing_again_changes_nothing(folder: Path, tmp_path: Path) -> None:
    arguments = options_of(folder)["arguments"]
    work = tmp_path / "project"
    shutil.copytree(folder / "input", work)
    if (folder / "fixed").exists():
        shutil.copytree(folder / "fixed", work, dirs_exist_ok=True)
    before = files_of(work)
    assert torchpin("fix", "--unsafe-fixes", *arguments, str(work)).returncode in (0, 1)
    assert files_of(work) == before


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_findings_are_grounded(folder: Path) -> None:
    for finding in findings(folder / "input", options_of(folder)["arguments"]):
        assert finding["line"] >= 1 and finding["column"] >= 1
        assert (finding["line"], finding["column"]) < (finding["end_line"], finding["end_column"])
        if finding["code"] == "TP003":  # that nothing is known is its point
            assert finding["severity"] == "info"
            continue
        assert finding["because"]
        if finding["severity"] == "error" and finding["code"] != "TP001":
            assert {one["evidence"] for one in finding["because"]} & PROOF
