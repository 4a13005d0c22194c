"""A uv project with one plan written into it: by sources of one index, or by extras of several."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from torchpin.catalog.labels import kind_of_label
from torchpin.documents.base import Declaration, Document, Edit
from torchpin.documents.project import Project, ProjectIndex, Source
from torchpin.fleet.model import Target
from torchpin.resolve.model import Plan
from torchpin.rewrite import uv_edit
from torchpin.rewrite.parts import holding, versions_for
from torchpin.rewrite.toml_edit import ShapeError, TomlText, inline, text_of
from torchpin.rewrite.uv_edit import LINUX
from torchpin.select.environments import marker_holds


class UvWriter:
    """Makes new texts of one ``pyproject.toml``; each method begins with the text as it is.

    Every method raises ``ShapeError`` where the file's layout does not allow it.
    """

    def __init__(
        self,
        document: Document,
        names: Sequence[str],
        systems: Iterable[str] = ("linux",),
        lead: Document | None = None,
    ) -> None:
        if document.project is None:
            raise ShapeError("the file is no project")
        self.document = document
        self.project: Project = document.project
        self.names = list(names)
        """Family packages that the file asks for, torch first."""
        self.systems = set(systems)
        """Operating systems of the fleet: ``linux``, ``windows``, ``macos``."""
        self.lead = lead
        """Of a member of a workspace: the manifest of its root, which has the indexes."""
        self.followers: list[str] = []
        """Packages that follow torch: their pins move, too."""
        self.others_ask_for_torch = False
        """True if another manifest of the workspace names torch."""
        self.triton: Callable[[str], str] = str
        """The name of the triton that torch of a ROCm or XPU channel requires."""
        self.lead_toml: TomlText | None = None
        """What the last method has made of it."""

    def marker_for(self, channel: str) -> str:
        """Return the marker that a source of a channel needs: macOS has no GPU builds."""
        if kind_of_label(channel) == "cpu":
            return ""
        if "windows" not in self.systems:
            return LINUX
        return "sys_platform != 'darwin'" if len(self.systems) > 1 else "sys_platform == 'win32'"

    @property
    def scoped(self) -> bool:
        """True if torch is routed by extra or group."""
        return any(scope_of(one) for one in uv_edit.sources_of(self.project, "torch"))

    def toml(self) -> TomlText:
        """Return the text to edit; that of the workspace's root is as it was again."""
        lead = self.lead
        self.lead_toml = TomlText(lead.text, lead.newline) if lead is not None else None
        return TomlText(self.document.text, self.document.newline)

    @property
    def lead_text(self) -> str | None:
        """The text of the workspace's root after the last method; None if it is as it was."""
        if self.lead is None or self.lead_toml is None or self.lead_toml.text == self.lead.text:
            return None
        return self.lead_toml.text

    def shared(self, toml: TomlText) -> tuple[TomlText, Project]:
        """Return the text with the indexes and constraints, and the project that it makes now."""
        if self.lead is None or self.lead_toml is None:
            return toml, reread(self.document, toml)
        return self.lead_toml, reread(self.lead, self.lead_toml)

    @property
    def places(self) -> Project:
        """The project with all indexes that its sources may name."""
        have = self.lead.project.indexes if self.lead and self.lead.project else ()
        return self.project._replace(indexes=(*self.project.indexes, *have))

    def pin_edits(self, plan: Plan) -> list[Edit]:
        """Return the edits that move exact pins to the versions of a plan."""
        return uv_edit.pin_edits(self.document, lambda one: versions_for(plan, one))

    # -- one plan for all

    def repin(self, plan: Plan) -> str:
        """Move exact pins to the plan's versions."""
        toml = self.toml()
        toml.apply(self.pin_edits(plan))
        return toml.text

    def swap(self, plan: Plan, failing: Iterable[Target], *, rename: bool) -> str:
        """Point the index that torch comes from on the failing targets at the plan's channel."""
        if self.scoped:
            raise ShapeError("torch is routed by extra or group")
        index = self.index_of(failing)
        toml = self.toml()
        users = [one for one in self.project.sources if one.value == index.name]
        edits = self.pin_edits(plan)
        have = uv_edit.index_of_channel(self.places, plan.channel)
        if have is not None and have != index:
            name = have.name or ""
            edits += [Edit(one.value_span, name) for one in users if one.value_span is not None]
        elif index not in self.project.indexes:
            raise ShapeError("the index stands in the root of the workspace")
        else:
            more, name = uv_edit.swap_index_channel(
                self.document, self.project, index, plan.channel, rename=rename
            )
            edits += more
            name = name or uv_edit.free_name(self.project, plan.channel)
            if not index.explicit:
                edits += uv_edit.make_explicit(toml, index, name)
        marker = self.marker_for(plan.channel)
        edits += [uv_edit.add_marker(toml, one, marker) for one in users if not one.marker]
        toml.apply(unique(edits))
        markers = {one.marker for one in uv_edit.sources_of(self.project, "torch")}
        kept = markers.pop() if len(markers) == 1 else None
        for package in self.names:
            if not uv_edit.sources_of(self.project, package):
                entry = uv_edit.source_text(name, marker=kept or marker)
                uv_edit.set_source(toml, package, [entry])
        return toml.text

    def index_of(self, failing: Iterable[Target]) -> ProjectIndex:
        """Return the one index that torch comes from on some targets."""
        names = {
            source.value
            for source in uv_edit.sources_of(self.project, "torch")
            for target in failing
            if source.kind == "index" and marker_holds(source.marker, target) is not False
        }
        if len(names) != 1:
            raise ShapeError("torch is not routed by one source")
        index = uv_edit.index_named(self.places, names.pop())
        if index is None or uv_edit.channel_of(index) is None:
            raise ShapeError("the source of torch is no channel")
        return index

    def route(self, plan: Plan) -> str:
        """Route every declared family package to the explicit index of the plan's channel."""
        self.only_plain_sources(self.names)
        toml = self.toml()
        toml.apply(self.pin_edits(plan))
        for index in self.project.indexes:
            if index.tool == "uv" and uv_edit.channel_of(index) and not index.explicit:
                self.explicit(toml, index)
        name = self.index_for(toml, plan.channel)
        self.route_to(toml, name, self.marker_for(plan.channel), dict(plan.versions)["torch"])
        return toml.text

    def index_for(self, toml: TomlText, channel: str) -> str:
        """Return the name of the explicit index of a channel; it is added where indexes stand."""
        have = uv_edit.index_of_channel(reread(self.document, toml), channel)
        if have is not None and have.name is not None:
            return have.name
        return uv_edit.ensure_index(*self.shared(toml), channel)

    def same_index(self, toml: TomlText, index: ProjectIndex) -> ProjectIndex:
        """Return an index of the file as it stands in the text under edit."""
        for one in reread(self.document, toml).indexes:
            if (one.name, one.url) == (index.name, index.url):
                return one
        raise ShapeError("the index is lost")

    def route_to(self, toml: TomlText, name: str, marker: str, version: str) -> None:
        """Write the sources of the family; torch that only others ask for gets a constraint."""
        entry = uv_edit.source_text(name, marker=marker)
        names = self.names
        if "torch" not in names:
            bound = f"torch>={version.partition('.')[0]}"
            if not any(one.name == "torch" for one in self.document.declarations):
                uv_edit.add_constraint(self.shared(toml)[0], bound)
            if self.lead_toml is not None:
                self.route_in_lead(self.lead_toml, entry)
            else:
                names = ["torch", *names]
        for package in names:
            have = uv_edit.sources_of(reread(self.document, toml), package)
            if len(have) == 1 and not have[0].listed and toml.text[have[0].span.start] != "{":
                uv_edit.point_source(toml, have[0], name, marker)
            else:
                uv_edit.set_source(toml, package, [entry])

    def route_in_lead(self, lead: TomlText, entry: str) -> None:
        """Give torch a source in the root of the workspace, where its constraint stands.

        Sources of the root reach every member that has none of its own.
        """
        assert self.lead is not None
        if self.others_ask_for_torch or uv_edit.sources_of(reread(self.lead, lead), "torch"):
            raise ShapeError("other members of the workspace ask for torch")
        uv_edit.set_source(lead, "torch", [entry])

    def only_plain_sources(self, names: Iterable[str]) -> None:
        """Refuse where a source would be lost that is no single unscoped index."""
        for package in names:
            have = uv_edit.sources_of(self.project, package)
            if len(have) > 1 or any(one.kind != "index" or scope_of(one) for one in have):
                raise ShapeError(f"{package} has sources of its own")

    # -- a split

    def extras(self, plans: Mapping[str, Plan]) -> str:
        """Write one extra a channel, with sources by extra and declared conflicts.

        The plain dependencies stay; sources without a scope go (uv refuses both together).
        """
        unseen = "torch" not in self.names
        names = ["torch", *self.names] if unseen else self.names
        scoped = self.scoped
        if not scoped:
            self.only_plain_sources(names)
        toml = self.toml()
        common = common_versions(plans, [*names, *self.followers])
        targets = [target for plan in plans.values() for target in plan.targets]

        def versions_of(one: Declaration) -> list[str]:
            return [common[one.name]] if one.name in common and holding(one, targets) else []

        toml.apply(uv_edit.pin_edits(self.document, versions_of))
        project = reread(self.document, toml)
        entries: dict[str, list[str]] = {name: [] for name in names}
        tables: dict[str, list[dict[str, str]]] = {}
        for source in project.sources:
            if source.package in entries and scope_of(source):
                if "extra" in (source.marker or ""):
                    raise ShapeError("an extra is written as a marker")
                if toml.text[source.span.start] != "{":
                    if not toml.text.startswith("[[", source.span.start):
                        raise ShapeError("the source is a table of its own")
                    tables[source.package] = []
                    continue
                written = toml.text[source.span.start : source.span.end]
                entries[source.package].append(written)
        kept = {name: len(listed) for name, listed in entries.items()}
        marker = self.kept_marker()
        requirements = self.requirements(toml)
        if unseen:  # torch, which others ask for, is named: only then a source reaches it
            major = min(dict(plan.versions)["torch"].partition(".")[0] for plan in plans.values())
            requirements = [f"torch>={major}", *requirements]
        for channel in plans:
            if channel in project.extras:
                raise ShapeError(f"there is an extra {channel} already")
            index = self.index_for(toml, channel)
            project = reread(self.document, toml)
            for package in names:
                entry = {"index": index, "extra": channel, "marker": marker}
                if package in tables:
                    tables[package].append(entry)
                else:
                    entries[package].append(inline(**entry))
            uv_edit.add_extra(toml, channel, requirements)
        for package, listed in entries.items():
            if package in tables:
                uv_edit.add_tables(toml, package, tables[package])
            else:
                uv_edit.extend_source(toml, package, listed, kept[package])
        self.conflict_routed(toml)
        return toml.text

    def kept_marker(self) -> str:
        """Return the marker that all CUDA sources of torch by extra have, ``""`` if none."""
        markers = {
            source.marker or ""
            for source in uv_edit.sources_of(self.project, "torch")
            if (source.extra or source.group) and self.is_cuda(source)
        }
        return markers.pop() if len(markers) == 1 else ""

    def is_cuda(self, source: Source) -> bool:
        """True if a source is a CUDA or ROCm channel."""
        index = uv_edit.index_named(self.places, source.value)
        channel = uv_edit.channel_of(index) if index is not None else None
        return channel is not None and kind_of_label(channel) != "cpu"

    def requirements(self, toml: TomlText) -> list[str]:
        """Return the requirement that an extra repeats for each package: the file's own."""
        document = uv_edit.read_again(self.document, toml.text)
        found: dict[str, str] = {}
        for one in document.declarations:
            if one.name in self.names and one.scope != "build" and one.url is None:
                found.setdefault(one.name, f"{one.name}{one.specifier}")
        return [found[name] for name in self.names if name in found]

    def conflict_routed(self, toml: TomlText) -> None:
        """Declare that all extras and groups that route torch exclude each other."""
        project = reread(self.document, toml)
        routed = [
            one
            for name in ("torch", *self.names)
            for one in uv_edit.sources_of(project, name)
            if one.extra or one.group
        ]
        extras = list(dict.fromkeys(one.extra for one in routed if one.extra))
        groups = list(dict.fromkeys(one.group for one in routed if one.group))
        if len(extras) + len(groups) > 1:
            uv_edit.add_conflicts(toml, project, extras, groups)

    # -- what needs no plan

    def make_explicit(self) -> str:
        """Make every channel explicit; what came from it unasked gets a source (TP405)."""
        toml = self.toml()
        for index in self.project.indexes:
            channel = uv_edit.channel_of(index)
            if channel is not None and index.tool == "uv-url":
                self.name_url(toml, index, channel)
                continue
            if index.tool != "uv" or channel is None or index.explicit:
                continue
            name = self.explicit(toml, index)
            if not any(uv_edit.sources_of(self.project, name) for name in ("torch", *self.names)):
                self.route_to(toml, name, self.marker_for(channel), "2")
        return toml.text

    def explicit(self, toml: TomlText, index: ProjectIndex) -> str:
        """Make an index explicit, and return its name: without one uv refuses it."""
        have = self.same_index(toml, index)
        name = have.name or uv_edit.free_name(
            reread(self.document, toml), uv_edit.channel_of(index) or "index"
        )
        toml.apply(uv_edit.make_explicit(toml, have, name))
        return name

    def name_url(self, toml: TomlText, index: ProjectIndex, channel: str) -> None:
        """Make a channel in ``extra-index-url`` an explicit index with sources.

        A setting of how to choose between indexes goes where none is left to choose from.
        """
        node = toml.spans.find(*uv_edit.UV, "extra-index-url")
        if index.scope or index.option != "--extra-index-url" or self.lead is not None:
            return
        if node is None or len(node.items or ()) != 1:
            raise ShapeError("several URLs stand in extra-index-url")
        toml.remove_key(uv_edit.UV, "extra-index-url")
        rest = [one for one in self.project.indexes if one is not index and not one.explicit]
        if not rest and toml.spans.find(*uv_edit.UV, "index-strategy") is not None:
            toml.remove_key(uv_edit.UV, "index-strategy")
        have = uv_edit.index_of_channel(reread(self.document, toml), channel)
        name = have.name if have is not None else None
        if name is None:
            name = uv_edit.ensure_index(toml, reread(self.document, toml), channel, index.url)
        if not any(uv_edit.sources_of(self.project, one) for one in ("torch", *self.names)):
            self.route_to(toml, name, self.marker_for(channel), "2")

    def mark_linux(self) -> str:
        """Give CUDA sources without scope and marker the Linux marker (TP406)."""
        toml = self.toml()
        toml.apply(
            [
                uv_edit.add_marker(toml, one, self.marker_for("cuda"))
                for one in self.project.sources
                if one.kind == "index"
                and not (one.marker or one.extra or one.group)
                and self.is_cuda(one)
            ]
        )
        return toml.text

    def declare_conflicts(self) -> str:
        """Declare the conflicts of extras and groups that route torch (TP409)."""
        toml = self.toml()
        self.conflict_routed(toml)
        if toml.text == self.document.text:
            self.part_from_base(toml)
        return toml.text

    def part_from_base(self, toml: TomlText) -> None:
        """Keep the one extra or group that routes torch apart from the base install.

        uv keeps parts apart that conflict with each other, and the base install is no part; so an
        extra ``pypi`` comes into being, which brings what the base brings.
        """
        scoped = [one for one in self.project.sources if one.package in ("torch", *self.names)]
        parts = dict.fromkeys((one.extra, one.group) for one in scoped)
        if len(parts) != 1 or "pypi" in self.project.extras:
            raise ShapeError("several parts are routed")
        ((extra, group),) = parts
        if extra is None and group is None:
            raise ShapeError("the source has no scope")
        routed = {one.package for one in scoped}
        names = [one.name for one in self.document.declarations if one.scope == ""]
        asked = [
            text
            for text in self.requirements(toml)
            if (name := re.split(r"[^A-Za-z0-9_-]", text)[0]) in routed and name in names
        ]
        if not asked:
            raise ShapeError("the base install asks for nothing that is routed")
        uv_edit.add_extra(toml, "pypi", asked)
        extras, groups = ([extra, "pypi"], []) if extra is not None else (["pypi"], [group or ""])
        uv_edit.add_conflicts(toml, reread(self.document, toml), extras, groups)

    def scope_by_extra(self) -> str:
        """Turn ``marker = "extra == 'X'"`` into ``extra = "X"`` (TP411)."""
        toml = self.toml()
        edits: list[Edit] = []
        for one in self.project.sources:
            if one.marker and "extra" in one.marker:
                edits += uv_edit.scope_by_extra(toml, one)
        toml.apply(edits)
        return toml.text

    def route_the_rest(self) -> str:
        """Give the family packages without a source the sources of the others (TP415)."""
        toml = self.toml()
        names = ["torch", *(name for name in self.names if name != "torch")]
        have = next((uv_edit.sources_of(self.project, n) for n in names if self.routed(n)), [])
        if not have or any(one.kind != "index" for one in have):
            raise ShapeError("there is no source to repeat")
        entries = [
            toml.text[one.span.start : one.span.end]
            if toml.text[one.span.start] == "{"
            else uv_edit.source_text(
                one.value, marker=one.marker or "", extra=one.extra or "", group=one.group or ""
            )
            for one in have
        ]
        self.route_triton(toml, have)
        if not self.routed("torch") and "torch" not in self.names:
            uv_edit.add_constraint(self.shared(toml)[0], "torch>=2")
        for name in names:
            if not uv_edit.sources_of(self.project, name):
                uv_edit.set_source(toml, name, entries)
        return toml.text

    def route_triton(self, toml: TomlText, have: Sequence[Source]) -> None:
        """Name the triton that a ROCm or XPU torch requires, and give it the source of torch.

        Raises:
            ShapeError: torch stands in extras or groups, or comes from several channels.
        """
        index = uv_edit.index_named(self.places, have[0].value)
        channel = (uv_edit.channel_of(index) if index is not None else None) or "cpu"
        kind = kind_of_label(channel)
        if kind not in ("rocm", "xpu"):
            return
        name = self.triton(channel)
        named = {one.name for one in self.document.declarations}
        if " " in name or any(one.package == name for one in self.project.sources):
            return
        torch = [one for one in self.document.declarations if one.name == "torch"]
        if len(have) != 1 or scope_of(have[0]) or any(one.scope for one in torch):
            raise ShapeError("torch is routed by extra, group or several sources")
        marker = have[0].marker or ""
        if name not in named:
            text = f"{name} ; {marker}" if marker else name
            toml.append_item(("project", "dependencies"), text_of(text))
        uv_edit.set_source(toml, name, [uv_edit.source_text(have[0].value, marker=marker)])

    def routed(self, name: str) -> bool:
        """True if a package has a source of an index."""
        return any(one.kind == "index" for one in uv_edit.sources_of(self.project, name))


def scope_of(source: Source) -> str:
    """Return what limits a source to an extra or group, ``""`` if nothing does."""
    found = re.search(r"\bextra\b.*", source.marker or "")
    return source.extra or source.group or (found.group() if found else "")


def common_versions(plans: Mapping[str, Plan], names: Iterable[str]) -> dict[str, str]:
    """Return the versions on which all plans agree."""
    listed = [dict(plan.versions) for plan in plans.values()]
    return {
        name: listed[0][name]
        for name in names
        if name in listed[0] and all(one.get(name) == listed[0][name] for one in listed)
    }


def unique(edits: list[Edit]) -> list[Edit]:
    """Return edits without repetitions."""
    return list(dict.fromkeys(edits))


def reread(document: Document, toml: TomlText) -> Project:
    """Return the project that the text under edit makes.

    Raises:
        ShapeError: the text is no project any more.
    """
    project = uv_edit.read_again(document, toml.text).project
    if project is None:
        raise ShapeError("the edited file cannot be read")
    return project
