"""Where a user's own catalog lies: a folder of the platform's cache.

    CACHE/catalog/current        the name of the folder that is in use
    CACHE/catalog/<name>/        a whole catalog, in the form of the shipped one
    CACHE/pages/, CACHE/wheels/  what a refresh keeps (``torchpin.catalog.refresh``)

``CACHE`` is ``$TORCHPIN_CACHE_DIR``, else the platform's: ``$XDG_CACHE_HOME/torchpin`` or
``~/.cache/torchpin``, ``~/Library/Caches/torchpin`` (macOS), ``%LOCALAPPDATA%\\torchpin\\Cache``.

The functions lie in ``store``, which every check imports: a module more would cost it time.
"""

from __future__ import annotations

from torchpin.catalog.store import CURRENT, cache_dir, catalogs_dir, user_catalog

__all__ = ["CURRENT", "cache_dir", "catalogs_dir", "user_catalog"]
