"""``torchpin index COMMAND``: a package index with the PyTorch that runs on the fleet."""

from __future__ import annotations

from torchpin.cli.subcommands import Group, run

COMMANDS = {
    "build": "write it as files for any web server: torchpin index build DIR",
    "serve": "serve it: torchpin index serve --port 8080",
}
"""Sub-command → one line; ``cli/index_<sub-command>.py`` holds it."""
GROUP = Group(
    "index", COMMANDS, "index needs a command", f"it is one of {', '.join(COMMANDS)}", width=7
)


def main(argv: list[str]) -> int:
    """Run a sub-command and return its exit code.

    Raises:
        UsageError: there is none of that name.
    """
    return run(GROUP, argv)
