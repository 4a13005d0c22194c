"""What is there: GPUs, driver and system of this machine, as ``fleet detect`` finds them."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

from torchpin.errors import ConfigError
from torchpin.fleet import nvml
from torchpin.fleet.detect import detect
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.importers.model import SeenGpu, printable
from torchpin.fleet.model import Gpu, NodeGroup, Python
from torchpin.fleet.values import parse_platform
from torchpin.named import NamedTuple
from torchpin.verify.model import HostGpu

_NAMES = ("SLURMD_NODENAME", "NODE_NAME")
THIS = "this machine"
_NONE = ("", "-1", "none", "void", "NoDevFiles")
"""Values of ``CUDA_VISIBLE_DEVICES`` that hide all GPUs, Slurm's and NVIDIA's among them."""


class Card(NamedTuple):
    """A GPU of this machine."""

    host: HostGpu
    gpu: Gpu | None
    """None: torchpin does not know what it is."""
    pci: str = ""


class Here(NamedTuple):
    """This machine."""

    node: str
    platform: str
    cards: tuple[Card, ...]
    facts: Mapping[str, str]
    """``driver``, ``glibc``, ``libc``, ``macos``, ``wsl``, ``jetpack``, ``rocm``, as profiles."""
    silent: str = ""
    """Why the GPU that is on the bus cannot be asked; ``""``: there is none such."""
    notes: tuple[str, ...] = ()

    def group(self, cards: Sequence[Card], python: Python | None) -> NodeGroup:
        """Return a node group of ``cards`` of this machine, to be judged."""
        facts = self.facts
        return NodeGroup(
            THIS,
            tuple(dict.fromkeys(card.gpu for card in cards if card.gpu is not None)),
            () if python is None else (python,),
            self.platform,
            driver=facts.get("driver"),
            glibc=facts.get("glibc"),
            musl=facts.get("libc") == "musl",
            macos=facts.get("macos"),
            wsl=facts.get("wsl") == "true",
            jetpack=facts.get("jetpack"),
            rocm=facts.get("rocm"),
        )


def node_name(environ: Mapping[str, str]) -> str:
    """Return what this machine is called: by Slurm, by Kubernetes, else its short host name."""
    for name in _NAMES:
        if environ.get(name):
            return printable(environ[name])
    return printable(platform.node().partition(".")[0]) or "localhost"


def look(environ: Mapping[str, str], root: str = "/") -> Here:
    """Return this machine.

    Args:
        environ: the environment, for its name.
        root: as for ``fleet.detect.detect``.
    """
    found = detect(root)
    (machine,) = found.machines
    facts = {key: told.value for key, told in machine.facts if not told.doubt}
    system = facts.pop("platform", "")
    facts.pop("python", None)  # of the Python that runs torchpin
    try:
        system = parse_platform(system)
    except ConfigError:  # no wheel of torch is built for it
        system = printable(system)
    library = nvml.load() if machine.gpus_where.startswith("NVML") else None
    devices = nvml.devices(library) if library is not None else ()
    told = [device.gpu for device in devices]
    cards = [
        Card(_host(device.number, device.gpu, device.memory_mib), _kind(device.gpu), device.pci)
        for device in devices
    ]
    for seen in machine.gpus or ():
        if seen in told:
            told.remove(seen)
        else:  # of another vendor, or NVML does not tell more
            cards.append(Card(_host(len(cards), seen, None), _kind(seen)))
    silent, notes = "", found.notes
    if machine.gpus is None and "NVIDIA" in machine.gpus_where:
        silent = machine.gpus_where
    elif machine.gpus is None:  # a card of Intel's, which is not tried
        notes = (*notes, machine.gpus_where)
    return Here(node_name(environ), system, tuple(cards), facts, silent, notes)


def _host(number: int, seen: SeenGpu, memory: int | None) -> HostGpu:
    capability = None if seen.capability is None else f"{seen.capability[0]}.{seen.capability[1]}"
    name = printable(seen.name) or seen.gfx or "a GPU"
    return HostGpu(number, name, capability, memory, seen.gfx or None)


def _kind(seen: SeenGpu) -> Gpu | None:
    """Return the GPU as profiles know it; what the driver tells beats the table."""
    declared = seen.gfx
    if seen.capability is not None:
        declared = f"{seen.capability[0]}.{seen.capability[1]}"
    found: tuple[Gpu, ...] = ()
    for text in (seen.name, declared):
        try:
            found = find_gpu(text) if text else ()
        except ConfigError:  # the table does not know it
            continue
        if len(found) == 1 and _same(found[0], seen):
            return found[0]
    return None


def _same(gpu: Gpu, seen: SeenGpu) -> bool:
    return (seen.capability is None or gpu.capability == seen.capability) and (
        not seen.gfx or gpu.gfx == seen.gfx
    )


def place(here: Here, devices: Sequence[Mapping[str, Any]]) -> tuple[Here, tuple[int, ...]]:
    """Return for each device of torch the number of its GPU, and this machine with all of them.

    Devices are found by their address on the PCI bus, else by their order among those of the same
    compute capability. A device that nothing else tells of is added (WSL, containers).

    Args:
        here: this machine.
        devices: as the worker tells them: ``name``, ``capability``, ``gfx``, ``memory_mib``,
            ``pci``.
    """
    free = list(here.cards)
    cards = list(here.cards)
    numbers: list[int] = []
    for device in devices:
        capability = device.get("capability")
        seen = SeenGpu(
            str(device.get("name") or ""),
            (int(capability[0]), int(capability[1])) if capability else None,
            str(device.get("gfx") or ""),
        )
        pci = _address(str(device.get("pci") or ""))
        card = next((one for one in cards if pci and _address(one.pci) == pci), None)
        if card is None:
            alike = (
                one
                for one in free
                if (not one.pci or not pci)
                and one.host.capability in (None, _host(0, seen, None).capability)
                and one.host.gfx in (None, seen.gfx or None)
            )
            card = next(alike, None)
        number = len(cards) if card is None else card.host.number
        memory = device.get("memory_mib")
        if card is None:
            cards.append(Card(_host(number, seen, memory), _kind(seen), pci))
        else:
            if card in free:
                free.remove(card)
            if card.gpu is None or card.host.memory_mib is None:
                fuller = Card(_host(number, seen, memory), _kind(seen) or card.gpu, card.pci)
                cards[cards.index(card)] = fuller
        numbers.append(number)
    return here._replace(cards=tuple(cards)), tuple(numbers)


def _address(text: str) -> str:
    """Return a PCI address without the leading zeros of its domain; ``""`` if it is none."""
    parts = text.lower().split(":")
    return ":".join((parts[0].lstrip("0"), *parts[1:])) if len(parts) == 3 else ""


def hidden(environ: Mapping[str, str]) -> str:
    """Return the variable that hides GPUs from torch, ``CUDA_VISIBLE_DEVICES=1``; ``""``: none."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        if name in environ:
            return f"{name}={printable(environ[name])}"
    return ""


def hides(environ: Mapping[str, str], *, some_are_seen: bool) -> bool:
    """Tell whether a GPU that torch does not see is hidden from it, rather than out of order.

    Args:
        environ: the environment.
        some_are_seen: torch sees others.
    """
    chosen = hidden(environ)
    return bool(chosen) and (some_are_seen or chosen.partition("=")[2].strip() in _NONE)


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the worker.

    Devices are counted in the order of the bus, as ``nvidia-smi`` does, unless something chooses
    among them: then they mean what they meant.
    """
    made = dict(environ)
    if not hidden(environ):
        made.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    made["TORCHVISION_WARN_WHEN_EXTENSION_LOADING_FAILS"] = "1"
    made["PYTHONUNBUFFERED"] = "1"
    return made
