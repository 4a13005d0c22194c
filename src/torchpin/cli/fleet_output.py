"""Where ``fleet import`` and ``fleet detect`` write their profile."""

from __future__ import annotations

import os
import re

from torchpin.cli.arguments import Arguments
from torchpin.cli.init import write_new
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser
from torchpin.cli.terminal import note, out
from torchpin.errors import UsageError
from torchpin.fleet.importers.fold import Group
from torchpin.fleet.importers.profile import profile_text
from torchpin.report.style import clean

EXIT_CODES = "exit code: 0 written · 1 written, something is to be filled in · 2 nothing written"


def add_profile_output(parser: Parser) -> None:
    """Add the options that say where the profile goes and how its groups are called."""
    parser.add_argument(
        "--group", metavar="NAME", help="name of the node groups (default: by their GPUs)"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the profile to this file (default: print it)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite the file of --output")
    parser.add_argument("-q", "--quiet", action="store_true", help="no notes")


def check_options(args: Arguments) -> None:
    """Refuse what cannot end well, before anything is read.

    Raises:
        UsageError: the file is there already, or is no place for a profile of its own; or the name
            is none.
    """
    if args.group and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", args.group):
        raise UsageError(
            f"{args.group!r} is no name for a node group",
            hint="use letters, digits, dashes and underscores",
        )
    path: str | None = args.output
    if path is None:
        if args.force:
            raise UsageError("--force goes with --output FILE")
        return
    if os.path.basename(path) == "pyproject.toml":
        raise UsageError(
            "is not overwritten",
            path=path,
            hint="write torchpin.toml, or copy the printed tables as [tool.torchpin.fleet.NAME]",
        )
    if os.path.isdir(path):
        raise UsageError("is a folder", path=path, hint=f"write {path.rstrip('/')}/torchpin.toml")
    if os.path.lexists(path) and not args.force:
        raise UsageError("is there already", path=path, hint="--force overwrites it")


def deliver(args: Arguments, groups: tuple[Group, ...], title: str) -> int:
    """Write the profile, say what is left open, and return the exit code.

    Raises:
        UsageError: the file cannot be written.
    """
    written = profile_text(groups, title, args.group or "")
    path: str | None = args.output
    if path is None:
        out(written.text)
    elif args.force and os.path.exists(path):
        from torchpin.rewrite.apply import write_all

        write_all([(path, _old(path), written.text.encode("utf-8"))])
    else:
        write_new(path, written.text)
    if path is not None:
        count = f"{written.declared} node group{'' if written.declared == 1 else 's'}"
        out(f"Wrote {clean(path)}: {count}.\n")
    if written.open and not args.quiet:
        note(f"{written.open} to be filled in by hand: see the comments of the profile")
    return FINDINGS if written.open else CLEAN


def _old(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", path=path) from error
