"""What a run asks of the file system, noted so that a later run can ask the same again.

All that ``check`` learns of a user's files it learns here or in ``documents.loader``: whether a
file is there, what it holds, which locks lie beside it. While a ``Trace`` is kept, each question is
noted with its answer. A result may be used again where every answer still holds, those that were
*no* too (a ``uv.toml`` that is not there). Without a trace the functions are those of ``os.path``.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

STATE, READ, LOCKS, FOLDERS, SOURCES = "state", "read", "locks", "folders", "sources"
"""What may be asked: the kind of a path, the bytes of a file, the locks beside one, the folders in
a folder, the Python files of some places."""


class Trace:
    """Questions and answers of one run."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], str] = {}
        self.sound = True
        """False once a question had two answers: a file changed while it was read."""
        self.walk: str | None = None
        """Digest of what ``documents.discover`` found; None before."""
        self.files: dict[str, str] = {}
        """Digests of the files that it looked at, by path."""

    def found(self, walk: str, files: dict[str, str]) -> None:
        """Note what was found in folders."""
        if self.walk is not None:
            self.sound = False
        self.walk, self.files = walk, files

    def note(self, question: str, about: str, answer: str) -> None:
        """Note an answer; ``about`` is a path as it was asked for (or several, NUL between)."""
        if self.answers.setdefault((question, about), answer) != answer:
            self.sound = False


_trace: Trace | None = None


def start() -> Trace:
    """Begin a trace, and return it."""
    global _trace
    _trace = Trace()
    return _trace


def current() -> Trace | None:
    """Return the trace that is kept, if any."""
    return _trace


def stop() -> None:
    """End the trace."""
    global _trace
    _trace = None


def digest(data: bytes) -> str:
    """Return the digest by which contents are told apart: BLAKE2b, 128 bits, hexadecimal.

    Of the digests that no one can forge it is the quickest for small files, and its module is
    imported in a fraction of the time that ``hashlib`` with OpenSSL takes.
    """
    try:
        from _blake2 import blake2b
    except ImportError:  # another Python than CPython
        from hashlib import blake2b
    return blake2b(data, digest_size=16).hexdigest()


def listed(names: Iterable[str]) -> str:
    """Return the answer that some names in their order are."""
    return digest("\0".join(names).encode("utf-8", "surrogateescape"))


def note(question: str, about: str, answer: str) -> None:
    """Note an answer, if a trace is kept."""
    if _trace is not None:
        _trace.note(question, about, answer)


def note_names(question: str, about: str, names: Iterable[str]) -> None:
    """Note names as an answer, if a trace is kept."""
    if _trace is not None:
        _trace.note(question, about, listed(names))


def note_bytes(path: str, data: bytes) -> None:
    """Note what a file holds, if a trace is kept."""
    if _trace is not None:
        _trace.note(READ, path, digest(data))


def note_failure(path: str, message: str) -> None:
    """Note why a file cannot be read, if a trace is kept."""
    if _trace is not None:
        _trace.note(READ, path, f"!{message}")


def state(path: str) -> str:
    """Return what a path leads to: ``file``, ``folder``, ``other`` or ``""`` for nothing."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return ""
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"


def _asked(path: str) -> str:
    found = state(path)
    note(STATE, path, found)
    return found


def is_file(path: str) -> bool:
    """Return what ``os.path.isfile`` does."""
    return _asked(path) == "file"


def is_folder(path: str) -> bool:
    """Return what ``os.path.isdir`` does."""
    return _asked(path) == "folder"


def exists(path: str) -> bool:
    """Return what ``os.path.exists`` does."""
    return _asked(path) != ""
