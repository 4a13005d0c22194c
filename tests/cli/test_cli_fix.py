"""What ``fix`` says where it writes nothing, or makes no lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.cli.main import guarded

UNFIXABLE = """\
[tool.poetry]
name = "a"
version = "1"

[tool.poetry.dependencies]
python = "^3.10"
torch = "^2.14"
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", ["fix", "check"])
def test_an_empty_patch_says_what_stays(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("requirements.txt").write_text("torch==2.15.0\n")
    fleet = ["--gpu", "V100", "--python", "3.11"]
    assert guarded([command, "--diff", *fleet]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "note: nothing to change; 1 error stays: `torchpin check` says why\n" in printed.err
    assert guarded([command, "--diff", "-q", *fleet]) == 1
    assert capsys.readouterr().err == ""


def test_a_clean_file_has_an_empty_patch(capsys: pytest.CaptureFixture[str]) -> None:
    Path("requirements.txt").write_text("numpy\n")
    assert guarded(["fix", "--diff"]) == 0
    assert capsys.readouterr().err.endswith("note: nothing to change\n")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("pyproject.toml", UNFIXABLE, "--relock: there is no lock here; `poetry lock` makes one"),
        (
            "pyproject.toml",
            '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch"]\n[tool.uv]\n',
            "--relock: there is no lock here; `uv lock` makes one",
        ),
        (
            "Pipfile",
            '[packages]\ntorch = "*"\n',
            "--relock: there is no lock here; `pipenv lock` makes one",
        ),
        ("requirements.txt", "torch\n", "--relock: there is no lock here\n"),
    ],
)
def test_relock_without_a_lock_says_so(
    name: str, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(text)
    guarded(["fix", "--relock"])
    assert f"note: {told}" in capsys.readouterr().err


def test_nothing_is_said_once_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["fix"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Nothing to check. ")
    assert "Nothing to change" not in printed
