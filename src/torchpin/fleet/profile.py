"""Read the fleet profile: ``[tool.torchpin]`` of ``pyproject.toml``, or ``torchpin.toml``.

Every problem of a profile is reported at once, each with file and line. The machine that runs
torchpin is never looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from torchpin import seen
from torchpin.errors import ConfigError
from torchpin.fleet.model import Fleet
from torchpin.fleet.toml_text import Path, decode, find_lines, loads
from torchpin.fleet.values import parse_pythons
from torchpin.patterns import regex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torchpin.fleet.options import fleet_from_options

__all__ = [
    "find_profile",
    "fleet_from_options",
    "fleet_schema_path",
    "load_profile",
    "parse_pythons",
    "read_profile",
]

_HEADER = rb"(?m)^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*[\"']?torchpin\b"
_OTHER_TOOL = regex(rb"(?m)^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*[\"']?(t[\w-]{5,9})\b", re.I)
"""Tables of tools whose names may be a slip of ``torchpin``."""


def fleet_schema_path() -> str:
    """Return the path of the JSON Schema of a profile that ships with torchpin."""
    return os.path.join(os.path.dirname(__file__), "schema.json")


def find_profile(start: str, overlay: Mapping[str, bytes] = {}) -> str | None:
    """Return the nearest profile at or above ``start`` (a file or folder), or None.

    ``torchpin.toml`` beats ``pyproject.toml`` in the same folder; a ``pyproject.toml`` counts only
    if it has a ``tool.torchpin`` table. The search ends at a folder that holds ``.git``.
    ``overlay``: bytes that stand in for files on disk, by absolute path.

    Raises:
        ConfigError: a candidate cannot be read.
    """
    folder = os.path.abspath(start)
    if not seen.is_folder(folder):
        folder = os.path.dirname(folder)
    while True:
        own = os.path.join(folder, "torchpin.toml")
        if own in overlay or seen.is_file(own):
            return own
        project = os.path.join(folder, "pyproject.toml")
        held = overlay.get(project)
        if (held is not None or seen.is_file(project)) and _has_table(project, held):
            return project
        parent = os.path.dirname(folder)
        if parent == folder or seen.exists(os.path.join(folder, ".git")):
            return None
        folder = parent


def _has_table(path: str, held: bytes | None) -> bool:
    data = _read(path) if held is None else held
    if b"torchpin" not in data:
        _check_spelling(data, path)
        return False
    try:
        tool = loads(decode(data, path), path).get("tool")
    except ConfigError:  # load_profile reports it, if it is ours at all
        return re.search(_HEADER, data) is not None
    found = isinstance(tool, dict) and "torchpin" in tool
    if not found:
        _check_spelling(data, path)
    return found


def _check_spelling(data: bytes, path: str) -> None:
    """Raise for a table whose name is all but ``tool.torchpin``: it would be passed over unseen.

    Raises:
        ConfigError: ``[tool.torchpn]`` and its like.
    """
    for match in _OTHER_TOOL.finditer(data):
        name = match[1].decode()
        import difflib

        if difflib.SequenceMatcher(None, name.lower(), "torchpin").ratio() > 0.86:
            raise ConfigError(
                f"[tool.{name}] is not a table of torchpin",
                path=path,
                line=data.count(b"\n", 0, match.start(1)) + 1,
                hint="did you mean [tool.torchpin]?",
            )


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", path=path) from error
    seen.note_bytes(path, data)
    return data


def load_profile(path: str) -> Fleet:
    """Return the fleet that a ``pyproject.toml`` or ``torchpin.toml`` declares.

    Raises:
        ConfigError: the file cannot be read, is not TOML, has no ``tool.torchpin`` table, or
            declares what is unknown, impossible or contradictory. Several problems come in one
            error: its place is that of the first, the others follow in its message.
    """
    return read_profile(decode(_read(path), path), path)


def read_profile(text: str, path: str) -> Fleet:
    """Return the fleet that the text of a profile declares; ``path`` names it and tells its kind.

    Raises:
        ConfigError: as ``load_profile``.
    """
    from torchpin.fleet.profile_reader import Reader

    data: Any = loads(text, path)
    prefix: Path = ()
    if os.path.basename(path) == "pyproject.toml":
        tool = data.get("tool")
        if not isinstance(tool, dict) or "torchpin" not in tool:
            raise ConfigError(
                "has no [tool.torchpin] table",
                path=path,
                hint="declare node groups in [tool.torchpin.fleet.NAME]",
            )
        data, prefix = tool["torchpin"], ("tool", "torchpin")
    return Reader(path, find_lines(text), prefix).fleet(data)


def __getattr__(name: str) -> object:
    """Load ``fleet_from_options`` when it is asked for: a run with a profile has no use for it."""
    if name != "fleet_from_options":
        raise AttributeError(name)
    from torchpin.fleet.options import fleet_from_options

    return fleet_from_options
