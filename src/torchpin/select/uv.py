"""uv: the first index that knows the name wins, whatever versions it holds (``first-index``).

Extra indexes come first in order, ``--index-url`` (or PyPI) last; link pages join whichever
index wins.
"""

from __future__ import annotations

from torchpin.select.asks import Ask
from torchpin.select.channels import channel_url, index_kind
from torchpin.select.facts import Facts
from torchpin.select.model import Install, PlacedIndex
from torchpin.select.pools import Candidate, Pool, candidates_of, offer


def pool_of(ask: Ask, install: Install, facts: Facts) -> Pool:
    """Return what uv sees: the first index that knows the name, and the link pages; all indexes
    with ``--index-strategy unsafe-best-match``."""
    if install.torch_backend is not None and ask.package in BACKED:
        return backend_pool(install.torch_backend, ask, facts)
    candidates: list[Candidate] = []
    hidden = nightly = broad = ""
    channels: list[str] = []
    pypi = decided = False
    for rank, index in enumerate(install.indexes):
        links = index.option == "--find-links"
        if decided and not links:
            continue
        offered = offer(index, ask, facts)
        if not offered.reachable:
            continue
        hidden = hidden or offered.hidden
        nightly = nightly or offered.nightly
        broad = broad or offered.broad
        if not links and (offered.hidden or offered.nightly or offered.builds):
            decided = not install.best_match
        elif not offered.builds and index.kind.kind != "pypi":
            continue
        # uv reads link pages first and keeps the first of equal wheels.
        order = len(install.indexes) * (2 if links else 1) - rank
        candidates += candidates_of(offered, index, order, facts)
        pypi = pypi or index.kind.kind == "pypi"
        channel = index.kind.channel
        if channel and index.kind.kind == "channel" and channel not in channels:
            channels.append(channel)
    return Pool(tuple(candidates), hidden, tuple(channels), pypi, nightly, broad)


BACKED = frozenset(
    (
        *("torch", "torchvision", "torchaudio", "torchtext", "torchcodec", "torchao", "xformers"),
        *("triton", "pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu"),
        *("triton-rocm", "triton-xpu"),
    )
)
"""Packages of the catalog that uv 0.13.9 asks the backend's index for (measured: the URLs that
``uv pip compile --torch-backend cu126 -vv`` names; torchdata comes from PyPI)."""


def backend_pool(backend: str, ask: Ask, facts: Facts) -> Pool:
    """Return what uv sees of a PyTorch package under ``--torch-backend``."""
    if backend == "auto" or "$" in backend:
        hidden = f"--torch-backend {backend} chooses by the machine that installs"
        return Pool((), hidden, (), False)
    url = channel_url(backend)
    index = PlacedIndex(None, None, "--torch-backend", url, index_kind(url))
    offered = offer(index, ask, facts)
    found = candidates_of(offered, index, 0, facts)
    return Pool(tuple(found), offered.hidden, (backend,), False, offered.nightly, offered.broad)
