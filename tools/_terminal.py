"""What a command prints on a terminal of 80 columns, for the pages that show it."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

from tools.record_golden import Done

from torchpin.cli.main import guarded

COLUMNS = 80


class _Terminal(io.StringIO):
    """Standard output that keeps what is written, and is as wide as a terminal tells."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor


def on_terminal(*arguments: str) -> Done:
    """Run the command line of this checkout as a user of a terminal does, without colours."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        out, err = _Terminal(slave), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = guarded(list(arguments))
    finally:
        os.close(slave)
        os.close(master)
    return Done(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in ``folder``, with no settings of the environment that change what is printed."""
    kept, place = dict(os.environ), Path.cwd()
    os.environ.update(NO_COLOR="1", COLUMNS=str(COLUMNS))
    for name in ("CI", "GITHUB_ACTIONS", "FORCE_COLOR", "FORCE_HYPERLINK"):
        os.environ.pop(name, None)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(place)
        os.environ.clear()
        os.environ.update(kept)
