"""A version that PyPI lacks may lie on a channel: only of torch's own family that is denied.

Others take releases off PyPI that a channel keeps: xformers 0.0.22.post4 lies on cu121
(https://github.com/ChiSu001/SAT-HMR/issues/3 shows pip's list of it).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

CHANNEL = "https://download.pytorch.org/whl/cu121"


@pytest.mark.parametrize(
    ("index", "code", "severity", "words"),
    [
        ("", "TP101", "error", "is not on PyPI (0.0.22 and 0.0.22.post7 are)"),
        (f"--index-url {CHANNEL}\n", "TP003", "info", "does not know xformers 0.0.22.post4"),
        (f"--extra-index-url {CHANNEL}\n", "TP003", "info", "does not know xformers 0.0.22.post4"),
    ],
)
def test_release_that_was_taken_off(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    index: str,
    code: str,
    severity: str,
    words: str,
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"{index}xformers==0.0.22.post4\n")
    guarded(["check", "--isolated", "--output-format", "json", str(path)])
    found = json.loads(capsys.readouterr().out)["findings"]
    told = [one for one in found if one["package"] == "xformers"]
    assert [(one["code"], one["severity"]) for one in told] == [(code, severity)]
    assert words in told[0]["message"]


def test_own_family_is_denied_on_channels_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"--index-url {CHANNEL}\ntorchvision==0.17.9\n")
    guarded(["check", "--isolated", "--output-format", "json", str(path)])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert "torchvision 0.17.9 was never published" in {one["message"][:38] for one in found}
