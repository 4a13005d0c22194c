"""JUnit XML, as test reports of CI services read it: a suite a file, a case a finding.

The elements and attributes are those of https://github.com/testmoapp/junitxml.
"""

from __future__ import annotations

from torchpin.patterns import regex
from torchpin.report.gitlab import path_of
from torchpin.report.model import CheckView, Locator, count, fix_text, with_grounds
from torchpin.report.style import clean
from torchpin.rules.model import INFO, Finding

_NOT_XML = regex("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 forbids, even as a reference."""


def render(view: CheckView) -> str:
    """Return the report. Errors and warnings are failures; informations are cases that pass.

    Without findings there is one case, which passes: services refuse a report without any.
    """
    suites: dict[str, list[Finding]] = {}
    for finding in view.findings:
        suites.setdefault(path_of(finding.path), []).append(finding)
    locator = Locator()
    counts = count(view.findings, unsafe=view.unsafe_fixes)
    failures = counts.errors + counts.warnings
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="torchpin" tests="{len(view.findings) or 1}" failures="{failures}" '
        'errors="0">',
    ]
    if not suites:
        lines += [
            '  <testsuite name="torchpin" tests="1" failures="0" errors="0">',
            '    <testcase name="no findings" classname="torchpin"/>',
            "  </testsuite>",
        ]
    for path, findings in suites.items():
        failed = sum(finding.severity != INFO for finding in findings)
        lines.append(
            f'  <testsuite name="{_xml(path)}" tests="{len(findings)}" failures="{failed}" '
            'errors="0">'
        )
        for finding in findings:
            lines += _case(path, finding, locator)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _case(path: str, finding: Finding, locator: Locator) -> list[str]:
    place = locator.finding(finding)
    name = _xml(f"{finding.code} {finding.name} line {place.line}, column {place.column}")
    head = (
        f'    <testcase name="{name}" classname="{_xml(path)}" file="{_xml(path)}" '
        f'line="{place.line}">'
    )
    message, grounds = with_grounds(finding)
    body = [clean(message), *(f"because: {clean(one.text)} [{one.evidence}]" for one in grounds)]
    if finding.fix is not None:
        body.append(f"fix ({finding.fix.safety}): {clean(fix_text(finding.fix))}")
    text = _xml("\n".join(body))
    if finding.severity == INFO:
        inner = f"      <system-out>{text}</system-out>"
    else:
        message = _xml(clean(finding.message))
        inner = f'      <failure type="{finding.severity}" message="{message}">{text}</failure>'
    return [head, inner, "    </testcase>"]


def _xml(text: str) -> str:
    """Return ``text`` for an element or an attribute in double quotes."""
    text = _NOT_XML.sub("\ufffd", text)
    for character, reference in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(character, reference)
    return text
