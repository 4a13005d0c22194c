"""Stretches of shell text: where quotes and brackets close, what an operator makes of a value."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchpin.documents.atoms import Atom, Word
from torchpin.patterns import regex

_REPLACE = regex(r"(//?)([A-Za-z0-9._-]+)/?([A-Za-z0-9._-]*)$")


def closing_quote(text: str, start: int, end: int) -> int:
    """Return the offset of the double quote that closes the one at ``start``."""
    at = start + 1
    while at < end and text[at] != '"':
        if text[at] == "\\":
            at += 2
        elif text[at] == "$" and text[at + 1 : at + 2] in ("{", "("):
            at = closing(text, at + 1, end)
        else:
            at += 1
    return min(at, end)


def closing(text: str, start: int, end: int) -> int:
    """Return the offset behind the bracket that closes the one at ``start``."""
    opening = text[start]
    closing = {"(": ")", "{": "}"}[opening]
    depth = 0
    at = start
    while at < end:
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char == "'" and opening == "(":
            close = text.find("'", at + 1, end)
            at = close if close >= 0 else end - 1
        elif char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return end


def changed(value: str, rest: str) -> str | None:
    """Return what ``//a/b``, ``%.*``, ``%%.*`` and ``#v`` make of a value; None: not followed."""
    replace = _REPLACE.fullmatch(rest)
    if replace is not None:
        count = -1 if replace[1] == "//" else 1
        return value.replace(replace[2], replace[3], count)
    if rest in ("//.", "//./"):
        return value.replace(".", "")
    if rest in ("%.*", "%%.*"):
        head, dot, _ = value.partition(".") if rest == "%%.*" else value.rpartition(".")
        return head if dot else value
    if re.fullmatch(r"##?[A-Za-z0-9._-]+", rest):
        return value.removeprefix(rest.lstrip("#"))
    if re.fullmatch(r"%%?[A-Za-z0-9._-]+", rest):
        return value.removesuffix(rest.lstrip("%"))
    return None


def split_words(atoms: Sequence[tuple[Atom, bool]]) -> list[Word]:
    """Return the words that blanks make in the values that stand without quotes (True)."""
    found: list[Word] = []
    current: list[Atom] = []
    for atom, loose in atoms:
        at = 0
        for match in re.finditer(r"\s+", atom.value) if loose else ():
            if match.start() > at:
                current.append(atom.cut(at, match.start()))
            if current:
                found.append(tuple(current))
                current = []
            at = match.end()
        if at < len(atom.value):
            current.append(atom.cut(at, len(atom.value)))
    if current:
        found.append(tuple(current))
    return found
