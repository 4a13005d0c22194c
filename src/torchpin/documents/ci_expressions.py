"""Expressions of GitHub Actions (``${{ matrix.torch || '2.14.1' }}``), as far as a file tells.

Source: https://docs.github.com/actions/reference/workflows-and-actions/expressions. What depends on
a run (the event, secrets, outputs of steps) is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchpin.documents.atoms import Atom, Word, cut, text_of
from torchpin.documents.yaml_scripts import replaced
from torchpin.named import NamedTuple
from torchpin.patterns import regex

EXPRESSION = regex(r"\$\{\{((?:[^}']|'[^']*'|\}(?!\}))*)\}\}")
_TOKEN = regex(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+(?:\.\d+)?)(?![\w.])"
    r"|(?P<name>[A-Za-z_][\w-]*(?:\.[A-Za-z_*][\w-]*|\[\s*'[^']*'\s*\])*)"
    r"|(?P<sign>&&|\|\||==|!=|<=|>=|[!<>(),]))"
)
_LONGEST = 1_000
_FALSE = ("", "false", "0", "null")
_ALWAYS = frozenset(("always", "success", "failure", "cancelled"))
_LOGIC = frozenset(("and", "or", "not"))
"""Functions of Azure, which has no operators."""
_YES = (Atom("true", 0, 0, False),)
_NO = (Atom("false", 0, 0, False),)


class Scope(NamedTuple):
    """What names stand for."""

    names: Mapping[str, Word]
    """``matrix.torch``, ``env.TORCH`` … in lower case but for ``env``."""
    closed: tuple[str, ...] = ()
    """Contexts of which all is known, with a dot: what is not in ``names`` is empty there."""

    def value(self, name: str) -> Word | None:
        """Return what a name stands for; None: not known."""
        key = re.sub(r"\[\s*'([^']*)'\s*\]", r".\1", name)
        found = self.names.get(key)
        if found is None and not key.startswith("env."):
            found = self.names.get(key.lower())
        if found is None and key.startswith(self.closed) and self.closed:
            return ()
        return found


def substituted(word: Word, scope: Scope) -> Word:
    """Return a word with its expressions replaced by their values."""
    if "${{" not in text_of(word):
        return word

    def value(_: str, at: int) -> Word | None:
        return evaluate(cut(word, at, at + len(_)), scope)

    return replaced(word, EXPRESSION, value)


def holds(word: Word, scope: Scope) -> bool | None:
    """Return whether a condition holds (``if:``, with or without ``${{ }}``); None: not known."""
    text = text_of(word).strip()
    match = EXPRESSION.fullmatch(text)
    if match is not None:
        begin = text_of(word).find(match[1])
        word = cut(word, begin, begin + len(match[1]))
    elif "${{" in text:
        text = text_of(substituted(word, scope))
        word = (Atom(text, 0, 0, False),)
    found = evaluate(word, scope)
    return truth(found) if found is not None else None


def truth(word: Word) -> bool:
    """Tell whether a value counts as true."""
    return text_of(word) not in _FALSE


def evaluate(word: Word, scope: Scope) -> Word | None:
    """Return the value of an expression; None if it is not known or cannot be read."""
    text = text_of(word)
    if len(text) > _LONGEST:
        return None
    tokens: list[tuple[str, str, int]] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            return None
        tokens.append((match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    reader = _Reader(word, tokens, scope)
    try:
        found = reader.either(0)
    except (_WrongError, RecursionError):
        return None
    return found if reader.at == len(tokens) else None


def _logic(name: str, values: list[Word | None]) -> Word | None:
    """Return what ``and``, ``or`` or ``not`` of Azure give."""
    truths = [truth(one) if one is not None else None for one in values]
    if name == "not":
        return None if truths[:1] in ([], [None]) else (_NO if truths[0] else _YES)
    decides = name == "or"
    if decides in truths:
        return _YES if decides else _NO
    return None if None in truths else (_NO if decides else _YES)


class _WrongError(Exception):
    """The expression cannot be read."""


class _Reader:
    def __init__(self, word: Word, tokens: list[tuple[str, str, int]], scope: Scope) -> None:
        self.word = word
        self.tokens = tokens
        self.scope = scope
        self.at = 0

    def peek(self) -> str:
        """Return the sign that comes next, ``""`` for others."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "sign":
            return self.tokens[self.at][1]
        return ""

    def either(self, depth: int) -> Word | None:
        """Read ``a || b``."""
        if depth > 40:
            raise _WrongError
        left = self.both(depth)
        while self.peek() == "||":
            self.at += 1
            right = self.both(depth)
            if left is None:
                left = right if right is not None and text_of(right) == "true" else None
            elif not truth(left):
                left = right
        return left

    def both(self, depth: int) -> Word | None:
        """Read ``a && b``."""
        left = self.compared(depth)
        while self.peek() == "&&":
            self.at += 1
            right = self.compared(depth)
            if left is None:
                left = right if right is not None and not truth(right) else None
            elif truth(left):
                left = right
        return left

    def compared(self, depth: int) -> Word | None:
        """Read ``a == b``."""
        left = self.single(depth)
        sign = self.peek()
        if sign not in ("==", "!=", "<", ">", "<=", ">="):
            return left
        self.at += 1
        right = self.single(depth)
        if left is None or right is None:
            return None
        one, other = text_of(left).lower(), text_of(right).lower()
        if sign in ("==", "!="):
            return _YES if (one == other) == (sign == "==") else _NO
        try:
            first, second = float(one), float(other)
        except ValueError:
            return None
        found = {
            "<": first < second,
            ">": first > second,
            "<=": first <= second,
            ">=": first >= second,
        }[sign]
        return _YES if found else _NO

    def single(self, depth: int) -> Word | None:
        """Read a value, ``!value`` or a call."""
        if depth > 40 or self.at >= len(self.tokens):
            raise _WrongError
        kind, text, begin = self.tokens[self.at]
        self.at += 1
        if text == "!" and kind == "sign":
            found = self.single(depth + 1)
            return None if found is None else (_NO if truth(found) else _YES)
        if text == "(" and kind == "sign":
            found = self.either(depth + 1)
            self.expect(")")
            return found
        if kind == "text":
            inner = cut(self.word, begin + 1, begin + len(text) - 1)
            if "''" in text[1:-1]:
                return tuple(atom._replace(value=atom.value.replace("''", "'")) for atom in inner)
            return inner
        if kind == "number":
            return cut(self.word, begin, begin + len(text))
        if kind != "name":
            raise _WrongError
        if self.peek() == "(":
            return self.call(text.lower(), depth)
        if text in ("true", "false"):
            return _YES if text == "true" else _NO
        if text == "null":
            return ()
        return self.scope.value(text)

    def call(self, name: str, depth: int) -> Word | None:
        """Read the arguments of a function, and return its value."""
        self.expect("(")
        values: list[Word | None] = []
        while self.peek() != ")":
            values.append(self.either(depth + 1))
            if self.peek() == ",":
                self.at += 1
            elif self.peek() != ")":
                raise _WrongError
        self.expect(")")
        if name in _ALWAYS:
            return _YES if name in ("always", "success") else _NO
        if name in _LOGIC:
            return _logic(name, values)
        if name == "fromjson" and len(values) == 1 and values[0] is not None:
            plain = text_of(values[0]).strip()
            return values[0] if re.fullmatch(r"true|false|-?\d+(?:\.\d+)?", plain) else None
        if len(values) != 2 or values[0] is None or values[1] is None:
            return None
        one, other = text_of(values[0]).lower(), text_of(values[1]).lower()
        if name in ("eq", "ne"):
            return _YES if (one == other) == (name == "eq") else _NO
        if name == "contains":
            return _YES if other in one else _NO
        if name == "startswith":
            return _YES if one.startswith(other) else _NO
        if name == "endswith":
            return _YES if one.endswith(other) else _NO
        return None

    def expect(self, sign: str) -> None:
        """Take a sign.

        Raises:
            _WrongError: another one comes.
        """
        if self.peek() != sign:
            raise _WrongError
        self.at += 1
