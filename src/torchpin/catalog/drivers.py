"""NVIDIA drivers: floors, branches, toolkits, forward compatibility, JetPack. Pure look-ups.

The data (``data/drivers.json``) is made by ``tools/build_drivers.py`` from NVIDIA's documents:
the CUDA compatibility guide, the toolkit release notes and the driver support matrices.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from torchpin.errors import CatalogError
from torchpin.named import NamedTuple

DATA = os.path.join(os.path.dirname(__file__), "data", "drivers.json")

COMPATIBLE = "compatible"
SAME_BRANCH = "same branch, not needed"
NOT_PROVIDED = "not provided"


class Fact(NamedTuple):
    """A value and how it is known."""

    value: str
    evidence: str
    source: str


class Jetpack(NamedTuple):
    """A JetPack release: its driver comes with the board's system."""

    version: str
    l4t: str
    cuda: str | None
    capabilities: tuple[str, ...]
    evidence: str
    source: str


@lru_cache(maxsize=1024)
def version_key(text: str) -> tuple[int, ...] | None:
    """Return the numbers of ``550.54.15``; None for a text that is no dotted number."""
    if re.fullmatch(r"\d+(?:\.\d+)*", text) is None:
        return None
    return tuple(int(part) for part in text.split("."))


def at_least(version: str, floor: str) -> bool:
    """Return whether ``version`` reaches ``floor``, number by number.

    A shorter version stands for the newest release that begins so: driver ``580`` is any
    current R580, so it reaches ``580.65.06``. A text that is no version never reaches a floor.
    """
    have, need = version_key(version), version_key(floor)
    if have is None or need is None:
        return False
    return have >= need[: len(have)] if len(have) < len(need) else have >= need


class Drivers:
    """The tables, with one method a question. None always means: the tables are silent."""

    def __init__(self, records: Iterable[Mapping[str, Any]]) -> None:
        self.date = ""
        self._floors: dict[tuple[str, str], Fact] = {}
        self._toolkits: dict[tuple[str, str], Fact] = {}
        self._branches: dict[int, Fact] = {}
        self._first: dict[tuple[int, int], Fact] = {}
        self._last: dict[tuple[int, int], Fact] = {}
        self._compat: dict[str, tuple[Mapping[str, str], str, str]] = {}
        self._jetpacks: dict[str, Jetpack] = {}
        for record in records:
            if record["kind"] == "date":
                self.date = record["date"]
            else:
                self._take(record)

    def _take(self, record: Mapping[str, Any]) -> None:
        kind, evidence = record["kind"], record["evidence"]
        sources: list[str] = record["sources"]
        source = "; ".join(sources) if kind == "gpu" else sources[0]
        if kind == "floor":
            self._floors[record["cuda"], record["os"]] = Fact(record["driver"], evidence, source)
        elif kind == "toolkit":
            key = (record["cuda"], record["platform"])
            self._toolkits[key] = Fact(record["driver"], evidence, source)
        elif kind == "branch":
            self._branches[int(record["branch"])] = Fact(record["cuda"], evidence, source)
        elif kind == "gpu":
            major, minor = record["capability"].split(".")
            capability = (int(major), int(minor))
            if record["first"] is not None:
                first = Fact(record["first"], record["first_evidence"], source)
                self._first[capability] = first
            if record["last"] is not None:
                self._last[capability] = Fact(record["last"], evidence, source)
        elif kind == "compat":
            self._compat[record["package"]] = (record["base"], evidence, source)
        elif kind == "jetpack":
            self._jetpacks[record["jetpack"]] = Jetpack(
                record["jetpack"],
                record["l4t"],
                record["cuda"],
                tuple(record["capabilities"]),
                evidence,
                source,
            )

    def family_floor(self, cuda: str, platform: str) -> Fact | None:
        """Return the lowest driver for a CUDA family by minor-version compatibility.

        ``cuda`` is a major version (``12``) or a full one (``12.8``); CUDA 11.0 has a lower floor
        of its own on Linux. Source: NVIDIA, CUDA minor-version compatibility.
        """
        system = "windows" if platform.startswith("windows") else "linux"
        return self._floors.get((cuda, system)) or self._floors.get((cuda.split(".")[0], system))

    def toolkit_driver(self, cuda: str, platform: str) -> Fact | None:
        """Return the driver that the toolkit's first release came with; it knows its PTX.

        Source: CUDA toolkit release notes, Table 3. Where NVIDIA prints no figure (CUDA 13 on
        Windows) the value is the branch, and the evidence says inferred.
        """
        return self._toolkits.get((cuda, platform))

    def branch_of(self, driver: str) -> str | None:
        """Return the branch that a driver belongs to: ``550.54.15`` → ``550``.

        Windows drivers of a branch count on (572.83 and 576.02 belong to R570 and R575), so it is
        the highest known branch that is not above the driver's first number. A driver older than
        every known branch has none; one newer than all counts as its own.
        """
        key = version_key(driver)
        if key is None:
            return None
        known = [branch for branch in self._branches if branch <= key[0]]
        if not known:
            return None
        newest = max(self._branches)
        if key[0] > newest + 9:
            return str(key[0])
        return str(max(known))

    def branch_cuda(self, branch: str) -> Fact | None:
        """Return the CUDA version that the drivers of a branch bring: ``550`` → ``12.4``."""
        return self._branches.get(int(branch)) if branch.isdigit() else None

    def gpu_first_branch(self, capability: tuple[int, int]) -> Fact | None:
        """Return the branch that first knew a GPU; inferred from the first toolkit where NVIDIA
        names none. None for Tegra, whose driver comes with the board's system.
        """
        return self._first.get(capability)

    def gpu_last_branch(self, capability: tuple[int, int]) -> Fact | None:
        """Return the last branch that supports a GPU; None while it is supported (and for Tegra).

        Source: NVIDIA, CUDA toolkit, driver and architecture matrix.
        """
        return self._last.get(capability)

    def thresholds(self) -> tuple[str, ...]:
        """Return every driver version at which an answer of these tables may change, ascending."""
        told = {fact.value for facts in (self._floors, self._toolkits) for fact in facts.values()}
        told.update(fact.value for fact in self._first.values())
        told.update(str(branch) for branch in self._branches)
        told.update(str(int(fact.value) + 1) for fact in self._last.values())
        told.add(str(max(self._branches) + 10))
        return tuple(sorted(told, key=lambda text: version_key(text) or ()))

    def cuda_compat_allows(self, package: str, driver: str) -> Fact | None:
        """Return what NVIDIA's forward-compatibility table says of ``cuda-compat-<package>``
        on a kernel driver: ``COMPATIBLE``, ``SAME_BRANCH`` or ``NOT_PROVIDED``.

        Only for data-center GPUs on Linux. Branches not in the table are past their end of life
        and not supported as a base: None.
        """
        row, branch = self._compat.get(package), self.branch_of(driver)
        if row is None or branch is None or branch not in row[0]:
            return None
        return Fact(row[0][branch], row[1], row[2])

    def jetpack(self, version: str) -> Jetpack | None:
        """Return a JetPack release: ``6.2.1`` finds 6.2, ``5.1`` finds 5.x."""
        parts = version.split(".")
        return self._jetpacks.get(".".join(parts[:2])) or self._jetpacks.get(f"{parts[0]}.x")


_loaded: Drivers | None = None


def load_drivers() -> Drivers:
    """Return the shipped tables, read on the first call. Raises ``CatalogError``."""
    global _loaded
    if _loaded is None:
        try:
            with open(DATA, encoding="utf-8") as file:
                _loaded = Drivers(json.load(file))
        except (OSError, ValueError, KeyError) as error:
            raise CatalogError(f"the driver tables cannot be read: {error}", path=DATA) from error
    return _loaded
