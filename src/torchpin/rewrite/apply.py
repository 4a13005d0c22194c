"""Edits to files: all of a run or none.

Every new text is first written beside its file and flushed to disk; only then are the files
replaced, one rename each. If one cannot be replaced, those before it are put back.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from torchpin.documents.base import Document, Edit, apply_edits
from torchpin.errors import RewriteError
from torchpin.named import NamedTuple


class _Write(NamedTuple):
    path: str
    """As the user knows it, for messages."""
    target: str
    """The file itself, links followed."""
    old: bytes
    temporary: str
    backup: str


def changed_bytes(document: Document, edits: tuple[Edit, ...]) -> bytes:
    """Return the bytes of the document with its edits applied; all other bytes stay.

    Raises:
        RewriteError: edits overlap, or a new character does not exist in the file's encoding.
    """
    try:
        return document.encode(apply_edits(document.text, edits))
    except UnicodeEncodeError as error:
        raise RewriteError(
            f"{error.object[error.start : error.end]!r} does not exist in the encoding of the file "
            f"({document.encoding})",
            path=document.path,
        ) from error
    except ValueError as error:
        raise RewriteError(str(error), path=document.path) from error


def write_all(changes: Sequence[tuple[str, bytes, bytes]]) -> None:
    """Replace the files: (path, bytes that were read, new bytes). All are written, or none.

    Links are followed; mode and (where allowed) owner stay. Entries without a change are skipped.

    Raises:
        RewriteError: a file is read-only, gone, or no longer holds the bytes that were read, or the
            disk refuses; every file is then as it was.
    """
    writes: list[_Write] = []
    replaced: list[_Write] = []
    current: str | None = None
    try:
        for path, old, new in _distinct(changes):
            writes.append(_prepare(path, old, new))
        for write in writes:
            current = write.path
            _expect(write.path, write.target, write.old)
            _keep(write)
            replaced.append(write)
            os.replace(write.temporary, write.target)
        for folder in sorted({os.path.dirname(write.target) for write in writes}):
            _flush_folder(folder)
    except BaseException as error:  # an interrupt must not leave half a run either
        lost = _restore(replaced)
        for write in writes:
            _remove(write.temporary)
            if write.backup not in lost:
                _remove(write.backup)
        if lost:
            raise RewriteError(
                f"writing failed ({error}), and so did putting back the files that were already "
                f"written; their old contents are in {', '.join(lost)}"
            ) from error
        if isinstance(error, OSError):
            raise RewriteError(
                f"cannot be written: {error.strerror or error}; nothing was changed", path=current
            ) from error
        raise
    for write in writes:
        _remove(write.backup)


def _distinct(changes: Sequence[tuple[str, bytes, bytes]]) -> list[tuple[str, bytes, bytes]]:
    wanted: dict[str, tuple[str, bytes, bytes]] = {}
    for path, old, new in changes:
        target = os.path.realpath(path)
        known = wanted.get(target)
        if known is not None and known[1:] != (old, new):
            raise RewriteError(
                f"is the same file as {known[0]} and would get two different texts", path=path
            )
        wanted.setdefault(target, (path, old, new))
    return [change for change in wanted.values() if change[1] != change[2]]


def _prepare(path: str, old: bytes, new: bytes) -> _Write:
    """Write the new bytes beside the file.

    Raises:
        RewriteError: the file or its folder refuses.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    stem = os.path.join(folder, f".torchpin-{os.urandom(6).hex()}")
    write = _Write(path, target, old, f"{stem}.new", f"{stem}.old")
    try:
        status = os.stat(target)
        if not stat.S_ISREG(status.st_mode):
            raise RewriteError("is no regular file; nothing was changed", path=path)
        if not status.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise RewriteError("is read-only; nothing was changed", path=path)
        _expect(path, target, old)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(write.temporary, flags, 0o600)
    except OSError as error:
        raise RewriteError(
            f"cannot be written: {error.strerror or error}; nothing was changed", path=path
        ) from error
    try:
        with open(descriptor, "wb") as file:
            file.write(new)
            file.flush()
            _copy_owner(file.fileno(), status)
            os.chmod(write.temporary, stat.S_IMODE(status.st_mode))
            os.fsync(file.fileno())
    except BaseException as error:
        _remove(write.temporary)
        if isinstance(error, OSError):
            raise RewriteError(
                f"cannot be written: {error.strerror or error}; nothing was changed", path=path
            ) from error
        raise
    return write


def _copy_owner(descriptor: int, status: os.stat_result) -> None:
    """Give the new file the old one's owner where that is allowed (it is to root only)."""
    chown = getattr(os, "fchown", None)
    now = os.fstat(descriptor)
    if chown is None or (now.st_uid, now.st_gid) == (status.st_uid, status.st_gid):
        return
    try:
        chown(descriptor, status.st_uid, status.st_gid)
    except PermissionError:
        return  # the writer owns it now; contents and mode matter more


def _expect(path: str, target: str, old: bytes) -> None:
    with open(target, "rb") as file:
        now = file.read(len(old) + 1)
    if now != old:
        raise RewriteError(
            "was changed on disk since it was read; nothing was changed",
            path=path,
            hint="run torchpin again",
        )


def _keep(write: _Write) -> None:
    """Keep the old file under its backup name until every file is written."""
    try:
        os.link(write.target, write.backup)
    except (OSError, NotImplementedError):  # a file system without hard links: copy
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        mode = stat.S_IMODE(os.stat(write.target).st_mode)
        with open(os.open(write.backup, flags, 0o600), "wb") as file:
            file.write(write.old)
        os.chmod(write.backup, mode)


def _restore(replaced: list[_Write]) -> list[str]:
    """Put the old files back, last first; return the backups of those that refused."""
    lost: list[str] = []
    for write in reversed(replaced):
        if not os.path.exists(write.backup):
            continue
        try:
            os.replace(write.backup, write.target)
        except OSError:
            lost.append(write.backup)
    return lost


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError:
        return  # a left-over temporary file is no reason to call a finished run a failure


def _flush_folder(folder: str) -> None:
    """Make the renames durable, where the system can (Windows cannot open folders)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:
        return  # a folder that may be written and not listed
    try:
        os.fsync(descriptor)
    except OSError:
        return  # file systems without it (some network ones) flush in their own time
    finally:
        os.close(descriptor)
