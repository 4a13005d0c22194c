"""torchpin on a pseudo-terminal, as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

LINKING = ("TERM_PROGRAM", "VTE_VERSION", "KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION")


def on_screen(
    folder: Path,
    *args: str,
    columns: int = 80,
    typed: bytes = b"",
    environ: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Return the exit code of torchpin in ``folder``, and what a terminal of ``columns`` is sent.

    Args:
        folder: the current folder.
        args: its arguments.
        columns: how wide the terminal is.
        typed: what the user types.
        environ: variables that are set; those that tell of a real terminal are not.
    """
    import fcntl
    import pty
    import struct
    import termios

    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    known = {key: value for key, value in os.environ.items() if key not in (*LINKING, "COLUMNS")}
    with subprocess.Popen(
        [sys.executable, "-m", "torchpin", *args],
        cwd=folder,
        stdin=writer,
        stdout=writer,
        stderr=writer,
        env={**known, **(environ or {})},
    ) as process:
        os.close(writer)
        os.write(reader, typed)
        parts: list[bytes] = []
        while True:
            try:
                part = os.read(reader, 65536)
            except OSError:  # Linux tells the end so
                break
            if not part:
                break
            parts.append(part)
        code = process.wait(timeout=60)
    os.close(reader)
    return code, b"".join(parts).decode().replace("\r\n", "\n")
