"""JSON, the stable contract: ``"version": 1`` with a schema for each command.

Within a version keys may be added, never renamed, removed or given another meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchpin.judge.model import Verdict
from torchpin.report.lines import full_versions, requirement_lines, unique
from torchpin.report.model import CheckView, Locator, count
from torchpin.report.style import redact
from torchpin.resolve.model import Outcome, Plan
from torchpin.rules.model import Finding, Fix
from torchpin.select.model import Selection

VERSION = 1


def check(view: CheckView) -> str:
    """Return the report of ``check`` and ``fix``."""
    locator = Locator()
    counts = count(view.findings, unsafe=view.unsafe_fixes)
    silent = {}
    if view.ignored is not None:
        silent["ignored"] = [
            {
                **_finding(one.finding, locator),
                "ignored": {"by": one.by, "line": one.line, "reason": redact(one.reason)},
            }
            for one in view.ignored
        ]
    return dump(
        {
            "version": VERSION,
            "catalog": catalog_of(view.catalog_date, view.catalog_digest, view.stale),
            "findings": [_finding(finding, locator) for finding in view.findings],
            **silent,
            "summary": {
                "files": view.files,
                "errors": counts.errors,
                "warnings": counts.warnings,
                "infos": counts.infos,
                "fixable": counts.fixable,
            },
        }
    )


def catalog_of(date: str, digest: str, stale: bool) -> dict[str, Any]:
    """Return what a report says of the catalog."""
    return {"date": date, "digest": digest, "stale": stale}


Known = tuple[str, str, bool]
"""Date and digest of the catalog, and whether it is old."""


def show(
    selections: tuple[tuple[Selection, Verdict | None], ...],
    known: Known,
    cells: Sequence[tuple[tuple[str, str], ...]] = (),
) -> str:
    """Return every selection with its verdict, and with its cell of a matrix where there is one."""
    locator = Locator()
    places = _places(selections, locator)
    rows = [_selection(selection, verdict, places, locator) for selection, verdict in selections]
    for row, cell in zip(rows, cells or [()] * len(rows), strict=True):
        row["matrix"] = dict(cell)
    return dump({"version": VERSION, "catalog": catalog_of(*known), "selections": rows})


def resolve(outcome: Outcome, known: Known, client: str = "pip") -> str:
    """Return the plans, what no wheel serves, and why one plan is not enough."""
    conflicts = [
        {
            "path": conflict.origin.path,
            "line": conflict.origin.line,
            "text": redact(conflict.text),
            "evidence": conflict.evidence,
            "without": conflict.without or None,
        }
        for conflict in outcome.explanation
    ]
    return dump(
        {
            "version": VERSION,
            "catalog": catalog_of(*known),
            "plans": [plan_of(plan, client) for plan in outcome.plans],
            "unserved": [
                {
                    "group": unserved.target.group.name,
                    "python": _text(unserved.target.python),
                    "gpu": unserved.gpu,
                    "last_release": unserved.last_release,
                    "because": unserved.because,
                }
                for unserved in outcome.unserved
            ],
            "conflicts": conflicts,
        }
    )


def catalog_show(rows: list[dict[str, Any]], known: Known) -> str:
    """Return the builds that ``catalog show`` found, rows of ``catalog.show``."""
    return dump({"version": VERSION, "catalog": catalog_of(*known), "builds": rows})


def dump(value: dict[str, Any]) -> str:
    """Return an object as every command prints it."""
    import json

    # ASCII only: the bytes are the same on every terminal, and file names that are no UTF-8
    # stay valid JSON.
    return json.dumps(value, indent=2) + "\n"


def _finding(finding: Finding, locator: Locator) -> dict[str, Any]:
    place = locator.finding(finding)
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity,
        "path": finding.path,
        **place._asdict(),
        "message": redact(finding.message),
        "package": finding.package,
        "group": finding.group,
        "python": finding.python,
        "matrix": [dict(cell) for cell in finding.cells],
        "because": [ground(one.text, one.evidence, one.source) for one in finding.because],
        "related": [
            {"path": related.path, "line": related.line, "message": redact(related.message)}
            for related in finding.related
        ],
        "fix": None if finding.fix is None else _fix(finding.fix, locator),
    }


def _fix(fix: Fix, locator: Locator) -> dict[str, Any]:
    return {
        "safety": fix.safety,
        "message": redact(fix.message),
        "edits": [
            {
                "path": group.document.path,
                **locator.place(group.document, edit.span.start, edit.span.end)._asdict(),
                "text": redact(edit.text),
            }
            for group in fix.edits
            for edit in group.edits
        ],
        "command": fix.command,
    }


def ground(text: str, evidence: str, source: str) -> dict[str, str]:
    """Return a statement with its evidence."""
    return {"text": redact(text), "evidence": evidence, "source": redact(source)}


def _places(
    selections: tuple[tuple[Selection, Verdict | None], ...], locator: Locator
) -> dict[tuple[str, str], tuple[str, int]]:
    """Return the place of each declared package on each target."""
    out: dict[tuple[str, str], tuple[str, int]] = {}
    for selection, _ in selections:
        if selection.placed is not None:
            document, declaration = selection.placed
            line = locator.at(document, declaration.span.start).line
            out.setdefault((selection.package, selection.target.text), (document.path, line))
    return out


def _selection(
    selection: Selection,
    verdict: Verdict | None,
    places: dict[tuple[str, str], tuple[str, int]],
    locator: Locator,
) -> dict[str, Any]:
    target = selection.target
    # A package that another one implies stands where that one is declared.
    path, line = places.get((selection.implied_by or "", target.text), (None, None))
    if selection.placed is not None:
        document, declaration = selection.placed
        path, line = document.path, locator.at(document, declaration.span.start).line
    build = selection.build
    because: list[dict[str, str]] = []
    if verdict is not None:
        because = [ground(r.text, r.evidence, r.source) for r in verdict.reasons]
    elif selection.miss is not None:
        miss = selection.miss
        because = [ground(miss.message, miss.evidence, miss.source)]
    return {
        "path": path,
        "line": line,
        "package": selection.package,
        "group": target.group.name,
        "python": _text(target.python),
        "platform": target.group.platform,
        "install": None,
        "status": selection.status,
        "build": None
        if build is None
        else {
            "version": build.full_version,
            "channel": build.channel,
            "index": build.home,
            "tag": wheel_tag(selection),
        },
        "verdict": None if verdict is None else verdict.status,
        "reason": redact(selection.because),
        "implied_by": selection.implied_by,
        "because": because,
    }


def wheel_tag(selection: Selection) -> str | None:
    """Return the Python tag of the selected wheel (``cp311``, ``cp39-abi3``, ``py3``), None if not
    known.
    """
    build, python = selection.build, selection.target.python
    if build is None:
        return None
    tags = (*build.pythons, *build.pythons_inferred)
    if python is not None and python.tag in tags:
        return python.tag
    if python is not None and not python.free_threaded:
        for tag in tags:
            stem, _, abi = tag.partition("-")
            if abi == "abi3" and stem[2:3] == str(python.major) and int(stem[3:]) <= python.minor:
                return tag
    return next((tag for tag in tags if tag.startswith("py")), None)


def plan_of(plan: Plan, client: str) -> dict[str, Any]:
    """Return a plan with its requirement lines for a client."""
    return {
        "groups": unique(target.group.name for target in plan.targets),
        "python": unique(str(t.python) for t in plan.targets if t.python is not None),
        "channel": plan.channel,
        "index": plan.home,
        "index_url": plan.index_url,
        "packages": full_versions(plan),
        "requirements": list(requirement_lines(plan, client)),
        "because": [ground(*one) for one in plan.because],
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)
