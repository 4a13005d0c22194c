"""``torchpin fleet COMMAND``: show the declared fleet, import one, look at this machine."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import cast

from torchpin.cli.main import CLEAN, Command
from torchpin.cli.parser import nearest
from torchpin.errors import UsageError

COMMANDS = {
    "show": "the declared fleet as torchpin understands it",
    "import": "write a profile from what nvidia-smi, kubectl, Slurm … print",
    "detect": "write a profile of this machine",
}
"""Sub-command → one line; ``cli/fleet_<sub-command>.py`` holds it."""


def help_text() -> str:
    """Return the help of ``torchpin fleet``."""
    rows = "\n".join(f"  {name:<9}{text}" for name, text in COMMANDS.items())
    return (
        "usage: torchpin fleet COMMAND [OPTIONS]\n\n"
        f"{rows}\n\n"
        "options of a command: torchpin fleet COMMAND --help\n"
    )


def load(name: str) -> Command:
    """Return the module of a sub-command.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in COMMANDS:
        hint = nearest(name, COMMANDS) or "write `torchpin fleet show`, `import` or `detect`"
        what = f"unknown fleet command {name!r}" if name else "fleet what?"
        raise UsageError(what, hint=hint)
    return cast(Command, import_module(f"torchpin.cli.fleet_{name}"))


def main(argv: list[str]) -> int:
    """Run a sub-command and return its exit code.

    Raises:
        UsageError: there is none of that name.
    """
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(help_text())
        return CLEAN
    return load(argv[0] if argv else "").main(argv[1:])
