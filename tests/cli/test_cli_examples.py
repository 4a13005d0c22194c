"""The examples do what their README says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def example(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return Path(shutil.copytree(EXAMPLES / str(request.param), tmp_path / str(request.param)))


@pytest.mark.parametrize(
    "example", ["legacy-cluster", "mixed-fleet", "macos-and-linux"], indirect=True
)
def test_an_example_is_broken_then_mended_for_good(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(["check", str(example)]) == 1
    assert guarded(["fix", "--unsafe-fixes", str(example)]) == 0
    fixed = (example / "requirements.txt").read_bytes()
    assert guarded(["fix", "--unsafe-fixes", str(example)]) == 0
    assert (example / "requirements.txt").read_bytes() == fixed
    assert guarded(["check", str(example)]) == 0
    assert "mends" not in capsys.readouterr().out.split("Nothing to change.")[1]


@pytest.mark.parametrize("example", ["mixed-fleet"], indirect=True)
def test_the_last_build_for_both_is_found(
    example: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(["resolve", str(example), "--policy", "newest"]) == 0
    out = capsys.readouterr().out
    assert "One set runs on every target." in out
    assert "    torch==2.10.0\n" in out


@pytest.mark.parametrize("example", ["legacy-cluster"], indirect=True)
def test_the_three_mistakes_of_the_guide(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guarded(["check", str(example)])
    out = capsys.readouterr().out
    assert "cu124 stopped at torch 2.6.0" in out
    assert "torchvision 0.19.0 requires torch==2.4.0" in out
    assert "torchaudio 2.14.0 was never published (the last is 2.11.1)" in out
