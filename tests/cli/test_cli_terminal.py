"""What changes where standard output is a terminal of 80 columns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.pseudo_terminal import on_screen

from torchpin.cli.terminal import wants_color, wants_links
from torchpin.report.pages import pages

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def on_terminal(folder: Path, *args: str, columns: int = 80, **environ: str) -> str:
    """Return what torchpin writes to a terminal, without its colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", painted(folder, *args, columns=columns, **environ))


def painted(folder: Path, *args: str, columns: int = 80, **environ: str) -> str:
    """Return what torchpin writes to a terminal."""
    return on_screen(folder, *args, columns=columns, environ=environ)[1]


@pytest.mark.parametrize(
    "args",
    [
        ("check",),
        ("check", "--output-format", "grouped"),
        ("show",),
        ("resolve",),
        ("fix", "--unsafe-fixes"),
        ("fleet", "show", "--gpu", "V1000"),
        ("check", "--isolated"),
        ("explain",),
    ],
    ids=" ".join,
)
def test_reports_fit_the_terminal(tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.15.0\ntorchvision==0.29.0\n")
    (tmp_path / "torchpin.toml").write_text(
        '[fleet.main]\ngpus = ["V100", "A100"]\ndriver = "550"\npython = "3.11"\n'
    )
    text = on_terminal(tmp_path, *args)
    assert [line for line in text.split("\n") if len(line) > 80] == []
    wide = on_terminal(tmp_path, *args, columns=4000)
    if args[0] not in ("fix", "check"):
        assert text.split() == wide.split()
    if args[0] == "check":  # a label moves below its line where it has no room beside it
        assert text.replace("|", "").split() == wide.replace("|", "").split()


EDGE = """\
[fleet.a-group-with-quite-a-long-name]
gpus = ["T4G"]
python = ["3.9", "3.10", "3.11", "3.12", "3.13"]
platform = "linux-aarch64"
[fleet.another-group-with-a-long-name]
gpus = []
python = ["3.9", "3.10", "3.11", "3.12", "3.13"]
"""


@pytest.mark.parametrize(
    "args",
    [("resolve",), ("upgrade", "--to", "2.15"), ("upgrade", "--to", "2.15", "--isolated")],
    ids=" ".join,
)
def test_what_is_not_served_fits_the_terminal(tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.8.0\n")
    (tmp_path / "torchpin.toml").write_text(EDGE)
    text = on_terminal(tmp_path, *args)
    assert [line for line in text.split("\n") if len(line) > 80] == []
    if args == ("resolve",):
        head = "Not served: a-group-with-quite-a-long-name, Python 3.9 3.10 3.11 3.12 3.13 (T4G)"
        assert " ".join(text.split()).count("Not served: ") == 1
        assert head in " ".join(text.split())


def test_a_long_line_is_cut_around_what_is_meant(tmp_path: Path) -> None:
    comment = "漢字 🔥 " * 40
    (tmp_path / "requirements.txt").write_text(f"torch==2.14.0+cu124  # {comment}\n", "utf-8")
    text = on_terminal(tmp_path, "check", "--isolated", columns=60)
    line = next(line for line in text.split("\n") if line.startswith("1 | "))
    assert line.startswith("1 | torch==2.14.0+cu124  # 漢字") and line.endswith("…")


def test_codes_are_links_where_the_terminal_makes_them(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.14.0+cu124\n")
    plain = painted(tmp_path, "check", "--isolated")
    assert "\x1b[1;33m" in plain and "\x1b]8" not in plain
    forced = painted(tmp_path, "check", "--isolated", FORCE_HYPERLINK="1")
    assert ("\x1b]8;;" in forced) is bool(pages())
    named = tmp_path / "installed" / "torchpin-99.dist-info"  # a package that names its pages
    named.mkdir(parents=True)
    (named / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torchpin\nVersion: 99\n"
        "Project-URL: Documentation, https://docs.example/torchpin/\n"
    )
    linked = painted(
        tmp_path, "check", "--isolated", FORCE_HYPERLINK="1", PYTHONPATH=str(named.parent)
    )
    page = "https://docs.example/torchpin/reference/rules/TP106/"
    assert f"\x1b]8;;{page}\x1b\\warning[TP106]\x1b]8;;\x1b\\" in linked
    assert "\x1b" not in painted(tmp_path, "check", "--isolated", NO_COLOR="1", FORCE_HYPERLINK="1")


@pytest.mark.parametrize(
    ("environ", "terminal", "links"),
    [
        ({}, True, False),
        ({"TERM_PROGRAM": "WezTerm"}, True, True),
        ({"TERM_PROGRAM": "WezTerm"}, False, False),
        ({"TERM_PROGRAM": "Apple_Terminal"}, True, False),
        ({"VTE_VERSION": "7600"}, True, True),
        ({"VTE_VERSION": "5000"}, True, False),
        ({"WT_SESSION": "x", "TERM": "dumb"}, True, False),
        ({"TERM": "xterm-kitty"}, True, True),
        ({"FORCE_HYPERLINK": "1"}, False, True),
        ({"FORCE_HYPERLINK": "0", "TERM": "xterm-kitty"}, True, False),
    ],
)
def test_which_terminals_make_links(environ: dict[str, str], terminal: bool, links: bool) -> None:
    assert wants_links(environ, is_terminal=terminal) is links


@pytest.mark.parametrize(
    ("environ", "is_log", "color"),
    [
        ({}, True, False),
        ({"CI": "true"}, True, False),
        ({"GITHUB_ACTIONS": "true"}, True, True),
        ({"GITHUB_ACTIONS": "true"}, False, False),
        ({"GITLAB_CI": "true", "NO_COLOR": "1"}, True, False),
    ],
)
def test_logs_of_ci_are_in_colours(environ: dict[str, str], is_log: bool, color: bool) -> None:
    found = wants_color(no_color=False, environ=environ, is_terminal=False, is_log=is_log)
    assert found is color


def test_a_ci_log_has_colours_and_a_file_has_none(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.14.0+cu124\n")
    command = [sys.executable, "-m", "torchpin", "check", "--isolated"]
    environ = {**os.environ, "GITHUB_ACTIONS": "true"}
    log = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environ, check=False)
    assert b"\x1b[1;33mwarning[TP106]" in log.stdout
    for words in (["--diff", "--unsafe-fixes"], ["--output-format", "concise"], ["--statistics"]):
        piped = subprocess.run(
            [*command, *words], cwd=tmp_path, capture_output=True, env=environ, check=False
        )
        assert piped.stdout and b"\x1b" not in piped.stdout, "another program may read it"
    with (tmp_path / "out.txt").open("wb") as file:
        subprocess.run(command, cwd=tmp_path, stdout=file, env=environ, check=False)
    assert b"\x1b" not in (tmp_path / "out.txt").read_bytes()
