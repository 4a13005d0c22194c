"""The resolvelib provider: candidates are versions, channels are virtual packages.

Every requirement is a set of allowed values with its provenance. torch's candidates are made
lazily, so that a solve judges no build that it does not look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torchpin.named import NamedTuple
from torchpin.resolve.model import Want
from torchpin.resolve.policy import companion_order, key_cost
from torchpin.resolve.space import PYPI, Lane, Option, Space

if TYPE_CHECKING:
    from torchpin.catalog.model import Build

MAX_ROUNDS = 5000


class Requirement(NamedTuple):
    """A set of allowed values for an identifier."""

    identifier: str
    """``torch``, ``torchvision`` … or ``channel@linux-x86_64``."""
    allowed: frozenset[str] | None
    """None: everything (the requirement only tells a preference)."""
    order: tuple[str, ...]
    """Preference; empty for a requirement that only restricts."""
    origin: str
    """Where it comes from, for people."""
    torch: str = ""
    """For a companion: the torch version that asks for it."""

    def allows(self, value: str) -> bool:
        """Return whether a value is allowed."""
        return self.allowed is None or value in self.allowed


class Candidate(NamedTuple):
    """A value of an identifier; a companion knows the torch that it was chosen for."""

    identifier: str
    value: str
    torch: str = ""


class Problem(NamedTuple):
    """One thing to solve: ``order`` are the torch versions that the wants allow, best first."""

    space: Space
    lanes: tuple[Lane, ...]
    wants: tuple[Want, ...]
    companions: tuple[str, ...]
    order: tuple[str, ...]
    policy: str
    current_channel: str | None
    cap: int
    """Highest level (see ``space.LEVELS``) of a build that may be taken."""


class Solution(NamedTuple):
    """What resolvelib found."""

    torch: str
    keys: tuple[tuple[Lane, str], ...]
    companions: tuple[tuple[str, str], ...]
    level: int


class Provider:
    """What resolvelib asks; see ``resolvelib.AbstractProvider`` for the contract."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._lanes = {f"channel@{lane.name}": lane for lane in problem.lanes}
        self._rank = {
            name: rank for rank, name in enumerate(("torch", *self._lanes, *problem.companions))
        }
        self._keys: dict[tuple[str, str], tuple[str, ...]] = {}
        self._companions: dict[tuple[str, str], tuple[str, ...]] = {}

    # What torch's versions allow ---------------------------------------------------------------

    def torch_keys(self, version: str, name: str) -> tuple[str, ...]:
        """Return the keys of a lane that a torch version and its companions allow, best first."""
        at = (version, name)
        found = self._keys.get(at)
        if found is None:
            found = self._keys[at] = tuple(self._find_keys(version, self._lanes[name]))
        return found

    def _find_keys(self, version: str, lane: Lane) -> list[str]:
        space, cap = self.problem.space, self.problem.cap
        ranked = []
        for key, (level, options) in space.torch_keys(version, lane).items():
            if level > cap:
                continue
            for package in self.problem.companions:
                fits = [
                    found
                    for companion in self.companion_versions(package, version)
                    if (found := self._fits(package, companion, version, key, lane)) is not None
                ]
                level = max(level, min(fits, default=cap + 1))
            if level <= cap:
                ranked.append((level, self._cost(version, key, lane, options[0]), key))
        return [key for _, _, key in sorted(ranked)]

    def _cost(self, version: str, key: str, lane: Lane, option: Option) -> tuple[Any, ...]:
        space = self.problem.space
        builds = space.builds("torch", version, option.platform)
        default = None
        for platform in (option.platform, "linux-x86_64"):
            pypi = space.builds("torch", version, platform).get(PYPI)
            if pypi and pypi[0].cuda:
                default = pypi[0].channel
                break
        return key_cost(
            key,
            builds[key][0].channel,
            current=self.problem.current_channel,
            default=default,
            cpu_only=not space.has_gpu(lane),
        )

    def companion_versions(self, package: str, version: str) -> tuple[str, ...]:
        """Return the versions of a companion for a torch version, best first."""
        at = (package, version)
        found = self._companions.get(at)
        if found is None:
            problem = self.problem
            usable = problem.space.versions(package)
            partners = [v for v in problem.space.catalog.partners(version, package) if v in usable]
            found = companion_order(package, partners, problem.wants, problem.policy)
            self._companions[at] = found
        return found

    def _fits(self, package: str, companion: str, version: str, key: str, lane: Lane) -> int | None:
        """Return the level of a companion beside torch at a place; None if it may not be taken."""
        space, cap = self.problem.space, self.problem.cap
        levels = [
            best[0]
            for option in lane.options
            if (best := space.companion(package, companion, version, key, option, lane.lenient))
        ]
        return min((level for level in levels if level <= cap), default=None)

    def torch_versions(self) -> Iterator[str]:
        """Yield the torch versions that are arc-consistent with lanes and companions."""
        for version in self.problem.order:
            if all(self.torch_keys(version, name) for name in self._lanes):
                yield version

    # What resolvelib asks ----------------------------------------------------------------------

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> str:
        """Return the identifier."""
        return requirement_or_candidate.identifier

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Any,
    ) -> int:
        """torch first, then the channels, then the companions."""
        return self._rank[identifier]

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[str],
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Any,
    ) -> Iterable[str]:
        """Look at all of them."""
        return identifiers

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Callable[[], Iterator[Candidate]]:
        """Return a factory of the candidates that all requirements allow, best first."""
        required = list(requirements[identifier])
        refused = set(incompatibilities[identifier])

        def values() -> Iterator[Candidate]:
            if identifier == "torch":
                found: Iterable[Candidate] = (
                    Candidate("torch", version) for version in self.torch_versions()
                )
            else:
                first = next(r for r in required if r.allowed is not None and r.order)
                hints = [value for r in required if r.allowed is None for value in r.order]
                order = dict.fromkeys((*(v for v in hints if first.allows(v)), *first.order))
                found = (Candidate(identifier, value, first.torch) for value in order)
            for candidate in found:
                if candidate not in refused and all(r.allows(candidate.value) for r in required):
                    yield candidate

        return values

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        """Return whether the value is allowed."""
        return requirement.allows(candidate.value)

    def get_dependencies(self, candidate: Candidate) -> list[Requirement]:
        """Return what a value asks of the others."""
        identifier, value, torch = candidate
        if identifier == "torch":
            found = []
            for name in self._lanes:
                keys = self.torch_keys(value, name)
                found.append(Requirement(name, frozenset(keys), keys, f"torch {value}", value))
            for package in self.problem.companions:
                versions = self.companion_versions(package, value)
                found.append(
                    Requirement(package, frozenset(versions), versions, f"torch {value}", value)
                )
            return found
        if identifier in self._lanes:
            return [*self._follow(identifier, value), *self._beside(identifier, value, torch)]
        return [
            Requirement(
                name,
                frozenset(
                    key
                    for key in self.torch_keys(torch, name)
                    if self._fits(identifier, value, torch, key, lane) is not None
                ),
                (),
                f"{identifier} {value}",
            )
            for name, lane in self._lanes.items()
        ]

    def _beside(self, identifier: str, key: str, torch: str) -> list[Requirement]:
        """The companions keep to the channel: none of them moves a channel that is chosen."""
        lane = self._lanes[identifier]
        return [
            Requirement(
                package,
                frozenset(
                    version
                    for version in self.companion_versions(package, torch)
                    if self._fits(package, version, torch, key, lane) is not None
                ),
                (),
                f"{identifier} {key}",
            )
            for package in self.problem.companions
        ]

    def _follow(self, identifier: str, key: str) -> list[Requirement]:
        """The leading lane's channel is preferred on the other lanes that need one like it."""
        names = list(self._lanes)
        if identifier != names[0] or key == PYPI:
            return []
        space = self.problem.space
        return [
            Requirement(name, None, (key,), f"{identifier} {key}")
            for name, lane in list(self._lanes.items())[1:]
            if lane.name.startswith("linux") or space.has_gpu(lane)
        ]


def run(problem: Problem) -> Solution | None:
    """Solve one problem; None if nothing is allowed."""
    provider = Provider(problem)
    if next(provider.torch_versions(), None) is None:
        return None
    from resolvelib import BaseReporter, ResolutionImpossible, Resolver

    roots = [Requirement("torch", frozenset(problem.order), problem.order, "the wants")]
    resolver: Any = Resolver(provider, BaseReporter())  # type: ignore[arg-type]
    try:
        mapping = resolver.resolve(roots, max_rounds=MAX_ROUNDS).mapping
    except ResolutionImpossible:
        return None
    torch = mapping["torch"].value
    keys = tuple((lane, mapping[f"channel@{lane.name}"].value) for lane in problem.lanes)
    return Solution(
        torch,
        keys,
        tuple((package, mapping[package].value) for package in problem.companions),
        max(problem.space.torch_keys(torch, lane)[key][0] for lane, key in keys),
    )


def builds_of(problem: Problem, solution: Solution) -> tuple[tuple[str, str, Build], ...]:
    """Return (platform, package, build) for every lane and package of a solution."""
    space = problem.space
    found: list[tuple[str, str, Build]] = []
    for lane, key in solution.keys:
        for option in lane.options:
            builds = [("torch", space.best("torch", solution.torch, key, option, lane.lenient))]
            builds += [
                (
                    package,
                    space.companion(package, version, solution.torch, key, option, lane.lenient),
                )
                for package, version in solution.companions
            ]
            if all(best is not None for _, best in builds):
                found += [(option.platform, name, best[1]) for name, best in builds if best]
                break
    return tuple(found)
