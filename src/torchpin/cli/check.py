"""``torchpin check``: findings, as the chosen format."""

from __future__ import annotations

import os

from torchpin.cli.arguments import Arguments, plain_check
from torchpin.cli.common import exit_code, fleet_of, options_of, view_of, watched
from torchpin.cli.main import CLEAN
from torchpin.cli.terminal import note, out, style, tell
from torchpin.errors import UsageError
from torchpin.report.model import CheckView
from torchpin.report.style import clean

TYPE_CHECKING = False
if TYPE_CHECKING:  # argparse is imported only where there are options
    from torchpin.cli.parser import Parser


PROSE = ("text", "grouped")
"""Formats for people, whose sentences are folded to the terminal."""


def parser() -> Parser:
    """Return the parser of ``check``."""
    from torchpin.cli.parser import (
        Parser,
        add_fleet,
        add_narrowing,
        add_output,
        add_paths,
        add_policy,
        add_rules,
    )

    made = Parser("check", "Say what will not install or will not run on the fleet, and why.")
    add_paths(made, what="check")
    made.add_argument(
        "--skip-unknown",
        action="store_true",
        help="leave out PATHs that are no kind of file torchpin knows",
    )
    made.add_argument(
        "--diff", action="store_true", help="what fix would change, instead; writes nothing"
    )
    made.add_argument(
        "--statistics", action="store_true", help="how often each rule fired, instead"
    )
    made.add_argument(
        "--ignored",
        action="store_true",
        help="what comments, settings, the baseline silence, and why",
    )
    made.add_argument(
        "--unsafe-fixes", action="store_true", help="count, and with --diff show, unsafe fixes too"
    )
    made.add_argument(
        "--no-cache",
        action="store_true",
        help="no kept results (also: TORCHPIN_NO_CACHE)",
    )
    made.add_argument(
        "--jobs",
        type=int,
        default=0,
        metavar="N",
        help="processes that read large folders (0: as many as pay)",
    )
    add_policy(made)
    add_fleet(made)
    add_rules(made)
    add_narrowing(made)
    add_output(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``check`` and return its exit code."""
    args = plain_check(argv) or parser().parse(argv)
    if args.statistics and args.output_format not in (*PROSE, "concise"):
        raise UsageError("--statistics is text; it has no other --output-format")
    if args.diff and (args.changed_since or args.evidence or args.ignored):
        raise UsageError("--diff takes no --changed-since, --evidence, --ignored: it shows all")
    if args.skip_unknown:
        from torchpin.cli.common import known_paths

        paths = known_paths(args.paths)
        if args.paths and not paths:
            return CLEAN
        args.paths = paths
    if args.diff:
        from torchpin.cli.fix import run

        args.prove = args.relock = False
        return run(args)
    if args.jobs < 0:
        raise UsageError("--jobs takes a number of processes, or 0", hint="write --jobs 1 for one")
    view, notes = found(args)
    if view.baseline or (args.baseline, args.changed_since, args.evidence) != (None, None, None):
        from torchpin.cli.narrow import narrowed

        view, more = narrowed(view, args)
        notes = (*notes, *more)
    (tell if args.output_format in PROSE else out)(rendered(view, args))
    if not args.quiet:
        for text in notes:
            note(clean(text))
    return CLEAN if listed(view, args) else exit_code(view.findings, args)


def listed(view: CheckView, args: Arguments) -> bool:
    """Tell whether what is silenced is listed in place of the findings."""
    return view.ignored is not None and args.output_format in (*PROSE, "concise")


def found(args: Arguments) -> tuple[CheckView, tuple[str, ...]]:
    """Return what ``check`` finds, and its notes; of folders from the cache where that holds."""
    if args.ignored or (args.paths and all(map(_is_file, args.paths))):
        return checked(args)
    from torchpin.cache import cache_for

    cache = cache_for(args)
    if cache is None:
        return checked(args)
    return cache.recall() or cache.kept(lambda: checked(args))


def _is_file(path: str) -> bool:
    """Tell whether a path is a file that stands for itself, for which no cache pays."""
    return os.path.isfile(path) and os.path.basename(path) != "torchpin.toml"


def checked(args: Arguments) -> tuple[CheckView, tuple[str, ...]]:
    """Return what ``check`` finds, and its notes, without a cache."""
    from torchpin import engine

    options = options_of(args)
    fleet = fleet_of(args, options)
    report = watched(options, args, lambda asked: engine.check(asked, fleet))
    baseline = fleet.settings.baseline if fleet is not None else ""
    view = view_of(report, unsafe_fixes=args.unsafe_fixes, baseline=baseline, ignored=args.ignored)
    return view, report.notes


def rendered(view: CheckView, args: Arguments) -> str:
    """Return the report in the format of ``args``; each reporter is imported when used."""
    # Only here, at the edge, is a format chosen; the imports are local because a run uses one.
    kind = args.output_format
    if args.statistics:
        from torchpin.report import statistics

        told = view.findings
        if view.ignored is not None:
            told = tuple(one.finding for one in view.ignored)
        return statistics.render(told, style(no_color=args.no_color))
    if listed(view, args):
        from torchpin.report import ignored

        return ignored.render(
            view.ignored or (), kind, style(no_color=args.no_color), closing=not args.quiet
        )
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
    paint = style(no_color=args.no_color, log=kind in PROSE)
    if kind in ("concise", "grouped"):
        from importlib import import_module

        made = import_module(f"torchpin.report.{kind}")
        return str(made.render(view, paint, closing=not args.quiet))
    from torchpin.report import text

    return text.render(view, paint, closing=not args.quiet)
