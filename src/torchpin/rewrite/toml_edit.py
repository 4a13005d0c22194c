"""Structural edits of a TOML text as splices: nothing but the inserted text moves.

Positions come from ``documents.toml_spans``. Every function returns edits of the text it was given;
``apply`` makes the new text, from which the next edit starts. What a shape does not allow raises
``ShapeError``: the caller then says what to change instead of changing it. (The structural edits of
TOML libraries are not used: several shapes come out corrupt, and line ends change.)
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchpin.documents.base import Edit, Span, apply_edits
from torchpin.documents.toml_spans import Header, Node, Spans, scan
from torchpin.documents.toml_view import read_toml
from torchpin.patterns import regex

GAPS = regex(r"(?:\s|#[^\n]*)*")
"""Blanks, line ends and comments."""
BARE = regex(r"[A-Za-z0-9_-]+")


class ShapeError(ValueError):
    """The file is laid out in a way that cannot be extended by a plain insertion."""


class TomlText:
    """A TOML text under edit.

    Raises:
        ShapeError: the text is no TOML: uv reads ``setup.cfg`` and ``setup.py`` too.
    """

    def __init__(self, text: str, newline: str) -> None:
        self.text = text
        self.newline = newline
        try:
            self.spans: Spans = scan(text)
            self.data: dict[str, Any] = parsed(text)
        except ValueError as error:
            raise ShapeError(f"is no TOML: {error}") from error
        self.strict = is_toml_1_0(text)
        """Only a file that is of TOML 1.1 itself may be of TOML 1.1 after an edit."""

    def apply(self, edits: Sequence[Edit]) -> None:
        """Make edits and scan the new text; where they are refused the text stays.

        Raises:
            ShapeError: edits overlap, or the result is no TOML.
        """
        if not edits:
            return
        try:
            text = apply_edits(self.text, tuple(edits))
            spans, data = scan(text), parsed(text)
        except ValueError as error:
            raise ShapeError(f"the edit would break the file: {error}") from error
        if self.strict and not is_toml_1_0(text):
            raise ShapeError("the edit would break the file")
        self.text, self.spans, self.data = text, spans, data

    def _meant(self, edit: Callable[[], None], path: Sequence[str | int], value: object) -> None:
        """Make an edit after which ``path`` has ``value`` and nothing else has changed.

        Raises:
            ShapeError: the edit cannot be made, or would mean something else; the text stays.
        """
        before = self.text, self.spans, self.data
        expected = with_value(self.data, path, value)
        try:
            edit()
            if self.data != expected:
                raise ShapeError("the edit would change more than it says")
        except ShapeError:
            self.text, self.spans, self.data = before
            raise

    # -- looking

    def header(self, *path: str) -> Header | None:
        """Return the first plain header of a table."""
        for header in self.spans.headers:
            if header.path == path and not header.array:
                return header
        return None

    def family_end(self, *prefix: str) -> int | None:
        """Return the end of the last table whose path begins with ``prefix``."""
        ends = [one.body_end for one in self.spans.headers if one.path[: len(prefix)] == prefix]
        return max(ends, default=None)

    # -- changing

    def set_key(self, path: tuple[str, ...], key: str, value: str) -> None:
        """Set ``path.key = value`` (TOML text), however the table is written.

        Raises:
            ShapeError: the table is made in a way that cannot be extended.
        """
        self._meant(lambda: self._set_key(path, key, value), (*path, key), value_of(value))

    def _set_key(self, path: tuple[str, ...], key: str, value: str) -> None:
        node = self.spans.find(*path)
        have = node.child(key) if node is not None else None
        if have is not None and have.start >= 0 and have.kind not in ("table", "tables"):
            self.apply([Edit(have.span, value)])
            return
        if have is not None:
            raise ShapeError(f"{'.'.join((*path, key))} is a table of its own")
        line = f"{quoted(key)} = {value}"
        header = self.header(*path)
        if header is not None:
            self.apply([self._line(header.body_end, line)])
        elif node is not None and node.kind == "inline":
            self.apply([self._into_inline(node, line)])
        elif node is not None and node.entries:
            self._beside_dotted(path, node, key, value)
        elif node is not None and node.kind == "tables":
            raise ShapeError(f"{'.'.join(path)} is an array of tables")
        else:
            self._append_table([f"[{dotted(path)}]", line], path)

    def set_in_array(self, path: tuple[str, ...], number: int, key: str, value: str) -> None:
        """Set a key that one table of an array of tables does not have yet.

        Raises:
            ShapeError: it has the key, or is made in a way that cannot be extended.
        """

        def edit() -> None:
            node = self.spans.find(*path, number)
            headers = [one for one in self.spans.headers if one.path == path and one.array]
            line = f"{quoted(key)} = {value}"
            if node is None or node.child(key) is not None:
                raise ShapeError(f"{'.'.join(path)} has {key}")
            if node.kind == "inline":
                self.apply([self._into_inline(node, line)])
            elif number < len(headers):
                self.apply([self._line(headers[number].body_end, line)])
            else:
                raise ShapeError(f"{'.'.join(path)} is written in several ways")

        self._meant(edit, (*path, number, key), value_of(value))

    def remove_key(self, path: tuple[str, ...], key: str) -> None:
        """Take a key with its value out, with the line that it stands on.

        Raises:
            ShapeError: there is no such key, or something else stands on its lines.
        """
        before = self.text, self.spans, self.data
        node = self.spans.find(*path, key)
        if node is None or node.entry is None or node.kind in ("table", "tables"):
            raise ShapeError(f"{'.'.join((*path, key))} is no plain key")
        start = max(
            self.text.rfind("\n", 0, node.entry.start), self.text.rfind("\r", 0, node.entry.start)
        )
        rest = re.compile(r"[ \t]*(#[^\r\n]*)?(\r\n|\n|\r|$)").match(self.text, node.end)
        if rest is None or self.text[start + 1 : node.entry.start].strip():
            raise ShapeError(f"{'.'.join((*path, key))} does not stand on lines of its own")
        expected = without_value(self.data, (*path, key))
        try:
            self.apply([Edit(Span(start + 1, rest.end()), "")])
            if self.data != expected:
                raise ShapeError("the edit would change more than it says")
        except ShapeError:
            self.text, self.spans, self.data = before
            raise

    def remove_table(self, path: tuple[str, ...], number: int) -> None:
        """Take one table out of an array of tables, with the blank line behind it.

        Raises:
            ShapeError: there is no such table, tables of its own or comments stand in it.
        """
        headers = [one for one in self.spans.headers if one.path == path and one.array]
        if not 0 <= number < len(headers):
            raise ShapeError(f"{'.'.join(path)} holds no such table")
        header = headers[number]
        start = self.text.rfind("\n", 0, header.span.start) + 1
        end = max(header.body_end, header.span.end)
        if any(start <= one.start < end for one in self.spans.comments):
            raise ShapeError(f"{'.'.join(path)} holds comments")
        blank = re.compile(r"(?:[ \t]*(?:\r\n|\n|\r))*").match(self.text, end)
        end = blank.end() if blank is not None else end
        if end == len(self.text):  # the last one: its blank line stands before it
            start = len(self.text[:start].rstrip()) + len(self.newline)
        before = self.text, self.spans, self.data
        items: Any = self.data
        for step in path:
            items = items.get(step) if isinstance(items, dict) else None
        left = [one for at, one in enumerate(items or ()) if at != number]
        expected = with_value(self.data, path, left) if left else without_value(self.data, path)
        try:
            self.apply([Edit(Span(start, end), "")])
            if without_empty(self.data) != without_empty(expected):
                raise ShapeError("the edit would change more than it says")
        except ShapeError:
            self.text, self.spans, self.data = before
            raise

    def append_table(self, entries: Mapping[str, str], path: tuple[str, ...]) -> None:
        """Append ``[[path]]`` with keys and values (TOML text) to an array of tables.

        Raises:
            ShapeError: the array is written in a way that cannot be extended.
        """
        node = self.spans.find(*path)
        number = len(node.items or ()) if node is not None else 0
        lines = [f"[[{dotted(path)}]]", *(f"{quoted(k)} = {v}" for k, v in entries.items())]
        value = {key: value_of(text) for key, text in entries.items()}
        self._meant(lambda: self._append_table(lines, path), (*path, number), value)

    def _append_table(self, lines: list[str], path: tuple[str, ...]) -> None:
        """Insert a new table behind the tables that it belongs to, else at the end."""
        parent = path[:-1]
        at = None
        lowest = 0 if path[0] == "project" else 1
        for size in range(len(path), lowest, -1):
            at = self.family_end(*path[:size])
            if at is not None:
                break
        node = self.spans.find(*parent)
        if node is not None and node.kind == "inline":
            raise ShapeError(f"{'.'.join(parent)} is an inline table")
        at = len(self.text) if at is None else at
        before = "" if at == 0 else self.newline
        if at > 0 and self.text[at - 1] not in "\r\n":
            before = self.newline * 2
        body = self.newline.join(lines) + self.newline
        after = self.newline if at < len(self.text) and not self._blank(at) else ""
        self.apply([Edit(Span(at, at), before + body + after)])

    def append_item(self, path: tuple[str | int, ...], item: str) -> None:
        """Append an item to an array; its layout (one line, or one item a line) is kept.

        Raises:
            ShapeError: there is no such array.
        """
        found = self.spans.find(*path)
        number = len(found.items or ()) if found is not None else 0
        self._meant(lambda: self._append_item(path, item), (*path, number), value_of(item))

    def _append_item(self, path: tuple[str | int, ...], item: str) -> None:
        node = self.spans.find(*path)
        if node is None or node.kind != "array" or node.inner is None:
            raise ShapeError(f"{'.'.join(map(str, path))} is no array")
        items = node.items or []
        if not items:
            self._first_item(node.inner, item)
            return
        last = items[-1]
        line_start = max(self.text.rfind("\n", 0, last.start), self.text.rfind("\r", 0, last.start))
        lead = self.text[line_start + 1 : last.start]
        if lead.strip() or line_start < node.start:
            self.apply([Edit(Span(last.end, last.end), f", {item}")])
            return
        edits: list[Edit] = []
        comma = GAPS.match(self.text, last.end, node.inner.end)
        at = comma.end() if comma is not None else last.end
        if not self.text.startswith(",", at):
            edits.append(Edit(Span(last.end, last.end), ","))
            at = last.end
        else:
            at += 1
        at = self._line_end(at)
        if edits and at == last.end:
            edits = [Edit(Span(at, at), f",{self.newline}{lead}{item},")]
        else:
            edits.append(Edit(Span(at, at), f"{self.newline}{lead}{item},"))
        self.apply(edits)

    def _first_item(self, inner: Span, item: str) -> None:
        inside = self.text[inner.start : inner.end]
        if "#" in inside:
            at = inner.start + max(inside.rfind("\n"), inside.rfind("\r")) + 1
            self.apply([Edit(Span(at, at), f"    {item},{self.newline}")])
        else:
            self.apply([Edit(Span(inner.start, inner.start), item)])

    def _line_end(self, at: int) -> int:
        """Return the end of the comment that follows on the line, ``at`` if there is none."""
        match = re.compile(r"[ \t]*#[^\r\n]*").match(self.text, at)
        return match.end() if match else at

    def _line(self, at: int, line: str) -> Edit:
        before = "" if at == 0 or self.text[at - 1] in "\r\n" else self.newline
        return Edit(Span(at, at), f"{before}{line}{self.newline}")

    def _blank(self, at: int) -> bool:
        """True if the text at ``at`` begins with an empty line (or is at its end)."""
        return re.compile(r"[ \t]*(\r?\n|$)").match(self.text, at) is not None

    def _into_inline(self, node: Node, entry: str) -> Edit:
        assert node.inner is not None
        inside = self.text[node.inner.start : node.inner.end]
        if not inside.strip():
            return Edit(node.inner, f" {entry} ")
        if "\n" in inside or "#" in inside:
            return self._into_lines(node, entry)
        at = node.inner.start + len(inside.rstrip())
        comma = "" if inside.rstrip().endswith(",") else ","
        return Edit(Span(at, at), f"{comma} {entry}")

    def _into_lines(self, node: Node, entry: str) -> Edit:
        """Add an entry to an inline table over several lines (TOML 1.1): on a line of its own."""
        assert node.inner is not None
        last = max((node.entries or {}).values(), key=lambda child: child.end)
        if last.entry is None or last.end < node.inner.start:
            raise ShapeError("an inline table of dotted keys over several lines")
        start = max(
            self.text.rfind("\n", 0, last.entry.start), self.text.rfind("\r", 0, last.entry.start)
        )
        lead = self.text[start + 1 : last.entry.start]
        if lead.strip() or start < node.start:
            raise ShapeError("an inline table that begins on the line of its first entry")
        gap = GAPS.match(self.text, last.end, node.inner.end)
        comma = gap is not None and self.text.startswith(",", gap.end())
        at = gap.end() + 1 if gap is not None and comma else last.end
        line_end = self._line_end(at)
        between = self.text[at:line_end]
        head = "" if comma else ","
        text = f"{head}{between}{self.newline}{lead}{entry}{',' if comma else ''}"
        return Edit(Span(at, line_end), text)

    def _beside_dotted(self, path: tuple[str, ...], node: Node, key: str, value: str) -> None:
        """Add a dotted key (``sources.b``) behind the last one of the same table.

        The prefix is written as the neighbour writes it.
        """
        children = [child for child in (node.entries or {}).values() if child.entry is not None]
        places = [child for child in children if child.key is not None and child.kind != "table"]
        if not places:
            self._into_sub_tables(path, key, value)
            return
        last = max(places, key=lambda child: child.end)
        assert last.entry is not None
        assert last.key is not None
        prefix = self.text[last.entry.start : last.key.start]
        if not prefix.strip():
            raise ShapeError(f"{'.'.join(path)} has keys but no header")
        line_end = re.compile(r"[^\r\n]*").match(self.text, last.end)
        at = line_end.end() if line_end else last.end
        lead_from = max(
            self.text.rfind("\n", 0, last.entry.start), self.text.rfind("\r", 0, last.entry.start)
        )
        lead = self.text[lead_from + 1 : last.entry.start]
        if lead.strip():
            raise ShapeError(f"{'.'.join(path)} stands in an inline table")
        line = f"{self.newline}{lead}{prefix}{quoted(key)} = {value}"
        self.apply([Edit(Span(at, at), line)])

    def _into_sub_tables(self, path: tuple[str, ...], key: str, value: str) -> None:
        """``[tool.uv.sources.a]`` tables only: a header of the parent may be added before them."""
        first = min(
            (one for one in self.spans.headers if one.path[: len(path)] == path),
            key=lambda one: one.span.start,
            default=None,
        )
        if first is None:
            raise ShapeError(f"{'.'.join(path)} cannot be found")
        start = max(
            self.text.rfind("\n", 0, first.span.start), self.text.rfind("\r", 0, first.span.start)
        )
        text = f"[{dotted(path)}]{self.newline}{quoted(key)} = {value}{self.newline}{self.newline}"
        self.apply([Edit(Span(start + 1, start + 1), text)])


def parsed(text: str) -> dict[str, Any]:
    """Return the value of a TOML text.

    Raises:
        ValueError: it is no TOML.
    """
    read = read_toml(text.encode("utf-8"))
    if read.problem is not None:
        raise ValueError(read.problem.message)
    return read.data


def is_toml_1_0(text: str) -> bool:
    """True if the standard library's parser takes a text (others are more lenient)."""
    parser: Any = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        parser.loads(text)
    except ValueError:
        return False
    return True


def value_of(text: str) -> object:
    """Return the value that a TOML text of one value means.

    Raises:
        ShapeError: it means none.
    """
    try:
        return parsed(f"value = {text}\n")["value"]
    except ValueError as error:
        raise ShapeError(f"{text!r} is no TOML value") from error


def with_value(data: Any, path: Sequence[str | int], value: object) -> Any:
    """Return parsed TOML with one value put in or replaced; tables on the way come into being."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(data) if isinstance(data, list) else []
        below = items[step] if step < len(items) else None
        return [*items[:step], with_value(below, rest, value), *items[step + 1 :]]
    table = data if isinstance(data, dict) else {}
    return {**table, step: with_value(table.get(step), rest, value)}


def without_value(data: Any, path: Sequence[str]) -> Any:
    """Return parsed TOML without one key; tables stay, empty ones too."""
    step, rest = path[0], path[1:]
    if not rest:
        return {key: value for key, value in data.items() if key != step}
    return {**data, step: without_value(data[step], rest)}


def without_empty(value: dict[str, Any]) -> dict[str, Any]:
    """Return the value without empty tables: a table may come into being, or go, with a key."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        kept = without_empty(item) if isinstance(item, dict) else item
        if kept != {}:
            found[key] = kept
    return found


def quoted(key: str) -> str:
    """Return a key as TOML writes it: bare where it can be."""
    return key if BARE.fullmatch(key) else text_of(key)


def dotted(path: tuple[str, ...]) -> str:
    """Return a table's path as its header writes it."""
    return ".".join(quoted(part) for part in path)


def text_of(value: str) -> str:
    """Return a string as TOML text."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    if any(ord(char) < 32 for char in escaped):
        raise ShapeError("a value with control characters")
    return f'"{escaped}"'


def inline(**entries: str) -> str:
    """Return an inline table of strings: ``{ index = "pytorch-cu126", marker = "…" }``."""
    listed = ", ".join(f"{key} = {text_of(value)}" for key, value in entries.items() if value)
    return f"{{ {listed} }}"
