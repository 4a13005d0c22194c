"""The code frame of a text report: what is meant underlined, other places labelled."""

from __future__ import annotations

from torchpin.documents.base import Document, Span
from torchpin.report.model import Locator
from torchpin.report.style import HIDDEN, Style, cell, clean, secrets, width
from torchpin.report.wrap import wrap

MAX_LINES = 4
"""Longer spans (a requirement with many hashes) show their first lines."""
MAX_COLUMNS = 150
"""Longer lines show the part around the span, where no terminal says how wide it is."""
_LEAD = 20
_LEAST = 30
_DENSE = 2000
"""Characters of a line that are looked at: a million accents may stand on one letter."""

Labels = tuple[tuple[int, str], ...]
"""Numbers of other lines of the document, and what is to be said of each."""


def room(style: Style, gutter: int) -> int:
    """Return how many columns of a source line are shown behind the line numbers."""
    return max(_LEAST, style.columns - gutter - 3) if style.columns else MAX_COLUMNS


def last_line(document: Document, span: Span, locator: Locator) -> int:
    """Return the number of the last line that the frame of ``span`` shows."""
    first = locator.at(document, span.start).line
    last = locator.at(document, max(span.start, span.end - 1)).line
    return min(last, first + MAX_LINES - 1)


def line_of(document: Document, number: int, locator: Locator) -> tuple[int, str]:
    """Return where line ``number`` begins, and its text without its end."""
    starts = locator.starts(document)
    if not 0 < number <= len(starts):
        return len(document.text), ""
    end = starts[number] if number < len(starts) else len(document.text)
    return starts[number - 1], document.text[starts[number - 1] : end].rstrip("\r\n")


def frame(
    document: Document,
    span: Span,
    locator: Locator,
    style: Style,
    severity: str,
    labels: Labels = (),
    gutter: int = 0,
) -> tuple[int, list[str]]:
    """Return the width of the line numbers and the lines of the frame, without line ends.

    Credentials of URLs in the lines are hidden, control characters are escaped, and the
    underline follows what is shown.

    Args:
        document: the document.
        span: what is underlined by ``^``.
        locator: knows the lines of the document.
        style: how to paint, and how wide the terminal is.
        severity: the colour of the underline.
        labels: other lines, underlined by ``-``, in order, none of which ``span`` covers.
        gutter: least width of the line numbers.
    """
    first = locator.at(document, span.start).line
    last = locator.at(document, max(span.start, span.end - 1)).line
    shown = last_line(document, span, locator)
    gutter = max(gutter, len(str(max(shown, *(number for number, _ in labels), 0))))
    bar = style.paint("blue", "|")
    blank = f"{' ' * gutter} {bar}"
    pieces: list[tuple[int, list[str]]] = []
    for number in range(first, shown + 1):
        start, line = line_of(document, number, locator)
        marked = span.start - start, max(span.end, span.start + 1) - start
        source, marks = cut(line, *marked, room(style, gutter))
        label = style.paint("blue", str(number).rjust(gutter))
        lines = [f"{label} {bar} {source}".rstrip()]
        if marks.strip():
            lines.append(f"{blank} {style.paint(severity, marks)}")
        if number == shown < last:
            lines.append(f"{blank} {style.paint('dim', f'… {last - shown} more lines')}")
        pieces.append((number, lines))
    pieces += (
        (number, _labelled(document, number, text, locator, style, gutter))
        for number, text in labels
    )
    out = [blank]
    before = 0
    for number, lines in sorted(pieces):
        if before and number > before + 1:
            out.append(style.paint("blue", "..."))
        out += lines
        before = max(number, last if number == shown else 0)
    return gutter, out


def place_frame(
    document: Document, number: int, text: str, locator: Locator, style: Style, gutter: int
) -> list[str]:
    """Return the frame of another place: one line of a document, with what is to be said of it."""
    blank = f"{' ' * gutter} {style.paint('blue', '|')}"
    return [blank, *_labelled(document, number, text, locator, style, gutter)]


def _labelled(
    document: Document, number: int, text: str, locator: Locator, style: Style, gutter: int
) -> list[str]:
    """Return a line of the document, underlined by ``-`` but for its comment, and its label."""
    _, line = line_of(document, number, locator)
    start = len(line) - len(line.lstrip())
    end = len(line.partition(" #")[0].rstrip())
    source, marks = cut(line, start, max(end, start + 1), room(style, gutter))
    bar = style.paint("blue", "|")
    label = style.paint("blue", str(number).rjust(gutter))
    marks = marks.replace("^", "-")
    out = [f"{label} {bar} {source}".rstrip()]
    blank = f"{' ' * gutter} {bar}"
    said = clean(text)
    at = gutter + 3 + width(marks) + 1
    if not style.columns or at + width(said) <= style.columns:
        return [*out, f"{blank} {style.paint('blue', f'{marks} {said}')}"]
    out.append(f"{blank} {style.paint('blue', marks)}")
    inner = max(0, len(marks) - len(marks.lstrip()))
    told = wrap(said, style.columns - gutter - 3, " " * inner, narrow=_LEAST)
    return [*out, *(f"{blank} {style.paint('blue', one)}" for one in told)]


def cut(line: str, start: int, end: int, columns: int) -> tuple[str, str]:
    """Return the part of ``line`` that is shown in ``columns``, and the underline of columns
    ``[start, end)``: all of it, or what is around the place where the underline begins."""
    cells = _Cells(line)
    if len(line) <= columns and not cells.hidden and line.isascii() and line.isprintable():
        # Each character stands for itself, one column wide.
        first, last = max(start, 0), min(end, len(line))
        marked = "^" * (last - first) if start < len(line) else "^"
        return line, (" " * min(first, len(line)) + marked).rstrip()
    low, high = cells.window(start, columns)
    source: list[str] = []
    marks: list[str] = []
    for column in range(low, high):
        text = cells.text(column, low)
        source.append(text)
        marks.append(("^" if start <= column < end else " ") * width(text))
    if start >= len(line):
        # An insertion point or a missing line end: mark the place behind the text.
        marks.append("^")
    before, after = "…" if low else "", "…" if high < len(line) else ""
    return before + "".join(source) + after, (" " * len(before) + "".join(marks)).rstrip()


def piece(line: str, start: int, end: int) -> str:
    """Return characters ``[start, end)`` of ``line`` as a frame shows them."""
    cells = _Cells(line)
    return "".join(cells.text(column, start) for column in range(start, min(end, len(line))))


class _Cells:
    """What stands for each character of a line."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.hidden = secrets(line)

    def text(self, column: int, low: int) -> str:
        """Return what is shown for a character, where the line is shown from ``low`` on."""
        for start, end in self.hidden:
            if start <= column < end:
                return HIDDEN if column == max(start, low) else ""
        return cell(self.line[column])

    def window(self, start: int, columns: int) -> tuple[int, int]:
        """Return the range of characters that fit ``columns`` and hold ``start``."""
        size = len(self.line)
        if size <= columns and sum(width(self.text(n, 0)) for n in range(size)) <= columns:
            return 0, size
        left = columns - 2  # a … at each end
        lead = min(_LEAD, left // 3)
        low = high = min(start, size)
        high, used = self._grow(high, left - lead)
        most = max(0, low - _DENSE)
        while low > most and used + (step := width(self.text(low - 1, low - 1))) <= left:
            low, used = low - 1, used + step
        more, _ = self._grow(high, left - used)
        return low, more

    def _grow(self, high: int, room: int) -> tuple[int, int]:
        used, most = 0, min(len(self.line), high + _DENSE)
        while high < most:
            step = width(self.text(high, high if self._begins(high) else 0))
            if used + step > room:
                break
            high, used = high + 1, used + step
        return high, used

    def _begins(self, column: int) -> bool:
        return any(start == column for start, _ in self.hidden)
