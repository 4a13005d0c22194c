"""Text that is put together from places of a file: words of commands, with their variables.

A shell, ``make`` and a Dockerfile all replace variables before a command sees its words. An atom
is a piece of such a word: its value, where it is read, and where its characters are written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from torchpin.documents.base import Span
from torchpin.named import NamedTuple


class Atom(NamedTuple):
    """A piece of a value."""

    value: str
    start: int
    """Where it is used: offsets in the file."""
    end: int
    plain: bool
    """The text from ``start`` to ``end`` is the value itself."""
    home: Span | None = None
    """Of a variable: the literal, character by character, that is its value; None: there is none,
    or more than one place may have set it."""
    name: str = ""
    """Of the variable, for messages."""
    known: bool = True
    """False: the value is a stand-in (``${NAME}``) for one that cannot be known."""
    lead: str = ""
    """Of a value that is not written at ``home`` yet: what has to be put before it, ..."""
    tail: str = ""
    """... and behind it."""

    def cut(self, start: int, end: int) -> Atom:
        """Return a part of the atom, by offsets in its value."""
        if start <= 0 and end >= len(self.value):
            return self
        value = self.value[start:end]
        if self.plain:
            at = self.start + max(start, 0)
            return Atom(value, at, at + len(value), True)
        home = self.home
        if self.lead:
            lead, tail = f"{self.lead}{self.value[: max(start, 0)]}", self.value[end:] + self.tail
            return self._replace(value=value, lead=lead, tail=tail)
        if home is not None:
            at = home.start + max(start, 0)
            home = Span(at, at + len(value))
        return self._replace(value=value, home=home)

    def used_at(self, start: int, end: int, name: str) -> Atom:
        """Return the atom of a variable's value as it stands where the variable is used."""
        home = Span(self.start, self.end) if self.plain else self.home
        return Atom(self.value, start, end, False, home, self.name or name, self.known)


Word = tuple[Atom, ...]


def text_of(word: Iterable[Atom]) -> str:
    """Return the value of a word."""
    return "".join(atom.value for atom in word)


def is_known(word: Iterable[Atom]) -> bool:
    """True if no part of the value is a stand-in."""
    return all(atom.known for atom in word)


def span_of(word: Sequence[Atom]) -> Span:
    """Return from where to where a word is read."""
    if not word:
        return Span(0, 0)
    return Span(min(atom.start for atom in word), max(atom.end for atom in word))


def cut(word: Sequence[Atom], start: int, end: int | None = None) -> Word:
    """Return ``value[start:end]`` of a word as atoms."""
    found: list[Atom] = []
    at = 0
    for atom in word:
        length = len(atom.value)
        stop = length if end is None else min(end - at, length)
        begin = max(start - at, 0)
        if begin < stop:
            found.append(atom.cut(begin, stop))
        at += length
    return tuple(found)


def unknown(name: str, start: int, end: int) -> Atom:
    """Return the stand-in for a value that cannot be known."""
    letters = "".join(char if char.isalnum() and char.isascii() else "_" for char in name.upper())
    return Atom(f"${{{letters[:60] or 'VALUE'}}}", start, end, False, None, name, False)


class Source:
    """Text to be read as a script, and where each of its characters comes from."""

    __slots__ = ("_starts", "atoms", "text")

    def __init__(self, atoms: Iterable[Atom]) -> None:
        self.atoms = tuple(atom for atom in atoms if atom.value)
        self._starts: list[int] = []
        at = 0
        for atom in self.atoms:
            self._starts.append(at)
            at += len(atom.value)
        self.text = text_of(self.atoms)

    @classmethod
    def of(cls, text: str, start: int = 0, end: int | None = None) -> Source:
        """Return a part of a file as it stands there."""
        end = len(text) if end is None else end
        return cls((Atom(text[start:end], start, end, True),))

    def cut(self, start: int, end: int) -> Word:
        """Return ``text[start:end]`` as atoms."""
        if len(self.atoms) == 1:
            return (self.atoms[0].cut(start, end),) if start < end else ()
        first = max(bisect_right(self._starts, start) - 1, 0)
        found: list[Atom] = []
        for number in range(first, len(self.atoms)):
            at, atom = self._starts[number], self.atoms[number]
            if at >= end:
                break
            begin, stop = max(start - at, 0), min(end - at, len(atom.value))
            if begin < stop:
                found.append(atom.cut(begin, stop))
        return tuple(found)

    def start(self, offset: int) -> int:
        """Return where in the file the character at ``offset`` is read."""
        if not self.atoms:
            return 0
        number = max(bisect_right(self._starts, offset) - 1, 0)
        atom = self.atoms[number]
        inside = offset - self._starts[number]
        return min(atom.start + inside, atom.end) if atom.plain else atom.start

    def end(self, offset: int) -> int:
        """Return the place in the file just behind the character before ``offset``."""
        if offset <= 0 or not self.atoms:
            return self.start(0)
        number = max(bisect_right(self._starts, offset - 1) - 1, 0)
        atom = self.atoms[number]
        inside = offset - self._starts[number]
        return min(atom.start + inside, atom.end) if atom.plain else atom.end

    def span(self, start: int, end: int) -> Span:
        """Return the place in the file of ``text[start:end]``."""
        first = self.start(start)
        return Span(first, max(self.end(end), first))
