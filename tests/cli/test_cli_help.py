"""The helps of commands fit the terminal and name their exit codes."""

from __future__ import annotations

import contextlib
import shlex
from importlib import import_module

import pytest

from torchpin.cli.examples import EXAMPLES
from torchpin.cli.main import COMMANDS, guarded


def commands() -> list[str]:
    """Return all commands and sub-commands."""
    out: list[str] = []
    for name in COMMANDS:
        below = getattr(import_module(f"torchpin.cli.{name}"), "COMMANDS", {})
        out += [name, *(f"{name} {part}" for part in below)]
    return out


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("command", commands())
def test_a_help_fits_its_terminal(
    command: str,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    try:
        guarded([*command.split(), "--help"])
    except SystemExit as end:
        assert end.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"usage: torchpin {command}")
    long = [line for line in lines if len(line) > max(columns, 80)]
    assert not long
    if columns == 200 and command == "catalog refresh":  # folded to the width, not before
        assert max(map(len, lines)) > 100


def test_a_help_names_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("catalog show", "catalog refresh", "catalog verify", "catalog diff", "inspect"):
        with pytest.raises(SystemExit):
            guarded([*command.split(), "--help"])
        said = " ".join(capsys.readouterr().out.partition("exit code: ")[2].split())
        assert all(f"{code} " in said for code in (0, 1, 2)), command


@pytest.mark.parametrize("command", commands())
def test_a_help_is_read_at_a_glance(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with contextlib.suppress(SystemExit):
        guarded([*command.split(), "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 56
    if "options:" in lines:
        told = [line for line in lines if line.startswith("example: ")]
        assert told, "give it an example, in cli/examples.py"
        assert lines[0].count("[") <= 3, "all options in the usage are read by nobody"


@pytest.mark.parametrize("command", commands())
def test_the_short_help_fits_a_screen_and_leads_to_the_whole(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = {}
    for word in ("-h", "--help"):
        with contextlib.suppress(SystemExit):
            guarded([*command.split(), word])
        said[word] = capsys.readouterr().out
    lines = said["-h"].splitlines()
    assert len(lines) <= 26
    assert lines[0] == said["--help"].splitlines()[0]
    if said["-h"] == said["--help"]:
        return
    assert f"(all options: torchpin {command} --help)" in said["-h"]
    assert lines[-1].startswith("example: ") or "example: " in said["-h"]
    shown = [line.split()[0] for line in lines if line.startswith("  -")]
    assert shown and all(f"\n  {word}" in said["--help"] for word in shown)


@pytest.mark.parametrize(("command", "line"), EXAMPLES.items(), ids=list(EXAMPLES))
def test_an_example_is_accepted(command: str, line: str) -> None:
    program, *words = shlex.split(line.rpartition("| ")[2].removeprefix('eval "$(').rstrip(')"'))
    assert program == "torchpin" and " ".join(words).startswith(command)
    parser = import_module(f"torchpin.cli.{command.replace(' ', '_')}").parser()
    parser.parse(words[len(command.split()) :])
