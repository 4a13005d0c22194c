"""A version is what PEP 440 makes of it: ``2.14``, ``2.14.0.0`` and ``v2.14.0`` are 2.14.0."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchpin.cli.main import guarded
from torchpin.documents.pins import exact_version, same_version

FORMS = {"2.14": "0.29", "2.14.0.0": "0.29.0.0", "v2.14.0": "v0.29.0"}
CU126 = "https://download.pytorch.org/whl/cu126"


def told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], *words: str
) -> str:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    guarded([*words, "--isolated", str(tmp_path)])
    return capsys.readouterr().out


@pytest.mark.parametrize("form", FORMS)
def test_resolve_knows_the_pin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    pins = f"torch=={form}\ntorchvision=={FORMS[form]}\n"
    found = told(tmp_path, capsys, {"requirements.txt": pins}, "resolve", "--gpu", "V100")
    assert "torch==2.14.0+cu126" in found
    assert "torchvision==0.29.0+cu126" in found
    assert "never published" not in found
    assert "torch 2.14.0 (PyPI, cu130) holds kernels for sm_75" in found


def test_pinned_companion_stays_however_it_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = "torch==2.14\ntorchaudio==2.11\n"
    found = told(tmp_path, capsys, {"requirements.txt": pins}, "resolve", "--gpu", "H100")
    assert "torchaudio==2.11.0\n" in found


@pytest.mark.parametrize("form", FORMS)
def test_fix_of_the_index_alone_is_safe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    files = {"requirements.txt": f"torch=={form}\n"}
    found = told(tmp_path, capsys, files, "check", "--gpu", "V100")
    assert "fix: torch==2.14.0+cu126" in found


@pytest.mark.parametrize("form", FORMS)
def test_two_files_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str) -> None:
    files = {"requirements.txt": f"torch=={form}\n", "requirements-gpu.txt": "torch==2.14.0\n"}
    assert "TP505" not in told(tmp_path, capsys, files, "check")


@pytest.mark.parametrize("triton", ["3.4", "3.4.0.0", "v3.4.0"])
def test_triton_that_torch_requires(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], triton: str
) -> None:
    files = {"requirements.txt": f"torch==2.8\ntriton=={triton}\n"}
    assert "TP305" not in told(tmp_path, capsys, files, "check")


@pytest.mark.parametrize("form", FORMS)
def test_same_torch_again_replaces_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    text = f"FROM python:3.12\nRUN pip install torch=={form}\nRUN pip install torch==2.14.0\n"
    assert "TP702" not in told(tmp_path, capsys, {"Dockerfile": text}, "check")


@pytest.mark.parametrize("form", FORMS)
def test_upgrade_moves_no_pin_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    pins = f"torch=={form}\ntorchvision=={FORMS[form]}\n"
    found = told(tmp_path, capsys, {"requirements.txt": pins}, "upgrade", "--to", "2.14.0")
    assert not re.search(r"requirements.txt:\d+: \w+ ==", found)


def test_labels_in_capitals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pins = f"--extra-index-url {CU126}\ntorch==2.14.0+CU126\ntorchvision==0.28.0+CU126\n"
    files = {"requirements.txt": pins}
    found = told(tmp_path, capsys, files, "fix", "--diff", "--unsafe-fixes", "--gpu", "V100")
    assert "+torchvision==0.29.0+cu126" in found


def test_what_is_no_version_is_itself() -> None:
    assert same_version("$TORCH", "$TORCH")
    assert not same_version("$TORCH", "2.14.0")
    assert not same_version("2.14.0", "2.14.1")
    assert exact_version("==2.14.0+CU126") == ("2.14.0", "cu126")
