"""The PyTorch family as one part of somebody else's resolution.

A resolver of one's own that is built on resolvelib hands torch, torchvision, torchaudio and the
channels to ``Family.provider``, and everything else to itself. Families decide together: torch
first, then a channel for each platform, then the companions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torchpin.catalog.model import FAMILY
from torchpin.errors import UsageError
from torchpin.fleet.model import Target
from torchpin.judge.model import RUNS_VIA_PTX
from torchpin.resolve.model import Plan
from torchpin.resolve.provider import Candidate, Problem, Provider, Requirement, Solution
from torchpin.resolve.space import LEVELS, Space

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog


class FamilyProvider(Provider):
    """``Provider`` for requirements that come from outside as well."""

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Callable[[], Iterator[Candidate]]:
        """Return a factory of the candidates that all requirements allow, best first.

        What torch says of a companion tells the order; what others say only restricts it.
        """
        required = list(requirements[identifier])
        if identifier == "torch" or any(one.torch for one in required):
            ours = sorted(required, key=lambda one: not one.torch)
            return super().find_matches(identifier, {identifier: iter(ours)}, incompatibilities)
        refused = {one.value for one in incompatibilities[identifier]}
        values = [
            value
            for value in self.problem.space.versions(identifier)
            if value not in refused and all(one.allows(value) for one in required)
        ]
        # No torch is chosen yet: its preference is higher, so that these are never taken.
        return lambda: iter([Candidate(identifier, value) for value in values])


class Family:
    """The family on some targets, for a provider of one's own.

    Args:
        targets: where it must run: all of them.
        packages: what is decided together; torch is always among it. Of the family only these may
            be asked for.
        catalog: what exists; None: the catalog that torchpin uses.
        channels: if not empty, only these channels may be used.
        pypi: whether PyPI's own builds may be used.
        worst: the worst verdict of a build that may be taken: ``runs``, ``runs-via-ptx``,
            ``partly`` or ``unknown``.

    Raises:
        UsageError: no target, a package that is not of the family, or an unknown verdict.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        packages: Iterable[str] = ("torch", "torchvision"),
        *,
        catalog: Catalog | None = None,
        channels: Iterable[str] = (),
        pypi: bool = True,
        worst: str = RUNS_VIA_PTX,
    ) -> None:
        if catalog is None:
            from torchpin.catalog.store import load_catalog

            catalog = load_catalog()
        wanted = set(packages)
        if not targets or not wanted <= set(FAMILY):
            raise UsageError(f"a family needs targets, and packages out of {', '.join(FAMILY)}")
        if worst not in LEVELS:
            raise UsageError(f"no verdict {worst!r}: one of {', '.join(LEVELS)}")
        self.packages = tuple(name for name in FAMILY if name == "torch" or name in wanted)
        self.targets = tuple(targets)
        self._space = Space(catalog, pypi=pypi, channels=channels)
        self._numbers = tuple(dict.fromkeys(self._space.intern(one) for one in targets))
        self._problem = Problem(
            self._space,
            self._space.lanes(self._numbers),
            (),
            self.packages[1:],
            self._space.versions("torch"),
            "newest",
            None,
            LEVELS[worst],
        )
        self.provider = FamilyProvider(self._problem)
        """What to hand requirements, candidates and identifiers of the family to."""

    def owns(self, identifier: str) -> bool:
        """Tell whether an identifier belongs to the family: its packages and the channels."""
        return identifier in self.packages or identifier.startswith("channel@")

    def requirements(
        self, package: str, specifier: str = "", origin: str = ""
    ) -> tuple[Requirement, ...]:
        """Return what a dependency on a package of the family means to resolvelib.

        Args:
            package: one of ``packages``.
            specifier: PEP 440, without labels.
            origin: who asks, for messages.

        Raises:
            UsageError: another package, or a specifier that is not one.
        """
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        if package not in self.packages:
            raise UsageError(f"{package} is not one of {', '.join(self.packages)}")
        try:
            accepts = SpecifierSet(specifier)
        except InvalidSpecifier:
            raise UsageError(f"{specifier!r} is not a version specifier") from None
        versions = self._space.versions(package)
        allowed = frozenset(version for version in versions if accepts.contains(version))
        found = [Requirement(package, allowed, (), origin)]
        if package != "torch":
            found.insert(0, Requirement("torch", None, (), origin))
        return tuple(found)

    def plan(self, mapping: Mapping[str, Any]) -> Plan:
        """Return the plan that a resolution has arrived at.

        Args:
            mapping: ``resolver.resolve(…).mapping``; identifiers of others are left out.

        Raises:
            UsageError: the resolution holds no torch.
        """
        from torchpin.resolve.solve import Aim, Found, plan_of

        problem = self._problem
        if "torch" not in mapping:
            raise UsageError("the resolution holds no torch")
        torch = mapping["torch"].value
        keys = tuple((lane, mapping[f"channel@{lane.name}"].value) for lane in problem.lanes)
        solution = Solution(
            torch,
            keys,
            tuple((name, mapping[name].value) for name in problem.companions),
            max(problem.space.torch_keys(torch, lane)[key][0] for lane, key in keys),
        )
        aim = Aim((), problem.companions, problem.order, False, None, problem.policy, None)
        return plan_of(Found(problem, solution), self._numbers, aim)
