"""JSON report of ``upgrade``: ``schemas/upgrade.v1.json``."""

from __future__ import annotations

from typing import Any

from torchpin.judge.model import Reason
from torchpin.report import diff
from torchpin.report.json_ import VERSION, Known, catalog_of, dump, ground, plan_of
from torchpin.report.lines import unique
from torchpin.report.recipe_json import build_of
from torchpin.report.style import PLAIN, redact
from torchpin.report.upgrade_model import Break, Row, Unit, Upgrade
from torchpin.report.upgrade_words import changes, verdict


def render(found: Upgrade, known: Known) -> str:
    """Return the report as JSON."""
    value = {
        "version": VERSION,
        "catalog": catalog_of(*known),
        "to": {
            "asked": found.goal.asked,
            "version": found.goal.version,
            "known": found.goal.known,
        },
        "verdict": {
            "status": found.verdict,
            "text": redact(verdict(found)),
            "changes": changes(found),
            "blocked": list(found.blocked),
            "unknown": list(found.unknown),
            "limited": list(found.limited),
        },
        "groups": [_row(row) for row in found.rows],
        "fleet": {
            "last_safe": found.last_for_all,
            "one_set": None if found.one_set is None else plan_of(found.one_set, "pip"),
        }
        if found.rows
        else None,
        "breaks": [_break(one) for one in found.breaks],
        "files": [_unit(unit) for unit in found.units],
        "diffs": [
            {"path": one.path, "diff": diff.render(one.path, one.before, one.after, PLAIN)}
            for one in found.diffs
        ],
        "facts": [ground(*one) for one in found.facts],
        "unknown": [ground(*one) for one in found.doubts],
    }
    return dump(value)


def _row(row: Row) -> dict[str, Any]:
    standing, reach = row.standing, row.reach
    group, python = standing.target
    return {
        "group": group.name,
        "python": None if python is None else str(python),
        "platform": group.platform,
        "gpus": unique(gpu.name for gpu in group.gpus),
        "status": standing.status,
        "build": build_of(standing.build),
        "because": [_reason(one) for one in standing.reasons],
        "today": build_of(row.today),
        "last_safe": build_of(reach.last) if reach is not None else None,
        "next": None
        if reach is None or reach.following is None
        else {
            "version": reach.following,
            "because": None if reach.blocked is None else _reason(reach.blocked),
        },
    }


def _reason(one: Reason) -> dict[str, str]:
    return ground(one.text, one.evidence, one.source)


def _break(one: Break) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "code": one.code,
        "text": redact(one.text),
        "groups": list(one.groups),
        "python": list(one.pythons),
        "path": one.path,
        "line": one.line,
        "package": one.package,
        "change": redact(one.remedy) or None,
        "blocking": one.blocking,
        "because": [ground(*each) for each in one.because],
    }


def _unit(unit: Unit) -> dict[str, Any]:
    return {
        "path": unit.path,
        "name": unit.name,
        "groups": list(unit.groups),
        "pins": [
            {
                "package": move.package,
                "path": move.path,
                "line": move.line,
                "from": redact(move.before),
                "to": list(move.after),
            }
            for move in unit.moves
        ],
        "plans": [plan_of(plan, unit.client) for plan in unit.plans],
        "advice": redact(unit.advice) or None,
        "command": unit.command,
    }
