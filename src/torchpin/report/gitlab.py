"""GitLab's code quality report: an array of issues.

The form is documented at https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.
"""

from __future__ import annotations

from torchpin.report.model import CheckView, Locator, fix_text, with_grounds
from torchpin.report.style import clean
from torchpin.rules.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SEVERITY = {"error": "major", "warning": "minor", "info": "info"}


def render(view: CheckView) -> str:
    """Return the report; ``[]`` without findings.

    A fingerprint leaves the line out: an edit above a finding makes no new one of it. Findings that
    are alike in one file are told apart by their number. What is silenced is of severity info.
    """
    import json

    locator = Locator()
    seen: dict[str, int] = {}
    found = [(finding, "") for finding in view.findings]
    if view.ignored:
        from torchpin.report.ignored import ground

        found += ((one.finding, ground(one)) for one in view.ignored)
    issues: list[dict[str, Any]] = []
    for finding, ignored in found:
        place = locator.finding(finding)
        issues.append(
            {
                "description": _description(finding, ignored),
                "check_name": finding.code,
                "fingerprint": fingerprint(finding, seen),
                "severity": SEVERITY["info" if ignored else finding.severity],
                "location": {
                    "path": path_of(finding.path),
                    "lines": {"begin": place.line, "end": max(place.line, place.end_line)},
                },
            }
        )
    return json.dumps(issues, indent=2) + "\n"


def path_of(path: str) -> str:
    """Return a path as services know it: from the root of the checkout, with slashes, in UTF-8."""
    import os

    if os.path.isabs(path):
        inside = os.path.relpath(path)
        path = path if inside.startswith("..") else inside
    words = path.replace(os.sep, "/").removeprefix("./")
    return clean(words).encode("utf-8", "replace").decode()


def _description(finding: Finding, ignored: str) -> str:
    message, grounds = with_grounds(finding)
    text = [f"{finding.code} {finding.name}: {clean(message)}"]
    text += [f"because: {clean(one.text)} [{one.evidence}]" for one in grounds]
    if ignored:
        text.append(f"ignored: {ignored}")
    elif finding.fix is not None:
        text.append(f"fix ({finding.fix.safety}): {clean(fix_text(finding.fix))}")
    return " · ".join(text).encode("utf-8", "replace").decode()


def fingerprint(finding: Finding, seen: dict[str, int]) -> str:
    """Return what a service knows a finding again by; ``seen`` counts those of one run that are
    alike."""
    from hashlib import sha256

    parts = (
        finding.code,
        path_of(finding.path),
        finding.package or "",
        finding.group or "",
        finding.python or "",
        clean(finding.message),
    )
    first = "\0".join(parts)
    number = seen[first] = seen.get(first, 0) + 1
    return sha256(f"{first}\0{number}".encode("utf-8", "replace")).hexdigest()
