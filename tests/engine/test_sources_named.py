"""Python sources of the setting ``sources`` are named as the other files of the folder are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

PROFILE = """\
sources = ["src"]

[fleet.main]
gpus = ["A100"]
driver = "580.65.06"
python = "3.12"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "gp.py").write_text("import torch\ntorch.qr(torch.ones(2, 2))\n")
    (tmp_path / "requirements.txt").write_text("torch==2.14.1\n")
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    return tmp_path


@pytest.mark.parametrize(
    ("place", "asked", "named"),
    [
        ("", [], "src/gp.py"),
        ("", ["."], "src/gp.py"),
        ("src", [".."], "../src/gp.py"),
        ("", ["{whole}"], "{whole}/src/gp.py"),
    ],
)
def test_source_has_the_name_that_leads_to_it(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
    asked: list[str],
    named: str,
) -> None:
    monkeypatch.chdir(project / place)
    paths = [one.format(whole=project) for one in asked]
    assert guarded(["check", "--output-format", "json", *paths]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    told = [one["path"] for one in found if one["code"] == "TP903"]
    assert told == [os.path.normpath(named.format(whole=project))]
