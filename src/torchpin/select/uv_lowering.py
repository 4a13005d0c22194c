"""How uv applies sources to the requirements of a project (uv: *lowering*).

A source replaces the registry of a declared package where its marker holds and its extra or group
is that of the declaration; where no source holds the requirement stays as it is
(``uv-distribution/src/metadata/lowering.rs``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from torchpin.documents.base import Declaration, Document
from torchpin.documents.manifest import index_line
from torchpin.documents.project import Project, ProjectIndex, Source
from torchpin.documents.requirement import canonical
from torchpin.select.channels import index_kind
from torchpin.select.forks import Item, Need
from torchpin.select.grid import Grid, UnknownMarkerError
from torchpin.select.model import Placed, PlacedIndex
from torchpin.select.uv_settings import UvSettings

Unit = tuple[str, str, str]
"""Part of a project: its name, ``""``, ``extra`` or ``group``, the name of that."""


class Refused(Exception):  # noqa: N818 - uv refuses the file; it is no error of torchpin
    """uv stops before it resolves anything; the argument says why."""


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


def _by_package(document: Document) -> dict[str, list[Source]]:
    found: dict[str, list[Source]] = {}
    for source in project_of(document).sources:
        found.setdefault(source.package, []).append(source)
    return found


class Lowering:
    """The sources of a project and of the members of its workspace, checked as uv checks them."""

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
        for marker in markers:
            if "===" in marker:  # uv asks the build backend then, which may write it otherwise
                raise UnknownMarkerError(marker)
        for document in self.documents:
            for one in document.declarations:
                if one.scope.startswith("extra:") and "extra" in (one.marker or ""):
                    raise UnknownMarkerError(one.marker)
        for document in self.documents:
            found = [s.marker for s in project_of(document).sources if s.marker]
            _check_markers(found)
            markers += found
        own = project_of(root)
        markers += [*own.environments, *own.required_environments, *self.settings.markers]
        pythons = self.settings.group_pythons.values()
        self.grid = Grid(markers, (self.requires_python, *pythons))
        for document in self.documents:
            _check_groups(project_of(document))
            if any(not index.url for index in project_of(document).indexes):
                raise Refused("an index has no URL")
        self._sources = {
            document.path: self._checked_sources(document) for document in self.documents
        }
        for document in self.documents:
            self._check_scopes(document)
        self._check_scoped_overrides()

    # -- sources and indexes

    def _checked_sources(self, document: Document) -> dict[str, list[Source]]:
        """Return the sources by package.

        uv checks a source that ``no-sources`` or ``no-sources-package`` puts out of use, too.

        Raises:
            Refused: two neighbouring entries of a list overlap.
        """
        found = _by_package(document)
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
        if self.settings.no_sources:
            return {}
        return {name: found[name] for name in found if name not in self.settings.sourceless}

    def _check_scopes(self, document: Document) -> None:
        """Check that the extras and groups of sources exist and hold the package.

        Raises:
            Refused: one does not; uv reads no further then.
        """
        project = project_of(document)
        for package, sources in _by_package(document).items():
            for source in sources:
                for kind, name in (("extra", source.extra), ("group", source.group)):
                    if name is None:
                        continue
                    scopes = scopes_of(project, kind, canonical(name))
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
        """Check that overrides for one package's dependencies have no source and no URL.

        Raises:
            Refused: one has; uv takes versions only there.
        """
        sources = self._sources[self.root.path]
        for parent, found in self.settings.overrides_of.items():
            for need in (need for one in found for need in self.parsed(one.texts)):
                if need.problem:
                    raise Refused(f"the override of {need.name} for {parent} is a URL")
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
            if "extra" in (declaration.marker or ""):
                raise UnknownMarkerError(declaration.marker)
            if declaration.extras:  # uv decides a package with an extra by itself
                text = f"{declaration.name}[{','.join(declaration.extras)}] of the {scope}s"
                raise UnknownMarkerError(text)
            for need in self._lower(Placed(self.root, declaration), self.root, None, None):
                found.setdefault(need.name, []).append(need._replace(item=None))
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


def _item_of(source: Source, document: Document) -> Item | None:
    name = canonical(project_of(document).name)
    if source.extra is not None:
        return name, "extra", canonical(source.extra)
    if source.group is not None:
        return name, "group", canonical(source.group)
    return None


def scopes_of(project: Project, kind: str, part: str) -> set[str]:
    """Return the scopes of declarations that make up a unit."""
    if kind == "":
        return {""}
    if kind == "extra":
        return {f"extra:{name}" for name in project.extras if canonical(name) == part}
    from torchpin.documents.pyproject import expand_groups

    return {f"group:{name}" for name in expand_groups(project, tuple(written(project, part)))}


def written(project: Project, part: str) -> list[str]:
    """Return a group as it is written."""
    return [name for name in project.groups if canonical(name) == part]


def _joined_python(documents: Sequence[Document]) -> str:
    texts = [text for d in documents if (text := project_of(d).requires_python)]
    return ",".join(dict.fromkeys(texts))


def _check_markers(markers: Sequence[str]) -> None:
    """Check that uv can read the markers of sources.

    Raises:
        Refused: it cannot read one, and with it the file.
    """
    from packaging.markers import InvalidMarker, Marker

    for marker in dict.fromkeys(markers):
        try:
            Marker(marker)
        except InvalidMarker:
            raise Refused(f"{marker[:60]!r} is no valid marker") from None
        except (ValueError, RecursionError):
            raise UnknownMarkerError(marker) from None
        if "===" in marker:
            raise Refused(f"uv takes no === in a marker: {marker[:60]}")


def _check_groups(project: Project) -> None:
    """Check that the groups which groups include exist, and that none includes itself.

    Raises:
        Refused: one does not, or does.
    """
    inside: dict[str, set[str]] = {canonical(group): set() for group in project.groups}
    for name, included in project.group_includes:
        for one in included:
            if canonical(one) not in inside:
                raise Refused(f"the group {name} includes {one}, which does not exist")
            inside.setdefault(canonical(name), set()).add(canonical(one))
    for name in inside:
        reached: set[str] = set()
        queue = [*inside[name]]
        while queue:
            one = queue.pop()
            if one not in reached:
                reached.add(one)
                queue += inside[one]
        if name in reached:
            raise Refused(f"the group {name} includes itself")


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
