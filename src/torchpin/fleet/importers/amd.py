"""JSON of AMD's tools: ``rocm-smi --json`` and ``amd-smi static --json`` or ``list --json``."""

from __future__ import annotations

import re
from typing import Any

from torchpin.errors import UsageError
from torchpin.fleet.importers.model import Found, Machine, SeenGpu
from torchpin.fleet.importers.text import rows, table, word
from torchpin.patterns import regex

_GFX = regex(r"gfx[0-9]{1,3}[0-9a-f]{2}", re.I)
_CARD = regex(r"card[0-9]+", re.I)


def is_rocm_smi(value: object) -> bool:
    """Tell whether a JSON value is of ``rocm-smi --json``."""
    return any(_CARD.fullmatch(key) for key in table(value))


def read_rocm_smi(value: Any, source: str, name: str) -> Found:
    """Return the machine of ``rocm-smi --showproductname --json`` (or ``-a --json``).

    Raises:
        UsageError: it holds no card.
    """
    gpus: list[SeenGpu] = []
    for key, card in table(value).items():
        if not _CARD.fullmatch(key):
            continue
        told = {str(field).lower(): word(text) for field, text in table(card).items()}
        series = told.get("card series", "") or told.get("card model", "")
        gpus.append(SeenGpu(_product(series), gfx=_gfx(told.get("gfx version", ""))))
    if not gpus:
        raise UsageError(
            "holds no card", path=source, hint="run: rocm-smi --showproductname --json"
        )
    return Found("rocm-smi", (Machine(name, tuple(gpus), "Card Series, GFX Version"),))


def is_amd_smi(value: object) -> bool:
    """Tell whether a JSON value is of ``amd-smi static --json`` or ``list --json``."""
    return any("gpu" in table(entry) for entry in _entries(value))


def read_amd_smi(value: Any, source: str, name: str) -> Found:
    """Return the machine of ``amd-smi static --json``; ``list --json`` tells the number alone.

    Raises:
        UsageError: it holds no GPU.
    """
    gpus: list[SeenGpu] = []
    for entry in _entries(value):
        told = table(entry)
        if "gpu" not in told:
            continue
        asic = table(told.get("asic"))
        market = word(asic.get("market_name"))
        gpus.append(SeenGpu(_product(market), gfx=_gfx(word(asic.get("target_graphics_version")))))
    if not gpus:
        raise UsageError("holds no GPU", path=source, hint="run: amd-smi static --asic --json")
    notes: tuple[str, ...] = ()
    if not any(gpu.name or gpu.gfx for gpu in gpus):
        notes = ("it does not name the GPUs: `amd-smi static --asic --json` does",)
    return Found(
        "amd-smi",
        (Machine(name, tuple(gpus), "market_name, target_graphics_version"),),
        notes,
    )


def _entries(value: object) -> list[Any]:
    told = table(value)
    return rows(value) or rows(told.get("gpu_data")) or ([told] if "asic" in told else [])


def _product(text: str) -> str:
    """Return a product name; a PCI device number (``0x74a1``) is none."""
    return "" if re.fullmatch(r"0x[0-9a-f]+|[0-9a-f]{4}", text, re.I) else text


def _gfx(text: str) -> str:
    """Return the ISA name without its features; old versions of the tools write ``GFX942``."""
    match = _GFX.match(text)
    return match[0].lower() if match else ""
