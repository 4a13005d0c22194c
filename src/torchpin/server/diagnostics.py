"""Findings as diagnostics of the protocol."""

from __future__ import annotations

import os

from lsprotocol.types import (
    CodeDescription,
    Diagnostic,
    DiagnosticRelatedInformation,
    DiagnosticSeverity,
    DiagnosticTag,
    Location,
    Position,
    Range,
)

from torchpin.documents.base import Document
from torchpin.errors import ConfigError
from torchpin.report.model import fix_text, with_grounds
from torchpin.report.pages import pages
from torchpin.report.style import redact
from torchpin.rules.model import DISPLAY, ERROR, INFO, WARNING, Finding
from torchpin.server.analysis import Analysis
from torchpin.server.positions import Lines, lines_of
from torchpin.server.uris import uri_of

SOURCE = "torchpin"
_SEVERITIES = {
    ERROR: DiagnosticSeverity.Error,
    WARNING: DiagnosticSeverity.Warning,
    INFO: DiagnosticSeverity.Information,
}
_UNUSED = frozenset(("TP408", "TP410", "TP414"))
"""Rules on words that have no effect: editors show them faded."""
_DEPRECATED = frozenset(("TP106", "TP107", "TP304", "TP402", "TP801"))
"""Rules on what has ended: editors strike it through."""


class Places:
    """Where the spans of an analysis lie in the texts of the client."""

    def __init__(self, analysis: Analysis, encoding: str) -> None:
        self.analysis = analysis
        self.encoding = encoding
        self._lines: dict[str, Lines] = {}
        self._uris: dict[str, str] = {}
        self._documents: dict[str, Document] = {}
        for one in reversed(analysis.documents):
            self._documents[os.path.realpath(one.path)] = one

    def uri(self, path: str) -> str:
        """Return the URI of a file: as the client writes it, if it is open."""
        if path not in self._uris:
            buffer = self.analysis.buffer(path)
            self._uris[path] = buffer.uri if buffer is not None else uri_of(os.path.abspath(path))
        return self._uris[path]

    def lines(self, path: str) -> Lines | None:
        """Return the lines of a file that was read, or is open; None of any other."""
        if path not in self._lines:
            document = self._documents.get(os.path.realpath(path))
            buffer = self.analysis.buffer(path)
            if document is not None:
                held = buffer.text if buffer is not None else None
                self._lines[path] = lines_of(document, self.encoding, held)
            elif buffer is not None:
                self._lines[path] = Lines(buffer.text, self.encoding)
            else:
                return None
        return self._lines[path]

    def range(self, path: str, start: int, end: int) -> Range:
        """Return a range of a file; of one that was not read its beginning."""
        lines = self.lines(path)
        return lines.range(start, end) if lines else Range(Position(0, 0), Position(0, 0))

    def line(self, path: str, number: int) -> Range:
        """Return the text of a line, counted from 1."""
        lines = self.lines(path)
        if lines is None:
            return Range(Position(max(0, number - 1), 0), Position(max(0, number - 1), 0))
        start, end = lines.bounds(max(0, min(number, len(lines.starts)) - 1))
        blank = len(lines.text[start:end]) - len(lines.text[start:end].lstrip())
        return lines.range(start + blank, end)


def diagnostics(analysis: Analysis, encoding: str) -> dict[str, list[Diagnostic]]:
    """Return the diagnostics of every file that is shown, by path; of one without any an empty
    list."""
    places = Places(analysis, encoding)
    out: dict[str, list[Diagnostic]] = {path: [] for path in analysis.shown}
    if analysis.error is not None and analysis.error.path in out:
        out[analysis.error.path].append(of_profile(analysis.error, places))
    for finding in analysis.report.findings if analysis.report is not None else ():
        if finding.path in out:
            out[finding.path].append(diagnostic(finding, places))
    return out


def of_profile(error: ConfigError, places: Places) -> Diagnostic:
    """Return what is wrong with a profile."""
    message = f"{error.message}\n{error.hint}" if error.hint else error.message
    return Diagnostic(
        range=places.line(error.path or "", error.line or 1),
        message=redact(message),
        severity=DiagnosticSeverity.Error,
        source=SOURCE,
        code="profile",
    )


def diagnostic(finding: Finding, places: Places) -> Diagnostic:
    """Return one finding."""
    url = pages()
    return Diagnostic(
        range=places.range(finding.path, *finding.span),
        message=message_of(finding),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=CodeDescription(f"{url}{finding.code}/") if url else None,
        source=SOURCE,
        tags=tags_of(finding.code),
        related_information=[
            DiagnosticRelatedInformation(
                Location(
                    places.uri(_from(finding.path, one.path)),
                    places.line(_from(finding.path, one.path), one.line),
                ),
                redact(one.message),
            )
            for one in finding.related
        ]
        or None,
    )


def _from(path: str, other: str) -> str:
    return other if os.path.isabs(other) else os.path.join(os.path.dirname(path), other)


def message_of(finding: Finding) -> str:
    """Return the message of a finding with its grounds and what can be done."""
    message, grounds = with_grounds(finding)
    lines = [redact(message), *(f"because: {redact(one.text)} [{one.evidence}]" for one in grounds)]
    fix = finding.fix
    if fix is not None:
        kind = "to do by hand" if fix.safety == DISPLAY else f"{fix.safety} fix"
        lines.append(f"{kind}: {redact(fix_text(fix))}")
    return "\n".join(lines)


def tags_of(code: str) -> list[DiagnosticTag] | None:
    """Return how an editor may show what a rule finds."""
    if code in _UNUSED:
        return [DiagnosticTag.Unnecessary]
    return [DiagnosticTag.Deprecated] if code in _DEPRECATED else None
