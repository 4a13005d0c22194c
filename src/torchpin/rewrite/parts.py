"""Exact pins that differ by marker: each is the wish of the targets for which it holds.

``torch==2.11.0 ; sys_platform == "linux"`` above ``torch==2.2.2 ; sys_platform == "darwin"`` are
two wishes: they are solved apart, and the answers are joined in one plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from torchpin.catalog.model import Build
from torchpin.catalog.store import Catalog
from torchpin.documents.base import Declaration
from torchpin.documents.pins import exact_version
from torchpin.fleet.model import Target
from torchpin.resolve.model import Outcome, Plan, Request, Want
from torchpin.resolve.solve import family_order, solve
from torchpin.rewrite.request import public_specifier
from torchpin.select.environments import marker_holds
from torchpin.select.model import Placed

Wishes = Callable[[Sequence[Placed]], tuple[Want, ...]]
"""From declarations that hold together to what a plan must hold."""


def holding(declaration: Declaration, targets: Iterable[Target]) -> bool:
    """True if the declaration may hold on one of the targets."""
    return any(marker_holds(declaration.marker, target) is not False for target in targets)


def classes(family: Iterable[Placed], targets: Iterable[Target]) -> list[tuple[Target, ...]]:
    """Return the targets by what holds on them; one class where no two of them disagree.

    Two targets disagree where both ask for one package, at least one by an exact pin, in
    different words.
    """
    asked = [
        (placed.declaration, exact_version(placed.declaration.specifier))
        for placed in family
        if placed.declaration.valid and placed.declaration.url is None
    ]
    found: dict[tuple[tuple[str, str, bool], ...], list[Target]] = {}
    for target in targets:
        key = tuple(
            sorted(
                {
                    (one.name, pin[0] if pin else public_specifier(one.specifier), pin is not None)
                    for one, pin in asked
                    if (pin is not None or one.name == "torch") and holding(one, (target,))
                }
            )
        )
        found.setdefault(key, []).append(target)
    words: dict[str, set[tuple[tuple[str, str, bool], ...]]] = {}
    for key in found:
        for name in {one[0] for one in key}:
            words.setdefault(name, set()).add(tuple(one for one in key if one[0] == name))
    if any(len(some) > 1 and any(one[2] for key in some for one in key) for some in words.values()):
        return [tuple(some) for some in found.values()]
    return [tuple(one for some in found.values() for one in some)]


def solve_parts(
    request: Request, family: Sequence[Placed], wishes: Wishes, catalog: Catalog
) -> Outcome:
    """Return the outcome for a request, each target by the pins that hold on it.

    Where the parts come from one place (or PyPI) their plans are joined in one plan with
    ``parts``; else the plans are the split.
    """
    some = classes(family, request.targets)
    if len(some) < 2:
        here = [placed for placed in family if holding(placed.declaration, request.targets)]
        return solve(request._replace(wants=wishes(here or family)), catalog)
    outcomes = []
    for targets in some:
        here = [placed for placed in family if holding(placed.declaration, targets)]
        wants = wishes(here)
        outcomes.append(solve(request._replace(wants=wants, targets=targets), catalog))
    unserved = tuple(one for outcome in outcomes for one in outcome.unserved)
    explanation = tuple(one for outcome in outcomes for one in outcome.explanation)
    plans = tuple(plan for outcome in outcomes for plan in outcome.plans)
    channels = {plan.channel for plan in plans if plan.home == "channel"}
    if unserved or any(len(one.plans) != 1 for one in outcomes) or len(channels) > 1:
        return Outcome(plans, unserved, explanation)
    return Outcome((joined(plans),), (), ())


def joined(plans: Sequence[Plan]) -> Plan:
    """Return several plans as one, led by the one that needs an index, else by the first."""
    lead = next((plan for plan in plans if plan.home == "channel"), plans[0])
    ordered = (lead, *(plan for plan in plans if plan is not lead))
    versions: dict[str, str] = {}
    for plan in ordered:
        for package, version in plan.versions:
            versions.setdefault(package, version)
    return lead._replace(
        targets=tuple(target for plan in ordered for target in plan.targets),
        versions=tuple((package, versions[package]) for package in family_order(versions)),
        builds=tuple(dict.fromkeys(build for plan in ordered for build in plan.builds)),
        because=tuple(line for plan in ordered for line in plan.because),
        parts=ordered,
        moved=tuple(dict.fromkeys(name for plan in ordered for name in plan.moved)),
        unfit=tuple(dict.fromkeys(one for plan in ordered for one in plan.unfit)),
    )


def part_of(plan: Plan, target: Target) -> Plan:
    """Return the part of a plan that serves a target."""
    return next((part for part in plan.parts if target in part.targets), plan)


def build_for(plan: Plan, target: Target, package: str) -> Build | None:
    """Return the build of a package that a plan gives to a target."""
    for platform, name, build in part_of(plan, target).builds:
        if name == package and platform == target.group.platform:
            return build
    return None


def version_for(plan: Plan, target: Target, package: str) -> str | None:
    """Return the public version of a package that a plan gives to a target."""
    return dict(part_of(plan, target).versions).get(package)


def versions_for(plan: Plan, declaration: Declaration) -> set[str]:
    """Return the public versions that a plan gives to the targets of a declaration."""
    found = {
        version_for(plan, target, declaration.name)
        for target in plan.targets
        if holding(declaration, (target,))
    }
    return {version for version in found if version is not None}
