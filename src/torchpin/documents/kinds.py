"""Which kind of dependency file a path names."""

from __future__ import annotations

import os
import re

FILES_PATTERN = re.compile(
    r"(?:^|/)(?:"
    r"[^/]*(?:requirements|requirments|constraints)[^/]*\.(?:txt|in)"
    r"|[^/]*requirements[^/]*\.lock"
    r"|(?:requirements|constraints)/[^/]+\.(?:txt|in)"
    r"|(?:pyproject|uv|pylock|pylock\.[^./]+)\.toml"
    r"|(?:uv|poetry|pdm)\.lock"
    r")$"
)
"""Paths, with ``/``, that are dependency files by their name (``requirments`` is a common slip).
The pre-commit hooks use the same pattern."""
REQUIREMENTS = "requirements"
LOCKS = ("uv.lock", "poetry.lock", "pdm.lock", "pylock")
KINDS = frozenset((REQUIREMENTS, "pyproject", "uv.toml", *LOCKS))
_BY_NAME = {
    "pyproject.toml": "pyproject",
    "uv.toml": "uv.toml",
    "uv.lock": "uv.lock",
    "poetry.lock": "poetry.lock",
    "pdm.lock": "pdm.lock",
}
_PYLOCK = re.compile(r"pylock(?:\.[^./]+)?\.toml")


def kind_of(path: str) -> str | None:
    """Return the kind of a file by its path, None if the name says nothing."""
    name = path.replace(os.sep, "/")
    if FILES_PATTERN.search(name) is None:
        return None
    base = name[name.rfind("/") + 1 :]
    known = _BY_NAME.get(base)
    if known is not None:
        return known
    return "pylock" if _PYLOCK.fullmatch(base) is not None else REQUIREMENTS
