"""The indexes that ``uv pip`` takes from the project file of its folder or one above.

Measured with uv 0.13.9 against a local index: the indexes of the command and the environment come
first, then ``[[tool.uv.index]]`` in order, then ``extra-index-url`` (that of ``[tool.uv.pip]`` in
the place of that of ``[tool.uv]``), then those of the lists of requirements. The default index is
that of the command, else of ``[tool.uv.pip]``, else of ``[tool.uv]``, else of the lists. Explicit
indexes and sources count for nothing; constraints and overrides do.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Document
from torchpin.documents.project import Project, ProjectIndex
from torchpin.named import NamedTuple

_OTHERS = frozenset(
    (
        *("index-strategy", "resolution", "exclude-newer", "no-index"),
        *("no-binary", "no-binary-package", "torch-backend"),
        *("python-platform", "python-version"),
    )
)
"""Settings that change what is chosen in ways that are not followed here."""


class PipSettings(NamedTuple):
    """What a project file says to ``uv pip``."""

    indexes: tuple[tuple[str, str], ...]
    """Option and URL, in order of priority."""
    backend: str | None
    """``torch-backend`` of ``[tool.uv.pip]``."""
    other: str | None
    """A setting that is not followed."""


def pip_settings(found: Document) -> PipSettings:
    """Return what ``uv pip`` takes from a file: a ``uv.toml`` or a ``pyproject.toml``."""
    project = found.project
    if project is None or project.ignored:
        return PipSettings((), None, None)
    indexes = configured_indexes((project,), pip=True)
    return PipSettings(indexes, _backend(project), _other(found, project))


def configured_indexes(levels: Sequence[Project], *, pip: bool) -> tuple[tuple[str, str], ...]:
    """Return option and URL of the indexes that settings files give, in order of priority.

    Args:
        levels: the files, the nearest first (the project, the user, the machine): lists are
            joined in this order, of single values the first holds.
        pip: take the ``[pip]`` tables too, which hold for ``uv pip`` alone.
    """
    open_ = [
        one
        for project in levels
        for one in project.indexes
        if one.tool in ("uv", "uv-url") and not one.explicit and (pip or one.scope != "pip")
    ]
    mine: list[ProjectIndex] = [one for one in open_ if one.tool == "uv"]
    for option in ("--index-url", "--extra-index-url", "--find-links"):
        some = [one for one in open_ if one.tool == "uv-url" and one.option == option]
        own = [one for one in some if one.scope == "pip"]
        mine += own or some
    defaults = [one for one in mine if one.default or one.option == "--index-url"]
    # A default of [[index]] comes first in the list; index-url of uv.pip wins over that of uv.
    rest = [one for one in mine if one not in defaults]
    indexes = [(one.option, one.url) for one in rest]
    indexes += [("--index-url", one.url) for one in defaults[:1]]
    return tuple(indexes)


def _backend(project: Project) -> str | None:
    values = [one.value for one in project.settings if one.key == "uv.pip.torch-backend"]
    return values[-1] if values else None


def _other(found: Document, project: Project) -> str | None:
    for declaration in found.declarations:
        if declaration.scope in ("constraint", "override") and declaration.name in WATCHED:
            return f"{declaration.scope}-dependencies"
    for one in project.settings:
        key = one.key.removeprefix("uv.")
        name = key.removeprefix("pip.")
        if name in _OTHERS and key != "pip.torch-backend":
            return name
    return None
