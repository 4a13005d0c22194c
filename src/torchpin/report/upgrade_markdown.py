"""Markdown report of ``upgrade``, for the comment of a pull request."""

from __future__ import annotations

from torchpin.report import diff
from torchpin.report.lines import requirement_lines
from torchpin.report.markdown import LIMIT
from torchpin.report.markdown import _text as shown
from torchpin.report.style import PLAIN, redact
from torchpin.report.upgrade_model import Break, Diff, Move, Unit, Upgrade
from torchpin.report.upgrade_words import (
    DECLARE,
    REFRESH,
    Folded,
    evidence_of,
    fleet_text,
    folded,
    index_text,
    place,
    standing_text,
    target_names,
    verdict,
)
from torchpin.rules.model import Because


def render(found: Upgrade) -> str:
    """Return the report: the verdict, a table of the groups, then what breaks and what to write.

    Texts of files cannot mark anything up, mention a person or link an issue.
    """
    lines = [f"### torch {shown(found.goal.version)}: {shown(verdict(found))}", ""]
    if not found.goal.known:
        return "\n".join(lines)
    if found.rows:
        lines += _table(found)
    if found.facts:
        lines += _list("It asks of a Linux machine", found.facts)
    if found.breaks:
        lines += ["**What breaks**", ""]
        for one in found.breaks:
            lines += _break(one)
        lines.append("")
    told: set[Move] = set()
    for unit in found.units:
        lines += _unit(unit, found, told)
    for each in found.diffs:
        lines += _diff(each)
    if found.doubts:
        lines += _list("Not known", found.doubts)
        lines += [REFRESH, ""]
    if not found.declared:
        lines += [f"To judge your machines, declare them: {DECLARE}", ""]
    if not found.asked_for:
        lines += ["Nothing that was read asks for torch.", ""]
    size = 0
    for at, line in enumerate(lines):
        size += len(line) + 1
        if size > LIMIT:
            return "\n".join([*lines[:at], "", "… cut here.", ""])
    return "\n".join(lines)


def _table(found: Upgrade) -> list[str]:
    lines = [
        "| group | GPUs | Python | this release | last safe | the next does not run because |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_group(one) for one in folded(found.rows)]
    return [*lines, "", *(f"- whole fleet: {shown(text)}" for text in fleet_text(found)), ""]


def _group(one: Folded) -> str:
    reach = one.row.reach
    last, why = "", ""
    if reach is not None:
        last = (
            f"{reach.last.place} ({evidence_of(reach.last)})"
            if reach.last is not None
            else "none is proved"
        )
        if reach.blocked is not None:
            why = f"{reach.blocked.text} ({reach.blocked.evidence})"
    cells = (
        one.group,
        ", ".join(one.gpus),
        ", ".join(one.pythons),
        "; ".join(filter(None, (standing_text(one.row.standing), index_text(one.row)))),
        last,
        why,
    )
    return f"| {' | '.join(shown(cell) for cell in cells)} |"


def _list(title: str, some: tuple[Because, ...]) -> list[str]:
    return [f"**{title}**", "", *(f"- {shown(one.text)} ({one.evidence})" for one in some), ""]


def _break(one: Break) -> list[str]:
    code = f"`{one.code}` " if one.code else ""
    where = shown(place(one))
    evidence = f" ({one.because[0].evidence})" if one.because else ""
    lines = [f"- {one.kind}, {where}: {code}{shown(one.text)}{evidence}"]
    if one.remedy:
        lines.append(f"  - change: {shown(one.remedy)}")
    return lines


def _unit(unit: Unit, found: Upgrade, told: set[Move]) -> list[str]:
    moves = [move for move in unit.moves if move not in told]  # cells of a matrix share lines
    told.update(moves)
    if not unit.plans or not (moves or unit.advice):
        return []
    lines = [f"**{shown(unit.path)}**", ""]
    for move in moves:
        where = f"line {move.line}"
        if move.path != unit.path:
            where = f"{shown(move.path)}, {where}"
        lines.append(
            f"- {where}: {shown(move.package)} {shown(move.before or 'any')} → "
            f"{shown(' or '.join(move.after))}"
        )
    if unit.advice:
        lines.append(f"- {shown(unit.advice)}")
    if unit.command:
        lines.append(f"- then run {shown(unit.command)}")
    only_lock = unit.command is not None and not unit.moves
    if only_lock or any(one.path == unit.path for one in found.diffs):
        return [*lines, ""]
    for plan in unit.plans:
        who = f"For {shown(target_names(plan.targets))}:" if found.declared else ""
        lines += ["", *([who, ""] if who else []), "```text"]
        lines += [_fenced(one) for one in requirement_lines(plan, unit.client)]
        lines.append("```")
    return [*lines, ""]


def _diff(one: Diff) -> list[str]:
    text = diff.render(one.path, one.before, one.after, PLAIN).rstrip("\n")
    return ["```diff", *(_fenced(line) for line in text.split("\n")), "```", ""]


def _fenced(line: str) -> str:
    """Return a line that cannot end the block that it stands in."""
    line = redact(line).encode("utf-8", "replace").decode()
    return line.replace("```", "` ` `")
