"""The console script: ``torchpin`` and ``python -m torchpin``."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command line and leave with its exit code."""
    from torchpin.cli.main import guarded

    sys.exit(guarded(sys.argv[1:]))


if __name__ == "__main__":
    run()
