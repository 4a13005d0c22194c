"""The texts that an editor holds: what is open, saved or not, is what is judged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from lsprotocol.types import (
    TextDocumentContentChangeEvent,
    TextDocumentContentChangePartial,
)

from torchpin.documents.kinds import kind_of
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.server.positions import Lines
from torchpin.server.uris import path_of

LARGEST = 32 * 1024 * 1024
"""Characters; no dependency file is larger (``documents.loader.MAX_SIZE``)."""
PROFILES = ("torchpin.toml", "pyproject.toml")
"""Names of files that may declare the fleet."""
_LANGUAGES = {
    "pip-requirements": "requirements.txt",
    "requirements": "requirements.txt",
    "dockerfile": "Dockerfile",
    "shellscript": "untitled.sh",
    "sh": "untitled.sh",
    "makefile": "Makefile",
    "just": "justfile",
}
"""What a text without a name is taken for, by the language that the editor says it has."""
_CODING = regex(r"\A(?:[^\r\n]*(?:\r\n?|\n))?[ \t]*#[^\r\n]*coding[:=]")


class Buffer(NamedTuple):
    """One open text."""

    uri: str
    """As the client writes it."""
    path: str
    """Absolute; of a text without a file a path that does not exist."""
    text: str
    version: int
    language: str
    named: bool
    """It has a file, on disk or not yet."""
    data: bytes
    """What readers take: as if it were saved in UTF-8."""
    real: str
    """``path`` without links."""

    @property
    def kind(self) -> str | None:
        """The kind of dependency file it is, by its name; None if torchpin does not read it."""
        return kind_of(self.path) if len(self.text) <= LARGEST else None

    @property
    def profile(self) -> bool:
        """True if it may declare the fleet."""
        return self.named and os.path.basename(self.path) in PROFILES


def opened(uri: str, language: str, version: int, text: str, folder: str) -> Buffer:
    """Return the buffer of a text that was opened; one without a file is taken to lie in a folder
    of its own in ``folder``."""
    path = path_of(uri)
    named = path is not None
    if path is None:
        name = _LANGUAGES.get(language, os.path.basename(uri.partition(":")[2]) or "untitled")
        if language == "toml" and kind_of(name) is None:
            name = "pyproject.toml"
        name = name.encode("utf-8", "replace").decode().replace("\0", "")
        if name in ("", ".", ".."):
            name = "untitled"
        path = os.path.join(folder, f".untitled-{abs(hash(uri))}", name)
    path = os.path.normpath(path)
    data = encoded(path, text)
    return Buffer(uri, path, text, version, language, named, data, os.path.realpath(path))


def changed(
    buffer: Buffer,
    changes: Sequence[TextDocumentContentChangeEvent],
    version: int,
    encoding: str,
) -> Buffer:
    """Return a buffer after some changes, each of which counts in the text that the last left."""
    text = buffer.text
    for change in changes:
        if isinstance(change, TextDocumentContentChangePartial):
            lines = Lines(text, encoding)
            start, end = lines.offset(change.range.start), lines.offset(change.range.end)
            start, end = min(start, end), max(start, end)
            text = text[:start] + change.text + text[end:]
        else:
            text = change.text
    return buffer._replace(text=text, version=version, data=encoded(buffer.path, text))


def encoded(path: str, text: str) -> bytes:
    """Return a text as readers take it.

    A comment that names an encoding speaks of the file on disk: a byte order mark outweighs it.
    """
    data = text.encode("utf-8", "replace")
    if not path.endswith(".toml") and "coding" in text[:400] and _CODING.search(text):
        data = b"\xef\xbb\xbf" + data.removeprefix(b"\xef\xbb\xbf")
    return data


def overlay_of(buffers: Iterable[Buffer]) -> dict[str, bytes]:
    """Return the bytes of the open files, by path."""
    return {buffer.path: buffer.data for buffer in buffers if len(buffer.text) <= LARGEST}
