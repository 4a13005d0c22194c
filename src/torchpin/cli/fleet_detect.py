"""``torchpin fleet detect``: a profile of this machine."""

from __future__ import annotations

from torchpin.cli.fleet_output import EXIT_CODES, add_profile_output, check_options, deliver
from torchpin.cli.parser import Parser
from torchpin.cli.terminal import note
from torchpin.report.style import clean


def parser() -> Parser:
    """Return the parser of ``fleet detect``."""
    made = Parser(
        "fleet detect",
        "Write a fleet profile of this machine: its GPUs, driver, system and Python.",
        EXIT_CODES,
    )
    add_profile_output(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``fleet detect`` and return its exit code.

    Raises:
        UsageError: the profile cannot be written.
    """
    args = parser().parse(argv)
    check_options(args)
    from torchpin.fleet.detect import detect
    from torchpin.fleet.importers.fold import fold

    found = detect()
    if not args.quiet:
        for text in found.notes:
            note(clean(text))
    return deliver(args, fold([found]), "Written by `torchpin fleet detect` on this machine.")
