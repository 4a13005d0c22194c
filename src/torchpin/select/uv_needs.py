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

from packaging.version import Version

from torchpin.documents.base import Declaration, Document
from torchpin.documents.manifest import index_line
from torchpin.documents.project import Project, ProjectIndex, Source
from torchpin.documents.requirement import canonical
from torchpin.select.channels import index_kind
from torchpin.select.forks import Environment, Item, Need
from torchpin.select.grid import Grid, UnknownMarkerError
from torchpin.select.model import Install, Placed, PlacedIndex
from torchpin.select.uv_settings import UvSettings, lead_of, settings_of

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


def needs_of(install: Install, default_python: str = "") -> Needs:
    """Return what the parts of the uv project of an install ask for.

    Raises:
        Refused: uv stops at the file.
        UnknownMarkerError: a marker cannot be understood.
    """
    lead = lead_of(install.root, install.siblings)
    documents = (install.root, *install.siblings)
    rest = tuple(one for one in documents if one.project is not None and one is not lead)
    settings = settings_of(install)
    return Needs(lead, rest, dict(install.private), default_python, settings)


class Needs:
    """The lowered requirements of a project and of the members of its workspace."""

    def __init__(
        self,
        root: Document,
        siblings: Sequence[Document],
        private: Mapping[str, str],
        python: str,
        settings: UvSettings | None = None,
    ) -> None:
        self.root = root
        self.documents = (root, *siblings)
        self.private = private
        self.settings = settings or UvSettings()
        self.members = frozenset(canonical(project_of(d).name) for d in self.documents)
        self.requires_python = _joined_python(self.documents) or python
        _check_pythons(self.documents, self.requires_python)
        markers = [d.marker for doc in self.documents for d in doc.declarations if d.marker]
        for document in self.documents:
            project = project_of(document)
            markers += [s.marker for s in project.sources if s.marker]
        own = project_of(root)
        markers += [*own.environments, *own.required_environments, *self.settings.markers]
        pythons = self.settings.group_pythons.values()
        self.grid = Grid(markers, (self.requires_python, *pythons))
        self._sources = {
            document.path: self._checked_sources(document) for document in self.documents
        }
        for document in self.documents:
            self._check_scopes(document)
        self._check_scoped_overrides()
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
        if self.settings.no_sources:
            return {}
        found: dict[str, list[Source]] = {}
        for source in project_of(document).sources:
            if source.package in self.settings.sourceless:
                continue
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

    def _check_scoped_overrides(self) -> None:
        """Check that overrides for one package's dependencies have no source.

        Raises:
            Refused: one has; uv takes versions only there.
        """
        sources = self._sources[self.root.path]
        for parent, found in self.settings.overrides_of.items():
            for need in (need for one in found for need in self.parsed(one.texts)):
                if any(not one.extra and not one.group for one in sources.get(need.name, ())):
                    raise Refused(f"the override of {need.name} for {parent} has a source")

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
                    if kind == "group":
                        continue  # uv switches the extra on: see ``enabled``
                    mask = self.grid.mask(declaration.marker, part if kind == "extra" else "")
                    # Measured with uv 0.13.9: what an extra in a conflict hands on from another
                    # one counts only where that extra itself is enabled.
                    via = (unit,) if stack and any(unit in one for one in self.conflicts) else ()
                    for extra in declaration.extras:
                        inner = (name, "extra", canonical(extra))
                        out += [
                            need._replace(
                                mask=need.mask & mask,
                                within=need.within & mask,
                                via=(*need.via, *via),
                            )
                            for need in self._collect(inner, (*stack, unit))
                            if need.mask & mask
                        ]
                    continue
                lowered = self._lower(
                    Placed(document, declaration),
                    document,
                    part if kind == "extra" else None,
                    part if kind == "group" else None,
                )
                if kind == "group" and self.settings.group_pythons:
                    lowered = self._for_pythons(lowered, project, part, declaration.scope)
                out += lowered
        return out

    def _for_pythons(
        self, needs: list[Need], project: Project, part: str, scope: str
    ) -> list[Need]:
        """Return requirements of a group as the ``requires-python`` of its groups limits them."""
        mask = self.group_pythons(project, part, scope)
        words = f"the Python of group {part}"
        return [
            need._replace(
                mask=need.mask & mask, words=" and ".join(x for x in (need.words, words) if x)
            )
            for need in needs
            if need.mask & mask
        ]

    def group_pythons(self, project: Project, part: str, scope: str = "") -> int:
        """Return the cells of the Pythons that a group is for: its own, and those of the groups
        through which it reaches ``scope`` (any that it includes)."""
        from torchpin.documents.pyproject import expand_groups

        mask = self.grid.all
        for name in expand_groups(project, tuple(_written(project, part))):
            python = self.settings.group_pythons.get(canonical(name))
            inside = {f"group:{one}" for one in expand_groups(project, (name,))}
            if python and (canonical(name) == part or not scope or scope in inside):
                mask &= self.grid.pythons(*self.grid.bounds_of(python))
        return mask

    def enabled(self, units: Sequence[Unit], cells: int) -> list[Unit]:
        """Return the parts that ``uv sync`` installs with some: those of members of the workspace
        that they depend on, and the extras that a group switches on.

        An extra or the base that names other extras of its own project only has their
        requirements: it does not switch them on (measured with uv 0.13.9).

        Raises:
            UnknownMarkerError: it depends on more than the cells tell.
        """
        found = dict.fromkeys(units)
        known = set(self.units())
        queue = list(units)
        while queue:
            name, kind, part = queue.pop()
            for document in self.documents:
                project = project_of(document)
                if canonical(project.name) != name:
                    continue
                scopes = _scopes(project, kind, part)
                for declaration in document.declarations:
                    other = declaration.name
                    if declaration.scope not in scopes or other not in self.members or not other:
                        continue
                    if other == name and kind != "group":
                        continue
                    mask = self.grid.mask(declaration.marker, part if kind == "extra" else "")
                    if mask & cells and cells & ~mask:
                        raise UnknownMarkerError(declaration.marker)
                    extras = [
                        (other, "extra", canonical(one))
                        for one in declaration.extras
                        if not self._is_empty(other, canonical(one))
                    ]
                    for unit in [(other, "", ""), *extras]:
                        sets = [one for one in self.conflicts if unit in one]
                        if unit in found or unit not in known:
                            continue
                        if any((name, kind, part) in one for one in sets):
                            continue  # in no fork are both
                        # A lock takes it for impossible that two of a conflict are enabled, so
                        # that its markers may say anything there: uv then tells of the conflict.
                        if not mask & cells and not any(one & {*found} for one in sets):
                            continue
                        found[unit] = None
                        queue.append(unit)
        return list(found)

    def _is_empty(self, member: str, extra: str) -> bool:
        """Return whether an extra asks for nothing: the lock does not know it then."""
        return not any(
            declaration.scope.startswith("extra:") and canonical(declaration.scope[6:]) == extra
            for document in self.documents
            if canonical(project_of(document).name) == member
            for declaration in document.declarations
        )

    def applied(
        self,
        needs: Sequence[Need],
        environment: Environment,
        python: tuple[int, int],
        parent: tuple[str, Version | None] = ("", None),
    ) -> list[Need]:
        """Return requirements with overrides, exclusions and constraints, as far as they concern a
        fork.

        Args:
            needs: what is required.
            environment: of the fork.
            python: the bounds of its Pythons.
            parent: the package, or member, that requires it, and its version.
        """
        python_mask = self.grid.pythons(*python)
        scoped = self._scoped_overrides(*parent)
        excluded = self._excluded(*parent)
        out: list[Need] = []
        for need in needs:
            if need.name in excluded or environment.exclude & {*need.via}:
                continue
            replaced = scoped.get(need.name) or self.overrides.get(need.name)
            for one in [need] if replaced is None else narrowed(replaced, need.within):
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

    def _excluded(self, name: str, version: Version | None) -> frozenset[str]:
        found = self.settings.excluded
        for one in self.settings.excluded_of.get(name, ()):
            if one.version is None or one.version == version:
                found |= {canonical(text) for text in one.texts}
        return found

    def _scoped_overrides(self, name: str, version: Version | None) -> dict[str, list[Need]]:
        found: dict[str, list[Need]] = {}
        for one in self.settings.overrides_of.get(name, ()):
            if one.version is None or one.version == version:
                for need in self.parsed(one.texts):
                    found.setdefault(need.name, []).append(need)
        return found

    def parsed(self, texts: Sequence[str]) -> list[Need]:
        """Return requirements that stand for the METADATA of a package.

        Raises:
            UnknownMarkerError: one cannot be parsed.
        """
        from packaging.requirements import InvalidRequirement, Requirement

        out: list[Need] = []
        for text in texts:
            try:
                parsed = Requirement(text)
            except InvalidRequirement:
                raise UnknownMarkerError(text) from None
            marker = None if parsed.marker is None else str(parsed.marker)
            name, mask = canonical(parsed.name), self.grid.mask(marker)
            problem = "it comes from a URL" if parsed.url else ""
            if mask:
                specifier = str(parsed.specifier)
                out.append(Need(name, mask, marker or "", specifier, None, None, problem=problem))
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


def narrowed(needs: Sequence[Need], mask: int) -> list[Need]:
    """Return requirements as far as they hold in some cells."""
    return [need._replace(mask=need.mask & mask) for need in needs if need.mask & mask]


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

    return {f"group:{name}" for name in expand_groups(project, tuple(_written(project, part)))}


def _written(project: Project, part: str) -> list[str]:
    return [name for name in project.groups if canonical(name) == part]


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


def _check_pythons(documents: Sequence[Document], joined: str) -> None:
    """Check that some Python suits all members.

    Raises:
        Refused: none does.
    """
    if len(documents) < 2 or not joined:
        return
    try:
        Grid((), (joined,)).bounds_of(joined)
    except UnknownMarkerError:
        raise Refused(f"no Python suits all members of the workspace: {joined}") from None


def _problem(declaration: Declaration) -> str:
    if declaration.url is not None:
        return "it comes from a URL"
    if declaration.from_variable and "$" in declaration.specifier:
        return "it depends on a variable whose value is not known"
    return "" if declaration.valid else "its requirement cannot be read"
