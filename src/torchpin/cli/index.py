"""``torchpin index COMMAND``: a package index with the PyTorch that runs on the fleet."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import cast

from torchpin.cli.main import CLEAN, Command
from torchpin.cli.parser import nearest
from torchpin.errors import UsageError

COMMANDS = {
    "build": "write it as files for any web server: torchpin index build DIR",
    "serve": "serve it: torchpin index serve --port 8080",
}
"""Sub-command → one line; ``cli/index_<sub-command>.py`` holds it."""


def help_text() -> str:
    """Return the help of ``torchpin index``."""
    rows = "\n".join(f"  {name:<7}{text}" for name, text in COMMANDS.items())
    return (
        "usage: torchpin index COMMAND [OPTIONS]\n\n"
        f"{rows}\n\n"
        "options of a command: torchpin index COMMAND --help\n"
    )


def main(argv: list[str]) -> int:
    """Run a sub-command and return its exit code.

    Raises:
        UsageError: there is none of that name.
    """
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(help_text())
        return CLEAN
    name = argv[0] if argv else ""
    if name not in COMMANDS:
        hint = nearest(name, COMMANDS) or f"it is one of {', '.join(COMMANDS)}"
        what = f"unknown index command {name!r}" if name else "index needs a command"
        raise UsageError(what, hint=hint)
    return cast(Command, import_module(f"torchpin.cli.index_{name}")).main(argv[1:])
