"""What the name of a container image tells: Python, C library, and the torch that it holds.

Only what the publisher of the image promises by the name is a fact here; a private image, a digest
alone or a tag such as ``latest`` tells nothing.
"""

from __future__ import annotations

import re

from torchpin.named import NamedTuple
from torchpin.patterns import regex

GLIBC = {
    "xenial": "2.23",
    "16.04": "2.23",
    "bionic": "2.27",
    "18.04": "2.27",
    "focal": "2.31",
    "20.04": "2.31",
    "jammy": "2.35",
    "22.04": "2.35",
    "noble": "2.39",
    "24.04": "2.39",
}
"""Ubuntu release → glibc. Source: the version of package libc6 in each release of Ubuntu (the first
figure of the release; updates do not change it)."""
DEBIAN = {
    "jessie": "2.19",
    "8": "2.19",
    "stretch": "2.24",
    "9": "2.24",
    "buster": "2.28",
    "10": "2.28",
    "bullseye": "2.31",
    "11": "2.31",
    "bookworm": "2.36",
    "12": "2.36",
    "trixie": "2.41",
    "13": "2.41",
}
"""Debian release → glibc. Source: the version of package libc6 in each release of Debian."""
ENTERPRISE = {"7": "2.17", "8": "2.28", "9": "2.34", "10": "2.39"}
"""Release of RHEL, its rebuilds and ``ubi`` → glibc. Source:
https://access.redhat.com/solutions/38634."""
_ENTERPRISE = regex(r"(?:centos|rockylinux|almalinux|oraclelinux|ubi|rhel|stream)-?(\d+)")
_UBUNTU = regex(r"ubuntu-?(\d\d\.\d\d)")
_PYTHON = regex(r"(\d+\.\d+)(?:\.\d+)?(?:(?:a|b|rc)\d+)?(?:-(.+))?")
_PYTORCH = regex(r"(\d+\.\d+(?:\.\d+)?)-cuda(\d+\.\d+)(?:\.\d+)?-cudnn\d+-(runtime|devel)")
_CUDA = regex(r"(\d+\.\d+)(?:\.\d+)?(?:-cudnn\d*)?-(base|runtime|devel|cudnn-runtime|cudnn-devel)")
_NGC = regex(r"\d\d\.\d\d-py3(?:-\w+)?")

PYTHON_IMAGES = "https://hub.docker.com/_/python"
PYTORCH_IMAGES = "https://hub.docker.com/r/pytorch/pytorch"
CUDA_IMAGES = "https://hub.docker.com/r/nvidia/cuda"
NGC_IMAGES = "https://docs.nvidia.com/deeplearning/frameworks/pytorch-release-notes/"


class ImageFacts(NamedTuple):
    """What is known of an image; None and empty: not known."""

    python: str | None = None
    glibc: str | None = None
    musl: bool = False
    packages: tuple[tuple[str, str | None], ...] = ()
    """Packages of the PyTorch family that it holds, with their public versions; None: some."""
    cuda: str | None = None
    """The CUDA toolkit or runtime that it holds, ``12.6``."""
    compiler: bool = False
    """It holds ``nvcc``."""
    vendor: str = ""
    """Whose own build of torch it holds, where it is not PyTorch's."""
    source: str = ""


def image_facts(reference: str) -> ImageFacts:
    """Return what an image reference tells; empty facts where it tells nothing."""
    name, _, _ = reference.partition("@")
    slash = name.rfind("/")
    colon = name.find(":", slash + 1)
    repository, tag = (name[:colon], name[colon + 1 :]) if colon >= 0 else (name, "")
    repository = repository.lower()
    for prefix in ("docker.io/", "index.docker.io/", "registry.hub.docker.com/", "library/"):
        repository = repository.removeprefix(prefix)
    repository = repository.removeprefix("public.ecr.aws/docker/library/")
    tag = tag.lower()
    if repository == "python":
        return _python(tag)
    if repository == "alpine" or (repository.count("/") == 0 and "alpine" in tag):
        return ImageFacts(musl=True, source="https://musl.libc.org/")
    if repository == "ubuntu":
        return ImageFacts(glibc=GLIBC.get(tag.partition("-")[0]), source="Ubuntu's libc6")
    if repository == "debian":
        release = tag.partition("-")[0].partition(".")[0]
        return ImageFacts(glibc=DEBIAN.get(release), source="Debian's libc6")
    if repository in ("centos", "rockylinux", "almalinux", "oraclelinux"):
        match = re.match(r"(?:centos|stream)?(\d+)", tag)
        glibc = ENTERPRISE.get(match[1]) if match is not None else None
        return ImageFacts(glibc=glibc, source="Red Hat's glibc")
    if repository in ("nvidia/cuda", "nvcr.io/nvidia/cuda"):
        return _cuda(tag)
    if repository == "pytorch/pytorch":
        return _pytorch(tag)
    if repository == "nvcr.io/nvidia/pytorch":
        if _NGC.fullmatch(tag) is None:
            return ImageFacts()
        held = (("torch", None), ("torchvision", None))
        return ImageFacts(packages=held, vendor="NVIDIA", source=NGC_IMAGES)
    return ImageFacts()


def _distribution(tag: str) -> str | None:
    """Return the glibc of the distribution that a tag names."""
    ubuntu = _UBUNTU.search(tag)
    if ubuntu is not None:
        return GLIBC.get(ubuntu[1])
    enterprise = _ENTERPRISE.search(tag)
    return ENTERPRISE.get(enterprise[1]) if enterprise is not None else None


def _python(tag: str) -> ImageFacts:
    match = _PYTHON.fullmatch(tag)
    if match is None:
        return ImageFacts(musl="alpine" in tag, source=PYTHON_IMAGES if "alpine" in tag else "")
    variant = match[2] or ""
    words = variant.split("-")
    glibc = next((DEBIAN[word] for word in words if word in DEBIAN and word.isalpha()), None)
    musl = variant.startswith("alpine")
    return ImageFacts(python=match[1], glibc=glibc, musl=musl, source=PYTHON_IMAGES)


def _cuda(tag: str) -> ImageFacts:
    match = _CUDA.match(tag)
    return ImageFacts(
        glibc=_distribution(tag),
        cuda=match[1] if match is not None else None,
        compiler=match is not None and match[2].endswith("devel"),
        source=CUDA_IMAGES,
    )


def _pytorch(tag: str) -> ImageFacts:
    match = _PYTORCH.fullmatch(tag)
    if match is None:
        return ImageFacts()
    version = match[1] if match[1].count(".") == 2 else f"{match[1]}.0"
    held: tuple[tuple[str, str | None], ...] = (
        ("torch", version),
        ("torchvision", None),
        ("torchaudio", None),  # in most of them; what is there is not replaced
    )
    return ImageFacts(
        packages=held,
        cuda=match[2],
        compiler=match[3] == "devel",
        source=PYTORCH_IMAGES,
    )
