"""What comments, per-file settings and a baseline silence: by whose word, and why."""

from __future__ import annotations

from torchpin.report.block import head
from torchpin.report.concise import line
from torchpin.report.model import Locator, plural
from torchpin.report.style import PLAIN, Style, clean
from torchpin.rules.ignores import Ignored


def render(found: tuple[Ignored, ...], kind: str, style: Style, *, closing: bool = True) -> str:
    """Return the list, with its closing line or not.

    ``kind``: ``text`` (below each finding by whose word, and why), ``concise`` (all on one line) or
    ``grouped`` (equal findings together, by whose word each is silenced).
    """
    locator = Locator()
    lines: list[str] = []
    if kind == "grouped":
        lines = _grouped(found, locator, style)
    for one in found if kind != "grouped" else ():
        told = line(one.finding, locator, style)
        if kind == "concise":
            lines.append(f"{told.rstrip()} ({ground(one, style)})\n")
        else:
            lines += (told, f"  = {ground(one, style)}\n")
    if closing:
        lines.append(_closing(found))
    return "".join(lines)


def ground(one: Ignored, style: Style = PLAIN) -> str:
    """Return by whose word a finding is silenced, and why."""
    if one.line is None:
        return f"{one.by}: {clean(one.reason)}"
    return f"line {one.line}: {clean(one.reason) or style.paint('warning', 'no reason is given')}"


def _grouped(found: tuple[Ignored, ...], locator: Locator, style: Style) -> list[str]:
    causes: dict[tuple[str, str, str], list[Ignored]] = {}
    for one in found:
        said = one.finding
        causes.setdefault((said.severity, said.code, said.message), []).append(one)
    lines: list[str] = []
    for group in causes.values():
        lines += (f"{text}\n" for text in head(group[0].finding, style))
        for one in group:
            place = locator.finding(one.finding)
            where = style.paint("bold", f"{clean(one.finding.path)}:{place.line}:{place.column}")
            lines.append(f"  {style.paint('blue', '-->')} {where}: {ground(one, style)}\n")
        lines.append("\n")
    return lines


def _closing(found: tuple[Ignored, ...]) -> str:
    if not found:
        return "Nothing is ignored.\n"
    mute = sum(one.line is not None and not one.reason for one in found)
    less = f", {mute} without a reason" if mute else ""
    return f"{plural(len(found), 'finding')} ignored{less}.\n"
