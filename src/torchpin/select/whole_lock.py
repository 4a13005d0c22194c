"""Locks that their tools make of a whole project at once (Poetry, PDM).

Every extra and group is locked together, whichever of them is installed later, and a version counts
only if its ``Requires-Python`` admits every Python of the project. Platforms do not count: a wheel
that is missing is noticed when the lock is installed.
"""

from __future__ import annotations

from collections.abc import Iterable

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from torchpin.catalog.model import Build
from torchpin.documents.base import Document
from torchpin.documents.manifest import index_line
from torchpin.documents.project import Project, ProjectIndex
from torchpin.evidence import INFERRED, PROOF
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.select.asks import Ask, combine, gather, implied, name_of, watched
from torchpin.select.channels import index_kind
from torchpin.select.facts import Facts
from torchpin.select.joint import Choice
from torchpin.select.misses import Unclear, why_none
from torchpin.select.model import Install, Miss, Placed, PlacedIndex, SelectedSet, Selection
from torchpin.select.pools import Candidate, Pool, fitting, index_text
from torchpin.select.uv import pool_of

_MINORS = range(8, 20)
NOT_LOCKED = ("build", "env", "constraint", "override", "optional")
"""Scopes of declarations that ask for nothing that is locked."""


class Solved(NamedTuple):
    """The family in a lock."""

    asks: dict[str, Ask]
    """What the project asks of each package, all of it together."""
    lists: dict[str, list[Candidate]]
    """Versions that may be locked, best first."""
    pools: dict[str, Pool]
    """All that the sources of a package offer."""
    choice: Choice
    misses: dict[str, Miss]
    unclear: dict[str, str]


class WholeLock:
    """The selections of an install from the lock of its project."""

    tool = ""

    def __init__(self, install: Install, target: Target, facts: Facts) -> None:
        assert install.root.project is not None
        self.install = install
        self.target = target
        self.facts = facts
        self.project: Project = install.root.project

    # -- what a tool does in its own way

    def solve(self) -> Solved:
        """Return the lock as far as it concerns the target."""
        raise NotImplementedError

    def reached(self, solved: Solved) -> dict[str, Ask]:
        """Return what is installed of the lock, with what asks for it (``skipped`` if nothing)."""
        raise NotImplementedError

    def files(self, package: str, chosen: Candidate, solved: Solved) -> list[Candidate]:
        """Return the files of a locked version, the best place first."""
        raise NotImplementedError

    # -- from the lock to selections

    def selected(self) -> SelectedSet:
        """Return the selections, an implied torch last."""
        solved = self.solve()
        asks = self.reached(solved)
        self._cure_together(solved.misses)
        missing = next(iter(solved.misses.values()), None)
        stop = solved.choice.conflict or (missing.message if missing is not None else None)
        out = tuple(self._one(ask, solved, stop) for ask in asks.values())
        return SelectedSet(self.install, self.target, out, solved.choice.conflict)

    def whole(self) -> list[Placed]:
        """Return every declaration of the project that its tool locks."""
        root = self.install.root
        return [
            Placed(root, one)
            for one in root.declarations
            if one.scope.partition(":")[0] not in NOT_LOCKED
            and one.name
            and watched(one.name, self.facts)
        ]

    def asked(self, name: str, placed: Iterable[Placed], by: str | None = None) -> Ask:
        """Return declarations as one ask, whatever their markers say."""
        bare = [p._replace(declaration=p.declaration._replace(marker=None)) for p in placed]
        return combine(name, bare, (), self.target, implied_by=by)

    def gathered(self) -> dict[str, Ask]:
        """Return what the install itself asks for on the target."""
        return gather(self.install, self.target, self.facts)

    def implied_torch(self, by: str) -> Ask:
        """Return the ask for a torch that a companion brings in."""
        return implied("torch", by, self.install, self.target)

    def admitted(self, ask: Ask, pool: Pool, markers: tuple[str | None, ...]) -> list[Candidate]:
        """Return what a pool offers of what is asked for, for all Pythons that count."""
        found = [c for c in self.asked_for(ask, pool) if self.python_fits(c, markers)]
        finals = [c for c in found if not c.version.is_prerelease]
        return finals or found

    def asked_for(self, ask: Ask, pool: Pool) -> list[Candidate]:
        """Return what a pool offers of what is asked for, whatever Pythons it is for."""
        return [
            c
            for c in pool.candidates
            if ask.specifier.contains(c.version, prereleases=True)
            and (not c.build.yanked or ask.pin is not None)
        ]

    def why_not(self, ask: Ask, pool: Pool, markers: tuple[str | None, ...]) -> Miss | str:
        """Return why nothing of a pool can be locked, or why that is not known."""
        refused = [] if ask.invalid else self.asked_for(ask, pool)
        if refused:  # it is there, and no version is for every Python of the project
            return self._too_narrow(max(refused, key=lambda c: c.version).build, markers)
        reason = why_none(ask, pool, self.install, self.target, self.facts)
        if isinstance(reason, Unclear):
            return str(reason)
        return reason

    def versions(self, kept: list[Candidate]) -> list[Candidate]:
        """Return one candidate a version and place, highest first."""
        best: dict[tuple[Version, int], list[Candidate]] = {}
        for candidate in kept:
            best.setdefault((candidate.version, candidate.rank), []).append(candidate)
        found = []
        for key in sorted(best, reverse=True):
            one = (fitting(best[key], self.target) or best[key])[0]
            # Of some old wheels no METADATA is known; another platform's says the same.
            told = one.requires or next((c.requires for c in best[key] if c.requires), one.requires)
            found.append(one._replace(requires=told))
        return found

    # -- sources

    def own_indexes(self) -> list[ProjectIndex]:
        """Return the indexes of the file that its tool reads."""
        return [index for index in self.project.indexes if index.tool == self.tool]

    def pool(self, ask: Ask, index: ProjectIndex | None) -> Pool:
        """Return what one source offers of a package; None is PyPI."""
        if index is None or not index.url:
            place = PlacedIndex(None, None, "", "", index_kind(""))
        else:
            root, private = self.install.root, dict(self.install.private)
            kind = index_kind(index.url, private, option=index.option)
            line = index_line(root.text, index)
            links = index.option == "--find-links"
            option = index.option if links else "--index-url"
            place = PlacedIndex(root, line, option, index.url, kind)
        return pool_of(ask, self.install._replace(indexes=(place,)), self.facts)

    # -- Pythons

    def python_fits(self, candidate: Candidate, markers: tuple[str | None, ...]) -> bool:
        """Return whether a version admits every Python of the project that the markers leave."""
        return not self._refused(candidate.build, markers)

    def _refused(self, build: Build, markers: tuple[str | None, ...]) -> list[str]:
        """Return the Pythons of the project that a build does not admit, ascending."""
        wanted = build.requires_python
        if not wanted:
            return []
        try:
            admits = SpecifierSet(wanted)
        except InvalidSpecifier:
            return []
        texts = set(self.pythons())
        texts |= {v for one in admits if (v := one.version.removesuffix(".*")) in self.own(v)}
        return sorted(
            (
                text
                for text in texts
                if not admits.contains(text, prereleases=True)
                and any(self._holds_on(marker, text) for marker in markers)
            ),
            key=Version,
        )

    def _cure_together(self, misses: dict[str, Miss]) -> None:
        """Make the cures of several misses one: all of them are of the same line."""
        ranges = [miss.cure.partition(" = ")[2].strip('"') for miss in misses.values() if miss.cure]
        if len(ranges) > 1:
            joint = narrowed(self.project.requires_python or "", ",".join(ranges))
            key = _python_key(self.install.root, self.project)
            for name, miss in misses.items():
                if miss.cure:
                    cure = f'{key} = "{joint}"' if joint is not None else ""
                    misses[name] = miss._replace(cure=cure)

    def _too_narrow(self, build: Build, markers: tuple[str | None, ...]) -> Miss:
        """Return that a build is not for every Python of the project, and what would be."""
        wanted, own = build.requires_python or "", self.project.requires_python or ""
        without = self._refused(build, markers)[0]
        text = (
            f"{build.package} {build.full_version} requires Python {wanted}: "
            f"the project ({own or 'any Python'}) is for Python {without} too"
        )
        evidence = build.evidence if build.evidence in PROOF else INFERRED
        cure = ""
        if (range_ := narrowed(own, wanted)) is not None:
            cure = f'{_python_key(self.install.root, self.project)} = "{range_}"'
        return Miss("python", text, evidence, build.source, cure=cure)

    def pythons(self) -> list[str]:
        """Return versions of Python that the project is for, on both sides of each limit."""
        texts = [f"3.{minor}.{patch}" for minor in _MINORS for patch in (0, 1, 99)]
        return [text for text in (*texts, "4.0.0") if self.own(text)]

    def own(self, python: str) -> tuple[str, ...]:
        """Return the version if the project is for it."""
        try:
            own = SpecifierSet(self.project.requires_python or "")
        except InvalidSpecifier:
            return (python,)
        return (python,) if own.contains(python, prereleases=True) else ()

    def _holds_on(self, marker: str | None, python: str) -> bool:
        if marker is None or "python" not in marker:
            return True
        return evaluate(marker, self.target.group.platform, python) is not False

    # -- selections

    def _one(self, ask: Ask, solved: Solved, stop: str | None) -> Selection:
        name, target = ask.package, self.target
        if ask.skipped:
            text = f"no declaration of {name} applies to {target.text}"
            return self._plain(ask, "skipped", text)
        unclear = solved.unclear.get(name) or (ask.unclear if name not in solved.asks else "")
        if unclear:
            return self._plain(ask, "unknown", unclear)
        miss = solved.misses.get(name)
        if miss is not None:
            return self._plain(ask, "none", miss.message, miss)
        if stop is not None:
            return self._plain(ask, "unknown", f"{self.tool} stops: {stop}")
        if name in solved.choice.unclear or name not in solved.choice.chosen:
            text = f"it is not known which {name} {self.tool} locks beside the others"
            return self._plain(ask, "unknown", text)
        chosen = solved.choice.chosen[name]
        files = self.files(name, chosen, solved)
        fits = fitting(files, target)
        one = fits[0] if fits else chosen
        version, place = one.build.full_version, index_text(one.place)
        told = f"{self.tool} locks {name} {version} from {place}"
        if not fits:
            pinned = ask._replace(
                specifier=SpecifierSet(f"=={version}"),
                text=f"{name}=={version}",
                pin=(one.build.version, one.build.label),
            )
            pool = Pool(tuple(files), "", (one.build.channel,), one.build.home == "pypi")
            reason = why_none(pinned, pool, self.install, target, self.facts)
            if isinstance(reason, Unclear):
                return self._plain(ask, "unknown", f"{told}, and {reason}")
            told = f"{told}, and {reason.message}"
            return self._plain(ask, "none", told, reason._replace(message=told))
        return self._plain(ask, "selected", told)._replace(
            build=one.build, chosen_from=one.place, inferred=one.inferred
        )

    def _plain(self, ask: Ask, status: str, because: str, miss: Miss | None = None) -> Selection:
        return Selection(
            package=ask.package,
            placed=ask.placed,
            implied_by=ask.implied_by,
            target=self.target,
            status=status,
            build=None,
            chosen_from=None,
            miss=miss,
            because=because,
            exact=ask.exact,
        )


def narrowed(own: str, wanted: str) -> str | None:
    """Return a range of Pythons as narrowed by another; None if nothing is left.

    Clauses that the others imply are left out (``>=3.8`` beside ``>=3.10``).
    """
    try:
        return _intersection(own, wanted)
    except ValueError:  # an arbitrary version (``===``), which nothing can be said about
        return None


def narrowing(admitted: SpecifierSet, wanted: str) -> str:
    """Return the clauses of a package's Requires-Python that leave out a Python of a project."""
    minors = [f"3.{minor}.{patch}" for minor in _MINORS for patch in (0, 1, 99)]
    return ",".join(
        str(clause)
        for clause in sorted(SpecifierSet(wanted), key=str, reverse=True)
        if any(
            admitted.contains(text, prereleases=True)
            and not clause.contains(text, prereleases=True)
            for text in (*minors, "4.0.0", *_around(SpecifierSet(str(clause))))
        )
    )


def _intersection(own: str, wanted: str) -> str | None:
    parts = [part.strip() for text in (own, wanted) for part in text.split(",")]
    clauses = [part for part in dict.fromkeys(parts) if part]
    ends = {v for one in clauses for v in _around(SpecifierSet(one))}
    tried = sorted({*ends, *(f"3.{minor}.{patch}" for minor in _MINORS for patch in (0, 1, 99))})
    whole = SpecifierSet(",".join(clauses))
    inside = [text for text in tried if whole.contains(text, prereleases=True)]
    if not inside:
        return None
    for one in list(clauses):
        rest = [other for other in clauses if other != one]
        left = SpecifierSet(",".join(rest))
        if [text for text in tried if left.contains(text, prereleases=True)] == inside:
            clauses = rest
    order = (">", "~", "=", "!", "<")
    return ",".join(sorted(clauses, key=lambda one: order.index(one[0])))


def _around(clause: SpecifierSet) -> list[str]:
    """Return the versions that a clause names, and the next ones after them."""
    found: list[str] = []
    for one in clause:
        release = (*Version(one.version.removesuffix(".*")).release, 0, 0)[:3]
        found += [f"{release[0]}.{release[1]}.{release[2] + step}" for step in (0, 1)]
    return found


def _python_key(root: Document, project: Project) -> str:
    """Return how the project spells the key of its Pythons."""
    span = project.requires_python_span
    head = root.text[: span.start].rpartition("\n")[2] if span is not None else ""
    return "python" if head.strip().startswith("python") else "requires-python"


def named(placed: Iterable[Placed]) -> dict[str, list[Placed]]:
    """Return declarations by package, in order."""
    found: dict[str, list[Placed]] = {}
    for one in placed:
        found.setdefault(name_of(one), []).append(one)
    return found


def evaluate(
    marker: str, platform: str, python: str, extras: frozenset[str] | None = None
) -> bool | None:
    """Return whether a marker holds on a platform with a full version of Python; None if unknown.

    ``extras`` are those that are enabled: ``extra == 'x'`` holds for each of them, ``!=`` for
    every other (as Poetry reads them).
    """
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison
    from packaging.markers import UndefinedEnvironmentName as Undefined

    from torchpin.fleet.model import NodeGroup, Python
    from torchpin.select.environments import marker_environment

    release = (*Version(python).release, 0, 0)
    short = Python(release[0], release[1])
    values = marker_environment(Target(NodeGroup("", (), (short,), platform), short))
    full = f"{release[0]}.{release[1]}.{release[2]}"
    values |= {"python_full_version": full, "implementation_version": full}
    try:
        parsed = Marker(marker)
        if extras and "extra" in marker:
            return _with_extras(parsed._markers, values, extras)
        return parsed.evaluate(values)
    except (InvalidMarker, UndefinedComparison, Undefined):
        return None


def _with_extras(parts: object, values: dict[str, str], extras: frozenset[str]) -> bool:
    """Evaluate a parsed marker with several extras at once: ``or`` binds less than ``and``."""
    from packaging.markers import Marker

    if isinstance(parts, tuple):
        texts = [str(part.serialize()) for part in parts]
        if "extra" in texts:
            other = texts[2] if texts[0] == "extra" else texts[0]
            inside = other.strip("'\"") in extras
            return inside if texts[1] == "==" else not inside
        return Marker(" ".join(texts)).evaluate(values)
    groups: list[list[bool]] = [[]]
    assert isinstance(parts, list)
    for part in parts:
        if part == "or":
            groups.append([])
        elif part != "and":
            groups[-1].append(_with_extras(part, values, extras))
    return any(all(group) for group in groups)
