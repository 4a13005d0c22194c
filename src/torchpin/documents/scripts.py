"""Shell scripts as files: what their commands install."""

from __future__ import annotations

import os
import re

from torchpin.documents.atoms import Source
from torchpin.documents.base import Document, Span
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.parts import file_of
from torchpin.documents.shell import read_script
from torchpin.patterns import regex

INSTALLS = regex(r"pip|\buvx?\b")
"""What a file that installs says somewhere."""
_MAC = regex(r"(?<![a-z])(?:mac|macos|osx|darwin)(?![a-z])", re.IGNORECASE)
"""In the name of a script that is for macOS."""
_NOTES = regex(r"#[^\r\n]*torchpin[^\r\n]*", re.IGNORECASE)


def notes_in(text: str) -> tuple[Span, ...]:
    """Return the comments that may silence findings."""
    return tuple(Span(*match.span()) for match in _NOTES.finditer(text))


def read_shell(path: str, data: bytes) -> Document:
    """Return the document of a shell script; never raises."""
    file = file_of(path, data, "shell")
    if INSTALLS.search(file.text) is None:
        return file
    file = file._replace(comments=notes_in(file.text))
    reader = Reader(Setting(file))
    parts = reader.read(read_script(Source.of(file.text)))
    if _MAC.search(os.path.basename(path)) is not None:
        parts = [part._replace(marker="sys_platform == 'darwin'") for part in parts]
    return file._replace(parts=tuple(parts))
