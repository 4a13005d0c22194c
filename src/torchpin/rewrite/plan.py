"""A way in is planned once; the plan is written in the least way that proves right."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FOLLOWERS
from torchpin.documents.pins import exact_version, same_version
from torchpin.evidence import INFERRED
from torchpin.resolve.model import Outcome, Plan
from torchpin.rewrite.draft import Draft, RefusedError
from torchpin.rewrite.parts import holding, version_for
from torchpin.rewrite.purpose import refusal
from torchpin.rewrite.request import (
    current_channel,
    family_declarations,
    follower_declarations,
    request_of,
    solve_way,
)
from torchpin.rewrite.requirements import drafts, replacing_drafts
from torchpin.rewrite.reread import holds
from torchpin.rules.context import Context, Way, base_name
from torchpin.rules.model import DISPLAY, SAFE, UNSAFE, Fix
from torchpin.select.model import Placed


def plan_fix(way: Way, context: Context, policy: str, codes: Collection[str]) -> Fix | None:
    """Return the fix that mends a way in: edits, or advice where no edit is right.

    ``codes`` are those of the findings that it is to mend.
    """
    if not family_declarations(way) and not follower_declarations(way):
        return None
    outcome = Outcome((), (), ())
    for soften in (False, True):
        asked = request_of(way, context, policy, soften=soften)
        if not asked.request.targets:
            return None
        outcome = solve_way(way, context, asked.request, soften=soften)
        if len(outcome.plans) == 1 and not outcome.unserved:
            return write_plan(way, context, outcome, codes, softened=soften)
        if outcome.plans:
            environments = way.part is not None and bool(way.part.pythons)
            return Fix(DISPLAY, split_text(outcome, environments=environments))
    if outcome.unserved and outcome.unserved[0].target.group.musl:
        return Fix(DISPLAY, musl_text(way))
    return Fix(DISPLAY, unserved_text(outcome)) if outcome.unserved else None


def index_fix(way: Way, context: Context, policy: str, codes: Collection[str]) -> Fix | None:
    """Return the fix of index lines that compete, shadow or replace: always unsafe.

    The one channel that the file names is what is meant: its builds are pinned with their labels,
    and it becomes an additional index (pip) or one link page a package (uv). Where there are
    findings for a plan to mend (``codes``), the channel is that of the plan.
    """
    channels = {index.kind.channel for index in way.install.indexes if index.kind.channel}
    if len(channels) != 1 or not family_declarations(way):
        return None
    channel = channels.pop()
    if channel is None or kind_of_label(channel) is None:
        return None
    request = request_of(way, context, policy).request
    if not request.targets:
        return None
    if codes:
        outcome = solve_way(way, context, request)
        if len(outcome.plans) != 1 or outcome.plans[0].home == "pypi":
            return None
        channel = outcome.plans[0].channel
    request = request._replace(asked_channels=(channel,), current_channel=channel, pypi=False)
    outcome = solve_way(way, context, request)
    if len(outcome.plans) != 1 or outcome.unserved:
        return None
    plan = outcome.plans[0]
    try:
        for one in replacing_drafts(way, plan, context.catalog):
            if one.edits and holds(way, context, plan, one):
                return Fix(UNSAFE, plan_text(plan), one.edits)
    except RefusedError as why:
        return Fix(DISPLAY, f"{plan_text(plan)}; not written: {why}")
    return None


def split_text(outcome: Outcome, *, environments: bool = False) -> str:
    """Return a split as advice: which group takes which builds, or which Python of environments."""
    pythons = [
        tuple(dict.fromkeys(str(one.python) for one in part.targets)) for part in outcome.plans
    ]
    every = [one for some in pythons for one in some]
    if environments and len(set(every)) == len(every):
        listed = " · ".join(
            f"Python {', '.join(some)}: {plan_text(plan)}"
            for some, plan in zip(pythons, outcome.plans, strict=True)
        )
        return f"no single build is for all Pythons; give each environment its own: {listed}"
    listed = groups_text(outcome.plans)
    return f"no single build runs on all groups; use one file a group: {listed}"


def groups_text(plans: Iterable[Plan]) -> str:
    """Return which groups take which builds."""
    parts = []
    for plan in plans:
        names = ", ".join(dict.fromkeys(target.group.name for target in plan.targets))
        parts.append(f"{names}: {plan_text(plan)}")
    return " · ".join(parts)


def musl_text(way: Way) -> str:
    """Return what to do on Alpine: no release has wheels for musl."""
    image = way.part.image.reference if way.part is not None and way.part.image else ""
    text = "no release of torch has wheels for musl: take a system with glibc"
    if image.startswith("python:") and "-alpine" in image:
        return f"{text}: {image.partition('-alpine')[0]}-slim in place of {image}"
    return f"{text} (Debian, Ubuntu) in place of {image}" if image else f"{text} (Debian, Ubuntu)"


def unserved_text(outcome: Outcome) -> str:
    """Return what to do where no wheel serves."""
    first = outcome.unserved[0]
    last = ""
    if first.last_release and "the last torch" not in first.because:
        last = f"; the last release with a wheel for {first.gpu} is {first.last_release}"
    build = "; `torchpin resolve` tells how to build one" if first.recipe else ""
    return f"no published wheel serves {first.target.text}: {first.because}{last}{build}"


def plan_text(plan: Plan) -> str:
    """Return the pins of a plan in one line; platforms that take different channels apart.

    Wheels for macOS carry no label: they are named only where nothing else is, or where macOS has
    pins of its own.
    """
    places: dict[str | None, dict[str, str]] = {}
    elsewhere = {
        (package, build.version)
        for platform, package, build in plan.builds
        if not platform.startswith("macos")
    }
    for platform, package, build in plan.builds:
        if package in FOLLOWERS and package not in plan.moved:
            continue
        named = plan.parts and (package, build.version) not in elsewhere
        if platform.startswith("macos") and elsewhere and not named:
            continue
        place = None if build.home == "pypi" else build.channel
        shown = f"{package}=={build.full_version}"
        places.setdefault(place, {})[shown if plan.parts else package] = shown
    return " / ".join(
        f"{' '.join(shown.values())} ({'PyPI' if place is None else f'index {place}'})"
        for place, shown in places.items()
    )


def write_plan(
    way: Way, context: Context, outcome: Outcome, codes: Collection[str], *, softened: bool
) -> Fix | None:
    """Return the least edit whose text, read again, installs what runs on every target."""
    plan = outcome.plans[0]
    text = plan_text(plan)
    if outcome.alternative:
        text += f"; or one file a group: {groups_text(outcome.alternative)}"
    blocked = next(
        (
            document.path
            for document in way.install.documents
            if any(problem.code != "specifier" for problem in document.problems)
        ),
        None,
    )
    if blocked is not None:
        return Fix(DISPLAY, f"{text}; mend the lines of {blocked} that cannot be read first")
    if way.part is not None and way.part.syntax == "image":
        return Fix(DISPLAY, f"take an image that holds {text}, or install that in its place")
    if way.install.unread:
        return Fix(DISPLAY, f"{text}; not written: {way.install.unread[0].because}")
    if current_channel(way) == "cpu" and plan.channel != "cpu" and not keeps_purpose(way, plan):
        return Fix(DISPLAY, f"{text} for the groups with GPUs; the cpu index is left to the others")
    broken = breaks(way, plan)
    if broken is not None:
        return Fix(DISPLAY, f"{text}; not written: {broken}")
    other = refusal(way, context, plan)
    if other is not None and other[0] == DISPLAY:
        return Fix(DISPLAY, f"{text}; not written: {other[1]}")
    try:
        for one in drafts(way, plan, context.catalog):
            if not one.edits and one.pinned and holds(way, context, plan, one):
                return None  # the file says the plan already; what is left, no plan mends
            if one.edits and holds(way, context, plan, one):
                safety = safety_of(way, context, plan, codes, softened=softened)
                if plan.moved and not stopped(way):
                    safety = UNSAFE  # the pin could be installed, and becomes another
                if other is not None or changes_more(way, one):
                    safety = UNSAFE
                return with_later(way, context, plan, Fix(safety, text, one.edits))
    except RefusedError as why:
        if of_pipenv(way):
            from torchpin.rewrite.pipfile_edit import pipfile_fix

            safety = safety_of(way, context, plan, codes, softened=softened)
            if other is not None or (plan.moved and not stopped(way)):
                safety = UNSAFE
            try:
                return pipfile_fix(way, context, plan, text, safety)
            except RefusedError as none:
                return Fix(DISPLAY, f"{text}; not written: {none}")
        return Fix(DISPLAY, f"{text}; not written: {why}")
    reason = "no edit of this file gives exactly these builds"
    if plan.unfit:
        reason = "; ".join(unfit_text(*one) for one in plan.unfit)
    return Fix(DISPLAY, f"{text}; not written: {reason}")


def with_later(way: Way, context: Context, plan: Plan, fix: Fix) -> Fix:
    """Return the fix of a command with the edits that the commands behind it need for its torch."""
    if way.part is None:
        return fix
    from torchpin.rewrite.later import follow

    found = follow(way, context, plan, fix.edits)
    text = "".join(f"; {one} too" for one in found.more)
    text += "".join(f"; then mind {one}" for one in found.left)
    safety = UNSAFE if found.left else fix.safety
    return fix._replace(safety=safety, message=f"{fix.message}{text}", edits=found.edits)


def of_pipenv(way: Way) -> bool:
    """True for the ways of a ``Pipfile`` and of its lock."""
    return way.part is not None and base_name(way.install.root.path).startswith("Pipfile")


def unfit_text(package: str, why: str) -> str:
    """Return what to do about a package of which no version fits the torch of a plan."""
    return f"{why}; remove {package}, or build it from source"


def breaks(way: Way, plan: Plan) -> str | None:
    """Return why a plan would break a package that has no version for it, and that works today or
    is not known not to."""
    works = {
        one.selection.package
        for judged_set in way.sets
        if judged_set.chosen.conflict is None
        for one in judged_set.judged
        if (not one.fails if one.build is not None else one.selection.status == "unknown")
    }
    return next((unfit_text(*one) for one in plan.unfit if one[0] in works), None)


def stopped(way: Way) -> bool:
    """True if nothing can be installed from the file as it is."""
    return any(
        judged_set.chosen.conflict is not None
        or any(one.selection.status == "none" for one in judged_set.judged)
        for judged_set in way.sets
    )


def companion_advice(way: Way, context: Context, policy: str, package: str) -> Fix | None:
    """Return what to do about a package that follows torch where no version of it fits."""
    asked = request_of(way, context, policy)
    if not asked.request.targets:
        return None
    for plan in solve_way(way, context, asked.request).plans:
        for name, why in plan.unfit:
            if name == package:
                return Fix(DISPLAY, unfit_text(name, why))
    return None


def changes_more(way: Way, one: Draft) -> bool:
    """True if an edit changes a variable of a script that serves for other things, too."""
    if way.part is None:
        return False
    from torchpin.rewrite.commands import used_elsewhere

    return used_elsewhere(way, one.edits)


def keeps_purpose(way: Way, plan: Plan) -> bool:
    """True if a file with the cpu index may become a GPU file: no CPU group, same torch."""
    pins = [exact_version(placed.declaration.specifier) for placed in family_declarations(way)]
    torch = dict(plan.versions)["torch"]
    return all(target.group.gpus for target in plan.targets) and any(
        pin is not None and same_version(pin[0], torch) for pin in pins
    )


def keeps_pins(pins: list[Placed], plan: Plan) -> bool:
    """True if every target gets the torch version that its pins name."""
    for target in plan.targets:
        mine = [one for one in pins if holding(one.declaration, (target,))]
        version = version_for(plan, target, "torch")
        for one in mine or ([] if plan.parts else pins):
            pin = exact_version(one.declaration.specifier)
            if pin is None or version is None or not same_version(pin[0], version):
                return False
    return True


def safety_of(
    way: Way, context: Context, plan: Plan, codes: Collection[str], *, softened: bool
) -> str:
    """Return how far the fix can be made without asking.

    Safe: the torch version that installs today, or that the file pins, stays. Without a fleet a
    move to another channel is never safe, nor is an index for a file that names none (it may come
    from the command line).
    """
    if softened or any(
        build.kernels is not None and build.kernels.evidence == INFERRED
        for _, _, build in plan.builds
    ):
        return UNSAFE
    version = dict(plan.versions)["torch"]
    pins = [one for one in family_declarations(way) if one.declaration.name == "torch"]
    if any(exact_version(one.declaration.specifier) is not None for one in pins):
        same = keeps_pins(pins, plan)
    else:
        today = {
            torch.selection.build.version
            for judged_set in way.sets
            if (torch := judged_set.of("torch")) is not None and torch.selection.build is not None
        }
        same = today == {version}
    if not same:
        return UNSAFE
    if current_channel(way) == "cpu" and plan.channel != "cpu":
        return UNSAFE
    if not context.declared and plan.home == "channel" and plan.channel != current_channel(way):
        return UNSAFE
    named = any(index.option for index in (*way.install.indexes, *way.install.discarded))
    if set(codes) == {"TP105"} and not named:
        return UNSAFE
    return SAFE
