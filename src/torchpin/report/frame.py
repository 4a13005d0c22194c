"""The code frame of a text report: source lines with the span underlined."""

from __future__ import annotations

from torchpin.documents.base import Document, Span
from torchpin.report.model import Locator
from torchpin.report.style import HIDDEN, Style, cell, secrets, width

MAX_LINES = 4
"""Longer spans (a requirement with many hashes) show their first lines."""
MAX_COLUMNS = 150
"""Longer lines show the part around the span."""
_LEAD = 20


def frame(
    document: Document, span: Span, locator: Locator, style: Style, severity: str
) -> tuple[int, list[str]]:
    """Return the width of the line numbers and the lines of the frame, without line ends.

    Credentials of URLs in the lines are hidden, control characters are escaped, and the
    underline follows what is shown.
    """
    starts = locator.starts(document)
    first = locator.at(document, span.start).line
    last = locator.at(document, max(span.start, span.end - 1)).line
    shown = min(last, first + MAX_LINES - 1)
    gutter = len(str(shown))
    bar = style.paint("blue", "|")
    out = [f"{' ' * gutter} {bar}"]
    for number in range(first, shown + 1):
        start = starts[number - 1]
        end = starts[number] if number < len(starts) else len(document.text)
        line = document.text[start:end].rstrip("\r\n")
        source, marks = _line(line, span.start - start, max(span.end, span.start + 1) - start)
        label = style.paint("blue", str(number).rjust(gutter))
        out.append(f"{label} {bar} {source}".rstrip())
        if marks.strip():
            out.append(f"{' ' * gutter} {bar} {style.paint(severity, marks)}")
    if shown < last:
        out.append(f"{' ' * gutter} {bar} {style.paint('dim', f'… {last - shown} more lines')}")
    return gutter, out


def _line(line: str, start: int, end: int) -> tuple[str, str]:
    """Return the shown text of ``line`` and its underline for columns ``[start, end)``."""
    low, high = 0, len(line)
    if high > MAX_COLUMNS:
        low = max(0, min(start - _LEAD, high - MAX_COLUMNS))
        high = low + MAX_COLUMNS
    hidden = secrets(line)
    source: list[str] = []
    marks: list[str] = []
    for column in range(low, high):
        secret = next((span for span in hidden if span[0] <= column < span[1]), None)
        if secret is None:
            text = cell(line[column])
        else:
            text = HIDDEN if column == max(secret[0], low) else ""
        source.append(text)
        marks.append(("^" if start <= column < end else " ") * width(text))
    if start >= len(line):
        # An insertion point or a missing line end: mark the place behind the text.
        marks.append("^")
    before, after = "…" if low else "", "…" if high < len(line) else ""
    return before + "".join(source) + after, (" " * len(before) + "".join(marks)).rstrip()
