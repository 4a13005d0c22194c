"""Read ``pylock.toml`` (PEP 751, lock version 1.0), as uv, pip, PDM and Poetry export it.

``packaging.pylock`` checks what concerns the family; it gives no positions, so that the places
come from the text.
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

KIND = "pylock"
_HEADER = "[[packages]]"


def read_pylock(path: str, data: bytes) -> Document:
    """Return the document of a ``pylock.toml``; never raises.

    Problems: ``decode``, ``binary``, ``toml``; ``version`` for a lock version that is not 1.x, and
    ``pylock`` for what the specification forbids in the head or in a package of the family. With
    any but the last ``lock`` is None; with the last it is read as far as possible.
    """
    source = decode(data)
    if source.problem is not None:
        return document(path, KIND, source, None, (source.problem,))
    text = source.text
    try:
        head, entries = _cut(text) or watched_whole(text, "packages")
    except TomlError as error:
        return document(path, KIND, source, None, (problem_of(error, text),))
    version = string(head.get("lock-version"))
    if version.partition(".")[0] != "1":
        message = f"is no pylock.toml of lock version 1: {head.get('lock-version')!r}"
        return document(path, KIND, source, None, (Problem(message, Span(0, 0), "version"),))
    problems = _check(head, entries) if entries else ()
    lock = Lock(
        tool="pylock",
        version=version,
        requires_python=optional(head.get("requires-python")),
        resolution_markers=(),
        conflicts=(),
        packages=tuple(_package(text, entry) for entry in entries),
        manifest=(),
        complete=not problems,
        supported_markers=strings(head.get("environments")),
        extras=tuple((canonical(extra), ()) for extra in strings(head.get("extras"))),
        groups=strings(head.get("dependency-groups")),
        default_groups=strings(head.get("default-groups")),
    )
    return document(path, KIND, source, lock, problems)


def _cut(text: str) -> tuple[dict[str, Any], tuple[Entry, ...]] | None:
    """Return the head and the watched packages; None if the text is not machine-made."""
    cuts = cut(text, _HEADER)
    if cuts is None:
        return None
    try:
        head = parse(text[: cuts.head])
        if re.compile(r"^\[(?!\[|packages\.)", re.MULTILINE).search(text, cuts.blocks[-1].start):
            return None  # tables behind the packages
        entries = watched_blocks(text, cuts, "packages")
    except TomlError:
        return None  # the whole text says where and why
    return None if entries is None else (head, entries)


def _check(head: dict[str, Any], entries: tuple[Entry, ...]) -> tuple[Problem, ...]:
    """Return what the specification forbids in the head and the watched packages."""
    from packaging.pylock import Pylock, PylockValidationError

    rest = {key: value for key, value in head.items() if key not in ("packages", "tool")}
    try:
        Pylock.from_dict({**rest, "packages": []})
    except PylockValidationError as error:
        return (Problem(f"is no valid pylock.toml: {error}", Span(0, 0), "pylock"),)
    found = []
    for entry in entries:
        table = {key: value for key, value in entry.table.items() if key != "tool"}
        try:
            Pylock.from_dict({**rest, "packages": [table]})
        except PylockValidationError as error:
            message = str(error).replace("packages[0]", string(table.get("name")))
            span = Span(entry.start, entry.start + len(_HEADER))
            found.append(Problem(f"is no valid pylock.toml: {message}", span, "pylock"))
    return tuple(found)


def _package(text: str, entry: Entry) -> LockedPackage:
    table = entry.table
    version_span, index_span = value_span(text, entry, "version"), value_span(text, entry, "index")
    wheels = []
    for wheel in tables(table.get("wheels")):
        url = string(wheel.get("url")) or string(wheel.get("path"))
        name = string(wheel.get("name")) or filename(url)
        hashes = mapping(wheel.get("hashes"))
        digest = optional(hashes.get("sha256"))
        others = [f"{a}:{d}" for a, d in sorted(hashes.items()) if isinstance(d, str)]
        known = f"sha256:{digest}" if digest is not None else next(iter(others), None)
        wheels.append(LockedWheel(name, url, known))
    return LockedPackage(
        name=canonical(string(table.get("name"))),
        version=string(table.get("version")),
        source=_source(table),
        markers=strings(table.get("marker")),
        wheels=tuple(wheels),
        span=Span(entry.start, entry.end),
        version_span=version_span or Span(entry.start, entry.start),
        source_span=index_span,
        uses=tuple(
            LockedUse(
                canonical(string(one.get("name"))),
                None,
                None,
                optional(one.get("version")),
                optional(one.get("index")),
                None,
            )
            for one in tables(table.get("dependencies"))
            if canonical(string(one.get("name"))) in WATCHED
        ),
        requires_python=optional(table.get("requires-python")),
        sdist=bool(mapping(table.get("sdist"))),
    )


def _source(table: dict[str, Any]) -> str:
    """Return the index, or the kind and place of a package that comes from none."""
    for kind, word in (("vcs", "git"), ("directory", "directory"), ("archive", "url")):
        place = mapping(table.get(kind))
        if place:
            return f"{word}:{string(place.get('url')) or string(place.get('path'))}"
    return string(table.get("index"))
