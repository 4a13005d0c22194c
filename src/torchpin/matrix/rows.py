"""Which rows a matrix has: groups of a fleet, GPUs that were named, or the families of GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.fleet.checks import default_platform
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import Fleet, Gpu, NodeGroup
from torchpin.fleet.tables import Architecture, architecture_table, gpu_table
from torchpin.matrix.model import Row

OLDEST = (5, 0)
"""Families before it are shown only where all are asked for: no release since 2.0 has kernels."""


def fleet_rows(fleet: Fleet) -> tuple[Row, ...]:
    """Return a row a group, titled by its name and its GPUs."""
    return tuple(
        Row(
            (group.name, *dict.fromkeys(f"  {gpu.name}" for gpu in group.gpus)),
            group,
        )
        for group in fleet.groups
    )


def gpu_rows(base: NodeGroup, *, platform: bool) -> tuple[Row, ...]:
    """Return a row for each GPU of a group that options declare.

    ``platform`` tells whether the platform was declared too; else each GPU has its own.
    """
    if not base.gpus:
        return (Row(("no GPU",), base._replace(name="no GPU")),)
    rows = []
    for gpu in dict.fromkeys(base.gpus):
        where = base.platform if platform else default_platform([gpu])
        group = base._replace(name=gpu.name, gpus=(gpu,), platform=where)
        title = gpu.name if gpu.arch in ("", gpu.name) else f"{gpu.name} {gpu.arch}"
        rows.append(Row((title,), group))
    return tuple(rows)


def family_rows(like: NodeGroup, *, every: bool, platform: str | None) -> tuple[Row, ...]:
    """Return a row for each compute capability and ISA that the GPU table knows.

    Args:
        like: driver, Pythons and glibc of each row.
        every: Jetson and families before Maxwell as well.
        platform: of each row; None: what the GPUs sit in.
    """
    architectures = architecture_table()
    rows = []
    for gpu in families():
        old = gpu.capability is not None and gpu.capability < OLDEST
        if (old or gpu.tegra) and not every:
            continue
        driver = like.driver if gpu.vendor == "nvidia" else None
        group = like._replace(
            name=gpu.arch,
            gpus=(gpu,),
            platform=platform or default_platform([gpu]),
            driver=driver,
        )
        rows.append(Row((family_title(gpu, architectures),), group))
    return tuple(rows)


def families() -> tuple[Gpu, ...]:
    """Return one GPU for each compute capability and ISA that a product has, ascending."""
    codes: dict[str, None] = {}
    products = gpu_table().by_name.values()
    capabilities = sorted({one.capability for one in products if one.capability is not None})
    codes.update((f"sm_{major}{minor}", None) for major, minor in capabilities)
    isas = {one.gfx for one in products if one.gfx is not None}
    codes.update((isa, None) for isa in sorted(isas, key=_isa))
    return tuple(gpu for code in codes for gpu in find_gpu(code))


def _isa(name: str) -> tuple[int, str]:
    """Order ISA names by generation: gfx906 before gfx90a before gfx1030."""
    return len(name), name


def family_title(gpu: Gpu, architectures: dict[tuple[int, int], Architecture]) -> str:
    """Return ``sm_70 Volta``; ISA names have no other."""
    known = architectures.get(gpu.capability) if gpu.capability is not None else None
    name = "Jetson" if gpu.tegra else (known.name if known is not None else "")
    return f"{gpu.arch} {name}".rstrip()


def join(rows: Sequence[tuple[Row, tuple[object, ...]]]) -> tuple[tuple[Row, int], ...]:
    """Join neighbours with equal answers; return each row with the number of its first."""
    out: list[tuple[Row, int, tuple[object, ...]]] = []
    for number, (row, answer) in enumerate(rows):
        if out and out[-1][2] == answer:
            first, at, _ = out[-1]
            out[-1] = (first._replace(titles=(*first.titles, *row.titles)), at, answer)
        else:
            out.append((row, number, answer))
    return tuple((row, at) for row, at, _ in out)
