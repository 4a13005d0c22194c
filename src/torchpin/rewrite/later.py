"""Commands behind one that is mended: what they install goes with its torch, as it was and will be.

A later command of the same environment finds torch installed. Another torch before it may be one
that its companions do not fit, or that it puts in the place of again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence

from torchpin.catalog.model import Build
from torchpin.documents.base import Edit, Span, apply_edits, line_starts, position
from torchpin.errors import RewriteError
from torchpin.fleet.model import Target
from torchpin.judge.model import FAILS
from torchpin.judge.verdict import judge, judge_companion
from torchpin.named import NamedTuple
from torchpin.resolve.model import Plan, Request, Want
from torchpin.resolve.solve import solve
from torchpin.rewrite.commands import reread, same_part, whole_install
from torchpin.rewrite.draft import RefusedError
from torchpin.rewrite.parts import build_for
from torchpin.rewrite.request import family_declarations, wants_of
from torchpin.rewrite.requirements import drafts
from torchpin.rewrite.reread import may_run
from torchpin.rules.context import Context, Way, together
from torchpin.rules.model import SAFE, UNSAFE, FileEdits, Fix
from torchpin.select.alike import select_all
from torchpin.select.model import Install, Placed, SelectedSet
from torchpin.select.parts import Installed, without_installed, without_met

Torch = Callable[[Target], Build | None]
"""The torch that is there on a target."""


class Followed(NamedTuple):
    """Edits with those of the commands behind, and what is to be said of these."""

    edits: tuple[FileEdits, ...]
    more: tuple[str, ...]
    """What goes along: ``torchaudio of line 3``."""
    left: tuple[str, ...]
    """What would have to, and has no edit."""


def follow(way: Way, context: Context, plan: Plan, edits: tuple[FileEdits, ...]) -> Followed:
    """Return the edits that write a plan into a command, with those for the commands behind it."""
    more: list[str] = []
    left: list[str] = []

    def torch(target: Target) -> Build | None:
        return build_for(plan, target, "torch")

    for later in later_ways(way, context):
        install = _edited(later, edits)
        if install is None or _goes_with(later, install, context, torch):
            continue
        if not _goes_with(later, later.install, context, _torch_of(way)):
            continue  # it did not before
        own = companion_edits(later, context, torch)
        joined = _joined(edits, own) if own is not None else None
        if joined is None:
            left.append(_named(later))
        else:
            edits = joined
            more.append(_named(later))
    return Followed(edits, tuple(more), tuple(left))


def later_ways(way: Way, context: Context) -> list[Way]:
    """Return the commands that find the torch that a command installs."""
    placed = _torch_placed(way)
    if way.part is None or placed is None:
        return []
    if "later ways" not in context.memo:
        found: dict[tuple[str, str, Span], list[Way]] = {}
        for other in context.ways:
            before = other.before.get("torch")
            if before is not None and before.placed is not None and other.part is not None:
                found.setdefault(_key(other, before.placed), []).append(other)
        context.memo["later ways"] = found
    ways: list[Way] = context.memo["later ways"].get(_key(way, placed), [])
    return [one for one in ways if one is not way and together(way, one)]


def _key(way: Way, placed: Placed) -> tuple[str, str, Span]:
    return way.install.root.path, placed.document.path, placed.declaration.span


def earlier_way(way: Way, context: Context) -> Way | None:
    """Return the command that installs the torch that a later one finds."""
    before = way.before.get("torch")
    if before is None or before.placed is None:
        return None
    key = _key(way, before.placed)
    for other in context.ways:
        placed = _torch_placed(other) if other.part is not None and other is not way else None
        if placed is not None and _key(other, placed) == key and together(way, other):
            return other
    return None


def companion_fix(way: Way, earlier: Way, context: Context) -> Fix | None:
    """Return the fix that makes the companions of a later command go with the torch that an earlier
    one installs; None: there is none, or that torch does not run itself."""
    torch = _torch_of(earlier)
    if any(torch(one.target) is None for one in way.sets):
        return None
    if any(placed.declaration.name == "torch" for placed in way.install.requirements):
        return None  # it asks for another one
    edits = companion_edits(way, context, torch)
    if edits is None:
        return None
    installed = {
        (one.selection.package, one.selection.build.version)
        for judged_set in way.sets
        for one in judged_set.judged
        if one.selection.build is not None
    }
    plan = _plan(way, context, torch)
    assert plan is not None
    names = {placed.declaration.name for placed in family_declarations(way)}
    builds = {build.full_version: build for _, name, build in plan.builds if name in names}
    same = {(one.package, one.version) for one in builds.values()} <= installed
    text = " ".join(f"{one.package}=={one.full_version}" for one in builds.values())
    place = "PyPI" if plan.home == "pypi" else f"index {plan.channel}"
    return Fix(SAFE if same and context.declared else UNSAFE, f"{text} ({place})", edits)


def companion_edits(way: Way, context: Context, torch: Torch) -> tuple[FileEdits, ...] | None:
    """Return the edits that make the companions of a later command go with a torch."""
    plan = _plan(way, context, torch)
    if plan is None or not family_declarations(way):
        return None
    try:
        for one in drafts(way, plan, context.catalog):
            install = _edited(way, one.edits) if one.edits else None
            if install is not None and _goes_with(way, install, context, torch):
                return one.edits
    except RefusedError:  # what is to be said of it, its own finding says
        return None
    return None


def _plan(way: Way, context: Context, torch: Torch) -> Plan | None:
    """Return the plan with companions for a torch that stays as it is."""
    targets = tuple(one.target for one in way.sets)
    builds = {torch(target) for target in targets}
    first = next(iter(builds), None)
    if first is None or len({(one.version, one.home, one.channel) for one in builds if one}) != 1:
        return None
    pypi = first.home == "pypi"
    wants = [one for one in wants_of(way, context, soften=False) if one.package != "torch"]
    stays = Want("torch", f"=={first.version}", wants[0].origin) if wants else None
    if stays is None:
        return None
    request = Request(
        (stays, *wants), targets, "nearest", first.channel, () if pypi else (first.channel,), pypi
    )
    outcome = solve(request, context.catalog)
    if len(outcome.plans) != 1 or outcome.unserved or outcome.plans[0].unfit:
        return None
    plan = outcome.plans[0]
    return plan if all(build_for(plan, one, "torch") == torch(one) for one in targets) else None


def _edited(way: Way, edits: Sequence[FileEdits]) -> Install | None:
    """Return what a command installs with edits of its file and of the lists that it names; None:
    the file would hold other commands."""
    part = way.part
    assert part is not None
    root = part.document
    try:
        texts = {
            os.path.realpath(one.document.path): apply_edits(one.document.text, one.edits)
            for one in edits
        }
        new = reread(root, texts.get(os.path.realpath(root.path), root.text))
        after = same_part(reread(root, root.text), part, new)
    except ValueError:
        return None
    if after is None:
        return None
    try:
        return whole_install(way, after, texts)
    except RewriteError:
        return None


def _goes_with(way: Way, install: Install, context: Context, torch: Torch) -> bool:
    """True if what a command installs leaves a torch alone, and runs beside it."""
    assert way.part is not None
    for judged_set in way.sets:
        there = torch(judged_set.target)
        if there is None:
            return False  # nothing is there that it could go with
        for chosen in _chosen(way, install, judged_set.target, context, there):
            if chosen.conflict is not None:
                return False
            for one in chosen.selections:
                build = one.build
                if one.package == "torch" and one.status != "skipped":
                    return False
                if one.status == "none":
                    return False
                if build is None or not one.placed:
                    continue
                if any(reason.status == FAILS for reason in judge_companion(build, there)):
                    return False
                if context.declared and not may_run(
                    judge(build, judged_set.target, context.drivers), build
                ):
                    return False
    return True


def _chosen(
    way: Way, install: Install, target: Target, context: Context, there: Build
) -> Iterator[SelectedSet]:
    assert way.part is not None
    before: Mapping[str, Installed] = {
        **way.before,
        "torch": way.before["torch"]._replace(version=there.version),
    }
    left = without_met(install, way.part, before)
    for chosen in select_all(left, (target,), context.catalog):
        yield without_installed(chosen, before)


def _joined(
    edits: tuple[FileEdits, ...], more: tuple[FileEdits, ...]
) -> tuple[FileEdits, ...] | None:
    """Return edits of two commands together; None: they do not go together."""
    found: dict[str, FileEdits] = {os.path.realpath(one.document.path): one for one in edits}
    for one in more:
        key = os.path.realpath(one.document.path)
        before: tuple[Edit, ...] = found[key].edits if key in found else ()
        document = found[key].document if key in found else one.document
        found[key] = FileEdits(document, (*before, *one.edits))
        try:
            apply_edits(document.text, found[key].edits)
        except ValueError:  # one variable would need two values
            return None
    return tuple(found.values())


def _torch_placed(way: Way) -> Placed | None:
    for judged_set in way.sets:
        torch = judged_set.of("torch")
        if torch is not None and torch.selection.placed is not None:
            return torch.selection.placed
    return None


def _torch_of(way: Way) -> Torch:
    builds = {one.target: torch.build for one in way.sets if (torch := one.of("torch")) is not None}
    return builds.get


def _named(way: Way) -> str:
    assert way.part is not None
    line = position(line_starts(way.part.document.text), way.part.span.start).line
    names = dict.fromkeys(placed.declaration.name for placed in family_declarations(way))
    return f"{' and '.join(names) or 'what it asks for'} of line {line}"
