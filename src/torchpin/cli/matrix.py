"""``torchpin matrix``: which releases run on which GPUs, in the terminal or as a web page."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from torchpin.cli.common import declared_fleet, options_of
from torchpin.cli.main import CLEAN
from torchpin.cli.parser import Parser, add_catalog, add_fleet, add_output, nearest
from torchpin.cli.progress import Bar
from torchpin.cli.terminal import columns, note, out, style
from torchpin.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from torchpin.catalog.store import Catalog
    from torchpin.cli.arguments import Arguments
    from torchpin.fleet.model import Fleet
    from torchpin.matrix.model import Row

FORMATS = ("text", "json", "markdown", "csv")
SHOWN = 6
"""Minor releases that are shown unless the options say otherwise: they fit 80 columns."""
DEFAULT = "matrix.html"


def parser() -> Parser:
    """Return the parser of ``matrix``."""
    made = Parser(
        "matrix",
        "Show which releases run where: rows are the groups of the fleet, the GPUs given by "
        "--gpu, or the families of GPUs; columns are releases; cells name the channels that run.\n"
        "\n"
        "With --html: one web page that needs nothing beside it, to pick GPUs, driver and Python "
        "in and see what runs, how to install it, and why the rest does not.",
        "exit code: 0 shown or written · 2 wrong usage or settings",
    )
    made.add_argument(
        "--package", default="torch", metavar="NAME", help="torchvision, torchaudio … "
        "(default: torch)"
    )  # fmt: skip
    made.add_argument(
        "--since", metavar="VERSION", help=f"the first release (default: the newest {SHOWN} minors)"
    )
    made.add_argument(
        "--all",
        action="store_true",
        help="every release with its patches, every family of GPUs (Jetson, before Maxwell)",
    )
    made.add_argument("--html", action="store_true", help=f"write the web page (to {DEFAULT})")
    made.add_argument("-o", "--output", metavar="FILE", help="write to FILE; - prints")
    add_catalog(made)
    add_fleet(made)
    add_output(made, FORMATS)
    made.set_defaults(paths=[], stdin_filename=None)
    return made


def main(argv: list[str]) -> int:
    """Run ``matrix`` and return its exit code."""
    args = parser().parse(argv)
    from torchpin.catalog.store import load_catalog
    from torchpin.engine import find_fleet, old_catalog
    from torchpin.fleet.model import Settings

    catalog = load_catalog()
    options = options_of(args)
    profile = None if args.gpu else find_fleet(options)
    settings = profile.settings if profile is not None else Settings()
    old = old_catalog(catalog, options, settings)
    if args.html:
        _page(args, catalog, profile)
    else:
        _table(args, catalog, profile, stale=bool(old))
    if not args.quiet:
        for words in (*catalog.notes, *filter(None, (old,))):
            note(words)
    return CLEAN


def _table(args: Arguments, catalog: Catalog, profile: Fleet | None, *, stale: bool) -> None:
    from torchpin.matrix.judged import releases
    from torchpin.matrix.table import matrix

    package = _package(args.package, catalog)
    since = _since(args.since)
    versions = releases(package, catalog, since=since, every=args.all)
    if since is None and not args.all:
        versions = versions[-SHOWN:]
    if not versions:
        raise UsageError(
            f"no release of {package} since {since}",
            hint=f"the newest in the catalog of {catalog.date}: {catalog.versions(package)[-1]}",
        )
    rows, families = _rows(args, profile)
    found = matrix(rows, versions, catalog, package=package, joined=families, stale=stale)
    from torchpin.report import matrix as report

    if args.output_format == "json":
        from torchpin.report import matrix_json

        text = matrix_json.render(found)
    elif args.output_format == "markdown":
        text = report.markdown(found)
    elif args.output_format == "csv":
        text = report.csv(found)
    elif args.output in (None, "-"):
        text = report.text(found, style(no_color=args.no_color), columns(sys.stdout))
    else:
        from torchpin.report.style import PLAIN

        text = report.text(found, PLAIN)
    _put(args.output, text)


def _page(args: Arguments, catalog: Catalog, profile: Fleet | None) -> None:
    from torchpin import __version__
    from torchpin.matrix.pack import page
    from torchpin.matrix.page_data import page_data

    for option, given in (
        ("--package", args.package != "torch"),
        ("--output-format", args.output_format != "text"),
    ):
        if given:
            raise UsageError(f"{option} does not go with --html", hint="the page is on torch")
    fleet = declared_fleet(args) or profile
    since = "1.0" if args.all and not args.since else _since(args.since)
    with Building(quiet=args.quiet) as bar:
        data = page_data(catalog, fleet, since=since, version=__version__, step=bar.step)
    _put(args.output or DEFAULT, page(data))
    if args.output != "-" and not args.quiet:
        note(f"{args.output or DEFAULT} is written: open it in a browser")


class Building(Bar):
    """The bar of the page's builds."""

    def columns(self) -> list[ProgressColumn]:
        """Return how many are done, of how many."""
        from rich.progress import MofNCompleteColumn

        return [MofNCompleteColumn()]

    def step(self, done: int, total: int) -> None:
        """Show how far it is."""
        self.draw("judging builds", done, total)


def _put(path: str | None, text: str) -> None:
    if path is None or path == "-":
        out(text)
        return
    from torchpin.cli.constraints import write

    write(path, text)


def _package(name: str, catalog: Catalog) -> str:
    package = name.strip().lower().replace("_", "-")
    known = catalog.packages()
    if package not in known:
        raise UsageError(
            f"--package: the catalog has no builds of {name!r}",
            hint=nearest(package, known) or f"it has: {', '.join(known)}",
        )
    return package


def _since(text: str | None) -> str | None:
    if text is None:
        return None
    import re

    match = re.fullmatch(r"v?(\d{1,4}(?:\.\d{1,4}){0,2})", text.strip())
    if match is None:
        raise UsageError(f"--since {text}: not a version", hint="write it like 2.4")
    return match[1]


def _rows(args: Arguments, profile: Fleet | None) -> tuple[tuple[Row, ...], bool]:
    """Return the rows, and whether they are families of GPUs, which may be joined."""
    from torchpin.fleet.profile import fleet_from_options
    from torchpin.matrix.model import Row
    from torchpin.matrix.rows import family_rows, fleet_rows, gpu_rows

    if args.gpu:
        fleet = declared_fleet(args)
        assert fleet is not None
        return gpu_rows(fleet.groups[0], platform=bool(args.platform)), False
    narrowed = args.driver or args.python or args.platform or args.glibc
    if profile is not None and profile.groups and not narrowed:
        return fleet_rows(profile), False
    like = fleet_from_options(
        gpus=("none",), python=args.python, platform=args.platform, glibc=args.glibc
    ).groups[0]
    if args.driver:
        from torchpin.fleet.values import parse_driver

        like = like._replace(driver=parse_driver(args.driver))
    if like.platform.startswith("macos"):  # its wheels use neither CUDA nor ROCm
        return (Row((like.platform,), like),), False
    return family_rows(like, every=args.all, platform=args.platform), True
