"""Lines whose marker holds on no target of the fleet: what stands there is not told of here."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin import engine
from torchpin.engine import Options
from torchpin.fleet.profile import fleet_from_options

FLEET = fleet_from_options(gpus=["A100-SXM4-80GB"], python="3.11", platform="linux-x86_64")
CU126 = "--extra-index-url https://download.pytorch.org/whl/cu126\n"


@pytest.mark.parametrize(
    "text",
    [
        'torch==2.14.1\ntorchvision==0.15.2 ; python_version < "3.9"\n',
        'torch==2.14.1\ntorchaudio==2.0.2 ; sys_platform == "darwin"\n',
        f'{CU126}torch==2.14.1+cu126\ntorchvision==0.20.1+cu124 ; sys_platform == "win32"\n',
    ],
)
def test_a_line_for_other_machines_is_no_finding(tmp_path: Path, text: str) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(text, "utf-8")
    findings = engine.check(Options(paths=(str(path),), isolated=True), FLEET).findings
    assert not [one for one in findings if one.severity != "info"]


def test_the_same_line_for_this_machine_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text('torch==2.14.1\ntorchvision==0.15.2 ; python_version > "3.9"\n', "utf-8")
    findings = engine.check(Options(paths=(str(path),), isolated=True), FLEET).findings
    assert [one.code for one in findings if one.severity == "error"] == ["TP301"]
