"""How to build torch for a GPU that no published wheel serves."""

from __future__ import annotations

from torchpin.fleet.model import Gpu
from torchpin.resolve.source_facts import NVCC_LISTS, RAISED, cuda_floor, number, toolkit_span

BUILD_GUIDE = "https://github.com/pytorch/pytorch#from-source"
ROCM_GUIDE = "https://github.com/pytorch/pytorch#amd-rocm-support"


def recipe(gpu: Gpu, torch_version: str) -> tuple[str, ...]:
    """Return the lines of a recipe: comments that say why, and commands.

    Args:
        gpu: what the build must run on.
        torch_version: public version to build, ``2.14.1``.
    """
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
            f"# source: {RAISED}",
        )
    first, last = span
    floor = cuda_floor(torch_version)
    if floor is None:
        return (
            f"# which CUDA toolkits torch {torch_version} builds with is not known",
            f"# source: {BUILD_GUIDE}",
        )
    if number(floor.cuda) > number(first):
        first = floor.cuda
    if last and number(first) > number(last):
        return (
            f"# sm_{major}{minor} needs a CUDA toolkit up to {last}, torch {torch_version} from",
            f"# source needs CUDA {floor.cuda} or newer: build an older torch",
            f"# source: {NVCC_LISTS}; {floor.source}; {RAISED}",
        )
    upper = f" to {last}" if last else " or newer"
    return (
        *head,
        f"# toolkit: CUDA {first}{upper} (its nvcc must emit sm_{major}{minor}: {NVCC_LISTS})",
        f"# torch {torch_version} needs CUDA {floor.cuda} or newer to build",
        f"export CUDA_HOME=/usr/local/cuda-{last or first}",
        f'export TORCH_CUDA_ARCH_LIST="{major}.{minor}"',
        *build,
        f"# sources: {BUILD_GUIDE}; {floor.source}; {RAISED}",
        "# `torchpin recipe` tells the whole: cuDNN, NCCL, torchvision, as a script or Dockerfile",
    )
