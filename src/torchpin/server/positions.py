"""Offsets of a text and the positions of the protocol, whose columns count code units.

Lines end as the protocol says, by LF, CRLF or CR alone; a column is a number of UTF-16 code units
unless client and server agree on UTF-8 or on characters (``utf-32``).
"""

from __future__ import annotations

from lsprotocol.types import Position, Range

from torchpin.documents.base import Document, position, starts_of

_WIDTHS = {"utf-8": (1, 2, 3, 4), "utf-16": (1, 1, 1, 2), "utf-32": (1, 1, 1, 1)}
"""Code units of a character below U+0080, below U+0800, below U+10000, and above."""
ENCODINGS = tuple(_WIDTHS)


class Lines:
    """The lines of one text in the units that a client counts in."""

    def __init__(self, text: str, encoding: str = "utf-16", *, mark: bool = False) -> None:
        self.text = text
        self.starts = starts_of(text)  # not the shared list: other texts are asked about
        self.widths = _WIDTHS[encoding]
        self.plain = text.isascii() or encoding == "utf-32"
        self.mark = mark
        """The client's text begins with a byte order mark, which ``text`` leaves out."""

    def units(self, text: str) -> int:
        """Return how many code units a text takes."""
        if self.plain or text.isascii():
            return len(text)
        one, two, three, four = self.widths
        total = 0
        for character in text:
            code = ord(character)
            total += one if code < 0x80 else two if code < 0x800 else three
            total += four - three if code > 0xFFFF else 0
        return total

    def position(self, offset: int) -> Position:
        """Return the position of an offset; one outside the text is taken to its end."""
        offset = max(0, min(offset, len(self.text)))
        line = position(self.starts, offset).line - 1
        column = self.units(self.text[self.starts[line] : offset])
        if line == 0 and self.mark:
            column += self.widths[2]
        return Position(line, column)

    def range(self, start: int, end: int) -> Range:
        """Return the range of ``[start, end)``."""
        return Range(self.position(start), self.position(end))

    def offset(self, place: Position) -> int:
        """Return the offset of a position; one behind the end of its line is taken to that end.

        A position within a character (half of a surrogate pair) is taken to its beginning.
        """
        if place.line >= len(self.starts):
            return len(self.text)
        if place.line < 0:
            return 0
        start, end = self.bounds(place.line)
        want = max(0, place.character)
        if place.line == 0 and self.mark:
            want = max(0, want - self.widths[2])
        if self.plain:
            return min(start + want, end)
        at, units = start, 0
        while at < end:
            units += self.units(self.text[at])
            if units > want:
                break
            at += 1
        return at

    def bounds(self, line: int) -> tuple[int, int]:
        """Return where a line begins and where it ends, its line end left out."""
        start = self.starts[line]
        end = self.starts[line + 1] if line + 1 < len(self.starts) else len(self.text)
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return start, end


def lines_of(document: Document, encoding: str, held: str | None = None) -> Lines:
    """Return the lines of a document; ``held`` is the text that the client has open of it."""
    mark = held is not None and held.startswith("\ufeff") and not document.text.startswith("\ufeff")
    return Lines(document.text, encoding, mark=mark)
