"""Choosing the family together as Poetry does: PubGrub, packages with upper bounds first.

What has no choice left comes first, then what requires most with an upper bound, then what has most
versions (``mixology/version_solver.py`` of Poetry 2.5.1). Whether torch or a companion leads
depends on the requirements of torch outside the family; where that matters the answer is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torchpin.select.asks import Ask
from torchpin.select.joint import Choice
from torchpin.select.pools import Candidate

_MANY = 1000
Found = dict[str, Candidate]


def choose(
    lists: Mapping[str, Sequence[Candidate]],
    asks: Mapping[str, Ask],
    accepts: Callable[[Candidate, Candidate], bool],
) -> Choice:
    """Return the version of each package that Poetry locks, or the conflict."""
    answers = [_Search(lists, accepts, leading).run() for leading in (0, _MANY)]
    first, second = answers
    if first is None or second is None:
        names = ", ".join(asks[name].text for name in lists if name in asks)
        best = {name: found[0] for name, found in lists.items()}
        return Choice(best, f"no torch suits all of {names}")
    differ = [n for n in first if n not in second or first[n].version != second[n].version]
    return Choice(first, None, tuple(differ))


class _Search:
    """Decisions in Poetry's order, the best version of each first."""

    def __init__(
        self,
        lists: Mapping[str, Sequence[Candidate]],
        accepts: Callable[[Candidate, Candidate], bool],
        leading: int,
    ) -> None:
        self.lists = lists
        self.accepts = accepts
        self.leading = leading
        """How many requirements of torch have an upper bound."""
        self.dead: set[tuple[frozenset[str], frozenset[str]]] = set()

    def run(self) -> Found | None:
        """Return the solution, None if there is none."""
        names = frozenset(self.lists)
        return self._decide(names, self.lists.get("torch", ()))

    def _key(self, name: str, torches: Sequence[Candidate]) -> tuple[bool, int, bool, int, str]:
        found = self._left(name, torches)
        upper = self.leading if name == "torch" else 0
        requires = found[0].requires or "" if found else ""
        if name != "torch" and any(op in requires for op in ("<", "==", "~=")):
            upper = 1
        has = bool(requires) or (name == "torch" and self.leading > 0)
        return (len(found) >= 2, -upper, not has, -len(found), name)

    def _left(self, name: str, torches: Sequence[Candidate]) -> Sequence[Candidate]:
        return torches if name == "torch" else self.lists[name]

    def _decide(self, names: frozenset[str], torches: Sequence[Candidate]) -> Found | None:
        if not names:
            return {}
        state = (names, frozenset(f"{t.version}/{t.rank}" for t in torches))
        if state in self.dead:
            return None
        name = min(names, key=lambda one: self._key(one, torches))
        rest = names - {name}
        for candidate in self._left(name, torches):
            if name == "torch":
                left: Sequence[Candidate] = [candidate]
            elif "torch" in self.lists:
                left = [torch for torch in torches if self.accepts(candidate, torch)]
                if not left:
                    continue
            else:
                left = torches
            found = self._decide(rest, left)
            if found is not None:
                return {name: candidate, **found}
        self.dead.add(state)
        return None
