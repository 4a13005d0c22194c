"""What many files of a run have in common is worked out once: counted, not timed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from torchpin.engine import Options, check
from torchpin.fleet.profile import fleet_from_options
from torchpin.report.frame import cut
from torchpin.rules import disagree
from torchpin.select import pools


def counted(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str
) -> Callable[[Callable[[], object]], int]:
    """Return what counts the calls of a function while something else runs."""
    calls = [0]
    plain = getattr(where, name)

    def one(*args: object, **named: object) -> object:
        calls[0] += 1
        return plain(*args, **named)

    monkeypatch.setattr(where, name, one)

    def run(work: Callable[[], object]) -> int:
        calls[0] = 0
        work()
        return calls[0]

    return run


def checked(folder: Path) -> int:
    fleet = fleet_from_options(
        gpus=("A100",), driver="580.65.06", python=["3.11"], platform=None, glibc=None
    )
    return len(check(Options((str(folder),), isolated=True), fleet).findings)


def folder_of(path: Path, number: int, name: str, text: str) -> Path:
    for at in range(number):
        (path / f"p{at}").mkdir(parents=True)
        (path / f"p{at}" / name).write_text(text)
    return path


def test_equal_pins_from_pypi_are_compared_with_its_builds_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = folder_of(tmp_path / "few", 3, "requirements.txt", "torch==2.14.1\n")
    many = folder_of(tmp_path / "many", 30, "requirements.txt", "torch==2.14.1\n")
    checked(few)  # what a process does once
    made = counted(monkeypatch, pools, "Candidate")
    assert made(lambda: checked(few)) == made(lambda: checked(many)) == 0


def test_no_candidate_of_an_index_in_a_file_is_kept(tmp_path: Path) -> None:
    text = "--extra-index-url https://download.pytorch.org/whl/cu126\ntorch==2.14.1+cu126\n"
    pools._rows.clear()
    pools._matched.clear()
    assert checked(folder_of(tmp_path, 3, "requirements.txt", text)) >= 0
    kept = [one for rows in pools._rows.values() for one in rows]
    kept += [one for candidates, _ in pools._matched.values() for one in candidates]
    assert kept
    assert all(one.place.document is None for one in kept)


def test_the_lists_of_admitted_candidates_are_the_callers_own(tmp_path: Path) -> None:
    folder_of(tmp_path, 1, "requirements.txt", "torch==2.14.1\n")
    before = checked(tmp_path)
    for candidates, found in pools._matched.values():
        assert {*found} <= {*candidates}
    assert before == checked(tmp_path)


def test_paths_are_compared_with_files_of_groups_only_where_groups_name_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 20
    folder_of(tmp_path, number, "requirements.txt", "torch==2.14.1\n")
    checked(tmp_path)
    asked = counted(monkeypatch, os.path, "realpath")
    assert asked(lambda: checked(tmp_path)) <= 4 * number + 10


def test_environments_of_conda_are_not_looked_through_for_each_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "dependencies:\n  - pip:\n      - torch==2.14.1\n"
    few = folder_of(tmp_path / "few", 5, "environment.yml", text)
    many = folder_of(tmp_path / "many", 20, "environment.yml", text)
    asked = counted(monkeypatch, disagree, "folder_of")
    assert asked(lambda: checked(many)) <= 5 * asked(lambda: checked(few))


class Odd(str):
    """A line that takes the long way."""

    __slots__ = ()

    def isascii(self) -> bool:
        return False


@pytest.mark.parametrize("line", ["", "a", " ab", "torch==1  # x", "  x  ", "--index https://h/x"])
def test_plain_lines_are_cut_as_others_are(line: str) -> None:
    for columns in range(1, 25):
        for start in range(-2, len(line) + 3):
            for end in range(start, len(line) + 4):
                assert cut(line, start, end, columns) == cut(Odd(line), start, end, columns)
