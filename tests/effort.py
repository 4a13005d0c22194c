"""A bound on work that neither a slow nor a busy machine moves: CPU time against a known loop."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache


@cache
def _unit() -> float:
    """Return the CPU seconds that a fixed loop takes here (about 0.1 s on a usual machine)."""

    def loop() -> float:
        start = time.process_time()
        total = 0
        for number in range(2_000_000):
            total += number & 7
        return time.process_time() - start

    return min(loop() for _ in range(3))


@contextmanager
def effort_below(loops: float) -> Iterator[None]:
    """Fail if the block takes more CPU time than ``loops`` runs of the known loop."""
    unit = _unit()
    start = time.process_time()
    yield
    took = (time.process_time() - start) / unit
    assert took < loops, f"took the work of {took:.0f} loops, not of less than {loops:.0f}"
