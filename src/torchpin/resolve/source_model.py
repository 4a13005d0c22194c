"""The words of builds from source: what is asked for, and the answer."""

from __future__ import annotations

from torchpin.catalog.model import Build
from torchpin.fleet.model import Gpu, Python
from torchpin.named import NamedTuple

WHEEL = "wheel"
"""A published build serves the GPU: nothing needs to be built."""
BUILD = "build"
"""No published build serves it; there is a recipe."""
IMPOSSIBLE = "impossible"
"""No published build serves it, and no toolkit that torch accepts compiles for it."""
UNKNOWN = "unknown"
"""What would be needed for a recipe is not known."""


class Note(NamedTuple):
    """One thing to know, and how it is known."""

    text: str
    evidence: str
    """A word of evidence, or ``unknown``."""
    source: str


class Companion(NamedTuple):
    """A package to build against the torch that was built."""

    package: str
    version: str
    repository: str


class Asked(NamedTuple):
    """What a recipe is asked for."""

    gpu: Gpu
    torch: str
    """Public version: ``2.15.0``."""
    python: Python | None
    platform: str
    more: tuple[Gpu, ...] = ()
    """Further GPUs of the same vendor that the same build has to serve."""
    driver: str | None = None
    """The driver that it has to run on; None: any."""
    group: str | None = None
    """The node group that is meant."""

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """All GPUs."""
        return (self.gpu, *self.more)

    @property
    def name(self) -> str:
        """The GPUs for people."""
        return " and ".join(gpu.name for gpu in self.gpus)

    @property
    def codes(self) -> tuple[str, ...]:
        """Their architectures, each once: ``sm_70``, ``gfx942``."""
        return tuple(dict.fromkeys(gpu.arch for gpu in self.gpus if gpu.arch))


class SourceBuild(NamedTuple):
    """The answer for one GPU and one release."""

    asked: Asked
    status: str
    """``wheel``, ``build``, ``impossible`` or ``unknown``."""
    because: tuple[Note, ...]
    """Why that is the answer."""
    wheel: Build | None = None
    """With ``wheel``: the build that serves."""
    last: Build | None = None
    """The newest release of which a wheel serves the GPU (and the Python)."""
    toolkit: str | None = None
    """CUDA toolkit to build with: ``12.9``; None: the one of the JetPack, or no CUDA."""
    arch: str = ""
    """For ``TORCH_CUDA_ARCH_LIST`` (``7.0``) or ``PYTORCH_ROCM_ARCH`` (``gfx906``)."""
    cudnn: tuple[str, str] | None = None
    """Package and version of a cuDNN that holds kernels for the GPU; None: none is known."""
    companions: tuple[Companion, ...] = ()
    notes: tuple[Note, ...] = ()
    """What to mind."""
    beside: tuple[str, ...] = ()
    """With ``wheel``: pins of torchvision and torchaudio to install with it."""
    newest: str = ""
    """The newest release of all, where it has no wheel for the GPU and none was asked for."""
    alone: tuple[tuple[Gpu, Build | None], ...] = ()
    """For several GPUs: the build of the release that serves each of them by itself."""
