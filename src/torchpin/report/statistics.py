"""How often each rule fired."""

from __future__ import annotations

from torchpin.report.model import has_edits
from torchpin.report.style import Style
from torchpin.rules.model import SEVERITIES, Finding


def render(findings: tuple[Finding, ...], style: Style) -> str:
    """Return one line a rule: number, code, ``[*]`` if all can be fixed safely, name."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.name), []).append(finding)
    rows = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    digits = max((len(str(len(found))) for _, found in rows), default=1)
    lines: list[str] = []
    for (code, name), found in rows:
        safe = sum(has_edits(finding, unsafe=False) for finding in found)
        star = "[*]" if safe == len(found) else "[-]" if safe else "[ ]"
        number = str(len(found)).rjust(digits)
        gravest = max((one.severity for one in found), key=SEVERITIES.index)
        told = style.paint(gravest, style.rule(code, code))
        lines.append(f"{number}  {told}  {star}  {name}\n")
    return "".join(lines)
