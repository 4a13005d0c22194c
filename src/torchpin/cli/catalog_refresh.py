"""``torchpin catalog refresh``: renew the catalog from the live indexes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from torchpin.cli.main import CLEAN, FINDINGS, USAGE
from torchpin.cli.parser import Parser
from torchpin.cli.progress import Bar
from torchpin.cli.terminal import note, out, tell
from torchpin.errors import UsageError
from torchpin.report.style import clean

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

    from torchpin.catalog.refresh.settings import Failed, Result

MOST_JOBS = 32
_LISTS = "the list of channels"
"""What the pages are called that only tell which channels there are."""
_ALL = 6
"""So many names of failed parts are listed."""


def parser() -> Parser:
    """Return the parser of ``catalog refresh``."""
    made = Parser(
        "catalog refresh",
        "Renew the catalog from the live indexes, PyPI and PyTorch's channels: new releases, new\n"
        "channels, yanked and withdrawn files; of new wheels, what they require and which GPUs\n"
        "they are built for. The other commands then use it. Parts of wheels are fetched only.",
        "exit code: 0 all was read · 1 some part was not: what was known of it stays · 2 nothing\n"
        "could be reached, or wrong usage",
    )
    made.add_argument(
        "--package", action="append", default=[], metavar="NAME", help="only this one (repeat)"
    )
    made.add_argument(
        "--channel",
        action="append",
        default=[],
        metavar="NAME",
        help="only this channel: cu126, cpu, pypi (repeat)",
    )
    made.add_argument(
        "--since",
        metavar="VERSION|DATE",
        help="read the wheels of known releases, too, where facts are missing: from this torch\n"
        "release or day on (default: from the newest release that this torchpin knows)",
    )
    made.add_argument(
        "--index",
        action="append",
        default=[],
        metavar="URL",
        help="a mirror: https://HOST/simple stands for PyPI, https://HOST/whl for the channels,\n"
        "https://HOST/whl/cu126 for one (repeat)",
    )
    made.add_argument(
        "--output",
        metavar="DIR",
        help="write the catalog there, not to your cache (--catalog DIR uses it)",
    )
    made.add_argument(
        "--dry-run", action="store_true", help="say what is new; read no wheels, write nothing"
    )
    made.add_argument(
        "--allow-removal",
        action="store_true",
        help="believe pages that lack much of what is known",
    )
    made.add_argument(
        "--jobs", type=int, default=8, metavar="N", help="connections at a time (default: 8)"
    )
    made.add_argument(
        "--timeout",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="give a server up that sends nothing for so long (default: 20)",
    )
    made.add_argument(
        "--output-format",
        choices=("text", "json"),
        default="text",
        help="how to report (default: text)",
    )
    made.add_argument("-q", "--quiet", action="store_true", help="only what failed")
    return made


def main(argv: list[str]) -> int:
    """Run ``catalog refresh`` and return its exit code.

    Raises:
        UsageError: an option that cannot be used.
        CatalogError: the old catalog cannot be read, or the new one not be written.
    """
    args = parser().parse(argv)
    if not 1 <= args.jobs <= MOST_JOBS:
        raise UsageError(f"--jobs takes 1 to {MOST_JOBS}")
    if not 0 < args.timeout < 1e6:
        raise UsageError("--timeout takes seconds above 0")
    if args.output == "":
        raise UsageError("--output takes a folder")
    from torchpin.catalog.labels import kind_of_label
    from torchpin.catalog.refresh.run import refresh
    from torchpin.catalog.refresh.settings import Settings, addresses, check_since

    for channel in args.channel:
        if channel != "pypi" and kind_of_label(channel) is None:
            raise UsageError(
                f"--channel: {channel!r} is no channel of PyTorch", hint="cu126, cpu, rocm7.2, pypi"
            )
    settings = Settings(
        packages=tuple(name.lower().replace("_", "-") for name in args.package),
        channels=tuple(args.channel),
        since="" if args.since is None else check_since(args.since),
        jobs=args.jobs,
        idle=args.timeout,
        output=args.output,
        dry_run=args.dry_run,
        allow_removal=args.allow_removal,
    )
    settings = addresses(args.index, settings)
    with RefreshBar(quiet=args.quiet) as bar:
        result = refresh(settings, bar)
    if args.output_format == "json":
        from torchpin.report.catalog_refresh import to_json

        out(to_json(result, dry_run=args.dry_run))
    elif not args.quiet:
        tell(report(result, dry_run=args.dry_run))
    for text in failures(result.failed):
        note(clean(text))
    if result.unreachable:
        hosts = clean(", ".join(result.unreachable))
        note(
            f"no connection to {hosts}: a proxy (https_proxy) or a mirror (--index URL) may lead "
            "there"
        )
    if result.not_kept:
        note(
            f"the cache cannot be written ({result.not_kept}): the next refresh reads all again; "
            "TORCHPIN_CACHE_DIR names another folder"
        )
    if not result.pages:
        note("nothing could be reached: the catalog stays as it is")
        return USAGE
    return FINDINGS if result.failed else CLEAN


def report(result: Result, *, dry_run: bool) -> str:
    """Return what a refresh found and what it cost."""
    lines = [clean(f"{change.package}: {change.text}") for change in result.changes]
    if not lines and result.pages:
        lines = ["nothing new in what was read" if result.failed else "nothing changed"]
    verb = "would be read" if dry_run else "read"
    wheels = f", {_count(result.wheels, 'wheel')} {verb}" if result.wheels else ""
    cached = f" ({result.unchanged} from the cache)" if result.unchanged else ""
    size = f"{result.fetched / 1e6:.1f} MB"
    lines.append(
        f"{_count(result.pages, 'page')}{cached}{wheels}: "
        f"{size} in {_count(result.requests, 'request')}, {result.seconds:.1f} s"
    )
    if result.folder is not None:
        lines.append(f"catalog of {result.date}, in {result.folder}")
    elif dry_run:
        lines.append("nothing was written (--dry-run)")
    return "\n".join(lines) + "\n"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def failures(failed: tuple[Failed, ...]) -> list[str]:
    """Return a line for each reason: what was not read, and how old the data are that stay."""
    groups: dict[str, dict[str, str]] = defaultdict(dict)
    for one in failed:
        groups[one.why][one.part] = one.kept
    out = []
    for why, parts in groups.items():
        named = {part: kept for part, kept in parts.items() if not part.startswith(_LISTS)}
        for kept in sorted({*(named or parts).values()}):
            here = sorted(part for part, day in (named or parts).items() if day == kept)
            shown = ", ".join(here[:_ALL])
            if len(here) > _ALL:
                what = (
                    "parts"
                    if any("/" in part or part.endswith(".whl") for part in here)
                    else "channels"
                )
                shown = f"{len(here)} {what} ({shown} …)"
            it = "them" if len(here) > 1 else "it"
            stays = f"; what is known of {it} stays, as of {kept}" if kept else ""
            out.append(f"not read: {shown}: {why}{stays}")
    return out


class RefreshBar(Bar):
    """Shows pages, wheels, and how many bytes came."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._bytes = 0

    def columns(self) -> list[ProgressColumn]:
        """Return the columns of numbers and bytes."""
        from rich.progress import MofNCompleteColumn, TextColumn

        return [MofNCompleteColumn(), TextColumn("{task.fields[size]}", markup=False)]

    def pages(self, done: int, total: int) -> None:
        """Show how many pages are read."""
        self.draw("index pages", done, total, size=self._size())

    def wheels(self, done: int, total: int) -> None:
        """Show how many wheels are read."""
        self.draw("wheels", done, total, size=self._size())

    def bytes(self, count: int) -> None:
        """Count bytes; they are shown with the next page or wheel."""
        self._bytes += count

    def _size(self) -> str:
        return f"{self._bytes / 1e6:.1f} MB"
