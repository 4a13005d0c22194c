"""Tell how far long work is; nothing of this is imported where nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TypeVar

Progress = Callable[[str, int, int | None], None]
"""Is told what is done, how many are done and of how many (None: not known)."""

_T = TypeVar("_T")


def counting(progress: Progress, what: str, items: Iterable[_T]) -> Iterator[_T]:
    """Yield ``items``, and tell before each how many are done."""
    total = len(items) if isinstance(items, Sized) else None
    for number, item in enumerate(items):
        progress(what, number, total)
        yield item
