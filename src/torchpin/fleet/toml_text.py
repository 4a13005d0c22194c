"""Read TOML and say on which line each key and value stands.

``tomllib`` is the parser; it gives no positions. ``find_lines`` scans a text that ``tomllib`` has
accepted and records the line of every key path and array item, nothing else. ``Values`` takes
values by their keys and collects what is wrong with them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torchpin.errors import ConfigError
from torchpin.fleet.values import kind, quote
from torchpin.patterns import regex

_T = TypeVar("_T")
Path = tuple[str | int, ...]


class WrittenFloat(float):
    """A float that prints as it is written: ``3.10`` is not ``3.1`` where it means a version."""

    text: str

    def __new__(cls, text: str) -> WrittenFloat:
        """Return the value of ``text``, a float as TOML writes it."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text


_BLANK = regex(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = regex(r"[ \t]*")
_BARE_KEY = regex(r"[A-Za-z0-9_-]+")
_STRING = regex(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'', re.DOTALL
)
_SCALAR = regex(r"[^,\]}#\n]*")
_AT = regex(r"\(at (?:line ([0-9]+), column [0-9]+|end of document)\)$")


def decode(data: bytes, path: str) -> str:
    """Return the text of a TOML file without its BOM.

    Raises:
        ConfigError: it is not UTF-8.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")  # the codec utf-8-sig is a module more to import
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "not UTF-8, which TOML requires", path=path, line=line, hint="save the file as UTF-8"
        ) from error


def loads(text: str, path: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ConfigError: it is not TOML; a key or table given twice is reported here, too.
    """
    parser: Any = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        value: dict[str, Any] = parser.loads(text, parse_float=WrittenFloat)
    except RecursionError as error:
        raise ConfigError("nested too deeply", path=path) from error
    except ValueError as error:  # TOMLDecodeError, and dates or integers out of range
        message = str(error)
        match = _AT.search(message)
        line = None
        if match:
            message = message[: match.start()].strip()
            line = int(match.group(1)) if match.group(1) else text.rstrip().count("\n") + 1
        raise ConfigError(f"not valid TOML: {message}", path=path, line=line) from error
    return value


def find_lines(text: str) -> dict[Path, int]:
    """Return the 1-based line of every key path: ``("fleet", "a", "gpus")`` and of array items
    ``("fleet", "a", "gpus", 0)``. The text must be valid TOML, without a BOM.
    """
    return _Scanner(text).run()


class _Scanner:
    """A lenient scanner: on anything that it does not understand it stops and keeps what it has."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self.newlines = [i for i, c in enumerate(text) if c == "\n"]

    def line(self, at: int) -> int:
        from bisect import bisect_left

        return bisect_left(self.newlines, at) + 1

    def run(self) -> dict[Path, int]:
        table: Path = ()
        counts: dict[Path, int] = {}
        while True:
            self.skip(_BLANK)
            if self.at >= len(self.text):
                return self.lines
            start = self.at
            if self.peek("[["):
                self.at += 2
                table = self.resolve(self.key(), counts)
                number = counts.get(table, -1) + 1
                counts[table] = number
                self.record(table, start)
                table = (*table, number)
                self.record(table, start)
                self.at = self.text.find("]]", self.at) + 2
            elif self.peek("["):
                self.at += 1
                table = self.resolve(self.key(), counts)
                self.record(table, start)
                self.lines[table] = self.line(start)
                self.at = self.text.find("]", self.at) + 1
            else:
                self.pair(table)
            if self.at <= start:
                return self.lines

    def resolve(self, keys: tuple[str, ...], counts: dict[Path, int]) -> Path:
        """Return the path of a header; an array of tables on the way means its last table."""
        path: Path = ()
        for place, key in enumerate(keys):
            path = (*path, key)
            if path in counts and place < len(keys) - 1:
                path = (*path, counts[path])
        return path

    def record(self, path: Path, at: int) -> None:
        line = self.line(at)
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        return match.group()

    def key(self) -> tuple[str, ...]:
        keys: list[str] = []
        while True:
            self.skip(_SPACE)
            quoted = self.skip(_STRING)
            if quoted:
                keys.append(_unquote(quoted))
            else:
                keys.append(self.skip(_BARE_KEY))
            self.skip(_SPACE)
            if not self.peek("."):
                return tuple(keys)
            self.at += 1

    def pair(self, table: Path) -> None:
        start = self.at
        path = (*table, *self.key())
        self.record(path, start)
        if self.peek("="):
            self.at += 1
            self.value(path)

    def value(self, path: Path) -> None:
        self.skip(_SPACE)
        if self.peek("["):
            self.at += 1
            number = 0
            while self.more("]"):
                self.record((*path, number), self.at)
                start = self.at
                self.value((*path, number))
                if self.at == start:  # not TOML
                    self.at = len(self.text)
                number += 1
        elif self.peek("{"):
            self.at += 1
            while self.more("}"):
                start = self.at
                self.pair(path)
                if self.at == start:  # not TOML
                    self.at = len(self.text)
        elif not self.skip(_STRING):
            self.skip(_SCALAR)

    def more(self, end: str) -> bool:
        """Skip blanks and one comma; False at the end of the array or table, or of the text."""
        self.skip(_BLANK)
        if self.peek(","):
            self.at += 1
            self.skip(_BLANK)
        if self.at >= len(self.text):
            return False
        if self.peek(end):
            self.at += 1
            return False
        return self.text[self.at] not in ",]}"


def _unquote(quoted: str) -> str:
    if quoted.startswith("'"):
        return quoted[1:-1]
    if "\\" not in quoted:
        return quoted[1:-1]
    value: str = loads(f"key = {quoted}", "")["key"]
    return value


class Values:
    """Takes values by their keys and collects the errors, each with its line.

    Args:
        path: of the profile.
        lines: key → line.
        prefix: the table that the keys are in.
        group_keys: those of a node group, which have no place at the top.
    """

    def __init__(
        self, path: str, lines: dict[Path, int], prefix: Path, group_keys: Sequence[str]
    ) -> None:
        self.path = path
        self.lines = lines
        self.prefix = prefix
        self.group_keys = group_keys
        self.errors: list[ConfigError] = []

    def line(self, at: Path) -> int:
        """Return the line of a key, or of the nearest key above it."""
        full = (*self.prefix, *at)
        while full and full not in self.lines:
            full = full[:-1]
        return self.lines.get(full, 1)

    def error(self, message: str, at: Path, hint: str = "") -> None:
        """Note what is wrong at a key."""
        self.errors.append(ConfigError(message, path=self.path, line=self.line(at), hint=hint))

    def table(self, value: Any, name: str, at: Path) -> bool:
        """Tell whether a value is a table; note if it is none."""
        if isinstance(value, dict):
            return True
        self.error(f"{name} must be a table, not {kind(value)}", at)
        return False

    def unknown(self, table: dict[str, Any], known: Sequence[str], at: Path) -> None:
        """Note the keys of a table that nobody knows."""
        for key in table:
            if key in known:
                continue
            hint = f"known keys: {', '.join(known)}"
            near = nearest(key, known)
            if near:
                hint = f"did you mean {near!r}? {hint}"
            elif not at and not self.prefix and key == "tool":
                hint = "torchpin.toml needs no tool.torchpin prefix: write [fleet.NAME]"
            elif not at and key in self.group_keys:
                hint = f"{key} belongs to a node group: [fleet.NAME]"
            self.error(f"unknown key {quote(key)}", (*at, key), hint)

    def choice(
        self, table: dict[str, Any], key: str, words: Sequence[str], at: Path, default: str | None
    ) -> str | None:
        """Return the word at a key, one of some; the default without it."""
        value = table.get(key, default)
        if value is None or value in words:
            return value
        shown = quote(value) if isinstance(value, str) else kind(value)
        self.error(f"{key} must be {' or '.join(map(quote, words))}, not {shown}", (*at, key))
        return default

    def strings(self, value: Any, key: str, at: Path) -> tuple[tuple[int, str], ...]:
        """Return the strings of an array with their places in it."""
        if not isinstance(value, list):
            hint = f'write {key} = ["{value}"]' if isinstance(value, str) else ""
            self.error(f"{key} must be an array of strings, not {kind(value)}", at, hint)
            return ()
        good: list[tuple[int, str]] = []
        for number, item in enumerate(value):
            if not isinstance(item, str):
                self.error(f"{key} must hold strings, not {kind(item)}", (*at, number))
            elif not item.strip():
                self.error(f"{key} holds an empty string", (*at, number))
            else:
                good.append((number, item))
        return tuple(good)

    def names(self, table: dict[str, Any], key: str, at: Path) -> tuple[str, ...]:
        """Return the strings of the array at a key; nothing without it."""
        if key not in table:
            return ()
        return tuple(text for _, text in self.strings(table[key], key, (*at, key)))

    def flag(self, table: dict[str, Any], key: str, at: Path) -> bool:
        """Return the boolean at a key; False without it."""
        value = table.get(key, False)
        if isinstance(value, bool):
            return value
        self.error(f"{key} must be true or false, not {kind(value)}", (*at, key))
        return False

    def text(
        self, table: dict[str, Any], key: str, at: Path, parse: Callable[..., str]
    ) -> str | None:
        """Return the string at a key, as ``parse`` reads it; None without it."""
        value = table.get(key)
        if value is not None and not isinstance(value, str):
            hint = f'write {key} = "{value}"' if isinstance(value, (int, float)) else ""
            self.error(f"{key} must be a string, not {kind(value)}", (*at, key), hint)
            return None
        return self.value(table, key, at, parse)

    def value(
        self, table: dict[str, Any], key: str, at: Path, parse: Callable[..., _T]
    ) -> _T | None:
        """Return the value at a key, as ``parse`` reads it; None without it."""
        if key not in table:
            return None
        try:
            return parse(table[key], path=self.path, line=self.line((*at, key)))
        except ConfigError as error:
            self.errors.append(error)
            return None


def nearest(key: str, known: Sequence[str]) -> str | None:
    """Return the known key that is most like one, if any is."""
    import difflib

    low = key.lower().replace("_", "-")
    for form in (low, f"{low}s", low.removesuffix("s")):
        if form in known:
            return form
    near = difflib.get_close_matches(low, known, n=1, cutoff=0.7)
    return near[0] if near else None


def joined(errors: list[ConfigError]) -> ConfigError:
    """Return one error that says all: the first by line with its place, then the others."""
    ordered = sorted(errors, key=lambda error: error.line or 0)
    first, *others = ordered
    if not others:
        return first
    parts = [f"{first.message}\n  {first.hint}" if first.hint else first.message]
    parts += (str(error) for error in others)
    return ConfigError("\n".join(parts), path=first.path, line=first.line)
