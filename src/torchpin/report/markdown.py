"""Markdown for the comment of a pull request or a merge request."""

from __future__ import annotations

from torchpin.patterns import regex
from torchpin.report.gitlab import path_of
from torchpin.report.model import CheckView, Locator, count, fix_text, plural, with_grounds
from torchpin.report.style import clean
from torchpin.rules.model import DISPLAY, Finding

LIMIT = 60_000
"""Characters of a report; GitHub takes 65,536 in a comment."""

_MARKS = regex(r"[\\`*_{}\[\]()#+!|~>$-]")
_REFERENCE = regex(r"(?<=[@#!&~^%$])(?=[\w-])")
"""Where a mark begins the name of a person, an issue, a label …"""


def render(view: CheckView) -> str:
    """Return the report: a line of counts, then a section a file; cut where it grows too long.

    Texts of files cannot mark anything up, mention a person or link an issue.
    """
    counts = count(view.findings, unsafe=view.unsafe_fixes)
    told = [
        plural(number, word)
        for number, word in (
            (counts.errors, "error"),
            (counts.warnings, "warning"),
            (counts.infos, "note"),
        )
        if number
    ]
    silent = _silent(view)
    if not told and not silent:
        files = plural(view.files, "file")
        return f"### torchpin: no findings\n\n{files}, catalog of {view.catalog_date}.\n"
    lines = [f"### torchpin: {', '.join(told) or 'no findings'}", ""]
    size, left = len(lines[0]), len(view.findings)
    locator = Locator()
    path = None
    for finding in view.findings:
        part = _finding(finding, locator)
        if finding.path != path:
            path = finding.path
            part = [f"**{_text(path_of(path))}**", "", *part]
        size += sum(len(line) + 1 for line in part)
        if size > LIMIT:
            lines += [f"… and {plural(left, 'finding')} more.", ""]
            break
        lines += part
        left -= 1
    for number, line in enumerate(silent):
        size += len(line) + 1
        if size > LIMIT:
            lines += [f"… and {len(silent) - number} more are ignored.", ""]
            break
        lines += [line, *([""] if number == len(silent) - 1 else ())]
    closing = f"{plural(view.files, 'file')}, catalog of {view.catalog_date}."
    if counts.fixable:
        closing += f" `torchpin fix` mends {counts.fixable}."
    if counts.hidden:
        closing += f" `torchpin fix --unsafe-fixes` mends {counts.hidden} more."
    return "\n".join([*lines, closing, ""])


def _silent(view: CheckView) -> list[str]:
    """Return a line for each finding that is silenced, and by whose word."""
    if not view.ignored:
        return []
    from torchpin.report.ignored import ground

    locator = Locator()
    return [
        f"- ignored: {_text(path_of(one.finding.path))} line {locator.finding(one.finding).line}: "
        f"{one.finding.severity} `{one.finding.code}` {_text(one.finding.message)} "
        f"({_text(ground(one))})"
        for one in view.ignored
    ]


def _finding(finding: Finding, locator: Locator) -> list[str]:
    place = locator.finding(finding)
    message, grounds = with_grounds(finding)
    head = f"- line {place.line}: **{finding.severity}** `{finding.code}` {_text(message)}"
    lines = [head, "  <details><summary>why</summary>", ""]
    lines += [f"  - {_text(one.text)} ({one.evidence})" for one in grounds]
    if finding.fix is not None:
        safety = "to do by hand" if finding.fix.safety == DISPLAY else f"{finding.fix.safety} fix"
        lines.append(f"  - {safety}: {_text(fix_text(finding.fix))}")
    if len(lines) == 3:
        return [head, ""]
    return [*lines, "", "  </details>", ""]


def _text(text: str) -> str:
    """Return ``text`` so that it shows as it is."""
    text = clean(text).encode("utf-8", "replace").decode()
    text = _REFERENCE.sub("\0", text).replace("&", "&amp;").replace("<", "&lt;")
    return _MARKS.sub(r"\\\g<0>", text).replace("\0", "<!-- -->")
