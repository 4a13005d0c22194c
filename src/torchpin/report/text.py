"""The text report of ``check`` and ``fix``: place, code, message, frame, grounds, fix."""

from __future__ import annotations

from torchpin.report.frame import frame
from torchpin.report.model import CheckView, Locator, cells_text, count, has_edits, plural
from torchpin.report.style import Style, clean
from torchpin.rules.model import DISPLAY, Finding


def render(view: CheckView, style: Style, *, closing: bool = True) -> str:
    """Return the report, with its closing line unless ``closing`` is False."""
    locator = Locator()
    blocks = [finding_block(finding, locator, style) for finding in view.findings]
    if closing:
        blocks.append(summary(view, style))
    return "\n".join(blocks)


def finding_block(finding: Finding, locator: Locator, style: Style) -> str:
    """Return the lines of one finding, ending in a line end."""
    place = locator.finding(finding)
    where = clean(finding.path)
    if finding.document is not None:
        where = f"{where}:{place.line}:{place.column}"
    head = style.paint(finding.severity, f"{finding.severity}[{finding.code}]")
    same = next((b.evidence for b in finding.because if b.text == finding.message), None)
    tail = f" {_evidence(same, style)}" if same is not None else ""
    lines = [f"{style.paint('bold', where)}: {head} {clean(finding.message)}{tail}"]
    margin = "  "
    if finding.document is not None and finding.document.text:
        gutter, shown = frame(finding.document, finding.span, locator, style, finding.severity)
        margin = " " * (gutter + 1)
        lines += shown
    bullet = f"{margin}{style.paint('blue', '=')}"
    if finding.cells:
        lines.append(f"{bullet} in matrix: {clean(cells_text(finding.cells))}")
    for ground in finding.because:
        if ground.text != finding.message:
            shown_evidence = _evidence(ground.evidence, style)
            lines.append(f"{bullet} because: {clean(ground.text)} {shown_evidence}")
    for related in finding.related:
        lines.append(
            f"{bullet} see: {clean(related.path)}:{related.line}: {clean(related.message)}"
        )
    if finding.fix is not None:
        lines += _fix(finding, bullet, style)
    return "\n".join(lines) + "\n"


def summary(view: CheckView, style: Style) -> str:
    """Return the closing lines: counts, what ``fix`` would mend, the catalog's date."""
    counts = count(view.findings, unsafe=view.unsafe_fixes)
    catalog = style.paint("dim", f"Catalog of {view.catalog_date}.")
    if not view.findings:
        good = style.paint("good", f"No findings in {plural(view.files, 'file')}.")
        return f"{good} {catalog}\n"
    parts = [
        style.paint(severity, plural(number, word))
        for severity, number, word in (
            ("error", counts.errors, "error"),
            ("warning", counts.warnings, "warning"),
            ("info", counts.infos, "info"),
        )
        if number
    ]
    line = f"Found {', '.join(parts)} in {plural(view.files, 'file')}."
    option = " --unsafe-fixes" if view.unsafe_fixes else ""
    if counts.fixable:
        line += f" `torchpin fix{option}` mends {counts.fixable}"
        line += f"; {counts.hidden} more with --unsafe-fixes." if counts.hidden else "."
    elif counts.hidden:
        line += f" `torchpin fix --unsafe-fixes` mends {counts.hidden}."
    return f"{line} {catalog}\n"


def _evidence(word: str, style: Style) -> str:
    return style.paint("dim", f"[{word}]")


def _fix(finding: Finding, bullet: str, style: Style) -> list[str]:
    fix = finding.fix
    assert fix is not None
    word = {DISPLAY: "advice", "unsafe": "fix (unsafe)"}.get(fix.safety, "fix")
    if fix.safety != DISPLAY and not has_edits(finding, unsafe=True):
        word = "advice"
    lines = [f"{bullet} {style.paint('good', word)}: {clean(fix.message)}"]
    if fix.command:
        lines.append(f"{bullet} {style.paint('good', 'then run')}: {clean(fix.command)}")
    return lines
