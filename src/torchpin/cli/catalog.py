"""``torchpin catalog show``: what the catalog knows about a package."""

from __future__ import annotations

from torchpin.catalog.model import PLATFORMS, Build
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_output, nearest
from torchpin.cli.terminal import note, out, style
from torchpin.errors import UsageError


def parser() -> Parser:
    """Return the parser of ``catalog show``."""
    made = Parser(
        "catalog show",
        "Show the published builds of a package: Pythons, kernels, CUDA, evidence.",
        "exit code: 0 builds found · 1 none",
    )
    made.add_argument("package", metavar="PACKAGE", help="torch, torchvision, torchaudio …")
    made.add_argument("version", nargs="?", metavar="VERSION", help="2.14.1 or 2.14.1+cu126")
    made.add_argument("--channel", metavar="NAME", help="only builds of a channel: cu126, cpu")
    made.add_argument(
        "--platform", choices=PLATFORMS, metavar="NAME", help=f"one of {', '.join(PLATFORMS)}"
    )
    add_output(made, ("text", "json"))
    return made


def main(argv: list[str]) -> int:
    """Run ``catalog show`` and return its exit code."""
    if not argv or argv[0] not in ("show", "-h", "--help"):
        word = argv[0] if argv else ""
        hint = nearest(word, ("show",)) or "write `torchpin catalog show torch`"
        raise UsageError(
            f"unknown catalog command {word!r}" if word else "catalog what?", hint=hint
        )
    args = parser().parse(argv[1:] if argv[0] == "show" else argv)
    from torchpin.catalog.store import load_catalog

    catalog = load_catalog()
    package = args.package.lower().replace("_", "-")
    known = catalog.packages()
    if package not in known:
        raise UsageError(
            f"the catalog holds no package {args.package!r}",
            hint=nearest(package, known) or f"it holds {', '.join(known)}",
        )
    version, _, label = (args.version or "").partition("+")
    channel = args.channel or label or None
    if channel is not None and channel not in catalog.channels(package):
        hint = nearest(channel, catalog.channels(package))
        raise UsageError(f"the catalog knows no channel {channel!r} of {package}", hint=hint)
    found: tuple[Build, ...] = catalog.find(
        package, version=version or None, channel=channel, platform=args.platform
    )
    if args.output_format == "json":
        from torchpin.report import json_

        out(json_.catalog_show(found))
    else:
        from torchpin.report import tables

        out(tables.builds(found, style(no_color=args.no_color)))
        if not found and version and not args.quiet:
            existence = catalog.existence(package, version, channel=channel, platform=args.platform)
            words = {True: "it exists", False: "it was never published", None: "not known"}
            note(f"{words[existence.exists]} [{existence.evidence}] {existence.source}")
    return CLEAN if found else FINDINGS
