"""The words of ``verify``: what a machine is, what was tried on it, and how that went.

Each record is one line of ``torchpin verify --output-format jsonl``; see ``verify.lines``.
"""

from __future__ import annotations

from torchpin.named import NamedTuple

VERSION = 1
"""Version of the lines. New fields may come within a version; what there is keeps its meaning."""

OK, FAILED, SKIPPED, INCOMPLETE = "ok", "failed", "skipped", "incomplete"

WORK_STATUSES = (OK, FAILED, SKIPPED)
SUMMARY_STATUSES = (OK, FAILED, INCOMPLETE)
LIBRARIES = ("torch", "cublas", "cudnn", "linalg", "torchvision", "torchaudio")

NO_KERNEL_IMAGE = "no-kernel-image"
DRIVER_TOO_OLD = "driver-too-old"
NO_DRIVER = "no-driver"
CPU_BUILD = "cpu-build"
WRONG_COMPANION = "wrong-companion"
OUT_OF_MEMORY = "out-of-memory"
TIMEOUT = "timeout"
CRASHED = "crashed"
IMPORT_FAILED = "import-failed"
WRONG_RESULT = "wrong-result"
OTHER = "other"
REASONS = (
    NO_KERNEL_IMAGE,
    DRIVER_TOO_OLD,
    NO_DRIVER,
    CPU_BUILD,
    WRONG_COMPANION,
    OUT_OF_MEMORY,
    TIMEOUT,
    CRASHED,
    IMPORT_FAILED,
    WRONG_RESULT,
    OTHER,
)
PREDICTIONS = ("runs", "runs-via-ptx", "partly", "fails", "unknown")


class HostGpu(NamedTuple):
    """A GPU of the machine."""

    number: int
    """Index, ``index`` in the lines: as NVML and ``nvidia-smi`` count, in the order of
    the PCI bus."""
    name: str
    capability: str | None = None
    """``7.0``; None: not told, or no NVIDIA GPU."""
    memory_mib: int | None = None
    gfx: str | None = None
    """``gfx942``; None: no AMD GPU."""


class Kernels(NamedTuple):
    """What one installed CUDA or ROCm library holds."""

    library: str
    """File name, ``libtorch_cuda.so``."""
    sass: tuple[str, ...] = ()
    """``sm_70`` or ``gfx942``, ascending."""
    ptx: tuple[str, ...] = ()
    """``compute_90``, ascending."""


class TorchBuild(NamedTuple):
    """The torch that is installed, as it tells of itself."""

    version: str
    """With its label, ``2.14.1+cu126``."""
    cuda: str | None = None
    """``torch.version.cuda``; None: a build for another kind of machine."""
    archs: tuple[str, ...] = ()
    """``torch.cuda.get_arch_list()``, or what the files hold where torch does not import."""
    channel: str | None = None
    """``cu126``; None: not known."""
    libraries: tuple[Kernels, ...] = ()
    """Kernels per library: of the files, or of the catalog where it knows the build."""
    evidence: str | None = None
    """Where ``libraries`` comes from: ``files`` or ``catalog``; None: nothing is known."""


class Host(NamedTuple):
    """What is there and what is installed; the first line of a run."""

    node: str
    python: str | None
    """``3.11.7`` of the Python that runs torch; None: it does not start."""
    platform: str
    """``linux-x86_64``."""
    glibc: str | None = None
    driver: str | None = None
    gpus: tuple[HostGpu, ...] = ()
    packages: tuple[tuple[str, str], ...] = ()
    """Name → installed version, sorted by name."""
    torch: TorchBuild | None = None
    """None: not installed."""
    group: str | None = None
    """The node group of the profile that this machine belongs to."""
    differences: tuple[str, ...] = ()
    """What is not as the profile says."""
    notes: tuple[str, ...] = ()
    """What is good to know and is no failure."""


class Work(NamedTuple):
    """One piece of work on one GPU, or on the CPU."""

    node: str
    gpu: int | None
    """Index of the GPU; None: the work was done on the CPU, or without a device."""
    library: str
    """One of ``LIBRARIES``."""
    operation: str
    """``matmul fp16``."""
    status: str
    """One of ``WORK_STATUSES``."""
    reason: str | None = None
    """One of ``REASONS`` if it failed."""
    error_code: int | None = None
    """CUDA's error code where there is one: 209 is cudaErrorNoKernelImageForDevice."""
    message: str | None = None
    """What torch said, or why it was skipped; one line."""
    seconds: float = 0.0
    predicted: str | None = None
    """One of ``PREDICTIONS``; None: nothing was predicted."""
    agrees: bool | None = None
    """Whether it went as predicted; None: the prediction or the work leaves it open."""


class Summary(NamedTuple):
    """How it went; the last line of a run."""

    node: str
    group: str | None
    status: str
    """One of ``SUMMARY_STATUSES``: ``failed`` if work failed or the machine is not as the profile
    says, ``incomplete`` if nothing could be tried."""
    ran: int = 0
    """Work that was tried: what went well and what failed."""
    failed: int = 0
    skipped: int = 0
    disagreements: int = 0
    notes: tuple[str, ...] = ()
    """Warnings of torch, each with what came of it."""


Record = Host | Work | Summary
