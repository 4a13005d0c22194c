"""What changes where standard output is a terminal of 80 columns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def on_terminal(folder: Path, *args: str, columns: int = 80) -> str:
    """Return what torchpin writes to a terminal, without its colours."""
    import fcntl
    import pty
    import struct
    import termios

    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "torchpin", *args]
    with subprocess.Popen(command, cwd=folder, stdout=writer, stderr=writer):
        os.close(writer)
        parts: list[bytes] = []
        while True:
            try:
                part = os.read(reader, 65536)
            except OSError:  # Linux tells the end so
                break
            if not part:
                break
            parts.append(part)
    os.close(reader)
    text = b"".join(parts).decode().replace("\r\n", "\n")
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize(
    "args",
    [
        ("check",),
        ("show",),
        ("resolve",),
        ("fix", "--unsafe-fixes"),
        ("fleet", "show", "--gpu", "V1000"),
        ("check", "--isolated"),
    ],
    ids=" ".join,
)
def test_reports_fit_the_terminal(tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.15.0\ntorchvision==0.29.0\n")
    (tmp_path / "torchpin.toml").write_text(
        '[fleet.main]\ngpus = ["V100", "A100"]\ndriver = "550"\npython = "3.11"\n'
    )
    text = on_terminal(tmp_path, *args)
    assert [line for line in text.split("\n") if len(line) > 80] == []
    wide = on_terminal(tmp_path, *args, columns=4000)
    if args[0] != "fix":
        assert text.split() == wide.split()
