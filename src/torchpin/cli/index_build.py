"""``torchpin index build``: the fleet's index as files for any web server or bucket."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from torchpin.cli.index_files import add_files, listed
from torchpin.cli.main import CLEAN, FINDINGS
from torchpin.cli.parser import Parser
from torchpin.cli.terminal import out
from torchpin.errors import TorchpinError, UsageError

if TYPE_CHECKING:
    from torchpin.cli.index_files import Listed

MARK = "torchpin-index.txt"
"""Tells that a folder was made here and may be replaced."""


def parser() -> Parser:
    """Return the parser of ``index build``."""
    made = Parser(
        "index build",
        "Write a package index that holds the PyTorch family as it runs on the fleet, and nothing\n"
        "else: pages in HTML (PEP 503) and JSON (PEP 691) that link to the files where they lie.\n"
        "What fails on a target that would install it is never listed; of each version of torch\n"
        "one build is, so that no two packages come from different channels.",
        "exit code: 0 written · 1 no known file runs on the fleet · 2 wrong usage",
    )
    made.add_argument("folder", metavar="DIR", help="where; a former index there is replaced")
    add_files(made)
    return made


def main(argv: list[str]) -> int:
    """Run ``index build`` and return its exit code."""
    args = parser().parse(argv)
    if os.path.lexists(args.folder) and not may_replace(args.folder):
        raise UsageError(f"{args.folder} is not an index of torchpin: it is left as it is")
    found = listed(args)
    if not found.wheels:
        sys.stderr.write(nothing(args.group))
        return FINDINGS
    write(args.folder, found)
    out(summary(args.folder, found))
    return CLEAN


def nothing(group: str | None) -> str:
    """Return what is said where nothing is to be listed."""
    more = "" if group else "; --group NAME makes one for a group"
    return f"torchpin: no known file runs on every target that would install it{more}\n"


def summary(folder: str, found: Listed) -> str:
    """Return what an index holds, the newest version of each package first."""
    lines = []
    for package in dict.fromkeys(wheel.package for wheel in found.wheels):
        mine = [wheel for wheel in found.wheels if wheel.package == package]
        files = {wheel.filename for wheel in mine}
        newest = mine[-1].build.full_version
        count = "1 file" if len(files) == 1 else f"{len(files)} files"
        lines.append(f"{folder}/{package}/: {count}, newest {newest}\n")
    return "".join(lines)


def may_replace(folder: str) -> bool:
    """Tell whether a folder is empty or was made here."""
    if not os.path.isdir(folder):
        return False
    return not os.listdir(folder) or os.path.isfile(os.path.join(folder, MARK))


def write(folder: str, found: Listed) -> None:
    """Write the index beside its place, then put it there.

    Raises:
        TorchpinError: it cannot be written; what was there stays.
    """
    from torchpin.plugin.pages import pages

    target = os.path.realpath(folder)
    new, old = f"{target}.{os.getpid()}.new", f"{target}.{os.getpid()}.old"
    try:
        os.makedirs(new)
        texts = {**pages(found.wheels, found.title), MARK: f"{found.title}\n"}
        for path, text in texts.items():
            place = os.path.join(new, *path.split("/"))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        local = {wheel.filename: wheel.path for wheel in found.wheels if wheel.path is not None}
        if local:
            os.makedirs(os.path.join(new, "files"))
        for name, source in local.items():
            take(source, os.path.join(new, "files", name))
        if os.path.lexists(target):
            os.rename(target, old)
        os.rename(new, target)
    except BaseException as error:  # an interrupt must not lose the former index either
        if os.path.isdir(old) and not os.path.lexists(target):
            os.rename(old, target)
        if isinstance(error, OSError):
            raise TorchpinError(f"cannot be written: {error.strerror}", path=folder) from error
        raise
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def take(source: str, target: str) -> None:
    """Give a file a second name, or copy it where the file system has no such thing."""
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copyfile(source, target)
