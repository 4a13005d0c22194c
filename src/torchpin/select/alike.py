"""Selections are shared between targets that are equal in all that matters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchpin.fleet.alike import likeness, named
from torchpin.fleet.model import Target
from torchpin.select.facts import Facts
from torchpin.select.model import Install, SelectedSet, Selection
from torchpin.select.selection import select


def select_all(install: Install, targets: Iterable[Target], facts: Facts) -> Iterator[SelectedSet]:
    """Yield what ``select`` gives for each target; alike targets are selected for once."""
    known: dict[Target, SelectedSet] = {}
    for target in targets:
        like = likeness(target)
        found = known.get(like)
        if found is None:
            found = known[like] = select(install, like, facts)
        yield of_target(found, target)


def of_target(chosen: SelectedSet, target: Target) -> SelectedSet:
    """Return the selections for a likeness as those of a target."""
    return chosen._replace(
        target=target,
        selections=tuple(_selection(one, target) for one in chosen.selections),
        conflict=None if chosen.conflict is None else named(chosen.conflict, target),
    )


def _selection(one: Selection, target: Target) -> Selection:
    miss = one.miss
    if miss is not None:
        miss = miss._replace(message=named(miss.message, target))
    return one._replace(target=target, because=named(one.because, target), miss=miss)
