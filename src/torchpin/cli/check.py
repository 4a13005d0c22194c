"""``torchpin check``: findings, as the chosen format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpin.cli.arguments import Arguments, plain_check
from torchpin.cli.common import exit_code, fleet_of, notes_of, options_of, view_of
from torchpin.cli.terminal import out, style, tell
from torchpin.errors import UsageError
from torchpin.report.model import CheckView

if TYPE_CHECKING:  # argparse is imported only where there are options
    from torchpin.cli.parser import Parser


def parser() -> Parser:
    """Return the parser of ``check``."""
    from torchpin.cli.parser import (
        Parser,
        add_fleet,
        add_output,
        add_paths,
        add_policy,
        add_rules,
    )

    made = Parser("check", "Say what will not install or will not run on the fleet, and why.")
    add_paths(made, what="check")
    made.add_argument(
        "--diff", action="store_true", help="print what fix would change instead; writes nothing"
    )
    made.add_argument(
        "--statistics", action="store_true", help="print how often each rule fired instead"
    )
    made.add_argument(
        "--unsafe-fixes", action="store_true", help="count (and with --diff show) unsafe fixes too"
    )
    add_policy(made)
    add_fleet(made)
    add_rules(made)
    add_output(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``check`` and return its exit code."""
    args = plain_check(argv) or parser().parse(argv)
    if args.statistics and args.output_format not in ("text", "concise"):
        raise UsageError("--statistics is text; it has no other --output-format")
    if args.diff:
        from torchpin.cli.fix import run

        args.prove = args.relock = False
        return run(args)
    from torchpin import engine

    options = options_of(args)
    report = engine.check(options, fleet_of(args, options))
    view = view_of(report, unsafe_fixes=args.unsafe_fixes)
    (tell if args.output_format == "text" else out)(rendered(view, args))
    notes_of(report, quiet=args.quiet)
    return exit_code(view.findings, args)


def rendered(view: CheckView, args: Arguments) -> str:
    """Return the report in the format of ``args``; each reporter is imported when used."""
    # Only here, at the edge, is a format chosen; the imports are local because a run uses one.
    kind = args.output_format
    if args.statistics:
        from torchpin.report import statistics

        return statistics.render(view.findings, style(no_color=args.no_color))
    if kind == "json":
        from torchpin.report import json_

        return json_.check(view)
    if kind == "github":
        from torchpin.report import github

        return github.render(view)
    if kind in ("gitlab", "junit", "markdown"):
        from importlib import import_module

        return str(import_module(f"torchpin.report.{kind}").render(view))
    if kind == "sarif":
        from torchpin import __version__
        from torchpin.report import sarif
        from torchpin.report.rule_docs import describe_all
        from torchpin.rules.registry import all_rules

        return sarif.render(view, describe_all(all_rules()), __version__)
    paint = style(no_color=args.no_color)
    if kind == "concise":
        from torchpin.report import concise

        return concise.render(view, paint, closing=not args.quiet)
    from torchpin.report import text

    return text.render(view, paint, closing=not args.quiet)
