"""Which GPUs of a fleet run what was inspected, library by library."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from torchpin.catalog.inspection import NO_CUDA, NO_LIBRARY, NOT_FETCHED, Inspection
from torchpin.evidence import PROOF
from torchpin.fleet.model import Fleet, Gpu, NodeGroup
from torchpin.judge.driver import judge_driver
from torchpin.judge.kernels import NONE, PTX, SASS, Match, gfx_match, kernel_match
from torchpin.judge.model import BADNESS, FAILS, PARTLY, RUNS, RUNS_VIA_PTX, UNKNOWN
from torchpin.named import NamedTuple
from torchpin.patterns import regex

NO_CODE = "no-device-code"
"""Nothing in it is made for a GPU: none is needed, none is used."""
_VARIANT = regex(r"(?i)[_-]?(?:cu(?:da)?[_-]?\d{2,3}|sm_?\d{2,3}[af]?)(?![0-9a-z])")
_OTHER_VENDORS = {"amd": ("AMD", "amdhip64"), "intel": ("Intel", "sycl")}


class LibraryFit(NamedTuple):
    """How a GPU runs one library."""

    library: str
    status: str
    """A word of verdicts: ``runs``, ``runs-via-ptx``, ``partly``, ``fails``, ``unknown``."""
    code: str
    """What it mostly runs: ``sm_80``, ``compute_120``; ``""`` for none."""
    covered: int
    """Fatbins that hold code for it."""
    total: int
    special: bool
    """Made for single GPUs only (``sm_90a``): no other is expected to run it."""


class GpuFit(NamedTuple):
    """How a GPU runs the whole."""

    group: str
    gpu: Gpu
    status: str
    """A word of verdicts, or ``no-device-code``."""
    libraries: tuple[LibraryFit, ...]
    because: tuple[str, ...]


def fits(inspection: Inspection, fleet: Fleet) -> tuple[GpuFit, ...]:
    """Return a row a GPU of each node group; groups without GPUs have none."""
    return tuple(_fit(inspection, group, gpu) for group in fleet.groups for gpu in group.gpus)


def runs_everywhere(rows: Iterable[GpuFit]) -> bool:
    """Tell whether no GPU is known to run it in part or not at all."""
    return all(row.status not in (PARTLY, FAILS) for row in rows)


def _fit(inspection: Inspection, group: NodeGroup, gpu: Gpu) -> GpuFit:
    if gpu.vendor in _OTHER_VENDORS:
        return _other_vendor(inspection, group, gpu)
    if inspection.arches is not None and inspection.arches.gfx:
        return GpuFit(group.name, gpu, FAILS, (), ("it is built for AMD GPUs",))
    if gpu.capability is None:
        return GpuFit(group.name, gpu, UNKNOWN, (), ("its compute capability is not known",))
    libraries = _libraries(inspection, group, gpu)
    if not libraries:
        unread = [
            library for library in inspection.unread if library.note not in (NO_CUDA, NO_LIBRARY)
        ]
        status = UNKNOWN if unread else NO_CODE
        because = tuple(f"{library.name}: {library.note}" for library in unread)
        return GpuFit(group.name, gpu, status, (), because)
    return _with_driver(inspection, group, gpu, _whole(libraries), libraries)


def _libraries(inspection: Inspection, group: NodeGroup, gpu: Gpu) -> tuple[LibraryFit, ...]:
    assert gpu.capability is not None
    out: list[LibraryFit] = []
    stated = inspection.arches
    hidden = [library for library in inspection.libraries if library.note == NOT_FETCHED]
    if stated is not None and (hidden or not inspection.device):
        match = _match(stated.sass, stated.ptx, inspection, group, gpu)
        out.append(_row("list that torch states", {match: 1}, special=False))
    for library in inspection.device:
        tally: Counter[Match] = Counter()
        for part in library.fatbins.parts:
            tally[_match(part.sass, part.ptx, inspection, group, gpu)] += part.fatbins
        targets = (*library.fatbins.sass, *library.fatbins.ptx)
        special = all(target.endswith(("a", "f")) for target in targets)
        out.append(_row(library.name, tally, special=special))
    return tuple(out)


def _match(
    sass: Iterable[str],
    ptx: Iterable[str],
    inspection: Inspection,
    group: NodeGroup,
    gpu: Gpu,
) -> Match:
    assert gpu.capability is not None
    cuda = inspection.cuda if inspection.cuda and inspection.cuda[0].isdigit() else None
    return kernel_match(
        sass, ptx, gpu.capability, tegra=gpu.tegra, jetpack=group.jetpack, cuda=cuda
    )


def _row(name: str, tally: dict[Match, int], *, special: bool) -> LibraryFit:
    """Judge a library by its fatbins: one that serves fewer than half of them is ``partly``."""
    total = sum(tally.values())
    cubins = sum(count for match, count in tally.items() if match.how == SASS)
    texts = sum(count for match, count in tally.items() if match.how == PTX)
    lacking = sum(count for match, count in tally.items() if match.how == NONE)
    serving = {match: count for match, count in tally.items() if match.how in (SASS, PTX)}
    best = max(serving, key=lambda match: serving[match], default=None)
    if lacking == total:
        status = FAILS
    elif not serving:
        status = UNKNOWN
    elif 2 * lacking > total:
        status = PARTLY
    else:
        status = RUNS if cubins >= texts else RUNS_VIA_PTX
    return LibraryFit(name, status, best.code if best else "", cubins + texts, total, special)


def _whole(libraries: tuple[LibraryFit, ...]) -> str:
    """Judge a wheel by its libraries.

    Libraries whose paths differ in a CUDA version or a GPU alone (``…_cuda126.so`` and
    ``…_cuda130.so``, ``sm90/x.so`` and ``sm100/x.so``) are alternatives: one that runs is enough.
    Those for single GPUs do not count against others.
    """
    groups: dict[str, list[str]] = {}
    for row in libraries:
        if row.special and row.status == FAILS:
            continue
        key = _VARIANT.sub("", row.library) or row.library
        groups.setdefault(key, []).append(row.status)
    if not groups:
        return FAILS
    best = [min(statuses, key=BADNESS.index) for statuses in groups.values()]
    if all(status == FAILS for status in best):
        return FAILS
    if any(status in (FAILS, PARTLY) for status in best):
        return PARTLY
    return max(best, key=BADNESS.index)


def _with_driver(
    inspection: Inspection,
    group: NodeGroup,
    gpu: Gpu,
    status: str,
    libraries: tuple[LibraryFit, ...],
) -> GpuFit:
    """Add what the declared driver says, where the wheel tells its CUDA."""
    plain = GpuFit(group.name, gpu, status, libraries, ())
    cuda = inspection.cuda
    if status in (FAILS, UNKNOWN) or not re.fullmatch(r"\d{1,2}\.\d{1,2}", cuda or ""):
        return plain
    assert cuda is not None
    from torchpin.catalog.drivers import load_drivers

    how = PTX if status == RUNS_VIA_PTX else SASS
    subject = f"{inspection.package} {inspection.built or inspection.version}"
    for reason in judge_driver(subject, cuda, gpu, how, group, load_drivers()):
        if reason.status == FAILS:
            worse = FAILS if reason.evidence in PROOF else UNKNOWN
            return plain._replace(status=worse, because=(reason.text,))
    return plain


def _other_vendor(inspection: Inspection, group: NodeGroup, gpu: Gpu) -> GpuFit:
    arches = inspection.arches
    name, runtime = _OTHER_VENDORS[gpu.vendor]
    if gpu.vendor == "amd" and gpu.gfx and arches is not None and arches.gfx:
        match = gfx_match(arches.gfx, gpu.gfx)
        status = RUNS if match.how == SASS else FAILS
        row = LibraryFit(
            *("list that torch states", status, match.code, int(status == RUNS), 1, False)
        )
        return GpuFit(group.name, gpu, status, (row,), ())
    linked = any(
        runtime in needed
        for library in inspection.libraries
        if library.layout is not None
        for needed in library.layout.needed
    )
    if linked or (arches is not None and arches.gfx):
        because = f"code for {name} GPUs is not read"
        return GpuFit(group.name, gpu, UNKNOWN, (), (because,))
    if inspection.device or arches is not None:
        return GpuFit(group.name, gpu, FAILS, (), ("its device code is for NVIDIA GPUs",))
    return GpuFit(group.name, gpu, NO_CODE, (), ())
