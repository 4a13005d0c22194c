"""``check`` in a big repository: baselines, changed files, evidence; and idle comments."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

PROFILE = '[fleet.volta]\ngpus = ["V100"]\ndriver = "550.54.15"\npython = "3.11"\n'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    (tmp_path / "requirements.txt").write_text("torch==2.14.0+cu124\n")
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "requirements.txt").write_text("numpy\ntorch==2.11.0\n")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> object:
    """Return what ``check`` finds: (exit code, code and path of each finding that is no info)."""

    def run(*words: str) -> tuple[int, list[tuple[str, str]]]:
        capsys.readouterr()
        status = guarded(["check", "--output-format", "json", *words])
        found = json.loads(capsys.readouterr().out)["findings"]
        return status, [(one["code"], one["path"]) for one in found if one["severity"] != "info"]

    return run


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_only_new_findings_are_told(project: Path, told, capsys) -> None:  # type: ignore[no-untyped-def]
    status, before = told()
    assert status == 1
    assert {path for _, path in before} == {"requirements.txt", "train/requirements.txt"}
    assert guarded(["baseline", "create", "-q"]) == 0
    (project / "torchpin.toml").write_text('baseline = "torchpin-baseline.json"\n' + PROFILE)
    assert told() == (0, [])
    assert told("--no-baseline") == (1, before)
    (project / "train" / "requirements.txt").write_text("torch==2.11.0\ntorchaudio==2.14.0\n")
    status, after = told()
    assert status == 1
    assert ("TP101", "train/requirements.txt") in after
    assert not {code for code, _ in after} & {"TP201", "TP203"}
    capsys.readouterr()
    assert guarded(["check"]) == 1
    assert "are in the baseline, torchpin-baseline.json" in capsys.readouterr().err


def test_baseline_is_found_from_below(project: Path, told, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert guarded(["baseline", "create", "-q", "-o", "known.json"]) == 0
    (project / "torchpin.toml").write_text('baseline = "known.json"\n' + PROFILE)
    monkeypatch.chdir(project / "train")
    assert told() == (0, [])
    assert told("requirements.txt", "../requirements.txt") == (0, [])


def test_what_is_mended_is_pruned_and_nothing_is_added(project: Path, told, capsys) -> None:  # type: ignore[no-untyped-def]
    assert guarded(["baseline", "create", "-q"]) == 0
    arguments = ("--baseline", "torchpin-baseline.json")
    first = (project / "torchpin-baseline.json").read_text()
    (project / "requirements.txt").write_text("torchaudio==2.14.0\n")
    capsys.readouterr()
    assert guarded(["check", *arguments]) == 1
    assert "torchpin baseline prune takes" in capsys.readouterr().err
    assert guarded(["check", *arguments, "train"]) == 0
    assert "prune" not in capsys.readouterr().err  # the mended file was not looked at
    assert guarded(["baseline", "prune", *arguments, "train"]) == 0
    assert (project / "torchpin-baseline.json").read_text() == first
    assert guarded(["baseline", "prune", *arguments]) == 0
    assert '"requirements.txt"' not in (project / "torchpin-baseline.json").read_text()
    assert told(*arguments) == (1, [("TP101", "requirements.txt")])
    (project / "train" / "requirements.txt").unlink()
    assert guarded(["baseline", "prune", *arguments]) == 0
    assert "train" not in (project / "torchpin-baseline.json").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("--select", "TP1,TP203"),
        ("--ignore", "TP201"),
        ("--per-file-ignores", "requirements.txt:TP201"),
        ("--gpu", "A100", "--driver", "590.44.01", "--python", "3.11"),
        ("--isolated",),
    ],
)
def test_what_was_not_looked_at_is_not_mended(
    project: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    (project / "requirements.txt").write_text("torch==2.14.0\n")
    assert guarded(["baseline", "create", "-q", "--select", "TP201"]) == 0
    before = (project / "torchpin-baseline.json").read_text()
    assert '"TP201"' in before
    guarded(["check", "--baseline", "torchpin-baseline.json", *words])
    assert "mended" not in capsys.readouterr().err
    assert guarded(["baseline", "prune", *words]) == 0
    assert (project / "torchpin-baseline.json").read_text() == before


def test_files_alone_are_not_compared(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"path": "requirements.txt", "code": "TP505", "text": "torch", "package": "torch"}
    text = json.dumps({"version": 1, "findings": [entry]})
    (project / "torchpin-baseline.json").write_text(text)
    guarded(["check", "--baseline", "torchpin-baseline.json", "requirements.txt"])
    assert "mended" not in capsys.readouterr().err
    guarded(["check", "--baseline", "torchpin-baseline.json"])
    assert "1 finding of the baseline is mended" in capsys.readouterr().err


def test_baseline_of_a_command_line_is_pruned_by_it(project: Path) -> None:
    volta = ("--gpu", "V100", "--driver", "550.54.15", "--python", "3.11")
    assert guarded(["baseline", "create", "-q", *volta]) == 0
    assert "TP201" in (project / "torchpin-baseline.json").read_text()
    (project / "train" / "requirements.txt").write_text("torch==2.14.1+cu126\n")
    assert guarded(["baseline", "prune", *volta]) == 0
    assert "TP201" not in (project / "torchpin-baseline.json").read_text()


def known_and_new(project: Path) -> None:
    """Two files with one finding to mend each; that of the folder is in the baseline."""
    (project / "requirements.txt").write_text("torch==2.14.1\n")
    assert guarded(["baseline", "create", "-q", "train"]) == 0
    (project / "torchpin.toml").write_text('baseline = "torchpin-baseline.json"\n' + PROFILE)


def test_fix_leaves_alone_what_the_baseline_holds(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known_and_new(project)
    train = (project / "train" / "requirements.txt").read_text()
    assert guarded(["fix"]) == 0
    told = capsys.readouterr()
    assert "in 1 file: requirements.txt." in told.out
    assert "train" not in told.out
    assert "findings are in the baseline, torchpin-baseline.json" in told.err
    assert (project / "requirements.txt").read_text() != "torch==2.14.1\n"
    assert (project / "train" / "requirements.txt").read_text() == train
    assert guarded(["fix"]) == 0
    assert "Nothing to change." in capsys.readouterr().out
    assert guarded(["fix", "--diff", "-q"]) == 0
    assert capsys.readouterr().out == ""
    assert guarded(["fix", "--no-baseline"]) == 0
    assert (project / "train" / "requirements.txt").read_text() != train
    guarded(["check"])
    assert "torchpin baseline prune takes" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [("fix", "--diff"), ("check", "--diff"), ("fix", "--statistics")]
)
def test_what_waits_counts_nowhere(
    project: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    known_and_new(project)
    (project / "torchpin.toml").write_text(PROFILE)
    named = ("--baseline", "torchpin-baseline.json")
    assert guarded([*command, "train"]) == (0 if "--statistics" in command else 1)
    (project / "train" / "requirements.txt").write_text("numpy\ntorch==2.11.0\n")
    capsys.readouterr()
    assert guarded([*command, *named, "train"]) == 0
    told = capsys.readouterr()
    assert "torch" not in told.out.replace("torchpin", "")
    assert "are in the baseline" in told.err
    assert (project / "train" / "requirements.txt").read_text() == "numpy\ntorch==2.11.0\n"


def test_fix_says_what_of_the_baseline_is_mended(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One plan mends all pins of a file: that of a new finding takes a known one along."""
    assert guarded(["baseline", "create", "-q", "train"]) == 0
    (project / "train" / "requirements.txt").write_text("torch==2.11.0\ntorchaudio==2.14.0\n")
    assert guarded(["fix", "--baseline", "torchpin-baseline.json", "train"]) == 0
    told = capsys.readouterr()
    assert "of the baseline are mended: torchpin baseline prune takes them out" in told.err
    assert guarded(["fix", "--baseline", "nowhere.json"]) == 2
    assert "there is no such baseline" in capsys.readouterr().err


def test_baseline_that_is_there_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "torchpin-baseline.json").write_text("mine")
    assert guarded(["baseline", "create"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert guarded(["check", "--baseline", "torchpin-baseline.json"]) == 2
    assert "is no baseline" in capsys.readouterr().err
    assert (project / "torchpin-baseline.json").read_text() == "mine"
    assert guarded(["baseline", "create", "--force"]) == 0
    assert guarded(["check", "--baseline", "nowhere.json"]) == 2
    assert "torchpin baseline create" in capsys.readouterr().err
    assert guarded(["baseline", "create", "-o", "train"]) == 2


def test_setting_that_is_no_path(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "torchpin.toml").write_text("baseline = 3\n" + PROFILE)
    assert guarded(["check"]) == 2
    assert "torchpin.toml:1" in capsys.readouterr().err


def test_changed_files_alone(project: Path, told, capsys) -> None:  # type: ignore[no-untyped-def]
    git(project, "init", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-m", "first")
    assert told("--changed-since", "main") == (0, [])
    (project / "train" / "requirements.txt").write_text("# more\nnumpy\ntorch==2.11.0\n")
    _, edited = told("--changed-since", "main")
    assert {path for _, path in edited} == {"train/requirements.txt"}
    git(project, "checkout", "-b", "topic")
    git(project, "commit", "-am", "second")
    assert told("--changed-since", "main") == (1, edited)
    (project / "new-requirements.txt").write_text("torchaudio==2.14.0\n")
    assert ("TP101", "new-requirements.txt") in told("--changed-since", "main")[1]
    (project / "torchpin.toml").write_text(PROFILE + "\n")
    assert {path for _, path in told("--changed-since", "main")[1]} >= {"requirements.txt"}


def commit(folder: Path) -> None:
    git(folder, "init", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")


def test_of_other_repositories_git_says_nothing_here(project: Path, told, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """What is not known to be unchanged is told: a submodule, a clone within, a place outside."""
    repository, outside = project / "train", project / "requirements.txt"
    inner, module = repository / "inner", repository / "module"
    commit(repository)
    for folder in (inner, module):
        folder.mkdir()
        (folder / "requirements.txt").write_text("torch==2.11.0\n")
        commit(folder)
    git(repository, "add", "module")
    git(repository, "commit", "-m", "second")
    monkeypatch.chdir(repository)

    def paths(*words: str) -> set[str]:
        volta = ("--gpu", "V100", "--driver", "550.54.15", "--python", "3.11")
        return {path for _, path in told("--changed-since", "main", *volta, *words)[1]}

    assert paths() == {"inner/requirements.txt"}
    assert paths(".", str(outside)) == {"inner/requirements.txt", str(outside)}
    (module / "requirements.txt").write_text("torch==2.11.0 \n")
    git(repository, "config", "diff.ignoreSubmodules", "all")
    assert paths() == {"inner/requirements.txt", "module/requirements.txt"}
    git(module, "commit", "-am", "third")
    assert paths("module") == {"module/requirements.txt"}
    monkeypatch.chdir(module)
    assert paths() == set()


def test_settings_in_a_project_file_may_have_brought_any(project: Path, told, capsys) -> None:  # type: ignore[no-untyped-def]
    (project / "torchpin.toml").unlink()
    fleet = PROFILE.replace("[fleet", "[tool.torchpin.fleet")
    (project / "pyproject.toml").write_text(fleet)
    commit(project)
    assert told("--changed-since", "main") == (0, [])
    (project / "pyproject.toml").write_text(fleet.replace("3.11", "3.15"))
    assert ("TP102", "train/requirements.txt") in told("--changed-since", "main")[1]
    guarded(["check", "--changed-since", "main"])
    assert "pyproject.toml changed since main: all findings" in capsys.readouterr().err
    (project / "pyproject.toml").write_text(f"# the same\n{fleet}")
    guarded(["check", "--changed-since", "main"])
    assert "all findings" not in capsys.readouterr().err


def test_lock_that_is_gone_changes_its_project(project: Path, told) -> None:  # type: ignore[no-untyped-def]
    (project / "pyproject.toml").write_text(
        '[project]\nname = "a"\nversion = "1"\ndependencies = ["torch==2.11.0"]\n'
    )
    (project / "uv.lock").write_text(
        'version = 1\nrequires-python = ">=3.11"\n\n[[package]]\nname = "a"\nversion = "1"\n'
        'source = { virtual = "." }\n'
    )
    commit(project)
    (project / "uv.lock").unlink()
    assert {path for _, path in told("--changed-since", "main")[1]} == {"pyproject.toml"}


@pytest.mark.parametrize("revision", ["nowhere", "--output=x", ""])
def test_revision_that_is_none(
    project: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    git(project, "init", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-m", "first")
    assert guarded(["check", f"--changed-since={revision}"]) == 2
    message = capsys.readouterr().err
    assert "--changed-since" in message
    assert ("there is no commit 'nowhere'" in message) is (revision == "nowhere")
    assert not (project / "x").exists()


def test_no_repository(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["check", "--changed-since", "main"]) == 2
    assert "not a git repository" in capsys.readouterr().err


def test_a_repository_that_git_does_not_trust(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of another user, as where a container has a folder of the host."""
    commit(project)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    assert guarded(["check", "--changed-since", "HEAD"]) == 2
    said = capsys.readouterr().err
    assert "--changed-since: detected dubious ownership in repository at" in said
    assert "\n  git config --global --add safe.directory " in said


def test_no_common_ancestor(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(project, "init", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-m", "first")
    git(project, "checkout", "--orphan", "other")
    git(project, "commit", "-m", "alone")
    assert guarded(["check", "--changed-since", "main"]) == 2
    assert "fetch-depth: 0" in capsys.readouterr().err


def test_evidence_of_each_ground_counts(project: Path, told, capsys) -> None:  # type: ignore[no-untyped-def]
    capsys.readouterr()
    guarded(["check", "--output-format", "json"])
    every = json.loads(capsys.readouterr().out)["findings"]
    guarded(["check", "--output-format", "json", "--evidence", "measured"])
    some = json.loads(capsys.readouterr().out)["findings"]
    assert 0 < len(some) < len(every)
    assert {ground["evidence"] for one in some for ground in one["because"]} == {"measured"}
    guarded(["check", "--output-format", "json", "--evidence", "inferred"])
    assert json.loads(capsys.readouterr().out)["findings"] == every


def test_diff_takes_none_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["check", "--diff", "--evidence", "measured"]) == 2
    assert "--diff" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "idle"),
    [
        ("torch==2.10.0+cu126  # torchpin: ignore[TP201]", ["TP201 silences nothing here"]),
        ("torch==2.11.0  # torchpin: ignore[TP2]", []),
        ("torch==2.11.0  # torchpin: ignore[TP201,TP304]", ["TP304 silences nothing here"]),
        ("torch==2.11.0  # torchpin: ignore", []),
        ("numpy  # torchpin: ignore", ["this comment silences nothing here"]),
        ("numpy  # torchpin: ignore[TP1,TP304]", ["TP1, TP304 silence nothing here"]),
        ("numpy  # torchpin: ignore[TP999]", []),  # no rule: a note says so
        ("# torchpin: ignore-file[TP107]\nnumpy", ["TP107 silences nothing here"]),
        ("numpy  # torchpin: ignore[TP107,TP002]", []),
    ],
)
def test_idle_comments(
    project: Path, capsys: pytest.CaptureFixture[str], line: str, idle: list[str]
) -> None:
    (project / "requirements.txt").write_text(f"{line}\n")
    guarded(["check", "--output-format", "json", "requirements.txt"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [one["message"] for one in found if one["code"] == "TP002"] == idle


@pytest.mark.parametrize(
    "words", [["--select", "TP2"], ["--ignore", "TP107"], ["--ignore", "TP002"]]
)
def test_codes_that_did_not_run_are_not_idle(
    project: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    (project / "requirements.txt").write_text("numpy  # torchpin: ignore[TP107]\n")
    guarded(["check", "--output-format", "json", *words, "requirements.txt"])
    assert "TP002" not in capsys.readouterr().out


def test_comparing_rules_need_a_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "requirements.txt").write_text("numpy  # torchpin: ignore[TP505]\n")
    guarded(["check", "--output-format", "json", "requirements.txt"])
    assert "TP002" not in capsys.readouterr().out
    guarded(["check", "--output-format", "json", "."])
    assert "TP002" in capsys.readouterr().out


def test_without_a_fleet_nothing_is_idle(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "torchpin.toml").unlink()
    (project / "requirements.txt").write_text("numpy  # torchpin: ignore[TP201]\n")
    guarded(["check", "--output-format", "json", "."])
    assert "TP002" not in capsys.readouterr().out
