"""``torchpin catalog COMMAND``: look the catalog up, renew it, check it, compare two."""

from __future__ import annotations

from torchpin.cli.subcommands import Group, run

COMMANDS = {
    "show": "what is known of a package: torchpin catalog show torch 2.14.1",
    "refresh": "renew it from PyPI and PyTorch's channels",
    "verify": "measure wheels again and say which facts do not hold",
    "diff": "say how two catalogs differ",
}
"""Sub-command → one line; ``cli/catalog_<sub-command>.py`` holds it."""
GROUP = Group("catalog", COMMANDS, "catalog needs a command", f"it is one of {', '.join(COMMANDS)}")


def main(argv: list[str]) -> int:
    """Run a sub-command and return its exit code.

    Raises:
        UsageError: there is none of that name.
    """
    return run(GROUP, argv)
