"""``torchpin baseline COMMAND``: findings that are known and wait, so that new ones stand out."""

from __future__ import annotations

from torchpin.cli.subcommands import Group, run

COMMANDS = {
    "create": "write down what check finds today",
    "prune": "take out what has been mended since",
}
"""Sub-command → one line; ``cli/baseline_<sub-command>.py`` holds it."""
GROUP = Group(
    "baseline", COMMANDS, "baseline needs a command", f"it is one of {', '.join(COMMANDS)}"
)


def main(argv: list[str]) -> int:
    """Run a sub-command and return its exit code.

    Raises:
        UsageError: there is none of that name.
    """
    return run(GROUP, argv)
