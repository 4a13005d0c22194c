"""A ``uv.toml`` or a lock of uv beside a project of no tool's says that uv installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin import engine
from torchpin.fleet.profile import load_profile

FLEET = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\npython = "3.11"\n'
PROJECT = (
    '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.11"\n'
    'dependencies = ["torch>=2.11"]\n'
)
INDEX = '[[index]]\nname = "pt"\nurl = "https://download.pytorch.org/whl/cu126"\n'


@pytest.mark.parametrize(("settings", "runs"), [(INDEX, True), (None, False)])
def test_uv_toml_beside_a_project_is_uvs(tmp_path: Path, settings: str | None, runs: bool) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT, "utf-8")
    (tmp_path / "torchpin.toml").write_text(FLEET, "utf-8")
    if settings is not None:
        (tmp_path / "uv.toml").write_text(settings, "utf-8")
    fleet = load_profile(str(tmp_path / "torchpin.toml"))
    report = engine.check(engine.Options((str(tmp_path),), isolated=True), fleet)
    codes = {one.code for one in report.findings}
    assert ("TP201" not in codes) == runs
    assert ("TP405" in codes) == runs
