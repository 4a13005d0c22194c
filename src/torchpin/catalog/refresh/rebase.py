"""Bring what a user's catalog found to the catalog of a newer torchpin (pure)."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from torchpin.catalog.records import Part, State, order
from torchpin.catalog.refresh.merge import key_of_build


def rebase(shipped: State, own: State) -> State:
    """Return the shipped catalog with what only the user's holds.

    Where both know a build, the shipped record stays: the pages are read again anyway.
    """
    parts = dict(shipped.parts)
    for name, part in own.parts.items():
        parts[name] = _part(parts[name], part) if name in parts else part
    pins = {(row[0], row[1]): row for row in (*own.pins, *shipped.pins)}
    return State(
        shipped.head,
        {name: parts[name] for name in sorted(parts)},
        {**own.partners, **shipped.partners},
        sorted(pins.values(), key=lambda row: (row[0], Version(row[1]))),
        shipped.health,
    )


def _part(shipped: Part, own: Part) -> Part:
    builds = {key_of_build(b): b for b in own.builds}
    builds |= {key_of_build(b): b for b in shipped.builds}
    rows: dict[tuple[str, ...], list[Any]] = {
        tuple(r[:3]): r for r in own.rows if str(r[5]).startswith("withdrawn: ")
    }
    rows |= {tuple(r[:3]): r for r in shipped.rows}
    pages = {page[0]: page for page in shipped.pages}
    for page in own.pages:
        if page[0] not in pages or page[1] > pages[page[0]][1]:
            pages[page[0]] = page
    versions = {Version(v): v for v in (*own.pypi, *shipped.pypi)}
    hashes = shipped.hashes
    if hashes is not None and own.hashes is not None:
        unique = {tuple(row[2:4]): row for row in (*own.hashes, *hashes)}
        hashes = sorted(unique.values(), key=lambda r: (Version(r[0]), r[1:]))
    return shipped._replace(
        builds=sorted(builds.values(), key=order),
        pypi=[versions[v] for v in sorted(versions)],
        rows=sorted(rows.values(), key=lambda r: (Version(r[0]), r[1], r[2])),
        pages=[pages[channel] for channel in sorted(pages)],
        hashes=hashes,
    )
