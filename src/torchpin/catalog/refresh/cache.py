"""What a refresh keeps between runs: pages with their validators, and what was read of wheels.

One file an entry, replaced by rename; a damaged entry counts as none. No credentials and no
queries of URLs are stored: names are digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from typing import Any, NamedTuple

from torchpin.catalog.location import cache_dir
from torchpin.errors import CatalogError

_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of torchpin: it may be deleted.\n"
"""https://bford.info/cachedir/"""


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
    """

    def __init__(self, folder: str | None = None) -> None:
        self.folder = folder or cache_dir()

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
        except (ValueError, KeyError, TypeError):
            return None

    def keep_page(self, url: str, page: Stored) -> None:
        """Keep the page of a URL."""
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
        except ValueError:
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
        folder = os.path.join(self.folder, kind)
        path = os.path.join(folder, name)
        part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            if not os.path.isdir(folder):
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(self.folder, "CACHEDIR.TAG"), "w", encoding="utf-8") as tag:
                    tag.write(_TAG)
            with open(part, "wb") as file:
                file.write(data)
            os.replace(part, path)
        except OSError as error:
            if os.path.exists(part):
                os.unlink(part)
            raise CatalogError(
                f"the cache cannot be written: {error.strerror}",
                path=self.folder,
                hint="TORCHPIN_CACHE_DIR names another folder",
            ) from error


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
