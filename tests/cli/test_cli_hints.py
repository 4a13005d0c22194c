"""What torchpin says to commands that are nearly right: the command that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.cli.main import guarded


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("requirements.txt").write_text("numpy\n")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("upgrade 2.15", "did you mean `--to 2.15`?"),
        ("upgrade latest requirements.txt", "did you mean `--to latest`?"),
        ("recipe V100", "did you mean `--gpu V100`?"),
        ("matrix V100", "did you mean `--gpu V100`?"),
        ("check V100", "did you mean `--gpu V100`?"),
        ("check --json", "did you mean `--output-format json`?"),
        ("show --sarif", "run `torchpin show --help`"),
        ("check --fix", "did you mean `torchpin fix`?"),
        ("fix --dry-run", "did you mean `--diff`?"),
        ("fix --write", "fix writes without it; `--diff` shows what it would write"),
        ("fix --apply", "fix writes without it; `--diff` shows what it would write"),
        ("fix -i", "fix writes without it; `--diff` shows what it would write"),
        ("fix --check", "did you mean `--diff`, or `torchpin check`?"),
        ("check --apply", "check writes nothing; did you mean `torchpin fix`?"),
        ("upgrade --to 2.15 --write", "upgrade writes nothing; its `--output-format json` holds"),
        ("resolve --apply", "did you mean `--write DIR`?"),
        ("check -o json", "did you mean `--output-format json`?"),
        ("fix --output=json", "did you mean `--output-format json`?"),
        ("check --format json", "did you mean `--output-format json`?"),
        ("matrix -o json", "did you mean `--output-format json`? (a file of that name: ./json)"),
        ("check --gpus V100", "did you mean `--gpu`?"),
        ("check --gpu-name V100", "did you mean `--gpu`?"),
        ("check --python-version 3.11", "did you mean `--python`?"),
        ("check --strict", "did you mean `--severity info`?"),
        ("check --unsafe", "did you mean `--unsafe-fixes`?"),
        ("check --open", "run `torchpin check --help`"),
        ("check --os linux", "did you mean `--platform`?"),
        ("version", "did you mean `torchpin --version`?"),
        ("completion ksh", "run `torchpin completion --help`"),
        ("completion bsh", "did you mean `bash`?"),
        ("explain 201", "did you mean `TP201`?"),
        ("explain TP9", "there are TP901, TP902, TP903, TP904"),
        ("explain TP20l", "did you mean `TP201`?"),
        ("check --select TP9999", "`torchpin explain` lists all rules"),
        ("recipe --gpu none", "`torchpin resolve --gpu none` finds the versions for the CPU"),
        ("recipe --gpu M2", "write --gpu none --platform macos-arm64; its wheels are the same"),
        ("check --gpu M2", "write --gpu none --platform macos-arm64; its wheels are the same"),
        ("check --gpu foo", 'by its compute capability, e.g. "sm_90"'),
        ("check --gpu c5.large", "write --gpu none"),
        ("check --gpu V100 --platform macos-arm64", "neither CUDA nor ROCm: write --gpu none"),
        ("check --gpu GH200 --platform linux-x86_64", "write --platform linux-aarch64"),
        ("check --gpu MI300X --driver 550", "leave --driver out: it is for NVIDIA GPUs"),
        ("check --gpu none --platform plan9", "known platforms: linux-x86_64, linux-aarch64, "),
        ("fleet", "it is one of show, import, detect"),
        ("baseline", "it is one of create, prune"),
        ("catalog", "it is one of show, refresh, verify, diff"),
        ("index", "it is one of build, serve"),
    ],
)
def test_the_hint_is_what_was_meant(
    line: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(line.split()) == 2
    message = capsys.readouterr().err
    assert hint in message
    assert "gpus = " not in message and "command-line" not in message, "these are words of TOML"


@pytest.mark.parametrize("command", ["fleet", "baseline", "catalog", "index"])
def test_a_command_of_several_says_that_one_is_missing(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded([command]) == 2
    assert f"torchpin: {command} needs a command\n" in capsys.readouterr().err


def test_a_package_may_be_written_as_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["catalog", "show", "torch==2.14.1"]) == 0
    told = capsys.readouterr().out
    assert guarded(["catalog", "show", "torch", "2.14.1"]) == 0
    assert capsys.readouterr().out == told


@pytest.mark.parametrize(
    ("spelling", "word"),
    [
        ("darwin-arm64", "macos-arm64"),
        ("mac", "macos-arm64"),
        ("linux-amd64", "linux-x86_64"),
        ("linux/arm64", "linux-aarch64"),
        ("win_amd64", "windows-x86_64"),
    ],
)
def test_platforms_are_taken_in_every_spelling(
    spelling: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*argv: str) -> str:
        guarded(list(argv))
        return capsys.readouterr().out

    for options in (["fleet", "show", "--gpu", "none"], ["catalog", "show", "torch", "2.14.1"]):
        told = printed(*options, "--platform", word)
        assert told and printed(*options, "--platform", spelling) == told
    assert guarded(["init", "--gpu", "none", "--platform", spelling]) == 0
    assert f'platform = "{word}"' in Path("torchpin.toml").read_text()


def test_a_wrong_option_writes_no_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["init", "--gpu", "foo"]) == 2
    assert 'torchpin: --gpu: unknown GPU "foo"' in capsys.readouterr().err
    assert not Path("torchpin.toml").exists()


def test_a_client_that_is_not_there_may_have_to_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert guarded(["uv", "--gpu", "V100", "--python", "3.11", "--", "pip", "list"]) == 2
    told = capsys.readouterr().err
    assert "there is no uv on PATH\n  install uv, or activate the environment that has it" in told
