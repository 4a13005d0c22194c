"""What the parts of a uv project ask for, with its sources applied (uv: *lowering*).

A source replaces the registry of a declared package where its marker holds and its extra or group
is that of the declaration; where no source holds the requirement stays as it is. Sources never
reach the requirements of other packages, but a package of the project that names a torch routes
every torch of the same fork (``uv-distribution/src/metadata/lowering.rs``, ``Indexes``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from torchpin.documents.base import Declaration, Document
from torchpin.documents.manifest import index_line
from torchpin.documents.project import Project, ProjectIndex, Source
from torchpin.documents.requirement import canonical
from torchpin.select.channels import index_kind
from torchpin.select.forks import Environment, Item, Need
from torchpin.select.grid import Grid, UnknownMarkerError
from torchpin.select.model import Placed, PlacedIndex

Unit = tuple[str, str, str]
"""Part of a project: its name, ``""``, ``extra`` or ``group``, the name of that."""


class Refused(Exception):  # noqa: N818 - uv refuses the file; it is no error of torchpin
    """uv stops before it resolves anything; the argument says why."""


class _Routed(NamedTuple):
    """An index that a source gives to a package wherever its scope holds (uv's ``Indexes``)."""

    mask: int
    item: Item | None
    place: PlacedIndex
    source: str
    """For messages: ``extra cu126``."""


def project_of(document: Document) -> Project:
    """Return the project part of a document that has one."""
    assert document.project is not None
    return document.project


def setting(document: Document, key: str) -> str:
    """Return the value of a setting, ``""`` if it is not set."""
    return next((s.value for s in project_of(document).settings if s.key == key), "")


def placed_index(
    document: Document, index: ProjectIndex, private: Mapping[str, str]
) -> PlacedIndex:
    """Return an index of a project file as one that selection knows."""
    line = index_line(document.text, index)
    kind = index_kind(index.url, private, option=index.option)
    return PlacedIndex(document, line, index.option, index.url, kind)


class Needs:
    """The lowered requirements of a project and of the members of its workspace."""

    def __init__(
        self, root: Document, siblings: Sequence[Document], private: Mapping[str, str], python: str
    ) -> None:
        self.root = root
        self.documents = (root, *siblings)
        self.private = private
        self.requires_python = _joined_python(self.documents) or python
        markers = [d.marker for doc in self.documents for d in doc.declarations if d.marker]
        for document in self.documents:
            project = project_of(document)
            markers += [s.marker for s in project.sources if s.marker]
        own = project_of(root)
        markers += [*own.environments, *own.required_environments]
        self.grid = Grid(markers, (self.requires_python,))
        self._sources = {
            document.path: self._checked_sources(document) for document in self.documents
        }
        for document in self.documents:
            self._check_scopes(document)
        self.conflicts = self._conflicts()
        self.constraints = self._global("constraint", keep_empty=False)
        self.overrides = self._global("override", keep_empty=True)
        self._cache: dict[Unit, list[Need]] = {}
        self._routed: dict[str, list[_Routed]] | None = None

    # -- sources and indexes

    def _checked_sources(self, document: Document) -> dict[str, list[Source]]:
        """Return the sources by package.

        Raises:
            Refused: two neighbouring entries of a list overlap.
        """
        if setting(document, "uv.no-sources") == "true":
            return {}
        found: dict[str, list[Source]] = {}
        for source in project_of(document).sources:
            found.setdefault(source.package, []).append(source)
        for package, sources in found.items():
            for one, other in pairwise(sources):
                if (one.extra, one.group) != (other.extra, other.group):
                    continue
                if self._any(one.marker) & self._any(other.marker):
                    if not one.marker or not other.marker:
                        text = f"of several sources of {package} each must have a marker"
                        raise Refused(text)
                    text = (
                        f"the markers of two sources of {package} overlap: "
                        f"{one.marker} and {other.marker}"
                    )
                    raise Refused(text)
        return found

    def _check_scopes(self, document: Document) -> None:
        """Check that the extras and groups of sources exist and hold the package.

        Raises:
            Refused: one does not; uv reads no further then.
        """
        project = project_of(document)
        for package, sources in self._sources[document.path].items():
            for source in sources:
                for kind, name in (("extra", source.extra), ("group", source.group)):
                    if name is None:
                        continue
                    scopes = _scopes(project, kind, canonical(name))
                    if not any(
                        d.name == package and d.scope in scopes for d in document.declarations
                    ):
                        text = (
                            f"a source of {package} is for the {kind} {name}, which does not exist "
                            f"or does not ask for {package}"
                        )
                        raise Refused(text)
        missing = {canonical(group) for group in project.default_groups} - {
            "*", *(canonical(group) for group in project.groups)
        }  # fmt: skip
        if missing:
            raise Refused(f"the default group {min(missing)} is not declared")

    def _any(self, marker: str | None) -> int:
        """Return where a marker can hold, whatever extra is enabled."""
        if marker is None or "extra" not in marker:
            return self.grid.mask(marker)
        mask = self.grid.mask(marker)
        for document in self.documents:
            for extra in project_of(document).extras:
                mask |= self.grid.mask(marker, extra)
        for part in marker.replace('"', "'").split("'")[1::2]:
            mask |= self.grid.mask(marker, part)
        return mask

    def _index(self, document: Document, name: str) -> PlacedIndex:
        for owner in (document, self.root):
            for index in project_of(owner).indexes:
                if index.name == name and index.scope == "":
                    return placed_index(owner, index, self.private)
        raise Refused(f"no index is named {name}, which a source asks for")

    # -- lowering

    def _lower(
        self, placed: Placed, document: Document, extra: str | None, group: str | None
    ) -> list[Need]:
        declaration = placed.declaration
        name, active = declaration.name, extra or ""
        own = self.grid.mask(declaration.marker, active)
        words = declaration.marker or ""
        sources = self._sources[document.path].get(name)
        if sources is None and document is not self.root:
            sources = self._sources[self.root.path].get(name)
        plain = Need(
            name, own, words, declaration.specifier, None, placed, problem=_problem(declaration)
        )
        if sources is None:
            return [plain]
        needs: list[Need] = []
        rest = self.grid.all
        left: list[str] = []
        for source in sources:
            if source.extra is not None and canonical(source.extra) != canonical(extra or ""):
                continue
            if source.group is not None and canonical(source.group) != canonical(group or ""):
                continue
            mask = self.grid.mask(source.marker, active)
            rest &= self.grid.all ^ mask
            text = " and ".join(x for x in (source.marker, words) if x)
            left.append(source.marker or "")
            need = plain._replace(mask=mask & own, words=text)
            if source.kind == "index":
                need = need._replace(source=self._index(document, source.value))
                item = _item_of(source, document)
                need = need._replace(item=item)
            elif source.kind == "workspace":
                need = need._replace(name="")
            else:
                need = need._replace(problem=f"it comes from a {source.kind} source")
            needs.append(need)
        text = " and ".join([*([words] if words else []), *(f"not ({x})" for x in left if x)])
        needs.append(plain._replace(mask=rest & own, words=text))
        return [need for need in needs if need.mask and need.name]

    def _global(self, scope: str, *, keep_empty: bool) -> dict[str, list[Need]]:
        """Return constraints or overrides by package; an empty constraint counts for nothing."""
        found: dict[str, list[Need]] = {}
        for declaration in self.root.declarations:
            if declaration.scope != scope or not (
                keep_empty or declaration.specifier or declaration.url
            ):
                continue
            for need in self._lower(Placed(self.root, declaration), self.root, None, None):
                found.setdefault(need.name, []).append(need._replace(item=None))
        return found

    def units(self) -> list[Unit]:
        """Return the parts of all projects in uv's order: by project, base, extras, groups."""
        out: list[Unit] = []
        for document in sorted(self.documents, key=lambda d: canonical(project_of(d).name)):
            project = project_of(document)
            name = canonical(project.name)
            out.append((name, "", ""))
            out += [(name, "extra", canonical(extra)) for extra in sorted(project.extras)]
            out += [(name, "group", canonical(group)) for group in sorted(project.groups)]
        return list(dict.fromkeys(out))

    def declared(self, unit: Unit) -> list[Need]:
        """Return what a unit asks for, sources applied, overrides and constraints not."""
        if unit not in self._cache:
            self._cache[unit] = self._collect(unit, ())
        return self._cache[unit]

    def _collect(self, unit: Unit, stack: tuple[Unit, ...]) -> list[Need]:
        name, kind, part = unit
        out: list[Need] = []
        for document in self.documents:
            project = project_of(document)
            if canonical(project.name) != name or unit in stack:
                continue
            scopes = _scopes(project, kind, part)
            for declaration in document.declarations:
                if declaration.scope not in scopes:
                    continue
                if declaration.name == name and name:
                    if not declaration.extras:
                        continue
                    mask = self.grid.mask(declaration.marker, part if kind == "extra" else "")
                    for extra in declaration.extras:
                        inner = (name, "extra", canonical(extra))
                        out += [
                            need._replace(mask=need.mask & mask)
                            for need in self._collect(inner, (*stack, unit))
                            if need.mask & mask
                        ]
                    continue
                out += self._lower(
                    Placed(document, declaration),
                    document,
                    part if kind == "extra" else None,
                    part if kind == "group" else None,
                )
        return out

    def applied(
        self, needs: Sequence[Need], environment: Environment, python: tuple[int, int]
    ) -> list[Need]:
        """Return requirements with overrides and constraints, as far as they concern a fork."""
        python_mask = self.grid.pythons(*python)
        out: list[Need] = []
        for need in needs:
            replaced = self.overrides.get(need.name)
            for one in [need] if replaced is None else replaced:
                if not one.mask & python_mask or not one.mask & environment.mask:
                    continue
                out.append(one)
                for limit in self.constraints.get(need.name, ()):
                    mask = limit.mask & one.mask
                    if not mask & python_mask or not mask & environment.mask:
                        continue
                    words = " and ".join(x for x in (limit.words, one.words) if x)
                    out.append(limit._replace(mask=mask, words=words))
        return out

    def routes(self, name: str, environment: Environment) -> list[tuple[PlacedIndex, str]]:
        """Return the indexes that sources give to a package in a fork, and which source says so."""
        if self._routed is None:
            self._routed = self._all_routes()
        return [
            (routed.place, routed.source)
            for routed in self._routed.get(name, ())
            if routed.mask & environment.mask and environment.admits(routed.item)
        ]

    def _all_routes(self) -> dict[str, list[_Routed]]:
        found: dict[str, list[_Routed]] = {}
        for unit in self.units():
            name, kind, part = unit
            for need in self.declared(unit):
                for one in self.overrides.get(need.name, [need]):
                    if one.source is None:
                        continue
                    where = f"{kind} {part}" if kind else "the base"
                    routed = _Routed(one.mask, one.item, one.source, where)
                    found.setdefault(one.name, []).append(routed)
        for scope, limits in (("constraint", self.constraints), ("override", self.overrides)):
            for name, needs in limits.items():
                for need in needs:
                    if need.source is not None:
                        routed = _Routed(need.mask, None, need.source, f"the {scope}s")
                        found.setdefault(name, []).append(routed)
        return found

    def _conflicts(self) -> list[frozenset[Item]]:
        """Return the declared conflicts, groups that include a member counted as that member."""
        out: list[frozenset[Item]] = []
        for document in self.documents:
            project = project_of(document)
            for one in project.conflicts:
                members: list[Item] = []
                for item in one.items:
                    package = canonical(item.package or project.name)
                    if item.extra is not None:
                        members.append((package, "extra", canonical(item.extra)))
                    elif item.group is not None:
                        members.append((package, "group", canonical(item.group)))
                    else:
                        raise UnknownMarkerError("a conflict of whole packages")
                out.append(frozenset(members))
        return _with_including_groups(out, self.documents)


def _item_of(source: Source, document: Document) -> Item | None:
    name = canonical(project_of(document).name)
    if source.extra is not None:
        return name, "extra", canonical(source.extra)
    if source.group is not None:
        return name, "group", canonical(source.group)
    return None


def _scopes(project: Project, kind: str, part: str) -> set[str]:
    """Return the scopes of declarations that make up a unit."""
    if kind == "":
        return {""}
    if kind == "extra":
        return {f"extra:{name}" for name in project.extras if canonical(name) == part}
    from torchpin.documents.pyproject import expand_groups

    written = tuple(name for name in project.groups if canonical(name) == part)
    return {f"group:{name}" for name in expand_groups(project, written)}


def _with_including_groups(
    conflicts: list[frozenset[Item]], documents: Sequence[Document]
) -> list[frozenset[Item]]:
    """Let a group that includes a conflicting group conflict too."""
    from torchpin.documents.pyproject import expand_groups

    out = list(conflicts)
    for document in documents:
        project = project_of(document)
        package = canonical(project.name)
        for group in project.groups:
            for inner in expand_groups(project, (group,)):
                if canonical(inner) == canonical(group):
                    continue
                old, new = (
                    (package, "group", canonical(inner)),
                    (package, "group", canonical(group)),
                )
                out += [
                    (members - {old}) | {new}
                    for members in conflicts
                    if old in members and new not in members
                ]
    return list(dict.fromkeys(out))


def _joined_python(documents: Sequence[Document]) -> str:
    texts = [text for d in documents if (text := project_of(d).requires_python)]
    return ",".join(dict.fromkeys(texts))


def _problem(declaration: Declaration) -> str:
    if declaration.url is not None:
        return "it comes from a URL"
    if declaration.from_variable and "$" in declaration.specifier:
        return "it depends on a variable whose value is not known"
    return "" if declaration.valid else "its requirement cannot be read"
