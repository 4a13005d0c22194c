"""What the parts of a uv project ask for, with sources, overrides and constraints applied.

Sources never reach the requirements of other packages, but a package of the project that names a
torch routes every torch of the same fork (``Indexes`` of ``uv-resolver``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.version import Version

from torchpin.documents.base import Document
from torchpin.documents.project import Project
from torchpin.documents.requirement import canonical
from torchpin.named import NamedTuple
from torchpin.select.forks import Environment, Item, Need
from torchpin.select.grid import UnknownMarkerError
from torchpin.select.model import Install, Placed, PlacedIndex
from torchpin.select.uv_lowering import Lowering, Unit, project_of, scopes_of, written
from torchpin.select.uv_settings import UvSettings, lead_of, settings_of


class _Routed(NamedTuple):
    """An index that a source gives to a package wherever its scope holds (uv's ``Indexes``)."""

    mask: int
    item: Item | None
    place: PlacedIndex
    source: str
    """For messages: ``extra cu126``."""


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


class Needs(Lowering):
    """The lowered requirements of a project and of the members of its workspace."""

    def __init__(
        self,
        root: Document,
        siblings: Sequence[Document],
        private: Mapping[str, str],
        python: str,
        settings: UvSettings | None = None,
    ) -> None:
        super().__init__(root, siblings, private, python, settings)
        self.conflicts = self._conflicts()
        self.constraints = self._global("constraint", keep_empty=False)
        self.overrides = self._global("override", keep_empty=True)
        self._cache: dict[Unit, list[Need]] = {}
        self._routed: dict[str, list[_Routed]] | None = None

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
            scopes = scopes_of(project, kind, part)
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
        for name in expand_groups(project, tuple(written(project, part))):
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
                scopes = scopes_of(project, kind, part)
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
