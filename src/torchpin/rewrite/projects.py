"""Plans for projects (fix policy F3 to F6): tried from the least change on, and read again.

A uv project gets an explicit index and sources, never a label and never a cap. A split becomes one
extra a channel, with declared conflicts. Locks are not edited: their owner makes them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Document, Edit, Span
from torchpin.documents.project import Project
from torchpin.documents.pyproject import read_pyproject
from torchpin.fleet.model import Target
from torchpin.judge.model import FAILS, UNKNOWN
from torchpin.judge.verdict import judge, judge_companion
from torchpin.resolve import solve
from torchpin.resolve.model import Outcome, Plan, Request, Want
from torchpin.rewrite import uv_edit
from torchpin.rewrite.request import wants_from
from torchpin.rewrite.toml_edit import ShapeError, TomlText
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, SAFE, UNSAFE, FileEdits, Fix
from torchpin.select.model import Install, Placed, SelectedSet
from torchpin.select.projects import project_installs
from torchpin.select.selection import select

LINUX = "sys_platform == 'linux'"


class Draft(NamedTuple):
    """One way to write a plan, and where each target then finds its builds."""

    text: str
    enabled: tuple[tuple[str, str], ...] = ()
    """(group, extra): the extra that a group installs after a split."""


class ProjectFix:
    """Plans one project file."""

    def __init__(self, document: Document, ways: tuple[Way, ...], context: Context, policy: str):
        assert document.project is not None
        self.document = document
        self.project: Project = document.project
        self.ways = ways
        self.context = context
        self.policy = policy
        self.siblings = ways[0].install.siblings
        self.client = ways[0].install.client
        self.before = self.selected(document, ())

    # -- what the manifest installs, the lock aside

    def installs(self, document: Document, enabled: tuple[tuple[str, str], ...]) -> list[Install]:
        """Return the ways in of a manifest that the fleet uses."""
        names = {way.install.name for way in self.ways}
        extras = {extra for _, extra in enabled}
        return [
            install
            for install in project_installs(
                document, lock=None, siblings=self.siblings, client=self.client
            )
            if install.name in names or extras & set(install.extras)
        ]

    def selected(
        self, document: Document, enabled: tuple[tuple[str, str], ...]
    ) -> list[SelectedSet]:
        """Return what every target would get from a manifest."""
        wanted = dict(enabled)
        found: list[SelectedSet] = []
        for install in self.installs(document, enabled):
            for target in self.targets(install.name):
                extra = wanted.get(target.group.name)
                if extra is not None and extra not in install.extras:
                    continue
                if extra is None and wanted and set(install.extras) & set(wanted.values()):
                    continue
                found.append(select(install, target, self.context.catalog))
        return found

    def targets(self, name: str | None = None) -> tuple[Target, ...]:
        """Return the targets of the way of a name; of all ways if there is no such way."""
        ways = [way for way in self.ways if way.install.name == name] or list(self.ways)
        seen: dict[Target, None] = {}
        for way in ways:
            seen.update(dict.fromkeys(one.target for one in way.sets))
        return tuple(seen)

    # -- the plan

    def fix(self) -> Fix | None:
        """Return the least edit after which everything runs, or advice."""
        lock = next((way.install.lock for way in self.ways if way.install.lock), None)
        command = relock_command(lock, self.declared()) if lock is not None else None
        if self.holds(self.before):
            if lock is None:
                return None
            return Fix(DISPLAY, f"the manifest is right; the lock is not: {command}", (), command)
        if self.project.tool != "uv":
            return self.advice()
        outcome = self.solve()
        if outcome is None:
            return None
        for draft, text in self.drafts(outcome):
            edits = self.edits_of(draft)
            if edits is None:
                continue
            after = read_pyproject(self.document.path, self.document.encode(draft.text))
            now = self.selected(after, draft.enabled)
            if not self.holds(now):
                continue
            safety = SAFE if self.same_torch(now) and not draft.enabled else UNSAFE
            return Fix(safety, text, (FileEdits(self.document, edits),), command)
        plans = outcome.plans or ()
        return Fix(DISPLAY, f"{plans_text(plans)}; not written into this file") if plans else None

    def advice(self) -> Fix | None:
        """Return what to do where there is no place for an index in the file (F5)."""
        outcome = self.solve()
        if outcome is None or not outcome.plans:
            return None
        where = {
            "pip": "pip reads no index from pyproject.toml: put these into a constraints file",
            "hatch": "Hatch reads no index from pyproject.toml: put these into a constraints file",
        }.get(self.project.tool, f"edit the {self.project.tool} sources by hand")
        return Fix(DISPLAY, f"{plans_text(outcome.plans)}; {where}")

    def declared(self) -> list[str]:
        """Return the family packages that the file asks for, torch first."""
        names = {one.name for one in self.document.declarations if one.scope != "build"}
        return [name for name in FAMILY if name in names]

    def solve(self) -> Outcome | None:
        """Return the plan for the targets of all ways, from the channels where one is named."""
        targets = self.targets()
        if not targets or not self.declared():
            return None
        request = Request(self.wants(), targets, self.policy, self.current())
        return solve(request, self.context.catalog)

    def wants(self) -> tuple[Want, ...]:
        """Return what the plan must hold: the declarations of all ways together."""
        placed = [
            Placed(self.document, one) for one in self.document.declarations if one.scope != "build"
        ]
        family = [one for one in placed if one.declaration.name in FAMILY]
        return wants_from(self.document, family, placed, self.context, soften=False)

    def current(self) -> str | None:
        """Return the channel that torch comes from today."""
        for source in uv_edit.sources_of(self.project, "torch"):
            index = uv_edit.index_named(self.project, source.value)
            channel = uv_edit.channel_of(index) if index is not None else None
            if channel is not None:
                return channel
        for index in self.project.indexes:
            channel = uv_edit.channel_of(index)
            if channel is not None and not index.explicit:
                return channel
        return None

    # -- ways to write it

    def drafts(self, outcome: Outcome) -> Iterator[tuple[Draft, str]]:
        """Yield ways to write the outcome, least change first."""
        single = outcome.plans[0] if len(outcome.plans) == 1 and not outcome.unserved else None
        if single is not None:
            channel = self.channel_for(single)
            if channel is not None:
                for write in (self.swap, self.route):
                    draft = self.written(partial(write, channel, single))
                    if draft is not None:
                        yield draft, f"{plans_text([single])} by sources of pytorch-{channel}"
            if self.scoped() and channel is not None:
                enabled = tuple((target.group.name, channel) for target in single.targets)
                draft = self.written(partial(self.extras, {channel: single}), enabled)
                if draft is not None:
                    yield draft, f"extra {channel}: {plans_text([single])}"
        parts = outcome.alternative or (outcome.plans if len(outcome.plans) > 1 else ())
        if parts and not outcome.unserved:
            by_channel: dict[str, Plan] = {}
            enabled_list: list[tuple[str, str]] = []
            for part in parts:
                plan = part if part.home == "channel" else self.on_channel(part)
                channel = self.channel_for(plan) if plan is not None else None
                if plan is None or channel is None:
                    return
                by_channel[channel] = plan
                enabled_list += [(target.group.name, channel) for target in part.targets]
            draft = self.written(partial(self.extras, by_channel), tuple(enabled_list))
            if draft is not None:
                listed = "; ".join(
                    f"extra {channel}: {plans_text([plan])}" for channel, plan in by_channel.items()
                )
                yield draft, listed

    def channel_for(self, plan: Plan) -> str | None:
        """Return the channel that sources must name for a plan; None for PyPI's own builds."""
        return plan.channel if plan.home == "channel" else None

    def on_channel(self, plan: Plan) -> Plan | None:
        """Return the plan for the same targets from a channel."""
        request = Request(self.wants(), plan.targets, self.policy, None, (), False)
        outcome = solve(request, self.context.catalog)
        return outcome.plans[0] if len(outcome.plans) == 1 and not outcome.unserved else None

    def scoped(self) -> bool:
        """True if torch is routed by extra or group."""
        return any(one.extra or one.group for one in uv_edit.sources_of(self.project, "torch"))

    def written(
        self, write: Callable[[], str], enabled: tuple[tuple[str, str], ...] = ()
    ) -> Draft | None:
        """Return what a writer makes of the text; None where the file's shape does not allow it."""
        try:
            return Draft(write(), enabled)
        except ShapeError:
            return None

    def marker(self, plan: Plan) -> str:
        """Return the marker under which the channel's builds are taken."""
        if kind_of_label(plan.channel) == "cpu":
            return ""
        systems = {target.group.platform.split("-")[0] for target in plan.targets}
        if "windows" not in systems:
            return LINUX
        return "sys_platform == 'win32'" if systems == {"windows"} else "sys_platform != 'darwin'"

    def swap(self, channel: str, plan: Plan) -> str:
        """Point the index that torch comes from at the channel; mend pins and missing markers."""
        toml = TomlText(self.document.text, self.document.newline)
        sources = uv_edit.sources_of(self.project, "torch")
        if not sources or self.scoped():
            raise ShapeError("torch is not routed by one source")
        index = uv_edit.index_named(self.project, sources[0].value)
        if index is None or uv_edit.channel_of(index) is None:
            raise ShapeError("the source of torch is no channel")
        edits = uv_edit.swap_index_channel(self.document, self.project, index, channel)
        edits += uv_edit.pin_edits(self.document, dict(plan.versions))
        marker = self.marker(plan)
        for source in self.project.sources:
            if source.value == index.name and marker and not source.marker:
                edits.append(uv_edit.add_marker(toml, source, marker))
        toml.apply(merged(edits))
        return toml.text

    def route(self, channel: str, plan: Plan) -> str:
        """Route every declared family package to the channel's explicit index."""
        if self.scoped():
            raise ShapeError("torch is routed by extras")
        toml = TomlText(self.document.text, self.document.newline)
        edits = uv_edit.pin_edits(self.document, dict(plan.versions))
        for index in self.project.indexes:
            if index.tool == "uv" and uv_edit.channel_of(index) and not index.explicit:
                edits.append(uv_edit.make_explicit(toml, index))
        toml.apply(edits)
        name = uv_edit.ensure_index(toml, self.project, channel)
        entry = uv_edit.source_text(name, marker=self.marker(plan))
        names = self.declared()
        if "torch" not in names:
            names = ["torch", *names]
            toml.set_key(uv_edit.UV, "constraint-dependencies", '["torch"]')
        for package in names:
            uv_edit.set_source(toml, package, [entry])
        return toml.text

    def extras(self, plans: dict[str, Plan]) -> str:
        """Write one extra a channel, with sources by extra and declared conflicts."""
        toml = TomlText(self.document.text, self.document.newline)
        names = self.declared()
        have = {one.extra for one in uv_edit.sources_of(self.project, "torch") if one.extra}
        versions = [dict(plan.versions) for plan in plans.values()]
        common = {
            package: version
            for package, version in versions[0].items()
            if all(one.get(package) == version for one in versions)
        }
        toml.apply(uv_edit.pin_edits(self.document, common) if not have else [])
        project = self.project
        entries: dict[str, list[str]] = {name: [] for name in names}
        for source in project.sources:
            if source.package in entries and (source.extra or source.group):
                written = self.document.text[source.span.start : source.span.end]
                entries[source.package].append(written)
        for channel in plans:
            if channel in project.extras:
                raise ShapeError(f"there is an extra {channel} already")
            index = uv_edit.ensure_index(toml, project, channel)
            project = reread(self.document, toml)
            for package in names:
                entries[package].append(uv_edit.source_text(index, extra=channel))
            uv_edit.add_extra(toml, channel, self.requirements(names))
        for package, listed in entries.items():
            uv_edit.set_source(toml, package, listed)
        project = reread(self.document, toml)
        uv_edit.add_conflicts(toml, project, [*sorted(one for one in have if one), *plans])
        return toml.text

    def requirements(self, names: Iterable[str]) -> list[str]:
        """Return the requirement that an extra repeats for each package: the file's own."""
        found: dict[str, str] = {}
        for one in self.document.declarations:
            if one.name in names and one.scope != "build" and one.url is None:
                found.setdefault(one.name, f"{one.name}{one.specifier}")
        return [found[name] for name in names if name in found]

    # -- proof

    def edits_of(self, draft: Draft) -> tuple[Edit, ...] | None:
        """Return the draft as edits of the document; None if it changes nothing."""
        edits = difference(self.document.text, draft.text)
        return edits or None

    def holds(self, sets: list[SelectedSet]) -> bool:
        """True if every set installs, and runs on its target.

        Of several ways in without a mapping each target needs one that serves it.
        """
        good: dict[str, bool] = {}
        for chosen in sets:
            name = chosen.target.group.name
            runs = self.runs(chosen)
            bound = any(name in way.bound for way in self.ways)
            good[name] = (good.get(name, True) and runs) if bound else good.get(name, False) or runs
            if chosen.conflict is not None:
                return False
        return bool(good) and all(good.values())

    def runs(self, chosen: SelectedSet) -> bool:
        """True if the family of a set installs and runs together."""
        torch = next((one.build for one in chosen.selections if one.package == "torch"), None)
        if torch is None:
            return False
        for one in chosen.selections:
            if one.status == "skipped" or one.package not in FAMILY:
                continue
            if one.build is None:
                return False
            status = judge(one.build, chosen.target, self.context.drivers).status
            if status == FAILS or (status == UNKNOWN and one.package == "torch"):
                return False
            if one.package != "torch" and any(
                reason.status == FAILS for reason in judge_companion(one.build, torch)
            ):
                return False
        return True

    def same_torch(self, now: list[SelectedSet]) -> bool:
        """True if every target gets the torch version that it got before, or got none."""

        def versions(sets: list[SelectedSet]) -> dict[tuple[str | None, Target], str]:
            return {
                (chosen.install.name, chosen.target): one.build.version
                for chosen in sets
                for one in chosen.selections
                if one.package == "torch" and one.build is not None
            }

        old = versions(self.before)
        return all(old.get(key, version) == version for key, version in versions(now).items())


def merged(edits: list[Edit]) -> list[Edit]:
    """Return edits without repetitions."""
    return list(dict.fromkeys(edits))


def reread(document: Document, toml: TomlText) -> Project:
    """Return the project that the text under edit makes.

    Raises:
        ShapeError: the text is no project any more.
    """
    project = read_pyproject(document.path, document.encode(toml.text)).project
    if project is None:
        raise ShapeError("the edited file cannot be read")
    return project


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
        where = f"channel {plan.channel}" if plan.home == "channel" else f"PyPI, {plan.channel}"
        groups = ", ".join(dict.fromkeys(target.group.name for target in plan.targets))
        parts.append(f"{groups}: {pins} ({where})")
    return " · ".join(parts)


def relock_command(lock: Document, packages: Iterable[str]) -> str:
    """Return the command that makes a lock anew for some packages."""
    names = list(packages)
    tool = lock.lock.tool if lock.lock is not None else "uv"
    if tool == "poetry":
        return f"poetry update --lock {' '.join(names)}"
    if tool == "pdm":
        return f"pdm update --no-sync {' '.join(names)}"
    return "uv lock " + " ".join(f"--upgrade-package {name}" for name in names)
