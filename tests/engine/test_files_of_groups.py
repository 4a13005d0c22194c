"""Files that node groups name are read, whatever their names; what no group installs is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

PROFILE = """\
[fleet.volta]
gpus = ["V100"]
driver = "580.65.06"
python = "3.11"
files = ["gpu/reqs.lst"]
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    (tmp_path / "requirements.txt").write_text("torch>=2.8\n")
    (tmp_path / "gpu").mkdir()
    (tmp_path / "gpu" / "reqs.lst").write_text("torch==2.15.0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[tuple[str, str]], str]:
    """Return the exit code, code and path of each finding that is no info, and the notes."""
    capsys.readouterr()
    status = guarded(["check", "--output-format", "json", *words])
    out, err = capsys.readouterr()
    found = json.loads(out)["findings"] if out else []
    return status, [(one["code"], one["path"]) for one in found if one["severity"] != "info"], err


@pytest.mark.parametrize("asked", [(), (".",), ("gpu",)])
def test_file_of_a_group_is_found(
    capsys: pytest.CaptureFixture[str], asked: tuple[str, ...]
) -> None:
    assert told(capsys, *asked)[:2] == (1, [("TP201", "gpu/reqs.lst")])


def test_file_is_named_from_the_profile(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "gpu")
    assert told(capsys)[:2] == (1, [("TP201", "reqs.lst")])
    assert told(capsys, "..")[:2] == (1, [("TP201", "../gpu/reqs.lst")])


@pytest.mark.parametrize("asked", [(), ("requirements.txt",)])
def test_file_that_no_group_installs_is_told(
    capsys: pytest.CaptureFixture[str], asked: tuple[str, ...]
) -> None:
    notes = told(capsys, *asked)[2]
    assert "requirements.txt is not judged" in notes
    assert "asks for PyTorch" not in notes


def test_file_that_another_includes_is_installed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "gpu" / "reqs.lst").write_text("-r ../requirements.txt\ntorch==2.10.0\n")
    status, found, notes = told(capsys)
    assert (status, found) == (0, [])
    assert "is not judged" not in notes


def test_group_without_files_installs_any(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "torchpin.toml").write_text(PROFILE + '[fleet.new]\ngpus = ["B200"]\n')
    assert "is not judged" not in told(capsys)[2]


def test_file_that_is_not_there(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "gpu" / "reqs.lst").unlink()
    status, _, err = told(capsys)
    assert status == 2
    assert "torchpin.toml:5: group volta installs gpu/reqs.lst: there is no such file" in err
    # of no concern to who asks for another file
    assert told(capsys, "requirements.txt")[0] == 0


@pytest.mark.parametrize(
    ("text", "line"),
    [('files = [\n  "requirements.txt",\n  "none.txt",\n]\n', 7), ('files = ["none.txt"]\n', 5)],
)
def test_file_that_is_not_there_is_told_at_its_own_line(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, line: int
) -> None:
    (project / "torchpin.toml").write_text(PROFILE.rpartition("files")[0] + text)
    status, _, err = told(capsys)
    assert status == 2
    assert f"torchpin.toml:{line}: group volta installs none.txt: there is no such file" in err


def test_file_outside_of_what_was_asked_stays_out(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "other").mkdir()
    (project / "other" / "requirements.txt").write_text("numpy\n")
    assert told(capsys, "other")[:2] == (0, [])


def test_kept_result_sees_the_file_change(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCHPIN_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(project.parent / "cache"))
    assert told(capsys)[0] == 1
    (project / "gpu" / "reqs.lst").write_text("torch==2.10.0\n")
    assert told(capsys)[0] == 0
    (project / "gpu" / "reqs.lst").unlink()
    assert told(capsys)[0] == 2


def test_resolve_asks_each_group_what_its_files_say(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "torchpin.toml").write_text(
        PROFILE + '[fleet.ci]\ngpus = []\npython = "3.11"\nfiles = ["ci.txt"]\n'
    )
    cpu = "--index-url https://download.pytorch.org/whl/cpu\n"
    (project / "gpu" / "reqs.lst").write_text("torch==2.9.*\n")
    (project / "ci.txt").write_text(f"{cpu}torch~=2.12.0\n")
    assert guarded(["resolve", "--output-format", "json"]) == 0
    plans = json.loads(capsys.readouterr().out)["plans"]
    assert [(one["groups"], one["packages"]) for one in plans] == [
        (["volta"], {"torch": "2.9.1"}),
        (["ci"], {"torch": "2.12.1+cpu"}),
    ]
    assert guarded(["resolve"]) == 0
    assert "2 sets, each for its own part of the fleet." in capsys.readouterr().out


def test_written_sets_stay_what_they_are(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = PROFILE.replace('files = ["gpu/reqs.lst"]\n', "")
    two += two.replace("volta", "blackwell").replace("V100", "B200")
    (project / "torchpin.toml").write_text(two)
    words = ["resolve", "--split", "--policy", "newest", "--write", "requirements"]
    assert guarded([*words, "requirements.txt"]) == 0
    named = two.replace('["V100"]', '["V100"]\nfiles = ["requirements/volta.txt"]')
    named = named.replace('["B200"]', '["B200"]\nfiles = ["requirements/blackwell.txt"]')
    (project / "torchpin.toml").write_text(named)
    assert guarded(words) == 0  # the same again: nothing is in the way
