"""``torchpin constraints``: hold pip and uv to what runs on a group or on the whole fleet."""

from __future__ import annotations

import os
import stat
import sys

from torchpin.cli.common import fleet_of, options_of
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_catalog, add_fleet
from torchpin.cli.terminal import note, out
from torchpin.errors import TorchpinError, UsageError


def parser() -> Parser:
    """Return the parser of ``constraints``."""
    made = Parser(
        "constraints",
        "Print what holds pip or uv to the PyTorch that runs on a group, or on the whole fleet:\n"
        "the newest set that runs there, as a constraints file, as [tool.uv] tables, or as\n"
        "environment lines (NAME=value) that name the constraints file written by -o.",
        "exit code: 0 one set serves all · 1 none does: the sets by group are told",
    )
    made.add_argument("--group", metavar="NAME", help="a node group (default: the whole fleet)")
    made.add_argument(
        "--format",
        choices=("requirements", "uv", "env"),
        default="requirements",
        help="what to print (default: requirements)",
    )
    made.add_argument("--torch", metavar="SPEC", help="which torch: 2.11.0, '==2.11.*', '<2.15'")
    made.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write it there; with --format env: write the constraints there, print the lines",
    )
    add_mirror(made)
    add_catalog(made)
    add_fleet(made)
    made.add_argument("-q", "--quiet", action="store_true", help="no notes")
    made.set_defaults(paths=[], stdin_filename=None)
    return made


def add_mirror(made: Parser) -> None:
    """Add ``--mirror``."""
    made.add_argument(
        "--mirror",
        metavar="URL",
        help="where PyTorch's channels lie for you: https://mirror.example/whl (default: what\n"
        "[tool.torchpin] indexes says, else download.pytorch.org)",
    )


def main(argv: list[str]) -> int:
    """Run ``constraints`` and return its exit code."""
    args = parser().parse(argv)
    if args.format == "env" and not args.output:
        raise UsageError(
            "--format env needs -o FILE",
            hint="the constraints are written to FILE, which the printed lines name",
        )
    from torchpin.catalog.store import load_catalog
    from torchpin.plugin import forms
    from torchpin.plugin.plan import (
        NO_LOGIN,
        fleet_outcome,
        places_of,
        targets_of,
        torch_specifier,
        without_logins,
    )
    from torchpin.plugin.words import split_text

    specifier = torch_specifier(args.torch)
    fleet = fleet_of(args, options_of(args))
    targets = targets_of(fleet, args.group)
    assert fleet is not None
    places, had_login = without_logins(places_of(fleet.settings.indexes, args.mirror))
    catalog = load_catalog()
    outcome = fleet_outcome(targets, fleet.settings, catalog, specifier)
    if not args.quiet:
        for text in catalog.notes:
            note(text)
    if len(outcome.plans) != 1 or outcome.unserved:
        sys.stderr.write(split_text(outcome, args.group))
        return FINDINGS
    plan = outcome.plans[0]
    if had_login and not args.quiet:
        note(NO_LOGIN)
    if args.format == "uv":
        text = forms.uv_text(plan, places, catalog.date)
    else:
        text = forms.requirements_text(plan, places, catalog.date)
    lines = ""
    if args.format == "env":
        lines = forms.environment_text(plan, places, os.path.abspath(args.output))
    if args.output:
        write(args.output, text)
        out(lines)
    else:
        out(text)
    return CLEAN


def write(path: str, text: str) -> None:
    """Write a file whole or not at all; one that is there keeps its mode.

    What is no file (``/dev/null``, a pipe) is written into, never replaced.

    Raises:
        TorchpinError: it cannot be written.
    """
    status = _status(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        _write_into(path, text)
        return
    target = os.path.realpath(path)
    beside = f"{target}.{os.getpid()}.new"
    try:
        with open(beside, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if status is not None:
            os.chmod(beside, stat.S_IMODE(status.st_mode))
        os.replace(beside, target)
    except OSError as error:
        if os.path.exists(beside):
            os.unlink(beside)
        raise TorchpinError(f"cannot be written: {error.strerror}", path=path) from error


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):  # nothing is there, or writing will tell
        return None


def _write_into(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise TorchpinError(f"cannot be written: {error.strerror}", path=path) from error
