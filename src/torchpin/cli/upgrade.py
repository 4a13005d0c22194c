"""``torchpin upgrade``: what another torch release would break, and what would have to change."""

from __future__ import annotations

from torchpin.cli.common import fleet_of, options_of, watched
from torchpin.cli.main import CLEAN, FINDINGS, USAGE
from torchpin.cli.parser import Parser, add_fleet, add_output, add_paths, add_policy
from torchpin.cli.terminal import note, out, style, tell
from torchpin.errors import UsageError
from torchpin.patterns import regex
from torchpin.report.style import clean

_VERSION = regex(r"\d+\.\d+(?:\.\d+)?(?:\+\w+)?")
"""A release among the paths."""


def parser() -> Parser:
    """Return the parser of ``upgrade``."""
    made = Parser(
        "upgrade",
        "Say what a torch release would break on each group, in the files and in the Python code, "
        "what would have to change, and how far each group can go. Nothing is written.",
        "exit code: 0 safe · 1 something breaks, or it is not known · 2 wrong usage, or a release\n"
        "that the catalog does not know",
    )
    made.add_argument(
        "--to",
        required=True,
        metavar="VERSION",
        help="the release: 2.15.0, 2.15 (its newest patch) or latest",
    )
    add_paths(made, what="read")
    add_policy(made)
    add_fleet(made)
    add_output(made, ("text", "markdown", "json"))
    return made


def main(argv: list[str]) -> int:
    """Run ``upgrade`` and return its exit code."""
    if not any(word.partition("=")[0] == "--to" for word in argv):
        for word in argv:
            if word == "latest" or _VERSION.fullmatch(word):
                raise UsageError("upgrade needs --to", hint=f"did you mean `--to {word}`?")
    args = parser().parse(argv)
    from torchpin.report.upgrade_model import SAFE
    from torchpin.upgrade import upgrade

    options = options_of(args)
    fleet = fleet_of(args, options)
    found = watched(options, args, lambda one: upgrade(one, fleet, args.to))
    if args.output_format == "json":
        from torchpin.catalog.store import load_catalog
        from torchpin.report import upgrade_json

        catalog = load_catalog()
        out(upgrade_json.render(found, (catalog.date, catalog.digest, found.stale)))
    elif args.output_format == "markdown":
        from torchpin.report import upgrade_markdown

        out(upgrade_markdown.render(found))
    else:
        from torchpin.report import upgrade as text

        body, _, verdict = text.render(found, style(no_color=args.no_color)).rpartition("\n\n")
        tell(f"{body}\n\n" if body else "")
        tell(verdict, every=True)
    for words in found.notes:
        if not args.quiet:
            note(clean(words))
    if not found.goal.known:
        return USAGE
    return CLEAN if found.verdict == SAFE else FINDINGS
