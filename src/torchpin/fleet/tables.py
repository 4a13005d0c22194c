"""Load the fleet's data files: GPUs, cloud instance types, architectures, JetPack releases.

The files are made by ``tools/build_fleet_data.py``; nothing here is written by hand. Each table is
read once, on first use.
"""

from __future__ import annotations

import json
import os
from typing import Any

from torchpin.errors import CatalogError
from torchpin.named import NamedTuple


class Product(NamedTuple):
    """One GPU product."""

    name: str
    vendor: str
    capability: tuple[int, int] | None
    gfx: str | None
    product: str
    host: str
    tegra: bool
    source: tuple[int, ...]
    """Numbers into ``GpuTable.sources``."""


class GpuTable(NamedTuple):
    """Look-up keys (lower-case letters and digits of a name) and what they mean."""

    by_key: dict[str, Product]
    by_name: dict[str, Product]
    ambiguous: dict[str, tuple[str, tuple[tuple[str, str], ...]]]
    """Key → display name and (candidate, capability)."""
    sources: tuple[str, ...]


class Instance(NamedTuple):
    """One cloud instance type with GPUs."""

    provider: str
    name: str
    gpus: tuple[str, ...]
    host: str
    source: str


class Architecture(NamedTuple):
    """What drivers know of a compute capability; branches are the first number of a version."""

    capability: tuple[int, int]
    name: str
    min_driver_branch: int | None
    """A driver of an older branch cannot know the GPU; None: nothing is stated."""
    last_driver_branch: int | None
    source: str


class JetPack(NamedTuple):
    """One JetPack release (``4``, ``5``: the whole line) and the GPUs that it serves."""

    version: tuple[int, ...]
    capabilities: tuple[tuple[int, int], ...]
    source: str
    l4t: tuple[str, ...] = ()
    """Releases of Jetson Linux that it brings: ``36.4``, or ``35`` for all of that line."""


_cache: dict[str, Any] = {}


def _read(name: str) -> dict[str, Any]:
    path = os.path.join(os.path.dirname(__file__), "data", name)
    try:
        with open(path, encoding="utf-8") as file:
            value: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        raise CatalogError(f"cannot read torchpin's own data file: {error}", path=path) from error
    return value


def _sources(data: dict[str, Any], record: dict[str, Any]) -> str:
    return "; ".join(data["sources"][number] for number in record["source"])


def capability(text: str) -> tuple[int, int]:
    """Return ``(7, 5)`` for ``7.5``."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def gpu_table() -> GpuTable:
    """Return the table of GPU products.

    Raises:
        CatalogError: the data file is missing or damaged.
    """
    table: GpuTable | None = _cache.get("gpus")
    if table is None:
        data = _read("gpus.json")
        table = GpuTable({}, {}, {}, tuple(data["sources"]))
        for record in data["gpus"]:
            written = record.get("capability")
            product = Product(
                record["name"],
                record["vendor"],
                capability(written) if written else None,
                record.get("gfx"),
                record["product"],
                record.get("host", ""),
                record.get("tegra", False),
                tuple(record["source"]),
            )
            table.by_name[product.name] = product
            for key in record["keys"]:
                table.by_key[key] = product
        for record in data["ambiguous"]:
            candidates = tuple((name, text) for name, text in record["candidates"])
            table.ambiguous[record["key"]] = (record["name"], candidates)
        _cache["gpus"] = table
    return table


def instance_table() -> dict[str, Instance]:
    """Return cloud instance types by their lower-case name.

    Raises:
        CatalogError: the data file is missing or damaged.
    """
    table: dict[str, Instance] | None = _cache.get("instances")
    if table is None:
        data = _read("instances.json")
        table = {}
        for record in data["instances"]:
            instance = Instance(
                record["provider"],
                record["instance"],
                tuple(record["gpus"]),
                record["host"],
                _sources(data, record),
            )
            for name in (instance.name, *record["aliases"]):
                table[name.lower()] = instance
        _cache["instances"] = table
    return table


def architecture_table() -> dict[tuple[int, int], Architecture]:
    """Return what is known of each compute capability.

    Raises:
        CatalogError: the data file is missing or damaged.
    """
    table: dict[tuple[int, int], Architecture] | None = _cache.get("architectures")
    if table is None:
        data = _read("architectures.json")
        table = {}
        for record in data["architectures"]:
            first, last = record["min_driver_branch"], record["last_driver_branch"]
            key = capability(record["capability"])
            table[key] = Architecture(
                key,
                record["architecture"],
                int(first) if first else None,
                int(last) if last else None,
                _sources(data, record),
            )
        _cache["architectures"] = table
    return table


def jetpack_table() -> tuple[JetPack, ...]:
    """Return the known JetPack releases, ascending.

    Raises:
        CatalogError: the data file is missing or damaged.
    """
    table: tuple[JetPack, ...] | None = _cache.get("jetpacks")
    if table is None:
        data = _read("architectures.json")
        table = tuple(
            JetPack(
                tuple(int(part) for part in record["jetpack"].split(".")),
                tuple(capability(text) for text in record["capabilities"]),
                _sources(data, record),
                tuple(record["l4t"].split(", ")),
            )
            for record in data["jetpacks"]
        )
        _cache["jetpacks"] = table
    return table
