"""A fix after which another error would be there is told as advice, and not made."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin import engine
from torchpin.cli.main import main
from torchpin.engine import FixResult, Options, Report
from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import load_profile

MIXED = """
[fleet.v100]
gpus = ["V100"]
driver = "535.183.01"
python = "3.10"
platform = "linux-x86_64"
glibc = "2.31"

[fleet.l4]
gpus = ["L4"]
driver = "535.183.01"
python = ">=3.10,<3.13"
platform = "linux-x86_64"

[fleet.b200]
gpus = ["B200"]
driver = "580.65.06"
python = "3.12"
platform = "linux-x86_64"
"""
GUIDE = """--index-url https://download.pytorch.org/whl/cu121
torch==2.5.1
torchvision==0.20.1
torchaudio==2.5.1
xformers==0.0.28.post3
"""
WORKFLOW = """name: t
on: [push]
jobs:
  t:
    runs-on: ubuntu-22.04
    strategy:
      matrix:
        python: ["3.10", "3.12", "3.14"]
        cuda: [cpu, cu118, cu126]
    steps:
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}"}
      - run: pip install torch==2.9.1 --index-url https://download.pytorch.org/whl/${{ matrix.cuda }}
      - run: |
          uv pip install torch==1.12.0
          pip install "torch>=2.2,<2.3" torchvision==0.20
"""  # noqa: E501


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "torchpin.toml"
    path.write_text(MIXED, "utf-8")
    return load_profile(str(path))


def mended(path: Path, fleet: Fleet) -> FixResult:
    return engine.fix(Options(paths=(str(path),), isolated=True, unsafe_fixes=True), fleet)


def errors(report: Report) -> set[tuple[str, str | None]]:
    return {(one.code, one.package) for one in report.findings if one.severity == "error"}


def test_torch_does_not_leave_a_package_that_requires_it(tmp_path: Path, fleet: Fleet) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(GUIDE, "utf-8")
    result = mended(path, fleet)
    assert result.changes == ()
    (told,) = [one for one in result.report_after.findings if one.code == "TP201"]
    assert told.fix is not None
    assert told.fix.safety == "display"
    assert "no xformers is known that runs beside torch 2.8.0+cu128" in told.fix.message
    assert "remove xformers" in told.fix.message


def test_resolve_says_which_package_cannot_go_along(
    tmp_path: Path, fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(GUIDE, "utf-8")
    assert main(["resolve", "--config", str(fleet.path), str(path)]) == 1
    shown = capsys.readouterr().out
    assert "One set runs on every target, without xformers" in shown


def test_cells_of_a_matrix_get_no_error_from_the_fix_of_another(
    tmp_path: Path, fleet: Fleet
) -> None:
    path = tmp_path / ".github" / "workflows" / "test.yml"
    path.parent.mkdir(parents=True)
    path.write_text(WORKFLOW, "utf-8")
    result = mended(path, fleet)
    assert errors(result.report_after) <= errors(result.report_before)
    assert any("not mended" in one and "TP302" in one for one in result.skipped)
