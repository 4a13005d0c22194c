"""``torchpin completion``: what real shells offer, and what argcomplete is told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from torchpin.cli.completion import SHELLS
from torchpin.cli.main import COMMANDS, guarded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells")

ASKED = {
    "torchpin che": {"check"},
    "torchpin check --sta": {"--statistics"},
    "torchpin check --output-format gr": {"grouped"},
    "torchpin check --gpu V100": {"V100", "V100S"},
    "torchpin init --gpu RTX-4060-": {"RTX-4060-Ti", "RTX-4060-Laptop-GPU"},
    "torchpin check --select TP30": {f"TP30{n}" for n in range(1, 7)},
    "torchpin explain TP201": {"TP201"},
    "torchpin fleet ": {"show", "import", "detect"},
    "torchpin constraints --torch 2.15": {"2.15.0"},
    "torchpin catalog show torch 2.14.": {"2.14.0", "2.14.1"},
    "torchpin catalog show torch --channel cu13": {"cu130", "cu132"},
    "torchpin completion f": {"fish"},
    "torchpin verify --kubernetes --im": {"--image", "--image-pull-secret"},
    "torchpin verify --kubernetes --kind ": {"daemonset", "job"},
    "torchpin verify --slurm --at": {"--at-once"},
    "torchpin check req": {"requirements.txt"},
    "torchpin constraints --group vo": {"volta"},
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a file and a profile, and a ``torchpin`` on the path."""
    (tmp_path / "requirements.txt").write_text("torch==2.14.1\n")
    (tmp_path / "torchpin.toml").write_text('[fleet.volta]\ngpus = ["V100"]\n')
    program = tmp_path / "bin" / "torchpin"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchpin "$@"\n')
    program.chmod(0o755)
    return tmp_path


def environ(here: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def need(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


def shell(here: Path, *command: str) -> str:
    """Return what a shell prints that knows torchpin's completion."""
    done = subprocess.run(
        [need(command[0]), *command[1:]],
        cwd=here,
        env=environ(here),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("line", ASKED, ids=list(ASKED))
def test_bash_offers(here: Path, line: str) -> None:
    script = (
        'eval "$(torchpin completion bash)"\n'
        f"COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({line})\n"
        "_python_argcomplete torchpin\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    )
    offered = shell(here, "bash", "--norc", "-c", script).splitlines()
    assert {word.strip() for word in offered if word.strip()} == ASKED[line]


@pytest.mark.parametrize("line", ["torchpin che", "torchpin fleet ", "torchpin explain TP201"])
def test_fish_offers(here: Path, line: str) -> None:
    script = f"torchpin completion fish | source; complete -C {line!r}"
    rows = shell(here, "fish", "--no-config", "-c", script).splitlines()
    assert {row.split("\t")[0].strip() for row in rows} == ASKED[line]


def test_zsh_completes_what_is_typed(here: Path) -> None:
    zsh = need("zsh")
    import pty
    import select
    import time

    (here / ".zshrc").write_text(
        'autoload -U compinit; compinit -u -D; PS1="ready> "\neval "$(torchpin completion zsh)"\n'
    )
    terminal, inner = pty.openpty()
    seen = b""

    def wait(word: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while word not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 65536)
        assert word in seen, seen

    with subprocess.Popen(
        [zsh, "-i"],
        cwd=here,
        env={**environ(here), "ZDOTDIR": str(here), "TERM": "dumb"},
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
    ) as process:
        os.close(inner)
        try:
            wait(b"ready> ")
            os.write(terminal, b"torchpin check --output-format gro\t")
            wait(b"grouped")
        finally:
            process.kill()
            os.close(terminal)


@pytest.mark.parametrize("name", SHELLS)
def test_every_shell_gets_lines_that_name_torchpin(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(["completion", name]) == 0
    assert "torchpin" in capsys.readouterr().out


def test_an_unknown_shell_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["completion", "bsh"]) == 2
    assert "did you mean `bash`?" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_can_be_completed(name: str) -> None:
    from torchpin.cli.complete import parser_for, parsers_of

    module = import_module(f"torchpin.cli.{name}")
    parts = tuple(getattr(module, "COMMANDS", ())) if not hasattr(module, "parser") else ("",)
    for part in parts:
        (one,) = parsers_of(parser_for(["torchpin", name, *filter(None, [part]), ""]))
        assert one.prog == f"torchpin {name} {part}".strip()
