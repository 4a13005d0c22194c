"""``torchpin inspect``: what a wheel or a library holds, and which GPUs of the fleet run it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchpin.cli.common import declared_fleet
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_fleet, add_output
from torchpin.cli.progress import Bar
from torchpin.cli.terminal import note, out, style
from torchpin.errors import UsageError
from torchpin.fleet.model import Fleet
from torchpin.report.style import visible

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


def parser() -> Parser:
    """Return the parser of ``inspect``."""
    made = Parser(
        "inspect",
        "Read a wheel (a file, or an http(s) URL: only the parts that are needed) or a library:\n"
        "tags, CUDA version, device code of each library; and which GPUs of the fleet run it.",
        "exit code: 0 every declared GPU runs it, or none is declared · 1 some GPU does not, or\n"
        "not all of it · 2 it cannot be read",
    )
    made.add_argument("target", metavar="WHEEL", help="a .whl, .so, .dll or .pyd: path or URL")
    made.add_argument(
        "--all",
        action="store_true",
        dest="everything",
        help="by URL, fetch torch's biggest libraries too (hundreds of megabytes)",
    )
    made.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="the longest that it may take (default: 600)",
    )
    add_fleet(made)
    add_output(made, ("text", "json"))
    return made


def main(argv: list[str]) -> int:
    """Run ``inspect`` and return its exit code.

    Raises:
        UsageError: a timeout or a name that is none.
        ConfigError: the fleet is declared wrongly.
        InspectError: the wheel cannot be read.
    """
    args = parser().parse(argv)
    if not 0 < args.timeout < 1e6:
        raise UsageError("--timeout takes seconds above 0")
    if not args.target.strip():
        raise UsageError(
            "inspect what? The name is empty", hint="write a .whl, .so, .dll or .pyd: path or URL"
        )
    fleet = _fleet(args.config, isolated=args.isolated, declared=declared_fleet(args))
    from torchpin.catalog.bounded import Budget
    from torchpin.catalog.inspect import inspect
    from torchpin.report import inspect as report
    from torchpin.report.inspect_fleet import fits, runs_everywhere

    with InspectBar(quiet=args.quiet) as bar:
        found = inspect(
            args.target,
            budget=Budget(args.timeout),
            everything=args.everything,
            step=bar.step,
            progress=bar.advance,
        )
    rows = None if fleet is None else fits(found, fleet)
    if args.output_format == "json":
        out(report.to_json(found, rows))
    else:
        out(report.text(found, rows, style(no_color=args.no_color)))
    if rows is None and not args.quiet:
        note("no fleet is declared: --gpu V100, or a torchpin.toml, says which GPUs to judge")
    elif fleet is not None and not rows and not args.quiet:
        note("the declared fleet has no GPUs")
    return CLEAN if runs_everywhere(rows or ()) else FINDINGS


def _fleet(config: str | None, *, isolated: bool, declared: Fleet | None) -> Fleet | None:
    """Return the declared fleet, else that of the profile; None if there is none."""
    if declared is not None:
        return declared
    from torchpin.fleet.profile import find_profile, load_profile

    path = config or (None if isolated else find_profile(os.getcwd()))
    fleet = load_profile(path) if path is not None else None
    return fleet if fleet is not None and fleet.groups else None


class InspectBar(Bar):
    """Shows the bytes of what is read."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._label = ""
        self._done = 0
        self._total = 0

    def columns(self) -> list[ProgressColumn]:
        """Return the column of bytes."""
        from rich.progress import DownloadColumn

        return [DownloadColumn()]

    def step(self, label: str, packed: int) -> None:
        """Name what is read next; ``packed`` bytes of it, 0 if not known."""
        self._label, self._done, self._total = visible(os.path.basename(label)), 0, packed
        self.draw(self._label, self._done, self._total or None)

    def advance(self, count: int) -> None:
        """Count bytes."""
        self._done += count
        self.draw(self._label, self._done, self._total or None)
