"""TP5 on locks: does the lock say what the project says?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from torchpin.catalog.model import FAMILY, WATCHED
from torchpin.documents.base import Declaration, Document, Span
from torchpin.documents.project import Lock, LockedPackage, Project
from torchpin.documents.requirement import canonical
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.rules.context import Context, Way, base_name
from torchpin.rules.lock_spellings import (
    alike,
    at,
    bare,
    comparable,
    members_of,
    pythons,
    scope_of,
    wanted,
    where_of,
)
from torchpin.rules.lock_stops import ways_of
from torchpin.rules.model import DISPLAY, WARNING, Because, Finding, Fix, Related
from torchpin.rules.project_words import UV, ProjectRule, needs_of
from torchpin.select.channels import index_kind, redact

LOCKING = "https://docs.astral.sh/uv/concepts/projects/sync/#automatic-lock-and-sync"
POETRY_LOCK = "https://python-poetry.org/docs/cli/#check"
_CHECK = {
    "uv": "uv lock --check and uv sync --locked fail; a plain uv sync locks anew",
    "poetry": "poetry install stops: pyproject.toml changed",
    "pdm": "pdm lock --check fails",
    "pylock": "what it holds is installed, whatever the file asks for by now",
}


class LockRule(ProjectRule):
    """Base of the rules that compare a project with its lock."""

    clients: ClassVar[tuple[str, ...]] = ("uv", "poetry", "pdm")

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Look at a project, or at a script that has a lock of its own, once."""
        root = way.install.root
        if root.kind != "script" or root.project is None:
            yield from super().check(way, context)
        elif way is ways_of(root, context)[0]:
            yield from self.examine(root, root.project, way, context)

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
    project; in all locks the locked version with the project's requirement, in ``pylock.toml`` with
    that of the file that its header names.

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
        if document.path.endswith(".py.lock"):
            told = "uv lock --check --script and uv run --locked fail; a plain uv run locks anew"
        related = [Related(document.path, 1, "the lock")] if where is not document else []
        return self.finding(
            where,
            span,
            f"{base_name(document.path)} is out of date: {told_of(where, text)}",
            package=package,
            because=(
                Because(told, MEASURED, UV)
                if lock.tool == "uv"
                else Because(told, PUBLISHED, POETRY_LOCK if lock.tool == "poetry" else LOCKING),
            ),
            related=related,
        )

    def check_document(self, document: Document, context: Context) -> Iterator[Finding]:
        """Yield a ``Pipfile.lock`` whose digest is not that of the ``Pipfile`` beside it, and a
        ``pylock.toml`` that does not satisfy the file that it was made from."""
        if document.kind == "Pipfile.lock":
            from torchpin.rules.pipenv_lock import stale

            for span, text, ground in stale(document, context):
                yield self.finding(document, span, text, because=(ground,))
        if document.kind == "pylock" and document.lock is not None:
            from torchpin.rules.lock_inputs import left_out, sources_of

            for source, header in sources_of(document, context):
                for one, version in left_out(document, source, header, context):
                    asked = f"{one.name}{one.specifier}"
                    text = f"the lock has {one.name} {version}, which {asked} leaves out"
                    if version is None:
                        text = f"it was made before {asked} stood here"
                    found = self.stale(source, one.span, text, document, document.lock, one.name)
                    command = f"run `{header.command}`" if header is not None else "lock anew"
                    yield found._replace(fix=Fix(DISPLAY, command))

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


def told_of(where: Document, text: str) -> str:
    """Return a text on a project as one on the file that it is about."""
    return text.replace("the project", "the script") if where.kind == "script" else text


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


RULES = (LockOutOfDate,)
