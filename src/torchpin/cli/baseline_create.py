"""``torchpin baseline create``: write down what ``check`` finds today."""

from __future__ import annotations

import os

from torchpin.cli.main import CLEAN
from torchpin.cli.parser import Parser, add_fleet, add_paths, add_rules
from torchpin.cli.terminal import note, out
from torchpin.errors import UsageError
from torchpin.report.style import clean

NAME = "torchpin-baseline.json"
"""Where a baseline is written by default."""


def parser() -> Parser:
    """Return the parser of ``baseline create``."""
    made = Parser(
        "baseline create",
        "Write down what check finds today. With `baseline` in the profile, or --baseline, check "
        "then tells what is new, and nothing else.",
        "exit code: 0 written · 2 nothing written",
    )
    add_paths(made, what="check")
    made.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"where (default: the baseline of the profile, else {NAME})",
    )
    made.add_argument("--force", action="store_true", help="replace the file that is there")
    add_fleet(made)
    add_rules(made)
    made.add_argument("-q", "--quiet", action="store_true", help="no notes")
    return made


def main(argv: list[str]) -> int:
    """Run ``baseline create`` and return its exit code.

    Raises:
        UsageError: the file is there already, or cannot be written.
    """
    args = parser().parse(argv)
    from torchpin import engine
    from torchpin.cli.common import fleet_of, options_of, watched
    from torchpin.cli.constraints import write
    from torchpin.report.baseline import counted, dump, entry_of
    from torchpin.report.model import plural

    options = options_of(args)
    fleet = fleet_of(args, options)
    setting = fleet.settings.baseline if fleet is not None else ""
    path: str = args.output or setting or NAME
    if os.path.isdir(path):
        raise UsageError("is a folder", path=path, hint=f"write {os.path.join(path, NAME)}")
    if os.path.lexists(path) and not args.force:
        raise UsageError(
            "is there already",
            path=path,
            hint="`torchpin baseline prune` takes out what is mended; --force writes it anew",
        )
    found = watched(options, args, lambda one: engine.check(one, fleet)).findings
    folder = os.path.dirname(path)
    write(path, dump(counted(entry_of(finding, folder) for finding in found)))
    out(f"Wrote {clean(path)}: {plural(len(found), 'finding')}.\n")
    if not args.quiet and os.path.realpath(path) != os.path.realpath(setting or os.devnull):
        note(
            f'use it: baseline = "{clean(path)}" in the profile, or check --baseline {clean(path)}'
        )
    return CLEAN
