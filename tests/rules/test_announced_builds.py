"""What is told of builds that are announced and were not seen: warnings, never errors, never
silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin import engine
from torchpin.engine import Options
from torchpin.evidence import PROOF
from torchpin.fleet.profile import fleet_from_options


@pytest.mark.parametrize(
    ("line", "channel", "gpu", "driver", "code"),
    [
        ("torch", "cu130", "A100-SXM4-80GB", "515.65.01", "TP203"),
        ("torch==2.15.0+cu130", "cu130", "A100-SXM4-80GB", "535.183.01", "TP203"),
        ("torch==2.15.0", "cpu", "A100-SXM4-80GB", None, "TP205"),
        ("torch==2.15.0", "xpu", "A100-SXM4-80GB", None, "TP207"),
        ("torch==2.15.0+cu130", "cu130", "Tesla V100", None, "TP201"),
        ("torch==2.15.0+cu130", "cu130", "Tesla V100", "590.48.01", "TP204"),
    ],
)
def test_an_announced_build_that_cannot_run_is_a_warning(
    tmp_path: Path, line: str, channel: str, gpu: str, driver: str | None, code: str
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"--index-url https://download.pytorch.org/whl/{channel}\n{line}\n", "utf-8")
    fleet = fleet_from_options(gpus=[gpu], driver=driver, python="3.12", platform="linux-x86_64")
    findings = engine.check(Options(paths=(str(path),), isolated=True), fleet).findings
    assert [one.severity for one in findings if one.code == code] == ["warning"]
    assert not [one for one in findings if one.severity == "error"]


def test_a_driver_that_is_inferred_not_to_know_the_gpu_is_not_told(tmp_path: Path) -> None:
    """No edit of a file can help, and the branch is only inferred from a toolkit's targets."""
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.9.0\n", "utf-8")
    fleet = fleet_from_options(
        gpus=["B300"], driver="570.133.20", python="3.12", platform="linux-x86_64"
    )
    findings = engine.check(Options(paths=(str(path),), isolated=True), fleet).findings
    assert "TP203" not in {one.code for one in findings}


def test_no_ground_of_an_error_is_inferred(tmp_path: Path) -> None:
    """Not even one that only adds to others: what is newest that runs, or does not on the GPU."""
    index = "--extra-index-url https://download.pytorch.org/whl"
    texts = [
        f"torch\n{index}/cu118\n",
        f"{index}/cu124\ntorch~=2.6.0\ntorchaudio\n",
        f"{index}/cu124\ntorch==2.6.0\ntorchaudio\n",
    ]
    for platform, gpu in (("windows-x86_64", "Tesla P4"), ("linux-x86_64", "Tesla P4")):
        fleet = fleet_from_options(gpus=[gpu], python="3.10", platform=platform)
        for text in texts:
            path = tmp_path / "requirements.txt"
            path.write_text(text, "utf-8")
            findings = engine.check(Options(paths=(str(path),), isolated=True), fleet).findings
            errors = [one for one in findings if one.severity == "error"]
            assert errors
            assert all(ground.evidence in PROOF for one in errors for ground in one.because)
