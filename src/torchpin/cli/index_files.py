"""From the options of ``torchpin index`` to the files that it lists."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchpin.cli.arguments import Arguments
from torchpin.cli.common import fleet_of, options_of
from torchpin.cli.parser import Parser, add_catalog, add_fleet
from torchpin.cli.terminal import note
from torchpin.errors import UsageError
from torchpin.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchpin.catalog.model import Build
    from torchpin.plugin.choice import Filter, Wheel
    from torchpin.plugin.sources import Gathered


class Listed(NamedTuple):
    """What an index holds."""

    wheels: tuple[Wheel, ...]
    title: str


def add_files(made: Parser) -> None:
    """Add the options that say which files are listed."""
    made.add_argument("--group", metavar="NAME", help="a node group (default: the whole fleet)")
    made.add_argument(
        "--from",
        dest="sources",
        action="append",
        default=[],
        metavar="SOURCE",
        help="where the files come from (repeat): catalog (default), the URL of a live index or\n"
        "of a folder of channels (https://download.pytorch.org/whl), or a folder of wheels",
    )
    made.add_argument(
        "--include-unknown",
        action="store_true",
        help="also files of which is not known whether they run, and, from the catalog, files\n"
        "whose names and digests are not known for sure",
    )
    from torchpin.cli.constraints import add_mirror

    add_mirror(made)
    add_catalog(made)
    add_fleet(made)
    made.add_argument("-q", "--quiet", action="store_true", help="no notes")
    made.set_defaults(paths=[], stdin_filename=None)


def listed(args: Arguments) -> Listed:
    """Return the files that run on the fleet.

    Raises:
        UsageError: no fleet, no such group, or a source that cannot be read.
    """
    from torchpin.catalog.drivers import load_drivers
    from torchpin.catalog.store import load_catalog
    from torchpin.plugin.choice import Filter, chosen
    from torchpin.plugin.plan import targets_of
    from torchpin.report.lines import unique

    targets = targets_of(fleet_of(args, options_of(args)), args.group)
    catalog = load_catalog()
    keep = Filter(targets, unknown=args.include_unknown, drivers=load_drivers())
    wheels: list[Wheel] = []
    nameless: list[tuple[Build, tuple[str, ...]]] = []
    for source in args.sources or ["catalog"]:
        found = gathered(source, args, keep)
        wheels += found.wheels
        if not args.quiet:
            for text in found.notes:
                note(text)
        nameless += found.nameless
    names = ", ".join(unique(target.text for target in targets))
    title = f"PyTorch for {names} (torchpin, catalog of {catalog.date})"
    files = chosen(wheels, keep, catalog)
    text = left_out(nameless, files, keep, args)
    if text and not args.quiet:
        note(text)
    return Listed(files, title)


def left_out(
    nameless: Iterable[tuple[Build, tuple[str, ...]]],
    wheels: Iterable[Wheel],
    keep: Filter,
    args: Arguments,
) -> str:
    """Return a note on the versions that run, and of which the catalog can name no file.

    Names would follow from those of other builds, digests from nothing.

    Args:
        nameless: builds, with the tags of their files.
        wheels: what is listed.
        keep: tells what runs.
        args: whether derived names are listed, and where the channels lie.
    """
    from torchpin.catalog.model import FAMILY
    from torchpin.plugin.choice import Wheel
    from torchpin.plugin.sources import without_login

    there = {(wheel.package, wheel.build.version) for wheel in wheels}
    missing: dict[str, list[str]] = {}
    for build, tags in nameless:
        package, version = build.package, build.version
        known = missing.get(package, [])
        if package not in FAMILY or (package, version) in there or version in known:
            continue
        for tag in tags:
            name = f"{package}-{build.full_version}-{tag.rstrip('t')}-{tag}-any.whl"
            if keep.level(Wheel(package, name, tag, build, "")) is not None:
                missing.setdefault(package, []).append(version)
                break
    if not missing:
        return ""
    told = [
        f"{package} {found[0]}"
        if len(found) == 1
        else f"{len(found)} versions of {package} to {found[-1]}"
        for package, found in missing.items()
    ]
    live = without_login(args.mirror or "https://download.pytorch.org/whl").rstrip("/")
    text = (
        f"left out: {', '.join(told)}: they are judged to run there too, but the catalog does not "
        f"know the names and digests of their files. `--from {live}` lists what the index has"
    )
    if args.include_unknown:
        return text
    return f"{text}; --include-unknown lists names that follow from other builds, without digests"


def gathered(source: str, args: Arguments, keep: Filter) -> Gathered:
    """Return the files of one source.

    Raises:
        UsageError: it cannot be read.
    """
    from torchpin.catalog.store import load_catalog
    from torchpin.plugin.plan import NO_LOGIN, places_of, without_logins
    from torchpin.plugin.sources import from_catalog, from_folder, from_index

    catalog = load_catalog()
    fleet = fleet_of(args, options_of(args))
    indexes = fleet.settings.indexes if fleet is not None else ()
    platforms = {target.group.platform for target in keep.targets}
    if source == "catalog":
        places, had_login = without_logins(places_of(indexes, args.mirror))
        if had_login and not args.quiet:
            note(NO_LOGIN)
        return from_catalog(catalog, places, platforms, derive=args.include_unknown)
    if source.startswith(("http://", "https://")):
        from torchpin.catalog.refresh.cache import Cache
        from torchpin.catalog.refresh.fetch import Fetcher, today

        fetcher = Fetcher(Cache(os.devnull, keeps=False), jobs=8, idle=20.0, today=today())
        worth = channels_worth(keep)
        return from_index(source, catalog, fetcher, worth, dict(indexes))
    if os.path.isdir(source):
        return from_folder(source, catalog)
    raise UsageError(
        f"--from {source!r} is neither catalog, an http(s) URL nor a folder",
        hint="write --from https://download.pytorch.org/whl",
    )


def channels_worth(keep: Filter) -> list[str]:
    """Return the channels that hold a torch for the fleet, as far as is known."""
    from torchpin.catalog.store import load_catalog
    from torchpin.plugin.choice import Wheel

    catalog = load_catalog()
    found: dict[str, None] = {}
    for build in catalog.builds("torch"):
        if build.home == "pypi" or build.channel in found:
            continue
        for tag in (*build.pythons, *build.pythons_inferred):
            name = f"torch-{build.full_version}-{tag.rstrip('t')}-{tag}-any.whl"
            if keep.level(Wheel("torch", name, tag, build, "")) is not None:
                found[build.channel] = None
                break
    return list(found)
