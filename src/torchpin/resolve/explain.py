"""Why no single plan serves everything: a minimal conflicting set, found by deletion.

Every hard want and every entry of the fleet is a member. Members are left out one at a time; one
that can be left out while the rest still conflicts is no part of the explanation. What stays is
a set of which every member is needed (Junker's deletion method; it depends on the order, which is
fixed). See docs/explanation/resolution.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpin.evidence import PUBLISHED
from torchpin.fleet.model import Gpu, NodeGroup, Python, Target
from torchpin.judge.model import FAILS, Reason
from torchpin.named import NamedTuple
from torchpin.resolve.horizon import horizon
from torchpin.resolve.model import Conflict, Origin, Request, Want
from torchpin.resolve.space import PYPI, Lane, Option, Space

if TYPE_CHECKING:
    from torchpin.resolve.solve import Found

ANY_PLATFORM = "linux-x86_64"
"""What a platform is exchanged for when it is left out: where most builds are."""

_QUESTIONS = {
    "gpu": ("kernels", "vendor", "cpu-build", "libraries"),
    "driver": ("driver", "driver-branch"),
    "python": ("python",),
    "libc": ("glibc", "platform"),
    "platform": ("platform", "kernels", "macos"),
}


_KINDS = {"driver": "driver ", "python": "Python "}
"""What stands before the value of a member that has no word for itself."""


class Member(NamedTuple):
    """One thing that could be given up."""

    kind: str
    """``want``, ``gpu``, ``driver``, ``python``, ``libc``, ``platform`` or ``channels``."""
    group: int
    """Number of its node group; -1 for wants and options."""
    value: object
    origin: Origin


def _setting(group: NodeGroup, key: str) -> int:
    return next((s.line for s in group.settings if s.key == key), group.line)


def _entry(group: NodeGroup, key: str, text: str) -> Origin:
    return Origin(group.path, _setting(group, key), f"fleet {group.name}: {text}")


class Explainer:
    """The members of a request, and whether some of them can be had together."""

    def __init__(
        self, request: Request, space: Space, lenient: frozenset[Target] = frozenset()
    ) -> None:
        self.request = request
        self.space = space
        self.lenient = lenient
        self.free = (
            Space(
                space.catalog,
                avoid_inferred=space.avoid_inferred,
                judge_build=space.judge,
                judge_pair=space.judge_pair,
            )
            if space.channels or not space.pypi
            else space
        )
        self.groups = tuple(dict.fromkeys(target.group for target in request.targets))
        self._known: dict[frozenset[Member], Found | None] = {}

    def members(self) -> tuple[Member, ...]:
        """Return all members, in the order in which leaving them out is tried."""
        found: list[Member] = []
        for number, group in enumerate(self.groups):
            if group.platform != ANY_PLATFORM:
                text = f"platform {group.platform}"
                entry = _entry(group, "platform", text)
                found.append(Member("platform", number, group.platform, entry))
        for number, group in enumerate(self.groups):
            if group.glibc is not None or group.musl:
                text = "musl" if group.musl else f"glibc {group.glibc}"
                found.append(Member("libc", number, text, _entry(group, "glibc", text)))
        for number, group in enumerate(self.groups):
            found += [
                Member("python", number, python, _entry(group, "python", f"Python {python}"))
                for python in dict.fromkeys(
                    t.python for t in self.request.targets if t.group == group and t.python
                )
            ]
        for number, group in enumerate(self.groups):
            if group.driver is not None:
                entry = _entry(group, "driver", f"driver {group.driver}")
                found.append(Member("driver", number, group.driver, entry))
        wants = [Member("want", -1, w, w.origin) for w in self.request.wants if _binds(w)]
        found += [m for m in wants if m.value.package != "torch"]  # type: ignore[attr-defined]
        for number, group in enumerate(self.groups):
            found += [
                Member("gpu", number, gpu, _entry(group, "gpus", _gpu_text(gpu)))
                for gpu in dict.fromkeys(group.gpus)
            ]
        if self.free is not self.space:
            names = [*self.request.asked_channels, *(["PyPI"] if self.space.pypi else [])]
            text = f"only {' and '.join(names) or 'the channels of PyTorch'}"
            found.append(Member("channels", -1, text, Origin("<command line>", 0, text)))
        found += [m for m in wants if m.value.package == "torch"]  # type: ignore[attr-defined]
        return tuple(dict.fromkeys(found))

    def solve(self, kept: frozenset[Member]) -> Found | None:
        """Return the best answer to what is kept, or None."""
        if kept not in self._known:
            self._known[kept] = self._solve(kept)
        return self._known[kept]

    def _solve(self, kept: frozenset[Member]) -> Found | None:
        from torchpin.resolve.solve import aim_of, solve_lanes

        space = self.space if any(m.kind == "channels" for m in kept) else self.free
        values = {m.value for m in kept if m.kind == "want"}
        wants = tuple(w for w in self.request.wants if not _binds(w) or w in values)
        return solve_lanes(space, self.lanes(space, kept), aim_of(self.request, space, wants))

    def lanes(self, space: Space, kept: frozenset[Member]) -> tuple[Lane, ...]:
        """Return the lanes of the fleet with only the kept entries declared."""
        fixed: list[int] = []
        lenient: set[int] = set()
        free: list[Lane] = []
        for number, group in enumerate(self.groups):
            mine = [m for m in kept if m.group == number]
            targets = self._relaxed(group, mine)
            tolerant = any(t.group == group and t in self.lenient for t in self.request.targets)
            places = [group.platform]
            if group.platform != ANY_PLATFORM and not any(m.kind == "platform" for m in mine):
                places.append(ANY_PLATFORM)
            options = []
            for place in places:
                numbers = tuple(
                    space.intern(t._replace(group=t.group._replace(platform=place)))
                    for t in targets
                )
                options.append(Option(place, numbers))
                lenient.update(numbers if tolerant else ())
            if len(options) == 1:
                fixed += options[0].targets
            else:
                free.append(Lane(f"{group.platform}/{number}", tuple(options)))
        lanes = space.lanes(dict.fromkeys(fixed), frozenset(lenient))
        return (*lanes, *(lane._replace(lenient=frozenset(lenient)) for lane in free))

    def _relaxed(self, group: NodeGroup, mine: list[Member]) -> list[Target]:
        gpus = {m.value for m in mine if m.kind == "gpu"}
        pythons = {m.value for m in mine if m.kind == "python"}
        driver = any(m.kind == "driver" for m in mine)
        libc = any(m.kind == "libc" for m in mine)
        less = group._replace(
            gpus=tuple(g for g in group.gpus if g in gpus),
            driver=group.driver if driver else None,
            cuda_compat=group.cuda_compat if driver else None,
            glibc=group.glibc if libc else None,
            musl=group.musl and libc,
        )
        kept: list[Python | None] = [p for p in group.pythons if p in pythons]
        return [Target(less, python) for python in kept or [None]]

    def minimal(self) -> tuple[Member, ...]:
        """Return a minimal set of members that cannot be had together; empty if all can."""
        members = self.members()
        kept = dict.fromkeys(members)
        if self.solve(frozenset(kept)) is not None:
            return ()
        for member in members:
            rest = frozenset(m for m in kept if m != member)
            if self.solve(rest) is None:
                del kept[member]
        return tuple(kept)

    def conflicts(self) -> tuple[Conflict, ...]:
        """Return the explanation: the minimal set, wants first, with what each costs."""
        everything = frozenset(self.members())
        found = self.minimal()
        ordered = sorted(found, key=lambda m: (m.kind != "want", found.index(m)))
        return tuple(self._conflict(m, found, everything) for m in ordered)

    def _conflict(
        self, member: Member, found: tuple[Member, ...], everything: frozenset[Member]
    ) -> Conflict:
        rest = self.solve(everything - {member})
        text, evidence = self._says(member, found)
        return Conflict(member.origin, text, evidence, told(rest) if rest is not None else "")

    def _says(self, member: Member, found: tuple[Member, ...]) -> tuple[str, str]:
        """Return what a member of a minimal set demands, and how that is known."""
        from torchpin.resolve.policy import allowed

        if isinstance(member.value, Want):
            want = member.value
            versions = allowed((want,), want.package, self.space.versions(want.package))
            if not versions:
                return f"{member.origin.text}: no published version", PUBLISHED
            span = versions[0] if len(versions) == 1 else f"{versions[-1]} to {versions[0]}"
            return f"{member.origin.text} allows {want.package} {span}", PUBLISHED
        if member.kind == "channels":
            return f"{member.value} may be used", PUBLISHED
        if isinstance(member.value, Gpu):
            return self._says_gpu(member, member.value, found)
        reason = self._reason(member)
        if reason is not None:
            return reason.text, reason.evidence
        return member.origin.text, PUBLISHED

    def _says_gpu(self, member: Member, gpu: Gpu, found: tuple[Member, ...]) -> tuple[str, str]:
        """Return how far a GPU goes with what else of its nodes, and which sources, are in the set.

        Alone it may go further: it is the driver of its nodes, say, that stands in the way.
        """
        group = self.groups[member.group]
        mine = [m for m in found if m.group == member.group and m.kind in ("driver", "libc")]
        pythons = [m for m in found if m.group == member.group and m.kind == "python"]
        mine += pythons if len(pythons) == 1 else []
        (target,) = self._relaxed(group, [member, *mine])
        bound = any(m.kind == "channels" for m in found)
        space = self.space if bound else self.free
        last = horizon(target, self.space.catalog, space).last_build
        beside = " and ".join(f"{_KINDS.get(m.kind, '')}{m.value}" for m in mine)
        gpu_there = f"{_gpu_text(gpu)} with {beside}" if mine else _gpu_text(gpu)
        source = f" of {', '.join(self.request.asked_channels) or 'them'}" if bound else ""
        if last is None:
            runs = "is known to run" if mine else "runs"
            what = f"no published torch wheel{source} for {group.platform}"
            return f"{what} {runs} on {gpu_there}", PUBLISHED
        known = last.kernels.evidence if last.kernels is not None else last.evidence
        return f"the last torch{source} that runs on {gpu_there} is {last.place}", known

    def _reason(self, member: Member) -> Reason | None:
        """The first reason, newest torch first, why a build fails for this entry."""
        questions = _QUESTIONS[member.kind]
        for target in self.request.targets:
            if target.group != self.groups[member.group]:
                continue
            if member.kind == "python" and target.python != member.value:
                continue
            number = self.space.intern(target)
            for version in self.space.versions("torch"):
                keys = self.space.builds("torch", version, target.group.platform)
                for key in sorted(keys, key=lambda k: (k != PYPI, k)):
                    for build in keys[key]:
                        for reason in self.space.verdict(build, number).reasons:
                            if reason.status == FAILS and reason.question in questions:
                                return reason
        return None


def _binds(want: Want) -> bool:
    """Whether a want can stand in the way: hard bounds, and that a companion is wanted at all."""
    return want.package != "torch" or (not want.soft and bool(want.specifier.strip()))


def _gpu_text(gpu: Gpu) -> str:
    return f"{gpu.name} ({gpu.arch})" if gpu.arch and gpu.arch != gpu.name else gpu.name


def told(found: Found) -> str:
    """Return an answer for people: ``torch 2.10.0 (PyPI, cu128)``."""
    builds = dict.fromkeys(b.place for _, package, b in found.builds if package == "torch")
    return "torch " + " and ".join(builds)
