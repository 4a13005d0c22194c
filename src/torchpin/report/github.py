"""Workflow commands of GitHub Actions: an annotation a finding."""

from __future__ import annotations

from torchpin.report.model import CheckView, Locator, fix_text, with_grounds
from torchpin.report.style import clean
from torchpin.rules.model import Finding

_LEVEL = {"error": "error", "warning": "warning", "info": "notice"}


def render(view: CheckView) -> str:
    """Return one ``::error file=…::message`` line a finding, escaped as the runner reads it.

    What is silenced is a notice.
    """
    locator = Locator()
    lines = [_line(finding, locator) for finding in view.findings]
    if view.ignored:
        from torchpin.report.ignored import ground

        lines += (_line(one.finding, locator, ground(one)) for one in view.ignored)
    return "".join(lines)


def _line(finding: Finding, locator: Locator, ignored: str = "") -> str:
    place = locator.finding(finding)
    fields = [f"file={_property(clean(finding.path))}"]
    if finding.document is not None:
        fields += [f"line={place.line}", f"endLine={place.end_line}"]
        if place.line == place.end_line:
            # The runner refuses columns for a range of several lines.
            fields += [f"col={place.column}", f"endColumn={place.end_column}"]
    title = f"{finding.code} {finding.name}{', ignored' if ignored else ''}"
    fields.append(f"title={_property(title)}")
    message, grounds = with_grounds(finding)
    text = [clean(message), *(f"because: {clean(b.text)} [{b.evidence}]" for b in grounds)]
    if ignored:
        text.append(f"ignored: {ignored}")
    elif finding.fix is not None:
        text.append(f"fix ({finding.fix.safety}): {clean(fix_text(finding.fix))}")
    level = "notice" if ignored else _LEVEL[finding.severity]
    return f"::{level} {','.join(fields)}::{_data(chr(10).join(text))}\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
