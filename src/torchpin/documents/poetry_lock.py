"""Read ``poetry.lock`` (Poetry 1.0 to 2.x).

Poetry 2 (lock version 2.1) writes ``groups`` and ``markers`` on every package: where it installs.
Older locks have neither; then the manifest decides.
"""

from __future__ import annotations

import re
from typing import Any

from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Document, Problem, Span
from torchpin.documents.lock_text import (
    Entry,
    TomlError,
    canonical,
    cut,
    decode,
    document,
    filename,
    mapping,
    optional,
    parse,
    problem_of,
    string,
    strings,
    tables,
    value_span,
    watched_blocks,
    watched_whole,
)
from torchpin.documents.project import Lock, LockedPackage, LockedUse, LockedWheel
from torchpin.patterns import regex

KIND = "poetry.lock"
_TAIL = regex(r"^\[(?!\[|package\.)", re.MULTILINE)
_URL = regex(r"^url[ \t]*=[ \t]*\"([^\"\n]*)\"", re.MULTILINE)


def read_poetry_lock(path: str, data: bytes) -> Document:
    """Return the document of a ``poetry.lock``; never raises.

    Problems: ``decode``, ``binary``, ``toml``, and ``version`` for a lock without ``[metadata]``;
    then ``lock`` is None.
    """
    source = decode(data)
    if source.problem is not None:
        return document(path, KIND, source, None, (source.problem,))
    text = source.text
    try:
        head, entries = _cut(text) or watched_whole(text, "package")
    except TomlError as error:
        return document(path, KIND, source, None, (problem_of(error, text),))
    metadata = mapping(head.get("metadata"))
    if not metadata:
        problem = Problem("is no poetry.lock: it has no [metadata]", Span(0, 0), "version")
        return document(path, KIND, source, None, (problem,))
    lock = Lock(
        tool="poetry",
        version=string(metadata.get("lock-version")),
        requires_python=optional(metadata.get("python-versions")),
        resolution_markers=(),
        conflicts=(),
        packages=tuple(_package(text, entry, metadata) for entry in entries),
        manifest=(),
        extras=tuple(
            (canonical(extra), tuple(canonical(name) for name in strings(names)))
            for extra, names in mapping(head.get("extras")).items()
        ),
        content_hash=optional(metadata.get("content-hash")),
    )
    return document(path, KIND, source, lock)


def _cut(text: str) -> tuple[dict[str, Any], tuple[Entry, ...]] | None:
    """Return the tables behind the packages and the watched packages; None if not Poetry's form."""
    cuts = cut(text, "[[package]]")
    if cuts is None:
        return None
    tail = _TAIL.search(text, cuts.blocks[-1].start + 2)
    if tail is None:
        return None
    try:
        head = {**parse(text[: cuts.head]), **parse(text[tail.start() :])}
        entries = watched_blocks(text, cuts, "package", tail.start())
    except TomlError:
        return None  # the whole text says where and why
    return None if entries is None else (head, entries)


def _package(text: str, entry: Entry, metadata: dict[str, Any]) -> LockedPackage:
    table = entry.table
    source, markers = mapping(table.get("source")), table.get("markers")
    kind, url = string(source.get("type")), string(source.get("url"))
    found = _URL.search(text, entry.start, entry.end) if url else None
    files = table.get("files")
    if files is None:  # Poetry before 1.3 keeps all files in one table
        files = mapping(metadata.get("files")).get(string(table.get("name")))
    wheels, sdist = _files(files)
    version_span = value_span(text, entry, "version")
    return LockedPackage(
        name=canonical(string(table.get("name"))),
        version=string(table.get("version")),
        source=url if kind in ("", "legacy") else f"{kind}:{url}",
        markers=strings(markers),
        wheels=wheels,
        span=Span(entry.start, entry.end),
        version_span=version_span or Span(entry.start, entry.start),
        source_span=Span(*found.span(1)) if found is not None else None,
        uses=_uses(table),
        requires_python=optional(table.get("python-versions")),
        groups=strings(table.get("groups")) or strings(table.get("category")),
        optional=table.get("optional") is True,
        sdist=sdist,
        group_markers=tuple(
            (group, text) for group, text in mapping(markers).items() if isinstance(text, str)
        ),
    )


def _files(value: object) -> tuple[tuple[LockedWheel, ...], bool]:
    """Return the wheels of a list of files, and whether a source distribution is among them."""
    wheels, sdist = [], False
    for file in tables(value):
        url = string(file.get("url"))
        name = string(file.get("file")) or filename(url)
        if name.endswith(".whl"):
            wheels.append(LockedWheel(name, url, optional(file.get("hash"))))
        else:
            sdist = sdist or name.endswith((".tar.gz", ".zip"))
    return tuple(wheels), sdist


def _uses(table: dict[str, Any]) -> tuple[LockedUse, ...]:
    """Return the dependencies on watched packages."""
    found = []
    for name, value in mapping(table.get("dependencies")).items():
        used = canonical(name)
        if used in WATCHED:
            many = value if isinstance(value, list) else [value]
            markers = [optional(mapping(one).get("markers")) for one in many] or [None]
            found += [LockedUse(used, None, None, None, None, marker) for marker in markers]
    return tuple(found)
