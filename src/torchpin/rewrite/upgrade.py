"""The plan that takes one way in, or one project, to another torch release, and how it is written.

The wants are those of a fix, but for torch: its own pins and bounds give way to the release.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Document
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.resolve.model import Origin, Outcome, Plan, Want
from torchpin.rewrite.parts import solve_parts
from torchpin.rewrite.plan import write_plan
from torchpin.rewrite.projects import Draft, ProjectFix, of_script, written
from torchpin.rewrite.request import (
    family_declarations,
    follower_declarations,
    intended_targets,
    request_of,
    wants_from,
    wants_of,
)
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, Fix
from torchpin.select.model import Placed, SelectedSet


def raised(wants: Sequence[Want], version: str, without: Collection[str] = ()) -> tuple[Want, ...]:
    """Return wants with exactly one of torch: the release, at the place of the first that was."""
    origin = next((w.origin for w in wants if w.package == "torch"), Origin("", 0, "torch"))
    rest = tuple(w for w in wants if w.package != "torch" and w.package not in without)
    return (Want("torch", f"=={version}", origin), *rest)


class Moved(NamedTuple):
    """The answer for one way in, or one project."""

    outcome: Outcome
    softened: bool = False
    """A bound of a companion has to give way."""
    held: tuple[str, ...] = ()
    """Companions of which no version goes with the release: the plans leave them out."""


Wishes = Callable[[bool, Collection[str]], Outcome]
"""From whether bounds give way, and what is left out, to an outcome."""


def moved(way: Way, context: Context, version: str, policy: str) -> Moved:
    """Return the plans of a way in for a release; bounds of companions give way if they must."""
    request = request_of(way, context, policy).request
    request = request._replace(targets=planned_targets(way, context))
    if not request.targets:
        return Moved(Outcome((), (), ()))
    family = [*family_declarations(way), *follower_declarations(way)]

    def wishes(soften: bool, without: Collection[str]) -> Outcome:
        def some(placed: Sequence[Placed]) -> tuple[Want, ...]:
            wants = wants_of(way, context, soften=soften, family=placed)
            return raised(wants, version, without)

        return solve_parts(request, family, some, context.catalog)

    return least(wishes, {one.declaration.name for one in family})


def planned_targets(way: Way, context: Context) -> tuple[Target, ...]:
    """Return the targets of a way in; a file that is meant for CPUs is planned without GPUs."""
    targets = intended_targets(way, context)
    if not way.cpu_only:
        return targets
    return tuple(
        one._replace(group=one.group._replace(gpus=(), driver=None, cuda_compat=None))
        for one in targets
    )


def least(wishes: Wishes, packages: Collection[str]) -> Moved:
    """Return the outcome that serves most targets, and gives up least for that."""
    first = wishes(False, ())
    if not first.unserved:
        return Moved(first)
    companions = [name for name in FAMILY if name != "torch" and name in packages]
    best = len(wishes(True, companions).unserved)
    if len(first.unserved) == best:
        return Moved(first)
    for without in ((), *((name,) for name in companions), tuple(companions)):
        found = wishes(True, without)
        if len(found.unserved) == best:
            return Moved(found, not without, without)
    return Moved(first)


def way_fix(way: Way, context: Context, found: Moved) -> Fix | None:
    """Return the edits of a requirements file or of a command, or why there are none.

    None: the file says it already.
    """
    outcome = found.outcome
    if len(outcome.plans) != 1 or outcome.unserved or found.held:
        return None
    version = dict(outcome.plans[0].versions)["torch"]
    torch = [one for judged_set in way.sets if (one := judged_set.of("torch")) is not None]
    there = all(one.build is not None and one.build.version == version for one in torch)
    if torch and there and all(judged_set.serves for judged_set in way.sets):
        return None
    return write_plan(way, context, outcome, (), softened=found.softened)


class ProjectUpgrade(ProjectFix):
    """Plans a project file for a release."""

    def __init__(
        self, document: Document, ways: tuple[Way, ...], context: Context, policy: str, version: str
    ) -> None:
        super().__init__(document, ways, context, policy)
        self.version = version
        self._soften = False
        self._without: Collection[str] = ()

    def wants(self, family: Sequence[Placed], bound: Collection[str] = ()) -> tuple[Want, ...]:
        """Return what the plan must hold: the release, and what goes with it."""
        wants = wants_from(
            self.document, family, self.placed(), self.context, soften=self._soften, bound=bound
        )
        return raised(wants, self.version, self._without)

    def planned(self) -> Moved:
        """Return the plans for the targets of all ways in."""

        def wishes(soften: bool, without: Collection[str]) -> Outcome:
            self._soften, self._without = soften, without
            return self.solve() or Outcome((), (), ())

        return least(wishes, self.declared())

    def written(self, found: Moved) -> Fix | None:
        """Return the edits, or advice where none is right; None: the file says it already."""
        outcome = found.outcome
        if self.there(self.before):
            if self.command is None or self.locked():
                return None
            text = f"the manifest takes torch {self.version}, the lock does not hold it yet"
            return Fix(DISPLAY, text, (), self.command)
        if outcome.unserved or found.held or not outcome.plans:
            return None
        plans = (*outcome.plans, *outcome.alternative)
        self.moved_pins(plans)
        self.before = self.pinned(outcome) or self.before
        for draft, where in self.drafts(outcome):
            fix = self.proved(draft, where)
            if fix is not None and self.leads_there(draft):
                return of_script(fix, self.ways[0].install.root)
        return Fix(DISPLAY, self.shown(outcome))

    def locked(self) -> bool:
        """True if what installs today, the lock, holds the release on every target."""
        torch = [one for way in self.ways for some in way.sets if (one := some.of("torch"))]
        return all(one.build is not None and one.build.version == self.version for one in torch)

    def pinned(self, outcome: Outcome) -> list[SelectedSet] | None:
        """Return what every target gets once the pins have moved and the indexes have not."""
        if self.proof.client != "uv" or len(outcome.plans) != 1:
            return None
        text = written(lambda: self.writer().repin(outcome.plans[0]))
        return None if text is None else self.proof.selected(self.reread(text), {})

    def moved_pins(self, plans: Sequence[Plan]) -> None:
        """Note which packages that follow torch get other pins."""
        unfit = frozenset(package for plan in plans for package, _ in plan.unfit)
        self.proof.follow -= unfit
        self.moved = frozenset(name for plan in plans for name in plan.moved)

    def leads_there(self, draft: Draft) -> bool:
        """True if a draft, read again, installs the release."""
        if draft.lead is not None:
            return True  # the plan that was proved holds no other
        return self.there(self.proof.selected(self.reread(draft.text), draft.enabled))

    def there(self, sets: Sequence[SelectedSet]) -> bool:
        """True if the family of every set installs and runs, with the release as its torch."""
        return self.proof.holds(list(sets)) and all(
            one.build is not None and one.build.version == self.version
            for chosen in sets
            for one in chosen.selections
            if one.package == "torch" and one.status != "skipped"
        )
