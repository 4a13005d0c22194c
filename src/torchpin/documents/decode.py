"""Bytes of a requirements file to text, by the rules that pip 26.3 follows, without losing a byte.

Order: a byte order mark; a PEP 263 coding comment in the first two lines; UTF-8; and where that
fails the encoding of the locale, which only the caller knows (``fallback``). Source:
``pip/_internal/req/req_file.py``, ``_decode_req_file``.
"""

from __future__ import annotations

import codecs

from torchpin.named import NamedTuple
from torchpin.patterns import regex

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    # UTF-32-LE before UTF-16-LE: the mark of the one begins with the mark of the other.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
)
_CODING = regex(rb"coding[:=]\s*([-\w.]+)")

_REFUSED_CODECS = frozenset(
    (
        "idna",
        "punycode",
        "raw-unicode-escape",
        "raw_unicode_escape",
        "undefined",
        "unicode-escape",
        "unicode_escape",
        "utf-7",
    )
)
"""Codecs that no dependency file is written in: they are not plain text encodings (escapes turn
into other characters, so that offsets mean nothing) or take quadratic time."""


class Decoded(NamedTuple):
    """The text and how to write it back: ``bom + text.encode(encoding)`` gives the same bytes."""

    text: str
    encoding: str
    bom: bytes
    problem: str = ""
    """Code of the problem: ``binary`` or ``decode`` (then the text is empty), ``encoding`` (the
    text was read with the fall-back), ``""``."""
    message: str = ""


def decode(data: bytes, fallback: str | None = None) -> Decoded:
    """Decode ``data``; never raises.

    ``fallback`` is the encoding of the locale for files that are not UTF-8, None for none.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            body = data[len(bom) :]
            found = _try(body, encoding)
            if found is not None:
                return Decoded(found[0], found[1], bom)
            return _failed(f"starts with the byte order mark of {encoding} and is not {encoding}")
    coding = _coding_comment(data)
    if coding is not None:
        found = _try(data, coding)
        if found is not None:
            return _unless_binary(data, found)
        return _failed(f"its coding comment says {coding!r}, which does not fit its bytes")
    if b"\0" in data:
        return Decoded("", "utf-8", b"", "binary", "is a binary file (it holds NUL bytes)")
    found = _try(data, "utf-8")
    if found is not None:
        return Decoded(found[0], "utf-8", b"")
    if fallback is not None and _codec_name(fallback) not in (None, "utf-8"):
        found = _try(data, fallback)
        if found is not None:
            message = (
                f"is not UTF-8; pip reads it as {fallback}, the encoding of this machine's locale, "
                f"and otherwise elsewhere: add a comment '# -*- coding: {fallback} -*-'"
            )
            return Decoded(found[0], found[1], b"", "encoding", message)
    return _failed(_utf8_error(data))


def _unless_binary(data: bytes, found: tuple[str, str]) -> Decoded:
    if "\0" in found[0]:
        return Decoded("", "utf-8", b"", "binary", "is a binary file (it holds NUL bytes)")
    return Decoded(found[0], found[1], b"")


def _coding_comment(data: bytes) -> str | None:
    """Return the encoding that a comment in the first two lines names, as pip finds it."""
    start = 0
    for _ in range(2):
        end = data.find(b"\n", start)
        line = data[start : end if end >= 0 else len(data)]
        if line[:1] == b"#":
            match = _CODING.search(line)
            if match is not None:
                return match[1].decode("ascii")
        if end < 0:
            return None
        start = end + 1
    return None


def _codec_name(encoding: str) -> str | None:
    try:
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        return None


def _try(data: bytes, encoding: str) -> tuple[str, str] | None:
    """Return text and codec if ``data`` can be read and written back without a change."""
    name = _codec_name(encoding)
    if name is None or name in _REFUSED_CODECS:
        return None
    if name == "utf-8-sig":  # a mark would have been found before
        name = "utf-8"
    try:
        text = data.decode(name)
        if name == "utf-8" or text.encode(name) == data:  # strict UTF-8 is a bijection
            return text, name
    except (UnicodeError, LookupError):
        return None
    return None


def _utf8_error(data: bytes) -> str:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return (
            f"is not UTF-8 (byte 0x{data[error.start]:02x} in line {line}) and names no other "
            "encoding: add a comment such as '# -*- coding: latin-1 -*-' as its first line"
        )
    return "cannot be decoded"


def _failed(message: str) -> Decoded:
    return Decoded("", "utf-8", b"", "decode", message)
