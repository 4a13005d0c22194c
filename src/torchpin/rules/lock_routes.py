"""Where Poetry and PDM take the family from, package by package."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Declaration, Document
from torchpin.documents.project import Project, ProjectIndex
from torchpin.evidence import MEASURED
from torchpin.rules.context import Way
from torchpin.rules.model import Because
from torchpin.rules.project_words import channel_of, kind_of_index

REPOSITORIES = "https://python-poetry.org/docs/repositories/"
CONFIG = "https://pdm-project.org/latest/usage/config/"


def without_source(
    root: Document, project: Project, way: Way
) -> Iterator[tuple[Declaration, str, Because]]:
    """Yield declarations of the family that no source serves beside others that one does.

    Nothing is told where a channel, or an index that is not known, serves every package.
    """
    client = way.install.client
    if any(_kind(index, way) != "pypi" for index in _open(project, client)):
        return
    declared: dict[str, list[Declaration]] = {}
    for one in root.declarations:
        if one.name in FAMILY and one.scope.partition(":")[0] in ("", "extra", "group"):
            declared.setdefault(one.name, []).append(one)
    routes = {name: _channels(project, way, client, name) for name in declared}
    routed = {name: found for name, found in routes.items() if found}
    if not routed or None in [channel for found in routed.values() for channel in found]:
        return
    lead = next((name for name in FAMILY if name in routed), "")
    channel = next(iter(sorted(str(one) for one in routed[lead])))
    page = REPOSITORIES if client == "poetry" else CONFIG
    told = "what no source names comes from PyPI, built for another CUDA"
    for name, found in routes.items():
        if not found:
            text = f"{name} has no source: it comes from PyPI, {lead} from {channel}"
            yield declared[name][0], text, Because(told, MEASURED, page)


def _open(project: Project, client: str) -> list[ProjectIndex]:
    """Return the indexes that serve what no source names."""
    own = [index for index in project.indexes if index.tool == client and index.url]
    if client == "pdm":
        return [i for i in own if not i.include and not any(_whole(i, n) for n in FAMILY)]
    return [index for index in own if index.priority != "explicit"]


def _whole(index: ProjectIndex, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in index.exclude)


def _kind(index: ProjectIndex, way: Way) -> str:
    return kind_of_index(index, way).kind


def _channels(project: Project, way: Way, client: str, name: str) -> set[str | None]:
    """Return the channels that sources name for a package, None for one that is no channel."""
    if client == "poetry":
        return {channel_of(source, way) for source in project.sources if source.package == name}
    found: set[str | None] = set()
    for index in project.indexes:
        if index.tool == "pdm" and any(fnmatchcase(name, one) for one in index.include):
            kind = kind_of_index(index, way)
            found.add(kind.channel if kind.kind == "channel" else None)
    return found
