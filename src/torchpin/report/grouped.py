"""Findings of one cause together: what is wrong and why once, then each place on a line."""

from __future__ import annotations

from torchpin.report.block import fix_word, head
from torchpin.report.model import CheckView, Locator, cells_text, has_edits
from torchpin.report.style import Style, clean
from torchpin.report.text import summary
from torchpin.report.wrap import wrap
from torchpin.rules.model import SEVERITIES, Because, Finding

Cause = tuple[str, str, str, tuple[Because, ...]]


def render(view: CheckView, style: Style, *, closing: bool = True) -> str:
    """Return the report, the gravest causes first, with its closing line or not."""
    causes: dict[Cause, list[Finding]] = {}
    for finding in view.findings:
        cause = (finding.severity, finding.code, finding.message, finding.because)
        causes.setdefault(cause, []).append(finding)
    ranked = sorted(
        causes.values(), key=lambda found: (-SEVERITIES.index(found[0].severity), found[0].code)
    )
    locator = Locator()
    blocks = [_block(found, locator, style) for found in ranked]
    if closing:
        blocks.append(summary(view, style))
    return "\n".join(blocks)


def _block(found: list[Finding], locator: Locator, style: Style) -> str:
    first = found[0]
    lines = head(first, style)
    for ground in first.because:
        if ground.text != first.message:
            known = style.paint("dim", f"[{ground.evidence}]")
            lead = f"  {style.paint('blue', '=')} because: "
            lines += wrap(f"{clean(ground.text)} {known}", style.columns, lead)
    for finding in found:
        place = locator.finding(finding)
        where = f"{clean(finding.path)}:{place.line}:{place.column}"
        cells = f" (in matrix {clean(cells_text(finding.cells))})" if finding.cells else ""
        star = f" {style.paint('good', '[*]')}" if has_edits(finding, unsafe=False) else ""
        lines.append(f"  {style.paint('blue', '-->')} {style.paint('bold', where)}{star}{cells}")
    for word, message in dict.fromkeys(
        (fix_word(one), one.fix.message) for one in found if one.fix is not None
    ):
        lead = f"  {style.paint('blue', '=')} {style.paint('good', f'{word}:')} "
        lines += wrap(clean(message), style.columns, lead)
    for command in dict.fromkeys(one.fix.command for one in found if one.fix is not None):
        if command:
            lead = f"  {style.paint('blue', '=')} {style.paint('good', 'then run:')} "
            lines.append(f"{lead}{clean(command)}")
    return "\n".join(lines) + "\n"
