"""Where everything stands in a TOML text. Values come from the TOML library, positions from here.

``scan`` reads a text that a TOML parser has accepted and returns a tree of nodes that has the
shape of the parsed value: a table's ``entries`` by key, an array's ``items`` in order. It accepts
TOML 1.0 and 1.1 alike (line breaks and a last comma in inline tables). What no parser accepts may
give any tree, or ``ValueError``, in linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.documents.base import Span
from torchpin.named import NamedTuple
from torchpin.patterns import regex

Path = tuple[str | int, ...]

MAX_DEPTH = 200
"""Nesting of values beyond this is refused: no project file needs it."""

MAX_PARTS = 64
"""Parts of one dotted key; readers take quadratic time and more for endless ones."""

_GAP = regex(r"[ \t\r\n]*")
_SEPARATOR = regex(r"[ \t\r\n,]*")
_PLAIN_KEY = regex(r"([A-Za-z0-9_-]+)[ \t]*=[ \t]*")
_KEY_PART = regex(r"[ \t]*(?:([^\s.=\]\"'#]+)|\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)')[ \t]*")
_EQUALS = regex(r"=[ \t]*")
_BASIC = regex(r'"([^"\\\n]*(?:\\.[^"\\\n]*)*)"')
_LITERAL = regex(r"'([^'\n]*)'")
_LONG_BASIC = regex(
    r'"""(?:\r?\n)?([^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:""(?="""(?!"))|"(?="""(?!")))?)"""',
    re.DOTALL,
)
_LONG_LITERAL = regex(r"'''(?:\r?\n)?([^']*(?:'(?!'')[^']*)*'{0,2}?)'''(?!')")
_SCALAR = regex(r"[^,\]}#\r\n]*[^,\]}#\r\n \t]")
_ESCAPE = regex(r"\\(?:([btnfre\"\\])|x(..)|u(....)|U(........))")
_SIMPLE = {
    "b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\",
}  # fmt: skip


class ExcessError(ValueError):
    """The text may be TOML, but of a kind that nobody writes and that takes endless time."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


class Node:
    """One value and where it stands; all offsets count characters of the text."""

    __slots__ = ("end", "entries", "entry", "inner", "items", "key", "kind", "start")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        """``string``, ``scalar``, ``array``, ``inline`` (a table in braces), ``table`` (made by a
        header or by dotted keys), ``tables`` (made by ``[[…]]`` headers)."""
        self.start = start
        """Of the whole value with its quotes or brackets; a table's header. -1 for a table that
        has neither a header nor a value of its own."""
        self.end = end
        self.inner: Span | None = None
        """Strings: what stands inside of the quotes (behind the line break that a multi-line
        string may begin with); arrays and inline tables: what stands inside of the brackets."""
        self.key: Span | None = None
        """The last part of the key, with its quotes if it has some; None for array items."""
        self.entry: Span | None = None
        """From the first part of a (dotted) key to the end of the value."""
        self.entries: dict[str, Node] | None = None
        self.items: list[Node] | None = None

    @property
    def span(self) -> Span:
        """The whole value, or the header of a table."""
        return Span(self.start, self.end)

    def child(self, step: str | int) -> Node | None:
        """Return the entry or item named ``step``, None if there is none."""
        if isinstance(step, str):
            return self.entries.get(step) if self.entries is not None else None
        items = self.items
        return items[step] if items is not None and -len(items) <= step < len(items) else None


class Header(NamedTuple):
    """One table header."""

    path: tuple[str, ...]
    array: bool
    """``[[…]]``."""
    span: Span
    """With its brackets."""
    body_end: int
    """Offset behind the line end of the last line that belongs to the table; comments and blank
    lines that follow it are left out."""
    node: Node
    """The table that its lines fill; of an array of tables the one table."""


class Spans(NamedTuple):
    """All positions of a TOML text."""

    root: Node
    headers: tuple[Header, ...]
    comments: tuple[Span, ...]
    """From the ``#`` to the end of the line, without its line end."""
    top_end: int
    """Offset behind the last line that stands before the first header, 0 if there is none."""

    def find(self, *path: str | int) -> Node | None:
        """Return the node at a path of keys and indexes, None if there is none."""
        node: Node | None = self.root
        for step in path:
            if node is None:
                return None
            node = node.child(step)
        return node

    def walk(self) -> Iterator[tuple[Path, Node]]:
        """Yield every node but the root with its path, parents first."""
        stack: list[tuple[Path, Node]] = [((), self.root)]
        while stack:
            path, node = stack.pop()
            if path:
                yield path, node
            below: list[tuple[Path, Node]] = []
            if node.entries is not None:
                below += [((*path, key), child) for key, child in node.entries.items()]
            if node.items is not None:
                below += [((*path, index), child) for index, child in enumerate(node.items)]
            stack += reversed(below)


def scan(text: str) -> Spans:
    """Return the positions of everything in ``text``: valid TOML without a byte order mark.

    Raises:
        ExcessError: it goes beyond ``MAX_DEPTH`` or ``MAX_PARTS``.
        ValueError: the text is no TOML.
    """
    return _Scanner(text).run()


def unquote(written: str) -> str:
    """Return the key that a quoted or bare key part means.

    Raises:
        ValueError: an escape names no character.
    """
    if written[:1] == "'":
        return written[1:-1]
    if written[:1] != '"':
        return written
    return _unescape(written[1:-1])


def _unescape(inner: str) -> str:
    if "\\" not in inner:
        return inner

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return _SIMPLE[match[1]]
        return chr(int(match[2] or match[3] or match[4], 16))

    return _ESCAPE.sub(replace, inner)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.comments: list[Span] = []
        self.headers: list[Header] = []
        self.root = Node("table", -1, -1)
        self.root.entries = {}

    def run(self) -> Spans:
        text, length = self.text, len(self.text)
        gap, plain = _GAP.match, _PLAIN_KEY.match
        table = self.root
        path: tuple[str, ...] = ()
        header = Span(0, 0)
        array = False
        body_end = top_end = at = 0
        while True:
            at = gap(text, at).end()  # type: ignore[union-attr]
            char = text[at : at + 1]
            if char == "#":
                at = self.comment(at)
                continue
            if char == "" or char == "[":
                if table is self.root:
                    top_end = body_end
                else:
                    self.headers.append(Header(path, array, header, body_end, table))
                if char == "":
                    return Spans(self.root, tuple(self.headers), tuple(self.comments), top_end)
                start = at
                path, array, table, at = self.header(at)
                header = Span(start, at)
            else:
                match = plain(text, at)
                if match is not None:
                    node = self.value(match.end(), 0)
                    node.key = Span(at, match.end(1))
                    node.entry = Span(at, node.end)
                    assert table.entries is not None
                    table.entries[match[1]] = node
                    at = node.end
                else:
                    at = self.pair(table, at, 0)
            body_end = text.find("\n", at) + 1 or length
            at = gap(text, at, body_end).end()  # type: ignore[union-attr]
            if text[at : at + 1] == "#" and at < body_end:
                at = self.comment(at)

    def fail(self, at: int) -> ValueError:
        return ValueError(f"not understood at offset {at}")

    def comment(self, at: int) -> int:
        """Record the comment at ``at``; return the offset of its line end."""
        end = self.text.find("\n", at)
        if end < 0:
            end = len(self.text)
        self.comments.append(Span(at, end - 1 if self.text[end - 1] == "\r" else end))
        return end

    def keys(self, at: int) -> tuple[list[str], list[Span], int]:
        """Read a dotted key; return its parts, their places and where it ends."""
        parts: list[str] = []
        places: list[Span] = []
        while True:
            match = _KEY_PART.match(self.text, at)
            if match is None:
                raise self.fail(at)
            group = match.lastindex or 1
            inner = match[group]
            quoted = group > 1
            parts.append(_unescape(inner) if group == 2 else inner)
            places.append(Span(match.start(group) - quoted, match.end(group) + quoted))
            at = match.end()
            if self.text[at : at + 1] != ".":
                return parts, places, at
            if len(parts) == MAX_PARTS:
                raise ExcessError(f"a key has more than {MAX_PARTS} parts", at)
            at += 1

    def header(self, at: int) -> tuple[tuple[str, ...], bool, Node, int]:
        """Read ``[…]`` or ``[[…]]``; return its path, its kind, its table and where it ends."""
        start = at
        array = self.text.startswith("[[", at)
        parts, places, at = self.keys(at + 1 + array)
        closing = "]]" if array else "]"
        if not self.text.startswith(closing, at):
            raise self.fail(at)
        at += len(closing)
        owner = self.descend(self.root, parts[:-1], places, start)
        assert owner.entries is not None
        found = owner.entries.get(parts[-1])
        if array:
            if found is None or found.items is None:
                found = Node("tables", start, at)
                found.key, found.items = places[-1], []
                owner.entries[parts[-1]] = found
            table = Node("table", start, at)
            table.entries = {}
            found.items.append(table)
        else:
            if found is None or found.entries is None:
                found = Node("table", start, at)
                found.entries = {}
                owner.entries[parts[-1]] = found
            table = found
            table.start, table.end, table.key = start, at, places[-1]
        return tuple(parts), array, table, at

    def descend(self, table: Node, parts: list[str], places: list[Span], at: int) -> Node:
        """Return the table that dotted keys lead to, making those that do not exist."""
        for part, place in zip(parts, places, strict=False):
            if table.entries is None:
                raise self.fail(at)
            found = table.entries.get(part)
            if found is not None and found.items:
                found = found.items[-1]
            if found is None or found.entries is None:
                found = Node("table", -1, -1)
                found.entries, found.key = {}, place
                table.entries[part] = found
            table = found
        return table

    def pair(self, table: Node, at: int, depth: int) -> int:
        """Read ``key = value`` into ``table``; return where the value ends."""
        start = at
        parts, places, at = self.keys(at)
        equals = _EQUALS.match(self.text, at)
        if equals is None:
            raise self.fail(at)
        node = self.value(equals.end(), depth)
        node.key, node.entry = places[-1], Span(start, node.end)
        owner = self.descend(table, parts[:-1], places, start)
        if owner.entries is None:
            raise self.fail(start)
        owner.entries[parts[-1]] = node
        return node.end

    def value(self, at: int, depth: int) -> Node:
        """Read one value."""
        text = self.text
        char = text[at : at + 1]
        if char == '"':
            match = (_LONG_BASIC if text.startswith('"""', at) else _BASIC).match(text, at)
        elif char == "'":
            match = (_LONG_LITERAL if text.startswith("'''", at) else _LITERAL).match(text, at)
        elif char in ("[", "{") and char:
            return self.inside(at, depth + 1)
        else:
            match = _SCALAR.match(text, at)
            if match is None:
                raise self.fail(at)
            return Node("scalar", at, match.end())
        if match is None:
            raise self.fail(at)
        node = Node("string", at, match.end())
        node.inner = Span(match.start(1), match.end(1))
        return node

    def inside(self, at: int, depth: int) -> Node:
        """Read an array or an inline table."""
        if depth > MAX_DEPTH:
            raise ExcessError(f"values are nested more than {MAX_DEPTH} deep", at)
        text, separator = self.text, _SEPARATOR.match
        start = at
        node = Node("array", at, at)
        closing = "]"
        if text[at] == "{":
            node.kind, closing = "inline", "}"
            node.entries = {}
        else:
            node.items = []
        at += 1
        while True:
            at = separator(text, at).end()  # type: ignore[union-attr]
            char = text[at : at + 1]
            if char == "#":
                at = self.comment(at)
            elif char == closing:
                node.inner, node.end = Span(start + 1, at), at + 1
                return node
            elif not char or char == "]" or char == "}":
                raise self.fail(at)
            elif node.entries is None:
                item = self.value(at, depth)
                node.items.append(item)  # type: ignore[union-attr]
                at = item.end
            else:
                at = self.pair(node, at, depth)
