"""PubGrub over small, known lists of versions, deciding in the order in which uv decides.

The algorithm is Natalie Weizenbaum's (https://github.com/dart-lang/pub/blob/master/doc/solver.md)
in the form of the ``pubgrub`` crate that uv uses. A term is a set of versions as bits of an
integer; the bit above all versions means *not selected*, so that a negative term is a plain
complement. Priorities and the turn of the order at the fifth clash are those of
``uv-resolver/src/pubgrub/priority.rs`` and ``ForkState::record_conflict``.
"""

from __future__ import annotations

from torchpin.named import NamedTuple

PROJECT = ""
"""Name of the package that stands for the project; it is always decided."""
UNSPECIFIED, LATE, EARLY, SINGLETON = range(4)
_THRESHOLD = 5
Terms = dict[str, int]


def proxy_of(name: str, mask: int) -> str:
    """Return the proxy of a package under a marker (uv's ``PubGrubPackageInner::Marker``)."""
    return f"{name}\0{mask:x}"


def inner_of(proxy: str) -> str:
    """Return the package that a proxy needs beside the plain one (uv's ``Package { marker }``)."""
    return f"{proxy}\0"


def name_of(package: str) -> str:
    """Return the name of a package or of a proxy of it."""
    return package.partition("\0")[0]


class NoSolutionError(Exception):
    """The requirements exclude each other; ``packages`` are those in the last derivation."""

    def __init__(self, packages: frozenset[str]) -> None:
        super().__init__()
        self.packages = packages


class _Assignment(NamedTuple):
    package: str
    term: int
    cause: int | None
    """Index of the incompatibility it was derived from; None for a decision."""
    level: int


class Solver:
    """The state of one search; ``clone`` gives an independent copy."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {PROJECT: 1}
        self.priorities: dict[str, tuple[int, int]] = {}
        self._ties: dict[str, int] = {}
        self.next = PROJECT
        self.backtracked = False
        """Until the first clash a version is decided on without a look at what it needs."""
        self._incompatibilities: list[Terms] = []
        self._about: list[frozenset[str]] = []
        """The packages that each one was made of, for messages."""
        self._by_package: dict[str, list[int]] = {PROJECT: []}
        self._assignments = [_Assignment(PROJECT, 1, None, 1)]
        self._terms: Terms = {PROJECT: 1}
        self._decided: dict[str, int] = {PROJECT: 0}
        self._level = 1
        self._known: set[tuple[str, int]] = set()
        self._queue: dict[str, tuple[tuple[int, int], int]] = {}
        self._outdated: dict[str, None] = {}
        """Packages whose priority in the queue is looked at anew; the others keep a stale one."""
        self._affected: dict[str, int] = {}
        self._culprits: dict[str, int] = {}
        self._early: list[str] = []
        self._late: list[str] = []

    def clone(self) -> Solver:
        """Return an independent copy."""
        other = Solver()
        for name, value in vars(self).items():
            copy = value.copy() if isinstance(value, (dict, list, set)) else value
            setattr(other, name, copy)
        other._by_package = {name: ids.copy() for name, ids in self._by_package.items()}
        return other

    # -- what is known

    def package(self, name: str, size: int) -> None:
        """Make a package with ``size`` versions known; nothing happens if it is."""
        if name not in self.sizes:
            self.sizes[name] = size
            self._by_package[name] = []

    def prioritize(self, package: str, singleton: bool) -> None:
        """Take note that a requirement on a package was met, as ``PubGrubPriorities::insert``."""
        self._ties.setdefault(package, -len(self._ties))
        name = name_of(package)
        kind = SINGLETON if singleton else UNSPECIFIED
        if name not in self.priorities:
            self.priorities[name] = (kind, -len(self.priorities))
            return
        old, order = self.priorities[name]
        if kind > old and not (kind == UNSPECIFIED and old in (LATE, EARLY)):
            self.priorities[name] = (kind, order)

    def _full(self, name: str) -> int:
        return (2 << self.sizes[name]) - 1

    def _add(self, terms: Terms) -> int:
        """Add an incompatibility, without the terms that always hold."""
        at = len(self._incompatibilities)
        self._about.append(frozenset(terms))
        terms = {name: term for name, term in terms.items() if term != self._full(name)}
        self._incompatibilities.append(terms)
        for name in terms:
            self._by_package[name].append(at)
        return at

    def bind(self, proxy: str, base: str, versions: int) -> None:
        """Record that a proxy in ``versions`` needs its package to be in them too."""
        self._add({proxy: versions, base: self._full(base) ^ versions})

    def forbid(self, name: str, versions: int) -> None:
        """Record that none of ``versions`` can be used."""
        self._add({name: versions})

    def restart(self, name: str) -> None:
        """Go back to where ``name`` came in, as uv does where a version needs another Python.

        The clash with Python counts against the package as any other.
        """
        self._blame(name)
        self._backtrack(self._assignments[self._first(name, self._full(name))].level)

    def requires(self, name: str, versions: int) -> None:
        """Record that the project requires one of ``versions`` of ``name``."""
        self._add({PROJECT: 1, name: self._full(name) ^ versions})

    def known(self, name: str, version: int) -> bool:
        """Return whether the dependencies of a version were added before."""
        return (name, version) in self._known

    def decide(self, name: str, version: int) -> None:
        """Decide on a version whose dependencies are known."""
        self._decided[name] = version
        self._level += 1
        self._assign(name, 1 << version, None)

    def add_version(self, name: str, version: int, needs: list[tuple[str, int]]) -> None:
        """Add what a version needs and decide on it, unless it clashes with what is decided."""
        self._known.add((name, version))
        own = 1 << version
        clash: int | None = None
        for other, versions in needs:
            at = self._add({name: own, other: self._full(other) ^ versions})
            term = self._terms.get(other)
            if self.backtracked and clash is None and term is not None and not term & versions:
                clash = at
        if clash is None:
            self.decide(name, version)
        else:
            self._record(name, clash)

    # -- the search

    def propagate(self) -> None:
        """Draw all conclusions from the last change.

        Raises:
            NoSolutionError: nothing satisfies the requirements.
        """
        buffer = [self.next]
        while buffer:
            current = buffer.pop()
            conflict: int | None = None
            for at in reversed(self._by_package[current]):
                relation = self._relation(at)
                if relation == "":
                    conflict = at
                    break
                if relation is not None:
                    if relation not in buffer:
                        buffer.append(relation)
                    self._derive(relation, at)
            if conflict is not None:
                almost, cause = self._resolve(conflict)
                buffer = [almost]
                self._derive(almost, cause)

    def pick(self) -> str | None:
        """Return the package to decide next; None if all are decided."""
        for package in self._early:
            name = name_of(package)
            old, order = self.priorities[name]
            if old != EARLY:
                self.priorities[name] = (EARLY, order)
        for package in self._late:
            name = name_of(package)
            old, order = self.priorities[name]
            if old not in (LATE, EARLY):
                self.priorities[name] = (LATE, order)
                self._backtrack_package(package)
        self._early, self._late = [], []
        for package in self._outdated:
            if self._open(package):
                priority = self.priorities.get(name_of(package), (-1, 0))
                self._queue[package] = (priority, self._ties.get(package, 0))
        self._outdated = {}
        while self._queue:
            package = max(self._queue, key=self._queue.__getitem__)
            del self._queue[package]
            if self._open(package):
                self.next = package
                return package
        return None

    def _open(self, package: str) -> bool:
        """Return whether a package must be decided and is not."""
        term = self._terms.get(package)
        return term is not None and package not in self._decided and not term >> self.sizes[package]

    def range_of(self, name: str) -> int:
        """Return the versions of ``name`` that are still possible."""
        return self._terms[name]

    def solution(self) -> dict[str, int]:
        """Return the version decided for every package."""
        return {
            name: at for name, at in self._decided.items() if name != PROJECT and "\0" not in name
        }

    def _relation(self, at: int) -> str | None:
        """Return ``""`` if satisfied, the package if almost satisfied, None otherwise."""
        left = ""
        for name, term in self._incompatibilities[at].items():
            current = self._terms.get(name)
            if current is None:
                current = self._full(name)
            if not current & ~term:
                continue
            if not current & term or left:
                return None
            left = name
        return left

    def _derive(self, name: str, cause: int) -> None:
        term = self._incompatibilities[cause][name]
        self._assign(name, self._full(name) ^ term, cause)

    def _assign(self, name: str, term: int, cause: int | None) -> None:
        self._assignments.append(_Assignment(name, term, cause, self._level))
        self._terms[name] = self._terms.get(name, self._full(name)) & term
        if cause is not None and not self._terms[name] >> self.sizes[name]:
            self._outdated[name] = None

    def _backtrack(self, level: int) -> None:
        self.backtracked = True
        shortened = dict.fromkeys(a.package for a in self._assignments if a.level > level)
        kept = [a for a in self._assignments if a.level <= level]
        self._assignments, self._terms, self._level = kept, {}, level
        decided: dict[str, int] = {}
        for name, term, cause, _ in kept:
            self._terms[name] = self._terms.get(name, self._full(name)) & term
            if cause is None:
                decided[name] = self._decided[name]
        self._decided = decided
        for name, term in self._terms.items():
            if name in shortened:
                self._queue.pop(name, None)
                if not term >> self.sizes[name]:
                    self._outdated[name] = None
            elif self._open(name) and name not in self._queue:
                self._outdated[name] = None

    def _backtrack_package(self, name: str) -> None:
        for assignment in self._assignments:
            if assignment.package == name and assignment.cause is None:
                self._backtrack(max(assignment.level - 1, 1))
                return

    def _resolve(self, conflict: int) -> tuple[str, int]:
        current, fresh = dict(self._incompatibilities[conflict]), False
        involved = set(self._about[conflict])
        while True:
            involved |= set(current)
            if not any(name != PROJECT for name in current):
                raise NoSolutionError(frozenset(involved - {PROJECT}))
            name, satisfier, previous = self._satisfier(current)
            if satisfier.cause is None or previous < satisfier.level:
                if satisfier.level <= 1 and satisfier.cause is None:
                    raise NoSolutionError(frozenset(involved - {PROJECT}))
                self._backtrack(previous)
                at = self._add(current) if fresh else conflict
                self._record(name, at)
                return name, at
            cause = self._incompatibilities[satisfier.cause]
            involved |= self._about[satisfier.cause]
            merged: Terms = {}
            for other in {**current, **cause}:
                if other == name:
                    continue
                full = self._full(other)
                merged[other] = current.get(other, full) & cause.get(other, full)
            union = current[name] | cause[name]
            if union != self._full(name):
                merged[name] = union
            current, fresh = merged, True
            self._record(name, merged)

    def _satisfier(self, terms: Terms) -> tuple[str, _Assignment, int]:
        """Return the package and assignment that satisfied ``terms`` last, and the level before."""
        found: dict[str, int] = {name: self._first(name, term) for name, term in terms.items()}
        name = max(found, key=found.__getitem__)
        satisfier = self._assignments[found[name]]
        # The satisfier itself may need help from earlier assignments of its package; even if it
        # does not, the crate goes back no further than to the first of them.
        found[name] = self._first(name, self._full(name) ^ (satisfier.term & ~terms[name]))
        previous = self._assignments[max(found.values())].level
        return name, satisfier, max(previous, 1)

    def _first(self, name: str, term: int) -> int:
        current = self._full(name)
        for at, assignment in enumerate(self._assignments):
            if assignment.package == name:
                current &= assignment.term
                if not current & ~term:
                    return at
        raise AssertionError("an incompatibility is not satisfied")

    def _record(self, affected: str, incompatibility: int | Terms) -> None:
        """Count a clash, and every step on the way to its root cause as one too."""
        terms = incompatibility
        real = False
        for name in self._incompatibilities[terms] if isinstance(terms, int) else terms:
            if name == affected or name_of(name) == name_of(affected):
                continue
            real = True
            self._blame(name)
        if real:
            self._affected[self.next] = self._affected.get(self.next, 0) + 1
            if self._affected[self.next] == _THRESHOLD:
                self._early.append(self.next)

    def _blame(self, name: str) -> None:
        self._culprits[name] = self._culprits.get(name, 0) + 1
        if self._culprits[name] == _THRESHOLD and name != PROJECT:
            self._late.append(name)
