"""Lines that nobody writes by hand: each ends in a report, soon, and none in a traceback."""

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
EFFORT = 60
"""Far above what a run takes (1), far below what the faults took (hundreds)."""


def check(tmp_path: Path, text: str, unsafe: bool = False) -> Report:
    path = tmp_path / "requirements.txt"
    path.write_bytes(text.encode())
    options = Options(paths=(str(path),), isolated=True, unsafe_fixes=unsafe)
    with effort_below(EFFORT):
        result = engine.fix(options, FLEET)
    return result.report_before


ENDLESS = "9" * 5000
"""More digits than Python turns into a number (PEP 467's limit is 4,300)."""


@pytest.mark.parametrize(
    "line",
    [
        f"torch=={ENDLESS}",
        f"torch==2.14.{'0' * 10000}",
        f"torch==1!{ENDLESS}",
        f"torch==2.14.0rc{ENDLESS}",
        f"torch==2.14.0+{ENDLESS}",
        f"torch>={ENDLESS}",
        f"torch ; python_version < '{ENDLESS}'",
        f"torch ; python_full_version == '3.11.{ENDLESS}'",
    ],
    ids=lambda line: line[:24],
)
def test_a_number_without_end_is_a_line_that_cannot_be_read(tmp_path: Path, line: str) -> None:
    findings = check(tmp_path, f"{line}\n").findings
    graves = {one.code for one in findings if one.severity == "error"}
    assert graves == {"TP506" if "+" in line else "TP001"}
    assert "TP003" in {one.code for one in findings}


@pytest.mark.parametrize(
    "url",
    [
        f"https://files.example/torch-{ENDLESS}-cp311-cp311-linux_x86_64.whl",
        f"https://download.pytorch.org/whl/cu126/torch-2.{ENDLESS}%2Bcu126-cp311-cp311-x.whl",
    ],
)
def test_a_wheel_with_a_number_without_end_is_unknown(tmp_path: Path, url: str) -> None:
    findings = check(tmp_path, f"torch @ {url}\n").findings
    assert not [one for one in findings if one.severity == "error"]


def test_what_is_too_long_to_read_is_not_judged_as_a_bare_name(tmp_path: Path) -> None:
    clauses = ",".join(f"!=2.{number}.0" for number in range(20_000))
    findings = check(tmp_path, f"torch{clauses}\n").findings
    assert {one.code for one in findings if one.severity == "error"} == {"TP001"}
    assert "TP003" in {one.code for one in findings}


@pytest.mark.parametrize("count", [30, 60, 1500])
def test_a_list_of_clauses_with_a_bad_end_is_refused_at_once(tmp_path: Path, count: int) -> None:
    findings = check(tmp_path, f"torch{'!=2.1.0,' * count}>=1.0.0foo\n").findings
    assert {one.code for one in findings if one.severity == "error"} == {"TP001"}


def test_a_long_list_of_clauses_is_obeyed(tmp_path: Path) -> None:
    clauses = ",".join(f"!=2.{number}.0" for number in range(1_500))
    text = f"torch<2.15.1,{clauses}\n"
    report = check(tmp_path, text)
    builds = {one.build.version for one, _ in report.selections if one.build is not None}
    assert builds == {"2.14.1"}


@pytest.mark.parametrize(
    "line",
    [
        " " * 200_000 + "torch==2.11.0",
        "torch==2.11.0" + " " * 200_000 + "# note",
        "torch==2.11.0 #" + "\t" * 200_000 + "note",
    ],
    ids=["before", "behind", "comment"],
)
def test_blanks_without_end_do_not_stop_a_fix(tmp_path: Path, line: str) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"{line}\n", "utf-8")
    with effort_below(EFFORT):
        result = engine.fix(Options(paths=(str(path),), isolated=True), FLEET)
    ((_, data),) = result.changes
    assert line.replace("2.11.0", "2.11.0+cu126") in data.decode()


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_many_index_lines_take_time_that_grows_with_them(tmp_path: Path, end: str) -> None:
    """3,000 lines took half a minute: each looked through the whole file for line ends."""
    index = f"--extra-index-url https://download.pytorch.org/whl/cu124{end}"
    report = check(tmp_path, index * 3000 + f"torch==2.14.0+cu124{end}")
    assert "TP106" in {one.code for one in report.findings}
