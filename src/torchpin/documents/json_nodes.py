"""JSON that stands in a value of a YAML file, with the places of its values."""

from __future__ import annotations

import json
from typing import Any

from torchpin.documents.atoms import Source, Word
from torchpin.documents.base import Span
from torchpin.documents.yaml_spans import Node
from torchpin.patterns import regex

_SPACE = regex(r"[ \t\r\n]*")
_TEXT = regex(r'"(?:[^"\\]|\\.)*"')
_PLAIN = regex(r"[^\s,\]}]+")
LONGEST = 20_000
"""Characters that are read."""
DEEPEST = 20


def json_node(word: Word) -> Node | None:
    """Return JSON as the nodes of a YAML file, where its characters are written; None: it is none.

    >>> from torchpin.documents.atoms import Atom
    >>> [one.value for one in json_node((Atom('["3.11", 3]', 5, 16, True),)).items]
    ['3.11', '3']
    """
    source = Source(word)
    if len(source.text) > LONGEST:
        return None
    try:
        json.loads(source.text, parse_int=str, parse_float=str)
        node, _ = _value(source, _skip(source.text, 0), 0)
    except (ValueError, RecursionError):
        return None
    return node


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def _value(source: Source, at: int, depth: int) -> tuple[Node, int]:
    """Return a value that begins at an offset of valid JSON, and where it ends."""
    text = source.text
    if depth > DEEPEST:
        raise ValueError("too deep")
    if text[at] == "[":
        node = Node("sequence", source.start(at), source.end(at + 1))
        at = _skip(text, at + 1)
        while text[at] != "]":
            item, at = _value(source, at, depth + 1)
            node.items.append(item)
            at = _skip(text, at)
            at = _skip(text, at + 1) if text[at] == "," else at
        node.end = source.end(at + 1)
        return node, at + 1
    if text[at] == "{":
        node = Node("mapping", source.start(at), source.end(at + 1))
        at = _skip(text, at + 1)
        while text[at] != "}":
            key, at = _value(source, at, depth + 1)
            at = _skip(text, _skip(text, at) + 1)
            value, at = _value(source, at, depth + 1)
            node.entries.append((key, value))
            at = _skip(text, at)
            at = _skip(text, at + 1) if text[at] == "," else at
        node.end = source.end(at + 1)
        return node, at + 1
    return _scalar(source, at)


def _scalar(source: Source, at: int) -> tuple[Node, int]:
    match = (_TEXT if source.text[at] == '"' else _PLAIN).match(source.text, at)
    if match is None:
        raise ValueError("no value")
    written: Any = match[0]
    node = Node("scalar", source.start(at), source.end(match.end()))
    if written[0] == '"':
        node.value, node.style = json.loads(written), '"'
        node.inner = Span(source.start(at + 1), source.end(match.end() - 1))
    else:
        node.value = "" if written == "null" else written
        node.inner = Span(node.start, node.end)
    return node, match.end()
