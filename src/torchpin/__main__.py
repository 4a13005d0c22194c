"""The console script: ``torchpin`` and ``python -m torchpin``."""

from __future__ import annotations

import gc
import os
import sys


def run() -> None:
    """Run the command line and leave with its exit code.

    A run is short and makes few reference cycles: the collector would take a tenth of its time,
    and freeing every object at the end another; both are saved (mypy leaves in the same way).
    """
    gc.set_threshold(100_000, 50, 100)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may follow on the line
        from torchpin.cli.complete import answer

        answer()
    from torchpin.cli.main import guarded

    code = guarded(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # the reader is gone or the disk is full; guarded() has said so
            continue
    os._exit(code)


if __name__ == "__main__":
    run()
