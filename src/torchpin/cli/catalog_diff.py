"""``torchpin catalog diff``: how two catalogs differ."""

from __future__ import annotations

import os

from torchpin.catalog.store import Catalog, load_catalog
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser, add_output
from torchpin.cli.terminal import out, style
from torchpin.errors import UsageError


def parser() -> Parser:
    """Return the parser of ``catalog diff``."""
    made = Parser(
        "catalog diff",
        "Say how two catalogs differ: builds, what is known of them, channels, pins, drivers.\n"
        "A catalog is a folder, a wheel of torchpin, or one of these words: shipped (with this\n"
        "torchpin), user (what `catalog refresh` made).",
        "exit code: 0 they are equal · 1 they differ · 2 one of them cannot be read",
    )
    made.add_argument("old", metavar="OLD", help="a folder, torchpin-….whl, shipped or user")
    made.add_argument("new", metavar="NEW", help="likewise")
    add_output(made, ("text", "json", "markdown"))
    made.add_argument(
        "--markdown",
        dest="output_format",
        action="store_const",
        const="markdown",
        help="the same as --output-format markdown: the body of a pull request",
    )
    return made


def main(argv: list[str]) -> int:
    """Run ``catalog diff`` and return its exit code.

    Raises:
        UsageError: one of the catalogs does not exist.
        CatalogError: one of them cannot be read.
    """
    args = parser().parse(argv)
    import tempfile

    from torchpin.catalog.diff import compare
    from torchpin.report import catalog_diff as report

    with tempfile.TemporaryDirectory(prefix="torchpin-diff-") as folder:
        sides = []
        for number, name in enumerate((args.old, args.new)):
            place = os.path.join(folder, str(number))
            os.mkdir(place)
            sides.append(_catalog(name, place))
        found = compare(sides[0], sides[1], (_name(args.old), _name(args.new)))
    if args.output_format == "json":
        out(report.to_json(found))
    elif args.output_format == "markdown":
        out(report.markdown(found))
    else:
        out(report.text(found, style(no_color=args.no_color)))
    return FINDINGS if found.entries else CLEAN


def _name(name: str) -> str:
    return os.path.basename(os.path.normpath(name))


def _catalog(name: str, place: str) -> Catalog:
    """Return the catalog of a name; a wheel is unpacked into ``place``."""
    if name == "shipped":
        return load_catalog("shipped")
    if name == "user":
        from torchpin.catalog.location import user_catalog

        folder = user_catalog()
        if folder is None:
            raise UsageError(
                "there is no catalog of your own", hint="`torchpin catalog refresh` makes one"
            )
        return Catalog(folder)
    if os.path.isdir(name):
        if not os.path.exists(os.path.join(name, "catalog.json")):
            raise UsageError(f"no catalog lies in {name}", hint="it would hold catalog.json")
        return Catalog(name)
    if not os.path.exists(name):
        raise UsageError(
            f"no such folder or wheel: {name}", hint="or one of the words shipped and user"
        )
    from torchpin.catalog.diff import open_wheel

    return Catalog(open_wheel(name, place))
