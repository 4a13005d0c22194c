"""Read an edited text again and select from it: does it install what the plan says?"""

from __future__ import annotations

import os

from torchpin.catalog.model import FOLLOWERS, Build
from torchpin.documents.base import Document, apply_edits
from torchpin.documents.requirements import read_requirements
from torchpin.errors import RewriteError
from torchpin.judge.alike import SharedJudge
from torchpin.judge.companions import loaded
from torchpin.judge.model import FAILS, UNKNOWN, Verdict
from torchpin.judge.verdict import judge_companion
from torchpin.resolve.model import Plan
from torchpin.rewrite.draft import Draft
from torchpin.rewrite.parts import part_of
from torchpin.rules.context import Context, Way
from torchpin.select.alike import select_all
from torchpin.select.installs import install_of
from torchpin.select.model import Install


def edited(way: Way, one: Draft) -> Install:
    """Return the install of the way with a draft applied in memory."""
    if way.part is not None:
        from torchpin.rewrite.commands import edited_part

        return edited_part(way, one.edits)
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

    torch must be the plan's: that is what the fix says, and what its safety rests on. A draft with
    pins must give exactly the plan's versions of the others, too.
    """
    try:
        install = edited(way, one)
    except RewriteError:  # the text would no longer hold these commands
        return False
    parts = {id(part): dict(part.versions) for part in (plan, *plan.parts)}
    verdict = SharedJudge(context.drivers)
    for chosen in select_all(install, plan.targets, context.catalog):
        target = chosen.target
        versions = parts[id(part_of(plan, target))]
        if chosen.conflict is not None:
            return False
        torch = next((some.build for some in chosen.selections if some.package == "torch"), None)
        for selection in chosen.selections:
            if selection.status == "skipped" or selection.package not in versions:
                continue
            build = selection.build
            follows = selection.package in FOLLOWERS
            moved = not follows or selection.package in part_of(plan, target).moved
            if build is None and not moved and selection.status != "none":
                continue  # what comes is not known, as before
            if build is None:
                return False
            if one.pinned and moved and build.version != versions[selection.package]:
                return False
            working = loaded(build, torch) if follows and torch is not None else build
            if context.declared and not may_run(verdict(working, target), build):
                return False
            if torch is not None and selection.package != "torch":
                reasons = judge_companion(build, torch)
                if any(reason.status == FAILS for reason in reasons):
                    return False
        if torch is None or torch.version != versions["torch"]:
            return False
    return True


def may_run(verdict: Verdict, build: Build) -> bool:
    """True if a fix may install the build; what nobody knows is let pass for companions only."""
    return verdict.status != FAILS and (verdict.status != UNKNOWN or build.package != "torch")
