"""For which GPUs a library holds code: the headers of its fatbins.

A fatbin (nvcc's container, sections ``.nv_fatbin`` of ELF and ``.nv_fatb`` of PE) is a header of 16
bytes (u32 magic, u16 version, u16 header size, u64 payload) and entries: u16 kind (1 PTX, 2 cubin,
8 LTO-IR), u16, u32 header size, u64 data size, …, u32 arch at 0x1C, …, u64 flags at 0x28 (0x100000
is the suffix ``a``, 0x200000 the suffix ``f``; others say how the data are packed). Headers are
never packed. Checked against the listings of NVIDIA's cuobjdump and against test builds of nvcc 13.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable

from torchpin.catalog.bounded import Budget, InspectError, ReadAt
from torchpin.named import NamedTuple

MAGIC = 0xBA55ED50
PTX, CUBIN, LTO_IR = 1, 2, 8
_MAGIC = struct.pack("<I", MAGIC)
_HEADER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQ")
_ARCH, _FLAGS, _SMALLEST = 0x1C, 0x28, 64
_ACCELERATED, _FAMILY = 0x100000, 0x200000
_MOST_KINDS = 4096
"""Different sets of targets in one library; real ones hold some dozens."""
_MOST_TARGETS = 512
_STEP = 256 * 1024


class Part(NamedTuple):
    """How many fatbins of a library hold code for the same targets."""

    sass: tuple[str, ...]
    """Targets of the cubins: ``("80", "90a", "120")``."""
    ptx: tuple[str, ...]
    fatbins: int


class Fatbins(NamedTuple):
    """What the fatbins of a library hold."""

    parts: tuple[Part, ...]
    """Fatbins with device code, the most frequent kind first."""
    others: int
    """Fatbins without cubin and PTX: LTO-IR alone, or empty."""

    @property
    def total(self) -> int:
        """Return the number of fatbins with device code."""
        return sum(part.fatbins for part in self.parts)

    @property
    def sass(self) -> tuple[str, ...]:
        """Return every cubin target, ascending."""
        return ordered(target for part in self.parts for target in part.sass)

    @property
    def ptx(self) -> tuple[str, ...]:
        """Return every PTX target, ascending."""
        return ordered(target for part in self.parts for target in part.ptx)


NOTHING = Fatbins((), 0)


def ordered(targets: Iterable[str]) -> tuple[str, ...]:
    """Return targets once each, by number, then suffix: ``80 90 90a 120``."""
    return tuple(sorted(set(targets), key=lambda t: (int(t.rstrip("af")), t)))


def read_fatbins(
    data: ReadAt, ranges: Iterable[tuple[int, int]], budget: Budget | None = None
) -> Fatbins:
    """Read the fatbins that lie in ``ranges`` (start, end) of a library.

    Raises:
        InspectError: a size is zero or reaches beyond what it is part of, or the sections hold
            something else.
    """
    tally: Counter[frozenset[tuple[bool, str]]] = Counter()
    clock = budget or Budget()
    for start, end in ranges:
        found = _section(data, start, end, tally, clock)
        if not found and end - start >= _HEADER.size:
            raise InspectError(f"the device code section at {start} holds no fatbin")
    parts = [
        Part(
            ordered(target for is_ptx, target in kinds if not is_ptx),
            ordered(target for is_ptx, target in kinds if is_ptx),
            count,
        )
        for kinds, count in tally.items()
        if kinds
    ]
    return Fatbins(tuple(sorted(parts, key=lambda part: (-part.fatbins, part))), tally[frozenset()])


def _section(
    data: ReadAt, start: int, end: int, tally: Counter[frozenset[tuple[bool, str]]], clock: Budget
) -> int:
    at, found = start, 0
    while (at := _next(data, at, end)) + _HEADER.size <= end:
        _, _, head, payload = _HEADER.unpack(data.read(at, _HEADER.size))
        stop = at + head + payload
        if head < _HEADER.size or stop > end:
            raise InspectError(f"the fatbin at {at} does not fit its section")
        tally[_entries(data, at + head, stop, clock)] += 1
        if len(tally) > _MOST_KINDS:
            raise InspectError("more kinds of fatbins than any library holds")
        found += 1
        clock.check()
        at = (stop + 7) // 8 * 8
    return found


def _next(data: ReadAt, at: int, end: int) -> int:
    """Return where the next fatbin begins, on an 8-byte boundary of the section; ``end`` if none.

    Between two fatbins there is padding alone, so the first look mostly finds it.
    """
    if at + 4 <= end and data.read(at, 4) == _MAGIC:
        return at
    while at + 4 <= end:
        block = data.read(at, min(_STEP, end - at))
        hit = block.find(_MAGIC)
        while hit >= 0 and hit % 8:
            hit = block.find(_MAGIC, hit + 1)
        if hit >= 0:
            return at + hit
        at += len(block) // 8 * 8 or len(block)
    return end


def _entries(data: ReadAt, at: int, end: int, clock: Budget) -> frozenset[tuple[bool, str]]:
    """Return (is it PTX, target) of each entry with device code."""
    out: set[tuple[bool, str]] = set()
    number = 0
    while at < end:
        if at + _SMALLEST > end:
            raise InspectError(f"the entry at {at} does not fit its fatbin")
        header = data.read(at, _SMALLEST)
        kind, _, head, size = _ENTRY.unpack_from(header)
        if head < _SMALLEST or at + head + size > end:
            raise InspectError(f"the entry at {at} does not fit its fatbin")
        if kind in (PTX, CUBIN):
            arch = struct.unpack_from("<I", header, _ARCH)[0]
            flags = struct.unpack_from("<Q", header, _FLAGS)[0]
            suffix = "a" if flags & _ACCELERATED else "f" if flags & _FAMILY else ""
            if not 10 <= arch <= 9999:
                raise InspectError(f"the entry at {at} is for no GPU: {arch}")
            out.add((kind == PTX, f"{arch}{suffix}"))
            if len(out) > _MOST_TARGETS:
                raise InspectError(f"the fatbin before {at} holds code for too many GPUs")
        number += 1
        if number % 4096 == 0:
            clock.check()
        at += head + size
    return frozenset(out)
