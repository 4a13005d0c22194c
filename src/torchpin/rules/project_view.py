"""Which files belong to one project, and how a pin of torch in one of them is told."""

from __future__ import annotations

import os

from torchpin.documents.base import Document, Span, line_starts, position
from torchpin.documents.kinds import CI, LOCKS, PART_KINDS, REQUIREMENTS
from torchpin.rules.context import Context, Way, base_name

_CI_FOLDERS = (".github", ".gitlab", ".circleci", ".azure-pipelines", ".azure", ".azuredevops")
_ASIDE = (".ci", ".docker", ".devcontainer")
_OWN = frozenset(
    (
        *("pyproject", "setup.py", "setup.cfg", "Pipfile", "Pipfile.lock", "pixi.toml"),
        *("environment.yml", REQUIREMENTS, *LOCKS),
    )
)
"""Kinds of files that make a folder a project."""
FOLLOWING = PART_KINDS - _OWN - {"tox.ini", "tox.toml", "noxfile.py", "pre-commit"}
"""Kinds of files that may stand below the project that they install: in ``docker/``,
``.github/workflows/``."""


def home_of(path: str, kind: str, context: Context) -> str:
    """Return the folder of the project that a file belongs to.

    CI files belong to the repository; Dockerfiles, scripts and the like to the nearest folder,
    their own or one above it, that has a project file or a list of requirements.
    """
    folder = os.path.normpath(os.path.dirname(path) or ".")
    if kind not in FOLLOWING:
        return folder
    parts = folder.split(os.sep)
    for name in (*_CI_FOLDERS, *_ASIDE):
        if name in parts:
            parts = parts[: parts.index(name)]
            folder = os.sep.join(parts) or (os.sep if os.path.isabs(path) else ".")
    known = _projects(context)
    place = folder
    while place not in known:
        above = os.path.dirname(place) or "."
        if above == place or (place == "." and above == "."):
            return folder
        place = above
    return place


def _projects(context: Context) -> frozenset[str]:
    """Return the folders of all projects of a run."""
    if "projects" not in context.memo:
        context.memo["projects"] = frozenset(
            os.path.normpath(os.path.dirname(one.path) or ".")
            for one in context.documents
            if one.kind in _OWN
        )
    found: frozenset[str] = context.memo["projects"]
    return found


def together_with(way: Way, context: Context) -> list[Way]:
    """Return the ways of the project of a way, in order; the same list for each of them."""
    if "homes" not in context.memo:
        kinds = {one.path: one.kind for one in context.documents}
        homes: dict[str, list[Way]] = {}
        for one in context.ways:
            path = one.install.root.path
            kind = kinds.get(path, one.install.root.kind)
            home = home_of(path, kind, context) if kind in FOLLOWING else one.project
            homes.setdefault(home, []).append(one)
        context.memo["homes"] = {id(one): some for some in homes.values() for one in some}
    found: list[Way] = context.memo["homes"][id(way)]
    return found


def told(document: Document, version: str, span: Span, way: Way | None) -> str:
    """Return a pin with all that the file says of it, ``""`` if that is the version alone.

    ``ci.yml:12 pins torch 2.9.1+cpu: index cpu, Python 3.11, on ubuntu-24.04``.
    """
    more: list[str] = []
    part = way.part if way is not None else None
    channels = {
        place.kind.channel
        for place in (way.install.indexes if way is not None else ())
        if place.kind.channel is not None
    }
    if channels:
        more.append(f"index {' and '.join(sorted(channels))}")
    if part is not None:
        if part.python is not None:
            more.append(f"Python {part.python}")
        if part.image is not None:
            more.append(f"image {part.image.reference}")
        if part.runner is not None:
            more.append(f"on {part.runner.reference}")
    if not more:
        return ""
    line = position(line_starts(document.text), span.start).line
    where = f"{base_name(document.path)}:{line}"
    return f"{where} pins torch {version.removesuffix('.*')}: {', '.join(more)}"


def is_ci(kind: str) -> bool:
    """True for the files of CI systems."""
    return kind in CI
