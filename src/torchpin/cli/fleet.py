"""``torchpin fleet COMMAND``: show the declared fleet, import one, look at this machine."""

from __future__ import annotations

from torchpin.cli.subcommands import Group, run

COMMANDS = {
    "show": "the declared fleet as torchpin understands it",
    "import": "write a profile from what nvidia-smi, kubectl, Slurm … print",
    "detect": "write a profile of this machine",
}
"""Sub-command → one line; ``cli/fleet_<sub-command>.py`` holds it."""
GROUP = Group("fleet", COMMANDS, "fleet needs a command", f"it is one of {', '.join(COMMANDS)}")


def main(argv: list[str]) -> int:
    """Run a sub-command and return its exit code.

    Raises:
        UsageError: there is none of that name.
    """
    return run(GROUP, argv)
