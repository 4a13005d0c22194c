"""``torchpin catalog show``: what the catalog knows about a package."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torchpin.catalog.model import PLATFORMS
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_catalog, add_output, add_platform, nearest
from torchpin.cli.terminal import note, out, style
from torchpin.errors import UsageError

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog


def parser() -> Parser:
    """Return the parser of ``catalog show``."""
    made = Parser(
        "catalog show",
        "Show the published builds of a package: Pythons, kernels, CUDA, evidence.",
        "exit code: 0 builds found · 1 none · 2 unknown package, version or channel",
    )
    made.add_argument("package", metavar="PACKAGE", help="torch, torchvision, torchaudio …")
    made.add_argument("version", nargs="?", metavar="VERSION", help="2.14.1 or 2.14.1+cu126")
    made.add_argument(
        "--channel", metavar="NAME", help="only builds of a channel: cu126, cpu, pypi"
    )
    add_platform(made, f"one of {', '.join(PLATFORMS)}")
    add_catalog(made)
    add_output(made, ("text", "json"))
    return made


def main(argv: list[str]) -> int:
    """Run ``catalog show`` and return its exit code.

    Raises:
        UsageError: an unknown package, version or channel.
    """
    args = parser().parse(argv)
    from torchpin.catalog.show import holds, nearest_versions, show_rows
    from torchpin.catalog.store import load_catalog

    catalog = load_catalog()
    package, pinned, version = args.package.lower().replace("_", "-").partition("==")
    if pinned and not args.version:
        args.version = version  # as a requirements file writes it
    known = catalog.packages()
    if package not in known:
        raise UsageError(
            f"the catalog holds no package {args.package!r}",
            hint=_pins(catalog, package)
            or nearest(package, known)
            or f"it holds {', '.join(known)}",
        )
    version, _, label = (args.version or "").partition("+")
    if version and not holds(catalog.versions(package), version):
        around = ", ".join(nearest_versions(catalog.versions(package), version))
        raise UsageError(
            f"the catalog of {catalog.date} knows no {package} {version}",
            hint=f"the nearest are {around}; the newest is {catalog.newest(package) or 'unknown'}",
        )
    channels = (*catalog.channels(package), "pypi")
    for channel in (args.channel, label):
        if channel and channel not in channels:
            raise UsageError(
                f"the catalog knows no channel {channel!r} of {package}",
                hint=nearest(channel, channels) or f"it knows {', '.join(channels)}",
            )
    old = stale_note(catalog)
    rows = show_rows(catalog, package, args.version, args.channel, args.platform)
    if args.output_format == "json":
        from torchpin.report import json_

        out(json_.catalog_show(rows, (catalog.date, catalog.digest, bool(old))))
    else:
        from torchpin.report import builds

        report = builds.builds if version else builds.versions
        out(report(rows, style(no_color=args.no_color)))
        if not rows and version and not args.quiet:
            existence = catalog.existence(
                package, version, channel=args.channel or label or None, platform=args.platform
            )
            words = {True: "it exists", False: "it was never published", None: "not known"}
            note(f"{words[existence.exists]} [{existence.evidence}] {existence.source}")
    if old and not args.quiet:
        note(old)
    return CLEAN if rows else FINDINGS


def _pins(catalog: Catalog, package: str) -> str:
    """Return the newest pins of torch of a package of which nothing else is known, else ``""``."""
    from torchpin.catalog.diff import raw

    found = [row for row in raw(catalog, "pins.json")["pins"] if row[0] == package][-3:]
    told = ", ".join(f"{row[1]} torch{row[2]}" for row in found)
    return f"of {package} it holds only what it requires: … {told}" if found else ""


def stale_note(catalog: Catalog) -> str:
    """Return what to say if the catalog is older than the profile here allows, else ``""``.

    Raises:
        ConfigError: the profile is wrong.
        UsageError: ``TORCHPIN_TODAY`` holds no date.
    """
    from torchpin.catalog.staleness import DEFAULT_DAYS, is_stale, sentence, today
    from torchpin.fleet.profile import find_profile, load_profile

    now = today(os.environ)
    path = find_profile(os.getcwd())
    limit = load_profile(path).settings.catalog_max_age if path is not None else DEFAULT_DAYS
    return sentence(catalog.date, now) if is_stale(catalog.date, now, limit) else ""
