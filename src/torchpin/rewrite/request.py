"""From a way in to the question for the resolver: what is wanted, on which targets."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY, FOLLOWERS
from torchpin.documents.base import Document, line_starts, position
from torchpin.documents.pins import exact_version
from torchpin.evidence import PROOF
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.resolve.model import Origin, Outcome, Request, Want
from torchpin.resolve.policy import allowed
from torchpin.rules.context import Context, JudgedSet, Way
from torchpin.select.environments import marker_holds
from torchpin.select.model import Placed
from torchpin.select.projects import locked_too

DEV = regex(r"\.dev\d+$")


class Asked(NamedTuple):
    """The request, and what the file says today."""

    request: Request
    softened: bool
    """Ranges of the file were allowed to move."""


def public_specifier(specifier: str) -> str:
    """Return the specifier without local labels."""
    return re.sub(r"\+[A-Za-z0-9.]+", "", specifier)


def family_declarations(way: Way) -> list[Placed]:
    """Return the family's declarations (requirements first, then constraints) that apply.

    What the markers of a line keep from every target is not of this fleet: it neither binds the
    plan nor is it changed.
    """
    return _declarations(way, FAMILY)


def follower_declarations(way: Way) -> list[Placed]:
    """Return the declarations of the packages that follow torch, likewise."""
    return _declarations(way, FOLLOWERS)


def resolved_family(way: Way) -> list[Placed]:
    """Return both, and those of the extras and groups that are locked together with the way."""
    too = (one for one in locked_too(way.install) if one.declaration.name in (*FAMILY, *FOLLOWERS))
    return [*family_declarations(way), *follower_declarations(way), *too]


def _declarations(way: Way, packages: Collection[str]) -> list[Placed]:
    found = [
        placed
        for placed in (*way.install.requirements, *way.install.constraints)
        if placed.declaration.name in packages
    ]
    if not found:
        return []
    applied = {
        one.selection.placed
        for judged_set in way.sets
        for one in judged_set.judged
        if one.selection.placed is not None
    }
    names = {placed.declaration.name for placed in applied}
    targets = [judged_set.target for judged_set in way.sets]
    return [
        placed
        for placed in found
        if placed.declaration.name in names
        and any(marker_holds(placed.declaration.marker, target) is not False for target in targets)
    ]


def origin_of(placed: Placed) -> Origin:
    """Return the place and text of a declaration."""
    document, declaration = placed
    line = position(line_starts(document.text), declaration.span.start).line
    return Origin(document.path, line, document.text[declaration.span.start : declaration.span.end])


def current_channel(way: Way) -> str | None:
    """Return the channel that the file means today: index line, label, or selected build.

    Where the only channel that is named and the label disagree, the index is the better evidence:
    labels are what bots and copies get wrong.
    """
    named = {index.kind.channel for index in way.install.indexes if index.kind.channel}
    if len(named) == 1:
        return named.pop()
    for placed in family_declarations(way):
        pin = exact_version(placed.declaration.specifier)
        if placed.declaration.name == "torch" and pin and kind_of_label(pin[1]):
            return pin[1]
    for judged_set in way.sets:
        torch = judged_set.of("torch")
        build = torch.selection.build if torch else None
        if build is not None and build.home == "channel":
            return build.channel
    return min((name for name in named if name), default=None)


def intended_targets(way: Way, context: Context) -> tuple[Target, ...]:
    """Return the targets that a fix of this way must serve.

    All of its targets if no other file of the project stands in; else those of the groups that it
    serves already or that nobody serves. A file that is meant for CPUs is planned without GPUs.
    """
    targets = tuple(judged_set.target for judged_set in way.sets)
    applying = {
        (judged_set.target.group.name, judged_set.target.python)
        for judged_set in way.sets
        if has_family(judged_set)
    }

    def applies(one: Target) -> bool:
        return (one.group.name, one.python) in applying

    if not context.declared:
        return tuple(one for one in targets if applies(one))[:1]
    rivals = context.rivals(way)
    if rivals and not way.bound:
        served = frozenset().union(*(context.served_by(other) for other in rivals))
        own = context.served_by(way)
        mine = [one for one in targets if one.group.name in own or one.group.name not in served]
        targets = tuple(mine) or targets
        if way.cpu_only:
            targets = tuple(
                one._replace(group=one.group._replace(gpus=(), driver=None)) for one in targets
            )
    targets = tuple(one for one in targets if applies(one)) or targets
    if way.part is None or not way.part.pythons:
        return targets
    from torchpin.rules.environments import is_foreign

    # What environments of other Pythons only test gives way to what the fleet runs.
    return (
        tuple(one for one in targets if not is_foreign(one.python, way.part, context.fleet))
        or targets
    )


def has_family(judged_set: JudgedSet) -> bool:
    """True if a family package is asked for in the set."""
    return any(
        one.selection.package in FAMILY and one.selection.status != "skipped"
        for one in judged_set.judged
    )


def wants_of(
    way: Way,
    context: Context,
    *,
    soften: bool,
    family: Iterable[Placed] | None = None,
    bound: Collection[str] = (),
) -> tuple[Want, ...]:
    """Return what the plan must hold: exact pins may move, ranges bind unless ``soften``.

    ``family``: the declarations that hold together; None: all that apply. ``bound``: see
    ``wants_from``.
    """
    placed = (*way.install.requirements, *way.install.constraints)
    if family is None:
        family = [*family_declarations(way), *follower_declarations(way)]
    return wants_from(way.install.root, family, placed, context, soften=soften, bound=bound)


def wants_from(
    root: Document,
    family: Iterable[Placed],
    everything: Iterable[Placed],
    context: Context,
    *,
    soften: bool,
    bound: Collection[str] = (),
) -> tuple[Want, ...]:
    """Return the wants of some declarations; ``everything`` may hold packages that pin torch.

    ``bound``: packages that follow torch, and here keep their pins: torch is to fit them.
    """
    wants: dict[Want, None] = {}
    pinned: set[str] = set()
    followers: list[Placed] = []
    for placed in family:
        declaration = placed.declaration
        if declaration.url is not None or not declaration.valid:
            continue
        pin = exact_version(declaration.specifier)
        if declaration.name in FOLLOWERS:
            followers.append(placed)
        if pin is not None:
            if declaration.name in pinned:
                continue
            pinned.add(declaration.name)
            specifier, soft = f"=={pin[0]}", True
            if DEV.search(pin[0]):  # the newest patch of the release that the nightly led to
                specifier, soft = f"~={DEV.sub('', pin[0])}", False
        else:
            specifier = public_specifier(declaration.specifier)
            soft = soften or declaration.name in FOLLOWERS
        wants[Want(declaration.name, specifier, origin_of(placed), soft)] = None
    if not any(want.package == "torch" for want in wants):
        implied = Want("torch", "", Origin(root.path, 1, "torch (implied)"))
        wants = {implied: None, **wants}
    for placed in everything:
        pin = exact_version(placed.declaration.specifier)
        if pin is None or placed.declaration.name in (*FAMILY, *FOLLOWERS):
            continue
        needs = context.catalog.pins(placed.declaration.name, pin[0]) or accepted(
            context, placed.declaration.name, pin[0]
        )
        if needs:
            wants[Want("torch", needs, origin_of(placed))] = None
    if "torch" in pinned or soften:
        followers = [one for one in followers if one.declaration.name in bound]
    wants.update(dict.fromkeys(_brought(followers, tuple(wants), context)))
    return tuple(wants)


def _brought(
    followers: Iterable[Placed], wants: tuple[Want, ...], context: Context
) -> Iterable[Want]:
    """Yield what pinned followers ask of a torch that is not pinned: it stays as they bring it.

    One that no torch of the other wants fulfils asks for nothing: it is the one to move.
    """
    for placed in followers:
        pin = exact_version(placed.declaration.specifier)
        needs = accepted(context, placed.declaration.name, pin[0]) if pin else None
        if not needs:
            continue
        want = Want("torch", needs, origin_of(placed))
        if allowed((*wants, want), "torch", context.catalog.versions("torch")):
            wants = (*wants, want)
            yield want


def accepted(context: Context, package: str, version: str) -> str | None:
    """Return the torch specifier that all builds of a version agree on; None if they do not tell.

    A plan may not break them.
    """
    builds = context.catalog.find(package, version=version)
    told = {build.requires_torch for build in builds if build.evidence in PROOF}
    return public_specifier(told.pop() or "") or None if len(told) == 1 else None


def solve_way(way: Way, context: Context, request: Request, *, soften: bool = False) -> Outcome:
    """Return the outcome for a way in: exact pins that differ by marker are wishes apart."""
    from torchpin.rewrite.parts import solve_parts

    def wishes(bound: Collection[str]) -> Callable[[Sequence[Placed]], tuple[Want, ...]]:
        return lambda some: wants_of(way, context, soften=soften, family=some, bound=bound)

    family = [*family_declarations(way), *follower_declarations(way)]
    outcome = solve_parts(request, family, wishes(()), context.catalog)
    unfit = unfit_of(outcome)
    if unfit:
        other = solve_parts(request, family, wishes(unfit), context.catalog)
        if fits_all(other):
            return other
    return outcome


def unfit_of(outcome: Outcome) -> frozenset[str]:
    """Return the packages that follow torch and of which no version fits a plan's."""
    return frozenset(package for plan in outcome.plans for package, _ in plan.unfit)


def fits_all(outcome: Outcome) -> bool:
    """True if one plan serves every target with everything that is asked for."""
    return len(outcome.plans) == 1 and not outcome.unserved and not outcome.plans[0].unfit


def request_of(way: Way, context: Context, policy: str, *, soften: bool = False) -> Asked:
    """Return the question for the resolver.

    Without a fleet the channel's kind is kept: hardware is not known.
    """
    channel = current_channel(way)
    asked: tuple[str, ...] = ()
    pypi = True
    if not context.declared and channel is not None:
        kind = kind_of_label(channel)
        asked = tuple(
            one for one in context.catalog.channels("torch") if kind_of_label(one) == kind
        )
        pypi = False
    request = Request(
        wants_of(way, context, soften=soften),
        intended_targets(way, context),
        policy,
        channel,
        asked,
        pypi,
    )
    return Asked(request, soften)
