"""Does a library hold code that a GPU can run? Pure functions, no look-ups.

The rules are NVIDIA's (CUDA C++ Programming Guide, *Binary Compatibility* and *PTX
Compatibility*; Blackwell compatibility guide), the exclusions are PyTorch's own table
(``torch/cuda/__init__.py``, ``DEVICE_REQUIREMENT``), the family targets were measured with ptxas.
AMD's generic targets: LLVM, *User Guide for AMDGPU Backend*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from torchpin.evidence import INFERRED, PUBLISHED
from torchpin.named import NamedTuple

SASS = "sass"
PTX = "ptx"
NONE = "none"
UNKNOWN = "unknown"

BINARY_GUIDE = (
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#binary-compatibility"
)
PTX_GUIDE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#ptx-compatibility"
BLACKWELL_GUIDE = "https://docs.nvidia.com/cuda/blackwell-compatibility-guide/index.html"
TORCH_TABLE = "torch/cuda/__init__.py, DEVICE_REQUIREMENT (torch 2.11.0 and later)"
ORIN_REPORTS = (
    "https://github.com/pytorch/pytorch/pull/186285; "
    "https://github.com/nvidia-holoscan/holohub/pull/1687; "
    "https://github.com/conda-forge/pytorch-cpu-feedstock/issues/527"
)
ORIN_DOUBTS = (
    "https://github.com/jax-ml/jax/pull/40492; https://github.com/vllm-project/vllm/pull/19328; "
    "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1939"
)
AMD_GUIDE = "https://llvm.org/docs/AMDGPUUsage.html#amdgpu-generic-processor-table"

Capability = tuple[int, int]

THOR = (11, 0)
"""Called 10.1 by CUDA 12 and 11.0 from CUDA 13 on; the same device."""
TEGRA: frozenset[Capability] = frozenset(((5, 3), (6, 2), (7, 2), (8, 7)))
"""Jetson devices that only run cubins made for them (but see ``_tegra``)."""
FAMILIES: dict[Capability, frozenset[Capability]] = {
    (10, 0): frozenset(((10, 0), (10, 3), (10, 7))),
    (10, 3): frozenset(((10, 3), (10, 7))),
    (10, 7): frozenset(((10, 7),)),
    (11, 0): frozenset(((11, 0),)),
    (12, 0): frozenset(((12, 0), (12, 1))),
    (12, 1): frozenset(((12, 1),)),
}
"""Family targets (``f``) → devices, as ptxas 12.9.86 and 13.5.37 accept them."""
STATED: frozenset[tuple[Capability, Capability]] = frozenset(
    (
        ((3, 0), (3, 5)),
        ((3, 0), (3, 7)),
        ((3, 5), (3, 7)),
        ((5, 0), (5, 2)),
        ((6, 0), (6, 1)),
        ((7, 0), (7, 5)),
        ((8, 0), (8, 6)),
        ((8, 0), (8, 8)),
        ((8, 0), (8, 9)),
        ((8, 6), (8, 8)),
        ((8, 6), (8, 9)),
        ((10, 0), (10, 3)),
        ((12, 0), (12, 1)),
    )
)
"""Pairs (cubin, device) that NVIDIA's or PyTorch's tables name. Others of the same major follow
from the rule alone: sm_100 code on 10.7."""

GENERIC: dict[str, frozenset[str]] = {
    "gfx9-generic": frozenset(("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c")),
    "gfx9-4-generic": frozenset(("gfx940", "gfx941", "gfx942", "gfx950")),
    "gfx10-1-generic": frozenset(("gfx1010", "gfx1011", "gfx1012", "gfx1013")),
    "gfx10-3-generic": frozenset(f"gfx103{n}" for n in range(7)),
    "gfx11-generic": frozenset(
        ("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153")
    ),
    "gfx12-generic": frozenset(("gfx1200", "gfx1201")),
}


class Code(NamedTuple):
    """What a cubin or a PTX text was made for."""

    capability: Capability
    suffix: str
    """``""``, ``a`` (exactly this device) or ``f`` (its family)."""


class Match(NamedTuple):
    """How a device runs a library."""

    how: str
    """``sass``, ``ptx``, ``none`` or ``unknown``."""
    code: str
    """The code that it would run: ``sm_80``, ``compute_90``, ``gfx90a``; ``""`` for none."""
    evidence: str
    source: str


@lru_cache(maxsize=1024)
def parse_code(text: str) -> Code | None:
    """Read ``90a``, ``sm_120``, ``compute_100f``; None for anything else."""
    match = re.fullmatch(r"(?:sm_|compute_)?(\d+)(\d)([af]?)", text)
    if match is None:
        return None
    return Code(_same((int(match[1]), int(match[2]))), match[3])


def _same(capability: Capability) -> Capability:
    return THOR if capability == (10, 1) else capability


def _tegra(cubin: Capability, device: Capability, jetpack: str | None, cuda: str | None) -> Match:
    """Judge code for a desktop GPU on a Jetson of the same major."""
    code = f"sm_{cubin[0]}{cubin[1]}"
    if device == (8, 7) and cubin in ((8, 0), (8, 6)):
        if _jetpack_at_least(jetpack, 7, 2) and (cuda is None or int(cuda.split(".")[0]) >= 13):
            return Match(SASS, code, INFERRED, ORIN_REPORTS)
        return Match(UNKNOWN, code, INFERRED, ORIN_DOUBTS)
    if device == (7, 2) and cubin == (7, 0):
        return Match(UNKNOWN, code, INFERRED, ORIN_DOUBTS)
    return Match(NONE, "", PUBLISHED, TORCH_TABLE)


def _jetpack_at_least(jetpack: str | None, major: int, minor: int) -> bool:
    match = re.match(r"(\d+)(?:\.(\d+))?", jetpack or "")
    return match is not None and (int(match[1]), int(match[2] or 0)) >= (major, minor)


def cubin_match(
    text: str,
    capability: Capability,
    *,
    tegra: bool = False,
    jetpack: str | None = None,
    cuda: str | None = None,
) -> Match:
    """Judge one cubin on one device."""
    code, device = parse_code(text), _same(capability)
    if code is None:
        return Match(UNKNOWN, text, INFERRED, "")
    cubin = code.capability
    name = f"sm_{text.removeprefix('sm_')}"
    if code.suffix == "f":
        fits = device in FAMILIES.get(cubin, frozenset((cubin,)))
        return Match(SASS if fits else NONE, name if fits else "", PUBLISHED, BLACKWELL_GUIDE)
    if cubin == device:
        return Match(SASS, name, PUBLISHED, BINARY_GUIDE)
    if code.suffix == "a" or cubin[0] != device[0] or cubin[1] > device[1]:
        return Match(NONE, "", PUBLISHED, BINARY_GUIDE)
    if cubin in TEGRA:
        return Match(NONE, "", PUBLISHED, TORCH_TABLE)
    if device in TEGRA:
        return _tegra(cubin, device, jetpack, cuda)
    if tegra:
        return Match(UNKNOWN, name, INFERRED, BINARY_GUIDE)
    stated = (cubin, device) in STATED
    return Match(SASS, name, PUBLISHED if stated else INFERRED, BINARY_GUIDE)


def ptx_match(text: str, capability: Capability) -> Match:
    """Judge one PTX text on one device, leaving the driver out."""
    code, device = parse_code(text), _same(capability)
    if code is None:
        return Match(UNKNOWN, text, INFERRED, "")
    if code.suffix == "a":
        fits = code.capability == device
    elif code.suffix == "f":
        fits = device in FAMILIES.get(code.capability, frozenset((code.capability,)))
    else:
        fits = code.capability <= device
    name = f"compute_{text.removeprefix('compute_')}"
    return Match(PTX if fits else NONE, name if fits else "", PUBLISHED, PTX_GUIDE)


_RANK = {SASS: 0, PTX: 1, UNKNOWN: 2, NONE: 3}


def _order(match: Match) -> tuple[int, bool, int, str]:
    """Best first: cubins before PTX, stated before inferred, the highest target, plain names."""
    code = parse_code(match.code)
    height = code.capability[0] * 10 + code.capability[1] if code else 0
    return (_RANK[match.how], match.evidence == INFERRED, -height, match.code)


def kernel_match(
    sass: Iterable[str],
    ptx: Iterable[str],
    capability: Capability,
    *,
    tegra: bool = False,
    jetpack: str | None = None,
    cuda: str | None = None,
) -> Match:
    """Return how a device of ``capability`` runs a library with these cubins and PTX texts.

    ``jetpack`` and ``cuda`` (of the wheel) matter for Orin only. ``unknown``: only code whose
    fate on the device is contested. The driver's part is ``judge.driver``'s.
    """
    return _kernel_match(tuple(sass), tuple(ptx), capability, tegra, jetpack, cuda)


@lru_cache(maxsize=2048)
def _kernel_match(
    sass: tuple[str, ...],
    ptx: tuple[str, ...],
    capability: Capability,
    tegra: bool,
    jetpack: str | None,
    cuda: str | None,
) -> Match:
    """The same lists are judged again and again: for each Python, driver and version."""
    matches = [
        cubin_match(text, capability, tegra=tegra, jetpack=jetpack, cuda=cuda) for text in sass
    ]
    matches.extend(ptx_match(text, capability) for text in ptx)
    return min(matches, key=_order, default=Match(NONE, "", PUBLISHED, BINARY_GUIDE))


def gfx_match(targets: Iterable[str], gfx: str) -> Match:
    """Return how an AMD device runs a library: its own ISA, or a generic one that names it.

    Feature suffixes (``:xnack-``) are not looked at. ``HSA_OVERRIDE_GFX_VERSION`` makes the
    runtime lie about the device; that is the user's risk and never counts as running.
    """
    device = gfx.split(":")[0]
    names = [target.split(":")[0] for target in targets]
    if device in names:
        return Match(SASS, device, PUBLISHED, AMD_GUIDE)
    for name in names:
        if device in GENERIC.get(name, ()):
            return Match(SASS, name, PUBLISHED, AMD_GUIDE)
    return Match(NONE, "", PUBLISHED, AMD_GUIDE)
