"""Names of builds, GPUs and CUDA versions in sentences, and what kind of build a channel is."""

from __future__ import annotations

from torchpin.catalog import labels
from torchpin.catalog.model import Build, Kernels
from torchpin.fleet.model import Gpu

CUDA = "cuda"
ROCM = "rocm"
CPU = "cpu"
XPU = "xpu"


def kind_of(build: Build) -> str | None:
    """Return ``cuda``, ``rocm``, ``cpu`` or ``xpu``; None for a vendor's own label."""
    return labels.kind_of_label(build.channel)


def cuda_of(build: Build) -> str | None:
    """Return the CUDA runtime of a build, ``major.minor``: recorded, else from its channel."""
    return build.cuda if build.cuda is not None else labels.cuda_of(build.channel)


def name_gpu(gpu: Gpu) -> str:
    """``Tesla V100 (sm_70)``, ``sm_70`` where only that is declared."""
    return f"{gpu.name} ({gpu.arch})" if gpu.arch and gpu.name != gpu.arch else gpu.name


def list_kernels(kernels: Kernels) -> str:
    """``sm_75 sm_80``, ``gfx90a gfx942``; ``no GPU`` for an empty list."""
    names = [f"sm_{code}" for code in kernels.sass] + list(kernels.gfx)
    return " ".join(names) or "no GPU"


def list_ptx(kernels: Kernels) -> str:
    """``compute_90 compute_120``."""
    return " ".join(f"compute_{code}" for code in kernels.ptx)
