"""TP4 on uv projects: which parts of a project a source reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Document, Span
from torchpin.documents.project import Project, Source
from torchpin.documents.requirement import canonical
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.judge.model import FAILS, PARTLY, UNKNOWN
from torchpin.rules.context import Context, Way
from torchpin.rules.lock_stops import INDEX_CONFLICT, conflict_of, hidden, speaks_for_all, ways_of
from torchpin.rules.model import ERROR, WARNING, Because, Finding
from torchpin.rules.project_extras import ExtraByReference
from torchpin.rules.project_words import (
    LINUX,
    UV,
    UV_PYTORCH,
    UV_SOURCES,
    ProjectRule,
    channel_of,
    covers,
    may_hold,
    needs_of,
    only_pypi,
)

if TYPE_CHECKING:
    from torchpin.select.forks import Need
    from torchpin.select.uv_lowering import Unit
    from torchpin.select.uv_needs import Needs

COMPANIONS = ("torchvision", "torchaudio")


def name_of(unit: Unit) -> str:
    """Return a part of a project as messages name it."""
    return f"{unit[1]} {unit[2]}" if unit[1] else "the base install"


class UndeclaredConflict(ProjectRule):
    """Extras or groups with different indexes, and no declared conflict.

    What it does: reports sources at which ``uv lock`` stops (two extras with different indexes and
    no ``conflicts``, markers that overlap), and those that route more than they say: without
    ``conflicts`` the source of one extra also routes the base dependencies and the other extras.

    Why it is bad: uv makes one lock for all extras and groups. Either it finds two indexes for one
    package and stops, or it takes the one index for all: a plain ``uv sync`` then installs the
    build that only the extra was to bring.

    Example: ``torch`` in ``dependencies``, and ``{ index = "pytorch-cu126", extra = "cu126" }``.

    Fix: ``conflicts``: ``[tool.uv] conflicts = [[{ extra = "cpu" }, { extra = "cu126" }]]``.

    Evidence: real uv locked such projects.
    """

    code = "TP409"
    name = "undeclared-conflict"
    severity = WARNING

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield sources at which uv stops, else those that reach too far."""
        conflict = conflict_of(way, context)
        match = re.search(INDEX_CONFLICT, conflict)
        if match is not None:
            package = match["package"] or match["routed"]
            routing = {
                one.install.root.path
                for one in context.ways
                if one.install.root.project is not None
                and any(source.package == package for source in one.install.root.project.sources)
            }
            beside = routing & {document.path for document in way.install.documents}
            if beside and root.path not in beside:
                return  # told where the sources are
            if not beside and not speaks_for_all(way, context):
                return
            yield self.finding(
                root,
                last_source(root, project, package),
                f"uv lock stops: {hidden(conflict)}",
                severity=ERROR,
                package=package,
                because=(Because("uv stops at such sources", MEASURED, UV),),
            )
            return
        needs = needs_of(way, context) if project.sources else None
        if needs is not None:
            others = named_elsewhere(root, context)
            yield from self.silent(root, project, needs, others)

    def silent(
        self, root: Document, project: Project, needs: Needs, others: frozenset[str]
    ) -> Iterator[Finding]:
        """Yield sources of extras and groups that route other parts, too."""
        reached: dict[tuple[str, Unit], dict[str, None]] = {}
        first: dict[tuple[str, Unit], Need] = {}
        for scoped, need in routed_parts(needs):
            for unit in needs.units():
                for other in needs.declared(unit):
                    if unit == scoped or other.name != need.name or other.problem:
                        continue
                    if other.source is not None or not other.mask & need.mask:
                        continue
                    key = (need.name, scoped)
                    first.setdefault(key, need)
                    reached.setdefault(key, {})[name_of(unit)] = None
        for (package, scoped), names in reached.items():
            if scoped[0] in others:
                continue
            source = first[(package, scoped)].source
            channel = source.kind.channel if source is not None else None
            yield self.finding(
                root,
                source_span(root, project, package, scoped) or Span(0, 0),
                f"{package} of {' and '.join(names)} comes from {channel} too: "
                f"{name_of(scoped)} is in no conflicts",
                package=package,
                because=(
                    Because("one lock serves all extras; this index is in it alone", MEASURED, UV),
                    Because(
                        "conflicts make uv solve the parts apart",
                        PUBLISHED,
                        "https://docs.astral.sh/uv/concepts/projects/config/#conflicting-dependencies",
                    ),
                ),
            )


def named_elsewhere(root: Document, context: Context) -> frozenset[str]:
    """Return the names of the projects whose own manifests are looked at beside this one."""
    return frozenset(
        canonical(one.install.root.project.name)
        for one in context.ways
        if one.install.root.project is not None and one.install.root.path != root.path
    ) - {canonical(root.project.name if root.project is not None else "")}


def routed_parts(needs: Needs) -> Iterator[tuple[Unit, Need]]:
    """Yield what extras and groups take from a channel although nothing keeps them apart."""
    for unit in needs.units():
        for need in needs.declared(unit):
            source = need.source
            if source is None or source.kind.kind != "channel" or not unit[1]:
                continue
            if need.name not in WATCHED:
                continue
            if not any(members & {unit, need.item} for members in needs.conflicts):
                yield unit, need


def last_source(root: Document, project: Project, package: str) -> Span:
    """Return the last source of a package, the place to mend."""
    spans = [one.span for one in project.sources if one.package == package]
    return spans[-1] if spans else Span(0, len(root.text.split("\n", 1)[0]))


def source_span(root: Document, project: Project, package: str, unit: Unit) -> Span | None:
    """Return the source of a package for an extra or group."""
    for one in project.sources:
        if one.package != package:
            continue
        scope = one.extra if unit[1] == "extra" else one.group
        if scope is not None and canonical(scope) == unit[2]:
            return one.span
        if one.marker and re.search(rf"extra\s*==\s*['\"]{re.escape(unit[2])}['\"]", one.marker):
            return one.span
    return next(
        (
            one.span
            for one in root.declarations
            if one.name == package and canonical(one.scope) == f"{unit[1]}-{unit[2]}"
        ),
        None,
    ) or next((one.span for one in root.declarations if one.name == package), None)


class PackageNotRouted(ProjectRule):
    """One package of the family comes from a channel, another does not.

    What it does: compares, in uv projects, which packages of the family have a source: a companion
    with one beside a torch without (perhaps only required by the companion), torch with one beside
    a companion without, a ROCm or XPU torch without the triton that its channel alone holds; it
    reports sources of packages that the project does not name, which uv passes over, and an extra
    ``cpu`` that PyPI's CUDA build serves on Linux. In projects of Poetry and PDM: one package of
    the family with a source of a channel beside another without.

    Why it is bad: sources reach only what the project itself names. The rest comes from PyPI,
    built for another CUDA.

    Example: ``torchvision = { index = "pytorch-cpu" }`` and torch in no list of dependencies.

    Fix: name the package in ``dependencies`` (or ``constraint-dependencies``) and give it the same
    source.

    Evidence: real uv, Poetry and PDM locked such projects.
    """

    code = "TP415"
    name = "package-not-routed"
    severity = WARNING
    clients: ClassVar[tuple[str, ...]] = ("uv", "poetry", "pdm")

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield packages that a source should reach, and sources that reach nothing."""
        if way.install.client != "uv":
            from torchpin.rules.lock_routes import without_source

            for one, text, because in without_source(root, project, way):
                yield self.finding(root, one.span, text, package=one.name, because=(because,))
            return
        named = {one.name for doc in (root, *way.install.siblings) for one in doc.declarations}
        idle = {
            one.package: one
            for one in project.sources
            if one.kind == "index" and one.package in WATCHED and one.package not in named
        }
        for source in idle.values():
            yield self.finding(
                root,
                source.span,
                f"{source.package} is named in no list of dependencies: its source has no effect",
                package=source.package,
                because=(
                    Because("a source reaches what the project names itself", MEASURED, UV),
                    Because("sources are for direct dependencies", PUBLISHED, UV_SOURCES),
                ),
            )
        yield from self.cpu_extras(root, project, way, context)
        if not only_pypi(way):
            return
        yield from self.triton(root, project, way, context)
        needs = needs_of(way, context) if project.sources else None
        if needs is None:
            return
        seen: set[tuple[str, str]] = set()
        others = named_elsewhere(root, context)
        for package, document, span, text in unrouted(
            needs, root, context, frozenset(idle), others
        ):
            if (package, text) in seen or settled(root, package, context):
                continue
            seen.add((package, text))
            yield self.finding(
                document,
                span,
                text,
                package=package,
                because=(
                    Because("a source reaches what the project names itself", MEASURED, UV),
                    Because("the family is built together", PUBLISHED, UV_PYTORCH),
                ),
            )

    def cpu_extras(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield extras and groups for CPUs that PyPI's CUDA build serves on Linux."""
        if not only_pypi(way) or not covers(project, LINUX):
            return
        if context.declared and not any(
            one.platform.startswith("linux") for one in context.fleet.groups
        ):
            return
        for one in root.declarations:
            kind, _, part = one.scope.partition(":")
            if one.name != "torch" or kind not in ("extra", "group") or one.url is not None:
                continue
            words = re.split(r"[^a-z0-9]+", part.lower())
            if "cpu" not in words or "+" in one.specifier or not may_hold(one.marker, LINUX):
                continue
            if any(reaches(source, kind, part) for source in project.sources):
                continue
            yield self.finding(
                root,
                one.span,
                f"{kind} {part} has no source for torch: on Linux PyPI's build is one for CUDA",
                package="torch",
                because=(
                    Because("PyPI serves CUDA builds of torch for Linux", PUBLISHED, UV_PYTORCH),
                ),
            )

    def triton(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield ROCm and XPU sources of torch without the triton of the channel."""
        routed = {one.package for one in project.sources if one.kind == "index"}
        for source in project.sources:
            channel = channel_of(source, way)
            kind = kind_of_label(channel or "")
            if source.package != "torch" or channel is None or kind not in ("rocm", "xpu"):
                continue
            names = (f"pytorch-triton-{kind}", f"triton-{kind}")
            if routed & set(names):
                continue
            yield self.finding(
                root,
                source.span,
                f"torch of {channel} requires {triton_name(channel, context)}, "
                "and no source takes it from there",
                package="torch",
                because=(
                    Because(
                        f"PyPI has no release of {' or '.join(names)} that torch asks for",
                        PUBLISHED,
                        "https://github.com/astral-sh/uv/issues/10712",
                    ),
                ),
            )


def triton_name(channel: str, context: Context) -> str:
    """Return what triton is called on a ROCm or XPU channel: renamed with torch 2.10."""
    from packaging.version import Version

    kind = kind_of_label(channel)
    span = context.catalog.channel_span("torch", channel)
    old, new = f"pytorch-triton-{kind}", f"triton-{kind}"
    if span is None or Version(span.first) >= Version("2.10"):
        return new
    return old if Version(span.last) < Version("2.10") else f"{old} (from torch 2.10 on {new})"


def reaches(source: Source, kind: str, part: str) -> bool:
    """True if a source of torch holds for an extra or group on Linux."""
    if source.package != "torch":
        return False
    scope = source.extra if kind == "extra" else source.group
    if (source.extra or source.group) and canonical(scope or "") != canonical(part):
        return False
    return may_hold(source.marker, LINUX, part if kind == "extra" else "")


def unrouted(
    needs: Needs,
    root: Document,
    context: Context,
    idle: frozenset[str],
    others: frozenset[str] = frozenset(),
) -> Iterator[tuple[str, Document, Span, str]]:
    """Yield package, place and message of family packages whose partner alone has a source."""
    from torchpin.select.forks import Environment

    linux = needs.grid.system("linux")
    for unit in needs.units():
        if unit[0] in others:
            continue
        for need in needs.declared(unit):
            if need.source is None or need.source.kind.kind != "channel" or need.placed is None:
                continue
            channel = need.source.kind.channel or ""
            mask = need.mask & linux
            if not mask:
                continue
            if need.name in COMPANIONS and not needs.routes("torch", Environment(mask)):
                asked = [one for u in needs.units() for one in needs.declared(u)]
                direct = any(one.name == "torch" and one.mask & mask for one in asked)
                if "torch" in idle or (direct and not reachable(needs, unit, "torch", mask)):
                    continue
                how = "has no source" if direct else "is not named in the project"
                span = source_of(root, need.name) or need.placed.declaration.span
                yield (
                    need.name,
                    root,
                    span,
                    f"{need.name} comes from {channel}, torch from PyPI: torch {how}",
                )
            if need.name != "torch":
                continue
            for package in COMPANIONS:
                if needs.routes(package, Environment(mask)):
                    continue
                if not context.catalog.find(package, channel=channel, home="channel"):
                    continue
                for one in reachable(needs, unit, package, mask):
                    if one.placed is not None:
                        yield (
                            package,
                            one.placed.document,
                            one.placed.declaration.span,
                            f"torch comes from {channel}, {package} has no source "
                            "and comes from PyPI",
                        )


def reachable(needs: Needs, unit: Unit, package: str, mask: int) -> list[Need]:
    """Return the requirements of a package that one install has together with a part."""
    return [
        one
        for other in needs.units()
        if other == unit or not other[1] or not unit[1]
        for one in needs.declared(other)
        if one.name == package and one.mask & mask and not one.problem and one.source is None
    ]


def source_of(root: Document, package: str) -> Span | None:
    """Return the first source of a package."""
    sources = root.project.sources if root.project is not None else ()
    return next((one.span for one in sources if one.package == package), None)


def settled(root: Document, package: str, context: Context) -> bool:
    """True if the judges have spoken: the companion is known not to fit (other rules tell), or is
    known to fit wherever Linux gets it."""
    sets = [one for way in ways_of(root, context) for one in way.sets]
    linux = [one for one in sets if one.target.group.platform.startswith("linux")]
    known: list[str] = []
    for judged_set in linux or sets:
        one, torch = judged_set.of(package), judged_set.of("torch")
        if one is None or torch is None or one.selection.status == "skipped":
            continue
        if one.selection.build is None or torch.selection.build is None:
            known.append(UNKNOWN)
        known += [reason.status for reason in one.beside_torch]
    return bool(known) and (FAILS in known or PARTLY in known or UNKNOWN not in known)


RULES = (UndeclaredConflict, PackageNotRouted, ExtraByReference)
