"""The words of the catalog: builds, kernel lists, existence."""

from __future__ import annotations

from torchpin.named import NamedTuple

PLATFORMS = (
    "linux-x86_64",
    "linux-aarch64",
    "windows-x86_64",
    "windows-arm64",
    "macos-arm64",
    "macos-x86_64",
)
FAMILY = ("torch", "torchvision", "torchaudio")
"""The packages that a plan moves together."""
FOLLOWERS = (
    "torchcodec",
    "torchao",
    "xformers",
    "bitsandbytes",
    "torchtext",
    "torchdata",
    "triton",
)
"""The packages for which a plan chooses the version once torch is chosen."""
WATCHED = (
    *FAMILY,
    "torchtext",
    "torchdata",
    "torchcodec",
    "torchao",
    "triton",
    "pytorch-triton-rocm",
    "pytorch-triton-xpu",
    "triton-rocm",
    "triton-xpu",
    "xformers",
)
"""The packages that the catalog knows and rules look at."""


class Kernels(NamedTuple):
    """What a library was compiled for, and how that is known."""

    sass: tuple[str, ...]
    """Compute capabilities of the cubins, digits and suffix only: ``("70", "90a", "120")``."""
    ptx: tuple[str, ...]
    """Compute capabilities of the PTX: ``("120",)``."""
    gfx: tuple[str, ...]
    """AMD ISA names: ``("gfx90a", "gfx942")``."""
    evidence: str
    source: str


class Build(NamedTuple):
    """One (package, version, index, channel, platform) that was published."""

    package: str
    version: str
    """Public version without a local label: ``2.14.0``."""
    label: str
    """Local label in the *file name*, ``""`` if none (PyPI, macOS): ``cu126``."""
    channel: str
    """What it really is: ``cpu``, ``cu126``, ``rocm7.2``, ``xpu`` (PyPI's builds too)."""
    home: str
    """Where it lies: ``pypi`` or ``channel``."""
    platform: str
    """One of ``PLATFORMS``."""
    pythons: tuple[str, ...]
    """Proved tags: ``cp311``, ``cp314t``, ``py3`` (any)."""
    pythons_inferred: tuple[str, ...]
    """Tags that exist on PyPI for this version and are inferred for this channel."""
    kernels: Kernels | None
    """Of the main library; None for a CPU build or where nothing is known."""
    libraries: tuple[tuple[str, Kernels], ...]
    """Libraries whose list differs: ``(("libtorch_cuda_linalg.so", Kernels(…)),)``."""
    cuda: str | None
    """CUDA runtime, ``major.minor``; None for other builds."""
    glibc: str | None
    """glibc floor of the Linux wheel, None where not known or not Linux."""
    macos: str | None
    """Lowest macOS version, ``14.0``; None where not known or not macOS."""
    requires_torch: str | None
    """Specifier on torch in its METADATA: ``==2.14.0``; ``""``: declares none; None: not known."""
    requires_python: str | None
    yanked: bool
    released: str | None
    """Date of upload, ISO; None where not known."""
    evidence: str
    """Of the existence."""
    source: str

    @property
    def full_version(self) -> str:
        """Version as installers see it in the file name: ``2.14.0+cu126``."""
        return f"{self.version}+{self.label}" if self.label else self.version

    @property
    def place(self) -> str:
        """Version and place for people: ``2.14.1+cu126``, ``2.10.0 (PyPI, cu128)``."""
        if self.home == "pypi":
            return (
                f"{self.full_version} (PyPI, {self.channel})"
                if self.channel
                else (f"{self.full_version} (PyPI)")
            )
        return self.full_version if self.label else f"{self.version} ({self.channel})"

    @property
    def title(self) -> str:
        """Package, version and place for people: ``torch 2.10.0 (PyPI, cu128)``."""
        return f"{self.package} {self.place}"


class Existence(NamedTuple):
    """Whether something was published, and how that is known. ``exists`` None means unknown."""

    exists: bool | None
    evidence: str
    source: str


class ChannelSpan(NamedTuple):
    """First and last release of a package on a channel."""

    package: str
    channel: str
    first: str
    last: str
    evidence: str
    source: str
    closed: bool
    """True if it is proved that no later release exists on the channel (see ``bounded``)."""
    begun: bool = False
    """True if it is proved that no earlier release exists on the channel."""


class Health(NamedTuple):
    """A known defect of a channel."""

    channel: str
    """``*`` for all, ``pypi`` for PyPI."""
    kind: str
    problem: str
    since: str
    status: str
    affects: str
    workaround: str
    source: str


class PageRead(NamedTuple):
    """An index page that a refresh read whole: what it does not list was not there."""

    channel: str
    """``pypi`` or a channel."""
    date: str
    """When, ISO."""
    newest: str
    """The newest version of the package that was known anywhere then."""
