"""What the extras of a project pin binds its one lock: ``check`` and ``resolve`` say the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.cli.main import guarded

PROJECT = """\
[project]
name = "app"
version = "1"
requires-python = ">=3.11"
dependencies = ["torch>=2.4"]

[project.optional-dependencies]
old = ["torch==2.11.0"]
new = ["torchvision"]

[tool.uv]
"""
CONFLICT = 'conflicts = [[{ extra = "old" }, { extra = "new" }]]\n'


def told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, text: str = PROJECT
) -> str:
    (tmp_path / "pyproject.toml").write_text(text)
    guarded([command, "--isolated", "--gpu", "V100", "--python", "3.11", str(tmp_path)])
    return capsys.readouterr().out


def test_resolve_stays_at_what_an_extra_pins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "torch==2.11.0+cu126\n" in told(tmp_path, capsys, "resolve")


def test_check_names_no_release_that_the_lock_cannot_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(tmp_path, capsys, "check")
    assert "torch 2.11.0 (PyPI, cu130) holds no kernels for Tesla V100" in found
    assert "is the newest" not in found
    assert "floats" not in found


def test_an_extra_of_a_fork_of_its_own_does_not_bind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(tmp_path, capsys, "check", PROJECT + CONFLICT)
    assert "floats to torch 2.15.0" in found
    assert "torch 2.10.0 (PyPI, cu128) is the newest that this admits" in " ".join(found.split())


def test_newest_from_pypi_is_told_as_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "requirements.txt").write_text("torch\n")
    guarded(["check", "--isolated", "--gpu", "V100", str(tmp_path)])
    found = " ".join(capsys.readouterr().out.split())
    assert "from PyPI alone, torch 2.10.0 (PyPI, cu128) is the newest that this admits" in found
    assert "torch==2.14.1+cu126" in found
