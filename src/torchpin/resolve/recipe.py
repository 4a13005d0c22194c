"""How to build torch for a GPU that no published wheel serves."""

from __future__ import annotations

from torchpin.fleet.model import Gpu

NVCC_LISTS = "nvcc --list-gpu-code of CUDA 11.7 to 13.5"
BUILD_GUIDE = "https://github.com/pytorch/pytorch#from-source"
CUDA_FLOOR = "https://github.com/pytorch/pytorch/pull/192257"
"""Release notes of torch 2.14: the lowest toolkit to build with went from 12.1 to 12.6."""
ROCM_GUIDE = "https://github.com/pytorch/pytorch#amd-rocm-support"

_TOOLKITS: tuple[tuple[tuple[int, int], str, str], ...] = (
    ((3, 5), "11.7", "11.8"),
    ((5, 0), "11.7", "12.9"),
    ((7, 5), "11.7", ""),
    ((8, 9), "11.8", ""),
    ((10, 0), "12.8", ""),
    ((10, 3), "12.9", ""),
    ((10, 7), "13.4", ""),
    ((11, 0), "13.0", ""),
    ((12, 0), "12.8", ""),
    ((12, 1), "12.9", ""),
)
"""Lowest capability of a row, first and last CUDA toolkit whose nvcc emits code for it (measured
from nvcc 11.7 to 13.5; ``""``: none has dropped it)."""


def toolkit_span(capability: tuple[int, int]) -> tuple[str, str] | None:
    """Return the first and last known CUDA toolkit that compiles for a capability.

    The last is ``""`` where the newest toolkit still does. None: no toolkit since 11.7 does.
    """
    if capability == (10, 1):  # what CUDA 12 calls the device that is 11.0 since CUDA 13
        capability = (11, 0)
    found = None
    for lowest, first, last in _TOOLKITS:
        if lowest <= capability:
            found = (first, last)
    return found


def recipe(gpu: Gpu, torch_version: str) -> tuple[str, ...]:
    """Return the lines of a recipe: comments that say why, and commands.

    Args:
        gpu: what the build must run on.
        torch_version: public version to build, ``2.14.1``.
    """
    from packaging.version import Version

    head = (
        f"# torch {torch_version} from source for {gpu.name} ({gpu.arch or gpu.vendor})",
        f"git clone --recursive --branch v{torch_version} https://github.com/pytorch/pytorch",
        "cd pytorch",
        "python -m pip install -r requirements.txt",
    )
    build = (
        "# setup.py is only a shim: pip drives the build",
        "python -m pip install . -v --no-build-isolation",
    )
    if gpu.gfx is not None:
        return (
            *head,
            "python tools/amd_build/build_amd.py",
            f"export PYTORCH_ROCM_ARCH={gpu.gfx}",
            *build,
            f"# source: {ROCM_GUIDE}",
        )
    if gpu.capability is None:
        return (f"# no recipe is known for {gpu.name}", f"# source: {BUILD_GUIDE}")
    span = toolkit_span(gpu.capability)
    major, minor = gpu.capability
    if span is None:
        return (
            f"# no CUDA toolkit since 11.7 compiles for sm_{major}{minor} ({NVCC_LISTS});",
            f"# CUDA 10.2 is the last for Kepler 3.0; no torch of today builds with it: {gpu.name}",
            "# can run a CPU build only",
            f"# source: {CUDA_FLOOR}",
        )
    first, last = span
    floor = "12.6" if Version(torch_version) >= Version("2.14") else first
    if _number(floor) > _number(first):
        first = floor
    if last and _number(first) > _number(last):
        return (
            f"# sm_{major}{minor} needs a CUDA toolkit up to {last}, torch {torch_version} from",
            f"# source needs CUDA {floor} or newer: build an older torch",
            f"# source: {NVCC_LISTS}; {CUDA_FLOOR}",
        )
    upper = f" to {last}" if last else " or newer"
    return (
        *head,
        f"# toolkit: CUDA {first}{upper} (its nvcc must emit sm_{major}{minor}: {NVCC_LISTS})",
        *(("# torch 2.14 and newer need CUDA 12.6 or newer to build",) if floor == "12.6" else ()),
        f"export CUDA_HOME=/usr/local/cuda-{last or first}",
        f'export TORCH_CUDA_ARCH_LIST="{major}.{minor}"',
        *build,
        f"# sources: {BUILD_GUIDE}; {CUDA_FLOOR}",
    )


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
