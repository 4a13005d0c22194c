"""The words of a command as options and arguments, by the grammar of its program."""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.documents.atoms import Word, cut
from torchpin.documents.base import Span
from torchpin.documents.installers import Grammar
from torchpin.documents.shell_words import Text
from torchpin.named import NamedTuple


class Option(NamedTuple):
    """An option of a command."""

    name: str
    """Long form."""
    value: Word | None
    span: Span


class Parsed(NamedTuple):
    """What a program makes of its words."""

    options: list[Option]
    arguments: list[Text]
    rest: int
    """Index of the word at which the program's own options end."""


def parse(words: Sequence[Text], grammar: Grammar, start: int = 0) -> Parsed:
    """Return the options and other words from ``words[start]`` on."""
    options: list[Option] = []
    arguments: list[Text] = []
    at = start
    while at < len(words):
        word = words[at]
        value = word.value
        if value == "--":
            at += 1
            if grammar.stops:
                return Parsed(options, arguments, at)
            arguments += words[at:]
            break
        if value.startswith("--"):
            at = _long(words, at, grammar, options)
        elif value.startswith("-") and len(value) > 1:
            at = _short(words, at, grammar, options)
        elif grammar.stops:
            return Parsed(options, arguments, at)
        else:
            arguments.append(word)
            at += 1
    return Parsed(options, arguments, len(words))


def _long(words: Sequence[Text], at: int, grammar: Grammar, options: list[Option]) -> int:
    word = words[at]
    name, equals, _ = word.value.partition("=")
    known = grammar.values | grammar.flags
    if grammar.flags and name not in known:
        near = [one for one in known if one.startswith(name)]
        name = near[0] if len(near) == 1 else name
    if equals:
        options.append(Option(name, cut(word.atoms, word.value.index("=") + 1), word.span))
        return at + 1
    if name in grammar.values and at + 1 < len(words):
        following = words[at + 1]
        span = Span(word.span.start, max(following.span.end, word.span.end))
        options.append(Option(name, following.atoms, span))
        return at + 2
    options.append(Option(name, None, word.span))
    return at + 1


def _short(words: Sequence[Text], at: int, grammar: Grammar, options: list[Option]) -> int:
    word = words[at]
    value = word.value
    for index in range(1, len(value)):
        name = grammar.short.get(value[index])
        if name is None:
            options.append(Option(f"-{value[index]}", None, word.span))
            continue
        if index + 1 < len(value):
            begin = index + 2 if value[index + 1] == "=" else index + 1
            options.append(Option(name, cut(word.atoms, begin), word.span))
        elif at + 1 < len(words):
            following = words[at + 1]
            span = Span(word.span.start, max(following.span.end, word.span.end))
            options.append(Option(name, following.atoms, span))
            return at + 2
        return at + 1
    return at + 1
