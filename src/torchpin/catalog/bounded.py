"""What reading a binary may cost: one error, one budget, and readers that never give too little.

The readers of wheels, ELF, PE and fatbins see bytes through ``ReadAt``. A reader returns exactly
what is asked for or raises ``InspectError``; nothing here holds more than ``IN_MEMORY`` bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import IO, Protocol

from torchpin.errors import TorchpinError

IN_MEMORY = 32 * 1024 * 1024
"""A member that unpacks to more bytes than this is streamed, not held."""
BLOCK = 1024 * 1024
"""Bytes that a streamed member is unpacked by."""
MAX_READ = 64 * 1024 * 1024
"""The most bytes that one request of a reader may give."""
TOTAL = 16 * 1024**3
"""The most bytes that one inspection unpacks, all passes together."""
SECONDS = 600.0
"""The longest that an inspection may take, unless the caller says otherwise."""


class InspectError(TorchpinError):
    """A wheel or a library cannot be read: damaged, hostile, too big or out of reach."""


class Budget:
    """Bytes that may still be unpacked, and the time until which that may go on.

    Args:
        seconds: from now on.
        total: bytes.
    """

    def __init__(self, seconds: float = SECONDS, total: int = TOTAL) -> None:
        self.seconds = seconds
        self.until = time.monotonic() + seconds
        self.left = total

    def remaining(self) -> float:
        """Return the seconds that are left, at least a hundredth."""
        return max(0.01, self.until - time.monotonic())

    def charge(self, count: int) -> None:
        """Take ``count`` unpacked bytes off.

        Raises:
            InspectError: more bytes or more time than allowed.
        """
        self.left -= count
        if self.left < 0:
            raise InspectError("unpacks to more bytes than any wheel holds: not read further")
        self.check()

    def check(self) -> None:
        """Look at the clock.

        Raises:
            InspectError: the time is over.
        """
        if time.monotonic() > self.until:
            raise InspectError(
                f"gave no result within {self.seconds:g} s",
                hint="--timeout SECONDS allows more time",
            )


class ReadAt(Protocol):
    """Bytes at places."""

    @property
    def size(self) -> int:
        """How many bytes there are."""

    def read(self, offset: int, count: int) -> bytes:
        """Return exactly ``count`` bytes from ``offset`` on.

        Raises:
            InspectError: they are not all there.
        """


class Source(Protocol):
    """What a wheel is read from."""

    size: int

    def seekable(self) -> bool:
        """Return True."""

    def tell(self) -> int:
        """Return the position."""

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a position."""

    def read(self, count: int | None = -1) -> bytes:
        """Return up to ``count`` bytes."""

    def close(self) -> None:
        """Close it."""


def check_range(size: int, offset: int, count: int) -> None:
    """Raise ``InspectError`` unless ``count`` bytes lie at ``offset`` and are few enough."""
    if offset < 0 or count < 0 or offset + count > size:
        raise InspectError(f"is cut off: bytes {offset}–{offset + count} of {size} are missing")
    if count > MAX_READ:
        raise InspectError(f"a table of {count} bytes is too big to be true")


class Held:
    """Bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, count: int) -> bytes:
        """Return ``count`` bytes from ``offset`` on."""
        check_range(self.size, offset, count)
        return self._data[offset : offset + count]


class OfFile:
    """A library that lies on disk as it is."""

    def __init__(self, file: Source, size: int, budget: Budget) -> None:
        self._file = file
        self.size = size
        self._budget = budget
        self._start = 0
        self._window = b""

    def read(self, offset: int, count: int) -> bytes:
        """Return ``count`` bytes from ``offset`` on."""
        check_range(self.size, offset, count)
        self._budget.check()
        at = offset - self._start
        if at < 0 or at + count > len(self._window):
            self._file.seek(offset)
            self._window = self._file.read(max(count, 64 * 1024))
            self._start, at = offset, 0
        data = self._window[at : at + count]
        if len(data) != count:
            raise InspectError(f"ended early: {count} bytes at {offset} were expected")
        return data


class Streamed:
    """A packed member, unpacked front to back; a step back begins again.

    The last blocks stay: tables that lie beside each other are read in one pass.

    Args:
        start: opens the unpacking stream at its begin.
        size: bytes that it must give.
        budget: pays for each byte unpacked, also again.
    """

    def __init__(self, start: Callable[[], IO[bytes]], size: int, budget: Budget) -> None:
        self._open = start
        self.size = size
        self._budget = budget
        self._stream: IO[bytes] | None = None
        self._end = 0
        self._blocks: list[bytes] = []

    def read(self, offset: int, count: int) -> bytes:
        """Return ``count`` bytes from ``offset`` on."""
        check_range(self.size, offset, count)
        first = self._end - sum(map(len, self._blocks))
        if self._stream is None or offset < first:
            self.close()
            self._stream = self._open()
            self._end, self._blocks, first = 0, [], 0
        while self._end < offset + count:
            block = self._stream.read(min(BLOCK, self.size - self._end))
            if not block:
                raise InspectError(f"ends after {self._end} of {self.size} bytes")
            self._budget.charge(len(block))
            self._blocks.append(block)
            self._end += len(block)
            while len(self._blocks) > 2 and first + len(self._blocks[0]) <= min(
                offset, self._end - 2 * BLOCK
            ):
                first += len(self._blocks.pop(0))
        parts = []
        at = first
        for block in self._blocks:
            if at + len(block) > offset and at < offset + count:
                parts.append(block[max(0, offset - at) : offset + count - at])
            at += len(block)
        return b"".join(parts)

    def close(self) -> None:
        """End the stream; the next read begins again."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def check_apart(what: str, ranges: Sequence[tuple[int, int]]) -> None:
    """Raise ``InspectError`` if two of the ranges ``(start, end)`` overlap."""
    before = 0
    for start, end in sorted(ranges):
        if start < before:
            raise InspectError(f"{what} overlap")
        before = max(before, end)
