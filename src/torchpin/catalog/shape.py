"""Say where JSON data do not have the shape that they should have.

A small checker, because a refresh on a user's machine needs it and a JSON Schema library would be
one more thing to install: a shape is a function that yields what is wrong with a value, with its
place (``builds[17].platform``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchpin.named import NamedTuple


class Problem(NamedTuple):
    """What is wrong, and where."""

    file: str
    """Name of the data file."""
    place: str
    """``builds[17].platform``; ``""`` for the file itself."""
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: {self.message}" if self.place else self.words

    @property
    def words(self) -> str:
        """Return the file and the message."""
        return f"{self.file}: {self.message}"


Fault = tuple[str, str]
"""Place, relative to the value, and message."""
Shape = Callable[[object], Iterator[Fault]]


def shown(value: object) -> str:
    """Return a value in short, for a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def simple(kind: str, test: Callable[[object], bool]) -> Shape:
    """Return the shape of values that pass a test."""

    def check(value: object) -> Iterator[Fault]:
        if not test(value):
            yield "", f"{shown(value)} is not {kind}"

    return check


def text(pattern: str = r"[^\x00-\x1f\x7f]*", kind: str = "a line of text") -> Shape:
    """Return the shape of strings that match a pattern as a whole."""
    match = re.compile(pattern).fullmatch
    return simple(kind, lambda value: isinstance(value, str) and match(value) is not None)


def one_of(*values: object) -> Shape:
    """Return the shape of some constants; 0 is not False."""
    names = ", ".join(map(repr, values))
    known = {(type(value), value) for value in values}

    def test(value: object) -> bool:
        plain = value is None or isinstance(value, (str, int, bool))
        return plain and (type(value), value) in known

    return simple(f"one of {names}", test)


def either(*shapes: Shape) -> Shape:
    """Return the shape of what has one of several shapes; the last one words the fault."""

    def check(value: object) -> Iterator[Fault]:
        faults: list[Fault] = []
        for shape in shapes:
            faults = list(shape(value))
            if not faults:
                return
        yield from faults

    return check


def rows(item: Shape, *, least: int = 0) -> Shape:
    """Return the shape of a list of one shape."""

    def check(value: object) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield "", f"{shown(value)} is not a list"
            return
        if len(value) < least:
            yield "", f"{len(value)} entries, at least {least} expected"
        for at, each in enumerate(value):
            for place, message in item(each):
                yield f"[{at}]{place}", message

    return check


def columns(fields: Mapping[str, Shape]) -> Shape:
    """Return the shape of a record that is written as a list: one value a field, in order."""
    shapes = list(fields.items())

    def check(value: object) -> Iterator[Fault]:
        if not isinstance(value, list):
            yield "", f"{shown(value)} is not a list"
        elif len(value) != len(shapes):
            yield "", f"{len(value)} columns, {len(shapes)} expected"
        else:
            for (name, shape), each in zip(shapes, value, strict=True):
                for place, message in shape(each):
                    yield f".{name}{place}", message

    return check


def table(fields: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """Return the shape of an object with these keys; others are let be."""

    def check(value: object) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield "", f"{shown(value)} is not an object"
            return
        for key, shape in fields.items():
            if key not in value:
                yield "", f"the key {key!r} is missing"
                continue
            for place, message in shape(value[key]):
                yield f".{key}{place}", message
        for key, shape in (optional or {}).items():
            if key in value:
                for place, message in shape(value[key]):
                    yield f".{key}{place}", message

    return check


def mapping(key: Shape, item: Shape, *, least: int = 0) -> Shape:
    """Return the shape of an object whose keys are data."""

    def check(value: object) -> Iterator[Fault]:
        if not isinstance(value, dict):
            yield "", f"{shown(value)} is not an object"
            return
        if len(value) < least:
            yield "", f"{len(value)} entries, at least {least} expected"
        for name, each in value.items():
            for _, message in key(name):
                yield f".{shown(name)}", f"as a key: {message}"
            for place, message in item(each):
                yield f".{name}{place}", message

    return check


def words(item: Shape, *, least: int = 0) -> Shape:
    """Return the shape of a string of words with single blanks between them."""

    def check(value: object) -> Iterator[Fault]:
        if not isinstance(value, str):
            yield "", f"{shown(value)} is not text"
            return
        found = value.split(" ") if value else []
        if len(found) < least:
            yield "", "is empty"
        if len(set(found)) < len(found):
            yield "", f"names one twice: {shown(value)}"
        for each in found:
            yield from item(each)

    return check


def parsed(kind: str, parse: Callable[[str], object]) -> Shape:
    """Return the shape of strings that a parser takes; each string is parsed once."""
    known: set[str] = set()

    def test(value: object) -> bool:
        if not isinstance(value, str):
            return False
        if value not in known:
            try:
                parse(value)
            except ValueError:  # more digits than Python reads, too
                return False
            known.add(value)
        return True

    return simple(kind, test)


NOTHING = one_of(None)
TEXT = text()
SOME = text(r"[^\x00-\x1f\x7f]+", "a line of text")
FLAG = one_of(0, 1)
TRUTH = one_of(True, False)
DATE = text(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", "a date (2026-11-30)")
SHA256 = text(r"[0-9a-f]{64}", "a SHA-256")
VERSION = parsed("a version", Version)
SPECIFIER = parsed("a version specifier", SpecifierSet)
DOTTED = text(r"\d+\.\d+", "a version of two numbers")
NAME = text(r"[a-z0-9]+(-[a-z0-9]+)*", "the canonical name of a package")
COUNT = simple(
    "a count", lambda value: isinstance(value, int) and type(value) is int and value >= 0
)


def numbers(limit: int) -> Shape:
    """Return the shape of a number that points into a list of ``limit`` entries."""
    return simple(
        f"a number below {limit}",
        lambda value: type(value) is int and 0 <= value < limit,
    )


def faults(file: str, data: object, shape: Shape) -> list[Problem]:
    """Return what is wrong with the data of a file."""
    return [Problem(file, place.removeprefix("."), message) for place, message in shape(data)]


def sequence_problems(file: str, place: str, keys: Sequence[object]) -> list[Problem]:
    """Return a problem for each key that occurs twice."""
    seen: dict[object, int] = {}
    out = []
    for at, key in enumerate(keys):
        if key in seen:
            out.append(Problem(file, f"{place}[{at}]", f"is {place}[{seen[key]}] again"))
        seen.setdefault(key, at)
    return out
