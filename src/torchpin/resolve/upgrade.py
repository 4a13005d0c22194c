"""Where a torch release runs on a fleet, where not and why, and how far each target can go.

Nothing here knows of files: it is asked for targets and a version, and answers from the catalog.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.catalog.model import Build
from torchpin.evidence import INFERRED, MEASURED, PROOF
from torchpin.fleet.model import Target
from torchpin.judge.model import FAILS, PARTLY, RUNS_VIA_PTX, UNKNOWN, Reason
from torchpin.judge.verdict import if_there
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.resolve.horizon import best_build, open_channels
from torchpin.resolve.policy import channel_parts
from torchpin.resolve.space import LEVELS, PYPI, Space

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog

LATEST = "latest"
KINDS = {
    "python": "python",
    "driver": "driver",
    "driver-branch": "driver",
    "platform": "platform",
    "glibc": "platform",
    "macos": "platform",
}
"""Question of a judge → kind of obstacle; all others are questions about the GPU."""
OTHER_KIND = frozenset(("vendor", "cpu-build"))
"""Questions that a build for other hardware fails: it tells nothing of the right one."""
_WORDS = {level: word for word, level in LEVELS.items()}
_RELEASE = regex(r"v?(\d{1,4}(?:\.\d{1,6}){1,3})")


class Goal(NamedTuple):
    """The release that an upgrade leads to."""

    asked: str
    version: str
    """Public version; that of a series is its newest patch."""
    known: bool
    """False: the catalog has not seen it, and cannot say that it was never published."""


class Standing(NamedTuple):
    """What a release is on one target."""

    target: Target
    status: str
    """``runs``, ``runs-via-ptx``, ``partly``, ``fails`` or ``unknown``."""
    build: Build | None
    """The build to take; None where none runs as far as is known."""
    reasons: tuple[Reason, ...]
    """``fails``: what stands in the way, each proved. ``unknown``: what is not known, and what
    stands in the way of all builds that are proved to exist. Else what is less than certain.
    Of a build that runs if what is thought of its kernels is right, the last is ``unknown``."""
    maybe: tuple[str, ...] = ()
    """``unknown``: the channels of which it is not known whether they hold it; the newest two."""

    @property
    def proved(self) -> bool:
        """Whether nothing that matters is only thought to be so."""
        return self.status != UNKNOWN and all(one.status != UNKNOWN for one in self.reasons)


class Reach(NamedTuple):
    """How far a target can go."""

    target: Target
    last: Build | None
    """The newest release that is proved to run; None: none is."""
    following: str | None
    """The next release; None if ``last`` is the newest of all."""
    blocked: Reason | None
    """Why the next one does not run; None where that is not proved."""


def goal_of(asked: str, catalog: Catalog) -> Goal | None:
    """Return the release that ``--to`` means; None if it is no release and will be none.

    ``latest`` is the newest on PyPI; ``2.15`` the newest patch of that series.
    """
    from packaging.version import Version

    if asked == LATEST:
        return Goal(asked, catalog.newest("torch"), True)
    match = _RELEASE.fullmatch(asked.strip())
    if match is None:
        return None
    wanted = Version(match[1])
    known = [(Version(text), text) for text in catalog.versions("torch")]
    if len(wanted.release) == 2:
        series = [one for one in known if one[0].release[:2] == wanted.release]
        final = [one for one in series if not one[0].is_prerelease]
        if final:
            return Goal(asked, max(final)[1], True)
    for version, text in known:
        if version == wanted:
            return Goal(asked, text, True)
    told = catalog.existence("torch", match[1])
    if told.exists is False and told.evidence in PROOF:
        return None
    return Goal(asked, match[1], False)


def standing(space: Space, version: str, target: Target, asked: str | None = None) -> Standing:
    """Return what a release is on a target: its best build, or what stands in the way.

    ``asked`` is the channel that the target's files name: of equals its build is told of.
    """
    number = space.intern(target)
    build = best_build(space, version, number, asked=asked)
    if build is not None:
        status = _WORDS[space.level(build, number)]
        told = tuple(
            reason
            for reason in space.verdict(build, number).reasons
            if reason.status in (PARTLY, RUNS_VIA_PTX)
        )
        return Standing(target, status, build, told)
    platform = target.group.platform
    builds = [one for some in space.builds("torch", version, platform).values() for one in some]
    if not builds:
        return _without_builds(space, version, target)
    proved: list[tuple[Reason, ...]] = []
    doubts: list[Reason] = []
    for one in builds:
        reasons = space.judge(one, target).reasons
        found = tuple(r for r in reasons if r.status == FAILS and r.evidence in PROOF)
        if found:
            proved.append(found)
        else:
            doubts += [r for r in reasons if r.status in (UNKNOWN, FAILS)]
    level = lambda build, at: LEVELS[space.verdict(build, at).status]  # noqa: E731
    thought = best_build(space, version, number, level, asked=asked)
    if thought is not None:
        verdict = space.verdict(thought, number)
        told = tuple(r for r in verdict.reasons if r.status in (PARTLY, RUNS_VIA_PTX))
        return Standing(target, verdict.status, thought, (*told, _kernels_unread(thought)))
    if len(proved) < len(builds):
        return Standing(target, UNKNOWN, None, tuple(dict.fromkeys(doubts)))
    found = obstacles(_of_channel(space, version, target, asked) or proved)
    other_python = any(kind_of(reason) == "python" for reason in found)
    maybe = _maybe_elsewhere(space, version, target, announced_only=other_python)
    if not maybe:
        return Standing(target, FAILS, None, found)
    told = tuple(reason for reason in found if reason.question not in OTHER_KIND)
    return Standing(target, UNKNOWN, None, (_whether(space, version, target, maybe), *told), maybe)


def _of_channel(
    space: Space, version: str, target: Target, channel: str | None
) -> list[tuple[Reason, ...]]:
    """Return what is proved to stand in the way of the builds of a channel, announced ones too;
    nothing if they are for other hardware."""
    found: list[tuple[Reason, ...]] = []
    platform = target.group.platform
    for build in space.catalog.find("torch", version=version, channel=channel, platform=platform):
        if channel is None or build.home == PYPI or not space.usable(build):
            continue
        reasons = space.judge(if_there(build), target).reasons
        found.append(tuple(r for r in reasons if r.status == FAILS and r.evidence in PROOF))
    other = any(not some or any(r.question in OTHER_KIND for r in some) for some in found)
    return [] if other else found


def _kernels_unread(build: Build) -> Reason:
    """Return why a build that seems to run is none that a plan rests on: nobody read it."""
    lists = build.kernels
    held = ", ".join(f"sm_{one}" for one in lists.sass) if lists is not None else "these GPUs"
    text = f"{build.title} is thought to hold kernels for {held}, which is not proved"
    source = lists.source if lists is not None else build.source
    return Reason("kernels", UNKNOWN, text, INFERRED, source)


def _maybe_elsewhere(
    space: Space, version: str, target: Target, *, announced_only: bool
) -> tuple[str, ...]:
    """Return the channels that serve a target and may hold a release: the newest two.

    Whether a build that was announced is there or not: where it would fail, its channel is no hope.
    No channel has wheels for a Python that the others lack, unless they were announced so.
    """
    catalog = space.catalog
    announced: dict[str, bool] = {}
    for build in catalog.find("torch", version=version, platform=target.group.platform):
        if build.evidence not in PROOF and space.usable(build):
            fits = space.judge(if_there(build), target).status != FAILS
            announced[build.channel] = announced.get(build.channel, False) or fits
    found = [channel for channel, fits in announced.items() if fits]
    if not announced_only:
        others = open_channels(version, target._replace(python=None), catalog)
        found += [channel for channel in others if channel not in announced]
    return tuple(sorted(found, key=channel_parts)[-2:])


def _whether(space: Space, version: str, target: Target, names: tuple[str, ...]) -> Reason:
    """Return that it is not known whether channels hold a release."""
    told = space.catalog.existence(
        "torch", version, channel=names[-1], home="channel", platform=target.group.platform
    )
    thought = " (it is thought not to)" if told.exists is False else ""
    text = f"whether {' or '.join(names)} holds torch {version} is not known{thought}"
    return Reason("platform", UNKNOWN, text, INFERRED, told.source)


def _without_builds(space: Space, version: str, target: Target) -> Standing:
    platform = target.group.platform
    told = space.catalog.existence("torch", version, platform=platform)
    if told.exists is False and told.evidence in PROOF:
        text = f"torch {version} has no wheel for {platform}"
        reason = Reason("platform", FAILS, text, told.evidence, told.source)
        return Standing(target, FAILS, None, (reason,))
    text = f"whether torch {version} has a wheel for {platform} is not known"
    source = f"catalog of {space.catalog.date}"
    return Standing(target, UNKNOWN, None, (Reason("platform", UNKNOWN, text, INFERRED, source),))


def obstacles(builds: Iterable[tuple[Reason, ...]]) -> tuple[Reason, ...]:
    """Return what stands in the way, from the failures of each build.

    What all builds fail is named first; each question and GPU once, unless builds differ in it
    (the driver that each CUDA needs). Builds for other hardware say nothing if there are others.
    """
    every = list(builds)
    fitting = [some for some in every if not any(r.question in OTHER_KIND for r in some)]
    every = fitting or every
    by_question: dict[tuple[str, object], dict[str, Reason]] = {}
    held: dict[tuple[str, object], int] = {}
    for some in every:
        for key in dict.fromkeys((KINDS.get(r.question, "gpu"), r.gpu) for r in some):
            held[key] = held.get(key, 0) + 1
        for reason in some:
            key = (KINDS.get(reason.question, "gpu"), reason.gpu)
            by_question.setdefault(key, {}).setdefault(reason.text, reason)
    common = [key for key, count in held.items() if count == len(every)]
    chosen: list[Reason] = []
    for at in common or list(by_question):
        found = list(by_question[at].values())
        if at[0] == "driver":  # one for each floor
            floors = {reason.text.rpartition(": ")[2]: reason for reason in reversed(found)}
            chosen += reversed(floors.values())
        else:
            chosen += found[:1]
    return tuple(dict.fromkeys(chosen))


def kind_of(reason: Reason) -> str:
    """Return what an obstacle is one of: ``python``, ``gpu``, ``driver`` or ``platform``."""
    return KINDS.get(reason.question, "gpu")


def reach(space: Space, target: Target, asked: str | None = None) -> Reach:
    """Return the last release that runs on a target, and why the next one does not.

    ``asked``: as for ``standing``.
    """
    number = space.intern(target)
    versions = space.versions("torch")
    following: str | None = None
    for version in versions:
        build = best_build(space, version, number, asked=asked)
        if build is not None:
            return Reach(target, build, following, _obstacle(space, following, target, asked))
        following = version
    newest = versions[0] if versions else None
    return Reach(target, None, newest, _obstacle(space, newest, target, asked))


def _obstacle(
    space: Space, version: str | None, target: Target, asked: str | None
) -> Reason | None:
    """Return the first thing that is proved to stand in the way of a release."""
    if version is None:
        return None
    found = standing(space, version, target, asked)
    return found.reasons[0] if found.status == FAILS and found.reasons else None


def last_for_all(space: Space, targets: Iterable[Target]) -> str | None:
    """Return the newest release of which every target has a build that is proved to run."""
    numbers = list(dict.fromkeys(space.like(space.intern(target)) for target in targets))
    for version in space.versions("torch"):
        if all(best_build(space, version, number) is not None for number in numbers):
            return version
    return None


def newest_that_accepts(catalog: Catalog, package: str, torch: str) -> str | None:
    """Return the newest version of a package, of those whose METADATA are known, that takes a
    torch."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    found = []
    for version, specifier in catalog.pin_table(package).items():
        try:
            if SpecifierSet(specifier).contains(torch):
                found.append(Version(version))
        except InvalidSpecifier:
            continue
    return str(max(found)) if found else None


def without_wheel(catalog: Catalog, version: str, minors: Iterable[int]) -> dict[int, Reason]:
    """Return a reason for each Python 3.x of which PyPI has no wheel of a release."""
    builds = [one for one in catalog.find("torch", version=version, home="pypi") if one.pythons]
    held = {tag for one in builds for tag in one.pythons}
    if not builds or "py3" in held:
        return {}
    known = " ".join(sorted(held, key=lambda tag: (len(tag), tag)))
    first = min(builds, key=lambda one: one.evidence != MEASURED)
    text = f"wheels of torch {version} on PyPI: {known}"
    return {
        minor: Reason("python", FAILS, text, first.evidence, first.source)
        for minor in minors
        if f"cp3{minor}" not in held
    }
