"""What the name of a container image tells: Python, C library, and the torch that it holds."""

from __future__ import annotations

from typing import NamedTuple


class ImageFacts(NamedTuple):
    """What is known of an image; None and empty: not known."""

    python: str | None = None
    glibc: str | None = None
    musl: bool = False
    packages: tuple[tuple[str, str], ...] = ()
    """Packages of the PyTorch family that it holds, with their public versions."""
    cuda: str | None = None
    vendor: bool = False
    """Its torch is a vendor's own build."""
    source: str = ""


def image_facts(reference: str) -> ImageFacts:
    """Return what an image reference tells."""
    return ImageFacts()
