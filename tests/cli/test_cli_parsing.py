from __future__ import annotations

import re

import pytest

from torchpin.cli import check, fix
from torchpin.cli.arguments import plain_check
from torchpin.cli.main import COMMANDS, help_text
from torchpin.cli.parser import nearest
from torchpin.cli.terminal import wants_color
from torchpin.errors import UsageError


@pytest.mark.parametrize("argv", [[], ["a.txt"], ["a.txt", "b", "c/d.txt"]])
def test_the_plain_form_reads_as_argparse_reads_it(argv: list[str]) -> None:
    plain = plain_check(argv)
    assert plain is not None
    assert vars(plain) == vars(check.parser().parse(argv))


@pytest.mark.parametrize("argv", [["-"], ["--diff"], ["a.txt", "-q"]])
def test_anything_else_is_left_to_argparse(argv: list[str]) -> None:
    assert plain_check(argv) is None


def test_check_and_fix_share_their_options() -> None:
    shared = vars(check.parser().parse([]))
    mine = vars(fix.parser().parse([]))
    # fix rests on no kept result, and mends all that it may
    for name in (
        *("jobs", "no_cache", "ignored", "skip_unknown"),
        *("changed_since", "evidence"),
    ):
        del shared[name]
    assert mine == {**shared, "prove": False, "relock": False}


@pytest.mark.parametrize(
    ("argv", "message", "hint"),
    [
        (["--selct", "TP1"], "unknown option '--selct'", "did you mean `--select`?"),
        (["--output-fromat=json"], "unknown option '--output-fromat'", "`--output-format`"),
        (["--severity", "warn"], "invalid choice: 'warn'", "did you mean `warning`?"),
        (["--client", "poetry"], "invalid choice: 'poetry'", "run `torchpin check --help`"),
        (["--driver"], "expected one argument", "run `torchpin check --help`"),
        (["--zzz"], "unknown option '--zzz'", "run `torchpin check --help`"),
    ],
)
def test_slips_are_answered_with_the_nearest(argv: list[str], message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        check.parser().parse(argv)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_options_are_not_abbreviated() -> None:
    with pytest.raises(UsageError):
        check.parser().parse(["--sel", "TP1"])


def test_nearest_says_nothing_about_the_unlike() -> None:
    assert nearest("chek", COMMANDS) == "did you mean `check`?"
    assert nearest("qqqq", COMMANDS) == ""


def test_the_help_fits_a_screen() -> None:
    lines = help_text().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    for name in COMMANDS:
        assert any(re.match(rf"  (?:\w+, )*{name}[ ,:]", line) for line in lines)


@pytest.mark.parametrize(
    ("no_color", "environ", "terminal", "color"),
    [
        (False, {}, True, True),
        (False, {}, False, False),
        (True, {"FORCE_COLOR": "1"}, True, False),
        (False, {"NO_COLOR": "1"}, True, False),
        (False, {"NO_COLOR": ""}, True, True),
        (False, {"FORCE_COLOR": "1"}, False, True),
        (False, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        (False, {"TERM": "dumb"}, True, False),
    ],
)
def test_colour(no_color: bool, environ: dict[str, str], terminal: bool, color: bool) -> None:
    assert wants_color(no_color=no_color, environ=environ, is_terminal=terminal) is color
