"""What a project asks for, as plans: of all groups together, of some, and from one channel."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from torchpin.catalog.model import FAMILY, FOLLOWERS
from torchpin.documents.base import Document
from torchpin.documents.project import Project
from torchpin.fleet.model import Target
from torchpin.resolve.model import Outcome, Plan, Request, Want
from torchpin.resolve.solve import solve
from torchpin.rewrite import uv_edit
from torchpin.rewrite.parts import holding, solve_parts
from torchpin.rewrite.project_proof import Proof
from torchpin.rewrite.request import fits_all, unfit_of, wants_from
from torchpin.rewrite.uv_project import UvWriter
from torchpin.rules.context import Context, Way
from torchpin.select.model import Placed
from torchpin.select.uv_settings import lead_of


class ProjectPlans:
    """Plans for the targets of one project file."""

    def __init__(
        self,
        document: Document,
        ways: tuple[Way, ...],
        context: Context,
        policy: str,
    ) -> None:
        assert document.project is not None
        self.document = editable(document)
        self.project: Project = document.project
        self.ways = ways
        self.context = context
        self.policy = policy
        self.proof = Proof(ways, context)
        lead = lead_of(document, self.proof.siblings)
        self.lead = None if lead is document else lead
        """The root of the workspace that the project is a member of."""

    # -- what is asked for

    def declared(self) -> list[str]:
        """Return the family packages that the file asks for, torch first."""
        names = {
            one.name
            for one in self.document.declarations
            if one.scope not in ("build", "constraint", "override")
        }
        return [name for name in FAMILY if name in names]

    def systems(self) -> set[str]:
        """Return the operating systems of the targets."""
        return {target.group.platform.split("-")[0] for target in self.proof.targets()}

    def family(self) -> list[Placed]:
        """Return the declarations of the family, of all ways together, and what follows torch."""
        names = (*FAMILY, *FOLLOWERS)
        return [one for one in self.placed() if one.declaration.name in names]

    def placed(self) -> list[Placed]:
        """Return everything that the file asks for, what builds it left out."""
        return [
            Placed(self.document, one) for one in self.document.declarations if one.scope != "build"
        ]

    def wants(self, family: Sequence[Placed], bound: Collection[str] = ()) -> tuple[Want, ...]:
        """Return what the plan must hold: the declarations that hold together."""
        return wants_from(
            self.document, family, self.placed(), self.context, soften=False, bound=bound
        )

    def current(self) -> str | None:
        """Return the channel that torch comes from today."""
        places = self.writer().places
        for source in uv_edit.sources_of(self.project, "torch"):
            index = uv_edit.index_named(places, source.value)
            channel = uv_edit.channel_of(index) if index is not None else None
            if channel is not None:
                return channel
        for index in places.indexes:
            channel = uv_edit.channel_of(index)
            if channel is not None and not index.explicit:
                return channel
        return None

    def writer(self) -> UvWriter:
        """Return what makes new texts of the file, and of the root of its workspace."""
        writer = UvWriter(self.document, self.declared(), self.systems(), self.lead)
        writer.followers = [
            name
            for name in dict.fromkeys(one.name for one in self.document.declarations)
            if name in FOLLOWERS
        ]
        writer.others_ask_for_torch = any(
            one.name == "torch" for other in self.proof.siblings for one in other.declarations
        )
        return writer

    def routed_too(self, plan: Plan) -> list[str]:
        """Return the packages that follow torch and whose build in a plan lies on its channel."""
        return [
            name
            for name in dict.fromkeys(one.name for one in self.document.declarations)
            if name in FOLLOWERS and any(n == name and b.home != "pypi" for _, n, b in plan.builds)
        ]

    # -- the plan

    def solve(self) -> Outcome | None:
        """Return the plan for the targets of all ways, from the channels where one is named."""
        targets = self.proof.targets()
        if not targets or not self.declared():
            return None
        request = Request((), targets, self.policy, self.current())
        outcome = solve_parts(request, self.family(), self.wants, self.context.catalog)
        unfit = unfit_of(outcome)
        if unfit:
            other = solve_parts(
                request,
                self.family(),
                lambda family: self.wants(family, unfit),
                self.context.catalog,
            )
            outcome = other if fits_all(other) else outcome
        return outcome

    def on_channels(self, parts: tuple[Plan, ...], some: list[Target]) -> Iterator[dict[str, Plan]]:
        """Yield the parts as plans from channels: with one torch version first, then each its own.

        One version for all groups keeps exact pins of the plain dependencies possible.
        """
        from packaging.version import Version

        mine = [
            part._replace(targets=tuple(one for one in part.targets if one in some))
            for part in parts
        ]
        mine = [part for part in mine if part.targets]
        lowest = min((dict(part.versions)["torch"] for part in mine), key=Version)
        own = dict.fromkeys(dict(part.versions)["torch"] for part in mine)
        for version in (lowest, None) if len(own) > 1 else (lowest,):
            found: dict[str, Plan] = {}
            for part in mine:
                plan = self.on_channel(part, version)
                if plan is None:
                    break
                have = found.get(plan.channel)
                targets = (*(have.targets if have else ()), *plan.targets)
                found[plan.channel] = plan._replace(targets=targets)
            else:
                yield self.agreed(found)

    def agreed(self, found: dict[str, Plan]) -> dict[str, Plan]:
        """Return plans with one version of each package that follows torch, where one fits all.

        A pin among the plain dependencies holds for every extra.
        """
        listed = [dict(plan.versions) for plan in found.values()]
        wishes: dict[str, str] = {}
        for name in FOLLOWERS:
            versions = dict.fromkeys(one[name] for one in listed if name in one)
            for version in versions if len(versions) > 1 else ():
                again = [
                    self.on_channel(plan, dict(plan.versions)["torch"], {name: version})
                    for plan in found.values()
                ]
                if all(
                    one is not None and dict(one.versions).get(name) == version for one in again
                ):
                    wishes[name] = version
        if not wishes:
            return found
        result: dict[str, Plan] = {}
        for channel, plan in found.items():
            one = self.on_channel(plan, dict(plan.versions)["torch"], wishes)
            if one is None or one.channel != channel:
                return found
            result[channel] = one
        return result

    def on_channel(
        self, part: Plan, version: str | None, wishes: Mapping[str, str] = {}
    ) -> Plan | None:
        """Return the plan for the targets of a part from a channel: today's, PyPI's, its own.

        ``wishes``: versions to take of packages that follow torch, in place of those of the file.
        """
        wants = self.wants([one for one in self.family() if holding(one.declaration, part.targets)])
        version = version or dict(part.versions)["torch"]
        pinned = tuple(
            want._replace(specifier=f"=={version}", soft=False)
            if want.package == "torch"
            else want._replace(specifier=f"=={wishes[want.package]}")
            if want.package in wishes
            else want
            for want in wants
        )
        pypi = self.context.catalog.find(
            "torch", version=version, home="pypi", platform="linux-x86_64"
        )
        names = [self.current(), *(build.channel for build in pypi)]
        names.append(part.channel if part.home == "channel" else None)
        asked = [(name,) for name in dict.fromkeys(names) if name is not None]
        for channels in (*asked, ()):
            request = Request(pinned, part.targets, self.policy, None, channels, False)
            outcome = solve(request, self.context.catalog)
            if len(outcome.plans) == 1 and not outcome.unserved:
                plan = outcome.plans[0]
                if plan.home == "channel":
                    return plan
        return None


def editable(document: Document) -> Document:
    """Return the document whose text is edited: of a script the TOML of its block."""
    if document.kind != "script":
        return document
    from torchpin.documents.script_block import twin

    return twin(document)
