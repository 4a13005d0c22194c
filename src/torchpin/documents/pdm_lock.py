"""Read ``pdm.lock`` (lock versions 4.x).

Each package has its ``groups`` and ``marker`` where PDM recorded them (strategy
``inherit_metadata``, the default since PDM 2.11). The index is not recorded, only URLs if the lock
was made with ``static_urls``.
"""

from __future__ import annotations

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

KIND = "pdm.lock"
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_SYSTEMS = {
    "manylinux": "linux",
    "musllinux": "linux",
    "linux": "linux",
    "windows": "win32",
    "macos": "darwin",
}
_MACHINES = {"amd64": "AMD64", "x86_64": "x86_64", "aarch64": "aarch64", "arm64": "arm64"}


def read_pdm_lock(path: str, data: bytes) -> Document:
    """Return the document of a ``pdm.lock``; never raises.

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
        problem = Problem("is no pdm.lock: it has no [metadata]", Span(0, 0), "version")
        return document(path, KIND, source, None, (problem,))
    targets = tables(metadata.get("targets"))
    pythons = [string(target.get("requires_python")) for target in targets]
    places = [_place(string(target.get("platform"))) for target in targets]
    lock = Lock(
        tool="pdm",
        version=string(metadata.get("lock_version")),
        requires_python=pythons[0] if len(set(pythons)) == 1 and pythons[0] else None,
        resolution_markers=(),
        conflicts=(),
        packages=tuple(_package(text, entry) for entry in entries),
        manifest=(),
        supported_markers=tuple(dict.fromkeys(places)) if all(places) else (),
        groups=strings(metadata.get("groups")),
        # With ``lock_inputs`` PDM compares these in its place.
        content_hash=optional(metadata.get("content_hash"))
        if "lock_inputs" not in metadata
        else None,
    )
    return document(path, KIND, source, lock)


def _cut(text: str) -> tuple[dict[str, Any], tuple[Entry, ...]] | None:
    """Return the head and the watched packages; None if the text does not have PDM's form."""
    cuts = cut(text, "[[package]]")
    if cuts is None or "\n[metadata" not in text[: cuts.head]:
        return None
    try:
        head = parse(text[: cuts.head])
        entries = watched_blocks(text, cuts, "package")
    except TomlError:
        return None  # the whole text says where and why
    return None if entries is None else (head, entries)


def _place(platform: str) -> str:
    """Return the marker of a lock target's platform, ``""`` for one that says nothing."""
    system = next((name for start, name in _SYSTEMS.items() if platform.startswith(start)), "")
    if not system:
        return ""
    marker = f"sys_platform == '{system}'"
    for ending, machine in _MACHINES.items():
        if platform.endswith("_" + ending):
            return f"{marker} and platform_machine == '{machine}'"
    return marker


def _package(text: str, entry: Entry) -> LockedPackage:
    table, name = entry.table, canonical(string(entry.table.get("name")))
    version_span = value_span(text, entry, "version")
    source = next((f"{k}:{table[k]}" for k in ("url", "path", "git") if _is_text(table.get(k))), "")
    wheels = []
    sdist = False
    for file in tables(table.get("files")):
        url = string(file.get("url"))
        file_name = string(file.get("file")) or filename(url)
        if file_name.endswith(".whl"):
            wheels.append(LockedWheel(file_name, url, optional(file.get("hash"))))
        else:
            sdist = sdist or file_name.endswith((".tar.gz", ".zip"))
    uses = []
    for text_ in strings(table.get("dependencies")):
        match = _NAME.match(text_)
        used = canonical(match[0]) if match is not None else ""
        if used in WATCHED:
            marker = text_.partition(";")[2].strip() or None
            uses.append(LockedUse(used, None, None, None, None, marker))
    return LockedPackage(
        name=name,
        version=string(table.get("version")),
        source=source,
        markers=strings(table.get("marker")),
        wheels=tuple(wheels),
        span=Span(entry.start, entry.end),
        version_span=version_span or Span(entry.start, entry.start),
        source_span=None,
        uses=tuple(uses),
        requires_python=optional(table.get("requires_python")),
        groups=strings(table.get("groups")),
        sdist=sdist,
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
