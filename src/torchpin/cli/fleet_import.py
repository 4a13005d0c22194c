"""``torchpin fleet import``: a profile from what other tools print about the machines."""

from __future__ import annotations

import os
import sys

from torchpin.cli.fleet_output import EXIT_CODES, add_profile_output, check_options, deliver
from torchpin.cli.parser import Parser
from torchpin.cli.terminal import note
from torchpin.errors import UsageError
from torchpin.report.style import clean

_KINDS = ("nvidia-smi", "rocm-smi", "amd-smi", "kubernetes", "slurm", "ansible")


def parser() -> Parser:
    """Return the parser of ``fleet import``."""
    made = Parser(
        "fleet import",
        "Write a fleet profile from what nvidia-smi, kubectl, Slurm … print.",
        EXIT_CODES,
    )
    made.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="output of `nvidia-smi -q -x`, `kubectl get nodes -o json`, `scontrol show nodes`,\n"
        "`ansible all -m setup` …; - reads standard input",
    )
    made.add_argument(
        "--from",
        dest="kind",
        choices=_KINDS,
        metavar="KIND",
        help=f"what wrote it: {', '.join(_KINDS)} (default: its content tells)",
    )
    made.add_argument(
        "--gpu",
        action="append",
        default=[],
        metavar="NAME",
        help="the GPU of machines of which the input does not tell it; none: they have no GPU\n"
        "(repeat for more)",
    )
    add_profile_output(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``fleet import`` and return its exit code.

    Raises:
        UsageError: an input cannot be read, or nothing in it is known.
        ConfigError: a GPU of ``--gpu`` is unknown.
    """
    args = parser().parse(argv)
    check_options(args)
    files: list[str] = args.files
    if files.count("-") > 1:
        raise UsageError("- (standard input) can be read once only")
    gpus = _gpus(args.gpu)
    from torchpin.fleet.importers.fold import fold
    from torchpin.fleet.importers.recognise import read

    inputs = []
    for path in files:
        found = read(read_bytes(path), path, args.kind)
        inputs.append(found)
        if not args.quiet:
            for text in found.notes:
                note(f"{clean(path)}: {clean(text)}")
    names = ", ".join("standard input" if path == "-" else os.path.basename(path) for path in files)
    return deliver(args, fold(inputs, gpus), f"Written by `torchpin fleet import` from {names}.")


def _gpus(options: list[str]) -> tuple[str, ...] | None:
    from torchpin.fleet.gpus import find_gpu

    names = [name.strip() for text in options for name in text.split(",") if name.strip()]
    if not names:
        return None
    if [name.lower() for name in names] == ["none"]:
        return ()
    for name in names:
        find_gpu(name)
    return tuple(names)


def read_bytes(path: str) -> bytes:
    """Return the bytes of an input, one more than the most at most.

    Raises:
        UsageError: it cannot be read.
    """
    from torchpin.fleet.importers.text import MOST_BYTES

    if path == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    if os.path.isdir(path):
        raise UsageError("is a folder: name its files", path=path)
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", path=path) from error
    except ValueError as error:  # a NUL in the name
        raise UsageError("is no file name", path=path) from error
