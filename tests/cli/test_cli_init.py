"""``torchpin init``: the profile that it writes is accepted, and nothing is overwritten."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from tests.cli.pseudo_terminal import on_screen

from torchpin.cli.init_ask import Answers, Value, asked, project_python
from torchpin.cli.init_hook import has_hook, with_hook
from torchpin.cli.main import guarded
from torchpin.fleet.importers.model import Found, Machine, SeenGpu, Told
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
    assert "there already" in capsys.readouterr().err
    assert (tmp_path / "torchpin.toml").read_text() == "# mine\n"


def test_a_table_in_the_project_file_is_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text('[tool.torchpin.fleet.main]\ngpus = ["V100"]\n')
    assert guarded(["init", str(tmp_path), "--gpu", "V100"]) == 2
    assert "pyproject.toml: a profile is there already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["pyproject.toml"]
    below = tmp_path / "below"
    below.mkdir()
    assert guarded(["init", str(below), "--gpu", "V100"]) == 0


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
    assert written == (
        "repos:\n"
        "  - repo: local\n"
        "    hooks:\n"
        "      - id: torchpin-check\n"
        "        name: torchpin check\n"
        "        entry: torchpin check --skip-unknown\n"
        "        language: system\n"
        "        types: [text]\n"
    )
    hooks.write_text(CONFIG)
    assert guarded(["init", str(tmp_path), "--pre-commit", "--yes"]) == 0
    lines = hooks.read_text().splitlines()
    start = lines.index("- repo: local")
    assert lines[start - 1] == "        ]  # all"
    assert lines[:start] + lines[start + 7 :] == CONFIG.splitlines()
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


def dialogue(folder: Path, typed: bytes, *arguments: str) -> tuple[int, str]:
    """Return the exit code of ``init`` on a terminal where ``typed`` is typed, and its screen."""
    return on_screen(folder, "init", *arguments, typed=typed, environ={"TERM": "dumb"})


terminal = pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")


@terminal
def test_it_asks_on_a_terminal(tmp_path: Path) -> None:
    typed = b"V1000\nV100, A100\nlatest\n550.54.15\n4\n3.11\nlinux-aarch64\n\n"
    code, seen = dialogue(tmp_path, typed)
    assert code == 0, seen
    (group,) = load_profile(str(tmp_path / "torchpin.toml")).groups
    assert [gpu.arch for gpu in group.gpus] == ["sm_70", "sm_80"]
    assert (group.driver, str(group.pythons[0])) == ("550.54.15", "3.11")
    assert group.platform == "linux-aarch64"
    assert "nearest names: Tesla V100" in seen
    assert seen.count("Driver, as nvidia-smi shows it") == 2
    assert "\nglibc = " not in (tmp_path / "torchpin.toml").read_text()


@terminal
def test_enter_takes_what_the_project_tells_and_a_dash_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.10,<3.12"\n')
    code, seen = dialogue(tmp_path, b"V100\n-\n\n-\n\n")
    assert code == 0, seen
    assert "[>=3.10,<3.12]" in seen
    text = (tmp_path / "torchpin.toml").read_text()
    assert 'python = ">=3.10,<3.12"' in text and "from pyproject.toml" in text
    (group,) = load_profile(str(tmp_path / "torchpin.toml")).groups
    assert group.driver is None
    assert "# platform = " in text


@pytest.mark.parametrize("typed", [(), ("V100",)])
def test_the_end_of_the_answers_writes_nothing(
    tmp_path: Path,
    typed: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers = iter(typed)

    def typing(question: str) -> str:
        for answer in answers:
            return answer
        raise EOFError

    monkeypatch.setattr("builtins.input", typing)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert guarded(["init", str(tmp_path)]) == 2
    assert "the answers ended: nothing is written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_needed_answer_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter(["", "V100", "-", "-", "-"])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    found = asked(Answers(), Answers())
    assert found.gpus is not None and found.gpus.text == "V100"


def test_the_hook_names_the_file_as_people_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert guarded(["init", "--gpu", "V100", "--pre-commit"]) == 0
    assert "Wrote .pre-commit-config.yaml. Run: pre-commit install\n" in capsys.readouterr().out


def test_a_hook_is_given_all_files_and_reads_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchpin.toml").write_text('[fleet.a]\ngpus = ["V100"]\npython = "3.11"\n')
    (tmp_path / "notes.txt").write_text("torch==2.15.0\n")
    assert guarded(["check", "--skip-unknown", "notes.txt"]) == 0
    assert capsys.readouterr().out == ""
    assert guarded(["check", "notes.txt"]) == 1
    capsys.readouterr()
    (tmp_path / "requirements.txt").write_text("torch==2.15.0\n")
    for names in (["notes.txt", "requirements.txt"], ["torchpin.toml"]):
        assert guarded(["check", "--skip-unknown", *names]) == 1
        told = capsys.readouterr().out
        assert "requirements.txt:1" in told and "notes.txt" not in told


@terminal
def test_what_cannot_be_together_is_asked_again(tmp_path: Path) -> None:
    typed = b"B200\n535.54.03\n580.65.06\n3.10,3.12\nmacos-arm64\nlinux-x86_64\n\n"
    code, seen = dialogue(tmp_path, typed)
    assert code == 0, seen
    (group,) = load_profile(str(tmp_path / "torchpin.toml")).groups
    assert (group.driver, group.platform) == ("580.65.06", "linux-x86_64")
    assert [str(python) for python in group.pythons] == ["3.10", "3.12"]
    assert seen.count("Driver, as nvidia-smi shows it") == seen.count("Platform") == 2
    assert "driver 535.54.03 is older than B200" in seen and "torchpin.toml:" not in seen


@terminal
def test_it_asks_for_other_groups(tmp_path: Path) -> None:
    typed = b"V100\n535.183.01\n3.10\nlinux-x86_64\nmain\na]b\nnew\nB200\n580.65.06\n\n\n\n"
    code, seen = dialogue(tmp_path, typed)
    assert code == 0, seen
    first, second = load_profile(str(tmp_path / "torchpin.toml")).groups
    assert (first.name, first.gpus[0].arch, first.driver) == ("main", "sm_70", "535.183.01")
    assert (second.name, second.gpus[0].arch, second.driver) == ("new", "sm_100", "580.65.06")
    assert [str(python) for python in second.pythons] == ["3.10"]
    assert "there is a group main already" in seen


def test_an_offer_that_contradicts_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter(["B200", "", "580.65.06", "-", "-"])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    found = asked(Answers(), Answers(driver=Value("535.54.03", "NVML")))
    assert found.driver == Value("580.65.06")
    assert "is older than B200" in capsys.readouterr().err


def test_pythons_of_an_option_are_written_as_a_list(tmp_path: Path) -> None:
    assert guarded(["init", str(tmp_path), "--gpu", "V100", "--python", "3.10,3.12"]) == 0
    (group,) = load_profile(str(tmp_path / "torchpin.toml")).groups
    assert [str(python) for python in group.pythons] == ["3.10", "3.12"]


@terminal
def test_options_are_not_asked_for(tmp_path: Path) -> None:
    code, seen = dialogue(tmp_path, b"", "--gpu", "V100")
    assert (code, "What must" in seen) == (0, False)


def test_yes_takes_what_the_machine_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".python-version").write_text("3.12.4\n")
    facts = (("driver", Told("570.10", "NVML")), ("platform", Told("linux-x86_64", "uname")))
    seen = Machine("host", (SeenGpu("Tesla V100-SXM2-16GB", (7, 0)),), "NVML", facts)
    monkeypatch.setattr("torchpin.fleet.detect.detect", lambda: Found("itself", (seen,)))
    assert guarded(["init", str(tmp_path), "--yes", "--driver", "550.54.15"]) == 0
    (group,) = load_profile(str(tmp_path / "torchpin.toml")).groups
    assert [gpu.arch for gpu in group.gpus] == ["sm_70"]
    assert (group.driver, str(group.pythons[0])) == ("550.54.15", "3.12")
    assert "CPU only" not in capsys.readouterr().out


def test_yes_without_a_gpu_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = Machine("host", (), "no driver tells of a GPU", ())
    monkeypatch.setattr("torchpin.fleet.detect.detect", lambda: Found("itself", (seen,)))
    assert guarded(["init", str(tmp_path), "--yes"]) == 0
    assert load_profile(str(tmp_path / "torchpin.toml")).groups[0].gpus == ()
    assert "CPU only" in capsys.readouterr().out


def test_without_a_terminal_nothing_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("V100\n"))
    assert guarded(["init", str(tmp_path)]) == 2
    assert "torchpin init --yes" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text", "python"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.11"\n', ">=3.11"),
        ("pyproject.toml", "[project\n", None),
        ("pyproject.toml", "[project]\nrequires-python = 3\n", None),
        (".python-version", "3.11.9\n3.12\n", "3.11"),
        (".python-version", "pypy3.10\n", None),
        (".python-version", "", None),
    ],
)
def test_the_python_of_a_project(tmp_path: Path, name: str, text: str, python: str | None) -> None:
    (tmp_path / name).write_text(text)
    found = project_python(str(tmp_path))
    assert (found.text if found else None) == python
