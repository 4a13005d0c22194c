"""Where a user's own catalog lies: a folder of the platform's cache.

    CACHE/catalog/current        the name of the folder that is in use
    CACHE/catalog/<name>/        a whole catalog, in the form of the shipped one
    CACHE/pages/, CACHE/wheels/  what a refresh keeps (``torchpin.catalog.refresh``)
    CACHE/results/               what checks of folders found (``torchpin.cache``)

``CACHE`` is ``$TORCHPIN_CACHE_DIR``, else the platform's: ``$XDG_CACHE_HOME/torchpin`` or
``~/.cache/torchpin``, ``~/Library/Caches/torchpin`` (macOS), ``%LOCALAPPDATA%\\torchpin\\Cache``.
"""

from __future__ import annotations

import os
import sys

CURRENT = "current"
"""The file that names the folder of the user's catalog in use; a rename replaces it."""


def cache_dir() -> str:
    """Return the folder of torchpin's cache; it need not exist."""
    chosen = os.environ.get("TORCHPIN_CACHE_DIR")
    if chosen:
        return chosen
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
        return os.path.join(local, "torchpin", "Cache")
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):  # the specification: a relative path is to be ignored
        return os.path.join(xdg, "torchpin")
    home = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    return os.path.join(os.path.expanduser(home), "torchpin")


def catalogs_dir() -> str:
    """Return the folder that holds the user's catalogs."""
    return os.path.join(cache_dir(), "catalog")


def user_catalog() -> str | None:
    """Return the folder of the user's catalog; None if no refresh was ever made.

    The folder may be missing or damaged: that is for the reader to find.
    """
    pointer = os.path.join(catalogs_dir(), CURRENT)
    try:
        os.stat(pointer)
    except (OSError, ValueError):
        return None
    try:
        with open(pointer, encoding="utf-8") as file:
            name = file.read(100).strip()
    except (OSError, ValueError):
        name = ""
    return os.path.join(catalogs_dir(), os.path.basename(name) or "no-name")
