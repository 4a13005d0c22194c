"""Advice names the key in which a project says for which Pythons it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

POETRY = (
    '[tool.poetry]\nname = "app"\nversion = "0"\n\n[tool.poetry.dependencies]\npython = "^3.10"\n'
)
PROJECT = (
    '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.10,<4.0"\n\n'
    "[tool.poetry]\npackages = []\n\n[tool.poetry.dependencies]\n"
)
WANTS = 'torch = "^2.11"\ntorchvision = "*"\n'


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (POETRY, "first write python >=3.11,!=3.14.1,<4.0 "),
        (PROJECT, "first write requires-python "),
    ],
)
def test_key_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], head: str, words: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(head + WANTS)
    machine = ["--gpu", "A100", "--driver", "580.65.06", "--python", "3.12"]
    guarded(["check", "--isolated", "--output-format", "json", *machine, str(tmp_path)])
    found = json.loads(capsys.readouterr().out)["findings"]
    advice = [one["fix"]["message"] for one in found if one["fix"] is not None]
    assert any(words in one for one in advice), advice
