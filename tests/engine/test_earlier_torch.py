"""A companion of a later command is judged beside the torch that an earlier one installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchpin.cli.main import guarded

CU126 = "https://download.pytorch.org/whl/cu126"
TORCH = f"FROM ubuntu:22.04\nRUN pip install torch==2.14.1 --index-url {CU126}\n"


def findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str]
) -> list[dict[str, Any]]:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    words = ["check", "--isolated", "--select", "TP3", "--output-format", "json"]
    guarded([*words, "--gpu", "H100", str(tmp_path)])
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    return found


@pytest.mark.parametrize(
    ("command", "code"), [("torchaudio", "TP306"), ("torchaudio==2.11.1", "TP302")]
)
def test_other_cuda_in_a_later_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, code: str
) -> None:
    text = f"{TORCH}RUN pip install {command}\n"
    (found,) = findings(tmp_path, capsys, {"Dockerfile": text})
    assert (found["code"], found["severity"], found["line"]) == (code, "error", 3)
    assert "torch 2.14.1+cu126" in found["message"]
    assert found["fix"]["safety"] == "unsafe"  # another version
    assert found["fix"]["message"] == "torchaudio==2.11.0+cu126 (index cu126)"
    (tmp_path / "Dockerfile").write_text(text.replace(command, f"{command} numpy==$X"))
    (found,) = findings(tmp_path, capsys, {})
    assert found["fix"]["safety"] == "unsafe"  # a variable of another package is no matter
    (tmp_path / "Dockerfile").write_text(text.replace(command, f"{command} torchcodec==$X"))
    (found,) = findings(tmp_path, capsys, {})
    assert found["fix"]["safety"] == "display"
    assert "one command with torch, from the same index" in found["fix"]["message"]


def test_included_file_of_a_later_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{TORCH}COPY requirements.txt .\nRUN pip install -r requirements.txt\n"
    files = {"Dockerfile": text, "requirements.txt": "torchaudio\n"}
    (found,) = findings(tmp_path, capsys, files)
    assert (found["code"], Path(found["path"]).name) == ("TP306", "requirements.txt")


@pytest.mark.parametrize(
    "text",
    [
        f"{TORCH}RUN pip install torchvision --index-url {CU126}\n",
        "FROM ubuntu:22.04\nRUN pip install torch==2.15.0\nRUN pip install torchaudio\n",
    ],
)
def test_what_fits_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert findings(tmp_path, capsys, {"Dockerfile": text}) == []
