"""``torchpin resolve --write DIR``: each set as a requirements file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from torchpin.cli.init import write_new
from torchpin.errors import UsageError
from torchpin.report.lines import requirement_lines, unique
from torchpin.resolve.model import Plan

LONGEST = 60
"""Characters of a file name that is made of the names of groups."""


def write_sets(folder: str, plans: Sequence[Plan], client: str, date: str) -> tuple[str, ...]:
    """Write a file for each plan, named for its groups, and return their paths.

    A file that holds the same already stays.

    Raises:
        UsageError: a file of that name holds something else, or cannot be written; then none is.
    """
    texts = {
        os.path.join(folder, name): set_text(plan, client, date)
        for name, plan in zip(file_names(plans), plans, strict=True)
    }
    new = [path for path, text in texts.items() if not _holds(path, text)]
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror or error}", path=folder) from error
    written: list[str] = []
    try:
        for path in new:
            write_new(path, texts[path])
            written.append(path)
    except UsageError:
        for path in written:
            os.unlink(path)
        raise
    return tuple(texts)


def set_text(plan: Plan, client: str, date: str) -> str:
    """Return the requirements file of a plan."""
    targets = "; ".join(unique(target.text for target in plan.targets))
    return "\n".join(
        (
            f"# PyTorch for {targets}: by torchpin resolve, catalog of {date}.",
            "# Install it beside the rest: -r requirements.txt -r THIS",
            *requirement_lines(plan, client),
            "",
        )
    )


def file_names(plans: Sequence[Plan]) -> tuple[str, ...]:
    """Return a name for the file of each plan: ``volta.txt``, ``torch.txt`` for the only one."""
    if len(plans) == 1:
        return ("torch.txt",)
    groups = [unique(target.group.name for target in plan.targets) for plan in plans]
    names = ["-".join(re.sub(r"[^\w.-]+", "_", one) for one in names) for names in groups]
    if len(set(names)) < len(names):  # one group with several Pythons
        pythons = [unique(str(target.python or "") for target in plan.targets) for plan in plans]
        names = [f"{name}-py{'-'.join(these)}" for name, these in zip(names, pythons, strict=True)]
    if len(set(names)) < len(names) or max(map(len, names)) > LONGEST:
        names = [f"set-{number}" for number in range(1, len(plans) + 1)]
    return tuple(f"{name}.txt" for name in names)


def _holds(path: str, text: str) -> bool:
    """True if the file is there with this text.

    Raises:
        UsageError: it is there with another one, or cannot be read.
    """
    try:
        with open(path, "rb") as file:
            same = file.read() == text.encode()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror or error}", path=path) from error
    if not same:
        raise UsageError(
            "is there already, and holds something else",
            path=path,
            hint="remove it, or write elsewhere",
        )
    return True
