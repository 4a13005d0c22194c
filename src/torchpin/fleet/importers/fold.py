"""Machines folded into node groups: the same GPUs, driver, system and machine are one group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from torchpin.errors import ConfigError
from torchpin.fleet.gpus import find_gpu, key_of
from torchpin.fleet.importers.model import KEYS, Found, Machine, SeenGpu, Told, printable
from torchpin.fleet.values import parse_platform
from torchpin.named import NamedTuple


class Named(NamedTuple):
    """One GPU of a group, as the profile writes it."""

    key: str
    """What it is: the name in torchpin's table, or the capability, or the name as told."""
    written: str
    """``""``: torchpin does not know it."""
    note: str = ""
    """Why it is written otherwise than told, or is not written."""
    tegra: bool = False
    """It is a Jetson's."""


class Group(NamedTuple):
    """Like machines."""

    gpus: tuple[Named, ...] | None
    gpus_where: str
    facts: tuple[tuple[str, Told], ...]
    names: tuple[str, ...]
    size: int
    """How many machines; names may be unknown."""
    what: tuple[str, ...]
    """The inputs that told of them, in words."""


class _Building:
    """A group while machines come in."""

    def __init__(self, where: str, facts: tuple[tuple[str, Told], ...]) -> None:
        self.where = where
        self.facts = facts
        self.gpus: dict[tuple[str, str], Named] | None = None
        self.names: list[str] = []
        self.count = 0
        self.what: dict[str, None] = {}

    def add(self, machine: Machine, gpus: tuple[Named, ...] | None, what: Iterable[str]) -> None:
        if gpus is not None:
            self.gpus = self.gpus or {}
            self.gpus.update({(gpu.key, key_of(gpu.written)): gpu for gpu in reversed(gpus)})
        self.count += 1
        if machine.name:
            self.names.append(machine.name)
        self.what.update(dict.fromkeys(what))

    def group(self) -> Group:
        gpus = None if self.gpus is None else tuple(sorted(self.gpus.values()))
        return Group(gpus, self.where, self.facts, tuple(self.names), self.count, tuple(self.what))


def fold(inputs: Sequence[Found], gpus: tuple[str, ...] | None = None) -> tuple[Group, ...]:
    """Return the groups in the order in which their first machines come.

    Args:
        inputs: what was read. A machine of which several inputs tell is one machine: each value is
            taken from the first that tells it. Two of one name with different drivers are two.
        gpus: the GPUs of machines of which no input tells them (empty: none); None: not known.
    """
    known: dict[SeenGpu, Named] = {}
    groups: dict[object, _Building] = {}
    for machine, what in _merged(inputs):
        named: tuple[Named, ...] | None = None
        where = machine.gpus_where
        if machine.gpus is not None:
            named = tuple({_name(seen, known): None for seen in machine.gpus})
        if gpus is not None and (named is None or (named and not any(g.written for g in named))):
            named = tuple(_name(SeenGpu(name), known) for name in gpus)
            where = "--gpu"
        key = (
            None if named is None else frozenset(gpu.key for gpu in named),
            tuple((fact, told.value, told.doubt) for fact, told in machine.facts),
        )
        if key not in groups:
            groups[key] = _Building(where, machine.facts)
        groups[key].add(machine, named, what)
    return tuple(building.group() for building in groups.values())


def _merged(inputs: Sequence[Found]) -> list[tuple[Machine, tuple[str, ...]]]:
    """Return every machine once, with the inputs that tell of it."""
    by_name: dict[str, list[int]] = {}
    merged: list[tuple[Machine, tuple[str, ...]]] = []
    for found in inputs:
        for machine in found.machines:
            places = by_name.setdefault(machine.name, []) if machine.name else []
            place = next((at for at in places if _agree(merged[at][0], machine)), None)
            if place is None:
                places.append(len(merged))
                merged.append((_ordered(machine), (found.what,)))
                continue
            first, what = merged[place]
            merged[place] = (_both(first, machine), tuple(dict.fromkeys((*what, found.what))))
    return merged


def _agree(first: Machine, second: Machine) -> bool:
    """Tell whether two may be one machine: none has two drivers."""
    drivers = [
        told.value
        for machine in (first, second)
        for key, told in machine.facts
        if key == "driver" and not told.doubt
    ]
    return len(set(drivers)) < 2


def _both(first: Machine, second: Machine) -> Machine:
    """Return one machine of which two inputs tell: a value that counts beats one in doubt."""
    facts = dict(first.facts)
    for key, told in second.facts:
        if key not in facts or (facts[key].doubt and not told.doubt):
            facts[key] = told
    says_more = second.gpus is not None and (
        first.gpus is None
        or (_nameless(first.gpus) and bool(second.gpus) and not _nameless(second.gpus))
    )
    return _ordered(
        Machine(
            first.name,
            second.gpus if says_more else first.gpus,
            second.gpus_where if says_more else first.gpus_where,
            tuple(facts.items()),
        )
    )


def _nameless(gpus: tuple[SeenGpu, ...]) -> bool:
    return bool(gpus) and not any(gpu.name or gpu.capability or gpu.gfx for gpu in gpus)


def _ordered(machine: Machine) -> Machine:
    facts = [
        (key, told._replace(value=_canonical(key, told.value), where=printable(told.where)))
        for key, told in machine.facts
    ]
    return machine._replace(
        name=printable(machine.name, 200),
        facts=tuple(sorted(facts, key=lambda fact: KEYS.index(fact[0]))),
    )


def _canonical(key: str, value: str) -> str:
    """Return a value as a profile writes it; a platform that torchpin does not know stays."""
    value = printable(value)
    if key == "platform":
        with suppress(ConfigError):
            return parse_platform(value)
    return value


def _name(seen: SeenGpu, known: dict[SeenGpu, Named]) -> Named:
    if seen not in known:
        known[seen] = name_gpu(seen)
    return known[seen]


def name_gpu(seen: SeenGpu) -> Named:
    """Return how the profile writes a GPU.

    A name that torchpin does not know, or of which the input tells another compute capability than
    torchpin's table, gives way to the capability or the ISA name.
    """
    name = printable(seen.name)
    declared = ""
    if seen.capability is not None:
        declared = f"{seen.capability[0]}.{seen.capability[1]}"
    elif seen.gfx:
        declared = seen.gfx
    refused = ""
    if name:
        try:
            gpus = find_gpu(name)
        except ConfigError as error:
            refused = _sentence(error)
        else:
            if (
                seen.capability is None or {gpu.capability for gpu in gpus} == {seen.capability}
            ) and (not seen.gfx or {gpu.gfx for gpu in gpus} == {seen.gfx}):
                joined = ", ".join(sorted({gpu.name for gpu in gpus}))
                return Named(joined, name, tegra=all(gpu.tegra for gpu in gpus))
            refused = f"the input tells another architecture than {gpus[0].arch or 'ours'} for it"
    if declared:
        try:
            (gpu,) = find_gpu(declared)
        except ConfigError as error:
            return Named(f"{name} {declared}", "", f"{name}: {_sentence(error)}")
        return Named(gpu.arch, gpu.arch, f"{name}: {refused}" if name else "", gpu.tegra)
    return Named(name, "", f"{name}: {refused}" if name else "one that the input does not name")


def _sentence(error: ConfigError) -> str:
    """Return the message of an error without the name that it quotes."""
    return printable(re.sub(r'^(unknown \S+(?: type)?|ambiguous GPU) ".*?"', r"\1", error.message))
