"""Words of a shell script: quotes, variables and expansions replaced, each atom with its place.

What cannot be known (a command's output, a variable that nothing sets) is a stand-in, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchpin.documents.atoms import Atom, Source, Word, is_known, text_of, unknown
from torchpin.documents.base import Span
from torchpin.documents.shell_values import changed, closing, closing_quote, split_words
from torchpin.named import NamedTuple
from torchpin.patterns import regex

if TYPE_CHECKING:
    from tree_sitter import Node

DEEPEST = 60
"""Levels of statements and expansions that are followed."""
_LONGEST = 300
"""Atoms of one word or value."""
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_OPERATOR = regex(r":?[-=+?]")
_SPECIAL = regex(r"['\"\\$`]")
_IN_QUOTES = regex(r"[\\$`]")


class Text(NamedTuple):
    """A word of a command."""

    atoms: Word
    span: Span
    """With its quotes."""

    @property
    def value(self) -> str:
        """The word as the command sees it."""
        return text_of(self.atoms)

    @property
    def known(self) -> bool:
        """False if some part of it cannot be known."""
        return is_known(self.atoms)


class Variable(NamedTuple):
    """What a variable holds: words, of which all but arrays have one."""

    words: tuple[Word, ...]
    exported: bool = False


class Words:
    """Reads the words of a script with the variables that it has set so far."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.source = Source(())
        self.text = ""

    # -- variables

    def assign(self, node: Node, *, exported: bool) -> None:
        """Set a variable."""
        name, values = self.value_of(node)
        if not name:
            return
        old = self.variables.get(name)
        if self.text[node.start_byte : node.end_byte].startswith(f"{name}+="):
            have = old.words if old is not None else ()
            is_list = any(child.type == "array" for child in node.named_children)
            if is_list or not have or not values:
                values = (*have, *values)
            else:
                values = (*have[:-1], (*have[-1], *values[0]))
        self.variables[name] = Variable(
            tuple(values), exported or (old is not None and old.exported)
        )

    def value_of(self, node: Node) -> tuple[str, Sequence[Word]]:
        """Return name and value of an assignment; values of arrays are several words."""
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if name is None or name.type != "variable_name":
            return "", ()
        text = self.text[name.start_byte : name.end_byte]
        if value is None:
            return text, ((),)
        if value.type == "array":
            return text, [one.atoms for child in value.named_children for one in self.words(child)]
        found = self.lexed(value.start_byte, max(value.end_byte, node.end_byte), 0)
        return text, (tuple(atom for atom, _ in found),)

    # -- words

    def words(self, node: Node) -> list[Text]:
        """Return the words that one argument becomes."""
        return self.words_at(node.start_byte, node.end_byte)

    def words_at(self, start: int, end: int) -> list[Text]:
        """Return the words that a stretch without bare blanks becomes: variables without quotes
        may be several, an array is one an element."""
        span = self.source.span(start, end)
        text = self.text[start:end]
        listed = re.fullmatch(r"\"?\$\{([A-Za-z_]\w*)\[[@*]\]\}\"?", text)
        if listed is not None and listed[1] in self.variables:
            return [
                Text(tuple(atom.used_at(*span, atom.name) for atom in word), span)
                for word in self.variables[listed[1]].words
            ]
        if "{" in text and "," in text and "$" not in text:
            braced = self.braces(start, end, span)
            if braced is not None:
                return [Text(word, span) for word in braced]
        found = self.lexed(start, end, 0)
        if not any(char.isspace() for atom, loose in found if loose for char in atom.value):
            return [Text(tuple(atom for atom, _ in found), span)]
        return [Text(word, span) for word in split_words(found)]

    def braces(self, start: int, end: int, span: Span) -> list[Word] | None:
        """Return the words of ``torch{vision,audio}``; None if there are no such braces."""
        match = re.fullmatch(
            r"([^{}'\"\\`]*)\{([^{}'\"\\`]*,[^{}'\"\\`]*)\}([^{}'\"\\`]*)", self.text[start:end]
        )
        if match is None:
            return None
        # The parts around the braces stand for several words: none of them is edited.
        return [
            (Atom(f"{match[1]}{piece}{match[3]}", span.start, span.end, False),)
            for piece in match[2].split(",")
        ]

    def lexed(self, start: int, end: int, depth: int) -> list[tuple[Atom, bool]]:
        """Return the value of a stretch as atoms, each with whether blanks in it split words.

        Source: https://www.gnu.org/software/bash/manual/html_node/Quoting.html and the pages
        behind it.
        """
        text = self.text
        found: list[tuple[Atom, bool]] = []
        at = start
        while at < end:
            if len(found) > _LONGEST:  # values that are made of themselves grow without end
                return [(self.stand_in("value", start, end), False)]
            char = text[at]
            if char == "'":
                close = text.find("'", at + 1, end)
                close = close if close >= 0 else end
                found += [(atom, False) for atom in self.source.cut(at + 1, close)]
                at = close + 1
            elif char == '"':
                close = closing_quote(text, at, end)
                found += [(atom, False) for atom in self.quoted(at + 1, close, depth)]
                at = close + 1
            elif char == "\\":
                if at + 1 < end and text[at + 1] != "\n":
                    found += [(atom, False) for atom in self.source.cut(at + 1, at + 2)]
                at += 2
            elif char in "$`":
                value, at = self.dollar(at, end, depth)
                found += [(atom, True) for atom in value]
            else:
                stop = _SPECIAL.search(text, at, end)
                begin, at = at, stop.start() if stop is not None else end
                found += [(atom, False) for atom in self.source.cut(begin, at)]
        return found

    def quoted(self, start: int, end: int, depth: int) -> Word:
        """Return the value of what stands in double quotes."""
        text = self.text
        found: list[Atom] = []
        at = start
        while at < end:
            if len(found) > _LONGEST:
                return (self.stand_in("value", start, end),)
            if text[at] == "\\" and at + 1 < end and text[at + 1] in '"$`\\\n':
                if text[at + 1] != "\n":
                    found += self.source.cut(at + 1, at + 2)
                at += 2
            elif text[at] in "$`":
                value, at = self.dollar(at, end, depth)
                found += value
            else:
                stop = _IN_QUOTES.search(text, at + 1, end)
                begin, at = at, stop.start() if stop is not None else end
                found += self.source.cut(begin, at)
        return tuple(found)

    def dollar(self, at: int, end: int, depth: int) -> tuple[Word, int]:
        """Return the value of the expansion at an offset, and where it ends."""
        text = self.text
        if text[at] == "`":
            close = at + 1
            while close < end and text[close] != "`":
                close += 2 if text[close] == "\\" else 1
            close = min(close + 1, end)
            return (self.stand_in("command", at, close),), close
        following = text[at + 1] if at + 1 < end else ""
        if following == "{":
            close = closing(text, at + 1, end)
            if depth > DEEPEST:
                return (self.stand_in("nested", at, close),), close
            return self.expansion(at, close, depth + 1), close
        if following == "(":
            close = closing(text, at + 1, end)
            return (self.stand_in("command", at, close),), close
        if following == "'":
            close = at + 2
            while close < end and text[close] != "'":
                close += 2 if text[close] == "\\" else 1
            close = min(close, end)
            if "\\" in text[at + 2 : close]:
                return (self.stand_in("escapes", at, min(close + 1, end)),), close + 1
            return self.source.cut(at + 2, close), close + 1
        if following == '"':
            return (), at + 1
        match = _NAME.match(text, at + 1, end)
        if match is None:
            return self.source.cut(at, at + 1), at + 1
        stop = match.end() if not match[0].isdigit() else at + 2
        return self.variable(text[at + 1 : stop], at, stop), stop

    def stand_in(self, name: str, start: int, end: int) -> Atom:
        """Return the atom of a value that cannot be known."""
        return unknown(name, *self.source.span(start, end))

    def variable(self, name: str, start: int, end: int) -> Word:
        """Return the value of a variable where it is used."""
        have = self.variables.get(name)
        if have is None or len(have.words) != 1 or len(have.words[0]) > _LONGEST:
            return (self.stand_in(name, start, end),)
        span = self.source.span(start, end)
        return tuple(atom.used_at(*span, name) for atom in have.words[0])

    def expansion(self, begin: int, stop: int, depth: int) -> Word:
        """Return the value of ``${…}``."""
        start, end = begin + 2, stop - 1
        text = self.text[start:end]
        match = _NAME.match(text)
        if match is None:
            return (self.stand_in(text, begin, stop),)
        name, rest = match[0], text[match.end() :]
        if not rest:
            return self.variable(name, begin, stop)
        have = self.variables.get(name)
        operator = _OPERATOR.match(rest)
        if operator is not None:
            at = start + match.end() + operator.end()
            return self.with_default(begin, stop, name, operator[0], Span(at, end), depth)
        if have is None or len(have.words) != 1 or not is_known(have.words[0]):
            return (self.stand_in(name, begin, stop),)
        value = changed(text_of(have.words[0]), rest)
        if value is None:
            return (self.stand_in(name, begin, stop),)
        span = self.source.span(begin, stop)
        return (Atom(value, span.start, span.end, False, None, name),)

    def with_default(
        self, begin: int, stop: int, name: str, operator: str, default: Span, depth: int
    ) -> Word:
        """Return the value of ``${NAME:-default}`` and its like."""
        have = self.variables.get(name)
        is_set = have is not None and (
            not operator.startswith(":") or any(text_of(word) for word in have.words)
        )
        kind = operator[-1]
        if kind == "?" or (is_set and kind != "+"):
            return self.variable(name, begin, stop)
        if kind == "+" and not is_set:
            return ()
        found = tuple(atom for atom, _ in self.lexed(default.start, default.end, depth))
        if kind == "=":
            self.variables[name] = Variable((found,))
        span = self.source.span(begin, stop)
        return tuple(atom.used_at(*span, name) for atom in found)
