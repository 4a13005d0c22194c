"""What a new user meets in the first minute: no arguments, no profile, slips, nothing to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.cli.main import guarded, help_text


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in no project."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = guarded(list(words))
    told = capsys.readouterr()
    return code, told.out, told.err


def test_without_arguments_the_help_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys)
    assert (code, out) == (0, help_text())
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("chekc",), "did you mean `check`?"),
        (("explian", "TP201"), "did you mean `explain`?"),
        (("complete",), "did you mean `completion`?"),
        (("check", "--gpus", "V100"), "did you mean `--gpu`?"),
        (("check", "--output-format", "group"), "did you mean `grouped`?"),
        (("check", "requirments.txt"), "did you mean `requirements.txt`?"),
        (("check", "requirement/dev.txt"), "did you mean `requirements.txt`?"),
        (("check", "torch.cfg"), "there are: requirements.txt\n"),
        (("check", "--gpu", "V1000"), "nearest names: Tesla V100"),
        (("requirements.txt",), "did you mean `torchpin check requirements.txt`?"),
        (("explain", "TP999"), "run `torchpin explain` for the list"),
        (("fleet",), "it is one of show, import, detect"),
        (("catalog",), "show"),
        (("init",), "torchpin init --yes"),
        (("completion",), "SHELL"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_usage_says_what_is_right(
    here: Path,
    words: tuple[str, ...],
    answer: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (here / "requirements.txt").write_text("torch\n")
    (here / "pyproject.toml").write_text("[project]\n")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    code, out, err = said(capsys, *words)
    assert (code, out) == (2, "")
    assert answer in err
    assert len(err.splitlines()) <= 4


def test_all_that_a_folder_holds_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What ``check`` of the folder reads: commands in a Dockerfile and files below it, too."""
    (here / "sub").mkdir()
    for name in ("requirements.txt", "sub/requirements.txt"):
        (here / name).write_text("torch\n")
    (here / "Dockerfile").write_text("FROM python:3.11\nRUN pip install torch\n")
    assert said(capsys, "check", "torch.cfg")[0] == 2
    told = said(capsys, "check", "torch.cfg")[2]
    assert f"there are: Dockerfile, requirements.txt, {Path('sub/requirements.txt')}\n" in told


@pytest.mark.parametrize("command", ["check", "fix", "show"])
def test_an_empty_folder(here: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, command)
    assert code == 0
    assert out.startswith("Nothing")
    assert "torchpin reads requirements*.txt" in err
    assert "no fleet" not in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("text", ["numpy\n", "", "# nothing yet\n"])
def test_files_that_ask_for_no_pytorch(
    here: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "requirements.txt").write_text(text)
    code, out, err = said(capsys, "check")
    assert code == 0
    assert out.startswith("No findings in 1 file.")
    assert err == "note: nothing that was read asks for PyTorch or a package of its family\n"


def test_without_a_fleet_it_says_how_to_declare_one(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "requirements.txt").write_text("torch==2.14.1\n")
    code, _, err = said(capsys, "check")
    assert code == 0
    assert "run `torchpin init`, or use --gpu, --driver and --python" in err


@pytest.mark.parametrize("name", ["notes.json", "picture.png"])
def test_a_file_that_is_none_of_dependencies(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / name).write_bytes(b'{"a": "\x00"}')
    code, out, err = said(capsys, "check", name)
    assert code in (1, 2)
    assert name in out + err
    assert "Traceback" not in err


def test_a_slip_in_the_name_of_a_package(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "requirements.txt").write_text("torhc==2.1\n")
    code, out, _ = said(capsys, "check")
    assert code == 0
    assert "info[TP109] torhc: is torch meant?" in out
    assert "write torch==2.1" in out


def test_a_profile_with_a_slip(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "requirements.txt").write_text("torch\n")
    (here / "torchpin.toml").write_text('[fleet.main]\ngpus = ["V100"]\ndrivr = "550"\n')
    code, _, err = said(capsys, "check")
    assert code == 2
    assert "torchpin.toml:3: " in err and "did you mean 'driver'?" in err
