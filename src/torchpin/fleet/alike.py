"""Targets that are equal in all that matters to installers and judges."""

from __future__ import annotations

from torchpin.fleet.model import Target

NAME = "\x00"
"""Stands in a likeness for the name of the group; texts about it hold it where the name belongs."""


def likeness(target: Target) -> Target:
    """Return what installers and judges see of a target: its name and its places left out.

    Two targets with one likeness get the same builds and the same verdicts, so one of them is
    looked at for all.
    """
    group = target.group._replace(
        name=NAME, files=(), extras=(), dependency_groups=(), path="", line=0, settings=()
    )
    return Target(group, target.python)


def named(text: str, target: Target) -> str:
    """Return a text about the likeness of a target as one about the target."""
    return text.replace(NAME, target.group.name) if NAME in text else text
