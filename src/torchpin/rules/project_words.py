"""What the rules on projects share: one look a file, sources and their indexes, markers."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from torchpin.documents.base import Document
from torchpin.documents.project import Project, ProjectIndex, Source
from torchpin.fleet.model import NodeGroup, Target
from torchpin.rules.context import Context, Way
from torchpin.rules.lock_stops import default_python, is_first
from torchpin.rules.model import Finding
from torchpin.rules.registry import Rule
from torchpin.select.channels import index_kind
from torchpin.select.environments import marker_holds
from torchpin.select.model import IndexKind

if TYPE_CHECKING:
    from torchpin.select.uv_needs import Needs

UV = "uv 0.13.9"
UV_INDEX = "https://docs.astral.sh/uv/concepts/indexes/"
UV_SOURCES = "https://docs.astral.sh/uv/concepts/projects/dependencies/#dependency-sources"
UV_PYTORCH = "https://docs.astral.sh/uv/guides/integration/pytorch/"
MAC = Target(NodeGroup("macOS", (), (), "macos-arm64"), None)
LINUX = Target(NodeGroup("Linux", (), (), "linux-x86_64"), None)


class ProjectRule(Rule):
    """Base of the rules that read a project file once, not once a way in."""

    clients: ClassVar[tuple[str, ...]] = ("uv",)
    """Whose projects it is for."""

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Look at a project file when its first way in for one of the clients comes by."""
        if is_first(way, context, self.clients) and way.install.root.project is not None:
            yield from self.examine(way.install.root, way.install.root.project, way, context)

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield every place of a project file where the rule does not hold."""
        raise NotImplementedError


def kind_of_index(index: ProjectIndex, way: Way) -> IndexKind:
    """Return what an index of a project file is."""
    return index_kind(index.url, dict(way.private), option=index.option)


def index_of(source: Source, way: Way) -> ProjectIndex | None:
    """Return the index that a source names: of its own file, or of another of the workspace."""
    if source.kind != "index":
        return None
    for document in (way.install.root, *way.install.siblings):
        if document.project is None:
            continue
        for index in document.project.indexes:
            if index.name == source.value and not index.scope:
                return index
    return None


def channel_of(source: Source, way: Way) -> str | None:
    """Return the channel that a source takes its package from, if it is one."""
    index = index_of(source, way)
    kind = kind_of_index(index, way) if index is not None else None
    return kind.channel if kind is not None and kind.kind == "channel" else None


def may_hold(marker: str | None, target: Target, extra: str = "") -> bool:
    """True unless a marker is false on a target whatever its Python is."""
    return marker_holds(marker, target, extra) is not False


def covers(project: Project, target: Target) -> bool:
    """True unless ``environments`` leaves a target out."""
    return not project.environments or any(may_hold(one, target) for one in project.environments)


def only_pypi(way: Way) -> bool:
    """True if whatever has no source comes from PyPI."""
    kinds = {one.kind.kind for one in way.install.indexes if one.option != "--find-links"}
    return kinds == {"pypi"}


def needs_of(way: Way, context: Context) -> Needs | None:
    """Return what the parts of a uv project ask for; None if uv refuses the file, or a marker of it
    cannot be understood."""
    if way.install.client != "uv":
        return None
    from torchpin.select.grid import UnknownMarkerError
    from torchpin.select.uv_lowering import Refused

    needs = read_needs(way, context)
    if needs is None:
        return None
    try:
        for unit in needs.units():
            needs.declared(unit)
        for text in way.install.root.project.environments if way.install.root.project else ():
            needs.grid.mask(text)
    except (UnknownMarkerError, Refused):
        return None
    return needs


_memory: list[tuple[Document, tuple[Document, ...], Needs | None]] = []
"""The last project that has a lock, compared by identity."""


def read_needs(way: Way, context: Context) -> Needs | None:
    """Return what a uv project asks for; nothing is solved where a lock has settled it."""
    install = way.install
    if install.lock is None:
        from torchpin.select.uv_prediction import lock_of

        return lock_of(install, context.catalog, default_python(way)).needs
    for root, siblings, known in _memory:
        if root is install.root and all(map(operator.is_, siblings, install.siblings)):
            return known
    from torchpin.select import uv_needs
    from torchpin.select.grid import UnknownMarkerError
    from torchpin.select.uv_lowering import Refused

    needs: Needs | None = None
    try:
        needs = uv_needs.needs_of(install, default_python(way))
    except (UnknownMarkerError, Refused):
        needs = None
    _memory[:] = [(install.root, install.siblings, needs)]
    return needs
