"""What the readers of lock files share: decoding, cutting machine-made TOML, safe look-ups.

A lock is large and only a few of its packages matter. Where its text has the form that its tool
writes, the blocks of those packages are found by plain search, cut out and parsed alone; anything
else is parsed whole. Both ways must give the same values.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Document, Problem, Span
from torchpin.documents.project import Lock
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_BOM = b"\xef\xbb\xbf"
_AT = regex(r" \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)$")
_SEPARATORS = regex(r"[-_.]+")


class TomlError(ValueError):
    """The text is not TOML; ``offset`` is where it was noticed."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Text(NamedTuple):
    """Decoded bytes of a lock."""

    text: str
    bom: bytes
    problem: Problem | None = None


class Cut(NamedTuple):
    """One block of a machine-made lock: ``text[start:end]``, its header included."""

    start: int
    end: int
    name: str


class Cuts(NamedTuple):
    """All blocks of a machine-made lock, in order."""

    newline: str
    head: int
    """Where the first block starts."""
    blocks: tuple[Cut, ...]


class Entry(NamedTuple):
    """One parsed package and where it stands."""

    table: dict[str, Any]
    start: int
    end: int
    """Behind its last line."""


def decode(data: bytes) -> Text:
    """Return the text of a TOML file (UTF-8, a BOM is taken off); never raises."""
    bom = _BOM if data.startswith(_BOM) else b""
    if b"\0" in data:
        message = "is a binary file (it holds NUL bytes)"
        return Text("", b"", Problem(message, Span(0, 0), "binary"))
    try:
        return Text(data[len(bom) :].decode("utf-8") if bom else data.decode("utf-8"), bom)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"is not UTF-8, as TOML must be (byte 0x{data[error.start]:02x} in line {line})"
        return Text("", b"", Problem(message, Span(0, 0), "decode"))


def parse(text: str) -> dict[str, Any]:
    """Return the tables of ``text``.

    Raises:
        TomlError: it is not TOML, or nested too deeply.
    """
    parser: Any = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        value: dict[str, Any] = parser.loads(text)
    except RecursionError as error:
        raise TomlError("is nested too deeply", 0) from error
    except ValueError as error:  # TOMLDecodeError, and dates or integers out of range
        message, offset = str(error), 0
        match = _AT.search(message)
        if match is not None:
            message = message[: match.start()]
            offset = _offset(text, match[1], match[2])
        raise TomlError(f"is not valid TOML: {message}", offset) from error
    return value


def _offset(text: str, line: str | None, column: str | None) -> int:
    if line is None or column is None:
        return len(text)
    at = 0
    for _ in range(int(line) - 1):
        at = text.find("\n", at) + 1
    return min(at + int(column) - 1, len(text))


def problem_of(error: TomlError, text: str) -> Problem:
    """Return the problem of a text that is not TOML; the span is the rest of the line."""
    start = min(error.offset, len(text))
    end = text.find("\n", start)
    return Problem(error.message, Span(start, len(text) if end < 0 else end), "toml")


def document(
    path: str, kind: str, source: Text, lock: Lock | None, problems: tuple[Problem, ...] = ()
) -> Document:
    """Return the document of a lock."""
    text = source.text
    first = text.find("\n")
    return Document(
        path=path,
        kind=kind,
        text=text,
        encoding="utf-8",
        bom=source.bom,
        newline="\r\n" if first > 0 and text[first - 1] == "\r" else "\n",
        declarations=(),
        indexes=(),
        includes=(),
        options=(),
        problems=problems,
        comments=(),
        lock=lock,
    )


def cut(text: str, header: str) -> Cuts | None:
    """Return the blocks under each ``header`` line; None if the text is not machine-made.

    Machine-made: each header stands alone at the start of a line and ``name = "…"`` follows it, and
    line ends are all alike.
    """
    first = text.find("\n")
    newline = "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"
    if newline == "\n":
        if "\r" in text:
            return None
    elif not text.count("\r") == text.count("\n") == text.count("\r\n"):
        return None
    if "\n<<<<<<<" in text:  # an unsolved merge
        return None
    separator = f'{newline}{header}{newline}name = "'
    starts: list[int] = []
    at = text.find(separator)
    while at >= 0:
        starts.append(at + len(newline))
        at = text.find(separator, at + len(separator))
    if not starts or text.count(header) != len(starts):
        return None
    blocks = []
    skip = len(separator) - len(newline)
    for start, end in zip(starts, (*starts[1:], len(text)), strict=True):
        stop = text.find('"', start + skip, end)
        name = text[start + skip : stop]
        if stop < 0 or "\\" in name or "\n" in name:
            return None
        blocks.append(Cut(start, end, name))
    return Cuts(newline, starts[0], tuple(blocks))


def whole_entries(text: str, tables: list[dict[str, Any]], key: str) -> tuple[Entry, ...]:
    """Return parsed packages with their places, found by their headers in order.

    Where headers and tables do not match one to one (inline arrays), every place is the whole
    text.
    """
    pattern = re.compile(rf"^[ \t]*\[\[[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*\]\]", re.MULTILINE)
    starts = [match.start() for match in pattern.finditer(text)]
    if len(starts) != len(tables):
        return tuple(Entry(table, 0, len(text)) for table in tables)
    ends = [*starts[1:], len(text)] if starts else []
    other = re.compile(rf"^\[(?!\[?{re.escape(key)}[.\]])", re.MULTILINE)
    entries = []
    for table, start, end in zip(tables, starts, ends, strict=True):
        behind = other.search(text, start + 1, end)
        stop = behind.start() if behind is not None else end
        entries.append(Entry(table, start, start + len(text[start:stop].rstrip())))
    return tuple(entries)


def value_span(text: str, entry: Entry, key: str) -> Span | None:
    """Return the inside of the quotes of ``key = "value"`` in the first table of an entry."""
    pattern = re.compile(rf"^[ \t]*{re.escape(key)}[ \t]*=[ \t]*([\"'])(.*?)\1", re.MULTILINE)
    table = re.compile(r"^[ \t]*\[(?!\[)", re.MULTILINE).search(text, entry.start + 2, entry.end)
    found = pattern.search(text, entry.start, table.start() if table is not None else entry.end)
    return Span(*found.span(2)) if found is not None else None


def canonical(name: str) -> str:
    """Return a name in its canonical form (PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()


def string(value: object) -> str:
    """Return a string value, ``""`` for anything else."""
    return value if isinstance(value, str) else ""


def optional(value: object) -> str | None:
    """Return a string value, None for anything else."""
    return value if isinstance(value, str) else None


def strings(value: object) -> tuple[str, ...]:
    """Return the strings of a list; a lone string counts as a list of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(x for x in value if isinstance(x, str)) if isinstance(value, list) else ()


def mapping(value: object) -> dict[str, Any]:
    """Return a table, empty for anything else."""
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, Any]]:
    """Return the tables of a list, none for anything else."""
    return [x for x in value if isinstance(x, dict)] if isinstance(value, list) else []


def filename(url: str) -> str:
    """Return the file name at the end of a URL or path, percent escapes replaced."""
    name = re.split(r"[?#]", url, maxsplit=1)[0].replace("\\", "/").rpartition("/")[2]
    return re.sub(r"%([0-9A-Fa-f]{2})", _unescape, name)


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(code) if 0x20 <= code < 0x7F else match[0]


def watched_blocks(
    text: str, cuts: Cuts, key: str, end: int | None = None
) -> tuple[Entry, ...] | None:
    """Return the watched packages of a machine-made lock, each parsed alone.

    Args:
        text: the lock.
        cuts: its blocks.
        key: name of the array of tables, ``package`` or ``packages``.
        end: where the blocks end, if other tables follow.

    None if a block holds more than its package.

    Raises:
        TomlError: a block is not TOML.
    """
    entries = []
    for block in cuts.blocks:
        if canonical(block.name) not in WATCHED:
            continue
        body = text[block.start : block.end if end is None else min(block.end, end)]
        table = parse(body)
        if len(table) != 1:
            return None
        entries.append(Entry(table[key][0], block.start, block.start + len(body.rstrip())))
    return tuple(entries)


def watched_whole(text: str, key: str) -> tuple[dict[str, Any], tuple[Entry, ...]]:
    """Return a lock parsed whole, and its watched packages.

    Raises:
        TomlError: the text is not TOML.
    """
    head = parse(text)
    entries = whole_entries(text, tables(head.get(key)), key)
    return head, tuple(
        one for one in entries if canonical(string(one.table.get("name"))) in WATCHED
    )
