"""pip: every index and link page is one pool, and the highest version in it wins.

Among wheels of equal version and tag pip keeps the last one that it found; it reads link pages
first and the indexes after them, in order, each page once: an address that is given again keeps
its first place (``LinkCollector.collect_sources`` of pip 26.3).
"""

from __future__ import annotations

from collections.abc import Iterable

from torchpin.select.asks import Ask
from torchpin.select.channels import is_public_pypi
from torchpin.select.facts import Facts
from torchpin.select.model import Install, PlacedIndex
from torchpin.select.pools import Candidate, Pool, candidates_of, offer


def once(indexes: Iterable[PlacedIndex]) -> list[PlacedIndex]:
    """Return the indexes that pip asks, each address once and at its first place.

    pip joins the name of the package to the address, so that one slash at its end does not matter
    (``SearchScope.get_index_urls_locations``).
    """
    found: dict[str, PlacedIndex] = {}
    for index in indexes:
        address = "" if is_public_pypi(index.url) else index.url.removesuffix("/")
        found.setdefault(address, index)
    return list(found.values())


def _is_open(url: str) -> bool:
    """Return whether an address ends in a query or fragment: the name of the package, which pip
    puts behind it, becomes a part of that, and the answer is a page without wheels."""
    return "?" in url or "#" in url


def pool_of(ask: Ask, install: Install, facts: Facts) -> Pool:
    """Return the one pool that pip makes of all effective indexes."""
    candidates: list[Candidate] = []
    hidden: list[str] = []
    channels: list[str] = []
    nightly = broad = ""
    pypi = False
    links = [index for index in install.indexes if index.option == "--find-links"]
    mains = [index for index in install.indexes if index.option != "--find-links"]
    for rank, index in enumerate((*once(links), *once(mains))):
        offered = offer(index, ask, facts)
        if not offered.reachable or (index.option != "--find-links" and _is_open(index.url)):
            continue
        candidates += candidates_of(offered, index, rank, facts)
        nightly = nightly or offered.nightly
        broad = broad or offered.broad
        if offered.hidden:
            hidden.append(offered.hidden)
        pypi = pypi or index.kind.kind == "pypi"
        channel = index.kind.channel
        if channel and index.kind.kind == "channel" and channel not in channels:
            channels.append(channel)
    return Pool(
        tuple(candidates), hidden[0] if hidden else "", tuple(channels), pypi, nightly, broad
    )
