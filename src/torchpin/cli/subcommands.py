"""Commands that are a word for several: ``torchpin catalog COMMAND`` and its like."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from torchpin.cli.main import CLEAN
from torchpin.cli.parser import nearest
from torchpin.errors import UsageError
from torchpin.named import NamedTuple

if TYPE_CHECKING:
    from torchpin.cli.main import Command


class Group(NamedTuple):
    """A command of which each sub-command is a module, ``cli/<name>_<sub-command>.py``."""

    name: str
    commands: Mapping[str, str]
    """Sub-command → one line."""
    missing: str
    """What is said where none is named."""
    choice: str
    """The hint where the named one is like none."""
    width: int = 9
    """Columns of the names in the help."""


def help_text(group: Group) -> str:
    """Return the help of a group."""
    rows = "\n".join(f"  {name:<{group.width}}{text}" for name, text in group.commands.items())
    return (
        f"usage: torchpin {group.name} COMMAND [OPTIONS]\n\n"
        f"{rows}\n\n"
        f"options of a command: torchpin {group.name} COMMAND -h (--help: all)\n"
    )


def load(group: Group, name: str) -> Command:
    """Return the module of a sub-command.

    Raises:
        UsageError: there is none of that name.
    """
    if name not in group.commands:
        hint = nearest(name, group.commands) or group.choice
        what = f"unknown {group.name} command {name!r}" if name else group.missing
        raise UsageError(what, hint=hint)
    return cast("Command", import_module(f"torchpin.cli.{group.name}_{name}"))


def run(group: Group, argv: list[str]) -> int:
    """Run a sub-command and return its exit code.

    Raises:
        UsageError: there is none of that name.
    """
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(help_text(group))
        return CLEAN
    return load(group, argv[0] if argv else "").main(argv[1:])
