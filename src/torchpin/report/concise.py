"""One line a finding: ``path:line:column: severity[CODE] message``, as compilers write theirs."""

from __future__ import annotations

from torchpin.report.model import CheckView, Locator, has_edits, in_matrix
from torchpin.report.style import Style, clean
from torchpin.report.text import summary
from torchpin.rules.model import Finding


def render(view: CheckView, style: Style, *, closing: bool = True) -> str:
    """Return the report, with its closing line or not; ``[*]`` marks what ``fix`` mends."""
    locator = Locator()
    lines: list[str] = []
    for finding in view.findings:
        star = f" {style.paint('good', '[*]')}" if has_edits(finding, unsafe=False) else ""
        lines.append(line(finding, locator, style, star))
    return "".join(lines) + (summary(view, style) if closing else "")


def line(finding: Finding, locator: Locator, style: Style, star: str = "") -> str:
    """Return one finding: place, severity and code, ``star`` behind them, message."""
    place = locator.finding(finding)
    where = style.paint("bold", f"{clean(finding.path)}:{place.line}:{place.column}")
    code = style.rule(finding.code, f"{finding.severity}[{finding.code}]")
    code = style.paint(finding.severity, code)
    return f"{where}: {code}{star} {clean(finding.message + in_matrix(finding))}\n"
