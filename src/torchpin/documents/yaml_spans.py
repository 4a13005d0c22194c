"""YAML as a tree of values with the places where they stand.

Built from the events of PyYAML, whose marks count characters: exact offsets, at the speed of
libyaml where the wheel has it. Anchors and aliases give the same node twice, so that no text
unfolds without end; tags are not followed; YAML's own types are left to the reader of a format
(``3.10`` is the text ``3.10``). PyYAML is imported on the first call only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from torchpin.documents.base import Problem, Span
from torchpin.named import NamedTuple
from torchpin.patterns import regex

MAX_YAML = 4 * 1024 * 1024
"""Characters; what people write by hand is smaller by far."""
MAX_DEPTH = 100
"""Values inside of values; also where libyaml, which has a limit of its own, is not there."""
_LINE_END = regex(r"[\r\n]")
_PROPERTIES = regex(r"(?:[&!][^\s,\[\]{}]*(?:\s+|\Z))*")
"""Anchor and tag, which stand before a value."""


class Node:
    """One value and where it stands."""

    __slots__ = ("end", "entries", "inner", "items", "kind", "start", "style", "value")

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind = kind
        """``scalar``, ``sequence`` or ``mapping``."""
        self.start = start
        """Of the whole value, with its quotes, brackets or block header."""
        self.end = end
        self.value = ""
        """Of a scalar, quotes and escapes undone."""
        self.style = ""
        """Of a scalar: ``""`` (plain), ``'``, ``"``, ``|`` or ``>``; of the others: ``flow`` or
        ``block``."""
        self.inner = Span(start, end)
        """A quoted scalar without its quotes; a block scalar without its header; else the whole."""
        self.items: list[Node] = []
        self.entries: list[tuple[Node, Node]] = []
        """Of a mapping, in order; a key may come twice."""

    @property
    def span(self) -> Span:
        """The whole value."""
        return Span(self.start, self.end)

    def get(self, *keys: str) -> Node | None:
        """Return the value below a path of keys, None if it is missing; the last of a key wins."""
        node: Node | None = self
        for key in keys:
            found = None
            for name, value in node.entries if node is not None else ():
                if name.kind == "scalar" and name.value == key:
                    found = value
            node = found
            if node is None:
                return None
        return node

    def pairs(self) -> Iterator[tuple[str, Node, Node]]:
        """Yield the key as text, its node and its value, of a mapping with scalar keys."""
        for key, value in self.entries:
            if key.kind == "scalar":
                yield key.value, key, value

    def scalars(self) -> Iterator[Node]:
        """Yield the scalars of a sequence; a scalar yields itself."""
        if self.kind == "scalar":
            yield self
        for item in self.items:
            if item.kind == "scalar":
                yield item


class Yaml(NamedTuple):
    """The documents of a YAML text."""

    roots: tuple[Node, ...]
    comments: tuple[Span, ...]
    """Each from its ``#`` to the end of the line."""
    problem: Problem | None = None
    """Why it cannot be read (code ``yaml``); ``roots`` is empty then."""

    @property
    def root(self) -> Node | None:
        """The first document, None if there is none."""
        return self.roots[0] if self.roots else None


def scan_yaml(text: str) -> Yaml:
    """Return the values of ``text`` (no byte order mark); never raises."""
    if len(text) > MAX_YAML:
        return _refused(f"is too large: more than {MAX_YAML // 1048576} MiB", 0)
    yaml: Any = __import__("yaml")
    loader = getattr(yaml, "CSafeLoader", None) or yaml.SafeLoader
    try:
        roots, scalars = _build(text, yaml.parse(text, Loader=loader))
    except yaml.YAMLError as error:
        return _refused(f"is not valid YAML: {_reason(error)}", _place(error, text))
    except RecursionError:
        return _refused(f"cannot be read: values are nested more than {MAX_DEPTH} deep", 0)
    except _ExcessError as error:
        return _refused(f"cannot be read: values are nested more than {MAX_DEPTH} deep", error.at)
    return Yaml(tuple(roots), _comments(text, scalars))


class _ExcessError(Exception):
    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def _refused(message: str, at: int) -> Yaml:
    return Yaml((), (), Problem(message, Span(at, at), "yaml"))


def _reason(error: Any) -> str:
    """Return what the parser says, in one line."""
    text = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    return " ".join(str(text).split())[:120]


def _place(error: Any, text: str) -> int:
    mark = getattr(error, "problem_mark", None)
    at = mark.index if mark is not None else getattr(error, "position", 0)
    return min(max(at if isinstance(at, int) else 0, 0), len(text))


def _build(text: str, events: Any) -> tuple[list[Node], list[Node]]:
    """Return the root of each document, and all scalars in order."""
    roots: list[Node] = []
    scalars: list[Node] = []
    stack: list[Node] = []
    keys: list[Node | None] = []
    anchors: dict[str, Node] = {}
    for event in events:
        name = type(event).__name__
        if name == "ScalarEvent":
            node = _scalar(text, event)
            scalars.append(node)
        elif name in ("SequenceStartEvent", "MappingStartEvent"):
            kind = "sequence" if name == "SequenceStartEvent" else "mapping"
            node = Node(kind, event.start_mark.index, event.end_mark.index)
            node.style = "flow" if event.flow_style else "block"
        elif name == "AliasEvent":
            known = anchors.get(event.anchor)
            node = known or Node("scalar", event.start_mark.index, event.end_mark.index)
        elif name in ("SequenceEndEvent", "MappingEndEvent"):
            done = stack.pop()
            keys.pop()
            done.end = _end(text, done, event.end_mark.index)
            done.inner = done.span
            continue
        else:
            if name == "DocumentStartEvent":
                anchors.clear()
            continue
        if name != "AliasEvent" and event.anchor is not None:
            anchors[event.anchor] = node
        if not stack:
            roots.append(node)
        elif stack[-1].kind == "sequence":
            stack[-1].items.append(node)
        elif keys[-1] is None:
            keys[-1] = node
        else:
            stack[-1].entries.append((keys[-1], node))
            keys[-1] = None
        if name in ("SequenceStartEvent", "MappingStartEvent"):
            if len(stack) >= MAX_DEPTH:
                raise _ExcessError(node.start)
            stack.append(node)
            keys.append(None)
    return roots, scalars


def _scalar(text: str, event: Any) -> Node:
    start, end = event.start_mark.index, event.end_mark.index
    if event.anchor is not None or event.tag is not None:
        before = _PROPERTIES.match(text, start, end)
        start = before.end() if before is not None else start
        if text[start : start + 1] in ("&", "!") and not event.value and not event.style:
            start = end
    node = Node("scalar", start, end)
    node.value = event.value
    node.style = event.style or ""
    if node.style in ("'", '"'):
        node.inner = Span(node.start + 1, max(node.end - 1, node.start + 1))
    elif node.style in ("|", ">"):
        behind = text.find("\n", node.start, node.end)
        node.inner = Span(behind + 1 if behind >= 0 else node.end, node.end)
    else:
        # A plain scalar that runs over lines ends, for some parsers, behind blanks.
        end = node.start + len(text[node.start : node.end].rstrip())
        node.end, node.inner = end, Span(node.start, end)
    return node


def _end(text: str, node: Node, end: int) -> int:
    """Return where a value really ends: block ones reach, for the parser, to what follows."""
    if node.style == "flow":
        return end
    below = node.items[-1:] or [value for _, value in node.entries[-1:]]
    inside = [one.end for one in below if node.start <= one.end <= end]
    return max(inside) if inside else node.start + len(text[node.start : end].rstrip())


def _comments(text: str, scalars: list[Node]) -> tuple[Span, ...]:
    found: list[Span] = []
    starts = sorted(node.start for node in scalars)
    ends = {node.start: node.end for node in scalars}
    at = text.find("#")
    while at >= 0:
        index = bisect_right(starts, at) - 1
        inside = index >= 0 and at < ends[starts[index]]
        if inside:
            at = text.find("#", max(ends[starts[index]], at + 1))
            continue
        if at == 0 or text[at - 1].isspace():
            line = _LINE_END.search(text, at)
            end = line.start() if line is not None else len(text)
            found.append(Span(at, end))
            at = text.find("#", end)
        else:
            at = text.find("#", at + 1)
    return tuple(found)
