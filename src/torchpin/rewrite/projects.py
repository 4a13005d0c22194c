"""Plans for projects (fix policy F3 to F6): tried from the least change on, and read again.

A uv project gets an explicit index and sources, never a label and never a cap. A split becomes one
extra a channel, with declared conflicts. Poetry gets explicit sources. Locks are not edited: their
owner makes them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

from torchpin.catalog.model import FOLLOWERS
from torchpin.documents.base import Document, Edit, Span
from torchpin.documents.pyproject import read_pyproject
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.resolve.model import Outcome, Plan
from torchpin.rewrite import uv_edit
from torchpin.rewrite.plan import unfit_text
from torchpin.rewrite.project_plans import ProjectPlans
from torchpin.rewrite.project_proof import same_torch, sets_text
from torchpin.rewrite.relock import relock_command
from torchpin.rewrite.request import unfit_of
from torchpin.rewrite.toml_edit import ShapeError
from torchpin.rewrite.uv_project import UvWriter
from torchpin.rewrite.uv_references import OWN_SOURCE, own_sources
from torchpin.rules.context import Context, Way, base_name
from torchpin.rules.model import DISPLAY, SAFE, UNSAFE, FileEdits, Fix
from torchpin.rules.project_routes import triton_name
from torchpin.select.model import SelectedSet
from torchpin.select.whole_lock import narrowed, narrowing

TIDY = ("TP411", "TP405", "TP406", "TP415", "TP409", "TP416")
"""Codes that are mended without a plan, in this order."""
UV_TOO = '; if uv locks this project, say client = "uv" in the profile or --client uv'
"""What is said of a project of which nothing tells that it is uv's: pip is a guess there."""


class Draft(NamedTuple):
    """One way to write a plan, and where each group then finds its builds."""

    text: str
    enabled: Mapping[str, str] = {}
    """Group → the extra that it installs after a split."""
    lead: str | None = None
    """The text of the workspace's root, where it changes too."""


class ProjectFix(ProjectPlans):
    """Plans one project file."""

    def __init__(
        self,
        document: Document,
        ways: tuple[Way, ...],
        context: Context,
        policy: str,
        codes: Collection[str] = (),
    ) -> None:
        super().__init__(document, ways, context, policy)
        self.before = self.proof.selected(document, {})
        self.proof.follow = frozenset(
            one.name for one in document.declarations if one.name in FOLLOWERS
        )
        self.moved: frozenset[str] = frozenset()
        """Packages that follow torch, and whose pins the plan moves."""
        self.codes = codes
        """Those of the project's findings."""
        lock = next((way.install.lock for way in ways if way.install.lock), None)
        self.command = relock_command(lock, self.declared()) if lock is not None else None
        self.tidy = self.tidied()
        """The fix of what concerns the layout of sources alone."""

    def fix(self) -> Fix | None:
        """Return the least edit after which everything runs, or advice."""
        if self.proof.holds(self.before):
            return self.left_alone()
        if self.tidy is not None and self.mended(self.tidy):
            return self.tidy
        outcome = self.solve()
        if outcome is None:
            return self.tidy
        unfit = unfit_of(outcome)
        if unfit:
            if self.breaks(unfit):
                return Fix(DISPLAY, self.shown(outcome))
            self.proof.follow -= unfit
            if self.proof.holds(self.before):
                left = self.left_alone()
                return Fix(DISPLAY, self.shown(outcome)) if left is None else left
        plans = (*outcome.plans, *outcome.alternative)
        self.moved = frozenset(name for plan in plans for name in plan.moved)
        for draft, where in self.drafts(outcome):
            fix = self.proved(draft, where)
            if fix is not None:
                return fix
        return Fix(DISPLAY, self.shown(outcome)) if outcome.plans else None

    def left_alone(self) -> Fix | None:
        """Return what is to do where the manifest is right."""
        if self.tidy is not None or self.command is None:
            return self.tidy
        return Fix(DISPLAY, "the manifest is right; the lock is not", (), self.command)

    def breaks(self, unfit: frozenset[str]) -> bool:
        """True if a package works today of which no version fits the plan."""
        return any(
            any(one.package == package and one.build is not None for one in chosen.selections)
            and self.proof.runs(chosen, packages=(package,))
            for chosen in self.before
            for package in unfit
        )

    def shown(self, outcome: Outcome) -> str:
        """Return a plan as advice."""
        why = [unfit_text(*one) for plan in outcome.plans for one in plan.unfit]
        return "; ".join([plans_text(outcome.plans), *dict.fromkeys(why), self.advice(outcome)])

    def proved(self, draft: Draft, where: str) -> Fix | None:
        """Return the draft as a fix if everything runs after it."""
        edits = difference(self.document.text, draft.text)
        if not edits:
            return None
        files = [FileEdits(self.document, edits)]
        lead = None
        if draft.lead is not None and self.lead is not None:
            lead = read_pyproject(self.lead.path, self.lead.encode(draft.lead))
            files.append(FileEdits(self.lead, difference(self.lead.text, draft.lead)))
        now = self.proof.selected(self.reread(draft.text), draft.enabled, lead)
        if not self.proof.holds(now):
            return None
        safe = same_torch(self.before, now) and not draft.enabled
        if self.moved and all(one.conflict is None for one in self.before):
            safe = False  # the pin could be installed, and becomes another
        message = f"{self.told(now)}{where}"
        return Fix(SAFE if safe else UNSAFE, message, tuple(files), self.command)

    def told(self, sets: list[SelectedSet]) -> str:
        """Return what each group gets, from the first way in that serves it."""
        first: dict[str, SelectedSet] = {}
        for one in sets:
            if self.proof.runs(one):
                first.setdefault(one.target.group.name, one)
        return sets_text(sets, first, self.moved)

    def reread(self, text: str) -> Document:
        """Return the document that a new text makes."""
        return uv_edit.read_again(self.document, text)

    def advice(self, outcome: Outcome) -> str:
        """Return what to do where nothing is written (F5)."""
        client, plans = self.proof.client, outcome.plans
        if client == "uv":
            return "not written into this file"
        if client not in ("poetry", "pdm") and self.project.tool in ("pip", "hatch"):
            name = "Hatch" if self.project.tool == "hatch" else "pip"
            file = base_name(self.document.path)
            told = f"{name} reads no index from {file}: put these into a constraints file"
            return told + (UV_TOO if self.guessed() else "")
        tool = client if client in ("poetry", "pdm") else self.project.tool
        if len(plans) != 1 or outcome.unserved:
            return f"edit the sources of {tool} by hand"
        plan = plans[0]
        pins = " ".join(f"{name}=={version}" for name, version in plan.versions)
        first = left_out(self.project.requires_python, plan, self.python_key())
        if plan.home == "pypi":
            return f"by hand: {first}`{tool} add {pins}`"
        if tool == "poetry":
            source = f"pytorch-{plan.channel}".replace(".", "-")
            return (
                f"by hand: {first}`poetry source add --priority explicit {source} "
                f"{plan.index_url}`, "
                f"then `poetry add --source {source} {pins}`"
            )
        return (
            f"by hand: {first}a [[tool.pdm.source]] of {plan.index_url} that includes these "
            f"packages, then `pdm add {pins}`"
        )

    def guessed(self) -> bool:
        """True if nothing but the lack of another tool's tables and lock speaks for pip."""
        return (
            self.document.kind == "pyproject"
            and self.project.tool == "pip"
            and not any(one.target.group.client for one in self.before)
        )

    # -- what is mended without a plan

    def tidied(self) -> Fix | None:
        """Return the fix of the findings that concern the layout of sources alone."""
        if self.proof.client != "uv" or not set(self.codes) & set(TIDY):
            return None
        text, done = self.document.text, []
        for code in TIDY:
            if code not in self.codes:
                continue
            now = self.reread(text)
            writer = UvWriter(now, self.declared(), self.systems(), self.lead)
            writer.triton = lambda channel: triton_name(channel, self.context)
            writes: dict[str, Callable[[], str]] = {
                "TP405": writer.make_explicit,
                "TP406": writer.mark_linux,
                "TP409": writer.declare_conflicts,
                "TP411": writer.scope_by_extra,
                "TP415": writer.route_the_rest,
                "TP416": partial(own_sources, writer),
            }
            try:
                new = writes[code]()
            except ShapeError:
                continue
            if writer.lead_text is not None:
                continue  # the root of the workspace is not tidied up for a member
            if new != text:
                text = new
                done.append(code)
        edits = difference(self.document.text, text)
        if not edits:
            return None
        after = self.proof.selected(self.reread(text), {})
        if not self.proof.no_worse(self.before, after):
            return None
        places = asked_places(self.reread(text)) - asked_places(self.document)
        safe = same_torch(self.before, after) and not places
        safety = SAFE if safe else UNSAFE
        words = {
            "TP405": "explicit = true",
            "TP406": "a marker that leaves macOS to PyPI",
            "TP409": "declared conflicts",
            "TP411": "the extra as extra",
            "TP415": "sources for the whole family",
            "TP416": OWN_SOURCE,
        }
        if ("torch", "extra:pypi") in places:
            words["TP409"] += ", and an extra pypi for what the base install brings"
        message = ", ".join(words[code] for code in done)
        return Fix(safety, message, (FileEdits(self.document, edits),), self.command)

    def mended(self, fix: Fix) -> bool:
        """True if everything runs after a fix."""
        from torchpin.documents.base import apply_edits

        text = apply_edits(self.document.text, fix.edits[0].edits)
        return self.proof.holds(self.proof.selected(self.reread(text), {}))

    # -- ways to write it

    def drafts(self, outcome: Outcome) -> Iterator[tuple[Draft, str]]:
        """Yield ways to write the outcome, the one nearest to the file first."""
        if outcome.unserved:
            return
        if self.proof.client in ("poetry", "pdm"):
            yield from self.routed(outcome)
        elif self.proof.client == "uv":
            parts = outcome.alternative or (outcome.plans if len(outcome.plans) > 1 else ())
            kinds = [part for part in parts if any(one.group.gpus for one in part.targets)]
            single = len(outcome.plans) == 1
            if parts and (len(kinds) > 1 or not single) and self.document.kind != "script":
                yield from self.splits(parts)
            if single:
                yield from self.singles(outcome.plans[0])

    def singles(self, plan: Plan) -> Iterator[tuple[Draft, str]]:
        """Yield ways to write one plan for all."""
        writer = self.writer()
        writer.names += self.routed_too(plan)
        if plan.home == "channel":
            used = any(
                source.value == name
                for sibling in self.proof.siblings
                if sibling.project is not None
                for source in sibling.project.sources
                for name in {one.name for one in self.project.indexes}
            )
            failing = [one.target for one in self.before if not self.proof.runs(one)]
            writes: list[Callable[[], str]] = [
                lambda: writer.swap(plan, failing, rename=not used),
                lambda: writer.route(plan),
            ]
            for write in writes:
                text = written(write)
                if text is not None:
                    where = f", by explicit sources of {plan.channel}"
                    yield Draft(text, {}, writer.lead_text), where
            if writer.scoped and self.document.kind != "script":
                yield from self.splits((plan,))
        else:
            text = written(lambda: writer.repin(plan))
            if text is not None:
                yield Draft(text), ""

    def splits(self, parts: tuple[Plan, ...]) -> Iterator[tuple[Draft, str]]:
        """Yield ways to give groups an extra of their own.

        Groups that the file serves keep what they have; CPU groups may stay on the plain install.
        """
        writer = self.writer()
        good = self.proof.served(self.before) if writer.scoped else {}
        todo = [
            target
            for part in parts
            for target in part.targets
            if not good.get(target.group.name, False)
        ]
        gpus = [target for target in todo if target.group.gpus]
        tried: list[list[Target]] = []
        for some in (gpus, todo):
            if not some or some in tried:
                continue
            tried.append(some)
            for plans in self.on_channels(parts, some):
                enabled = {
                    target.group.name: channel
                    for channel, plan in plans.items()
                    for target in plan.targets
                }
                common = [set(self.routed_too(plan)) for plan in plans.values()]
                too = [n for n in writer.followers if all(n in one for one in common)]
                writer.names = [*self.declared(), *too]
                text = written(lambda plans=plans: writer.extras(plans))  # type: ignore[misc]
                if text is not None:
                    names = ", ".join(f"{group} {extra}" for group, extra in enabled.items())
                    yield Draft(text, enabled, writer.lead_text), f" (extras: {names})"

    def python_key(self) -> str:
        """Return the key in which the project says for which Pythons it is."""
        span = self.project.requires_python_span
        if span is None:
            return "requires-python"
        text = self.document.text
        line = text[text.rfind("\n", 0, span.start) + 1 : span.start]
        return "python" if line.strip(" \t\"'").startswith("python") else "requires-python"

    def routed(self, outcome: Outcome) -> Iterator[tuple[Draft, str]]:
        """Yield the way to write one plan for all into a project of Poetry (F4) or PDM."""
        from torchpin.rewrite import pdm_edit, poetry_edit

        if len(outcome.plans) != 1:
            return
        plan = outcome.plans[0]
        route = poetry_edit.route if self.proof.client == "poetry" else pdm_edit.route
        names = [*self.declared(), *self.routed_too(plan)]
        text = written(lambda: route(self.document, plan, names))
        if text is not None:
            where = f", by explicit sources of {plan.channel}" if plan.home == "channel" else ""
            yield Draft(text), where


def left_out(requires_python: str | None, plan: Plan, key: str = "requires-python") -> str:
    """Return what to do first where a package is not for some Python that a project admits, in the
    ``key`` that says so.

    Poetry and PDM lock for all Pythons of a project; torchvision since 0.28 leaves out 3.14.1,
    torch since 2.15 Python 3.10.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        admitted = SpecifierSet(requires_python or "")
    except InvalidSpecifier:
        return ""
    bounds: dict[str, str] = {}
    for _, package, build in plan.builds:
        wanted = narrowing(admitted, build.requires_python or "")
        if wanted:
            bounds.setdefault(f"{package} {build.version}", wanted)
    if not bounds:
        return ""
    new = narrowed(requires_python or "", ",".join(bounds.values()))
    if new is None:
        return ""
    (name, wanted), *more = bounds.items()
    if not more and wanted.startswith("!=") and "," not in wanted:
        return (
            f"first leave Python {wanted[2:]} out ({key} {new}), for which "
            f"{name} is not made, then "
        )
    told = " and ".join(f"{title} for Python {made}" for title, made in bounds.items())
    return f"first write {key} {new} ({told}), then "


def asked_places(document: Document) -> set[tuple[str, str]]:
    """Return which packages a file asks for, and where; constraints left out."""
    return {
        (one.name, one.scope)
        for one in document.declarations
        if one.scope not in ("build", "constraint", "override")
    }


def written(write: Callable[[], str]) -> str | None:
    """Return what a writer writes; None where the file's shape does not allow it."""
    try:
        return write()
    except ShapeError:
        return None


def of_script(fix: Fix | None, root: Document) -> Fix | None:
    """Return a fix of the TOML in a script's block as one of the script."""
    if fix is None or root.kind != "script" or not fix.edits:
        return fix
    from torchpin.documents.script_block import commented

    return fix._replace(edits=tuple(FileEdits(root, commented(one.edits)) for one in fix.edits))


def difference(before: str, after: str) -> tuple[Edit, ...]:
    """Return the edits, line by line, that turn one text into another."""
    from difflib import SequenceMatcher

    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    edits: list[Edit] = []
    for tag, one, two, three, four in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            edits.append(Edit(Span(starts[one], starts[two]), "".join(new[three:four])))
    return tuple(edits)


def plans_text(plans: Iterable[Plan]) -> str:
    """Return plans for people, public versions only: sources carry the channel."""
    parts = []
    for plan in plans:
        pins = " ".join(f"{package} {version}" for package, version in plan.versions)
        places: dict[str, list[str]] = {}
        for target in plan.targets:
            places.setdefault(_where(plan, target.group.platform), []).append(target.group.name)
        for where, names in places.items():
            parts.append(f"{', '.join(dict.fromkeys(names))}: {pins} ({where})")
    return " · ".join(parts)


def _where(plan: Plan, platform: str) -> str:
    """Return where a plan takes its builds from on a platform: on macOS seldom from its channel."""
    homes = {build.home for place, _, build in plan.builds if place == platform}
    if plan.home == "channel" and homes == {"pypi"}:
        return "PyPI"
    return f"channel {plan.channel}" if plan.home == "channel" else f"PyPI, {plan.channel}"
