"""Exact pins that differ by marker: each is the wish of its own targets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.record_golden import findings, torchpin  # noqa: E402

V100 = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\n'
MAC = '[fleet.mac]\ngpus = []\nplatform = "macos-arm64"\npython = "3.11"\n'
WINDOWS = '[fleet.desk]\ngpus = []\nplatform = "windows-x86_64"\npython = "3.11"\n'


def fixed(tmp_path: Path, text: str, fleet: str) -> list[str]:
    """Return the lines of the file after ``fix --unsafe-fixes``."""
    (tmp_path / "torchpin.toml").write_text(fleet, "utf-8")
    path = tmp_path / "requirements.txt"
    path.write_text(text, "utf-8")
    done = torchpin("fix", "--unsafe-fixes", str(tmp_path))
    assert done.returncode in (0, 1), done.stderr
    return path.read_text("utf-8").splitlines()


def test_the_order_of_the_lines_does_not_matter(tmp_path: Path) -> None:
    lines = [
        'torch==2.12.0 ; sys_platform == "darwin"',
        'torch==2.15.0 ; sys_platform == "linux"',
    ]
    fleet = V100 + 'python = "3.11"\n' + MAC
    one = fixed(tmp_path, "\n".join(lines) + "\n", fleet)
    other = fixed(tmp_path, "\n".join(reversed(lines)) + "\n", fleet)
    assert one[1:] == [lines[0], 'torch==2.14.1+cu126 ; sys_platform == "linux"']
    assert sorted(one) == sorted(other)


def test_pins_by_python_are_wishes_apart(tmp_path: Path) -> None:
    text = 'torch==2.11.0 ; python_version < "3.12"\ntorch==2.13.0 ; python_version >= "3.12"\n'
    assert fixed(tmp_path, text, V100 + 'python = ["3.11", "3.12"]\n') == [
        "--extra-index-url https://download.pytorch.org/whl/cu126",
        'torch==2.11.0+cu126 ; python_version < "3.12"',
        'torch==2.13.0+cu126 ; python_version >= "3.12"',
    ]


def test_a_pin_of_no_target_stays(tmp_path: Path) -> None:
    text = 'torch==1.13.1 ; sys_platform == "win32"\ntorch==2.13.0 ; sys_platform == "linux"\n'
    assert fixed(tmp_path, text, V100 + 'python = "3.11"\n')[1:] == [
        'torch==1.13.1 ; sys_platform == "win32"',
        'torch==2.13.0+cu126 ; sys_platform == "linux"',
    ]


@pytest.mark.parametrize("mac", ["torch==2.12.0", "torch>=2.12,<2.13"])
def test_what_another_system_asks_for_binds_it_alone(tmp_path: Path, mac: str) -> None:
    text = f'{mac} ; sys_platform == "darwin"\ntorch==2.13.0 ; sys_platform == "linux"\n'
    after = fixed(tmp_path, text, V100 + 'python = "3.11"\n' + MAC)
    assert after[-1] == 'torch==2.13.0+cu126 ; sys_platform == "linux"'
    left = [one for one in findings(tmp_path, []) if one["severity"] == "error"]
    assert left == []


def test_a_project_moves_the_pin_of_the_failing_system(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(V100 + 'python = "3.11"\n' + WINDOWS, "utf-8")
    path = tmp_path / "pyproject.toml"
    path.write_text(
        '[project]\nname = "app"\nversion = "0"\nrequires-python = ">=3.11"\ndependencies = [\n'
        "    \"torch==2.15.0; sys_platform == 'linux'\",\n"
        "    \"torch==2.12.0; sys_platform == 'win32'\",\n]\n[tool.uv]\npackage = false\n",
        "utf-8",
    )
    assert torchpin("fix", "--unsafe-fixes", str(tmp_path)).returncode in (0, 1)
    text = path.read_text("utf-8")
    assert "torch==2.14.1; sys_platform == 'linux'" in text
    assert "torch==2.12.0; sys_platform == 'win32'" in text
