"""The words of judgement."""

from __future__ import annotations

from torchpin.fleet.model import Gpu
from torchpin.named import NamedTuple

RUNS = "runs"
RUNS_VIA_PTX = "runs-via-ptx"
PARTLY = "partly"
FAILS = "fails"
UNKNOWN = "unknown"
BADNESS = (RUNS, RUNS_VIA_PTX, UNKNOWN, PARTLY, FAILS)
"""From best to worst; a verdict is as bad as its worst reason, but see ``verdict.combine``."""


class Reason(NamedTuple):
    """One answer to one question about a build on a target."""

    question: str
    """``kernels`` · ``libraries`` · ``driver`` · ``driver-branch`` · ``vendor`` · ``cpu-build`` ·
    ``cuda-on-cpu`` (information) · ``python`` · ``platform`` · ``glibc`` · ``macos`` ·
    ``companion-version`` · ``companion-cuda`` · ``triton`` (information)."""
    status: str
    """One of ``BADNESS``."""
    text: str
    """One sentence for the user, with the names and numbers in it."""
    evidence: str
    source: str
    gpu: Gpu | None = None
    library: str | None = None
    lacks: bool = False
    """True for an ``unknown`` that would be ``fails`` if an inferred fact is right."""


class Verdict(NamedTuple):
    """Whether a build runs on a target."""

    status: str
    reasons: tuple[Reason, ...]
    covers: tuple[str, ...]
    """What was looked at: ``torch kernels``, ``libtorch_cuda_linalg.so``, ``driver`` …"""
    leaves_out: tuple[str, ...] = ()
    """What was not looked at, and why a runs may still disappoint: ``cuDNN and cuBLAS`` …"""
