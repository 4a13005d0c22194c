"""A wheel that nobody vouches for, read with the standard library's zipfile under a budget.

zipfile reads the directory and unpacks; this adds what it does not ask: how big a directory, how
many bytes a member may give, whether members lie over each other (which makes small bombs big).
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, cast

from torchpin.catalog.bounded import (
    IN_MEMORY,
    Budget,
    Held,
    InspectError,
    ReadAt,
    Source,
    Streamed,
    check_apart,
)
from torchpin.catalog.remote import BIGGEST_READ, Progress, RemoteFile

BIGGEST_MEMBER = 8 * 1024**3
"""The most that one member may claim to unpack to."""
RATIO = 200
"""A big member that claims to unpack to so many times its packed size is a bomb: libraries with
device code reach 3 to 8."""
_FREE = 64 * 1024 * 1024
"""The ratio is not asked of members that unpack to less."""
DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    UnicodeError,
    ValueError,
)
"""What zipfile raises on damaged or odd archives."""


class LocalFile:
    """A regular file on disk.

    Args:
        path: where it lies.
        progress: is told of the bytes that are read for the first time.

    Raises:
        InspectError: it cannot be opened or is no regular file.
    """

    def __init__(self, path: str, progress: Progress | None = None) -> None:
        try:
            handle = os.open(
                path,
                os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0),
            )
        except OSError as error:
            raise InspectError(f"cannot be opened: {error.strerror}") from error
        except ValueError as error:  # a NUL in the name
            raise InspectError("cannot be opened: no such name is possible") from error
        told = os.fstat(handle)
        if not stat.S_ISREG(told.st_mode):
            os.close(handle)
            raise InspectError("is not a file")
        self.size = told.st_size
        self._file = os.fdopen(handle, "rb")
        self._progress = progress
        self._reached = 0
        self.seekable, self.tell = self._file.seekable, self._file.tell
        self.seek, self.close = self._file.seek, self._file.close

    def read(self, count: int | None = -1) -> bytes:
        """Return up to ``count`` bytes."""
        if count is None or count < 0:
            count = max(0, self.size - self.tell())
        if count > BIGGEST_READ:
            raise InspectError(f"holds a table of {count} bytes, too big to be true")
        data = self._file.read(count)
        if self._progress is not None:
            new = self.tell() - max(self._reached, self.tell() - len(data))
            if new > 0:
                self._reached = self.tell()
                self._progress(new)
        return data


class Wheel:
    """The members of a wheel.

    Raises:
        InspectError: not a zip file, damaged, or a directory that cannot be true.
    """

    def __init__(self, source: Source, budget: Budget) -> None:
        self.source = source
        self._budget = budget
        try:
            self._zip = zipfile.ZipFile(cast("IO[bytes]", source))
            self.members = [info for info in self._zip.infolist() if not info.is_dir()]
        except DAMAGE as error:
            raise InspectError(f"is not a wheel: {_words(error)}") from error

    def named(self, name: str) -> zipfile.ZipInfo | None:
        """Return the member of a name; None if there is none."""
        return self._zip.NameToInfo.get(name)

    def prepare(self, members: list[zipfile.ZipInfo]) -> None:
        """Look at the sizes of members before any is read, and announce them to the source.

        Raises:
            InspectError: they overlap, are packed in a way that wheels are not, or are too big.
        """
        names = {info.filename for info in members}
        if len(names) != len(members):
            raise InspectError("holds two members of the same name")
        for info in members:
            _check(info, self.source.size)
        ranges = [
            (info.header_offset, info.header_offset + 30 + info.compress_size) for info in members
        ]
        check_apart("members of the wheel", ranges)
        if isinstance(self.source, RemoteFile):
            slack = 160  # name and extra field of the local header
            self.source.hint([(start, end + slack) for start, end in sorted(ranges)])

    def text(self, info: zipfile.ZipInfo, most: int) -> bytes:
        """Return a small member whole.

        Raises:
            InspectError: it is bigger than ``most`` bytes, or damaged.
        """
        if info.file_size > most:
            raise InspectError(f"{info.filename} is bigger than {most} bytes")
        view = self.open(info)
        return view.read(0, view.size)

    def open(self, info: zipfile.ZipInfo) -> ReadAt:
        """Return a member for reading at places: held if small, else streamed."""
        _check(info, self.source.size)
        stream = Streamed(self._start(info), info.file_size, self._budget)
        if info.file_size > IN_MEMORY:
            return stream
        try:
            data = stream.read(0, info.file_size)
        finally:
            stream.close()
        return Held(data)

    def _start(self, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
        def start() -> IO[bytes]:
            try:
                return cast("IO[bytes]", _Guarded(self._zip.open(info)))
            except DAMAGE as error:
                raise InspectError(f"cannot be unpacked: {_words(error)}") from error

        return start

    def close(self) -> None:
        """Close the archive; its source stays open."""
        self._zip.close()


class _Guarded:
    """A stream of a member whose damage is an ``InspectError``."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.close = stream.close

    def read(self, count: int) -> bytes:
        try:
            return self._stream.read(count)
        except DAMAGE as error:
            raise InspectError(f"cannot be unpacked: {_words(error)}") from error


def _check(info: zipfile.ZipInfo, size: int) -> None:
    name = info.filename
    if info.flag_bits & 1:
        raise InspectError(f"{name} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InspectError(f"{name} is packed in a way that wheels are not")
    if info.header_offset < 0 or info.header_offset + 30 + info.compress_size > size:
        raise InspectError(f"{name} reaches beyond the end of the wheel")
    bomb = info.file_size > max(_FREE, info.compress_size * RATIO)
    if bomb or info.file_size > BIGGEST_MEMBER:
        raise InspectError(
            f"{name} claims to unpack from {info.compress_size} to {info.file_size} bytes"
        )


def _words(error: BaseException) -> str:
    text = "".join(c if c.isprintable() else "?" for c in str(error)[:120])
    return text or type(error).__name__
