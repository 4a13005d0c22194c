"""How uv divides a universal resolution: the rules of forking.

They are those of ``uv-resolver/src/resolver/{mod,environment}.rs`` (``Forks``, ``Fork``).
"""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.named import NamedTuple
from torchpin.select.grid import Grid
from torchpin.select.model import Placed, PlacedIndex
from torchpin.select.pools import Candidate

_READABLE = 160
"""Longest text of markers that is told as it is."""

Item = tuple[str, str, str]
"""Member of a conflict: package, ``extra`` or ``group``, name."""


class Environment(NamedTuple):
    """What one fork is for (``ResolverEnvironment``)."""

    mask: int
    include: frozenset[Item] = frozenset()
    exclude: frozenset[Item] = frozenset()
    words: tuple[str, ...] = ()
    """The markers that made it, for messages."""

    def narrow(self, mask: int, words: str) -> Environment:
        """Return the part of it that lies in ``mask``."""
        return self._replace(mask=self.mask & mask, words=(*self.words, words))

    def filter(self, include: Sequence[Item], exclude: Sequence[Item]) -> Environment | None:
        """Return it with more items in and out; None if that is impossible."""
        inside, outside = self.include | set(include), self.exclude | set(exclude)
        return None if inside & outside else self._replace(include=inside, exclude=outside)

    def admits(self, item: Item | None) -> bool:
        """Return whether an extra or group is not excluded."""
        return item is None or item not in self.exclude

    @property
    def text(self) -> str:
        """For messages: ``where sys_platform == 'linux', with extra cu126``."""
        parts = []
        if self.words:
            parts.append("where " + " and ".join(dict.fromkeys(self.words)))
        if self.include:
            parts.append("with " + " and ".join(f"{k} {n}" for _, k, n in sorted(self.include)))
        elif self.exclude:
            parts.append("without " + " and ".join(f"{k} {n}" for _, k, n in sorted(self.exclude)))
        return ", ".join(parts)

    def told(self, grid: Grid) -> str:
        """Return ``text``; many markers in other words, so that they can be read."""
        text = self.text
        if len(text) <= _READABLE:
            return text
        plain = grid.told(self.mask)
        return self._replace(words=(plain,) if plain else ()).text


class Need(NamedTuple):
    """One lowered requirement: what a unit asks of a package under a marker."""

    name: str
    mask: int
    words: str
    """The marker as text; ``""`` if it always holds."""
    specifier: str
    source: PlacedIndex | None
    """The index that a source pins it to."""
    placed: Placed | None
    item: Item | None = None
    """The extra or group that its source is for."""
    unit: tuple[str, str, str] | None = None
    """For the parts of a project: which one; ``(PROJECT, "extra", NAME)`` or with ``""``."""
    problem: str = ""
    """Why it cannot be known what it asks for: ``it comes from a git source`` …"""
    accepts: Candidate | None = None
    """A companion whose METADATA is not known: what it accepts decides, not the specifier."""

    within: int = -1
    """Where the references hold through which an extra reaches it; overrides keep to that."""
    via: tuple[Item, ...] = ()
    """Extras through which an extra reaches it that must be enabled for it to count."""

    @property
    def part(self) -> Item | None:
        """The extra or group of the project that it is; None for packages and the base."""
        return self.unit if self.unit is not None and self.unit[1] else None


class Fork:
    """One list of requirements without two that exclude each other (uv's ``Fork``)."""

    def __init__(self, environment: Environment, needs: Sequence[Need] = ()) -> None:
        self.environment = environment
        self.needs = list(needs)

    def add(self, need: Need) -> None:
        """Take in a requirement."""
        self.needs.append(need)

    def narrowed(self, environment: Environment) -> Fork:
        """Return it in a narrower environment, without what no longer applies."""
        return Fork(environment, [n for n in self.needs if n.mask & environment.mask])

    def filtered(self, include: Sequence[Item], exclude: Sequence[Item]) -> Fork | None:
        """Return it with extras and groups in and out; None if that is impossible."""
        environment = self.environment.filter(include, exclude)
        if environment is None:
            return None
        return Fork(environment, [n for n in self.needs if environment.admits(n.part)])


def fork(
    needs: Sequence[Need],
    environment: Environment,
    python: tuple[int, int],
    conflicts: Sequence[frozenset[Item]],
    grid: Grid,
) -> list[Fork]:
    """Divide requirements of one unit into forks, as ``ForkedDependencies::fork`` does.

    A package with one requirement does not fork, unless its marker raises the lowest Python; two
    with the same marker do not either. ``python`` are the bounds of the fork's ``requires-python``.
    """
    by_name: dict[str, list[Need]] = {}
    for need in needs:
        by_name.setdefault(need.name, []).append(need)
    python_mask = grid.pythons(*python)
    forks = [Fork(environment)]
    for name in sorted(by_name):
        group = by_name[name]
        first = group[0].mask
        if all(need.mask == first for need in group) and not _raises(first, python, grid):
            for need in group:
                for one in forks:
                    if need.mask & one.environment.mask:
                        one.add(need)
            continue
        for need in group:
            forks = _fork_on(need, forks, environment, python_mask, grid)
    for members in conflicts:
        forks = _fork_conflict(members, forks, conflicts)
    return forks


def _raises(mask: int, python: tuple[int, int], grid: Grid) -> bool:
    bounds = grid.bounds(mask)
    return bounds is not None and bounds[0] > python[0]


def _fork_on(
    need: Need, forks: list[Fork], environment: Environment, python_mask: int, grid: Grid
) -> list[Fork]:
    if not need.mask & environment.mask:
        return forks
    if need.mask == grid.all:
        for one in forks:
            one.add(need)
        return forks
    out: list[Fork] = []
    remaining = need.mask
    for one in forks:
        inside = one.environment
        if not inside.mask & remaining:
            out.append(one)
            continue
        parts = []
        negated = grid.all ^ remaining
        if inside.mask & negated:
            parts.append(inside.narrow(negated, f"not ({need.words})"))
        parts.append(inside.narrow(remaining, need.words))
        remaining &= grid.all ^ inside.mask
        for part in parts:
            new = one.narrowed(part)
            # uv asks the narrowed forker only whether to fork, the whole marker whether to add.
            if need.mask & part.mask:
                new.add(need)
            if part.mask & python_mask:
                out.append(new)
    return out


def _fork_conflict(
    members: frozenset[Item], forks: list[Fork], conflicts: Sequence[frozenset[Item]]
) -> list[Fork]:
    out: list[Fork] = []
    ordered = sorted(members)
    for one in forks:
        if not any(need.part in members for need in one.needs):
            out.append(one)
            continue
        open_ = [item for item in ordered if one.environment.admits(item)]
        if len(open_) < 2 and not any(
            item in other and any(one.environment.admits(x) for x in other if x != item)
            for item in open_
            for other in conflicts
            if other is not members
        ):
            kept = one.filtered((), [item for item in ordered if item not in open_])
            if kept is not None:
                out.append(kept)
            continue
        none = one.filtered((), ordered)
        parts = [none] if none is not None else []
        for item in ordered:
            part = one.filtered((item,), [other for other in ordered if other != item])
            if part is not None:
                parts.append(part)
        out += parts
    return out
