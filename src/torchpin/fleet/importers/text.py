"""Bytes to text to JSON, whatever a shell made of them; bounded, with a clear word on failure."""

from __future__ import annotations

import codecs
import json
from typing import Any

from torchpin.errors import UsageError

MOST_BYTES = 256 * 1024 * 1024
"""The biggest input: 8,000 Kubernetes nodes of 30 KB each."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode(data: bytes, source: str) -> str:
    """Return the text of an input: UTF-8, or UTF-16 as Windows PowerShell's ``>`` writes it.

    Bytes that are not UTF-8 (the code page of a Windows console) become replacement characters:
    no value that is read holds any but ASCII.

    Raises:
        UsageError: the input is empty, too big or no text.
    """
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"has more than {MOST_BYTES // 1024 // 1024} MiB",
            path=source,
            hint="give a part of it at a time",
        )
    name = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    if not name:
        head = data[:200]
        if len(head) >= 4 and head[1::2].count(0) * 4 >= len(head[1::2]) * 3:
            name = "utf-16-le"
        elif len(head) >= 4 and head[::2].count(0) * 4 >= len(head[::2]) * 3:
            name = "utf-16-be"
    text = data.decode(name or "utf-8", "replace").lstrip("\ufeff").replace("\r\n", "\n")
    if not text.strip():
        raise UsageError("is empty", path=source, hint="did the command that wrote it fail?")
    if "\0" in text:
        raise UsageError("is no text", path=source)
    return text


def parse_json(text: str, source: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        UsageError: it is cut off, wrong, or nested without end.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or "Unterminated" in error.msg:
            raise UsageError(
                "ends in the middle of its JSON",
                path=source,
                line=text.count("\n", 0, error.pos) + 1,
                hint="was the command interrupted, or the copy cut off? Run it again",
            ) from error
        raise UsageError(
            f"is not JSON: {error.msg}",
            path=source,
            line=error.lineno,
            hint="several outputs in one file? Give each machine a file of its own"
            if error.msg == "Extra data"
            else "",
        ) from error
    except (ValueError, RecursionError) as error:  # a number or a nesting without end
        raise UsageError("holds JSON that no tool writes", path=source) from error


def table(value: object) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> list[Any]:
    """Return ``value`` if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []


def word(value: object) -> str:
    """Return a JSON string or number as text without blanks around it, anything else as ``""``.

    Tools write a value that they do not have as ``N/A``, ``[N/A]``, ``[Not Supported]``,
    ``(null)`` or ``Unknown Error``: these are ``""``.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return ""
    try:
        text = str(value).strip()
    except ValueError:  # an integer with more digits than Python prints
        return ""
    low = text.lower().strip("[]()<>")
    missing = ("n/a", "not supported", "null", "unknown error", "err!", "none", "gpu is lost", "na")
    return "" if low in missing else text
