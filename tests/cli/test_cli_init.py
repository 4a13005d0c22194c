"""``torchpin init``: the profile that it writes is accepted, and nothing is overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchpin.cli.init_hook import has_hook, with_hook
from torchpin.cli.main import guarded
from torchpin.fleet.profile import load_profile


def test_profile_is_accepted_and_says_what_was_given(tmp_path: Path) -> None:
    arguments = [
        "--gpu",
        "V100,A100-SXM4-80GB",
        "--driver",
        "550.54.15",
        "--python",
        ">=3.10,<3.13",
    ]
    assert guarded(["init", str(tmp_path), "--group", "training", *arguments]) == 0
    fleet = load_profile(str(tmp_path / "torchpin.toml"))
    (group,) = fleet.groups
    assert group.name == "training"
    assert [gpu.arch for gpu in group.gpus] == ["sm_70", "sm_80"]
    assert group.driver == "550.54.15"
    assert [str(python) for python in group.pythons] == ["3.10", "3.11", "3.12"]


def test_cpu_only(tmp_path: Path) -> None:
    assert guarded(["init", str(tmp_path), "--gpu", "none"]) == 0
    assert load_profile(str(tmp_path / "torchpin.toml")).groups[0].gpus == ()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--gpu", "V1000"],
        ["--gpu", "RTX 6000"],
        ["--gpu", "V100", "--driver", "latest"],
        ["--gpu", "RTX 5090", "--driver", "535.54.03"],
        ["--gpu", "V100", "--python", "4"],
        ["--gpu", 'V100"]\nx = ["'],
        ["--gpu", "V100", "--group", "a]b"],
    ],
)
def test_a_wrong_value_writes_nothing(tmp_path: Path, arguments: list[str]) -> None:
    assert guarded(["init", str(tmp_path), "--yes", *arguments]) == 2
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "torchpin.toml").write_text("# mine\n")
    assert guarded(["init", str(tmp_path), "--gpu", "V100"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "torchpin.toml").read_text() == "# mine\n"


CONFIG = """\
# ours
repos:
-   repo: https://git.example/lint
    rev: v1
    hooks:
    -   id: lint
        args: [
            --fix,
        ]  # all

# the last word
ci:
    skip: [lint]
"""


def test_pre_commit_adds_the_hook_and_leaves_the_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "torchpin.toml").write_text("# mine\n")
    hooks = tmp_path / ".pre-commit-config.yaml"
    assert guarded(["init", str(tmp_path), "--pre-commit", "--yes"]) == 0
    assert "stays as it is" in capsys.readouterr().out
    written = hooks.read_text()
    assert "entry: torchpin check" in written
    hooks.write_text(CONFIG)
    assert guarded(["init", str(tmp_path), "--pre-commit", "--yes"]) == 0
    lines = hooks.read_text().splitlines()
    start = lines.index("- repo: local")
    assert lines[start - 1] == "        ]  # all"
    assert lines[:start] + lines[start + 8 :] == CONFIG.splitlines()
    before = hooks.read_bytes()
    assert guarded(["init", str(tmp_path), "--pre-commit", "--yes"]) == 0
    assert "has the hook already" in capsys.readouterr().out
    assert hooks.read_bytes() == before
    assert (tmp_path / "torchpin.toml").read_text() == "# mine\n"


@pytest.mark.parametrize(
    "text",
    [
        "repos: []\n",
        "repos:\r\n  - repo: meta\r\n    hooks:\r\n      - id: identity\r\n",
        "repos:\n  - repo: meta\n    hooks:\n      - id: identity",
        "repos:\n- repo: local\n  hooks:\n  - id: a\n    entry: |\n      one\n      b\n\nci: {}\n",
    ],
)
def test_the_hook_is_added_to_configurations_of_many_shapes(text: str) -> None:
    changed = with_hook(text)
    assert changed is not None
    assert has_hook(changed)
    assert ("\r\n" in changed) == ("\r\n" in text)
    assert changed.count("\r\n") in (0, changed.count("\n"))


@pytest.mark.parametrize(
    "text", ["", "repos: [{repo: meta, hooks: [{id: identity}]}]\n", "repos: [\n", "- a\n"]
)
def test_what_cannot_be_added_to_is_shown(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = tmp_path / ".pre-commit-config.yaml"
    hooks.write_text(text)
    assert guarded(["init", str(tmp_path), "--gpu", "V100", "--pre-commit"]) == 0
    assert "entry: torchpin check" in capsys.readouterr().out
    assert hooks.read_text() == text


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_it_asks_on_a_terminal(tmp_path: Path) -> None:
    import pty

    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "torchpin", "init", str(tmp_path)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
    ) as process:
        os.close(slave)
        os.write(master, b"V1000\nV100, A100\n550.54.15\n3.11\n")
        assert process.wait(timeout=60) == 0
    os.close(master)
    (group,) = load_profile(str(tmp_path / "torchpin.toml")).groups
    assert [gpu.arch for gpu in group.gpus] == ["sm_70", "sm_80"]
    assert (group.driver, str(group.pythons[0])) == ("550.54.15", "3.11")
