"""Variables of a Dockerfile: the builder's own, before any shell sees a word."""

from __future__ import annotations

from collections.abc import Mapping

from torchpin.documents.atoms import Atom, Word, cut, span_of, text_of, unknown
from torchpin.patterns import regex

_VARIABLE = regex(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?:(:?[-+?])([^{}]*))?\})")
_LONGEST = 300
"""Atoms of one value: one that is made of itself grows without end."""


def substituted(word: Word, scope: Mapping[str, Word]) -> Word:
    """Return a word with Docker's own variables replaced."""
    text = text_of(word)
    if "$" not in text:
        return word
    found: list[Atom] = []
    at = 0
    for match in _VARIABLE.finditer(text):
        if match.start() and text[match.start() - 1] == "\\":
            continue
        found += cut(word, at, match.start())
        at = match.end()
        span = span_of(cut(word, match.start(), match.end()))
        name = match[1] or match[2]
        operator = match[3] or ""
        value = scope.get(name)
        is_set = value is not None and (bool(text_of(value)) or not operator.startswith(":"))
        if operator.endswith("+"):
            if is_set:
                found += cut(word, match.start(4), match.end(4))
        elif is_set and value is not None and len(value) <= _LONGEST >= len(found):
            found += [atom.used_at(*span, name) for atom in value]
        elif operator.endswith("-"):
            inner = substituted(cut(word, match.start(4), match.end(4)), scope)
            found += [atom.used_at(*span, name) for atom in inner]
        else:
            found.append(unknown(name, *span))
    found += cut(word, at)
    return tuple(found)
