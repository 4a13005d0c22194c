"""How far a target can go: the last release that runs on it, and what stands in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torchpin.catalog.model import Build
from torchpin.evidence import PROOF
from torchpin.fleet.model import Gpu, NodeGroup, Target
from torchpin.judge.model import FAILS, Reason
from torchpin.judge.verdict import if_there, judge
from torchpin.named import NamedTuple
from torchpin.resolve.policy import key_cost
from torchpin.resolve.space import AT_MOST_PARTLY, PYPI, Space

if TYPE_CHECKING:
    from torchpin.catalog.drivers import Drivers
    from torchpin.catalog.store import Catalog


class Horizon(NamedTuple):
    """The last torch release that runs on a target."""

    last_version: str | None
    """None: none does, as far as is proved."""
    last_build: Build | None
    """Its build: PyPI's own if that runs, else the channel nearest to it."""
    newest_version: str
    """The newest torch that was published."""
    blocked_by: Reason | None
    """Why the newest does not run there; None if it does, or if that is not proved."""


def horizon(target: Target, catalog: Catalog, space: Space | None = None) -> Horizon:
    """Return the last torch release that runs on a target, with all that the target declares."""
    space = space or Space(catalog)
    number = space.intern(target)
    versions = space.versions("torch")
    newest = versions[0]
    for version in versions:
        build = best_build(space, version, number)
        if build is not None:
            blocked = None if version == newest else block(space, newest, number)
            return Horizon(version, build, newest, blocked)
    return Horizon(None, None, newest, block(space, newest, number))


def best_build(
    space: Space,
    version: str,
    number: int,
    level: Callable[[Build, int], int] | None = None,
    *,
    asked: str | None = None,
) -> Build | None:
    """Return the build of a torch version to take on a target (by number); None: none runs.

    ``level`` tells how well a build runs; default: that of the space, which wants proof. Of
    builds that run equally well that of the channel ``asked`` comes first.
    """
    target = space.targets[number]
    level = level or space.level
    keys = space.builds("torch", version, target.group.platform)
    pypi = keys.get(PYPI)
    default = pypi[0].channel if pypi and pypi[0].cuda else None
    good = [
        (
            found,
            key != asked,
            key_cost(
                key,
                build.channel,
                current=None,
                default=default,
                cpu_only=not target.group.gpus,
            ),
            build,
        )
        for key, builds in keys.items()
        for build in builds
        if (found := level(build, number)) <= AT_MOST_PARTLY
    ]
    return min(good, key=lambda one: one[:3])[3] if good else None


def block(space: Space, version: str, number: int, key: str | None = None) -> Reason | None:
    """Return a proved reason why a torch version does not run on a target, PyPI's build first.

    None if some build of it is not proved to fail. With ``key``, only that channel's build
    is looked at.
    """
    target = space.targets[number]
    keys = space.builds("torch", version, target.group.platform)
    first: Reason | None = None
    for name in sorted(keys, key=lambda k: (k != PYPI, k)):
        if key is not None and name != key:
            continue
        for build in keys[name]:
            # Whether an announced build is there or not: it does not run if its kernels do not.
            reasons = [
                reason
                for reason in space.judge(if_there(build), target).reasons
                if reason.status == FAILS and reason.evidence in PROOF
            ]
            if not reasons:
                return None
            first = first or reasons[0]
    return first


def open_channels(
    version: str, target: Target, catalog: Catalog, drivers: Drivers | None = None
) -> tuple[str, ...]:
    """Return the channels that serve a target and may hold a release: it is not known."""
    platform = target.group.platform
    found = []
    for channel in catalog.channels():
        if channel == "cpu":
            continue
        known = catalog.existence(
            "torch", version, channel=channel, home="channel", platform=platform
        )
        if known.exists is False and known.evidence in PROOF:
            continue
        builds = catalog.find("torch", channel=channel, home="channel", platform=platform)
        if builds and judge(if_there(builds[-1]), target, drivers).status != FAILS:
            found.append(channel)
    return tuple(found)


def last_release(
    gpu: Gpu, catalog: Catalog, platform: str = "linux-x86_64", space: Space | None = None
) -> Build | None:
    """Return the newest torch build on a platform with kernels for a GPU, or None.

    Python and driver play no part: it tells what the wheels hold.
    """
    target = Target(NodeGroup(gpu.name, (gpu,), (), platform), None)
    return horizon(target, catalog, space).last_build
