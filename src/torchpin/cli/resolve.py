"""``torchpin resolve``: one set that runs on the whole fleet, or the smallest split."""

from __future__ import annotations

import os

from torchpin.cli.common import fleet_of, options_of, watched
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_fleet, add_output, add_paths, add_policy
from torchpin.cli.terminal import note, out, style, tell
from torchpin.errors import UsageError
from torchpin.report.style import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torchpin.resolve.model import Outcome


def parser() -> Parser:
    """Return the parser of ``resolve``."""
    made = Parser(
        "resolve",
        "Find the versions and the index that run on every target, or the fewest sets that do.",
        "exit code: 0 every target is served · 1 some target or package is not",
    )
    add_paths(made, what="read the requirements from")
    add_policy(made)
    made.add_argument(
        "--split",
        action="store_true",
        help="where one set serves all, but an older one than the groups could have: one for each\n"
        "part of the fleet",
    )
    made.add_argument(
        "--write",
        metavar="DIR",
        help="write each set as a requirements file into this folder",
    )
    add_fleet(made)
    add_output(made, ("text", "json"))
    return made


def main(argv: list[str]) -> int:
    """Run ``resolve`` and return its exit code."""
    args = parser().parse(argv)
    from torchpin import engine
    from torchpin.catalog.store import load_catalog

    options = options_of(args)
    fleet = fleet_of(args, options)
    if fleet is None:
        raise UsageError(
            "resolve needs a fleet",
            hint="write torchpin.toml, or use --gpu, --driver and --python",
        )
    outcome = watched(options, args, lambda one: engine.resolve_paths(one, fleet))
    split = bool(args.split and outcome.alternative)
    if split:
        outcome = outcome._replace(plans=outcome.alternative, alternative=())
    catalog = load_catalog()
    old = engine.old_catalog(catalog, options, fleet.settings)
    clients = {group.client or "pip" for group in fleet.groups}
    client = options.client or ("uv" if clients == {"uv"} else "pip")
    if args.output_format == "json":
        from torchpin.report import json_

        out(json_.resolve(outcome, (catalog.date, catalog.digest, bool(old)), client))
    else:
        from torchpin.report import tables

        own = len(outcome.plans) > 1 and any(group.files for group in fleet.groups)
        paint = style(no_color=args.no_color)
        tell(tables.resolve(near(outcome), paint, client, split=split or own))
    if args.write is not None:
        from torchpin.cli.resolve_write import write_sets

        for path in write_sets(args.write, outcome.plans, client, catalog.date):
            note(f"wrote {clean(path)}")
    for text in (*catalog.notes, *filter(None, (old,))):
        if not args.quiet:
            note(clean(text))
    served = outcome.plans and not outcome.unserved
    return CLEAN if served and not any(plan.unfit for plan in outcome.plans) else FINDINGS


def near(outcome: Outcome) -> Outcome:
    """Return an outcome whose explanation names files from here, as findings do."""
    here = os.path.join(os.getcwd(), "")
    explanation = (
        one._replace(origin=one.origin._replace(path=one.origin.path.removeprefix(here)))
        for one in outcome.explanation
    )
    return outcome._replace(explanation=tuple(explanation))
