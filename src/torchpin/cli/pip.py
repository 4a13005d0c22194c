"""``torchpin pip -- …``: pip, held to the PyTorch that runs on a group of the fleet."""

from __future__ import annotations

from torchpin.cli import wrapper
from torchpin.cli.parser import Parser


def parser() -> Parser:
    """Return the parser of ``pip``: of what stands before ``--``."""
    return wrapper.parser("pip")


def main(argv: list[str]) -> int:
    """Run pip; return only where it is refused, or on Windows."""
    return wrapper.run("pip", argv)
