"""One build on one target, by the judge, with the existence of the build as one more question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.catalog.model import Build
from torchpin.evidence import INFERRED, PROOF
from torchpin.fleet.model import NodeGroup, Target
from torchpin.judge.model import UNKNOWN, Reason
from torchpin.judge.verdict import combine, if_there, judge
from torchpin.matrix.model import Judged
from torchpin.resolve.policy import channel_parts
from torchpin.resolve.space import ROOT

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog

_KINDS = ("cpu", "cuda", "rocm", "xpu")


def existence(build: Build) -> tuple[Reason, ...]:
    """Return a reason where nothing proves that the build is there; else nothing.

    The judge answers for a build as if it were there.
    """
    if build.evidence in PROOF:
        return ()
    text = f"that {build.title} was published is not proved"
    return (Reason("exists", UNKNOWN, text, INFERRED, build.source),)


def judged(build: Build, group: NodeGroup) -> Judged:
    """Return the verdict on a build for a group: it must run on each of its Pythons.

    Whether a build that may not be there is absent or fails comes to the same: it does not run.
    """
    reasons: list[Reason] = []
    left_out: list[str] = []
    for python in group.pythons or (None,):
        verdict = judge(if_there(build), Target(group, python))
        reasons += verdict.reasons
        left_out += verdict.leaves_out
    status, told = combine([*reasons, *existence(build)])
    return Judged(build, status, told, tuple(dict.fromkeys(left_out)))


def offered(builds: Iterable[Build]) -> tuple[Build, ...]:
    """Return the builds that an installer could be given by an index of its own: no yanked one,
    none that lies at the root of the host alone, and each place once.

    The order is that of cells: PyPI's first, then channels by kind and number.
    """
    found = [
        build
        for build in builds
        if not build.yanked and build.channel != ROOT and "/" not in build.channel
    ]
    return tuple(sorted(found, key=_order))


def _order(build: Build) -> tuple[bool, int, int, int, str, str]:
    kind, major, minor = channel_parts(build.channel)
    rank = _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
    return (build.home != "pypi", rank, major, minor, build.channel, build.full_version)


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a release: ``2.14.1`` → ``(2, 14, 1)``."""
    from packaging.version import Version

    return Version(version).release


def releases(
    package: str, catalog: Catalog, *, since: str | None = None, every: bool = False
) -> tuple[str, ...]:
    """Return the releases to show, ascending: from ``since`` on, of each minor the newest patch
    unless ``every``.
    """
    first = release(since) if since else ()
    here = {build.version for build in offered(catalog.builds(package))}
    wanted = [v for v in catalog.versions(package) if v in here and release(v) >= first]
    if every:
        return tuple(wanted)
    return tuple({release(version)[:2]: version for version in wanted}.values())
