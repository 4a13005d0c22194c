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
    """Return the report. Errors and warnings are failures; informations are cases that pass, and
    what is silenced is skipped.

    Without findings there is one case, which passes: services refuse a report without any.
    """
    suites: dict[str, list[tuple[Finding, str]]] = {}
    for finding in view.findings:
        suites.setdefault(path_of(finding.path), []).append((finding, ""))
    silent = view.ignored or ()
    if silent:
        from torchpin.report.ignored import ground

        for one in silent:
            suites.setdefault(path_of(one.finding.path), []).append((one.finding, ground(one)))
    locator = Locator()
    counts = count(view.findings, unsafe=view.unsafe_fixes)
    failures = counts.errors + counts.warnings
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="torchpin" tests="{len(view.findings) + len(silent) or 1}" '
        f'failures="{failures}" errors="0"{_skipped(len(silent))}>',
    ]
    if not suites:
        lines += [
            '  <testsuite name="torchpin" tests="1" failures="0" errors="0">',
            '    <testcase name="no findings" classname="torchpin"/>',
            "  </testsuite>",
        ]
    for path, findings in suites.items():
        failed = sum(not ignored and finding.severity != INFO for finding, ignored in findings)
        skipped = _skipped(sum(ignored != "" for _, ignored in findings))
        lines.append(
            f'  <testsuite name="{_xml(path)}" tests="{len(findings)}" failures="{failed}" '
            f'errors="0"{skipped}>'
        )
        for finding, ignored in findings:
            lines += _case(path, finding, locator, ignored)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _skipped(number: int) -> str:
    return f' skipped="{number}"' if number else ""


def _case(path: str, finding: Finding, locator: Locator, ignored: str) -> list[str]:
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
    if ignored:
        why = _xml(f"{clean(finding.message)} (ignored: {ignored})")
        return [head, f'      <skipped message="{why}"/>', "    </testcase>"]
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
