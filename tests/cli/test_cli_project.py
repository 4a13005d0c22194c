"""The files around the code say what the code does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchpin.documents.discover import FILES_PATTERN, kind_of

ROOT = Path(__file__).parent.parent.parent


def test_the_hooks_use_the_pattern_of_the_code() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text("utf-8")
    patterns = re.findall(r"^  files: '(.*)'$", text, re.MULTILINE)
    names = FILES_PATTERN.pattern
    assert patterns == [f"{names}|(?:^|/)torchpin\\.toml$", names]
    assert re.findall(r"^- id: (.*)$", text, re.MULTILINE) == ["torchpin-check", "torchpin-fix"]


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("requirements.txt", True),
        ("sub/requirements-dev.txt", True),
        ("requirements/train.txt", True),
        ("requirements.in", True),
        ("constraints.txt", True),
        ("pyproject.toml", True),
        ("sub/uv.lock", True),
        ("pylock.gpu.toml", True),
        ("poetry.lock", True),
        ("README.txt", False),
        ("requirements.txt.bak", False),
        ("requirements.md", False),
    ],
)
def test_what_the_hooks_take(path: str, taken: bool) -> None:
    assert (FILES_PATTERN.search(path) is not None) is taken
    assert (kind_of(path) is not None) is taken


def test_scripts_are_read_where_they_are_named_but_hooks_do_not_take_each() -> None:
    assert kind_of("src/requirements.py") == "script"
    assert FILES_PATTERN.search("src/requirements.py") is None


@pytest.mark.parametrize("script", ["gen_docs.py", "draw_reports.py"])
def test_generated_files_are_up_to_date(script: str) -> None:
    done = subprocess.run(
        [sys.executable, f"tools/{script}", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_ci_runs_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    commands = re.findall(r"^```console\n(.*?)\n```", readme, re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    script = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    assert commands[1] in script


def test_the_example_is_the_one_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "TP106" in readme
    assert "+torch==2.14.0+cu126" in readme
