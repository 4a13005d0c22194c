"""Break sentences at blanks, so that they fit a terminal; what may be copied stays whole."""

from __future__ import annotations

from torchpin.patterns import regex
from torchpin.report.style import width

NARROW = 40
"""On fewer columns nothing is folded: it would not be read better."""
_ESCAPES = regex(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")
_WORDS = regex(r"[^\s`]*`[^`]+`[^\s`]*|\S+")
"""A command in backticks is one word: it is copied."""


def plain(text: str) -> str:
    """Return ``text`` without colours and links."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def shown_width(text: str) -> int:
    """Return how many columns ``text`` takes, its colours and links not counted."""
    return width(plain(text))


def wrap(
    text: str, columns: int, lead: str = "", hang: int | None = None, narrow: int = NARROW
) -> list[str]:
    """Return the lines of a sentence that begins behind ``lead``.

    Args:
        text: the sentence; colours and links may be in it.
        columns: how wide the terminal is.
        lead: what stands before the first word.
        hang: how far later lines stand in; None: as far as the first word.
        narrow: on fewer columns nothing is broken.
    """
    inner = shown_width(lead) if hang is None else hang
    if columns < narrow or shown_width(lead) + shown_width(text) <= columns:
        return [lead + text]
    if inner > columns // 2:
        inner = 4
    out: list[str] = []
    current, used, fresh = lead, shown_width(lead), True
    for word in _WORDS.findall(text):
        size = shown_width(word)
        if not fresh and used + 1 + size > columns:
            out.append(current)
            current, used, fresh = " " * inner, inner, True
        current += word if fresh else f" {word}"
        used += size if fresh else size + 1
        fresh = False
    return [*out, current]


def comment(text: str, indent: str = "", hang: int = 0, columns: int = 80) -> list[str]:
    """Return a sentence as comment lines, ``# `` before each, no wider than ``columns``.

    Args:
        text: the sentence; what holds no blank stays whole.
        indent: what stands before the mark.
        hang: how far later lines stand in.
        columns: how wide the lines are.
    """
    lead = f"{indent}# "
    return [f"{lead}{line}" for line in wrap(text, columns - len(lead), "", hang)]
