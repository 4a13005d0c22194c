"""Which of the wheels that a lock lists installs on a target, by their file names (PEP 425)."""

from __future__ import annotations

from torchpin.documents.project import LockedPackage, LockedWheel
from torchpin.fleet.model import Python, Target
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.select.environments import tag_admits
from torchpin.select.wheels import wheel_name

_MANYLINUX = regex(r"manylinux_(\d+)_(\d+)_(.+)")
_LEGACY = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_MACOS = regex(r"macosx_(\d+)_(\d+)_(.+)")
_WINDOWS = {"win_amd64": "windows-x86_64", "win_arm64": "windows-arm64"}
_UNIVERSAL = ("universal2", "universal")


class Place(NamedTuple):
    """One platform tag of a file name."""

    platform: str
    """One of ``catalog.model.PLATFORMS``, ``any``, or ``""`` for another."""
    glibc: tuple[int, int] | None = None
    musl: bool = False
    macos: tuple[int, int] | None = None


class Fit(NamedTuple):
    """What the wheels of a locked package say about a target."""

    wheel: LockedWheel | None
    """One that installs; None if none does."""
    kind: str = ""
    """Why none does: ``platform``, ``python``, ``glibc``, ``macos`` (too old); else ``""``."""
    pythons: tuple[str, ...] = ()
    """Python tags of the wheels for the platform."""
    platforms: tuple[str, ...] = ()
    """Platforms that the lock lists wheels for."""
    floor: str | None = None
    """Lowest glibc or macOS that the wheels for the platform and the Python need."""


def places(file: str) -> tuple[Place, ...]:
    """Return what the platform tags of a wheel's file name say."""
    tags = file.removesuffix(".whl").rpartition("-")[2].split(".")
    return tuple(place for tag in tags for place in _places(tag))


def _places(tag: str) -> tuple[Place, ...]:
    if tag == "any":
        return (Place("any"),)
    if tag in _WINDOWS:
        return (Place(_WINDOWS[tag]),)
    found = _MACOS.fullmatch(tag)
    if found is not None:
        floor = (int(found[1]), int(found[2]))
        machines = ("arm64", "x86_64") if found[3] in _UNIVERSAL else (found[3],)
        return tuple(Place(f"macos-{machine}", macos=floor) for machine in machines)
    found = _MANYLINUX.fullmatch(tag)
    if found is not None:
        return (Place(f"linux-{found[3]}", glibc=(int(found[1]), int(found[2]))),)
    start, _, machine = tag.partition("_")
    if start in _LEGACY:
        return (Place(f"linux-{machine}", glibc=_LEGACY[start]),)
    if start == "musllinux":
        return (Place(f"linux-{'_'.join(machine.split('_')[2:])}", musl=True),)
    return (Place(f"linux-{machine}"),) if start == "linux" else (Place(""),)


def _version(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    numbers = [int(part) for part in text.split(".") if part.isdigit()]
    return (*numbers, 0)[:2] if numbers else None


def _admits(tags: tuple[str, ...], python: Python | None) -> bool:
    return python is None or any(tag_admits(tag, python) for tag in tags)


def fit(package: LockedPackage, target: Target) -> Fit:
    """Return whether a wheel of ``package`` installs on ``target``, and if none why not."""
    group = target.group
    pythons: list[str] = []
    platforms: list[str] = []
    floors: list[tuple[int, ...]] = []
    chosen: LockedWheel | None = None
    here = admitted = False
    for wheel in package.wheels:
        name = wheel_name(wheel.filename)
        if name is None:
            continue
        for place in places(wheel.filename):
            if place.platform and place.platform not in platforms:
                platforms.append(place.platform)
            if place.platform not in (group.platform, "any"):
                continue
            here = True
            pythons += [tag for tag in name.pythons if tag not in pythons]
            if not _admits(name.pythons, target.python):
                continue
            admitted = True
            floor = place.glibc or place.macos
            if floor is not None:
                floors.append(floor)
            if place.platform == "any" or _old_enough(place, target):
                chosen = chosen or wheel
    lowest = ".".join(map(str, min(floors))) if floors else None
    kind = ""
    if chosen is None:
        late = "macos" if group.platform.startswith("macos") else "glibc"
        kind = late if admitted else "python" if here else "platform"
    return Fit(chosen, kind, tuple(pythons), tuple(platforms), lowest)


def _old_enough(place: Place, target: Target) -> bool:
    group = target.group
    if group.platform.startswith("linux"):
        if group.musl or place.musl:
            return group.musl and place.musl
        has = _version(group.glibc)
        return place.glibc is None or has is None or place.glibc <= has
    has = _version(group.macos)
    return place.macos is None or has is None or place.macos <= has
