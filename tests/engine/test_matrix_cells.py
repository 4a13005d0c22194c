"""Findings and selections of a job with a matrix name the cells that they are about."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchpin.cli.main import guarded
from torchpin.rules.matrix import Cell, fewest

WORKFLOW = """\
on: push
jobs:
  test:
    runs-on: ubuntu-24.04
    strategy:
      matrix:
        python: ["3.11", "3.12", "3.14"]
        cuda: [cpu, cu124, cu126]
    steps:
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}"}
      - run: >-
          pip install torch==2.7.0
          --index-url https://download.pytorch.org/whl/${{ matrix.cuda }}
"""


@pytest.fixture
def workflow(tmp_path: Path) -> str:
    path = tmp_path / ".github" / "workflows" / "ci.yml"
    path.parent.mkdir(parents=True)
    path.write_text(WORKFLOW)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    guarded(list(arguments))
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("concise", "it has no torch 2.7.0 (in matrix cuda cu124)\n"),
        ("text", "= in matrix: cuda cu124\n"),
        ("github", "it has no torch 2.7.0 (in matrix cuda cu124)%0A"),
        ("markdown", r"\(in matrix cuda cu124\)"),
        ("sarif", "it has no torch 2.7.0 (in matrix cuda cu124)"),
        ("gitlab", "it has no torch 2.7.0 (in matrix cuda cu124)"),
        ("junit", "it has no torch 2.7.0 (in matrix cuda cu124)"),
    ],
)
def test_every_report_names_the_cell(
    workflow: str, capsys: pytest.CaptureFixture[str], form: str, text: str
) -> None:
    assert text in run(capsys, "check", "--output-format", form, workflow)


def test_json_holds_names_and_values(workflow: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, "check", "--output-format", "json", workflow))["findings"]
    assert {one["code"]: one["matrix"] for one in found}["TP106"] == [{"cuda": "cu124"}]
    wheels = [one["matrix"] for one in found if one["code"] == "TP102"]
    assert wheels == [
        [{"python": "3.14", "cuda": "cpu"}],
        [{"python": "3.14", "cuda": "cu126"}],
    ]
    shown = json.loads(run(capsys, "show", "--output-format", "json", workflow))["selections"]
    assert {"python": "3.12", "cuda": "cu124"} in [one["matrix"] for one in shown]


def test_show_tells_alike_cells_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text(
        "test:\n  image: python:3.11\n  parallel:\n    matrix:\n"
        "      - TORCH: ['2.7.0', '2.8.0']\n        SHARD: ['1', '2']\n"
        "  script:\n    - pip install torch==$TORCH\n    - pytest --shard $SHARD\n"
    )
    text = run(capsys, "show", "--gpu", "A100", "--python", "3.11", str(path))
    assert text.count("torch (line ") == 2
    assert "in matrix: TORCH 2.7.0\n" in text and "in matrix: TORCH 2.8.0\n" in text


def test_what_all_cells_share_names_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / ".gitlab-ci.yml"
    path.write_text(
        "test:\n  image: python:3.11\n  parallel:\n    matrix:\n      - SHARD: ['1', '2']\n"
        "  script:\n    - pip install torch==2.7.3\n"
    )
    text = run(capsys, "check", "--output-format", "concise", str(path))
    assert "torch 2.7.3 was never published" in text and "matrix" not in text


NAMES = ("a", "b", "c")
EVERY: list[Cell] = [
    tuple(zip(NAMES, values, strict=True)) for values in itertools.product("12", repeat=3)
]


@settings(deadline=None)
@given(st.sets(st.sampled_from(EVERY), min_size=1))
def test_the_fewest_names_still_tell_the_cells_apart(meant: set[Cell]) -> None:
    told = fewest(sorted(meant), set(EVERY))
    assert (told == ()) == (meant == set(EVERY))
    if told:
        assert {cell for cell in EVERY if any(set(one) <= set(cell) for one in told)} == meant


def test_names_that_the_message_speaks_of_are_kept() -> None:
    cells: list[Cell] = [(("torch", "2.0.0"), ("torchvision", "0.15.0"))]
    every = {*cells, (("torch", "2.1.0"), ("torchvision", "0.16.0"))}
    assert fewest(cells, every, "torch 2.0.0 has no wheel") == ((("torch", "2.0.0"),),)
    assert fewest(cells, every, "torchvision 0.15.0") == ((("torchvision", "0.15.0"),),)


LISTS = """\
on: push
jobs:
  test:
    runs-on: ubuntu-24.04
    strategy:
      matrix:
        python: ["3.11", "3.12"]
        x: [cpu, old]
    steps:
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}"}
      - run: pip install -r requirements-${{ matrix.x }}.txt
"""


def found_in(
    folder: Path, capsys: pytest.CaptureFixture[str], *paths: str
) -> list[dict[str, object]]:
    (folder / ".github" / "workflows" / "ci.yml").write_text(LISTS)
    (folder / "requirements-cpu.txt").write_text("torch==2.11.0\n")
    (folder / "requirements-old.txt").write_text("torch==2.1.0\ntorchvision==0.21.0\n")
    said = run(capsys, "check", "--output-format=json", *paths, "--gpu=A100", "--python=3.11")
    found: list[dict[str, object]] = json.loads(said)["findings"]
    return [one for one in found if one["severity"] == "error"]


def test_a_list_that_a_cell_installs_names_it(
    workflow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_code = {one["code"]: one for one in found_in(tmp_path, capsys, str(Path(workflow).parent))}
    assert by_code["TP102"]["matrix"] == [{"python": "3.12", "x": "old"}]
    assert by_code["TP301"]["matrix"] == [{"x": "old"}]
    related: Any = by_code["TP301"]["related"]
    assert [one["message"] for one in related] == ["installed here"]


def test_what_is_found_without_the_matrix_names_no_cell(
    workflow: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_code = {one["code"]: one for one in found_in(tmp_path, capsys, str(tmp_path))}
    assert by_code["TP102"]["matrix"] == [{"python": "3.12", "x": "old"}]
    assert by_code["TP301"]["matrix"] == []
    # Python 3.12 is met by the job alone: what mends it serves that Python.
    mended: Any = by_code["TP102"]["fix"]
    assert "torch==2.2.2" in mended["message"]
