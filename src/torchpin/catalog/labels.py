"""What a local label or channel name means: ``cu126`` → CUDA 12.6.

The rules are PyTorch's own naming (https://download.pytorch.org/whl/): ``cpu``, ``xpu``,
``rocmX.Y[.Z]``, and ``cu`` with the last digit as the minor version (``cu102`` is 10.2, ``cu92``
9.2). Everything else (``cu128.nv``, ``rocm7.2.1.lw.git1a2b``, ``cpu.cxx11.abi``, a git hash)
is a vendor's or a private build: its kind is None and nothing is known of it.
"""

from __future__ import annotations

from torchpin.patterns import regex

_CUDA = regex(r"cu(\d{1,2})(\d)\Z")
_ROCM = regex(r"rocm(\d+(?:\.\d+){1,2})\Z")


def kind_of_label(label: str) -> str | None:
    """Return ``cuda``, ``cpu``, ``rocm`` or ``xpu``; None for ``""`` and vendor labels."""
    if label in ("cpu", "xpu"):
        return label
    if _CUDA.match(label):
        return "cuda"
    if _ROCM.match(label):
        return "rocm"
    return None


def cuda_of(label: str) -> str | None:
    """Return the CUDA runtime of a label, ``major.minor``: ``cu126`` → ``12.6``; else None."""
    match = _CUDA.match(label)
    return f"{match[1]}.{match[2]}" if match else None


def rocm_of(label: str) -> str | None:
    """Return the ROCm version of a label: ``rocm6.2.4`` → ``6.2.4``; else None."""
    match = _ROCM.match(label)
    return match[1] if match else None


def label_of_cuda(version: str) -> str:
    """Return the label of a CUDA runtime: ``12.6`` → ``cu126``.

    Raises:
        ValueError: not of the form ``major.minor``.
    """
    major, dot, minor = version.partition(".")
    if not (dot and major.isdigit() and minor.isdigit() and len(minor) == 1):
        raise ValueError(f"not a CUDA version: {version}")
    return f"cu{major}{minor}"


def parse_label(label: str) -> tuple[str | None, str | None]:
    """Return (kind, version): ``("cuda", "12.6")``, ``("cpu", None)``, ``(None, None)``."""
    kind = kind_of_label(label)
    return kind, cuda_of(label) or rocm_of(label)
