"""Read TOML bytes into values with their places, and take wrong shapes without a crash."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from torchpin.documents.base import Document, Problem, Span
from torchpin.documents.toml_spans import ExcessError, Node, Spans, scan
from torchpin.named import NamedTuple
from torchpin.patterns import regex

MAX_MANIFEST = 1024 * 1024
"""Bytes; a project file that is larger is a mistake."""
_MAX_SLOW = 512 * 1024
"""Characters that the slow reader of TOML 1.1 is given."""
_AT = regex(r"\(at (?:line ([0-9]+),? col(?:umn)? ([0-9]+)|end of document)\)$")
_BOM = b"\xef\xbb\xbf"


class Read(NamedTuple):
    """A TOML text and its values; ``problem`` is set, and ``data`` empty, where it is none."""

    text: str
    """Without a byte order mark; line ends as written."""
    bom: bytes
    data: dict[str, Any]
    spans: Spans
    problem: Problem | None


def read_toml(data: bytes) -> Read:
    """Decode and parse ``data``; never raises. TOML 1.1, which uv accepts, is read as well."""
    bom = _BOM if data.startswith(_BOM) else b""
    nothing = scan("")
    if len(data) > MAX_MANIFEST:
        message = f"is too large: more than {MAX_MANIFEST // 1024} KiB"
        return Read("", bom, {}, nothing, Problem(message, Span(0, 0), "toml"))
    try:
        text = data[len(bom) :].decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[len(bom) + error.start]
        message = f"is not UTF-8, which TOML requires (byte 0x{byte:02x} in line {line})"
        code = "binary" if b"\0" in data else "decode"
        return Read("", bom, {}, nothing, Problem(message, Span(0, 0), code))
    try:
        # Positions first: what would take a parser endless time is refused on the way.
        spans: Spans | None = scan(text)
    except ExcessError as error:
        problem = Problem(f"cannot be read: {error}", Span(error.at, error.at), "toml")
        return Read(text, bom, {}, nothing, problem)
    except ValueError:
        spans = None  # the parser says it better
    try:
        values = _load(text)
    except ValueError as error:
        return Read(text, bom, {}, nothing, _problem(text, str(error)))
    if spans is None:
        problem = Problem("is TOML of a kind that is not understood", Span(0, 0), "toml")
        return Read(text, bom, {}, nothing, problem)
    return Read(text, bom, values, spans, None)


def _load(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ValueError: it is no TOML.
    """
    parser: Any = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        values: dict[str, Any] = parser.loads(text)
    except ValueError as error:
        later = _load_later(text)
        if later is None:
            raise ValueError(str(error)) from error
        return later
    return values


def _load_later(text: str) -> dict[str, Any] | None:
    """Parse TOML 1.1, None if it is not that either (or no reader of it is installed)."""
    if len(text) > _MAX_SLOW or not ("{" in text or "\\e" in text or "\\x" in text or ":" in text):
        return None
    try:
        import tomlkit
        from tomlkit.exceptions import TOMLKitError
    except ImportError:
        return None
    try:
        values: dict[str, Any] = tomlkit.parse(text).unwrap()
    except (TOMLKitError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return values


def _problem(text: str, message: str) -> Problem:
    match = _AT.search(message)
    at = len(text)
    if match is not None:
        message = message[: match.start()].strip()
        if match[1] is not None:
            at = 0
            for _ in range(int(match[1]) - 1):
                at = text.find("\n", at) + 1
            at = min(at + int(match[2]) - 1, len(text))
    return Problem(f"is not valid TOML: {message}", Span(at, at), "toml")


class View:
    """A value and its node; asks for a shape and notes a problem where it has another."""

    __slots__ = ("node", "path", "problems", "text", "value")

    def __init__(
        self, value: Any, node: Node, path: str, text: str, problems: list[Problem]
    ) -> None:
        self.value = value
        self.node = node
        self.path = path
        """Dotted, for messages."""
        self.text = text
        self.problems = problems

    @property
    def span(self) -> Span:
        """Inside of the quotes for a string, else the whole value or the header of a table."""
        if self.node.kind == "string" and self.node.inner is not None:
            return self.node.inner
        return Span(max(self.node.start, 0), max(self.node.end, 0))

    @property
    def entry(self) -> Span:
        """Key and value; an item of an array: the value; a table with a header: the header."""
        return self.node.entry or Span(max(self.node.start, 0), max(self.node.end, 0))

    @property
    def key(self) -> Span:
        """Inside of the quotes of the key; an item of an array: the item."""
        key = self.node.key
        if key is None:
            return self.span
        quoted = self.text[key.start : key.start + 1] in ("'", '"')
        return Span(key.start + quoted, key.end - quoted)

    @property
    def plain(self) -> bool:
        """Tell whether a string stands in the text letter for letter, without escapes."""
        span = self.span
        return bool(self.text[span.start : span.end] == self.value)

    def wrong(self, expected: str) -> None:
        """Note that the value is not what it should be."""
        message = f"{self.path} must be {expected}"
        where = self.node.key or Span(max(self.node.start, 0), max(self.node.end, 0))
        self.problems.append(Problem(message, where, "shape"))

    def _below(self, value: Any, step: str | int) -> View:
        node = self.node.child(step) or self.node
        path = f"{self.path}[{step}]" if isinstance(step, int) else f"{self.path}.{step}"
        return View(value, node, path.lstrip("."), self.text, self.problems)

    def get(self, *keys: str) -> View | None:
        """Return the value below a path of keys, None if it is missing (or no table on the way)."""
        view: View | None = self
        for key in keys:
            if view is None or not view.is_table("a table"):
                return None
            view = view._below(view.value[key], key) if key in view.value else None
        return view

    def is_table(self, expected: str = "") -> bool:
        """Tell whether it is a table; note a problem if not and ``expected`` is given."""
        good = isinstance(self.value, dict)
        if not good and expected:
            self.wrong(expected)
        return good

    def entries(self, *keys: str) -> Iterator[tuple[str, View]]:
        """Yield the entries of the table below a path of keys; none if it is missing."""
        view = self.get(*keys)
        if view is not None and view.is_table("a table"):
            for key, value in view.value.items():
                yield str(key), view._below(value, key)

    def items(self, *keys: str, expected: str = "an array") -> Iterator[View]:
        """Yield the items of the array below a path of keys; none if it is missing."""
        view = self.get(*keys)
        if view is None:
            return
        if not isinstance(view.value, list):
            view.wrong(expected)
            return
        for index, value in enumerate(view.value):
            yield view._below(value, index)

    def string(self, *keys: str) -> View | None:
        """Return the string below a path of keys, None if it is missing or no string."""
        view = self.get(*keys)
        if view is None:
            return None
        if not isinstance(view.value, str):
            view.wrong("a string")
            return None
        return view

    def strings(self, *keys: str, single: bool = False) -> list[View]:
        """Return the strings of an array; ``single``: one string is taken as well."""
        view = self.get(*keys)
        if view is not None and single and isinstance(view.value, str):
            return [view]
        found = []
        for item in self.items(*keys, expected="an array of strings"):
            if isinstance(item.value, str):
                found.append(item)
            else:
                item.wrong("a string")
        return found

    def flag(self, *keys: str) -> bool:
        """Return the boolean below a path of keys, False if it is missing or no boolean."""
        view = self.get(*keys)
        if view is None:
            return False
        if not isinstance(view.value, bool):
            view.wrong("true or false")
            return False
        return view.value


def opened_toml(path: str, data: bytes, kind: str) -> tuple[Document, View | None]:
    """Return the document of a TOML file that holds parts, with its comments, and its table.

    None, and a problem in the document, where the text cannot be read. Never raises.
    """
    from torchpin.documents.parts import file_of

    file = file_of(path, data, kind)
    if file.problems:
        return file, None
    read = read_toml(file.text.encode("utf-8", "surrogatepass"))
    file = file._replace(comments=read.spans.comments)
    if read.problem is not None:
        return file._replace(problems=(read.problem,)), None
    return file, View(read.data, read.spans.root, "", file.text, [])
