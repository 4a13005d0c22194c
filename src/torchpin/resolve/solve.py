"""From a request to an outcome: one plan, the smallest split, or why there is none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.catalog.model import FAMILY, FOLLOWERS, Build
from torchpin.fleet.model import Target
from torchpin.judge.words import name_gpu
from torchpin.named import NamedTuple
from torchpin.resolve.because import lines_of, split_line
from torchpin.resolve.explain import Explainer
from torchpin.resolve.follow import brings, follow
from torchpin.resolve.horizon import last_release
from torchpin.resolve.model import Outcome, Plan, Request, Unserved, Want
from torchpin.resolve.policy import (
    NEAREST,
    allowed,
    nearest_first,
    soft_anchor,
)
from torchpin.resolve.provider import Problem, Solution, builds_of, run
from torchpin.resolve.recipe import recipe
from torchpin.resolve.space import AT_MOST_PARTLY, PYPI, Lane, Space

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog


class Aim(NamedTuple):
    """What is wanted of every plan, apart from where it must run."""

    wants: tuple[Want, ...]
    companions: tuple[str, ...]
    order: tuple[str, ...]
    """torch versions that the wants allow, best first."""
    anchored: bool
    """An exact version is to be kept as far as possible."""
    anchor: str | None
    policy: str
    current_channel: str | None
    followers: tuple[str, ...] = ()
    """Packages whose versions are chosen once torch is (``resolve.follow``)."""


class Found(NamedTuple):
    """A solved problem."""

    problem: Problem
    solution: Solution

    @property
    def builds(self) -> tuple[tuple[str, str, Build], ...]:
        """(platform, package, build) of every lane."""
        return builds_of(self.problem, self.solution)


def family_order(packages: Iterable[str]) -> tuple[str, ...]:
    """Return packages in the order of plans: the family, then by name."""
    names = set(packages)
    return (*(p for p in FAMILY if p in names), *sorted(names.difference(FAMILY)))


def aim_of(request: Request, space: Space, wants: tuple[Want, ...] | None = None) -> Aim:
    """Return what a request wants; ``wants`` replaces its own (explanations).

    Raises:
        UsageError: a specifier is not one.
    """
    wants = request.wants if wants is None else wants
    packages = family_order(w.package for w in wants)
    known = tuple(p for p in packages if p != "torch" and space.catalog.builds(p))
    companions = tuple(p for p in known if p not in FOLLOWERS)
    followers = tuple(p for p in known if p in FOLLOWERS)
    versions = space.versions("torch")
    order = allowed(wants, "torch", versions)
    if followers:
        left = brings(space, wants, followers)
        order = order if left is None else tuple(v for v in order if v in left)
    anchor = None
    if request.policy == NEAREST:
        found = soft_anchor(wants, "torch", versions)
        anchor = found.version if found is not None else _implied(wants, companions, space)
        if anchor is not None:
            order = nearest_first(order, anchor)
    return Aim(
        wants,
        companions,
        order,
        anchor is not None,
        anchor,
        request.policy,
        request.current_channel,
        followers,
    )


def _implied(wants: tuple[Want, ...], companions: tuple[str, ...], space: Space) -> str | None:
    """The torch version that the pinned companions of a file without a torch pin bring today."""
    if any(w.package == "torch" and w.specifier for w in wants):
        return None
    for package in companions:
        found = soft_anchor(wants, package, space.versions(package))
        if found is not None:
            for version in space.versions("torch"):
                if space.catalog.partners(version, package)[:1] == (found.version,):
                    return version
    return None


def solve_lanes(space: Space, lanes: tuple[Lane, ...], aim: Aim) -> Found | None:
    """Return the best single answer for some lanes, or None.

    With an anchor the version counts most: what runs only partly there is taken before another
    version. Without one, a build that runs is taken before a newer one that runs only partly.
    """
    for cap in (AT_MOST_PARTLY,) if aim.anchored else range(AT_MOST_PARTLY + 1):
        problem = Problem(
            space,
            lanes,
            aim.wants,
            aim.companions,
            aim.order,
            aim.policy,
            aim.current_channel,
            cap,
        )
        solution = run(problem)
        if solution is not None:
            return Found(problem, solution)
    return None


def solve(request: Request, catalog: Catalog, space: Space | None = None) -> Outcome:
    """Return the plan for a request, or the smallest split, or why there is none.

    Every target of the request is in exactly one plan or in ``unserved``; a target whose group
    has several kinds of GPU is divided by GPU only where nothing serves it whole.

    Args:
        request: what must run where.
        catalog: what exists.
        space: builds and verdicts, where they are already known (else made from the request).

    Raises:
        UsageError: a want has a specifier that is not one.
    """
    from torchpin.resolve import split

    if space is None:
        space = Space(
            catalog,
            pypi=request.pypi,
            channels=request.asked_channels,
            avoid_inferred=request.avoid_inferred,
        )
    aim = aim_of(request, space)
    numbers = tuple(dict.fromkeys(space.intern(target) for target in request.targets))
    if not numbers:
        return Outcome((), (), ())
    found = solve_lanes(space, space.lanes(numbers), aim)
    if found is not None:
        plan = plan_of(found, numbers, aim)
        nearer = split.nearer(space, numbers, aim, found)
        if not nearer:
            return Outcome((plan,), (), ())
        line = split_line(
            (
                (tuple(dict.fromkeys(space.targets[n].group.name for n in members)), _torch(one))
                for members, one in nearer
            ),
            _torch(found),
            aim.anchor,
        )
        plan = plan._replace(because=(line, *plan.because))
        alternative = tuple(plan_of(one, members, aim) for members, one in nearer)
        return Outcome((plan,), (), (), alternative)
    parts = split.divide(space, numbers, aim)
    plans = tuple(plan_of(one, members, aim) for members, one in parts.plans)
    if len(plans) == 1 and not parts.unserved:
        return Outcome(plans, (), ())
    lenient = frozenset(space.targets[n] for n in parts.lenient)
    told: dict[int, Unserved] = {}
    for number in parts.unserved:
        if space.like(number) not in told:
            told[space.like(number)] = _unserved(request, space, number)
    unserved = tuple(
        told[space.like(number)]._replace(target=space.targets[number]) for number in parts.unserved
    )
    first = tuple(space.targets[number] for number in dict.fromkeys(map(space.like, numbers)))
    asked = request._replace(targets=first)  # groups that are alike are told of once
    return Outcome(plans, unserved, Explainer(asked, space, lenient).conflicts())


def _torch(found: Found) -> Build:
    return next(build for _, package, build in found.builds if package == "torch")


def _unserved(request: Request, space: Space, number: int) -> Unserved:
    """Say what stands between a target and every published build."""
    target = space.targets[number]
    alone = Explainer(request._replace(targets=(target,)), space).conflicts()
    because = "; ".join(c.text for c in alone) or "no published build serves it"
    last: dict[str, Build | None] = {}
    for gpu in dict.fromkeys(target.group.gpus):
        last[gpu.name] = last_release(gpu, space.catalog, target.group.platform, space)
    if not last:
        return Unserved(target, None, None, because)
    # The GPU that lags behind most is the one to name.
    from packaging.version import Version

    from torchpin.catalog.drivers import load_drivers
    from torchpin.judge.driver import dropped

    name, build = min(
        last.items(),
        key=lambda one: (one[1] is not None, Version(one[1].version if one[1] else "0")),
    )
    gpu = next(one for one in target.group.gpus if one.name == name)
    if build is None:
        platform = target.group.platform
        because = f"no torch wheel for {platform} was ever published that runs on {name_gpu(gpu)}"
    newest = space.catalog.newest("torch")
    build_it = build is None or build.version != newest
    if target.group.driver is not None and dropped(gpu, target.group.driver, load_drivers()):
        build_it = False  # the driver runs nothing at all on it
    return Unserved(
        target,
        name,
        f"{build.version}+{build.channel}" if build is not None else None,
        because,
        recipe(gpu, newest) if build_it else (),
    )


def plan_of(found: Found, numbers: tuple[int, ...], aim: Aim) -> Plan:
    """Return the plan for a solution."""
    space = found.problem.space
    builds = found.builds
    lane, key = found.solution.keys[0]
    torch = next(
        b for platform, package, b in builds if package == "torch" and platform == lane.name
    )
    versions = dict(found.solution.companions)
    versions["torch"] = found.solution.torch
    followed = follow(found, numbers, aim) if aim.followers else ()
    versions.update((one.package, one.version) for one in followed if one.version is not None)
    targets: tuple[Target, ...] = tuple(space.targets[n] for n in numbers)
    return Plan(
        targets,
        torch.channel,
        "pypi" if key == PYPI else "channel",
        None if key == PYPI else index_url(key),
        tuple((package, versions[package]) for package in family_order(versions)),
        (*builds, *(build for one in followed for build in one.builds)),
        (*lines_of(found, numbers, aim), *(line for one in followed for line in one.because)),
        moved=tuple(one.package for one in followed if one.moved),
        unfit=tuple((one.package, one.because[0][0]) for one in followed if one.version is None),
    )


def index_url(channel: str) -> str:
    """Return the index of a channel on PyTorch's own host."""
    from torchpin.select.channels import channel_url

    return channel_url(channel)
