"""What a refresh keeps between runs: pages with their validators, and what was read of wheels.

One file an entry, replaced by rename; a damaged entry counts as none. No credentials and no
queries of URLs are stored: names are digests, and a page that holds logins in links is not kept.
A cache that cannot be written costs the next refresh time, nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from contextlib import suppress
from typing import Any

from torchpin.catalog.location import cache_dir
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of torchpin: it may be deleted.\n"
"""https://bford.info/cachedir/"""


_LOGIN = regex(rb":\\?/\\?/[^/\s\"'<>?#]{0,1000}@")
STALE_PART = 3600.0
"""Seconds after which a half-written file is of a refresh that was killed."""


class Stored(NamedTuple):
    """A page as it came."""

    body: bytes
    content_type: str
    etag: str
    modified: str
    date: str
    """When the server last said that this is the page, ISO."""


class Cache:
    """Pages and readings in a folder.

    Args:
        folder: made when first written to.
        keeps: whether anything is written.
    """

    def __init__(self, folder: str | None = None, *, keeps: bool = True) -> None:
        self.folder = folder or cache_dir()
        self.keeps = keeps
        self.trouble = ""
        """Why something could not be written; ``""``: nothing."""
        self._swept: set[str] = set()

    def page(self, url: str) -> Stored | None:
        """Return the page of a URL (without credentials); None: none is kept, or damaged."""
        data = self._read("pages", _key(url))
        if data is None:
            return None
        try:
            head, _, body = data.partition(b"\n")
            told = json.loads(head)
            if told["sha256"] != hashlib.sha256(body).hexdigest():
                return None
            return Stored(body, told["type"], told["etag"], told["modified"], told["date"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None

    def keep_page(self, url: str, page: Stored) -> None:
        """Keep the page of a URL, unless it holds somebody's login."""
        if _LOGIN.search(page.body):
            return
        head = {
            "sha256": hashlib.sha256(page.body).hexdigest(),
            "type": page.content_type,
            "etag": page.etag,
            "modified": page.modified,
            "date": page.date,
        }
        self._write("pages", _key(url), json.dumps(head).encode() + b"\n" + page.body)

    def reading(self, key: str) -> Any:
        """Return what was read of a file; None if nothing is kept."""
        data = self._read("wheels", _key(key))
        if data is None:
            return None
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return None

    def keep_reading(self, key: str, value: Any) -> None:
        """Keep what was read of a file."""
        self._write("wheels", _key(key), json.dumps(value, separators=(",", ":")).encode())

    def _read(self, kind: str, name: str) -> bytes | None:
        try:
            with open(os.path.join(self.folder, kind, name), "rb") as file:
                return file.read()
        except OSError:
            return None

    def _write(self, kind: str, name: str, data: bytes) -> None:
        if not self.keeps:
            return
        folder = os.path.join(self.folder, kind)
        path = os.path.join(folder, name)
        part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            if not os.path.isdir(folder):
                os.makedirs(folder, mode=0o700, exist_ok=True)
                with open(os.path.join(self.folder, "CACHEDIR.TAG"), "w", encoding="utf-8") as tag:
                    tag.write(_TAG)
            self._sweep(folder)
            with open(part, "wb") as file:
                file.write(data)
            os.replace(part, path)
        except OSError as error:
            self.trouble = error.strerror or type(error).__name__
            with suppress(OSError):
                os.unlink(part)

    def _sweep(self, folder: str) -> None:
        """Remove, once a run, what refreshes that were killed left half-written.

        Raises:
            OSError: the folder cannot be read.
        """
        if folder in self._swept:
            return
        self._swept.add(folder)
        remove_parts(folder)


def remove_parts(folder: str) -> None:
    """Remove half-written files of refreshes that were killed.

    Raises:
        OSError: the folder cannot be read.
    """
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with suppress(OSError):  # another refresh was quicker
            if name.endswith(".part") and time.time() - os.lstat(path).st_mtime > STALE_PART:
                os.unlink(path)


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
