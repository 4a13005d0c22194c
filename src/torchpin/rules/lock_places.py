"""TP5 on locks: does a package come from where the project says?"""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Document, line_starts, position
from torchpin.documents.project import Lock, LockedPackage, Project
from torchpin.evidence import PUBLISHED
from torchpin.named import NamedTuple
from torchpin.rules.context import Context, Way, base_name
from torchpin.rules.locks import LockRule
from torchpin.rules.model import WARNING, Because, Finding, Related
from torchpin.rules.project_words import channel_of, needs_of
from torchpin.select.channels import index_kind, redact


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
                f"the {'script' if root.kind == 'script' else 'project'} names {names}",
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


RULES = (LockFromOtherIndex,)
