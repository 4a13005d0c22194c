"""Host lists: ``node[001-064,070]`` to names and back."""

from __future__ import annotations

from collections.abc import Iterable

from torchpin.patterns import regex

MOST_NAMES = 100_000
_BRACKET = regex(r"\[([0-9,\-]+)\]")
_NUMBER = regex(r"([0-9]+)([^0-9]*)$")
_ORDER = regex(r"([0-9]+)")


def split_list(text: str) -> list[str]:
    """Return the parts of a list with commas; commas inside brackets do not part."""
    parts: list[str] = []
    depth = start = 0
    for place, char in enumerate(text):
        if char in "[(":
            depth += 1
        elif char in "])":
            depth = max(0, depth - 1)
        elif char == "," and not depth:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def expand(text: str) -> list[str]:
    """Return the names of a Slurm host list; a part that is no such list, or too long, stays."""
    names: list[str] = []
    for part in split_list(text):
        names += _expand_one(part, MOST_NAMES - len(names))
    return names


def _expand_one(part: str, room: int) -> list[str]:
    match = _BRACKET.search(part)
    if match is None:
        return [part]
    before, after = part[: match.start()], part[match.end() :]
    numbers: list[str] = []
    for piece in match[1].split(","):
        first, dash, last = piece.partition("-")
        last = last if dash else first
        if not first or not last.isdecimal() or len(first) > 9 or len(last) > 9:
            return [part]
        low, high = int(first), int(last)
        if high < low or high - low >= room - len(numbers):
            return [part]
        numbers += (str(number).zfill(len(first)) for number in range(low, high + 1))
    if "[" in after:
        return [part]
    return [f"{before}{number}{after}" for number in numbers]


def _order(name: str) -> tuple[tuple[int, str], ...]:
    return tuple(
        (len(part.lstrip("0")), part) if part.isdecimal() else (0, part)
        for part in _ORDER.split(name)
    )


def compress(names: Iterable[str]) -> list[str]:
    """Return names as ranges: ``node001 … node064`` → ``node[001-064]``, in natural order."""
    families: dict[tuple[str, str, int], set[int]] = {}
    singles: set[str] = set()
    for name in set(names):
        match = _NUMBER.search(name)
        if match is None or len(match[1]) > 9 or "[" in name:
            singles.add(name)
            continue
        digits = match[1]
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        families.setdefault((name[: match.start()], match[2], width), set()).add(int(digits))
    _join_widths(families)
    pieces = list(singles)
    for (before, after, width), numbers in families.items():
        spans = _spans(sorted(numbers), width)
        if len(spans) == 1 and "-" not in spans[0]:
            pieces.append(f"{before}{spans[0]}{after}")
        else:
            pieces.append(f"{before}[{','.join(spans)}]{after}")
    return sorted(pieces, key=_order)


def _join_widths(families: dict[tuple[str, str, int], set[int]]) -> None:
    """Move ``node100`` to ``node001``'s family: its number is as wide without a zero."""
    for before, after, width in [key for key in families if key[2]]:
        plain = families.get((before, after, 0))
        if plain is None:
            continue
        same = {number for number in plain if len(str(number)) == width}
        families[before, after, width] |= same
        plain -= same
        if not plain:
            del families[before, after, 0]


def _spans(numbers: list[int], width: int) -> list[str]:
    spans: list[str] = []
    start = previous = numbers[0]
    for number in [*numbers[1:], -1]:
        if number == previous + 1:
            previous = number
            continue
        first, last = str(start).zfill(width), str(previous).zfill(width)
        spans.append(first if start == previous else f"{first}-{last}")
        start = previous = number
    return spans
