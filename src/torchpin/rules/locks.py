"""TP5 on locks: does the lock say what the project says?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from torchpin.catalog.model import FAMILY, WATCHED
from torchpin.documents.base import Declaration, Document, Span, line_starts, position
from torchpin.documents.project import ConflictItem, Lock, LockedPackage, Project
from torchpin.documents.requirement import canonical
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.named import NamedTuple
from torchpin.rules.context import Context, Way, base_name
from torchpin.rules.model import WARNING, Because, Finding, Related
from torchpin.rules.project_words import UV, ProjectRule, channel_of, needs_of
from torchpin.select.channels import index_kind, redact

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

LOCKING = "https://docs.astral.sh/uv/concepts/projects/sync/#automatic-lock-and-sync"
POETRY_LOCK = "https://python-poetry.org/docs/cli/#check"
_CHECK = {
    "uv": "uv lock --check and uv sync --locked fail; a plain uv sync locks anew",
    "poetry": "poetry install stops: pyproject.toml changed",
    "pdm": "pdm lock --check fails",
}
PYTHONS = tuple(f"3.{minor}" for minor in range(20))


class LockRule(ProjectRule):
    """Base of the rules that compare a project with its lock."""

    clients: ClassVar[tuple[str, ...]] = ("uv", "poetry", "pdm")

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Compare, where there is a lock that could be read."""
        document = way.install.lock
        if document is None or document.lock is None or not document.lock.complete:
            return
        if document.path != root.path:
            yield from self.compare(root, project, document, document.lock, way, context)

    def compare(
        self,
        root: Document,
        project: Project,
        document: Document,
        lock: Lock,
        way: Way,
        context: Context,
    ) -> Iterator[Finding]:
        """Yield what the lock says otherwise than the project."""
        raise NotImplementedError


class LockOutOfDate(LockRule):
    """The lock was made from other requirements than the project has now.

    What it does: compares the requirements that ``uv.lock`` recorded with those of the project, the
    supported Pythons, conflicts and index URLs; the digest in ``poetry.lock`` with that of the
    project; in all locks the locked version with the project's requirement.

    Why it is bad: ``uv sync --locked`` and ``poetry install`` stop; a plain ``uv sync`` locks anew.
    It keeps the locked version of a package where that still fits and comes from the same index
    (``--upgrade-package`` moves it); where it does not, the newest that fits comes, and another
    torch than the one in the lock is installed.

    Example: ``torch>=2.13`` in the project, a ``uv.lock`` that recorded ``torch>=2.11``.

    Fix: make the lock anew: ``uv lock``, ``poetry lock``, ``pdm lock``.

    Evidence: real uv, Poetry and PDM, tried with each such change and on fresh locks.
    """

    code = "TP503"
    name = "lock-out-of-date"
    severity = WARNING

    def compare(
        self,
        root: Document,
        project: Project,
        document: Document,
        lock: Lock,
        way: Way,
        context: Context,
    ) -> Iterator[Finding]:
        """Yield what makes the lock out of date."""
        told: set[str] = set()
        if lock.tool == "uv":
            for package, span, text in self.uv(root, project, document, lock, way, context):
                told.add(package)
                yield self.stale(root, span, text, document, lock, package or None)
        elif lock.tool in ("poetry", "pdm") and lock.content_hash is not None:
            fresh, recorded = hashes_of(root, lock)
            if fresh and recorded and recorded not in fresh:
                at = document.text.find(lock.content_hash)
                span = Span(max(at, 0), max(at, 0) + len(lock.content_hash))
                text = "pyproject.toml has changed since this lock was made"
                yield self.stale(document, span, text, document, lock, None)
                return
        for one, locked, version in outside(root, lock):
            if one.name not in told:
                told.add(one.name)
                text = (
                    f"the lock has {locked.name} {version}, "
                    f"which {one.name}{one.specifier} leaves out"
                )
                yield self.stale(root, one.span, text, document, lock, one.name)

    def stale(
        self,
        where: Document,
        span: Span,
        text: str,
        document: Document,
        lock: Lock,
        package: str | None,
    ) -> Finding:
        """Return the finding at a place of the project, or of the lock."""
        told = _CHECK.get(lock.tool, "the lock no longer belongs to the project")
        related = [Related(document.path, 1, "the lock")] if where is not document else []
        return self.finding(
            where,
            span,
            f"{base_name(document.path)} is out of date: {text}",
            package=package,
            because=(
                Because(told, MEASURED, UV)
                if lock.tool == "uv"
                else Because(told, PUBLISHED, POETRY_LOCK if lock.tool == "poetry" else LOCKING),
            ),
            related=related,
        )

    def check_document(self, document: Document, context: Context) -> Iterator[Finding]:
        """Yield a ``Pipfile.lock`` whose digest is not that of the ``Pipfile`` beside it."""
        if document.kind == "Pipfile.lock":
            from torchpin.rules.pipenv_lock import stale

            for span, text, ground in stale(document, context):
                yield self.finding(document, span, text, because=(ground,))

    def uv(
        self,
        root: Document,
        project: Project,
        document: Document,
        lock: Lock,
        way: Way,
        context: Context,
    ) -> Iterator[tuple[str, Span, str]]:
        """Yield package, place and message of what ``uv lock --check`` stops at."""
        own = canonical(project.name)
        members = {one.name for one in lock.packages if ":" in one.source}
        if own and own not in members:
            return  # the lock of something else
        recorded = {
            (one.package, scope_of(one.extra, one.group, one.kind), wanted(one.specifier))
            for one in lock.manifest
            if one.url is None and (one.by == own or one.kind)
        }
        for one in root.declarations:
            if one.name not in WATCHED or one.url is not None or not comparable(one):
                continue
            if one.scope in ("constraint", "override") and lock.members:
                continue  # of the workspace's root alone
            have = {spec for name, scope, spec in recorded if (name, scope) == at(one)}
            spec = wanted(one.specifier)
            if spec in have or any(alike(spec, other) for other in have):
                limits = one.scope in ("constraint", "override")  # uv looks at no extras there
                text = changed(root, project, lock, own, one, extras=not limits)
                if text:
                    yield one.name, one.span, text
                continue
            asks = f"{one.name}{one.specifier}"
            if not have:
                yield one.name, one.span, f"it was made before {asks} stood {where_of(one)}"
                continue
            was = " and ".join(sorted(f"{one.name}{spec}" for spec in have))
            yield one.name, one.span, f"it was made for {was}, the project asks for {asks}"
        if not way.install.siblings and not lock.members:
            span = project.requires_python_span
            if span is not None and pythons(project.requires_python) != pythons(
                lock.requires_python
            ):
                text = f"it was made for Python {lock.requires_python}"
                yield "", span, f"{text}, the project is for {project.requires_python}"
            for one_set in project.conflicts:
                if members_of(one_set.items) not in {members_of(s.items) for s in lock.conflicts}:
                    yield "", one_set.span, "it does not know these conflicts"
            from torchpin.rules.lock_markers import environments_change

            text = environments_change(project, lock)
            if text:
                yield "", environments_span(root, project), text
        yield from self.urls(root, project, lock, way, context)

    def urls(
        self, root: Document, project: Project, lock: Lock, way: Way, context: Context
    ) -> Iterator[tuple[str, Span, str]]:
        """Yield sources whose index has another URL now (another channel is TP504's)."""
        recorded = any(one.index_url for one in lock.manifest)
        needs = needs_of(way, context) if project.sources or recorded else None
        if needs is None:
            return
        own = canonical(project.name)
        now: dict[str, set[str]] = {}
        for unit in needs.units():
            for need in needs.declared(unit):
                if unit[0] == own and not need.problem:
                    url = bare(need.source.url) if need.source is not None else ""
                    now.setdefault(need.name, set()).add(url)
        private = dict(way.private)
        for package in dict.fromkeys(one.package for one in lock.manifest if one.by == own):
            known = {
                bare(one.index_url or "")
                for one in lock.manifest
                if one.package == package and one.by == own and one.url is None
            }
            urls = now.get(package, set())
            if not urls or known - {""} == urls - {""}:
                continue
            old = {index_kind(url, private).channel for url in known - {""}}
            new = {index_kind(url, private).channel for url in urls - {""}}
            held = {
                index_kind(one.source, private).channel
                for one in lock.packages
                if one.name == package
            }
            if (old or held) != new and new.isdisjoint(held) and package in FAMILY:
                continue  # TP504
            span = source_span(root, project, package)
            told = " and ".join(sorted(redact(url) for url in known if url))
            if span is not None:
                yield package, span, f"it was made with {told or 'no source for ' + package}"


def changed(
    root: Document, project: Project, lock: Lock, own: str, one: Declaration, *, extras: bool
) -> str:
    """Return how markers and extras of a declaration differ from what ``uv.lock`` recorded."""
    from torchpin.rules.lock_markers import marker_change, same_reach

    spec = wanted(one.specifier)
    every = [other for other in root.declarations if at(other) == at(one) and comparable(other)]
    known = [
        other
        for other in lock.manifest
        if (other.package, scope_of(other.extra, other.group, other.kind)) == at(one)
        and (other.by == own or other.kind)
    ]
    same = [other for other in every if alike(wanted(other.specifier), spec)]
    recorded = [other for other in known if alike(wanted(other.specifier), spec)]
    extra = one.scope.partition("extra:")[2]
    if len(same) < len(every) and same_reach(project, every, known, extra):
        return ""
    if any(d.url is not None for d in same) or any(r.url is not None for r in known):
        return ""  # a source with a URL takes the place of the specifier
    if not extras:
        same = [other._replace(extras=()) for other in same]
        recorded = [other._replace(extras=()) for other in recorded]
    return marker_change(project, one, same, recorded)


def environments_span(root: Document, project: Project) -> Span:
    """Return where the environments of a project stand; where they do not, its Pythons."""
    found = re.search(r"(?m)^[ \t]*(?:tool\.uv\.|uv\.)?(environments)[ \t]*=", root.text)
    if found is not None and project.environments:
        return Span(found.start(1), found.end(1))
    return project.requires_python_span or Span(0, 0)


def hashes_of(root: Document, lock: Lock) -> tuple[tuple[str, ...], str]:
    """Return the digests that the manifest may have, and the one that the lock recorded."""
    from torchpin.rules.lock_hashes import pdm_hashes, poetry_hashes

    recorded = lock.content_hash or ""
    if lock.tool == "poetry":
        return poetry_hashes(root.text), recorded
    algorithm, _, digest = recorded.partition(":")
    known = algorithm == "sha256" and lock.version.startswith("4.5")
    return (pdm_hashes(root.text), digest) if known else ((), "")


def source_span(root: Document, project: Project, package: str) -> Span | None:
    """Return the first source of a package, else its first declaration."""
    sources = [one.span for one in project.sources if one.package == package]
    asked = [one.span for one in root.declarations if one.name == package]
    return next(iter((*sources, *asked)), None)


def scope_of(extra: str | None, group: str | None, kind: str) -> str:
    """Return the scope of what a lock recorded, as declarations have it."""
    if kind:
        return kind
    if group is not None:
        return f"group:{canonical(group)}"
    return f"extra:{canonical(extra)}" if extra is not None else ""


def at(one: Declaration) -> tuple[str, str]:
    """Return package and scope of a declaration, as ``scope_of`` writes it."""
    kind, colon, part = one.scope.partition(":")
    return one.name, f"{kind}{colon}{canonical(part)}" if part else kind


def where_of(one: Declaration) -> str:
    """Return where a declaration stands, for messages."""
    return f"in {one.scope.replace(':', ' ')}" if one.scope else "in dependencies"


def comparable(one: Declaration) -> bool:
    """True for what a lock records of the project: no build requirements, nothing unreadable."""
    kind = one.scope.partition(":")[0]
    return one.valid and not one.from_variable and kind in (
        "", "extra", "group", "constraint", "override"
    )  # fmt: skip


def wanted(specifier: str) -> SpecifierSet | str:
    """Return a specifier that equals every other spelling of it; text where it is none.

    ``>=2.0, <3`` and ``<3,>=2`` are the same. (packaging compares so; ``canonicalize_version``
    would cost the start-up path another import.)
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(specifier)
    except InvalidSpecifier:
        return specifier


def alike(one: SpecifierSet | str, other: SpecifierSet | str) -> bool:
    """Return whether two specifiers admit the same versions: uv leaves out what changes nothing.

    They are tried at, just below and just above each version that they name.
    """
    if isinstance(one, str) or isinstance(other, str) or one == other:
        return one == other
    bases = {part.version.removesuffix(".*").partition("+")[0] for part in (*one, *other)}
    tries = {"0", "99999"} | {
        f"{base}{ending}" for base in bases for ending in ("", ".1", ".dev0", ".post1", ".99999")
    }
    return all(
        one.contains(text, prereleases=True) == other.contains(text, prereleases=True)
        for text in filter(_is_version, tries)
    )


def _is_version(text: str) -> bool:
    from packaging.version import Version

    try:
        Version(text)
    except ValueError:  # or more digits than Python reads
        return False
    return True


def pythons(specifier: str | None) -> tuple[bool, ...] | None:
    """Return which minor versions of Python 3 a ``requires-python`` admits; None if unreadable."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        parsed = SpecifierSet(specifier or "")
    except InvalidSpecifier:
        return None
    return tuple(
        parsed.contains(version) or parsed.contains(f"{version}.99") for version in PYTHONS
    )


def members_of(items: tuple[ConflictItem, ...]) -> frozenset[tuple[str, str]]:
    """Return a conflict set without the package, which a lock always names."""
    return frozenset(
        (kind, canonical(value))
        for item in items
        for kind in ("extra", "group")
        if (value := getattr(item, kind)) is not None
    )


def bare(url: str) -> str:
    """Return a URL without credentials, which locks leave out."""
    scheme, sep, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{sep}{host.rpartition('@')[2]}{slash}{path}"


def outside(root: Document, lock: Lock) -> Iterator[tuple[Declaration, LockedPackage, str]]:
    """Yield declarations that no locked version of their package satisfies, with one of these."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    from torchpin.rules.lock_markers import can_hold

    overridden = {one.name for one in root.declarations if one.scope == "override"}
    locked_groups = {canonical(name) for name in lock.groups} if lock.tool == "pdm" else None
    for one in root.declarations:
        kind = one.scope.partition(":")[0]
        if one.name in overridden or (root.project and not can_hold(root.project, one)):
            continue
        group = canonical(one.scope.partition(":")[2]) or "default"
        if locked_groups and group not in locked_groups:
            continue  # PDM locks an extra only if it is told to
        if one.name not in WATCHED or one.url is not None or not one.valid or one.from_variable:
            continue
        if kind not in ("", "extra", "group"):
            continue
        locked = [package for package in lock.packages if package.name == one.name]
        try:
            parsed = SpecifierSet(one.specifier)
            versions = [(package, Version(package.version)) for package in locked]
        except ValueError:  # or more digits than Python reads
            continue
        if versions and not any(parsed.contains(v, prereleases=True) for _, v in versions):
            yield one, versions[-1][0], str(versions[-1][1])


class LockFromOtherIndex(LockRule):
    """The lock takes a package of the family from another index than the project names.

    What it does: compares the registry of torch and its companions in the lock with the sources and
    indexes of the project. Mirrors of one channel count as that channel.

    Why it is bad: the lock installs another build than the project says, until somebody locks anew;
    then all machines change at once.

    Example: a source for cu126 in the project, ``registry = "…/whl/cu130"`` in ``uv.lock``.

    Fix: make the lock anew.

    Evidence: the two files.
    """

    code = "TP504"
    name = "lock-from-other-index"
    severity = WARNING

    def compare(
        self,
        root: Document,
        project: Project,
        document: Document,
        lock: Lock,
        way: Way,
        context: Context,
    ) -> Iterator[Finding]:
        """Yield locked builds from a channel that the project does not name."""
        private = dict(way.private)
        # A link page that is no channel's may hold it, too: then nothing is told.
        general = {place_of(one.kind.kind, one.kind.channel) for one in way.install.indexes}
        told: set[tuple[str, str]] = set()
        for package in lock.packages:
            if package.name not in FAMILY or ":" in package.source.partition("://")[0]:
                continue
            kind = index_kind(package.source, private)
            place = place_of(kind.kind, kind.channel)
            if lock.tool == "pdm":  # it records files, and no index
                place = channel_of_files(package)
            routed = routes_of(root, project, way, context, package.name)
            if routed is None or place is None:
                continue
            allowed = {*routed.places, *(general if routed.open else ())}
            if place in allowed or None in allowed or not allowed:
                continue
            span = package.source_span or package.version_span
            if (package.name, place) in told:
                continue
            told.add((package.name, place))
            names = " or ".join(sorted(one for one in allowed if one))
            yield self.finding(
                document,
                span,
                f"{package.name} {package.version} is locked from {place}, "
                f"the project names {names}",
                package=package.name,
                because=(
                    Because(
                        f"the lock takes it from {redact(package.source) or 'the default index'}",
                        PUBLISHED,
                        base_name(document.path),
                    ),
                ),
                related=related_sources(root, project, package.name),
            )


def channel_of_files(package: LockedPackage) -> str | None:
    """Return the channel whose label the files of a package carry; None for several or none."""
    from torchpin.select.channels import is_channel
    from torchpin.select.wheels import wheel_name

    names = [wheel_name(wheel.filename) for wheel in package.wheels]
    labels = {name.label for name in names if name is not None}
    one = next(iter(labels), "")
    return one if len(labels) == 1 and is_channel(one) else None


def place_of(kind: str, channel: str | None) -> str | None:
    """Return where packages come from, for comparison; None if that is not known."""
    if kind == "pypi":
        return "PyPI"
    return channel if kind == "channel" else None


class Routes(NamedTuple):
    """Where a package of a project may come from."""

    places: frozenset[str]
    """What its sources name."""
    open: bool
    """True if the indexes for all packages serve it, too."""


def routes_of(
    root: Document, project: Project, way: Way, context: Context, package: str
) -> Routes | None:
    """Return where the project says that a package comes from; None if it cannot be known."""
    sources = [one for one in project.sources if one.package == package]
    if any(one.kind != "index" for one in sources):
        return None
    beside = any(
        one.package == package
        for sibling in way.install.siblings
        for one in (sibling.project.sources if sibling.project is not None else ())
    )
    if way.install.client == "uv" and (sources or beside):
        return uv_routes(project, way, context, package)
    channels = [channel_of(one, way) for one in sources]
    places = frozenset(one for one in channels if one is not None)
    if None in channels:
        return None
    declared = [one for one in root.declarations if one.name == package and one.scope != "build"]
    return Routes(places, len(declared) > len(sources) or not sources)


def uv_routes(project: Project, way: Way, context: Context, package: str) -> Routes | None:
    """Return the same for uv, by the sources that reach the requirements."""
    needs = needs_of(way, context)
    if needs is None:
        return None
    asked = [one for unit in needs.units() for one in needs.declared(unit)]
    for some in (needs.constraints, needs.overrides):
        asked += [one for ones in some.values() for one in ones]
    inside = 0
    for text in project.environments:
        inside |= needs.grid.mask(text)
    asked = [one for one in asked if one.name == package and (not inside or one.mask & inside)]
    places = [
        place_of(one.source.kind.kind, one.source.kind.channel)
        for one in asked
        if one.source is not None
    ]
    if None in places or any(one.problem for one in asked):
        return None
    named = frozenset(one for one in places if one is not None)
    return Routes(named, len(places) < len(asked) or not asked)


def related_sources(root: Document, project: Project, package: str) -> tuple[Related, ...]:
    """Return the sources of a package as related places."""
    starts = line_starts(root.text)
    return tuple(
        Related(root.path, position(starts, one.span.start).line, f"{one.value} is named here")
        for one in project.sources
        if one.package == package
    )


RULES = (LockOutOfDate, LockFromOtherIndex)
