"""Text that is safe on a terminal: colours by hand, no control characters, no credentials."""

from __future__ import annotations

import re

from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.select import channels

HIDDEN = "****"
"""What stands for a secret."""

_CODES = {
    "error": "1;31",
    "warning": "1;33",
    "info": "1;36",
    "bold": "1",
    "dim": "2",
    "good": "32",
    "bad": "31",
    "blue": "1;34",
}

_URL = regex(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s'\"`<>]+")
_LOOSE = regex(
    r"(?<=://)[^\s/?#@]{1,300}[\"'`<>][^\s/?#@]{0,300}(?=@)"  # a quote within the password
    r"|(?<=://)[\w.+%~-]{1,300}:(?![\d$])[^\s/?#@:'\"`<>]{1,300}(?![^\s/?#'\"`<>])"  # no port
    r"|(?<![\w.+%~-])[\w.+%~-]{0,300}:[^\s/?#@:]{1,300}(?=@(?:[\w-]{1,63}\.|localhost\b))"
)
"""Credentials where no well-formed URL is: half of one, or one that a blank or a quote cuts."""
_NAMED = regex(
    r"(?:(?:PASSWORD|PASSWD|TOKEN(?!IZ|S)|SECRET|API_?KEY)[A-Z0-9_]{0,40}['\"]?\s{0,3}[=:]\s{0,3}"
    r"|[Aa]uthorization:\s{0,3}(?:[A-Za-z]{1,20}\s{1,3})?)"
    r"['\"]?([^\s'\"$&;|][^\s'\"&;|]{2,})"
)
"""What a variable or a header holds whose name says that it is a secret."""
_NAMES = ("PASSW", "TOKEN", "SECRET", "KEY", "uthorization")
_VARIABLES = regex(r"(?:\$\{[A-Z0-9_]+\}|:)+")
_CONTROL = regex(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""What is not seen, or turns the order of what is seen around."""


class Style(NamedTuple):
    """How to paint; ``color`` False gives plain text."""

    color: bool
    columns: int = 0
    """How wide the terminal is; 0: the text goes elsewhere, and nothing is folded."""
    links: bool = False
    """Whether the terminal makes links of OSC 8."""

    def paint(self, word: str, text: str) -> str:
        """Return ``text`` in the colour of ``word``: a severity, ``bold``, ``dim``, ``good`` …"""
        return f"\x1b[{_CODES[word]}m{text}\x1b[0m" if self.color and text else text

    def rule(self, code: str, text: str) -> str:
        """Return ``text`` as a link to the page of a rule, where links are written."""
        if not self.links:
            return text
        from torchpin.report.pages import pages

        url = pages()
        return f"\x1b]8;;{url}{code}/\x1b\\{text}\x1b]8;;\x1b\\" if url else text


PLAIN = Style(color=False)


def secrets(text: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of ``text`` that hold credentials, in order: of a URL, or behind a name
    that says so (``UV_INDEX_CORP_PASSWORD=…``).

    What may be a secret of a URL is decided in ``select.channels``; a part that consists of
    ``${VARIABLES}`` only is none.
    """
    named: list[tuple[int, int]] = []
    if any(name in text for name in _NAMES):
        named = [match.span(1) for match in _NAMED.finditer(text)]
    if "://" not in text and "@" not in text:
        return tuple(named)
    return tuple(_joined([*_in_urls(text), *named]))


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in order, those that overlap as one."""
    out: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if out and start < out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((start, end))
    return out


def _in_urls(text: str) -> tuple[tuple[int, int], ...]:
    out: list[tuple[int, int]] = []
    for match in _URL.finditer(text):
        url = match.group()
        kept = channels.redact(url).split(HIDDEN)
        at = len(kept[0])
        for piece in kept[1:-1]:
            end = url.index(piece, at)
            out.append((match.start() + at, match.start() + end))
            at = end + len(piece)
        if len(kept) > 1:
            out.append((match.start() + at, match.end() - len(kept[-1])))
    if "@" in text or re.search(r"://[^\s/@]*:\D", text):
        for match in _LOOSE.finditer(text):
            if all(match.end() <= start or end <= match.start() for start, end in out):
                out.append(match.span())
        out.sort()
    return tuple(span for span in out if not _VARIABLES.fullmatch(text, *span))


def redact(text: str) -> str:
    """Return ``text`` with the credentials of every URL in it replaced by ``****``."""
    out: list[str] = []
    at = 0
    for start, end in secrets(text):
        out += (text[at:start], HIDDEN)
        at = end
    return "".join((*out, text[at:])) if out else text


def visible(text: str) -> str:
    """Return ``text`` on one line: line ends become blanks, control characters are escaped."""
    text = " ".join(text.splitlines()) if "\n" in text or "\r" in text else text
    return _CONTROL.sub(lambda match: _escape(match.group()), text)


def clean(text: str) -> str:
    """Return ``text`` redacted and visible: what every line of a report goes through."""
    return visible(redact(text))


def cell(character: str) -> str:
    """Return what stands for one character of a source line in a code frame."""
    if character == "\t":
        return "    "
    return _escape(character) if _CONTROL.match(character) else character


def width(text: str) -> int:
    """Return how many terminal columns ``text`` takes."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0
        if category(character) in ("Mn", "Me", "Cf")  # accents, variation selectors
        else 2
        if east_asian_width(character) in "WF"
        else 1
        for character in text
    )


def _escape(character: str) -> str:
    code = ord(character)
    if character == "\t":
        return " "
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
