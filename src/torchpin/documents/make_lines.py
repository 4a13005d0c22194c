"""The lines of a Makefile: logical lines, those of recipes, and the brackets inside of them.

Source: https://www.gnu.org/software/make/manual/html_node/Splitting-Lines.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.documents.atoms import Atom, Word, cut, text_of
from torchpin.documents.base import Span
from torchpin.named import NamedTuple


class Line(NamedTuple):
    """A logical line: continuations joined as ``make`` joins them outside recipes."""

    atoms: Word
    text: str
    span: Span
    recipe: bool


def lines_of(word: Word) -> Iterator[Word]:
    """Yield the lines that a recipe line has become: a variable may hold several."""
    text = text_of(word)
    at = 0
    for match in re.finditer(r"(?<!\\)\n|\Z", text):
        lead = re.compile(r"[ \t]*[@+-]*[ \t]*").match(text, at)
        begin = lead.end() if lead is not None and at else at
        if begin < match.start():
            yield cut(word, begin, match.start())
        at = match.end()


def closing_bracket(text: str, start: int) -> int:
    """Return the offset of the bracket that closes the one at ``start``, -1 if none does."""
    pairs = {"(": ")", "{": "}"}
    opening = text[start]
    closing = pairs[opening]
    depth = 0
    for at in range(start, min(len(text), start + 2000)):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if depth == 0:
                return at
    return -1


def logical_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a Makefile; a recipe line keeps its continuations for the shell."""
    physical = list(re.finditer(r"[^\n]*(?:\n|\Z)", text))
    at = 0
    while at < len(physical):
        first = physical[at]
        body = first[0].rstrip("\r\n")
        recipe = body.startswith("\t")
        begin = first.start() + (1 if recipe else 0)
        atoms: list[Atom] = []
        end = begin
        while at < len(physical):
            line = physical[at]
            body = line[0].rstrip("\r\n")
            start = line.start() if atoms or not recipe else begin
            if atoms and recipe and body.startswith("\t"):
                start = line.start() + 1
            end = line.start() + len(body)
            slashes = len(body) - len(body.rstrip("\\"))
            at += 1
            if slashes % 2 and at < len(physical):
                if recipe:
                    stop = line.start() + len(line[0])
                    atoms.append(Atom(text[start:stop], start, stop, True))
                else:
                    atoms.append(Atom(text[start : end - 1], start, end - 1, True))
                    atoms.append(Atom(" ", end - 1, end, False))
                continue
            atoms.append(Atom(text[start:end], start, end, True))
            break
        word = tuple(atom for atom in atoms if atom.value)
        value = text_of(word)
        if value.strip() and not (not recipe and value.lstrip().startswith("#")):
            yield Line(word, value, Span(begin, end), recipe)
