"""The machine beside the profile: which group it belongs to, and what is not as declared."""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.errors import UsageError
from torchpin.fleet.model import Fleet, Gpu, NodeGroup, Python
from torchpin.verify.machine import Here


def choose_group(fleet: Fleet | None, name: str | None, here: Here) -> tuple[NodeGroup | None, str]:
    """Return the group that this machine belongs to, and a note where that is not certain.

    Args:
        fleet: of the profile; None: there is none.
        name: of the group, as asked for; None: the group is found by GPUs, platform and driver.
        here: this machine.

    Raises:
        UsageError: there is no group of that name, or no profile.
    """
    if name is not None:
        return group_named(fleet, name), ""
    groups = fleet.groups if fleet is not None else ()
    if len(groups) == 1:
        return groups[0], ""
    fitting = [group for group in groups if _fits(group, here)]
    same = [group for group in fitting if group.driver == here.facts.get("driver")]
    if len(fitting) > 1 and len(same) == 1:
        return same[0], ""
    if len(fitting) == 1:
        return fitting[0], ""
    if not groups:
        return None, ""
    if fitting:
        names = " or ".join(group.name for group in fitting)
        return None, f"this machine may be of {names}: say which with --group"
    return None, "no group of the profile has the GPUs of this machine: say which with --group"


def group_named(fleet: Fleet | None, name: str) -> NodeGroup:
    """Return a group of the profile by its name.

    Raises:
        UsageError: there is no group of that name, or no profile.
    """
    groups = fleet.groups if fleet is not None else ()
    for group in groups:
        if group.name == name:
            return group
    names = ", ".join(group.name for group in groups)
    raise UsageError(
        f"--group {name}: the profile has no such group" if groups else "no fleet is declared",
        hint=f"its groups: {names}" if names else "run `torchpin init`, or leave --group out",
    )


def _fits(group: NodeGroup, here: Here) -> bool:
    kinds = [card.gpu for card in here.cards]
    return (
        group.platform == here.platform
        and bool(group.gpus) == bool(kinds)
        and all(gpu is not None and _declared(gpu, group) for gpu in kinds)
    )


def _declared(gpu: Gpu, group: NodeGroup) -> bool:
    """Tell whether a group has a GPU: by its name, or by its architecture where that is declared.

    Two names of one architecture are two kinds only if the profile names products.
    """
    return any(
        gpu.name == one.name or (one.name == one.arch and one.arch == gpu.arch)
        for one in group.gpus
    )


def differences(
    group: NodeGroup, here: Here, python: Python | None, version: str
) -> tuple[str, ...]:
    """Return what is here otherwise than the profile says of the group, one sentence a value.

    Args:
        group: the group.
        here: this machine.
        python: the Python that runs torch; None: it does not start.
        version: its version, for the sentence.
    """
    out = list(_gpus(group, here))
    for key in ("driver", "rocm", "glibc", "macos", "jetpack"):
        said, found = getattr(group, key), here.facts.get(key)
        if said is not None and found is not None and not _same(key, said, found):
            out.append(f"{key}: {found} here, {said} in the profile")
    if group.driver is not None and here.facts.get("driver") is None:
        out.append(f"driver: none here, {group.driver} in the profile")
    if group.platform != here.platform:
        out.append(f"platform: {here.platform} here, {group.platform} in the profile")
    musl = here.facts.get("libc") == "musl"
    if group.musl != musl and group.platform.startswith("linux"):
        names = ("glibc", "musl")
        out.append(f"libc: {names[musl]} here, {names[group.musl]} in the profile")
    if python is not None and group.pythons and python not in group.pythons:
        said = ", ".join(map(str, group.pythons))
        out.append(f"python: {version} here, {said} in the profile")
    return tuple(out)


def _gpus(group: NodeGroup, here: Here) -> Sequence[str]:
    declared = ", ".join(dict.fromkeys(gpu.name for gpu in group.gpus)) or "none"
    if not here.cards:
        return () if not group.gpus else (f"gpus: none here, {declared} in the profile",)
    odd = [card for card in here.cards if card.gpu is None or not _declared(card.gpu, group)]
    names = ", ".join(dict.fromkeys(card.host.name for card in odd))
    return (f"gpus: {names} here, {declared} in the profile",) if odd else ()


def _same(key: str, said: str, found: str) -> bool:
    """Tell whether a value is what the profile says; a branch (``550``) stands for its drivers."""
    if said == found:
        return True
    if key in ("driver", "rocm", "jetpack", "macos"):
        return found.startswith(said + ".")
    return False
