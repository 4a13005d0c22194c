"""URIs of an editor and paths of this machine (RFC 3986, RFC 8089)."""

from __future__ import annotations

import os
from urllib.parse import quote, unquote, urlsplit

WINDOWS = os.name == "nt"


def path_of(uri: str, *, windows: bool = WINDOWS) -> str | None:
    """Return the path of a ``file:`` URI; None for every other (``untitled:``, ``git:`` …).

    A drive may be written ``/c%3A/`` or ``/C:/``, a share ``file://server/share``.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:  # half of an IPv6 address
        return None
    if parts.scheme.lower() != "file":
        return None
    # A name may hold ``?`` or ``#`` where a client does not escape them.
    rest = uri[len("file:") :].removeprefix("//").removeprefix(parts.netloc)
    path = os.fsdecode(unquote(rest, errors="surrogateescape"))
    if "\0" in path or not path:
        return None
    try:
        os.fsencode(path)
    except UnicodeEncodeError:  # half of a surrogate pair: no file has such a name
        return None
    host = "" if parts.netloc == "localhost" else unquote(parts.netloc)
    if not windows:
        return path
    path = path.replace("/", "\\")
    if host:
        return f"\\\\{host}{path}"
    if len(path) > 2 and path[0] == "\\" and path[2] == ":" and path[1].isalpha():
        return path[1].upper() + path[2:]
    return path


def uri_of(path: str, *, windows: bool = WINDOWS) -> str:
    """Return the ``file:`` URI of an absolute path."""
    if windows:
        path = path.replace("\\", "/")
        if path.startswith("//"):
            return "file:" + quote(path, safe="/")
        path = "/" + path
    return "file://" + quote(os.fsencode(path), safe="/" if not windows else "/:")
