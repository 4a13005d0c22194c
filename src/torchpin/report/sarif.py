"""SARIF 2.1.0, as code scanning services read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchpin.report.gitlab import fingerprint
from torchpin.report.model import CheckView, Locator, fix_text, has_edits, with_grounds
from torchpin.report.pages import pages
from torchpin.report.rule_docs import RuleText
from torchpin.report.style import redact
from torchpin.rules.ignores import Ignored
from torchpin.rules.model import Finding, Fix

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL = {"error": "error", "warning": "warning", "info": "note"}
_PROBLEM = {"error": "error", "warning": "warning", "info": "recommendation"}
"""``problem.severity`` as code scanning orders rules by it."""
_TAGS = {
    "TP0": "files",
    "TP1": "availability",
    "TP2": "hardware",
    "TP3": "compatibility",
    "TP4": "indexes",
    "TP5": "drift",
    "TP6": "horizon",
    "TP7": "images",
    "TP8": "conda",
    "TP9": "source",
}
"""What the rules of a family are about."""


def render(view: CheckView, rules: Iterable[RuleText], version: str) -> str:
    """Return one SARIF log with one run.

    ``rules`` are all rules (their metadata goes into the log for those that fired);
    ``version`` is torchpin's.
    """
    import json

    known: dict[str, RuleText] = {rule.code: rule for rule in rules}
    silent = view.ignored or ()
    found = (*view.findings, *(one.finding for one in silent))
    fired: list[RuleText] = [
        known.get(code) or RuleText(code, finding.name, finding.severity, finding.name, "")
        for code, finding in sorted({f.code: f for f in found}.items())
    ]
    number = {rule.code: index for index, rule in enumerate(fired)}
    locator = Locator()
    seen: dict[str, int] = {}
    results = [
        {
            **_result(finding, number[finding.code], locator),
            "partialFingerprints": {"torchpin/v1": fingerprint(finding, seen)},
        }
        for finding in found
    ]
    if view.ignored is not None:
        # Of all results or of none it is said whether they are suppressed (SARIF 2.1.0, 3.27.23).
        told = [*([] for _ in view.findings), *([_suppression(one)] for one in silent)]
        for result, suppressions in zip(results, told, strict=True):
            result["suppressions"] = suppressions
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "torchpin",
                        "version": version,
                        "semanticVersion": version,
                        "rules": [_rule(rule) for rule in fired],
                    }
                },
                "automationDetails": {"id": "torchpin/check/"},
                "columnKind": "unicodeCodePoints",
                "properties": {
                    "catalogDate": view.catalog_date,
                    "catalogDigest": view.catalog_digest,
                },
                "results": results,
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _rule(rule: RuleText) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
    }
    tags = ["pytorch", *(tag for prefix, tag in _TAGS.items() if rule.code.startswith(prefix))]
    out["properties"] = {"tags": tags, "problem.severity": _PROBLEM[rule.severity]}
    url = pages()
    if url:
        out["helpUri"] = f"{url}{rule.code}/"
    if rule.body:
        out["fullDescription"] = {"text": rule.summary}
        out["help"] = {"text": rule.body, "markdown": rule.body}
    return out


def _result(finding: Finding, index: int, locator: Locator) -> dict[str, Any]:
    message, grounds = with_grounds(finding)
    text = [redact(message), *(f"because: {redact(one.text)} [{one.evidence}]" for one in grounds)]
    if finding.fix is not None:
        text.append(f"fix ({finding.fix.safety}): {redact(fix_text(finding.fix))}")
    place = locator.finding(finding)
    out: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVEL[finding.severity],
        "message": {"text": "\n".join(text)},
        "locations": [_location(finding.path, _region(*place))],
    }
    if finding.related:
        out["relatedLocations"] = [
            {
                "id": number,
                "message": {"text": redact(related.message)},
                **_location(related.path, {"startLine": max(1, related.line)}),
            }
            for number, related in enumerate(finding.related)
        ]
    if has_edits(finding, unsafe=True) and finding.fix is not None and not _hidden(finding.fix):
        out["fixes"] = [
            {
                "description": {"text": f"{finding.fix.safety}: {redact(finding.fix.message)}"},
                "artifactChanges": [
                    {
                        "artifactLocation": {"uri": _uri(group.document.path)},
                        "replacements": [
                            {
                                "deletedRegion": _region(
                                    *locator.place(group.document, *edit.span)
                                ),
                                "insertedContent": {"text": edit.text},
                            }
                            for edit in group.edits
                        ],
                    }
                    for group in finding.fix.edits
                ],
            }
        ]
    properties = {
        key: value
        for key, value in (
            ("package", finding.package),
            ("group", finding.group),
            ("python", finding.python),
        )
        if value is not None
    }
    if properties:
        out["properties"] = properties
    return out


def _suppression(one: Ignored) -> dict[str, Any]:
    """Return by whose word a result is suppressed: a comment in its file, or something outside."""
    out: dict[str, Any] = {"kind": "external" if one.line is None else "inSource"}
    if one.line is not None:
        out["location"] = _location(one.finding.path, {"startLine": one.line})
    if one.reason:
        reason = redact(one.reason)
        out["justification"] = reason if one.line is not None else f"{one.by}: {reason}"
    return out


def _hidden(fix: Fix) -> bool:
    """Tell whether a fix writes credentials, which a log must not hold."""
    return any(redact(edit.text) != edit.text for group in fix.edits for edit in group.edits)


def _location(path: str, region: dict[str, int]) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(path)}, "region": region}}


def _region(line: int, column: int, end_line: int, end_column: int) -> dict[str, int]:
    return {
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
    }


def _uri(path: str) -> str:
    """Return ``path`` as a URI reference; absolute paths become ``file:`` URIs."""
    import os
    from urllib.parse import quote

    text = quote(os.fsencode(path.replace(os.sep, "/")), safe="/:" if os.sep == "\\" else "/")
    if os.path.isabs(path):
        return f"file://{text}" if text.startswith("/") else f"file:///{text}"
    # A first segment with a colon would read as a scheme; quote() has escaped it on POSIX.
    return text.removeprefix("./")
