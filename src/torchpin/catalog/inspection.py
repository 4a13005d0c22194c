"""The words of an inspection: libraries, stated GPUs, and all that was read."""

from __future__ import annotations

from torchpin.catalog.elf import Layout
from torchpin.catalog.fatbin import Fatbins
from torchpin.named import NamedTuple
from torchpin.patterns import regex

NOT_FETCHED = "not fetched"
"""The note of a library that a shorter look left out."""
NO_LIBRARY = "not a library"
"""The note of a member that is named like one."""
NO_CUDA = "not fetched (built without CUDA)"
"""The note of a big library of a CPU build of torch."""
_CUDA = regex(
    r"(?:lib)?(?:cuda|cudart|cudadevrt|cublas(?:Lt)?|cudnn|cudss|cufftw?|cufile|cupti|curand|cusolver"
    r"|cusparse(?:Lt)?|cutensor|nccl|npp\w*|nvcuda|nvjpeg|nvJitLink|nvrtc|nvshmem|nvToolsExt)"
    r"(?![a-z])[\w.-]*\Z"
)


class Library(NamedTuple):
    """One binary of a wheel."""

    name: str
    """Path in the wheel; the file's name if it was given alone."""
    size: int
    packed: int
    layout: Layout | None
    """None: not read, or not a library in spite of its name."""
    fatbins: Fatbins
    note: str = ""
    """Why it was not read; ``""``: it was."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Return the CUDA libraries that it is linked with."""
        needed = self.layout.needed if self.layout else ()
        return tuple(name for name in needed if _CUDA.match(name))


class Arches(NamedTuple):
    """The GPUs that torch states (``torch.cuda.get_arch_list()``)."""

    sass: tuple[str, ...]
    ptx: tuple[str, ...]
    gfx: tuple[str, ...]
    library: str
    """Where the list was found."""


class Inspection(NamedTuple):
    """What was read."""

    source: str
    """Path, or URL without credentials and query."""
    kind: str
    """``wheel`` or ``library``."""
    file: str
    """File name."""
    size: int
    package: str | None
    version: str | None
    tags: tuple[str, ...]
    requires_python: str | None
    requires: tuple[str, ...]
    built: str | None
    """``__version__`` of its ``version.py``: tells the channel where the file name does not."""
    cuda: str | None
    """CUDA that it was built with, ``13.2``; ``13`` where only the runtime library tells."""
    hip: str | None
    arches: Arches | None
    libraries: tuple[Library, ...]
    notes: tuple[str, ...]
    requests: int
    """HTTP requests; 0 for a file."""
    fetched: int
    """Bytes fetched; 0 for a file."""

    @property
    def device(self) -> tuple[Library, ...]:
        """Return the libraries with device code for NVIDIA GPUs."""
        return tuple(library for library in self.libraries if library.fatbins.parts)

    @property
    def unread(self) -> tuple[Library, ...]:
        """Return the libraries that were left out."""
        return tuple(library for library in self.libraries if library.note)
