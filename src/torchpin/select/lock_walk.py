"""Which packages of a lock a client installs on a target, given extras and groups.

uv walks the lock from the project (``uv-resolver``, ``lock/installable.rs``): its dependencies,
those of the enabled extras and groups, and on from there. Markers of an edge see the target and,
where the project declares conflicts, encoded members: ``extra == 'extra-4-demo-cu126'`` for the
extra ``cu126`` of ``demo`` (4 is the length of the name), ``group-4-demo-dev`` and
``project-4-demo`` alike. Poetry, PDM and ``pylock.toml`` (PEP 751) write on each package where it
installs, so that no walk is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from torchpin.catalog.model import WATCHED
from torchpin.documents.project import ConflictItem, Lock, LockedPackage, LockedUse, Project
from torchpin.fleet.model import Python, Target
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.select.environments import marker_holds
from torchpin.select.model import Install

OWN = ("virtual:", "editable:", "directory:")
"""Sources of packages that are read from a folder."""
_ON, _OFF = "on", "off"
_ENCODED = regex(r"(\bextra\s*(?:==|!=)\s*)(['\"])([^'\"]*)\2")
_MEMBERSHIP = regex(
    r"(['\"])([^'\"]*)\1\s+(not\s+)?in\s+(extras|dependency_groups)\b", re.IGNORECASE
)
_SEPARATORS = regex(r"[-_.]+")


class Reached(NamedTuple):
    """A package that is, or may be, installed."""

    package: LockedPackage
    by: str | None
    """The package that asks for it; None: the project itself."""
    sure: bool
    """False where a marker on the way cannot be known."""


class Walk(NamedTuple):
    """What a client installs from a lock."""

    reached: tuple[Reached, ...]
    """Watched packages, in the order in which they are met."""
    conflict: str | None = None
    """Why the client stops."""
    unclear: str = ""
    """Why nothing can be said."""


def canonical(name: str) -> str:
    """Return a name in its canonical form (PEP 503)."""
    return _SEPARATORS.sub("-", name).lower()


def walk(lock: Lock, install: Install, target: Target, *, everywhere: bool = False) -> Walk:
    """Return what the owner of the lock installs on ``target``.

    With ``everywhere`` no marker is asked: what would be installed on some target.
    """

    def holds(marker: str | None, active: frozenset[str]) -> bool | None:
        if everywhere or marker is None:
            return True
        return _answer(marker, active, target)

    if lock.tool == "uv":
        return _Uv(lock, install, holds).run()
    return _flat(lock, install, holds)


_Holds = Callable[[str | None, frozenset[str]], "bool | None"]
_Key = tuple[str, tuple[bool, ...], str, Python | None]
_named: dict[str, tuple[str, ...]] = {}
_answers: dict[_Key, bool | None] = {}
_MOST = 50_000
"""Answers that are kept; the markers of a large lock are long, and many installs ask the same."""


def _answer(marker: str, active: frozenset[str], target: Target) -> bool | None:
    """Return whether a marker holds on ``target`` with these extras and groups, cached."""
    named = _named.get(marker)
    if named is None:
        if len(_named) >= _MOST:
            _named.clear()
        named = tuple(match[3] for match in _ENCODED.finditer(marker))
        named += tuple(f"{m[4].lower()}:{canonical(m[2])}" for m in _MEMBERSHIP.finditer(marker))
        _named[marker] = named
    on = tuple(name in active or canonical(name) in active for name in named)
    key = (marker, on, target.group.platform, target.python)
    if key not in _answers:
        if len(_answers) >= _MOST:
            _answers.clear()
        _answers[key] = marker_holds(_decided(marker, active), target, _ON)
    return _answers[key]


def _decided(marker: str, active: frozenset[str]) -> str:
    """Return a marker in which each extra that is named reads ``on`` or ``off``."""

    def extra(match: re.Match[str]) -> str:
        word = _ON if match[3] in active or canonical(match[3]) in active else _OFF
        return f"{match[1]}'{word}'"

    def member(match: re.Match[str]) -> str:
        word = _ON if f"{match[4].lower()}:{canonical(match[2])}" in active else _OFF
        return f"extra {'!=' if match[3] else '=='} '{word}'"

    return _MEMBERSHIP.sub(member, _ENCODED.sub(extra, marker))


# -- uv


class _Uv:
    """One walk through a ``uv.lock``."""

    def __init__(self, lock: Lock, install: Install, holds: _Holds) -> None:
        self.lock = lock
        self.holds = holds
        self.extras = tuple(canonical(extra) for extra in install.extras)
        self.groups = tuple(canonical(group) for group in install.groups)
        project = install.root.project
        self.name = canonical(project.name) if project is not None and project.name else ""
        self.by_name: dict[str, list[int]] = {}
        for at, package in enumerate(lock.packages):
            self.by_name.setdefault(package.name, []).append(at)
        self.roots = self._roots()
        names = {lock.packages[at].name for at in self.roots}
        encoded = [f"project-{len(name)}-{name}" for name in names]
        encoded += [f"extra-{len(name)}-{name}-{e}" for name in names for e in self.extras]
        encoded += [f"group-{len(name)}-{name}-{g}" for name in names for g in self.groups]
        self.active = frozenset(encoded)

    def _roots(self) -> list[int]:
        packages = self.lock.packages
        own = [at for at, package in enumerate(packages) if package.source.startswith(OWN)]
        if self.name:
            return [at for at in own if packages[at].name == self.name]
        if self.lock.members:
            return [at for at in own if packages[at].name in self.lock.members]
        return [at for at in own if packages[at].source.partition(":")[2] == "."]

    def run(self) -> Walk:
        if not self.roots and (self.name or not self._asked()):
            who = f"the project {self.name}" if self.name else "a project"
            return Walk((), None, f"the lock does not hold {who}")
        if self.lock.conflicts:
            self.active |= self._activated()
            conflict = self._conflict()
            if conflict is not None:
                return Walk((), conflict)
        sure = self._reach((True,))
        possible = self._reach((True, None))
        return Walk(
            tuple(
                Reached(self.lock.packages[at], by, at in sure)
                for at, by in possible.items()
                if self.lock.packages[at].name in WATCHED
            )
        )

    def _asked(self) -> list[int]:
        """Return what the workspace itself, or a script, asks for (``[manifest]``)."""
        if self.name:
            return []
        found = []
        for one in self.lock.manifest:
            if one.by or one.kind or (one.group is not None and one.group not in self.groups):
                continue
            if self.holds(one.marker, self.active) is False:
                continue
            for at in self.by_name.get(one.package, ()):
                forks = self.lock.packages[at].markers
                if not forks or any(self.holds(m, self.active) is not False for m in forks):
                    found.append(at)
        return found

    def _start(self) -> Iterator[tuple[int, LockedUse]]:
        """Yield the edges of the enabled groups of the roots."""
        for at in self.roots:
            for use in self.lock.packages[at].uses:
                if use.group is not None and canonical(use.group) in self.groups:
                    yield at, use

    def _edges(self, at: int, extra: str | None) -> Iterator[LockedUse]:
        for use in self.lock.packages[at].uses:
            if use.group is None and (
                use.extra == extra or (extra is not None and canonical(use.extra or "") == extra)
            ):
                yield use

    def _ends(self, use: LockedUse) -> list[int]:
        """Return the packages that an edge leads to: one, unless the lock is odd."""
        packages = self.lock.packages
        return [
            at
            for at in self.by_name.get(use.by, ())
            if use.version in (None, packages[at].version)
            and use.source in (None, packages[at].source)
        ]

    def _queue(self) -> list[tuple[int, str | None]]:
        return [(at, extra) for at in self.roots for extra in (None, *self.extras)]

    def _activated(self) -> frozenset[str]:
        """Return what dependencies with extras enable, as uv's first pass finds it."""
        found: set[str] = set()
        queue = self._queue()
        seen = set(queue)
        first = [use for _, use in self._start()]
        while queue or first:
            uses = first or list(self._edges(*queue.pop(0)))
            first = []
            for use in uses:
                more = {f"extra-{len(use.by)}-{use.by}-{canonical(e)}" for e in use.extras}
                if self.holds(use.marker, self.active | found | more) is not True:
                    continue
                found |= more
                for end in self._ends(use):
                    for extra in (None, *map(canonical, use.extras)):
                        if (end, extra) not in seen:
                            seen.add((end, extra))
                            queue.append((end, extra))
        return frozenset(found)

    def _conflict(self) -> str | None:
        for group in self.lock.conflicts:
            on = [item for item in group.items if self._enabled(item)]
            if len(on) > 1:
                return f"{' and '.join(map(_item_text, on))} are declared to conflict"
        return None

    def _enabled(self, item: ConflictItem) -> bool:
        name = canonical(item.package or self.name)
        if item.extra is not None:
            return f"extra-{len(name)}-{name}-{canonical(item.extra)}" in self.active
        if item.group is not None:
            return f"group-{len(name)}-{name}-{canonical(item.group)}" in self.active
        return f"project-{len(name)}-{name}" in self.active

    def _reach(self, admitted: tuple[bool | None, ...]) -> dict[int, str | None]:
        """Return the packages that edges with an admitted answer lead to, and who asks first."""
        found: dict[int, str | None] = dict.fromkeys(self.roots)
        queue = self._queue()
        seen = set(queue)

        def follow(at: int, uses: Iterable[LockedUse]) -> None:
            for use in uses:
                if self.holds(use.marker, self.active) not in admitted:
                    continue
                for end in self._ends(use):
                    name = self.lock.packages[at].name
                    found.setdefault(end, None if at in self.roots else name)
                    for extra in (None, *map(canonical, use.extras)):
                        if (end, extra) not in seen:
                            seen.add((end, extra))
                            queue.append((end, extra))

        for at, use in self._start():
            follow(at, (use,))
        for at in self._asked():
            found.setdefault(at, None)
            if (at, None) not in seen:
                seen.add((at, None))
                queue.append((at, None))
        while queue:
            at, extra = queue.pop(0)
            follow(at, self._edges(at, extra))
        return found


def _item_text(item: ConflictItem) -> str:
    if item.extra is not None:
        return f"extra {item.extra!r}"
    return f"group {item.group!r}" if item.group is not None else f"project {item.package!r}"


# -- Poetry, PDM, pylock.toml

EMPTY = "<empty>"
"""The marker that Poetry writes for what applies nowhere."""


def _flat(lock: Lock, install: Install, holds: _Holds) -> Walk:
    extras = [canonical(extra) for extra in install.extras]
    groups = {canonical(group) for group in (*install.groups, *lock.default_groups)}
    active = frozenset(
        (*extras, *(f"extras:{e}" for e in extras), *(f"dependency_groups:{g}" for g in groups))
    )
    found = []
    excluded = pdm_excludes(install.root.project) if lock.tool == "pdm" else frozenset()
    for package in lock.packages:
        if package.name not in WATCHED or package.name in excluded:
            continue
        if lock.tool == "poetry":
            answer = _poetry(lock, package, install, groups, active, holds)
        elif lock.tool == "pdm":
            answer = _pdm(package, install, {*groups, *extras}, active, holds)
            if answer and _again(lock, package):
                answer = None
        else:
            answer = _all([holds(marker, active) for marker in package.markers])
        if answer is not False:
            found.append(Reached(package, _user(lock, package.name, install), answer is True))
    return Walk(tuple(found))


def _all(answers: Iterable[bool | None]) -> bool | None:
    listed = list(answers)
    if False in listed:
        return False
    return None if None in listed else True


def _any(answers: Iterable[bool | None]) -> bool | None:
    listed = list(answers)
    if True in listed:
        return True
    return None if None in listed else False


def _poetry(
    lock: Lock,
    package: LockedPackage,
    install: Install,
    groups: set[str],
    active: frozenset[str],
    holds: _Holds,
) -> bool | None:
    enabled = {"main", *groups}
    if package.groups:
        mine = [g for g in package.groups if canonical(g) in enabled]
        if not mine:
            return False
        if package.group_markers:
            own = {g: m for g, m in package.group_markers if m != EMPTY}
            mine = [g for g in mine if g in own or g not in dict(package.group_markers)]
            return _any([holds(own.get(group), active) for group in mine])
    answer = _all([marker != EMPTY and holds(marker, active) for marker in package.markers])
    if answer is False:
        return False
    if package.optional and not any("extra" in marker for marker in package.markers):
        listed = {name for extra, names in lock.extras if extra in active for name in names}
        if package.name not in listed:
            return None if listed else False
    return answer if package.groups else _all([answer, _asked_for(package, install, holds)])


def _pdm(
    package: LockedPackage,
    install: Install,
    enabled: set[str],
    active: frozenset[str],
    holds: _Holds,
) -> bool | None:
    answer = _all([holds(marker, active) for marker in package.markers])
    if package.groups:
        mine = {canonical(group) for group in package.groups} & {"default", *enabled}
        return answer if mine else False
    return _all([answer, _asked_for(package, install, holds)])


def pdm_excludes(project: Project | None) -> frozenset[str]:
    """Return the packages that PDM never installs (``[tool.pdm.resolution] excludes``)."""
    settings = project.settings if project is not None else ()
    texts = [one.value for one in settings if one.key == "pdm.resolution.excludes"]
    return frozenset(canonical(name) for text in texts for name in text.split(", ") if name)


def _again(lock: Lock, package: LockedPackage) -> bool:
    """Return whether a version is listed once more, further down.

    ``pdm lock --append`` writes so; PDM reads such entries into one place, and the last is left
    (measured with 2.29.4).
    """
    key = (package.name, package.version, package.source)
    same = [one for one in lock.packages if (one.name, one.version, one.source) == key]
    return same[-1] is not package


def _asked_for(package: LockedPackage, install: Install, holds: _Holds) -> bool | None:
    """Return whether the manifest asks for a package of a lock that does not say so itself."""
    declared = [d for d in install.root.declarations if d.name == package.name]
    if not declared:
        project = install.root.project
        alone = project is None or not (project.extras or project.groups)
        return True if alone else None
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    answers: list[bool | None] = []
    for placed in install.requirements:
        declaration = placed.declaration
        if declaration.name == package.name:
            try:
                fits = SpecifierSet(declaration.specifier).contains(
                    package.version, prereleases=True
                )
            except InvalidSpecifier:
                fits = True
            answers.append(_all([fits, holds(declaration.marker, frozenset())]))
    return _any(answers)


def _user(lock: Lock, name: str, install: Install) -> str | None:
    """Return the watched package that brings ``name`` in; None if the project asks for it."""
    if any(placed.declaration.name == name for placed in install.requirements):
        return None
    return next((p.name for p in lock.packages if any(use.by == name for use in p.uses)), None)
