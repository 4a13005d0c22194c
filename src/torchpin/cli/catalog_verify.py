"""``torchpin catalog verify``: measure wheels again, and say which facts do not hold."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_output, nearest
from torchpin.cli.terminal import note, out, style
from torchpin.errors import UsageError

if TYPE_CHECKING:
    from torchpin.catalog.inspection import Inspection
    from torchpin.catalog.refresh.fetch import Fetcher
    from torchpin.catalog.refresh.pages import File
    from torchpin.catalog.refresh.settings import Settings
    from torchpin.catalog.store import Catalog
    from torchpin.catalog.verify import Outcome, Unit

WHEEL_SECONDS = 600.0
MOST_JOBS = 32


def parser() -> Parser:
    """Return the parser of ``catalog verify``."""
    made = Parser(
        "catalog verify",
        "Measure again the wheels that the catalog calls measured, from the live index: kernels,\n"
        "torch and CUDA versions, Requires-Dist, Requires-Python, tags, glibc, digests. Only the\n"
        "parts of a wheel that tell are fetched; nothing that was read before is used.",
        "exit code: 0 all facts hold · 1 some fact does not hold, or a wheel could not be read · 2 "
        "wrong usage",
    )
    made.add_argument(
        "--sample", type=int, metavar="N", help="only N builds, chosen by chance (default: all)"
    )
    made.add_argument(
        "--seed", type=int, metavar="S", help="choose the same N builds again (it is printed)"
    )
    made.add_argument(
        "--package", action="append", default=[], metavar="NAME", help="only this package (repeat)"
    )
    made.add_argument(
        "--jobs", type=int, default=4, metavar="N", help="wheels at a time (default: 4)"
    )
    made.add_argument(
        "--index",
        action="append",
        default=[],
        metavar="URL",
        help="where to look: a simple index in the place of PyPI (default: that of pip or uv),\n"
        "or …/whl in the place of PyTorch's channels",
    )
    made.add_argument(
        "--catalog",
        metavar="DIR",
        help="the catalog to verify: a folder, or `shipped` (default: the one in use)",
    )
    add_output(made, ("text", "json"))
    return made


def main(argv: list[str]) -> int:
    """Run ``catalog verify`` and return its exit code.

    Raises:
        UsageError: an unknown package, a number that is none, no index.
    """
    args = parser().parse(argv)
    if args.sample is not None and args.sample < 1:
        raise UsageError("--sample takes a number of builds above 0")
    if not 1 <= args.jobs <= MOST_JOBS:
        raise UsageError(f"--jobs takes a number from 1 to {MOST_JOBS}")
    from torchpin.catalog.refresh.address import pypi_index
    from torchpin.catalog.refresh.cache import Cache
    from torchpin.catalog.refresh.fetch import Fetcher, today
    from torchpin.catalog.refresh.settings import Settings, addresses
    from torchpin.catalog.store import load_catalog
    from torchpin.catalog.verify import HOLDS, sample, units
    from torchpin.report import catalog_verify as report

    catalog = load_catalog(args.catalog)
    all_units = units(catalog, _packages(args.package, catalog))
    seed = None
    chosen: Sequence[Unit] = all_units
    if args.sample is not None:
        seed = args.seed if args.seed is not None else random.SystemRandom().randrange(100_000)
        chosen = sample(all_units, args.sample, seed)
    settings = addresses(args.index, Settings())
    if settings.pypi is None and any(unit.place == "pypi" for unit in chosen):
        settings = settings._replace(pypi=pypi_index())
    begun = time.monotonic()
    nothing = Cache(os.devnull, keeps=False)
    fetcher = Fetcher(nothing, jobs=args.jobs, idle=settings.idle, today=today())
    with progress(len(chosen), quiet=args.quiet) as advance:
        outcomes = measure(chosen, fetcher, settings, advance)
    run = report.Run(
        catalog.date,
        catalog.digest,
        seed,
        len(all_units),
        fetcher.requests,
        fetcher.fetched,
        time.monotonic() - begun,
    )
    if args.output_format == "json":
        out(report.to_json(outcomes, run))
    else:
        out(report.text(outcomes, run, style(no_color=args.no_color)))
    if not outcomes and not args.quiet:
        note("the catalog calls no build of these packages measured")
    return CLEAN if all(one.status == HOLDS for one in outcomes) else FINDINGS


def _packages(names: Sequence[str], catalog: Catalog) -> tuple[str, ...]:
    """Return canonical names.

    Raises:
        UsageError: the catalog does not know one.
    """
    known = catalog.packages()
    packages = tuple(name.lower().replace("_", "-") for name in names)
    for name in packages:
        if name not in known:
            raise UsageError(
                f"the catalog holds no package {name!r}",
                hint=nearest(name, known) or f"it holds {', '.join(known)}",
            )
    return packages


def measure(
    chosen: Sequence[Unit],
    fetcher: Fetcher,
    settings: Settings,
    advance: Callable[[str], None] = lambda title: None,
) -> list[Outcome]:
    """Measure builds, several at a time; the outcomes are in the order of ``chosen``."""
    from torchpin.catalog.bounded import Budget, InspectError
    from torchpin.catalog.inspect import inspect_open, show
    from torchpin.catalog.verify import UNREAD, Outcome, verify

    pages: dict[tuple[str, str], dict[str, File] | InspectError] = {}
    wanted = list(dict.fromkeys((unit.build.package, unit.place) for unit in chosen))
    for key, page in fetcher.each(lambda key: read_page(*key, fetcher, settings), wanted):
        pages[key] = page

    def read_wheel(url: str, only: Callable[[str], bool]) -> Inspection:
        budget = Budget(WHEEL_SECONDS)
        source = fetcher.open(url, budget)
        try:
            return inspect_open(source, show(url), budget, only=only, everything=True)
        finally:
            fetcher.done(source)

    def one(at: int) -> Outcome:
        unit = chosen[at]
        page = pages[unit.build.package, unit.place]
        if isinstance(page, InspectError):
            why = f"the page of {unit.build.package} on {unit.place}: {page.message}"
            return Outcome(unit, "", "", UNREAD, (), (), why)
        return verify(unit, page, read_wheel)

    outcomes: dict[int, Outcome] = {}
    for at, outcome in fetcher.each(one, list(range(len(chosen)))):
        if isinstance(outcome, InspectError):
            outcome = Outcome(chosen[at], "", "", UNREAD, (), (), outcome.message)
        outcomes[at] = outcome
        advance(f"{outcome.unit.build.package} {outcome.unit.build.full_version}")
    return [outcomes[at] for at in sorted(outcomes)]


def read_page(package: str, place: str, fetcher: Fetcher, settings: Settings) -> dict[str, File]:
    """Return the wheels on the index page of a package, by name.

    Raises:
        InspectError: there is no page, or it cannot be read.
    """
    from torchpin.catalog.bounded import InspectError
    from torchpin.catalog.refresh.pages import ACCEPT_BOTH, parse

    if place == "pypi":
        root = settings.pypi or ""
    else:
        root = dict(settings.mirrors).get(place) or f"{settings.whl}/{place}"
    fetched = fetcher.page(f"{root.rstrip('/')}/{package}/", ACCEPT_BOTH)
    if fetched.status == "absent":
        raise InspectError(f"HTTP {fetched.code}: the index has no such page")
    page = parse(fetched.body, fetched.url, fetched.content_type, complete=fetched.complete)
    return {file.name: file for file in page.files if file.name.endswith(".whl")}


@contextmanager
def progress(total: int, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show a progress bar on standard error, if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda title: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from torchpin.report.style import visible

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )
    task = bar.add_task("measuring", total=total)
    with bar:
        yield lambda title: bar.update(task, advance=1, description=visible(title))
