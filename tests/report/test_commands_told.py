"""Every form of report tells the command that has to be run after a fix, or in its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from torchpin.cli.main import guarded
from torchpin.cli.parser import FORMATS

FIXTURE = Path(__file__).parents[2] / "fixtures" / "rules" / "TP504-new-source"


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "concise"])
def test_a_report_tells_the_command(
    form: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(FIXTURE / "input", tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    assert guarded(["check", "--output-format", form]) == 1
    told = capsys.readouterr().out.replace("\\-", "-")
    assert "uv lock --upgrade-package torch" in told
