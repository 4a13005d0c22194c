"""argparse with suggestions, and the options that several commands share."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import NoReturn

from torchpin.catalog.model import PLATFORMS
from torchpin.cli.arguments import Arguments
from torchpin.errors import ConfigError, UsageError
from torchpin.evidence import ORDER

FORMATS = ("text", "grouped", "concise", "json", "github", "sarif", "gitlab", "junit", "markdown")

SCREEN = 24
"""Lines of a small terminal."""
_RARE = frozenset(
    (
        *(argparse.SUPPRESS, "help"),
        *("catalog", "client", "evidence", "exit_zero", "glibc", "isolated", "jobs", "no_baseline"),
        *("no_cache", "no_color", "per_file_ignores", "platform", "policy", "quiet", "statistics"),
        *("stdin_filename", "ignored", "skip_unknown", "timeout"),
    )
)
"""Options that ``-h`` leaves out."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises ``UsageError`` and names the nearest option."""

    def __init__(self, command: str, description: str, epilog: str | None = None) -> None:
        super().__init__(
            prog=f"torchpin {command}",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            add_help=False,
            formatter_class=_formatter,
        )
        self.add_argument("-h", action=_Glance, help="the options that are used most, and exit")
        self.add_argument("--help", action="help", help="all options, and exit")

    def format_help(self) -> str:
        """Return the help: a short usage, the options in groups, an example at the end."""
        if self.usage is None:
            self.usage = self._short_usage()
        if self.epilog is None or "example: " not in self.epilog:
            from torchpin.cli.examples import EXAMPLES

            example = EXAMPLES.get(self.prog.removeprefix("torchpin "), "")
            parts = (self.epilog, f"example: {example}" if example else "")
            self.epilog = "\n\n".join(part for part in parts if part) or None
        return super().format_help()

    def format_glance(self) -> str:
        """Return the help on one screen: without the options that few need, if it is longer."""
        whole = self.format_help()
        if whole.count("\n") <= SCREEN:
            return whole
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, [])
        formatter.add_text(self.description)
        formatter.start_section(f"used most (all options: {self.prog} --help)")
        formatter.add_arguments(
            one for one in self._actions if not one.option_strings or one.dest not in _RARE
        )
        formatter.end_section()
        formatter.add_text((self.epilog or "").rpartition("\n\n")[2])
        return formatter.format_help()

    def _short_usage(self) -> str:
        """Return the usage with ``[OPTIONS]`` in the place of all options that may be left out."""
        shown = [one for one in self._actions if one.required or not one.option_strings]
        formatter = self._get_formatter()
        formatter.add_usage(None, shown, [], "")
        words = formatter.format_help().split()[len(self.prog.split()) :]
        return " ".join((self.prog, "[OPTIONS]", *words)).replace("%", "%%")

    def parse(self, argv: list[str]) -> Arguments:
        """Return the arguments of ``argv``.

        Raises:
            UsageError: an unknown option or a value that is not one of the choices.
        """
        args = Arguments()
        _, rest = self.parse_known_args(argv, args)
        if rest:
            word = rest[0].split("=", 1)[0]
            options = [name for action in self._actions for name in action.option_strings]
            if word.startswith("-"):
                from torchpin.cli.meant import meant

                words = argv[argv.index(rest[0]) :] if rest[0] in argv else rest
                hint = meant(self._command, words, options, self._formats())
            else:
                hint = as_gpu(word) if "--gpu" in options else ""
            what = "unknown option" if word.startswith("-") else "unexpected argument"
            raise UsageError(f"{what} {word!r}", hint=hint or f"run `{self.prog} --help`")
        output = getattr(args, "output", None)
        if output in self._formats():
            raise UsageError(
                f"-o takes the name of a file, not a format: {output}",
                hint=f"did you mean `--output-format {output}`? (a file of that name: ./{output})",
            )
        catalog, isolated = getattr(args, "catalog", None), getattr(args, "isolated", False)
        if catalog or isolated or "torchpin.catalog.store" in sys.modules:
            from torchpin.catalog.store import choose

            choose(catalog, isolated=isolated)
        return args

    @property
    def _command(self) -> str:
        return self.prog.removeprefix("torchpin ")

    def _formats(self) -> tuple[str, ...]:
        """Return what ``--output-format`` takes; nothing if there is no such option."""
        for action in self._actions:
            if "--output-format" in action.option_strings:
                return tuple(map(str, action.choices or ()))
        return ()

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print.

        Raises:
            UsageError: always.
        """
        hint = ""
        if "invalid choice: " in message:
            word = message.split("invalid choice: ", 1)[1].split("'")[1]
            for action in self._actions:
                if action.choices is not None and message.startswith(_head(action)):
                    hint = nearest(word, [str(choice) for choice in action.choices], CLOSE)
        raise UsageError(message, hint=hint or f"run `{self.prog} --help`")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """Leave after ``--help``, through the one place that handles a closed pipe."""
        if message:
            sys.stderr.write(message)
        sys.stdout.flush()
        raise SystemExit(status)


class _Glance(argparse.Action):
    """``-h``: the help on one screen."""

    def __init__(self, option_strings: list[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> NoReturn:
        """Print it and leave."""
        assert isinstance(parser, Parser)
        sys.stdout.write(parser.format_glance())
        parser.exit()


class _Help(argparse.RawDescriptionHelpFormatter):
    """Folds paragraphs to the width of the terminal; those with indented lines stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from textwrap import fill

        return "\n\n".join(
            paragraph
            if re.search("^ ", paragraph, re.MULTILINE)
            else fill(" ".join(paragraph.split()), width)
            for paragraph in text.split("\n\n")
        )

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """Write ``-o, --output FILE`` on every Python (before 3.13: ``-o FILE, --output FILE``)."""
        text = super()._format_action_invocation(action)
        if len(action.option_strings) < 2 or action.nargs == 0:
            return text
        last = action.option_strings[-1]
        return ", ".join(action.option_strings) + text.rpartition(last)[2]


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Return a formatter as wide as the terminal.

    argparse makes one for each argument; left to itself it imports shutil and what that needs.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        width = int(columns)
    else:
        try:
            width = os.get_terminal_size(1).columns or 80
        except OSError:  # not a terminal
            width = 80
    return _Help(prog, max_help_position=26, width=width)


def _head(action: argparse.Action) -> str:
    name = "/".join(action.option_strings) or action.metavar or action.dest
    return f"argument {name}:"


CLOSE = 0.7
"""How like a choice a word must be to be taken for it, where the message lists all choices."""


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``did you mean …?`` for the nearest of ``known``, or ``""``."""
    from difflib import get_close_matches

    found = get_close_matches(word.lower(), list(known), n=1, cutoff=cutoff)
    return f"did you mean `{found[0]}`?" if found else ""


def as_gpu(word: str) -> str:
    """Return ``did you mean --gpu …?`` for the name of a GPU, else ``""``."""
    from torchpin.fleet.gpus import find_gpu

    try:
        find_gpu(word)
    except ConfigError:
        return ""
    return f"did you mean `--gpu {word}`?"


def add_catalog(parser: Parser) -> None:
    """Add ``--catalog``; ``Parser.parse`` makes the choice."""
    parser.add_argument(
        "--catalog",
        metavar="DIR",
        help="folder of a catalog, or shipped (or TORCHPIN_CATALOG)",
    )


def add_paths(parser: Parser, *, what: str) -> None:
    """Add ``PATH…``, ``--stdin-filename`` and ``--catalog``."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help=f"files and folders to {what} (default: here); - stdin",
    )
    parser.add_argument(
        "--stdin-filename",
        metavar="NAME",
        help="what stdin is called (default: requirements.txt)",
    )
    add_catalog(parser)


def add_fleet(parser: Parser) -> None:
    """Add the options that declare the fleet or say where it is declared."""
    group = parser.add_argument_group("fleet")
    group.add_argument(
        "--config", metavar="FILE", help="the profile (default: the nearest torchpin.toml)"
    )
    group.add_argument("--isolated", action="store_true", help="no profile and no catalog of yours")
    group.add_argument(
        "--gpu",
        action="append",
        default=[],
        metavar="NAME",
        help="V100, sm_70, gfx942, p3.2xlarge, none; may be repeated",
    )
    group.add_argument("--driver", metavar="VERSION", help="its driver: 550.54.15")
    group.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="VERSION",
        help="3.11, 3.14t, '>=3.10,<3.13'; may be repeated",
    )
    add_platform(group, " ".join(PLATFORMS))
    group.add_argument("--glibc", metavar="VERSION", help="its glibc: 2.31")
    group.add_argument("--client", choices=("pip", "uv"), help="what installs the files")


def add_platform(
    group: argparse._ActionsContainer, text: str, choices: tuple[str, ...] = PLATFORMS
) -> None:
    """Add ``--platform``, which takes every spelling that a profile takes.

    Where the choices are of one system, its name may be left out.
    """

    def read(word: str) -> str:
        return _platform(word, choices)

    group.add_argument("--platform", type=read, choices=choices, metavar="NAME", help=text)


def _platform(text: str, choices: tuple[str, ...]) -> str:
    if text in PLATFORMS:
        return text
    from torchpin.fleet.values import parse_platform

    try:
        return parse_platform(text)
    except ConfigError as error:
        systems = {one.partition("-")[0] for one in choices}
        if len(systems) == 1:
            with suppress(ConfigError):
                return parse_platform(f"{systems.pop()}-{text}")
        raise UsageError(f"--platform: {error.message}", hint=error.hint) from error


def add_rules(parser: Parser) -> None:
    """Add the options that choose rules and set the exit code."""
    group = parser.add_argument_group("rules (codes or their beginnings, comma-separated)")
    group.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="CODES",
        help="only these: TP1,TP201",
    )
    group.add_argument("--ignore", action="append", default=[], metavar="CODES", help="not these")
    group.add_argument(
        "--per-file-ignores",
        action="append",
        default=[],
        metavar="FILES:CODES",
        help="not these in such files: 'legacy/*:TP201,TP203'",
    )
    group.add_argument(
        "--severity",
        choices=("info", "warning", "error"),
        default="warning",
        metavar="LEVEL",
        help="exit with 1 from info, warning (default), error on",
    )
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 despite findings")


def add_baseline(group: argparse._ActionsContainer) -> None:
    """Add the options that name a baseline, or none."""
    group.add_argument("--baseline", metavar="FILE", help="not those that are in this baseline")
    group.add_argument(
        "--no-baseline", action="store_true", help="those of the baseline of the profile, too"
    )


def add_narrowing(parser: Parser) -> None:
    """Add the options that tell of some findings only."""
    group = parser.add_argument_group("which findings are told")
    add_baseline(group)
    group.add_argument(
        "--changed-since", metavar="REV", help="in files changed since this revision of git"
    )
    group.add_argument(
        "--evidence",
        choices=ORDER,
        metavar="LEVEL",
        help=f"known so well at least: {', '.join(ORDER)}",
    )


def add_policy(parser: Parser) -> None:
    """Add ``--policy``."""
    parser.add_argument(
        "--policy",
        choices=("nearest", "newest"),
        metavar="WHICH",
        help="propose the nearest to the file, or the newest",
    )


def add_output(parser: Parser, formats: tuple[str, ...] = FORMATS) -> None:
    """Add the options of the report."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output-format",
        choices=formats,
        default="text",
        metavar="FORMAT",
        help=f"{', '.join(formats)} (default: text)",
    )
    group.add_argument(
        "--no-color", action="store_true", help="also: NO_COLOR; FORCE_COLOR for pipes"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no notes and no closing line")
