"""From a path to a document: the only place of this package that opens files."""

from __future__ import annotations

import os
import stat

from torchpin.documents.base import Document
from torchpin.documents.requirements import read_requirements
from torchpin.errors import TorchpinError

MAX_SIZE = 32 * 1024 * 1024
"""Bytes; a dependency file that is larger is a mistake."""


def read_bytes(path: str, limit: int = MAX_SIZE) -> bytes:
    """Return the bytes of a regular file of at most ``limit`` bytes.

    Raises:
        TorchpinError: there is no such file, it is no regular file (a pipe would block), it is
            too large, or it may not be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # before opening: a device may act on it
            raise _not_regular(path)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _not_regular(path)
            data = b"" if status.st_size > limit else file.read(limit + 1)
            size = max(status.st_size, len(data))
    except OSError as error:
        raise _os_error(path, error) from error
    except ValueError as error:  # a NUL in the path
        raise TorchpinError("is no path that can be opened", path=ascii(path)) from error
    if size > limit:
        raise TorchpinError(
            f"is too large: more than {limit // 1048576} MiB, which no dependency file needs",
            path=path,
            hint="name the dependency files instead of the folder, or exclude this file",
        )
    return data


def load(path: str, cache: dict[str, Document]) -> Document:
    """Return the document at ``path``, from ``cache`` if it was read before.

    Text that cannot be decoded gives a document with a problem; ``${VARIABLES}`` stay unknown (the
    environment of the machine that runs the check says nothing about the one that installs).

    Raises:
        TorchpinError: the file is missing, unreadable, no regular file, too large or binary.
    """
    known = cache.get(path)
    if known is not None:
        return known
    data = read_bytes(path)
    document = read_requirements(path, data)
    if any(problem.code == "decode" for problem in document.problems):
        fallback = _locale_encoding()
        if fallback is not None:
            document = read_requirements(path, data, fallback=fallback)
    for problem in document.problems:
        if problem.code == "binary":
            raise TorchpinError(
                problem.message, path=path, hint="torchpin reads dependency files only"
            )
    cache[path] = document
    return document


def _locale_encoding() -> str | None:
    """Return the encoding of the locale, as pip asks for it where a file is not UTF-8."""
    import locale

    return locale.getpreferredencoding(False) or None


def _not_regular(path: str) -> TorchpinError:
    if os.path.isdir(path):
        return TorchpinError("is a folder, not a file", path=path)
    return TorchpinError(
        "is no regular file (a pipe, socket or device)",
        path=path,
        hint="pass the text on standard input with '-'",
    )


def _os_error(path: str, error: OSError) -> TorchpinError:
    if isinstance(error, FileNotFoundError):
        return TorchpinError("does not exist", path=path)
    if isinstance(error, PermissionError):
        return TorchpinError(
            "may not be read: permission denied", path=path, hint="check the mode and the owner"
        )
    return TorchpinError(f"cannot be read: {error.strerror or error}", path=path)
