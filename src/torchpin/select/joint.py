"""Choosing the packages of the family together, as the clients' resolvers do.

The graph is a star: companions require torch and nothing else that torchpin knows. Where the
best build of every companion accepts the best torch, or only one torch is left, the answer
needs no search; else resolvelib (pip's own resolver) searches, with pip's preferences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from packaging.version import Version

from torchpin.named import NamedTuple
from torchpin.select.asks import Ask
from torchpin.select.facts import Facts
from torchpin.select.pools import Candidate, admits, version_of

_ROUNDS = 5000
_CLASHES = 5
_UPPER = ("<", "<=", "~=")


class Demand(NamedTuple):
    """A fixed package outside the family that requires torch: ``vllm==0.4.0``."""

    text: str
    specifier: str


class Choice(NamedTuple):
    """What a resolver takes together."""

    chosen: dict[str, Candidate]
    conflict: str | None
    unclear: tuple[str, ...] = ()
    """Packages of which no known wheel goes with torch, while another, or a source
    distribution, may."""


_METADATA = ("torchvision", "torchaudio", "torchtext", "torchdata", "xformers")
"""Packages whose wheels require torch in their METADATA; the others accept every torch."""
_SOURCES = ("xformers",)
"""Packages that are also published as source distributions, which the catalog does not list."""


class Accepts:
    """Whether companions accept torch, by their METADATA as far as it is known."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[tuple[str, str], frozenset[Version]] = {}

    def __call__(self, companion: Candidate, torch: Candidate) -> bool:
        """Return whether ``companion`` admits ``torch``.

        Where its own requirement is not known, the catalog's partners of that torch decide, if
        it has any.
        """
        if companion.requires is not None:
            return not companion.requires or admits(companion.requires, torch.version)
        known = self._partners(companion.build.package, torch)
        return not known or version_of(companion.build.version) in known

    def guesses(self, companion: Candidate, torch: Candidate) -> bool:
        """Return whether nothing is known of what ``companion`` requires, although it does."""
        package = companion.build.package
        return (
            companion.requires is None
            and package in _METADATA
            and not self._partners(package, torch)
        )

    def untold(self, package: str, torch: Candidate) -> bool:
        """Return whether the index of ``torch`` may hold a companion that was made for it.

        The file lists of old channels are known in part only.
        """
        build = torch.build
        return any(
            self._facts.existence(
                package,
                str(version),
                channel=build.channel if build.home == "channel" else None,
                home=build.home,
                platform=build.platform,
            ).exists
            is None
            for version in self._partners(package, torch)
        )

    def _partners(self, package: str, torch: Candidate) -> frozenset[Version]:
        if package not in _METADATA:
            return frozenset()
        key = (package, torch.build.version)
        if key not in self._known:
            partners = self._facts.partners(torch.build.version, package)
            self._known[key] = frozenset(version_of(text) for text in partners)
        return self._known[key]


def choose(
    lists: Mapping[str, Sequence[Candidate]],
    asks: Mapping[str, Ask],
    accepts: Accepts,
    demands: Sequence[Demand] = (),
    client: str = "pip",
) -> Choice:
    """Return one candidate a package that go together, as ``client`` finds them, or the conflict.

    ``lists`` holds the candidates of each package, best first and never empty. With a conflict
    the choice is what each package would take alone.
    """
    alone = {package: found[0] for package, found in lists.items()}
    torches = lists.get("torch")
    if torches is None:
        return Choice(alone, None)
    admitted = [t for t in torches if all(admits(d.specifier, t.version) for d in demands)]
    if not admitted:
        demand = next(
            (d for d in demands if not any(admits(d.specifier, t.version) for t in torches)),
            demands[0],
        )
        return Choice(alone, f"{demand.text} requires torch{demand.specifier}, but {_asked(asks)}")
    companions = {name: found for name, found in lists.items() if name != "torch"}
    best = admitted[0]
    if all(accepts(found[0], best) for found in companions.values()):
        return Choice({**alone, "torch": best}, None)
    unserved: dict[str, Candidate] = {}
    for name, found in list(companions.items()):
        if any(accepts(c, t) for c in found for t in admitted):
            continue
        if asks[name].pin is None and (
            name in _SOURCES or any(accepts.untold(name, torch) for torch in admitted)
        ):
            unserved[name] = companions.pop(name)[0]
            continue
        return Choice(alone, _disagree(name, found[0], asks))
    if unserved:
        chosen = choose({**companions, "torch": admitted}, asks, accepts, client=client)
        return Choice(chosen.chosen, chosen.conflict, tuple(unserved))
    if len({t.version for t in admitted}) == 1:
        # Every companion alone has a candidate for this torch, so they all go together.
        picked = {
            name: next(c for c in found if accepts(c, best)) for name, found in companions.items()
        }
        return Choice({"torch": best, **picked}, None)
    search = _in_order if client == "uv" else _search
    solved = search({**companions, "torch": admitted}, asks, accepts)
    if solved is None:
        names = ", ".join(asks[name].text for name in lists)
        return Choice(alone, f"no torch suits all of {names}")
    return Choice(solved, None)


def _asked(asks: Mapping[str, Ask]) -> str:
    torch = asks["torch"]
    return (
        f"{torch.text} is asked for" if len(torch.specifier) else "the indexes offer no such torch"
    )


def _disagree(name: str, companion: Candidate, asks: Mapping[str, Ask]) -> str:
    ask = asks[name]
    required = companion.requires or ""
    if ask.pin is not None or ask.url:
        return f"{name} {companion.build.full_version} requires torch{required}, but {_asked(asks)}"
    return f"no {ask.text} accepts the torch that is asked for: {_asked(asks)}"


class _RestartError(Exception):
    """uv takes torch and the package that it clashes with in another order."""


def _in_order(
    lists: Mapping[str, Sequence[Candidate]], asks: Mapping[str, Ask], accepts: Accepts
) -> dict[str, Candidate] | None:
    """Search as uv decides: URLs and pins first, then in the order of the file, torch in its place.

    Each package takes its best candidate for which a torch is left that all accept; an upper bound
    does not come first. At the fifth version of companions that only the chosen torch rules out,
    a companion with all five is decided before torch (``reprioritize_conflicts`` and
    ``CONFLICT_THRESHOLD`` of uv-resolver; measured with uv 0.13.9).
    """
    names = sorted(
        (name for name in asks if name in lists),
        key=lambda name: (asks[name].url is None, asks[name].pin is None),
    )
    try:
        return _decide_in(names, lists, accepts, {})
    except _RestartError as clash:
        early = str(clash)
        at = names.index("torch")
        names = [*names[:at], *([early] if early else []), *(n for n in names[at:] if n != early)]
        return _decide_in(names, lists, accepts, None)


def _decide_in(
    names: Sequence[str],
    lists: Mapping[str, Sequence[Candidate]],
    accepts: Accepts,
    clashes: dict[str, int] | None,
) -> dict[str, Candidate] | None:
    """Decide in the order of ``names``; ``clashes`` counts, None: nothing is counted.

    Raises:
        _RestartError: with the name of the companion to decide first, if one has all the clashes.
    """
    dead: set[tuple[int, frozenset[Version]]] = set()

    def count(name: str) -> None:
        if clashes is not None:
            clashes[name] = clashes.get(name, 0) + 1
            if sum(clashes.values()) == _CLASHES:
                raise _RestartError(name if clashes[name] == _CLASHES else "")

    def decide(
        at: int, torches: Sequence[Candidate], before: Sequence[Candidate]
    ) -> dict[str, Candidate] | None:
        if at == len(names):
            return {}
        name = names[at]
        state = (at, frozenset(torch.version for torch in torches))
        if state in dead:
            return None
        tried: set[tuple[str | None, Version]] = set()
        for candidate in torches if name == "torch" else lists[name]:
            if (candidate.requires, candidate.version) in tried:
                continue
            tried.add((candidate.requires, candidate.version))
            if name == "torch":
                rest = decide(at + 1, [candidate], torches)
            else:
                left = [torch for torch in torches if accepts(candidate, torch)]
                rest = decide(at + 1, left, before) if left else None
                if not left and any(accepts(candidate, torch) for torch in before):
                    count(name)
            if rest is not None:
                return {name: candidate, **rest}
        dead.add(state)
        return None

    return decide(0, lists["torch"], ())


def _search(
    lists: Mapping[str, Sequence[Candidate]], asks: Mapping[str, Ask], accepts: Accepts
) -> dict[str, Candidate] | None:
    from resolvelib import BaseReporter, Resolver
    from resolvelib.resolvers import ResolutionError

    provider: Any = _provider(lists, asks, accepts)
    resolver: Any = Resolver(provider, BaseReporter())
    # A requirement is (package, companion that asks for torch); None asks for the package alone.
    try:
        result = resolver.resolve([(name, None) for name in asks if name in lists], _ROUNDS)
    except ResolutionError:
        return None
    return {name: result.mapping[name] for name in lists if name in result.mapping}


def _preference(ask: Ask, order: int) -> tuple[bool, bool, bool, int, bool, str]:
    """Return pip's order of decision: URLs, pins, upper bounds, order in the file, operators."""
    operators = [(one.operator, one.version) for one in ask.specifier]
    pinned = any(op.startswith("==") and "*" not in version for op, version in operators)
    upper = any(op in _UPPER or (op == "==" and "*" in version) for op, version in operators)
    return (ask.url is None, not pinned, not upper, order, not operators, ask.package)


def _provider(
    lists: Mapping[str, Sequence[Candidate]], asks: Mapping[str, Ask], accepts: Accepts
) -> Any:
    from resolvelib import AbstractProvider

    order = {name: _preference(ask, at) for at, (name, ask) in enumerate(asks.items())}

    class Provider(AbstractProvider):  # type: ignore[type-arg]
        """The star graph for resolvelib."""

        def identify(self, requirement_or_candidate: Any) -> str:
            if isinstance(requirement_or_candidate, Candidate):
                return requirement_or_candidate.build.package
            return str(requirement_or_candidate[0])

        def get_preference(
            self,
            identifier: Any,
            resolutions: Any,
            candidates: Any,
            information: Any,
            backtrack_causes: Any,
        ) -> Any:
            return order[identifier]

        def narrow_requirement_selection(
            self,
            identifiers: Any,
            resolutions: Any,
            candidates: Any,
            information: Any,
            backtrack_causes: Any,
        ) -> Any:
            names = list(identifiers)
            causes = {info.requirement[0] for info in backtrack_causes}
            causes |= {i.parent.build.package for i in backtrack_causes if i.parent is not None}
            return [name for name in names if name in causes] or names

        def find_matches(self, identifier: Any, requirements: Any, incompatibilities: Any) -> Any:
            companions = [asking for _, asking in requirements[identifier] if asking is not None]
            refused = {(c.version, c.place) for c in incompatibilities[identifier]}
            return [
                c
                for c in lists[identifier]
                if (c.version, c.place) not in refused
                and all(accepts(asking, c) for asking in companions)
            ]

        def is_satisfied_by(self, requirement: Any, candidate: Any) -> bool:
            return requirement[1] is None or accepts(requirement[1], candidate)

        def get_dependencies(self, candidate: Any) -> Any:
            if candidate.build.package == "torch" or candidate.requires == "":
                return []
            return [("torch", candidate)]

    return Provider()
