"""Read TOML and say on which line each key and value stands.

``tomllib`` is the parser; it gives no positions. ``find_lines`` scans a text that ``tomllib`` has
accepted and records the line of every key path and array item, nothing else.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from torchpin.errors import ConfigError
from torchpin.patterns import regex

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
