"""What is installed beside a torch build, by the resolver's own space."""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.catalog.model import Build
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.judge.model import RUNS, Reason
from torchpin.matrix.facts import BUILD, COMPANION, Facts, Kind
from torchpin.named import NamedTuple
from torchpin.plugin.plan import ADDED
from torchpin.resolve.space import AT_MOST_PARTLY, PYPI, key_of


class Companion(NamedTuple):
    """A version of a package that works beside a torch build."""

    package: str
    full_version: str
    pair: int
    """How well the two accept each other: ``resolve.space.LEVELS``."""
    pythons: str
    """A digit a Python: the level there."""
    kinds: str
    """A digit a kind of GPU: the level there, without a driver."""
    floor: str
    """The lowest glibc or macOS; ``""``: not known."""
    title: str
    reasons: tuple[Reason, ...]
    """Why the two go together; titles are marks. Where nothing is asked of the other: that it is
    published."""


def companions(
    torch: Build, facts: Facts, pythons: Sequence[Python], kinds: Sequence[Kind]
) -> tuple[Companion, ...]:
    """Return the companions of a torch build, best first; those that run nowhere are left out."""
    found = []
    for package in ADDED:
        for version in facts.catalog.partners(torch.version, package):
            build = _place(package, version, torch, facts)
            if build is None:
                continue
            pair = facts.space.pair_level(build, torch)
            if pair > AT_MOST_PARTLY:
                continue
            beside = facts.space.beside(build, torch)
            found.append(_companion(beside, pair, facts, pythons, kinds, _why(build, torch, facts)))
    return tuple(found)


def _place(package: str, version: str, torch: Build, facts: Facts) -> Build | None:
    """Return the build that lies where torch lies."""
    key = key_of(torch)
    for build in facts.space.builds(package, version, torch.platform).get(key, ()):
        if key == PYPI or build.channel == torch.channel:
            return build
    return None


def _why(build: Build, torch: Build, facts: Facts) -> tuple[Reason, ...]:
    """Return why two builds go together, as the judge says it."""
    found = facts.space.judge_pair(build, torch) or (
        Reason(
            "companion-exists",
            RUNS,
            f"{build.title} is published and asks for no version of torch",
            build.evidence,
            build.source,
        ),
    )
    return tuple(
        one._replace(
            text=one.text.replace(build.title, COMPANION).replace(torch.title, BUILD), gpu=None
        )
        for one in found
    )


def _companion(
    build: Build,
    pair: int,
    facts: Facts,
    pythons: Sequence[Python],
    kinds: Sequence[Kind],
    reasons: tuple[Reason, ...],
) -> Companion:
    bare = NodeGroup("", (), (), build.platform)
    level = facts.space.level

    def at(target: Target) -> str:
        return str(level(build, facts.space.intern(target)))

    return Companion(
        build.package,
        build.full_version,
        pair,
        "".join(at(Target(bare._replace(pythons=(one,)), one)) for one in pythons),
        "".join(
            at(Target(bare._replace(gpus=(one.gpu,), jetpack=one.context.jetpack), None))
            for one in kinds
        ),
        (build.macos if build.platform.startswith("macos") else build.glibc) or "",
        build.title,
        reasons,
    )
