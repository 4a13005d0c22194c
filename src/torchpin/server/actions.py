"""Code actions: the fix of a finding, all safe fixes of a file, and a comment that silences."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lsprotocol.types import CodeAction, CodeActionKind, Diagnostic, Position, Range

from torchpin import engine
from torchpin.errors import TorchpinError
from torchpin.report.style import clean
from torchpin.rewrite.fixes import apply_fixes
from torchpin.rules.model import SAFE, Finding, Fix
from torchpin.server.analysis import Analysis, baseline
from torchpin.server.buffers import overlay_of
from torchpin.server.diagnostics import Places, diagnostic
from torchpin.server.edits import between, ignore_edit, joined, workspace_edit

FIX_ALL = "source.fixAll.torchpin"
_LONGEST = 120
"""Characters of a title; menus cut longer ones."""


def wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Tell whether a client that asks for some kinds of actions takes one: kinds are a tree."""
    return not only or any(kind == one or kind.startswith(f"{one}.") for one in only)


def actions(
    analysis: Analysis,
    path: str,
    place: Range,
    only: Sequence[str] | None,
    encoding: str,
    *,
    versions: bool,
) -> list[CodeAction]:
    """Return the actions for a range of an open file."""
    if analysis.report is None:
        return []
    places = Places(analysis, encoding)
    out: list[CodeAction] = []
    if wanted(CodeActionKind.QuickFix.value, only):
        here = [
            (finding, shown)
            for finding in analysis.report.findings
            if _same(finding.path, path)
            for shown in (diagnostic(finding, places),)
            if _touches(shown.range, place)
        ]
        out += fix_actions(here, places, versions=versions)
        out += ignore_actions(here, places, versions=versions)
    if wanted(FIX_ALL, only):
        out += fix_all(analysis, path, places, versions=versions)
    return out


def _same(path: str, other: str) -> bool:
    return path == other or os.path.realpath(path) == os.path.realpath(other)


def _touches(one: Range, other: Range) -> bool:
    def key(place: Position) -> tuple[int, int]:
        return place.line, place.character

    return key(one.start) <= key(other.end) and key(other.start) <= key(one.end)


def fix_actions(
    found: Sequence[tuple[Finding, Diagnostic]], places: Places, *, versions: bool
) -> list[CodeAction]:
    """Return one action for each fix that changes files; those that are advice only have none."""
    by_fix: list[tuple[Fix, list[tuple[Finding, Diagnostic]]]] = []
    for finding, shown in found:
        fix = finding.fix
        if fix is None or not fix.edits:
            continue
        same = next((some for known, some in by_fix if known == fix), None)
        if same is None:
            by_fix.append((fix, same := []))
        same.append((finding, shown))
    out: list[CodeAction] = []
    for fix, some in by_fix:
        if apply_fixes([some[0][0]], unsafe=True)[1]:
            continue  # it would change more than it says: it is not offered
        safe = fix.safety == SAFE
        codes = ", ".join(dict.fromkeys(finding.code for finding, _ in some))
        edits = joined((group.document.path, group.edits) for group in fix.edits)
        others = len(edits) - 1
        out.append(
            CodeAction(
                title=_title(
                    f"{'Fix' if safe else 'Unsafe fix'} {codes}: {fix.message}"
                    + (f" (and {others} more file{'s' if others > 1 else ''})" if others else "")
                ),
                kind=CodeActionKind.QuickFix,
                diagnostics=[shown for _, shown in some],
                is_preferred=True if safe else None,
                edit=workspace_edit(edits, places, versions=versions),
            )
        )
    return out


def _title(text: str) -> str:
    text = clean(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def ignore_actions(
    found: Sequence[tuple[Finding, Diagnostic]], places: Places, *, versions: bool
) -> list[CodeAction]:
    """Return an action a rule that silences it where it stands, where a comment can."""
    out: list[CodeAction] = []
    done: set[tuple[str, int]] = set()
    for finding, shown in found:
        document = finding.document
        if document is None or (finding.code, shown.range.start.line) in done:
            continue
        done.add((finding.code, shown.range.start.line))
        edit = ignore_edit(document, finding.span.start, finding.code)
        if edit is not None:
            out.append(
                CodeAction(
                    title=f"Ignore {finding.code} here",
                    kind=CodeActionKind.QuickFix,
                    diagnostics=[shown],
                    edit=workspace_edit({document.path: [edit]}, places, versions=versions),
                )
            )
    return out


def fix_all(analysis: Analysis, path: str, places: Places, *, versions: bool) -> list[CodeAction]:
    """Return the action that makes all safe fixes of one file; none if there is none to make.

    Fixes are made until none is left, as ``torchpin fix`` does; they may change other files.
    """
    paths = frozenset(one.path for one in analysis.documents if _same(one.path, path))
    options = analysis.options._replace(unsafe_fixes=False)
    fleet = analysis.fleet
    path = fleet.settings.baseline if fleet is not None else ""
    try:
        waits = baseline(path).new if path else None
        result = engine.fix(options, fleet, overlay_of(analysis.buffers), paths, waits)
    except TorchpinError:  # a fix would change more than it says: nothing is offered
        return []
    edits = {
        document.path: between(
            document.text, data.removeprefix(document.bom).decode(document.encoding)
        )
        for document, data in result.changes
    }
    if not edits:
        return []
    return [
        CodeAction(
            title="Make all safe fixes of torchpin",
            kind=FIX_ALL,
            edit=workspace_edit(edits, places, versions=versions),
        )
    ]
