"""The fleet as plain rows and as JSON, for ``torchpin fleet show``."""

from __future__ import annotations

from typing import Any

from torchpin.fleet.model import Fleet, Gpu, NodeGroup
from torchpin.named import NamedTuple

JSON_VERSION = 1


class Row(NamedTuple):
    """One GPU of one node group (or the group itself if it has none), as text to print."""

    group: str
    gpu: str
    """Product name; ``CPU only``."""
    written: str
    """As the profile names it; ``""`` for a group without GPUs."""
    capability: str
    """``sm_70``, ``gfx942`` or ``""``."""
    driver: str
    platform: str
    glibc: str
    """``2.31``, ``musl`` or ``""``."""
    pythons: str
    """``3.10, 3.11``; ``""`` if not declared."""
    line: int
    """Line of the GPU, else of the group; 0 on the command line."""


def describe(fleet: Fleet) -> list[Row]:
    """Return the rows of a fleet, in the order of the profile."""
    rows: list[Row] = []
    for group in fleet.groups:
        lines = {setting.key: setting.line for setting in group.settings}
        common = (
            group.driver or "",
            group.platform,
            "musl" if group.musl else group.glibc or "",
            ", ".join(map(str, group.pythons)),
        )
        if not group.gpus:
            rows.append(Row(group.name, "CPU only", "", "", *common, group.line))
        for number, gpu in enumerate(group.gpus):
            line = lines.get(f"gpus[{number}]", lines.get("gpus", group.line))
            rows.append(Row(group.name, gpu.name, gpu.written, gpu.arch, *common, line))
    return rows


def describe_json(fleet: Fleet) -> dict[str, Any]:
    """Return the fleet as plain data for ``--output-format json``; nulls mean "not declared"."""
    return {
        "version": JSON_VERSION,
        "path": fleet.path,
        "policy": fleet.settings.policy,
        "catalog_max_age": fleet.settings.catalog_max_age,
        "indexes": dict(fleet.settings.indexes),
        "groups": [_group(group) for group in fleet.groups],
    }


def _group(group: NodeGroup) -> dict[str, Any]:
    return {
        "name": group.name,
        "line": group.line or None,
        "gpus": [_gpu(gpu) for gpu in group.gpus],
        "driver": group.driver,
        "python": [str(python) for python in group.pythons],
        "platform": group.platform,
        "libc": "musl" if group.musl else "glibc" if group.platform.startswith("linux") else None,
        "glibc": group.glibc,
        "cuda_compat": group.cuda_compat,
        "macos": group.macos,
        "wsl": group.wsl,
        "jetpack": group.jetpack,
        "rocm": group.rocm,
        "files": list(group.files),
        "extras": list(group.extras),
        "groups": list(group.dependency_groups),
        "client": group.client,
        "indexes": list(group.indexes),
    }


def _gpu(gpu: Gpu) -> dict[str, Any]:
    capability = gpu.capability
    return {
        "written": gpu.written,
        "name": gpu.name,
        "vendor": gpu.vendor,
        "capability": f"{capability[0]}.{capability[1]}" if capability else None,
        "arch": gpu.arch or None,
        "product": gpu.product or None,
        "source": gpu.source,
    }
