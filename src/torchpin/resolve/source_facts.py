"""What a build of torch from source accepts: toolkits, compilers, cuDNN; where each is known from.

The floors are read out of the wheels: ``torch/share/cmake/Caffe2/public/cuda.cmake`` in the wheels
of PyPI for Linux x86_64 is the file by which that very release was configured. It refuses an older
CUDA toolkit by ``PyTorch requires CUDA … or above.`` Read from 2.0.1, 2.1.2, 2.2.2, 2.3.1, 2.4.1,
2.5.1, 2.6.0, 2.7.1, 2.8.0, 2.9.1, 2.10.0, 2.11.0, 2.12.1, 2.13.0, 2.14.0, 2.14.1 and 2.15.0.
Releases before and after are not known.
"""

from __future__ import annotations

from torchpin.evidence import MEASURED
from torchpin.named import NamedTuple

NVCC_LISTS = "nvcc --list-gpu-code of CUDA 11.7 to 13.5"
CUDA_CMAKE = "torch/share/cmake/Caffe2/public/cuda.cmake in PyPI's wheel of torch"
RAISED = "https://github.com/pytorch/pytorch/pull/192257"
"""The lowest toolkit to build with went from 12.1 to 12.6 in torch 2.14."""
SHIM = "https://github.com/pytorch/pytorch/pull/180248"
"""``setup.py`` is a shim from torch 2.14."""
CXX20 = "https://github.com/pytorch/pytorch/pull/178150"
"""The headers of torch 2.14 and later refuse anything older than C++20."""
NO_CUDA_12 = "https://github.com/pytorch/pytorch/issues/190385"
"""torch 2.15 is built and tested by PyTorch with CUDA 13 alone."""
BUILD_REQUIREMENTS = "https://github.com/ROCm/TheRock/pull/6537"
"""``requirements-build.txt`` holds the build backend of newer sources; isolation hides nothing."""

_FLOORS: tuple[tuple[tuple[int, int], str], ...] = (
    ((2, 0), "11.0"),
    ((2, 9), "12.0"),
    ((2, 12), "12.1"),
    ((2, 14), "12.6"),
)
"""First torch release of a row, lowest CUDA toolkit that its build accepts."""
_READ_TO = (2, 15)
"""The last release of which the floor was read."""
_PIP_BUILDS = (2, 13)
"""First release whose notes build by pip (release notes of torch 2.14, *Release Engineering*)."""

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

IMAGES = {
    "11.8": "11.8.0",
    "12.6": "12.6.3",
    "12.8": "12.8.1",
    "12.9": "12.9.1",
    "13.0": "13.0.2",
    "13.2": "13.2.1",
}
"""CUDA toolkit → release of which NVIDIA published ``nvidia/cuda:<release>-devel-ubuntu22.04``, as
public Dockerfiles name it; others are not known. Source: https://hub.docker.com/r/nvidia/cuda."""


class Floor(NamedTuple):
    """The lowest CUDA toolkit that the build of a torch release accepts."""

    cuda: str
    evidence: str
    source: str


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


def cuda_floor(torch_version: str) -> Floor | None:
    """Return the lowest CUDA toolkit that a build of a torch release accepts; None: not known."""
    release = release_of(torch_version)
    if release > _READ_TO:
        return None
    found = None
    for first, cuda in _FLOORS:
        if first <= release:
            found = cuda
    return Floor(found, MEASURED, f"{CUDA_CMAKE} {torch_version}") if found else None


def newest_accepting(cuda: str) -> tuple[str, Floor] | None:
    """Return the newest release series whose build is known to accept a toolkit: ``2.8``."""
    for minor in range(_READ_TO[1], -1, -1):
        floor = cuda_floor(f"{_READ_TO[0]}.{minor}.0")
        if floor is not None and number(floor.cuda) <= number(cuda):
            return f"{_READ_TO[0]}.{minor}", floor
    return None


def cudnn_floor(torch_version: str) -> str:
    """Return the lowest cuDNN that a build accepts (the same file says it)."""
    return "8.1" if release_of(torch_version) >= (2, 3) else "8.0"


def built_by_pip(torch_version: str) -> bool:
    """Tell whether ``pip install .`` is the way to build a release; else ``setup.py`` is."""
    return release_of(torch_version) >= _PIP_BUILDS


def release_of(version: str) -> tuple[int, int]:
    """Return ``(2, 15)`` of ``2.15.0``."""
    major, minor = version.split("+")[0].split(".")[:2]
    return int(major), int(minor)


def number(version: str) -> tuple[int, ...]:
    """Return a CUDA version as numbers, to compare by."""
    return tuple(int(part) for part in version.split("."))
