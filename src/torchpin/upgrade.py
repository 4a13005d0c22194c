"""Floor 5: what another torch release would break, and what would have to change for it.

The first three stages are those of ``check``; then the release is put in the place of torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from torchpin.catalog.model import FAMILY, FOLLOWERS, PLATFORMS, Build
from torchpin.documents.pins import exact_version, same_version
from torchpin.engine import Options, Reader, Stages, look, old_catalog, stdin_overlay
from torchpin.errors import UsageError
from torchpin.evidence import INFERRED, PROOF
from torchpin.fleet.model import Fleet, Target
from torchpin.judge.model import UNKNOWN
from torchpin.report import upgrade_model as model
from torchpin.report.lines import full_versions
from torchpin.report.upgrade_model import Diff, Move, Row, Unit, Upgrade
from torchpin.report.upgrade_words import target_names
from torchpin.resolve import upgrade as core
from torchpin.resolve.model import Origin, Outcome, Plan, Request, Want
from torchpin.resolve.solve import solve
from torchpin.resolve.space import Space
from torchpin.rewrite.request import current_channel
from torchpin.rewrite.upgrade import Moved, ProjectUpgrade, moved, planned_targets, way_fix
from torchpin.rules.context import Way, because
from torchpin.rules.model import DISPLAY, ERROR, Because, Finding, Fix
from torchpin.upgrade_breaks import Breaks, Piece, label, python_floor, with_floor
from torchpin.upgrade_sources import line_of

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog
    from torchpin.rules.context import Context


def upgrade(options: Options, fleet: Fleet | None, asked: str) -> Upgrade:
    """Return what a torch release would break in files and on a fleet.

    Args:
        options: what to look at.
        fleet: the declared fleet; None: hardware is not judged.
        asked: a version, a series (its newest patch is meant), or ``latest``.

    Raises:
        UsageError: there is no such path, or never was such a release.
    """
    from torchpin.catalog.store import load_catalog

    catalog = load_catalog(isolated=options.isolated)
    release, plus, _ = asked.partition("+")
    goal = core.goal_of(release, catalog)
    if goal is not None and plus:
        raise UsageError(
            f"--to {asked}: the channel follows from the fleet", hint=f"write {release.strip()}"
        )
    if goal is None:
        raise UsageError(
            f"--to {asked}: there is no such release of torch",
            hint="write 2.15, 2.15.0 or latest; `torchpin catalog show torch` lists the releases",
        )
    reader = Reader(stdin_overlay(options))
    stages, notes = look(options, fleet, reader)
    return Advice(stages, options, goal, reader).answer(notes)


class Advice:
    """Puts the answer for one run together."""

    def __init__(self, stages: Stages, options: Options, goal: core.Goal, reader: Reader) -> None:
        self.context: Context = stages.context
        self.stages = stages
        self.options = options
        self.goal = goal
        self.version = goal.version
        self.reader = reader
        self.catalog: Catalog = self.context.catalog
        self.space = Space(self.catalog)
        self.breaks = Breaks(stages, options, goal.version, self.space, reader)
        settings = self.context.fleet.settings
        self.policy = options.policy or settings.policy
        self.ways = tuple(way for way in self.context.ways if way.has_family or repeats(way))

    def answer(self, notes: Sequence[str]) -> Upgrade:
        """Return the whole answer."""
        targets = self.targets()
        pieces = self.pieces() if self.goal.known else []
        rows = self.rows(targets, pieces)
        old = old_catalog(self.catalog, self.options, self.context.fleet.settings)
        told = [f"{one.path}: {one.message}" for one in self.stages.failures]
        found = Upgrade(
            goal=self.goal,
            verdict="",
            rows=rows,
            breaks=self.breaks.found(rows, pieces),
            units=tuple(self.unit(piece) for piece in pieces),
            diffs=tuple(self.diffs(pieces)),
            last_for_all=core.last_for_all(self.space, targets) if rows else None,
            one_set=self.one_set(pieces, targets) if rows else None,
            facts=() if self.context.declared else tuple(self.facts()),
            doubts=tuple(dict.fromkeys(self.doubts(rows, pieces))),
            declared=self.context.declared,
            asked_for=bool(self.ways),
            open_files=tuple(p.root.path for p in pieces if p.doubt is not None),
            stale=bool(old),
            notes=(*notes, *told, *filter(None, (old,))),
        )
        return found._replace(verdict=verdict_of(found))

    def targets(self) -> tuple[Target, ...]:
        """Return the targets that install torch; all of the fleet if nothing asks for it."""
        found: dict[Target, None] = {}
        for way in self.ways:
            found.update(dict.fromkeys(planned_targets(way, self.context)))
        if not self.context.declared:  # but the machines of CI files may be known
            return tuple(one for one in found if one.group.name not in PLATFORMS)
        whole = self.context.fleet.targets()
        names = {target.group.name for target in found} or {one.group.name for one in whole}
        if self.ways and all(way.cpu_only for way in self.ways):
            return tuple(found)
        known = {one.group.name for one in whole}
        others = (one for one in found if one.group.name not in known)
        return (*(one for one in whole if one.group.name in names), *others)

    # -- what is planned

    def pieces(self) -> list[Piece]:
        """Return the ways in with their plans, those of a project together."""
        together: dict[object, list[Way]] = {}
        for way in self.ways:
            root = way.install.root
            alone = root.kind in ("requirements", "part")
            together.setdefault(id(way) if alone else root.path, []).append(way)
        return [self.piece(tuple(ways)) for ways in together.values()]

    def piece(self, ways: tuple[Way, ...]) -> Piece:
        """Return one piece, planned."""
        first, root = ways[0], ways[0].install.root
        targets = tuple(
            dict.fromkeys(one for way in ways for one in planned_targets(way, self.context))
        )
        doubt = self.doubt_of(ways, targets)
        if doubt is not None:
            nothing = Moved(Outcome((), (), ()))
            return Piece(ways, targets, nothing, Fix(DISPLAY, doubt.text), doubt)
        if root.project is not None and root.kind not in ("requirements", "part"):
            floor = python_floor(root, first.install.client, self.breaks)
            document = with_floor(root, floor) if floor is not None else root
            maker = ProjectUpgrade(document, ways, self.context, self.policy, self.version)
            found = maker.planned()
            if found.outcome.plans or found.outcome.unserved:
                return Piece(ways, targets, found, maker.written(found))
        found = moved(first, self.context, self.version, self.policy)
        if not first.has_family:
            return Piece(
                ways,
                targets,
                found,
                Fix(DISPLAY, "an earlier command installs its torch: pin the same here"),
            )
        if first.install.lock is not None:
            return Piece(ways, targets, found, Fix(DISPLAY, "make the lock anew by its own tool"))
        return Piece(ways, targets, found, way_fix(first, self.context, found))

    def doubt_of(self, ways: tuple[Way, ...], targets: tuple[Target, ...]) -> Because | None:
        """Return why nothing can be planned for some ways in, if that is so."""
        from torchpin.rewrite.fixes import computed

        if any(map(computed, ways)):
            path = ways[0].install.root.path
            return Because(f"a version in {path} comes from a variable", INFERRED, path)
        cpu = ways[0].cpu_only or not any(target.group.gpus for target in targets)
        if not cpu or not self.context.declared or current_channel(ways[0]) != "cpu":
            return None
        return self.breaks.unproved(ways[0], targets)

    def unit(self, piece: Piece) -> Unit:
        """Return a piece as reports show it."""
        fix, outcome = piece.fix, piece.found.outcome
        moves = tuple(self.moves(piece))
        advice = ""
        held = [one.package for one in self.breaks.of_pins((piece,)) if one.package]
        if held and not (fix is not None and fix.edits):
            advice = f"not written: {', '.join(held)} asks for another torch"
        elif fix is not None and not fix.edits:
            advice = fix.message
        elif len(outcome.plans) > 1:
            advice = "no single build serves all groups: one file or extra a group"
        elif outcome.plans and outcome.unserved:
            rest = target_names((one.target for one in outcome.unserved), piece.targets)
            advice = f"{rest} cannot follow: a file of its own for the others"
        elif piece.found.held:
            advice = f"without {', '.join(piece.found.held)}"
        way = piece.ways[0]
        several = len(piece.ways) == 1 and way.install.name is not None
        return Unit(
            piece.root.path,
            way.install.name if several else None,
            way.install.client,
            piece.groups if self.context.declared else (),
            outcome.plans,
            moves,
            advice,
            fix.command if fix is not None else None,
        )

    def moves(self, piece: Piece) -> Iterator[Move]:
        """Yield the declarations that do not let the plans' versions in."""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        plans = piece.found.outcome.plans
        for document, one in piece.placed:
            if one.name not in (*FAMILY, *FOLLOWERS) or one.url is not None:
                continue
            wanted = {
                full_versions(plan)[one.name]: version
                for plan in plans
                for name, version in plan.versions
                if name == one.name
            }
            try:
                accepts = SpecifierSet(one.specifier)
            except InvalidSpecifier:
                continue
            pin = exact_version(one.specifier)
            new = [
                full
                for full, version in wanted.items()
                if not (
                    pin is not None
                    and same_version(pin[0], version)
                    and pin[1] in (None, "", label(full))
                )
                and (pin is not None or not accepts.contains(version, prereleases=True))
            ]
            if new:
                yield Move(
                    one.name,
                    document.path,
                    line_of(document, one.span.start),
                    one.specifier,
                    tuple(new),
                )

    def diffs(self, pieces: Iterable[Piece]) -> Iterator[Diff]:
        """Yield what the edits of all pieces change."""
        from torchpin.rewrite.fixes import apply_fixes

        made = [
            Finding(
                "",
                "upgrade",
                ERROR,
                piece.root,
                piece.root.path,
                piece.fix.edits[0].edits[0].span,
                "",
                fix=piece.fix,
            )
            for piece in pieces
            if piece.fix is not None and piece.fix.edits
        ]
        changed, _ = apply_fixes(made, unsafe=True)
        whole = {document.path: document for document in self.stages.documents}
        for document, data in changed:
            text = data[len(document.bom) :].decode(document.encoding)
            before = whole.get(document.path, document).text
            yield Diff(document.path, before, text)

    # -- hardware

    def rows(self, targets: Iterable[Target], pieces: Iterable[Piece]) -> tuple[Row, ...]:
        """Return a row for each target."""
        today: dict[Target, dict[Build, None]] = {}
        named: dict[Target, set[str | None]] = {}
        for way in self.ways:
            for judged_set in way.sets:
                one = judged_set.of("torch")
                if one is not None and one.selection.build is not None:
                    today.setdefault(judged_set.target, {})[one.selection.build] = None
            for target in planned_targets(way, self.context):
                named.setdefault(target, set()).add(current_channel(way))
        open_ = {one for piece in pieces if piece.doubt is not None for one in piece.targets}
        out = []
        for target in targets:
            channels = named.get(target, set())
            asked = next(iter(channels)) if len(channels) == 1 else None
            if self.goal.known:
                found = core.standing(self.space, self.version, target, asked)
            else:
                found = core.Standing(target, UNKNOWN, None, ())
            reach = core.reach(self.space, target, asked)
            builds = tuple(today.get(target, ()))
            first = builds[0] if builds else None
            out.append(Row(found, first, reach, builds[1:], asked if target in open_ else None))
        return tuple(out)

    def one_set(self, pieces: Iterable[Piece], targets: tuple[Target, ...]) -> Plan | None:
        """Return the newest set of the family that serves all targets together."""
        names = {one.declaration.name for piece in pieces for one in piece.placed}
        wants = [Want(n, "", Origin("<fleet>", 0, n)) for n in FAMILY if n == "torch" or n in names]
        outcome = solve(Request(tuple(wants), targets, "newest"), self.catalog)
        return outcome.plans[0] if len(outcome.plans) == 1 and not outcome.unserved else None

    # -- what is not known, and what is

    def doubts(self, rows: Iterable[Row], pieces: Iterable[Piece]) -> Iterator[Because]:
        """Yield what is not known."""
        if not self.goal.known:
            yield Because(
                f"torch {self.version} is not in the catalog of {self.catalog.date}",
                INFERRED,
                f"the newest release in the catalog is {self.catalog.newest('torch')}",
            )
        for row in rows:
            for reason in row.standing.reasons:
                if reason.status == UNKNOWN:
                    yield because(reason)
        for piece in pieces:
            doubt = piece.doubt
            if doubt is None and not self.context.declared:
                doubt = self.breaks.unproved(piece.ways[0], piece.targets)
            if doubt is not None:
                yield doubt

    def facts(self) -> Iterator[Because]:
        """Yield what each build of the release asks of a Linux machine."""
        floors = self.context.drivers
        for build in self.catalog.find("torch", version=self.version, platform="linux-x86_64"):
            if build.evidence not in PROOF:
                continue
            parts = []
            if build.cuda is not None:
                floor = floors.family_floor(build.cuda, build.platform)
                if floor is not None:
                    parts.append(f"driver {floor.value} or newer")
            if build.kernels is not None:
                names = [f"sm_{one}" for one in build.kernels.sass] or list(build.kernels.gfx)
                parts.append(f"GPUs {' '.join(names)}")
            if build.pythons:
                parts.append(f"Python {' '.join(build.pythons)}")
            if build.glibc:
                parts.append(f"glibc {build.glibc}")
            lists = build.kernels
            evidence = lists.evidence if lists is not None else build.evidence
            yield Because(f"{build.place}: {', '.join(parts)}", evidence, build.source)


def verdict_of(found: Upgrade) -> str:
    """Return the word of the verdict."""
    if not found.goal.known:
        return model.NOT_KNOWN
    if found.blocked or any(one.blocking for one in found.breaks):
        return model.BLOCKED
    if found.unknown or found.open_files:
        return model.NOT_KNOWN
    if found.changes:
        return model.CHANGES
    if not found.declared:
        return model.NOT_KNOWN
    return model.LIMITED if found.limited else model.SAFE


def repeats(way: Way) -> bool:
    """True if a command asks for a torch that an earlier one has installed already: its pin has to
    move all the same."""
    return bool(way.before) and any(one.name in FAMILY for one in way.install.root.declarations)
