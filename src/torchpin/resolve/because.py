"""Why this plan: what it rests on and what was passed over, each line with its evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.catalog.existence import absence
from torchpin.catalog.model import Build
from torchpin.evidence import INFERRED, PUBLISHED, weakest
from torchpin.judge.model import FAILS, PARTLY, RUNS_VIA_PTX, UNKNOWN, Reason
from torchpin.resolve.horizon import block
from torchpin.resolve.policy import allowed, exact_version
from torchpin.resolve.space import PYPI, Space, key_of

if TYPE_CHECKING:
    from torchpin.resolve.solve import Aim, Found

Line = tuple[str, str, str]
"""(text, evidence, source)"""


def lines_of(found: Found, numbers: tuple[int, ...], aim: Aim) -> tuple[Line, ...]:
    """Return the because lines of a plan."""
    space = found.problem.space
    lines = [
        *_ground(space, found, numbers),
        *_passed_over(space, found, numbers, aim),
        *_companions(space, found, aim),
        *_dropped(space, aim),
    ]
    return tuple(dict.fromkeys(lines))


def _line(reason: Reason) -> Line:
    return (reason.text, reason.evidence, reason.source)


def _ground(space: Space, found: Found, numbers: tuple[int, ...]) -> list[Line]:
    """What the judge said of the builds: why torch runs, and all that is less than certain."""
    good: list[Line] = []
    weak: list[Line] = []
    for platform, package, build in found.builds:
        for number in numbers:
            if space.targets[number].group.platform != platform:
                continue
            for reason in space.verdict(build, number).reasons:
                if reason.status in (RUNS_VIA_PTX, PARTLY, UNKNOWN) or (
                    reason.question == "python" and reason.evidence == INFERRED
                ):
                    weak.append(_line(reason))
                elif reason.question in ("cuda-on-cpu", "triton") or (
                    package == "torch" and reason.question == "kernels"
                ):
                    good.append(_line(reason))
        if package != "torch":
            host = next(
                b for place, name, b in found.builds if (place, name) == (platform, "torch")
            )
            weak += [
                _line(reason)
                for reason in space.judge_pair(build, host)
                if reason.status in (PARTLY, UNKNOWN)
            ]
    return [*good, *weak]


def _passed_over(space: Space, found: Found, numbers: tuple[int, ...], aim: Aim) -> list[Line]:
    """Why not the version or the channel that comes first to mind."""
    torch = found.solution.torch
    first = aim.anchor or (space.versions("torch")[0] if space.versions("torch") else torch)
    if torch != first:
        return _why_not(space, first, numbers, aim)
    current = aim.current_channel
    lines: list[Line] = []
    for lane, key in found.solution.keys:
        if key == (current or PYPI):
            continue
        builds = space.builds("torch", torch, lane.name)
        if (current or PYPI) in builds:
            lines += _first_block(space, torch, numbers, current or PYPI)
        elif current is not None and current != PYPI:
            lines.append(_not_on(space, current, torch))
    return lines


def _not_on(space: Space, channel: str, version: str) -> Line:
    span = space.catalog.channel_span("torch", channel)
    if span is None:
        return (f"no channel {channel} with torch is known", INFERRED, "")
    if version in (span.first, span.last) or any(
        build.version == version for build in space.catalog.find("torch", channel=channel)
    ):
        return (
            f"nothing but inference says that torch {version} of {channel} runs on all targets",
            INFERRED,
            "",
        )
    text = f"{channel} holds torch {span.first} to {span.last}, not {version}"
    return (text, span.evidence, span.source)


def _why_not(space: Space, version: str, numbers: tuple[int, ...], aim: Aim) -> list[Line]:
    if version not in space.catalog.versions("torch"):
        return [(f"torch {version} was never published", PUBLISHED, "")]
    if version not in allowed(aim.wants, "torch", (version,)):
        texts = [w.origin.text for w in aim.wants if w.package == "torch" and not w.soft]
        return [(f"torch {version} is excluded by {', '.join(texts)}", PUBLISHED, "")]
    lines = _first_block(space, version, numbers, None)
    current = aim.current_channel
    if current is not None and current != PYPI:
        here = _first_block(space, version, numbers, current)
        lines += here or [_not_on(space, current, version)]
    lines = lines or _weaker(space, version, numbers)
    if not lines:
        places = dict.fromkeys(space.targets[n].group.platform for n in numbers)
        lines = [
            (f"torch {version} has no wheel for {place}", PUBLISHED, "")
            for place in places
            if not space.builds("torch", version, place)
        ]
    if not lines and aim.companions:
        text = f"no one place holds torch {version} and {', '.join(aim.companions)} that fit it"
        lines.append((text, PUBLISHED, ""))
    return lines


def _weaker(space: Space, version: str, numbers: tuple[int, ...]) -> list[Line]:
    """What is less than ``runs`` about PyPI's build of a version on one of the targets."""
    for number in numbers:
        place = space.targets[number].group.platform
        for build in space.builds("torch", version, place).get(PYPI, ()):
            for reason in space.verdict(build, number).reasons:
                if reason.status in (PARTLY, RUNS_VIA_PTX, UNKNOWN):
                    return [_line(reason)]
    return []


def _first_block(
    space: Space, version: str, numbers: tuple[int, ...], key: str | None
) -> list[Line]:
    """The first proved reason why a version does not run on one of the targets."""
    for number in numbers:
        reason = block(space, version, number, key)
        if reason is not None:
            return [_line(reason)]
    return []


def _companions(space: Space, found: Found, aim: Aim) -> list[Line]:
    """Why a companion is not at the version that the file pins."""
    chosen = dict(found.solution.companions)
    lines: list[Line] = []
    for want in aim.wants:
        published = space.catalog.versions(want.package)
        pinned = exact_version(want.specifier, published) if want.soft else None
        version = chosen.get(want.package)
        if pinned is None or version is None or pinned == version:
            continue
        if pinned not in published:
            newest = published[-1] if published else "none"
            text = f"{want.package} {pinned} {absence(want.package)}; the newest is {newest}"
            lines.append((text, PUBLISHED, ""))
            continue
        lines += _pair_lines(space, found, want.package, pinned)
    return lines


def _pair_lines(space: Space, found: Found, package: str, version: str) -> list[Line]:
    """What the judge says of the pinned companion beside the torch that was chosen."""
    for platform, name, torch in found.builds:
        if name != "torch":
            continue
        keys = space.builds(package, version, platform)
        for key in sorted(keys, key=lambda k: (k != key_of(torch), k != PYPI, k)):
            for build in keys[key]:
                for reason in space.judge_pair(build, torch):
                    if reason.status == FAILS:
                        return [_line(reason)]
    return []


def _dropped(space: Space, aim: Aim) -> list[Line]:
    """Packages that were asked for and of which nothing is known."""
    names = dict.fromkeys(w.package for w in aim.wants if w.package != "torch")
    return [
        (f"{name} is not in the catalog: its version was left alone", INFERRED, "")
        for name in names
        if name not in aim.companions and name not in aim.followers
    ]


def split_line(
    parts: Iterable[tuple[tuple[str, ...], Build]], single: Build, anchor: str | None
) -> Line:
    """Return what a split would give where one build serves all, but an older one."""
    texts, evidence = [], [single.evidence]
    for groups, build in parts:
        texts.append(f"torch {build.place} for {', '.join(groups)}")
        evidence.append(build.evidence)
    if anchor is None:
        what = f"torch {single.version} is the last release of which one build serves all groups"
    else:
        what = f"torch {single.version} is nearest to {anchor} of what one build for all gives"
    text = f"{what}; a split would give {' and '.join(texts)}"
    return (text, weakest(*evidence), "")
