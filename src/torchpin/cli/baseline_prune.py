"""``torchpin baseline prune``: take out of a baseline what has been mended."""

from __future__ import annotations

import os

from torchpin.cli.main import CLEAN
from torchpin.cli.parser import Parser, add_fleet, add_paths, add_rules
from torchpin.cli.terminal import out
from torchpin.report.style import clean


def parser() -> Parser:
    """Return the parser of ``baseline prune``."""
    made = Parser(
        "baseline prune",
        "Take out of the baseline what check does not find any more. Nothing is added: what is new "
        "stays a finding. Files outside of PATH keep their entries.",
        "exit code: 0 done · 2 no baseline",
    )
    add_paths(made, what="check")
    made.add_argument("--baseline", metavar="FILE", help="which (default: that of the profile)")
    add_fleet(made)
    add_rules(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``baseline prune`` and return its exit code.

    Raises:
        UsageError: there is no baseline, or it cannot be written.
        ConfigError: it is none.
    """
    args = parser().parse(argv)
    from torchpin import engine
    from torchpin.cli.baseline_create import NAME
    from torchpin.cli.common import fleet_of, options_of, watched
    from torchpin.cli.constraints import write
    from torchpin.cli.narrow import asked_for, read
    from torchpin.report.baseline import dump, load, split
    from torchpin.report.model import plural

    options = options_of(args)
    fleet = fleet_of(args, options)
    setting = fleet.settings.baseline if fleet is not None else ""
    path: str = args.baseline or setting or NAME
    known = load(read(path), path)
    report = watched(options, args, lambda one: engine.check(one, fleet))
    found = split(report.findings, known, os.path.dirname(path))
    gone = {one: count for one, count in found.gone.items() if asked_for(one, path, args)}
    left = {entry: count - gone.get(entry, 0) for entry, count in known.items()}
    kept = {entry: count for entry, count in left.items() if count}
    if gone:
        write(path, dump(kept))
    number = plural(sum(gone.values()), "finding")
    out(f"Took {number} out of {clean(path)}; {sum(kept.values())} left.\n")
    return CLEAN
