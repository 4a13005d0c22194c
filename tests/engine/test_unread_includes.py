"""Includes that are not followed: what they ask for is unknown, and nobody is told in red."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.effort import effort_below

from torchpin import engine
from torchpin.engine import Options, Report
from torchpin.fleet.profile import fleet_from_options

FLEET = fleet_from_options(
    gpus=["Tesla V100"], driver="550.54.15", python="3.11", platform="linux-x86_64"
)


def check(folder: Path, client: str, **files: str) -> Report:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text, "utf-8")
    options = Options(paths=(str(folder / "requirements.txt"),), isolated=True, client=client)
    return engine.check(options, FLEET)


def graves(report: Report) -> list[str]:
    return [one.code for one in report.findings if one.severity == "error"]


def unread(report: Report) -> list[str]:
    return [one.message for one in report.findings if one.code == "TP003"]


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_requirements_from_a_url_leave_everything_open(tmp_path: Path, client: str) -> None:
    """They may name an index with the right build: pip and uv read them, torchpin does not."""
    text = "-r https://u:s3cret@h.example/more.txt\ntorch==2.11.0\n"
    report = check(tmp_path, client, requirements=text)
    assert graves(report) == []
    (said,) = unread(report)
    assert "https://****@h.example/more.txt is a URL and not read" in said


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_constraints_from_a_url_leave_what_floats_open(tmp_path: Path, client: str) -> None:
    report = check(tmp_path, client, requirements="-c https://h.example/c.txt\ntorch\n")
    assert graves(report) == []
    assert len(unread(report)) == 1


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_constraints_from_a_url_do_not_excuse_a_pin(tmp_path: Path, client: str) -> None:
    """Whatever they limit: this version comes, or none."""
    report = check(tmp_path, client, requirements="-c https://h.example/c.txt\ntorch==2.11.0\n")
    assert "TP201" in graves(report)
    (fix,) = {one.fix for one in report.findings if one.code == "TP201"}
    assert fix is not None and not fix.edits
    assert "not read" in fix.message


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_a_chain_of_a_thousand_files_ends_in_a_note(tmp_path: Path, client: str) -> None:
    for number in range(1000):
        (tmp_path / f"r{number}.txt").write_text(f"-r r{number + 1}.txt\n", "utf-8")
    (tmp_path / "r1000.txt").write_text("torch==2.11.0\n", "utf-8")
    report = check(tmp_path, client, requirements="-r r0.txt\n")
    assert graves(report) == []
    (said,) = unread(report)
    assert "is not followed" in said


@pytest.mark.parametrize("client", ["pip", "uv"])
def test_files_that_each_include_the_next_twice_take_no_forever(
    tmp_path: Path, client: str
) -> None:
    for number in range(40):
        text = f"-r r{number + 1}.txt\n-c r{number + 1}.txt\n-r r{number + 1}.txt\n"
        (tmp_path / f"r{number}.txt").write_text(text, "utf-8")
    last = "torch==2.14.0+cu124\n--extra-index-url https://download.pytorch.org/whl/cu124\n"
    (tmp_path / "r40.txt").write_text(last, "utf-8")
    with effort_below(60):
        report = check(tmp_path, client, requirements="-r r0.txt\n")
    assert all(len(one.related) <= 1 for one in report.findings)
    assert graves(report) == ([] if client == "pip" else ["TP106"])


def test_a_file_that_two_files_include_names_its_index_once(tmp_path: Path) -> None:
    index = "--extra-index-url https://download.pytorch.org/whl/cu124\n"
    report = check(
        tmp_path,
        "pip",
        requirements="-r a.txt\n-r b.txt\ntorch==2.14.0+cu124\n",
        a="-r index.txt\n",
        b="-r index.txt\n",
        index=index,
    )
    assert graves(report) == ["TP106"]
    assert [len(one.related) for one in report.findings if one.code == "TP106"] == [1]
