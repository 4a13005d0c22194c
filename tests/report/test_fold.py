"""Long sentences of a report on a narrow terminal."""

from __future__ import annotations

import re

import pytest
from tests.report.report_samples import document, finding, view

from torchpin.documents.base import Span
from torchpin.report import text
from torchpin.report.fold import fold
from torchpin.report.style import PLAIN, Style, width
from torchpin.report.wrap import NARROW
from torchpin.rules.model import Because

LONG = (
    "the kernels of this build are for sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 and for no other card"
)
PAINT = re.compile(r"\x1b\[[0-9;]*m")


def report(style: Style) -> str:
    line = "torch==2.14.0+cu124  # " + "a long comment " * 12
    said = finding(message=LONG)._replace(
        document=document(line + "\n"),
        span=Span(0, 19),
        because=(Because(LONG + ".", "measured", "wheel"),),
    )
    return text.render(view(said), style)


@pytest.mark.parametrize("columns", [NARROW, 60, 80, 100, 300])
@pytest.mark.parametrize("color", [False, True])
def test_sentences_fit_and_lose_no_word(columns: int, color: bool) -> None:
    before = report(Style(color))
    after = fold(before, columns)
    assert after.split() == before.split()
    assert PAINT.sub("", after).split() == report(PLAIN).split()
    for line in PAINT.sub("", after).split("\n"):
        assert width(line) <= columns or "|" in line


def test_later_lines_stand_in() -> None:
    folded = fold(report(PLAIN), 60).split("\n")
    at = next(n for n, line in enumerate(folded) if "because:" in line)
    assert folded[at].startswith("  = because: the kernels")
    assert folded[at + 1].startswith("      ")
    assert folded[at + 1][6] != " "


@pytest.mark.parametrize(
    "line",
    [
        "2 | torch==2.14.0+cu124  # because: " + "x " * 60,
        "  | " + "^" * 100,
        "    --extra-index-url https://download.pytorch.org/whl/cu126 " + "x" * 60,
        "    torch==2.14.1+cu126 ; sys_platform == 'linux' and platform_machine == 'x86_64'",
        "+torch==2.14.1+cu126 ; sys_platform == 'linux' and platform_machine == 'x86_64' # why",
        "  build        Python           kernels                 CUDA  floor  known      more",
    ],
)
def test_what_may_be_copied_or_stands_in_columns_stays(line: str) -> None:
    assert fold(line, 60) == line


@pytest.mark.parametrize(
    "line",
    [
        "    change: take torch from https://download.pytorch.org/whl/cu126 for " + "volta, " * 9,
        "amd, Python 3.12; win, Python 3.14t: from https://w.example/rocm and https://w.example/cu",
    ],
)
def test_what_plans_say_of_groups_is_folded(line: str) -> None:
    folded = fold(line, 60)
    assert max(map(len, folded.split("\n"))) <= 60
    assert folded.split() == line.split()


def test_too_narrow_a_terminal_folds_nothing() -> None:
    assert fold(report(PLAIN), NARROW - 1) == report(PLAIN)


def test_every_line_of_an_error_is_a_sentence() -> None:
    folded = fold(f"torchpin: {LONG}\n  nearest names: {LONG}\n", 60, every=True)
    assert max(map(len, folded.split("\n"))) <= 60
    assert folded.endswith("card\n")
