"""Choosing the family together as PDM's resolver does: resolvelib with PDM's preferences.

Roots come first, then what backtracking met often, pins, what depends on the causes of the last
backtracking, many operators, the name (``pdm/resolver/providers.py`` of PDM 2.29.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from torchpin.named import NamedTuple
from torchpin.select.asks import Ask
from torchpin.select.joint import Choice
from torchpin.select.pools import Candidate

_ROUNDS = 5000
_OFTEN = 5


class Led(NamedTuple):
    """What leads to which candidates of torch."""

    own: str
    """Specifier of the narrowest requirement of torch that the project has."""
    by: Mapping[str, Sequence[Candidate]]
    """Candidates by the companion whose requirement leads: for the Pythons of its marker."""


def narrowness(text: str) -> tuple[bool, bool, int]:
    """Return PDM's preference of a requirement: the lowest of a package leads, and its marker says
    for which Pythons a version has to be (``requirement_preference``)."""
    try:
        parts = list(SpecifierSet(text))
    except InvalidSpecifier:
        parts = []
    pinned = len(parts) == 1 and parts[0].operator in ("==", "===") and "*" not in parts[0].version
    early = any(one.prereleases for one in parts)
    return (not pinned, not early, -len(parts))


def choose(
    lists: Mapping[str, Sequence[Candidate]],
    asks: Mapping[str, Ask],
    accepts: Callable[[Candidate, Candidate], bool],
    roots: frozenset[str],
    apart: bool,
    led: Led | None = None,
) -> Choice:
    """Return the version of each package that PDM locks, or the conflict.

    Args:
        lists: candidates of each package, best first, those that are not roots included.
        asks: what the project asks of each.
        accepts: whether a companion admits a torch.
        roots: packages that the project itself asks for.
        apart: companions do not bring torch in (it is left out of the lock).
        led: candidates of torch where a companion's requirement of it leads.
    """
    from resolvelib import BaseReporter, Resolver
    from resolvelib.resolvers import ResolutionError

    provider: Any = _provider(lists, asks, accepts, apart, led or Led("", {}))
    resolver: Any = Resolver(provider, BaseReporter())
    # A requirement is (package, companion that asks for torch); None: the project asks.
    try:
        result = resolver.resolve([(name, None) for name in asks if name in roots], _ROUNDS)
    except ResolutionError:
        names = ", ".join(asks[name].text for name in lists if name in asks)
        return Choice({n: found[0] for n, found in lists.items()}, f"no torch suits all of {names}")
    return Choice({name: result.mapping[name] for name in lists if name in result.mapping}, None)


def _operators(specifier: SpecifierSet) -> list[str]:
    return [one.operator for one in specifier]


def _provider(
    lists: Mapping[str, Sequence[Candidate]],
    asks: Mapping[str, Ask],
    accepts: Callable[[Candidate, Candidate], bool],
    apart: bool,
    led: Led,
) -> Any:
    from resolvelib import AbstractProvider

    counts: dict[str, int] = {}

    class Provider(AbstractProvider):  # type: ignore[type-arg]
        """The star graph for resolvelib."""

        def identify(self, requirement_or_candidate: Any) -> str:
            if isinstance(requirement_or_candidate, Candidate):
                return requirement_or_candidate.build.package
            return str(requirement_or_candidate[0])

        def narrow_requirement_selection(
            self,
            identifiers: Any,
            resolutions: Any,
            candidates: Any,
            information: Any,
            backtrack_causes: Any,
        ) -> Any:
            names = list(identifiers)
            causes: set[str] = set()
            for requirement, parent in backtrack_causes:
                met = [requirement[0], *([parent.build.package] if parent is not None else [])]
                causes.update(met)
                for name in met:
                    if name not in resolutions:
                        counts[name] = counts.get(name, 0) + 1
            promoted = [name for name in names if counts.get(name, 0) >= _OFTEN]
            return [name for name in names if name in causes] or promoted or names

        def get_preference(
            self,
            identifier: Any,
            resolutions: Any,
            candidates: Any,
            information: Any,
            backtrack_causes: Any,
        ) -> Any:
            asking = list(information[identifier])
            causes = {requirement[0] for requirement, _ in backtrack_causes}
            causes |= {p.build.package for _, p in backtrack_causes if p is not None}
            operators: list[str] = []
            for _, parent in asking:
                if parent is None:
                    operators += _operators(asks[identifier].specifier)
                else:
                    operators += _operators(SpecifierSet(parent.requires or ""))
            first = next(iter(candidates[identifier]), None)
            needs = first is not None and bool(self.get_dependencies(first))
            return (
                not any(parent is None for _, parent in asking),
                counts.get(identifier, 0) < _OFTEN,
                not any(one.startswith("==") for one in operators),
                not (needs and "torch" in causes),
                -len(operators),
                identifier,
            )

        def find_matches(self, identifier: Any, requirements: Any, incompatibilities: Any) -> Any:
            companions = [asking for _, asking in requirements[identifier] if asking is not None]
            refused = {c.version for c in incompatibilities[identifier]}
            return [
                c
                for c in self.offered(identifier, list(requirements[identifier]))
                if c.version not in refused and all(accepts(asking, c) for asking in companions)
            ]

        def offered(self, identifier: str, asking: list[Any]) -> Sequence[Candidate]:
            """Return the candidates of the requirement that leads."""
            if identifier != "torch" or not asking:
                return lists[identifier]

            def key(parent: Candidate | None) -> tuple[bool, bool, int]:
                return narrowness(led.own if parent is None else parent.requires or "")

            leader = min((parent for _, parent in asking), key=key)
            if leader is None:
                return lists[identifier]
            return led.by.get(leader.build.package, lists[identifier])

        def is_satisfied_by(self, requirement: Any, candidate: Any) -> bool:
            return requirement[1] is None or accepts(requirement[1], candidate)

        def get_dependencies(self, candidate: Any) -> Any:
            if apart or candidate.build.package == "torch" or candidate.requires == "":
                return []
            return [("torch", candidate)] if "torch" in lists else []

    return Provider()
