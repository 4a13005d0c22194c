"""``torchpin catalog COMMAND``: look the catalog up, renew it, check it, compare two."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import cast

from torchpin.cli.main import CLEAN, Command
from torchpin.cli.parser import nearest
from torchpin.errors import UsageError

COMMANDS = {
    "show": "what is known of a package: torchpin catalog show torch 2.14.1",
    "refresh": "renew it from PyPI and PyTorch's channels",
    "verify": "measure wheels again and say which facts do not hold",
    "diff": "say how two catalogs differ",
}
"""Sub-command → one line; ``cli/catalog_<sub-command>.py`` holds it."""


def help_text() -> str:
    """Return the help of ``torchpin catalog``."""
    rows = "\n".join(f"  {name:<9}{text}" for name, text in COMMANDS.items())
    return (
        "usage: torchpin catalog COMMAND [OPTIONS]\n\n"
        f"{rows}\n\n"
        "options of a command: torchpin catalog COMMAND --help\n"
    )


def load(name: str) -> Command:
    """Return the module of a sub-command.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in COMMANDS:
        hint = nearest(name, COMMANDS) or f"it is one of {', '.join(COMMANDS)}"
        what = f"unknown catalog command {name!r}" if name else "catalog needs a command"
        raise UsageError(what, hint=hint)
    return cast(Command, import_module(f"torchpin.cli.catalog_{name}"))


def main(argv: list[str]) -> int:
    """Run a sub-command and return its exit code.

    Raises:
        UsageError: there is none of that name.
    """
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(help_text())
        return CLEAN
    return load(argv[0] if argv else "").main(argv[1:])
