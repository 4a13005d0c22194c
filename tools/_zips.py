"""Read single members of a remote zip by HTTP ranges."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

from tools._common import read_range, size_of

TAIL = 65_536
"""Bytes read from the end: the directory of a small wheel and its ``.dist-info`` lie there."""
SLACK = 64
"""Bytes that a member's extra field may take beyond its name in the local header."""


class Member(NamedTuple):
    """One entry of a zip's central directory."""

    name: str
    method: int
    packed: int
    size: int
    offset: int


class RemoteZip:
    """A zip of which the directory is read at once and members when asked for.

    Args:
        url: where it lies.
        size: its size in bytes; None: asked for.

    Raises:
        OSError: no end record in the last 64 KiB, or no range answers.
    """

    def __init__(self, url: str, size: int | None = None) -> None:
        self.url = url
        self.size = size_of(url) if size is None else size
        self._start = max(0, self.size - TAIL)
        self._tail = read_range(url, self._start, self.size)
        self.members = self._directory()

    def _read(self, start: int, end: int) -> bytes:
        if start >= self._start:
            return self._tail[start - self._start : end - self._start]
        return read_range(self.url, start, min(end, self.size))

    def _directory(self) -> list[Member]:
        at = self._tail.rfind(b"PK\x05\x06")
        if at < 0:
            raise OSError("no end of central directory")
        count, size, offset = struct.unpack_from("<HII", self._tail, at + 10)
        block = self._read(offset, offset + size)
        members = []
        where = 0
        while block[where : where + 4] == b"PK\x01\x02":
            method = struct.unpack_from("<H", block, where + 10)[0]
            packed, plain, name, extra, comment = struct.unpack_from("<IIHHH", block, where + 20)
            local = struct.unpack_from("<I", block, where + 42)[0]
            text = block[where + 46 : where + 46 + name].decode()
            members.append(Member(text, method, packed, plain, local))
            where += 46 + name + extra + comment
        if count not in (len(members), 0xFFFF):
            raise OSError(f"central directory holds {len(members)} of {count} entries")
        return members

    def named(self, name: str) -> Member | None:
        """Return the member of a name, None if there is none."""
        return next((m for m in self.members if m.name == name), None)

    def read(self, member: Member) -> bytes:
        """Read and unpack one member."""
        guess = 30 + len(member.name.encode()) + SLACK + member.packed
        data = self._read(member.offset, member.offset + guess)
        name, extra = struct.unpack_from("<HH", data, 26)
        begin = 30 + name + extra
        missing = begin + member.packed - len(data)
        if missing > 0:
            end = member.offset + len(data)
            data += self._read(end, end + missing)
        body = data[begin : begin + member.packed]
        return body if member.method == 0 else zlib.decompressobj(-15).decompress(body)
