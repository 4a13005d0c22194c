"""Which file's settings uv takes for a project: its own, a ``uv.toml`` beside it, or one above.

uv looks from the folder of the project (of the root of its workspace) upwards for the first that
has a ``uv.toml``, or a ``pyproject.toml`` with a ``[tool.uv]`` that it can read; a ``uv.toml`` wins
over the ``pyproject.toml`` beside it. That file gives all *settings* (indexes, ``resolution``,
``exclude-newer`` …), and nothing is joined. Sources, the indexes that they name, conflicts,
environments, constraints and overrides are the project's own all the same. Measured with uv 0.13.9;
the settings of the user and of the machine are not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from torchpin import seen
from torchpin.documents.base import Document
from torchpin.errors import TorchpinError

_HIGHEST = 64
"""Folders that are looked at; a guard against a path without end."""


def settings_beside(path: str, load: Callable[[str], Document]) -> Document | None:
    """Return the file whose settings hold for the project file at ``path``.

    None: those of the project file itself, if uv can read them. A file that cannot be read is
    passed over here; its own check tells.
    """
    given = os.path.dirname(path)
    folder = os.path.abspath(given)
    for at in range(_HIGHEST):
        for name in ("uv.toml", "pyproject.toml"):
            place = os.path.join(folder, name)
            if not seen.is_file(place):
                continue
            own = at == 0 and name == "pyproject.toml"
            if not own and not os.path.isabs(path):
                place = os.path.relpath(place)
            found = _load(path if own else place, load)
            if found is None or found.project is None:
                continue
            if name == "uv.toml" or (found.project.uv_table and not found.project.ignored):
                return None if own else found
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return None


def _load(path: str, load: Callable[[str], Document]) -> Document | None:
    try:
        return load(path)
    except TorchpinError:
        return None
