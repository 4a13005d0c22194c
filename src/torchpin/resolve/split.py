"""The fewest builds that serve a fleet which no single build serves."""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.resolve.policy import channel_parts
from torchpin.resolve.solve import Aim, Found, solve_lanes
from torchpin.resolve.space import AT_MOST_UNKNOWN, Space

MAX_EXACT = 12
"""With more different classes of targets the split is found greedily."""
MAX_PARTITIONS = 500
"""How many partitions of the smallest size are compared."""


class Parts(NamedTuple):
    """A division of the targets."""

    plans: tuple[tuple[tuple[int, ...], Found], ...]
    unserved: tuple[int, ...]
    lenient: frozenset[int]
    """Targets that only builds with an unknown verdict can serve."""


class _Solver:
    """Solves sets of targets, each once."""

    def __init__(self, space: Space, aim: Aim) -> None:
        self.space = space
        self.aim = aim
        self.lenient: set[int] = set()
        self._known: dict[frozenset[int], Found | None] = {}
        self._hopeless: set[int] = set()

    def of(self, numbers: frozenset[int]) -> Found | None:
        likes = self.likes(numbers)
        if likes not in self._known:
            lanes = self.space.lanes(sorted(likes), frozenset(self.lenient))
            self._known[likes] = solve_lanes(self.space, lanes, self.aim)
        return self._known[likes]

    def likes(self, numbers: frozenset[int]) -> frozenset[int]:
        """Return targets without those that are like another of them."""
        return frozenset(map(self.space.like, numbers))

    def serves(self, number: int, *, lenient: bool = False) -> bool:
        """Whether a target can be served; if need be with an unknown verdict, which is noted."""
        one = frozenset((number,))
        if self.of(one) is not None:
            return True
        if not lenient:
            return False
        like = self.space.like(number)
        if like in self._hopeless:
            return False
        self.lenient.add(like)
        del self._known[self.likes(one)]
        if self.of(one) is not None:
            return True
        self.lenient.discard(like)
        self._hopeless.add(like)
        return False


def by_gpu(target: Target) -> tuple[Target, ...]:
    """Return one target a kind of GPU; the group's name tells which."""
    group = target.group
    if len(group.gpus) < 2:
        return (target,)
    return tuple(
        Target(group._replace(name=f"{group.name} ({gpu.name})", gpus=(gpu,)), target.python)
        for gpu in dict.fromkeys(group.gpus)
    )


def divide(space: Space, numbers: tuple[int, ...], aim: Aim) -> Parts:
    """Return the smallest division of targets into sets that one plan serves each.

    Groups stay whole where one plan can serve all their Pythons.
    """
    solver = _Solver(space, aim)
    served: list[int] = []
    unserved: list[int] = []
    for number in numbers:
        good, bad = _serve(solver, number)
        served += good
        unserved += bad
    atoms = _merge(solver, _atoms(solver, served))
    if not atoms:
        return Parts((), tuple(unserved), frozenset())
    chosen = _choose(solver, atoms)
    plans = []
    for block in chosen:
        found = solver.of(frozenset(block))
        assert found is not None
        plans.append((tuple(sorted(block)), found))
    plans.sort(key=lambda part: part[0])
    return Parts(tuple(plans), tuple(unserved), frozenset(solver.lenient))


def _serve(solver: _Solver, number: int) -> tuple[list[int], list[int]]:
    """Return what of a target can be served and what not: whole, else GPU by GPU.

    Builds with an unknown verdict are taken only where nothing else serves.
    """
    if solver.serves(number):
        return [number], []
    space = solver.space
    pieces = [space.intern(piece) for piece in by_gpu(space.targets[number])]
    if len(pieces) > 1 and all(solver.serves(piece) for piece in pieces):
        return pieces, []
    if solver.serves(number, lenient=True):
        return [number], []
    if len(pieces) < 2:
        return [], [number]
    good = [piece for piece in pieces if solver.serves(piece, lenient=True)]
    if not good:
        return [], [number]
    return good, [piece for piece in pieces if piece not in good]


def nearer(
    space: Space, numbers: tuple[int, ...], aim: Aim, single: Found
) -> tuple[tuple[tuple[int, ...], Found], ...]:
    """Return the split in which groups come nearer to what is asked than one plan for all does.

    Groups that would take the same builds share a plan. Empty if no group would gain.
    """
    order = aim.order
    if order.index(single.solution.torch) == 0:
        return ()
    solver = _Solver(space, aim)
    groups: dict[object, list[int]] = {}
    for number in numbers:
        groups.setdefault(space.targets[number].group, []).append(number)
    if len(groups) == 1:
        pieces = [[space.intern(t) for t in by_gpu(space.targets[n])] for n in numbers]
        groups = {at: list(column) for at, column in enumerate(zip(*pieces, strict=True))}
    blocks: dict[object, list[int]] = {}
    gains = False
    for members in groups.values():
        found = solver.of(frozenset(members))
        if found is None:
            return ()
        solution = found.solution
        gains = gains or order.index(solution.torch) < order.index(single.solution.torch)
        what = (solution.torch, tuple(key for _, key in solution.keys))
        blocks.setdefault(what, []).extend(members)
    if not gains or len(blocks) < 2:
        return ()
    parts = []
    for block in blocks.values():
        found = solver.of(frozenset(block))
        if found is None:
            return ()
        parts.append((tuple(sorted(block)), found))
    return tuple(sorted(parts, key=lambda part: part[0]))


def _atoms(solver: _Solver, numbers: list[int]) -> list[frozenset[int]]:
    """Whole groups where one plan serves all their Pythons, else single targets."""
    groups: dict[object, list[int]] = {}
    for number in numbers:
        group = solver.space.targets[number].group
        groups.setdefault(group, []).append(number)
    atoms: list[frozenset[int]] = []
    for members in groups.values():
        whole = frozenset(members)
        if solver.of(whole) is not None:
            atoms.append(whole)
        else:
            atoms += [frozenset((number,)) for number in members]
    return atoms


def _merge(solver: _Solver, atoms: list[frozenset[int]]) -> list[frozenset[int]]:
    """Join atoms to which exactly the same builds are open."""
    space = solver.space
    merged: dict[object, frozenset[int]] = {}
    alike: dict[frozenset[int], list[frozenset[int]]] = {}
    for atom in atoms:
        alike.setdefault(solver.likes(atom), []).append(atom)
    for atom in [frozenset().union(*some) for some in alike.values()]:
        lanes = space.lanes(sorted(atom), frozenset(solver.lenient))
        signature = tuple(
            (
                lane.name,
                tuple(
                    (version, key, level)
                    for version in solver.aim.order
                    for key, (level, _) in sorted(space.torch_keys(version, lane).items())
                ),
            )
            for lane in lanes
        )
        joined = merged.get(signature, frozenset()) | atom
        if signature in merged and solver.of(joined) is None:
            merged[(signature, atom)] = atom
        else:
            merged[signature] = joined
    return list(merged.values())


def _choose(solver: _Solver, atoms: list[frozenset[int]]) -> list[frozenset[int]]:
    if len(atoms) > MAX_EXACT:
        return _greedy(solver, atoms)
    for size in range(1, len(atoms) + 1):
        best: tuple[object, list[frozenset[int]]] | None = None
        for count, blocks in enumerate(_partitions(solver, atoms, size)):
            cost = _cost(solver, blocks)
            if best is None or cost < best[0]:  # type: ignore[operator]
                best = (cost, blocks)
            if count >= MAX_PARTITIONS:
                break
        if best is not None:
            return best[1]
    return list(atoms)


def _greedy(solver: _Solver, atoms: list[frozenset[int]]) -> list[frozenset[int]]:
    blocks: list[frozenset[int]] = []
    for atom in atoms:
        for at, block in enumerate(blocks):
            if solver.of(block | atom) is not None:
                blocks[at] = block | atom
                break
        else:
            blocks.append(atom)
    return blocks


def _partitions(
    solver: _Solver, atoms: list[frozenset[int]], size: int
) -> Iterator[list[frozenset[int]]]:
    """Yield the divisions of ``atoms`` into ``size`` blocks that one plan serves each."""

    def place(at: int, blocks: list[frozenset[int]]) -> Iterator[list[frozenset[int]]]:
        if len(blocks) + len(atoms) - at < size:
            return
        if at == len(atoms):
            yield list(blocks)
            return
        for index, block in enumerate(blocks):
            joined = block | atoms[at]
            if solver.of(joined) is not None:
                yield from place(at + 1, [*blocks[:index], joined, *blocks[index + 1 :]])
        if len(blocks) < size:
            yield from place(at + 1, [*blocks, atoms[at]])

    yield from place(0, [])


def _cost(solver: _Solver, blocks: list[frozenset[int]]) -> tuple[object, ...]:
    """What a division costs: the versions furthest from the first choice, then the channels."""
    ranks, levels, away, names = [], [], 0, []
    for block in blocks:
        found = solver.of(block)
        assert found is not None
        solution = found.solution
        ranks.append(solver.aim.order.index(solution.torch))
        levels.append(min(solution.level, AT_MOST_UNKNOWN))
        away += sum(key != (solver.aim.current_channel or "pypi") for _, key in solution.keys)
        names.append(tuple(channel_parts(key) for _, key in solution.keys))
    return (sum(levels), sum(ranks), away, len(set(names)), sorted(map(sorted, blocks)))
