"""Text report of ``upgrade``."""

from __future__ import annotations

from torchpin.report import diff
from torchpin.report.lines import requirement_lines
from torchpin.report.style import Style, clean
from torchpin.report.upgrade_model import Break, Move, Unit, Upgrade
from torchpin.report.upgrade_words import (
    DECLARE,
    REFRESH,
    Folded,
    changes,
    fleet_text,
    folded,
    index_text,
    place,
    reach_text,
    standing_text,
    target_names,
    verdict,
)
from torchpin.resolve.model import Plan
from torchpin.rules.model import Because

_COLOR = {
    "safe": "good",
    "changes": "warning",
    "limited": "warning",
    "blocked": "error",
    "unknown": "warning",
}
_STATUS = {
    "runs": "good",
    "runs-via-ptx": "warning",
    "partly": "warning",
    "fails": "error",
    "unknown": "dim",
}


def render(found: Upgrade, style: Style) -> str:
    """Return the report: the groups, what breaks, what to write, what is not known, the verdict.

    Of a release that the catalog does not know, there is the verdict alone.
    """
    head = f"torch {found.goal.version}"
    if found.goal.asked not in (found.goal.version, head):
        head += f" ({clean(found.goal.asked)})"
    blocks: list[list[str]] = []
    color = _COLOR[found.verdict]
    closing = [style.paint(color, f"{head}: {clean(verdict(found))}.")]
    if not found.goal.known:
        return closing[0] + "\n"
    if found.rows:
        blocks.append(_groups(found, style))
    if found.facts:
        blocks.append(
            ["What it asks of a Linux machine:", *(f"  {_told(one)}" for one in found.facts)]
        )
    if found.breaks:
        lines = [style.paint("bold", "What breaks:")]
        for one in found.breaks:
            lines += _break(one, style)
        blocks.append(lines)
    told: set[Move] = set()
    written = [line for unit in found.units for line in _unit(unit, found, style, told)]
    if written:
        blocks.append([style.paint("bold", "What to write:"), *written])
    for each in found.diffs:
        shown = diff.render(each.path, each.before, each.after, style)
        blocks.append([shown.rstrip("\n")])
    if found.doubts:
        doubts = [f"  {_told(one)}" for one in found.doubts]
        blocks.append([style.paint("bold", "Not known:"), *doubts, f"  {REFRESH}"])
    if not found.declared:
        blocks.append([f"To judge your machines, declare them: {DECLARE}"])
    if not found.asked_for:
        blocks.append(["Nothing that was read asks for torch."])
    blocks.append(closing)
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _told(one: Because) -> str:
    return f"{clean(one.text)} [{one.evidence}]"


def _groups(found: Upgrade, style: Style) -> list[str]:
    lines = [style.paint("bold", f"On your groups torch {found.goal.version}:")]
    for one in folded(found.rows):
        lines += _group(one, found, style)
    lines += [f"  whole fleet: {text}" for text in fleet_text(found)]
    return lines


def _group(one: Folded, found: Upgrade, style: Style) -> list[str]:
    standing, reach = one.row.standing, one.row.reach
    python = f", Python {' '.join(one.pythons)}" if one.pythons else ""
    head = f"  {clean(one.group)} ({clean(', '.join(one.gpus))}{python})"
    lines = [f"{head}: {style.paint(_STATUS[standing.status], standing_text(standing))}"]
    if standing.build is not None:
        lines += [f"    {clean(one.text)} [{one.evidence}]" for one in standing.reasons]
    if index_text(one.row):
        lines.append(f"    {clean(index_text(one.row))}")
    if one.today:
        lines.append(f"    today: {clean(', '.join(one.today))}")
    # What stands in the way is told below, under what breaks.
    if reach is not None and reach.following is not None:
        lines.append(f"    {reach_text(reach)}")
        if reach.blocked is not None and reach.following != found.goal.version:
            why = f"{reach.following} does not: {reach.blocked.text}"
            lines.append(f"    {clean(why)} [{reach.blocked.evidence}]")
    return lines


def _break(one: Break, style: Style) -> list[str]:
    where = place(one)
    code = f"{one.code} " if one.code else ""
    kind = style.paint("error" if one.blocking else "warning", one.kind)
    evidence = f" [{one.because[0].evidence}]" if one.because else ""
    lines = [f"  {kind}: {clean(where)}: {code}{clean(one.text)}{evidence}"]
    if one.remedy:
        lines.append(f"    change: {clean(one.remedy)}")
    return lines


def _unit(unit: Unit, found: Upgrade, style: Style, told: set[Move]) -> list[str]:
    if not unit.plans or not (unit.moves or unit.advice or changes(found)):
        return []
    name = f" ({clean(unit.name)})" if unit.name else ""
    lines: list[str] = []
    for move in unit.moves:
        if move in told:  # of another cell of a matrix, which the same line serves
            continue
        told.add(move)
        before = clean(move.before) or "any"
        lines.append(
            f"  {clean(move.path)}:{move.line}: {move.package} {before} "
            f"-> {' or '.join(move.after)}"
        )
    shown = any(one.path == unit.path for one in found.diffs)
    if not shown and (unit.moves or (unit.advice and not unit.command)):
        for plan in unit.plans:
            lines += _plan(unit, plan, found, style)
    if unit.advice:
        lines.append(f"  advice: {clean(unit.path)}{name}: {clean(unit.advice)}")
    if unit.command:
        lines.append(f"  then run `{clean(unit.command)}`")
    return lines


def _plan(unit: Unit, plan: Plan, found: Upgrade, style: Style) -> list[str]:
    who = f" for {clean(target_names(plan.targets))}" if found.declared else ""
    lines = [f"  {clean(unit.path)}{who}:"]
    return [
        *lines,
        *(f"      {style.paint('good', one)}" for one in requirement_lines(plan, unit.client)),
    ]
