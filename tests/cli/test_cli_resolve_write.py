"""``torchpin resolve --split`` and ``--write``."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.cli.main import guarded

PROFILE = """\
[fleet.volta]
gpus = ["V100"]
driver = "580.65.06"
python = "3.11"

[fleet.blackwell]
gpus = ["B200"]
driver = "580.65.06"
python = "3.11"
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "requirements.txt").write_text("torch>=2.8\n")
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pins(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("#")]


def test_one_set_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["resolve", "--write", "sets"]) == 0
    assert pins(project / "sets" / "torch.txt") == ["torch==2.10.0"]
    assert "wrote sets/torch.txt" in capsys.readouterr().err


def test_each_part_of_the_fleet_has_a_file_that_serves_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(["resolve", "--split", "--policy", "newest", "--write", "sets"]) == 0
    assert "2 sets, each for its own part of the fleet." in capsys.readouterr().out
    assert sorted(path.name for path in (project / "sets").iterdir()) == [
        "blackwell.txt",
        "volta.txt",
    ]
    assert pins(project / "sets" / "volta.txt") == [
        "--extra-index-url https://download.pytorch.org/whl/cu126",
        "torch==2.14.1+cu126",
    ]
    # the profile says which group installs which file: nothing is wrong any more
    profile = PROFILE.replace('["V100"]', '["V100"]\nfiles = ["sets/volta.txt"]')
    profile = profile.replace('["B200"]', '["B200"]\nfiles = ["sets/blackwell.txt"]')
    (project / "torchpin.toml").write_text(profile)
    assert guarded(["check", "sets"]) == 0


def test_split_that_is_none_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["resolve", "--isolated", "--gpu", "A100", "--python", "3.12"]
    assert guarded(arguments) == 0
    plain = capsys.readouterr().out
    assert guarded([*arguments, "--split"]) == 0
    assert capsys.readouterr().out == plain


def test_file_of_another_content_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["resolve", "--split", "--policy", "newest", "--write", "sets"]
    (project / "sets").mkdir()
    (project / "sets" / "volta.txt").write_text("mine\n")
    assert guarded(arguments) == 2
    assert "sets/volta.txt: is there already, and holds something else" in capsys.readouterr().err
    assert (project / "sets" / "volta.txt").read_text() == "mine\n"
    assert not (project / "sets" / "blackwell.txt").exists()
    (project / "sets" / "volta.txt").unlink()
    assert guarded(arguments) == 0
    assert guarded(arguments) == 0  # what is there already is the same


def test_folder_that_cannot_be(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "sets").write_text("")
    assert guarded(["resolve", "--write", "sets"]) == 2
    assert "sets" in capsys.readouterr().err


def test_pythons_of_one_group_have_names_of_their_own(project: Path) -> None:
    (project / "requirements.txt").write_text("torch\n")
    (project / "torchpin.toml").write_text(
        '[fleet.a]\ngpus = ["A100"]\ndriver = "580.65.06"\npython = ["3.9", "3.14"]\n'
    )
    assert guarded(["resolve", "--policy", "newest", "--split", "--write", "sets"]) == 0
    assert sorted(path.name for path in (project / "sets").iterdir()) == [
        "a-py3.14.txt",
        "a-py3.9.txt",
    ]
