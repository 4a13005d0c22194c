"""What a torch release breaks: on hardware, in indexes, in other packages and in Python code.

Part of floor 5, beside ``torchpin.upgrade``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY, FOLLOWERS
from torchpin.documents.base import Document
from torchpin.documents.pins import exact_version
from torchpin.engine import Options, Reader, Stages
from torchpin.evidence import INFERRED, MEASURED, PROOF
from torchpin.fleet.model import Target
from torchpin.judge.model import FAILS, PARTLY, RUNS, RUNS_VIA_PTX, Reason
from torchpin.judge.verdict import judge_companion
from torchpin.named import NamedTuple
from torchpin.report.lines import place_of
from torchpin.report.upgrade_model import Break, Row
from torchpin.report.upgrade_words import target_names
from torchpin.resolve import upgrade as core
from torchpin.resolve.horizon import block
from torchpin.resolve.model import Plan
from torchpin.resolve.space import PYPI, Space
from torchpin.rewrite.plan import unfit_text
from torchpin.rewrite.request import accepted, current_channel
from torchpin.rewrite.upgrade import Moved
from torchpin.rules.context import Way, because
from torchpin.rules.model import Because, Fix
from torchpin.select.environments import marker_holds
from torchpin.select.model import Placed
from torchpin.upgrade_sources import code_breaks, line_of

OLDEST, NEWEST = 8, 20
"""Minors of Python 3 that a ``requires-python`` is asked about."""
NOWHERE: tuple[str | None, int | None] = (None, None)


class Piece(NamedTuple):
    """Ways in that are planned together: one file or command, or all of a project."""

    ways: tuple[Way, ...]
    targets: tuple[Target, ...]
    found: Moved
    fix: Fix | None
    doubt: Because | None = None
    """Nothing is planned, because it is not known whether its index holds the release."""

    @property
    def root(self) -> Document:
        """The document that leads them."""
        return self.ways[0].install.root

    @property
    def groups(self) -> tuple[str, ...]:
        """The node groups that install it."""
        return tuple(dict.fromkeys(target.group.name for target in self.targets))

    @property
    def placed(self) -> tuple[Placed, ...]:
        """Every declaration of it, once; those too that an earlier command has met already."""
        found: dict[Placed, None] = {}
        for way in self.ways:
            install = way.install
            found.update(dict.fromkeys((*install.requirements, *install.constraints)))
            if way.before:
                root = install.root
                found.update((Placed(root, one), None) for one in root.declarations)
        return tuple(one for one in found if one.declaration.valid)


class Breaks:
    """Finds what a release breaks."""

    def __init__(
        self, stages: Stages, options: Options, version: str, space: Space, reader: Reader
    ) -> None:
        self.stages = stages
        self.context = stages.context
        self.catalog = stages.context.catalog
        self.options = options
        self.version = version
        self.space = space
        self.reader = reader

    def found(self, rows: Iterable[Row], pieces: Iterable[Piece]) -> tuple[Break, ...]:
        """Return everything that breaks, each thing once."""
        pieces = tuple(pieces)
        told = (
            *self.of_hardware(rows),
            *self.of_channels(pieces),
            *self.of_companions(pieces),
            *self.of_pins(pieces),
            *self.of_requires_python(pieces),
            *code_breaks(self.stages, self.options, self.version, self.reader),
        )
        return tuple(dict.fromkeys(told))

    def of_hardware(self, rows: Iterable[Row]) -> Iterator[Break]:
        """Yield what stands in the way on targets, and what works less than today."""
        told: dict[tuple[str, bool, str, str], tuple[Reason, dict[str, None], dict[str, None]]] = {}
        for row in rows:
            standing = row.standing
            fails = standing.status == FAILS
            for reason in standing.reasons:
                kind = core.kind_of(reason)
                if reason.status in (PARTLY, RUNS_VIA_PTX):
                    if not self.runs_today(row):
                        continue
                    kind = "limit"
                elif reason.status != FAILS:
                    continue
                key = (kind, fails, reason.text, reason.evidence)
                _, groups, pythons = told.setdefault(key, (reason, {}, {}))
                groups[standing.target.group.name] = None
                if kind == "python" and standing.target.python is not None:
                    pythons[str(standing.target.python)] = None
        for (kind, fails, text, _), (reason, groups, pythons) in told.items():
            yield Break(
                kind,
                text,
                tuple(groups),
                tuple(pythons),
                blocking=fails,
                because=(because(reason),),
            )

    def runs_today(self, row: Row) -> bool:
        """True if nothing is installed on a target today, or what is runs without a limit."""
        if row.today is None:
            return True
        return self.space.verdict(row.today, self.space.intern(row.standing.target)).status == RUNS

    # -- channels

    def of_channels(self, pieces: Iterable[Piece]) -> Iterator[Break]:
        """Yield the channels that do not hold the release, and those that serve no more."""
        for piece in pieces:
            for way in piece.ways:
                channel = current_channel(way)
                if channel is not None and kind_of_label(channel) is None:
                    continue
                yield from self.of_channel(piece, way, channel)

    def of_channel(self, piece: Piece, way: Way, channel: str | None) -> Iterator[Break]:
        """Yield why torch cannot stay on its channel (None: PyPI)."""
        key = channel or PYPI
        other = [
            plan
            for plan in piece.found.outcome.plans
            if (PYPI if plan.home == PYPI else plan.channel) != key
        ]
        told = self.absence(channel, piece.targets) if channel is not None else None
        remedy = "; ".join(dict.fromkeys(place_text(plan, self.context.declared) for plan in other))
        place = self.index_place(way)
        if told is not None:
            yield Break(
                "channel",
                told.text,
                piece.groups if self.context.declared else (),
                (),
                *place,
                remedy=remedy,
                because=(told,),
            )
            return
        doubt = self.unproved(way, piece.targets)
        if doubt is not None and other and channel != "cpu":
            groups = piece.groups if self.context.declared else ()
            yield Break("channel", doubt.text, groups, (), *place, remedy=remedy, because=(doubt,))
        for plan in other:
            for target in plan.targets:
                reason = block(self.space, self.version, self.space.intern(target), key)
                if reason is not None:
                    yield Break(
                        core.kind_of(reason),
                        reason.text,
                        (target.group.name,),
                        (),
                        *place,
                        remedy=remedy,
                        because=(because(reason),),
                    )

    def absence(self, channel: str, targets: Iterable[Target]) -> Because | None:
        """Return the proof that a channel does not hold the release, for a platform of targets."""
        for platform in dict.fromkeys(target.group.platform for target in targets):
            if platform.startswith("macos"):
                continue
            known = self.catalog.existence(
                "torch", self.version, channel=channel, home="channel", platform=platform
            )
            if known.exists is False and known.evidence in PROOF:
                span = self.catalog.channel_span("torch", channel)
                if span is None:
                    return Because(f"{channel} does not hold torch {self.version}", *known[1:])
                text = f"{channel} holds torch {span.first} to {span.last}, not {self.version}"
                return Because(text, known.evidence, known.source)
        return None

    def unproved(self, way: Way, targets: Iterable[Target]) -> Because | None:
        """Return what is not known of the channel that a way names, if nothing proves that it
        holds the release."""
        channel = current_channel(way)
        if channel is None or kind_of_label(channel) is None:
            return None
        for platform in dict.fromkeys(target.group.platform for target in targets):
            known = self.catalog.existence(
                "torch", self.version, channel=channel, home="channel", platform=platform
            )
            if known.exists is not False and known.evidence not in PROOF:
                text = f"nothing proves yet that {channel} holds torch {self.version}"
                return Because(text, INFERRED, known.source)
        return None

    def index_place(self, way: Way) -> tuple[str | None, int | None]:
        """Return where a way names its channel."""
        for index in way.install.indexes:
            if index.kind.channel and index.document is not None and index.line is not None:
                return index.document.path, line_of(index.document, index.line.span.start)
        for document, one in way.install.requirements:
            if one.name == "torch":
                return document.path, line_of(document, one.span.start)
        return way.install.root.path, None

    # -- packages beside torch

    def of_companions(self, pieces: Iterable[Piece]) -> Iterator[Break]:
        """Yield the companions of which no version goes with the release."""
        for piece in pieces:
            places: dict[str, tuple[str | None, int | None]] = {
                one.name: (document.path, line_of(document, one.span.start))
                for document, one in reversed(piece.placed)
            }
            groups = piece.groups if self.context.declared else ()
            for name in piece.found.held:
                text = f"no {name} is known that goes with torch {self.version} here"
                newest = self.catalog.newest(name)
                source = f"catalog of {self.catalog.date}: the newest is {newest}"
                yield Break(
                    "companion",
                    text,
                    groups,
                    (),
                    *places.get(name, NOWHERE),
                    name,
                    f"remove {name}, or build it from source",
                    because=(Because(text, INFERRED, source),),
                )
            yield from self.of_pairs(piece, places, groups)
            for plan in piece.found.outcome.plans:
                for name, why in plan.unfit:
                    told = next(
                        (line for line in plan.because if line[0] == why), (why, INFERRED, "")
                    )
                    yield Break(
                        "companion",
                        why,
                        groups,
                        (),
                        *places.get(name, NOWHERE),
                        name,
                        unfit_text(name, "").removeprefix("; "),
                        because=(Because(*told),),
                    )

    def of_pairs(
        self,
        piece: Piece,
        places: Mapping[str, tuple[str | None, int | None]],
        groups: tuple[str, ...],
    ) -> Iterator[Break]:
        """Yield the companions that go with the release, but not all of them."""
        today = {
            (one.selection.package, reason.question)
            for way in piece.ways
            for judged_set in way.sets
            for one in judged_set.judged
            for reason in one.beside_torch
            if reason.status in (PARTLY, FAILS)
        }
        for plan in piece.found.outcome.plans:
            hosts = {place: build for place, name, build in plan.builds if name == "torch"}
            for platform, name, build in plan.builds:
                if name == "torch" or platform not in hosts:
                    continue
                mine = tuple(t.group.name for t in plan.targets if t.group.gpus)
                for reason in judge_companion(build, hosts[platform]):
                    if reason.status != PARTLY or (self.context.declared and not mine):
                        continue
                    same = (name, reason.question) in today
                    text = f"{reason.text} (as today)" if same else reason.text
                    kind = "companion" if same or not groups else "limit"
                    ground = (because(reason),)
                    place = places.get(name, NOWHERE)
                    yield Break(kind, text, mine or groups, (), *place, name, because=ground)

    def of_pins(self, pieces: Iterable[Piece]) -> Iterator[Break]:
        """Yield the packages that ask for another torch."""
        for piece in pieces:
            named: set[str] = set()
            for document, one in piece.placed:
                if one.name in (*FAMILY, *FOLLOWERS) or one.scope == "build":
                    continue
                named.add(one.name)
                version = self.takes(one.name, one.specifier)
                where = _where(one.marker, piece.targets)
                if version is not None and where:
                    place = (document.path, line_of(document, one.span.start))
                    there = piece._replace(targets=where)
                    yield from self.of_pin(there, one.name, version, place, locked=False)
            for way in piece.ways:
                lock = way.install.lock
                for package in lock.lock.packages if lock is not None and lock.lock else ():
                    if lock is None or package.name in named:
                        continue
                    named.add(package.name)
                    place = (lock.path, line_of(lock, package.span.start))
                    if package.name not in (*FAMILY, *FOLLOWERS):
                        yield from self.of_pin(
                            piece, package.name, package.version, place, locked=True
                        )

    def takes(self, name: str, specifier: str) -> str | None:
        """Return the version that a specifier brings: the pinned, else the newest that is known."""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet
        from packaging.version import Version

        pin = exact_version(specifier)
        if pin is not None:
            return pin[0]
        try:
            accepts = SpecifierSet(specifier)
        except InvalidSpecifier:
            return None
        known = self.catalog.pin_table(name)
        return max((text for text in known if text in accepts), key=Version, default=None)

    def of_pin(
        self, piece: Piece, name: str, version: str, place: tuple[str, int], *, locked: bool
    ) -> Iterator[Break]:
        """Yield a version of a package that asks for another torch."""
        from packaging.specifiers import SpecifierSet
        from packaging.version import Version

        needs = self.catalog.pins(name, version) or accepted(self.context, name, version)
        if not needs or SpecifierSet(needs).contains(self.version, prereleases=True):
            return
        text = f"{name} {version} requires torch {needs}"
        better = core.newest_that_accepts(self.catalog, name, self.version)
        remedy = ""
        if better is not None and Version(better) > Version(version):
            remedy = f"{name}=={better}, which takes it" if not locked else "make the lock anew"
        else:
            newest = max(self.catalog.pin_table(name), key=Version, default=version)
            text += f"; no later one is known that takes {self.version} (newest known: {newest})"
        yield Break(
            "pin",
            text,
            piece.groups if self.context.declared else (),
            (),
            *place,
            name,
            remedy,
            not remedy,
            (
                Because(
                    f"{name} {version} requires torch {needs}",
                    MEASURED,
                    f"METADATA of {name} {version}",
                ),
            ),
        )

    def of_requires_python(self, pieces: Iterable[Piece]) -> Iterator[Break]:
        """Yield the projects whose Pythons the release has no wheels for."""
        for piece in pieces:
            found = python_floor(piece.root, piece.ways[0].install.client, self)
            project, root = piece.root.project, piece.root
            if found is None or project is None:
                continue
            span = project.requires_python_span
            yield Break(
                "python",
                f"requires-python {project.requires_python} admits Python "
                f"{' and '.join(found.lacking)}, for which torch {self.version} has no wheel",
                (),
                found.lacking,
                root.path,
                line_of(root, span.start) if span is not None else None,
                remedy=f'requires-python = "{found.specifier}"',
                because=(because(found.reason),),
            )


def _where(marker: str | None, targets: tuple[Target, ...]) -> tuple[Target, ...]:
    """Return the targets on which a declaration may count; an extra may be asked for anywhere."""
    if marker is None or "extra" in marker:
        return targets
    return tuple(target for target in targets if marker_holds(marker, target) is not False)


class Floor(NamedTuple):
    """What ``requires-python`` has to become."""

    lacking: tuple[str, ...]
    """The Pythons that it admits and that the release has no wheels for."""
    specifier: str
    reason: Reason


def python_floor(root: Document, client: str, breaks: Breaks) -> Floor | None:
    """Return the Pythons that a project locks for, and that are older than the release's wheels."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    project = root.project
    if project is None or project.requires_python is None:
        return None
    if client not in ("uv", "poetry", "pdm"):
        return None
    try:
        accepts = SpecifierSet(project.requires_python)
    except InvalidSpecifier:  # Poetry's own words: its lock says what they mean
        return None
    admitted = [minor for minor in range(OLDEST, NEWEST) if accepts.contains(f"3.{minor}")]
    missing = core.without_wheel(breaks.catalog, breaks.version, admitted)
    held = [minor for minor in admitted if minor not in missing]
    low = [minor for minor in missing if held and minor < held[0]]
    if not low:
        return None
    rest = [str(one) for one in accepts if one.operator not in (">=", ">", "~=", "!=")]
    specifier = ",".join([f">=3.{held[0]}", *rest])
    return Floor(tuple(f"3.{minor}" for minor in low), specifier, missing[low[-1]])


def with_floor(root: Document, found: Floor) -> Document:
    """Return a project file whose ``requires-python`` is raised; itself where that is no text."""
    from torchpin.documents.base import Edit, apply_edits
    from torchpin.rewrite.uv_edit import read_again

    project = root.project
    span = project.requires_python_span if project is not None else None
    if project is None or span is None or root.kind != "pyproject":
        return root
    written = root.text[span.start : span.end]
    if project.requires_python is None or project.requires_python not in written:
        return root
    new = written.replace(project.requires_python, found.specifier)
    return read_again(root, apply_edits(root.text, (Edit(span, new),)))


def place_text(plan: Plan, declared: bool) -> str:
    """Return where a plan takes its builds from, and for whom."""
    where = f"take torch from {place_of(plan)}"
    return f"{where} for {target_names(plan.targets)}" if declared else where


def label(version: str) -> str:
    """Return the local label of a version."""
    return version.partition("+")[2]
