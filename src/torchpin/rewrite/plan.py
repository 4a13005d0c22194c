"""From findings to fixes: plan once for a way in, write it, prove it by reading it again."""

from __future__ import annotations

import os
from collections.abc import Iterable

from torchpin.catalog.model import Build
from torchpin.documents.base import Document, Edit, apply_edits
from torchpin.documents.pins import exact_version
from torchpin.documents.requirements import read_requirements
from torchpin.errors import RewriteError
from torchpin.judge.model import FAILS, UNKNOWN, Verdict
from torchpin.judge.verdict import judge, judge_companion
from torchpin.resolve import solve
from torchpin.resolve.model import Outcome, Plan
from torchpin.rewrite.request import (
    current_channel,
    family_declarations,
    request_of,
)
from torchpin.rewrite.requirements import Draft, RefusedError, drafts
from torchpin.rules.context import Context, Way
from torchpin.rules.model import (
    DISPLAY,
    INFO,
    SAFE,
    UNSAFE,
    FileEdits,
    Finding,
    Fix,
)
from torchpin.select.installs import install_of
from torchpin.select.model import Install
from torchpin.select.selection import select

PLANNED = frozenset(
    (
        *("TP101", "TP102", "TP103", "TP104", "TP105", "TP106", "TP107", "TP108"),
        *("TP201", "TP202", "TP203", "TP205", "TP207"),
        *("TP301", "TP302", "TP303", "TP306"),
        *("TP402", "TP412", "TP501", "TP507"),
    )
)
"""Codes that the plan of a way mends."""


def attach_fixes(
    findings: tuple[Finding, ...], context: Context, policy: str
) -> tuple[Finding, ...]:
    """Return the findings with the fix of each, where there is one."""
    fixes: dict[int, Fix | None] = {}
    out: list[Finding] = []
    for finding in findings:
        if finding.code == "TP506":
            finding = finding._replace(fix=drop_label(finding))
        elif finding.code in PLANNED and finding.severity != INFO:
            for number, way in enumerate(context.ways):
                if not any(one.path == finding.path for one in way.install.documents):
                    continue
                if number not in fixes:
                    mine = [
                        one
                        for one in findings
                        if one.code in PLANNED
                        and one.severity != INFO
                        and any(doc.path == one.path for doc in way.install.documents)
                    ]
                    fixes[number] = plan_fix(way, context, policy, mine)
                if fixes[number] is not None:
                    finding = finding._replace(fix=fixes[number])
                    break
        out.append(finding)
    return tuple(out)


def drop_label(finding: Finding) -> Fix | None:
    """Return the fix of an ordered comparison with a label: the bound without it."""
    import re

    document = finding.document
    if document is None:
        return None
    text = document.text[finding.span.start : finding.span.end]
    new = re.sub(r"((?:>=|<=|~=|>|<)\s*[^\s,;+]+)\+[A-Za-z0-9._-]+", r"\1", text)
    if new == text:
        return None
    edit = Edit(finding.span, new)
    return Fix(SAFE, f"{new.strip()}", (FileEdits(document, (edit,)),))


def plan_fix(way: Way, context: Context, policy: str, findings: list[Finding]) -> Fix | None:
    """Return the fix that mends a way in: edits, or advice where no edit is right."""
    if not family_declarations(way):
        return None
    outcome = Outcome((), (), ())
    for soften in (False, True):
        asked = request_of(way, context, policy, soften=soften)
        if not asked.request.targets:
            return None
        outcome = solve(asked.request, context.catalog)
        if len(outcome.plans) == 1 and not outcome.unserved:
            return write_plan(way, context, outcome, findings, softened=soften)
        if outcome.plans:
            return Fix(DISPLAY, split_text(outcome))
    return Fix(DISPLAY, unserved_text(outcome)) if outcome.unserved else None


def split_text(outcome: Outcome) -> str:
    """Return a split as advice: which group takes which builds."""
    listed = groups_text(outcome.plans)
    return f"no single build runs on all groups; use one file a group: {listed}"


def groups_text(plans: Iterable[Plan]) -> str:
    """Return which groups take which builds."""
    parts = []
    for plan in plans:
        names = ", ".join(dict.fromkeys(target.group.name for target in plan.targets))
        parts.append(f"{names}: {plan_text(plan)}")
    return " · ".join(parts)


def unserved_text(outcome: Outcome) -> str:
    """Return what to do where no wheel serves."""
    first = outcome.unserved[0]
    last = f"; the last release that did is {first.last_release}" if first.last_release else ""
    return f"no published wheel serves {first.target.text}: {first.because}{last}"


def plan_text(plan: Plan) -> str:
    """Return the pins of a plan in one line."""
    shown: dict[str, str] = {}
    for _, package, build in plan.builds:
        text = f"{package}=={build.full_version}"
        if "+" in text or package not in shown:
            shown[package] = text
    where = "PyPI" if plan.index_url is None else f"index {plan.channel}"
    return f"{' '.join(shown.values())} ({where})"


def write_plan(
    way: Way, context: Context, outcome: Outcome, findings: list[Finding], *, softened: bool
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
    if current_channel(way) == "cpu" and plan.channel != "cpu" and not keeps_purpose(way, plan):
        return Fix(DISPLAY, f"{text} for the groups with GPUs; the cpu index is left to the others")
    try:
        for one in drafts(way, plan, context.catalog):
            if one.edits and holds(way, context, plan, one):
                safety = safety_of(way, context, plan, findings, softened=softened)
                return Fix(safety, text, one.edits)
    except RefusedError as why:
        return Fix(DISPLAY, f"{text}; not written: {why}")
    return Fix(DISPLAY, f"{text}; not written: no edit of this file gives exactly these builds")


def keeps_purpose(way: Way, plan: Plan) -> bool:
    """True if a file with the cpu index may become a GPU file: no CPU group, same torch."""
    pins = [exact_version(placed.declaration.specifier) for placed in family_declarations(way)]
    torch = dict(plan.versions)["torch"]
    return all(target.group.gpus for target in plan.targets) and any(
        pin is not None and pin[0] == torch for pin in pins
    )


def edited(way: Way, one: Draft) -> Install:
    """Return the install of the way with a draft applied in memory."""
    changed = {
        os.path.realpath(edits.document.path): read_requirements(
            edits.document.path,
            edits.document.encode(apply_edits(edits.document.text, edits.edits)),
        )
        for edits in one.edits
    }
    originals = {os.path.realpath(document.path): document for document in way.install.documents}

    def load(path: str) -> Document:
        key = os.path.realpath(path)
        if key in changed:
            return changed[key]
        if key in originals:
            return originals[key]
        raise RewriteError("not part of the install", path=path)

    return install_of(
        load(way.install.root.path),
        load,
        client=way.install.client,
        private=dict(way.private),
        extra_indexes=way.extra_indexes,
    )


def holds(way: Way, context: Context, plan: Plan, one: Draft) -> bool:
    """True if the edited text selects, on every target of the plan, builds that run together.

    A draft with pins must give exactly the plan's versions.
    """
    versions = dict(plan.versions)
    install = edited(way, one)
    for target in plan.targets:
        chosen = select(install, target, context.catalog)
        if chosen.conflict is not None:
            return False
        torch = next((some.build for some in chosen.selections if some.package == "torch"), None)
        for selection in chosen.selections:
            if selection.status == "skipped" or selection.package not in versions:
                continue
            build = selection.build
            if build is None:
                return False
            if one.pinned and build.version != versions[selection.package]:
                return False
            if context.declared and not may_run(judge(build, target, context.drivers), build):
                return False
            if torch is not None and selection.package != "torch":
                reasons = judge_companion(build, torch)
                if any(reason.status == FAILS for reason in reasons):
                    return False
        if torch is None or (one.pinned and torch.version != versions["torch"]):
            return False
    return True


def may_run(verdict: Verdict, build: Build) -> bool:
    """True if a fix may install the build; what nobody knows is let pass for companions only."""
    return verdict.status != FAILS and (verdict.status != UNKNOWN or build.package != "torch")


def safety_of(
    way: Way, context: Context, plan: Plan, findings: Iterable[Finding], *, softened: bool
) -> str:
    """Return how far the fix can be made without asking.

    Safe: the torch version that installs today, or that the file pins, stays. Without a fleet a
    move to another channel is never safe, nor is an index for a file that names none (it may come
    from the command line).
    """
    if softened:
        return UNSAFE
    version = dict(plan.versions)["torch"]
    pins = [
        exact_version(placed.declaration.specifier)
        for placed in family_declarations(way)
        if placed.declaration.name == "torch"
    ]
    if pins and any(pin is not None for pin in pins):
        same = all(pin is not None and pin[0] == version for pin in pins)
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
    codes = {finding.code for finding in findings}
    named = any(index.option for index in (*way.install.indexes, *way.install.discarded))
    if codes == {"TP105"} and not named:
        return UNSAFE
    return SAFE


def apply_fixes(
    findings: Iterable[Finding], *, unsafe: bool
) -> tuple[list[tuple[Document, bytes]], list[str]]:
    """Return the new bytes of every document that the allowed fixes change.

    One fix a document; the caller looks again for more. Also returned: why fixes were left out.

    Raises:
        RewriteError: an edit would change more than it says.
    """
    from torchpin.rewrite.verify import check_requirements_edit

    taken: dict[str, FileEdits] = {}
    refused: list[str] = []
    done: list[Fix] = []
    for finding in findings:
        fix = finding.fix
        if fix is None or not fix.edits or fix in done:
            continue
        if fix.safety == UNSAFE and not unsafe:
            continue
        if any(edits.document.path in taken for edits in fix.edits):
            continue
        done.append(fix)
        for edits in fix.edits:
            taken[edits.document.path] = edits
    changed: list[tuple[Document, bytes]] = []
    for edits in taken.values():
        text = apply_edits(edits.document.text, edits.edits)
        check_requirements_edit(edits.document, text, edits.edits)
        try:
            changed.append((edits.document, edits.document.encode(text)))
        except UnicodeEncodeError as error:
            raise RewriteError(
                f"the new text does not fit the encoding {edits.document.encoding}: {error}",
                path=edits.document.path,
            ) from error
    return changed, refused
