"""``torchpin show``: every selection with its verdict, per target."""

from __future__ import annotations

from torchpin.cli.common import fleet_of, notes_of, options_of, watched
from torchpin.cli.parser import Parser, add_fleet, add_output, add_paths
from torchpin.cli.terminal import out, style, tell


def parser() -> Parser:
    """Return the parser of ``show``."""
    made = Parser(
        "show", "Show which build pip or uv would install on each target, and whether it runs."
    )
    add_paths(made, what="read")
    add_fleet(made)
    add_output(made, ("text", "json"))
    return made


def main(argv: list[str]) -> int:
    """Run ``show`` and return 0: it answers, it does not judge."""
    args = parser().parse(argv)
    from torchpin import engine

    options = options_of(args)
    fleet = fleet_of(args, options)
    report = watched(options, args, lambda one: engine.check(one, fleet))
    if args.output_format == "json":
        from torchpin.report import json_

        out(
            json_.show(
                report.selections,
                (report.catalog_date, report.catalog_digest, report.stale),
                report.cells,
            )
        )
    else:
        from torchpin.report import tables

        tell(
            tables.show(report.selections, style(no_color=args.no_color), report.cells), every=True
        )
    notes_of(report, quiet=args.quiet)
    return 0
