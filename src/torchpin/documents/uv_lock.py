"""Read ``uv.lock`` (format version 1, as uv 0.4 to 0.13 write it).

What matters are the packages of the family, those of the project itself, and those that lead from
the one to the other. A cheap search finds them and only their blocks are parsed; a text that does
not have uv's own form is parsed whole.
"""

from __future__ import annotations

import re
from typing import Any

from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Document, Problem, Span
from torchpin.documents.lock_text import (
    Cut,
    Cuts,
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
    whole_entries,
)
from torchpin.documents.project import (
    ConflictItem,
    ConflictSet,
    Lock,
    LockedPackage,
    LockedRequirement,
    LockedUse,
    LockedWheel,
)
from torchpin.named import NamedTuple
from torchpin.patterns import regex

KIND = "uv.lock"
OWN = ("virtual", "editable", "directory")
"""Kinds of source of packages that are read from folders: the project and its like."""
_HEADER = "[[package]]"
_SOURCES = ("registry", *OWN, "path", "url", "git")
_NAMES = regex(r'name = "([^"\n]+)"')
_DEPENDENCY = regex(r"^    \{ name = \"([^\"\n]+)\"[^\n]*\},\r?\n", re.MULTILINE)
_EXTRA = regex(r"\bextra\s*==\s*(['\"])([^'\"]+)\1")


class _Raw(NamedTuple):
    """A lock after TOML, before its meaning."""

    head: dict[str, Any]
    entries: tuple[Entry, ...]


def read_uv_lock(path: str, data: bytes) -> Document:
    """Return the document of a ``uv.lock``; never raises.

    Bytes that are not UTF-8 give a problem ``decode`` (``binary`` with NULs), text that is not TOML
    ``toml``, a format version that is not 1 ``version``; then ``lock`` is None.
    """
    source = decode(data)
    if source.problem is not None:
        return document(path, KIND, source, None, (source.problem,))
    text = source.text
    raw = _cut(text)
    if raw is None:
        try:
            raw = _whole(text)
        except TomlError as error:
            return document(path, KIND, source, None, (problem_of(error, text),))
    version = raw.head.get("version")
    if version != 1 or isinstance(version, bool):
        message = f"is no uv.lock of format version 1, the one that is known: version {version!r}"
        problem = Problem(message, Span(0, 0), "version")
        return document(path, KIND, source, None, (problem,))
    return document(path, KIND, source, _lock(text, raw))


# -- finding what matters


def _cut(text: str) -> _Raw | None:
    """Return what matters by search; None if the text does not have uv's own form."""
    if not text.startswith("version = "):
        return None
    cuts = cut(text, _HEADER)
    if cuts is None or text.find("\n[manifest", cuts.head) >= 0:
        return None
    wanted = _wanted(text, cuts)
    entries = []
    try:
        head = parse(text[: cuts.head])
        for block in cuts.blocks:
            if block.name in wanted:
                table = parse(_body(text, block, cuts.newline, wanted))
                if len(table) != 1:
                    return None
                end = block.start + len(text[block.start : block.end].rstrip())
                entries.append(Entry(table["package"][0], block.start, end))
    except TomlError:
        return None  # the whole text says where and why
    return _Raw(head, tuple(entries))


def _wanted(text: str, cuts: Cuts) -> set[str]:
    """Return the names of the packages to parse: at least those that the lock will hold."""
    newline = cuts.newline
    own = re.compile(rf"{newline}source = {{ (?:{'|'.join(OWN)}) = ")
    users: dict[str, set[str]] = {}
    wanted: set[str] = set()
    for block in cuts.blocks:
        for used in _used(text, block, newline):
            users.setdefault(used, set()).add(block.name)
        line_end = text.find(newline + "source = ", block.start, block.end)
        if line_end >= 0 and own.match(text, line_end):
            wanted.add(block.name)
    return wanted | _leading(users)


def _used(text: str, block: Cut, newline: str) -> set[str]:
    """Return the names in the dependencies of a block, perhaps also those in its metadata."""
    names: set[str] = set()
    start = text.find(newline + "dependencies = [", block.start, block.end)
    if start >= 0:
        end = text.find(newline + "]", start + 1, block.end)
        names.update(_NAMES.findall(text, start, end if end >= 0 else block.end))
    start = text.find(newline + "[package.", block.start, block.end)
    if start >= 0:
        names.update(_NAMES.findall(text, start, block.end))
    return names


def _leading(users: dict[str, set[str]]) -> set[str]:
    """Return the watched packages and all that lead to one, given who uses what."""
    found: set[str] = set(WATCHED)
    stack = list(WATCHED)
    while stack:
        for user in users.get(stack.pop(), ()):
            if user not in found:
                found.add(user)
                stack.append(user)
    return found


def _body(text: str, block: Cut, newline: str, wanted: set[str]) -> str:
    """Return the text of a block to parse, without what no one asks for.

    That is the wheels of a package that is not watched, and the lines of dependencies on packages
    that do not matter (their markers make up most of a lock with conflicts).
    """
    body = text[block.start : block.end]
    if block.name not in WATCHED:
        start = body.find(f"{newline}wheels = [{newline}")
        end = body.find(newline + "]", start + 1) if start >= 0 else -1
        if end >= 0:
            body = body[:start] + body[end + len(newline) + 1 :]
    return _DEPENDENCY.sub(lambda line: line[0] if line[1] in wanted else "", body)


def _whole(text: str) -> _Raw:
    head = parse(text)
    return _Raw(head, whole_entries(text, tables(head.get("package")), "package"))


# -- from tables to values


def _lock(text: str, raw: _Raw) -> Lock:
    head, manifest = raw.head, mapping(raw.head.get("manifest"))
    users: dict[str, set[str]] = {}
    for entry in raw.entries:
        name = canonical(string(entry.table.get("name")))
        for _, _, dependency in _edges(entry.table):
            users.setdefault(canonical(string(dependency.get("name"))), set()).add(name)
    leading = _leading(users)
    kept = [e for e in raw.entries if _name(e) in leading or _source(e.table)[0] in OWN]
    names = {_name(entry) for entry in kept}
    requirements = [r for e in kept if _source(e.table)[0] in OWN for r in _recorded(e.table)]
    return Lock(
        tool="uv",
        version=str(head["version"]),
        requires_python=optional(head.get("requires-python")),
        resolution_markers=strings(head.get("resolution-markers")),
        conflicts=_conflicts(text, head.get("conflicts")),
        packages=tuple(_package(text, entry, names) for entry in kept),
        manifest=(*_workspace(manifest, names), *requirements),
        supported_markers=strings(head.get("supported-markers")),
        members=tuple(canonical(name) for name in strings(manifest.get("members"))),
    )


def _name(entry: Entry) -> str:
    return canonical(string(entry.table.get("name")))


def _source(table: dict[str, Any]) -> tuple[str, str]:
    """Return kind and value of the source of a package or an edge; empty if it has none."""
    source = mapping(table.get("source"))
    for kind in _SOURCES:
        if isinstance(source.get(kind), str):
            return kind, source[kind]
    return "", ""


def _source_text(table: dict[str, Any]) -> str:
    kind, value = _source(table)
    return value if kind in ("registry", "") else f"{kind}:{value}"


def _edges(table: dict[str, Any]) -> list[tuple[str | None, str | None, dict[str, Any]]]:
    """Return (extra, group, dependency) of a package."""
    found: list[tuple[str | None, str | None, dict[str, Any]]] = []
    found += [(None, None, one) for one in tables(table.get("dependencies"))]
    for extra, some in mapping(table.get("optional-dependencies")).items():
        found += [(extra, None, one) for one in tables(some)]
    for group, some in mapping(table.get("dev-dependencies")).items():
        found += [(None, group, one) for one in tables(some)]
    return found


def _package(text: str, entry: Entry, names: set[str]) -> LockedPackage:
    table, name = entry.table, _name(entry)
    version_span = value_span(text, entry, "version")
    uses = []
    for extra, group, one in _edges(table):
        used = canonical(string(one.get("name")))
        if used in names:
            uses.append(
                LockedUse(
                    by=used,
                    extra=extra,
                    group=group,
                    version=optional(one.get("version")),
                    source=_source_text(one) if "source" in one else None,
                    marker=optional(one.get("marker")),
                    extras=strings(one.get("extra")),
                )
            )
    return LockedPackage(
        name=name,
        version=string(table.get("version")),
        source=_source_text(table),
        markers=strings(table.get("resolution-markers")),
        wheels=_wheels(table) if name in WATCHED else (),
        span=Span(entry.start, entry.end),
        version_span=version_span or Span(entry.start, entry.start),
        source_span=_source_span(text, entry),
        uses=tuple(uses),
        sdist=bool(mapping(table.get("sdist"))) and name in WATCHED,
    )


def _wheels(table: dict[str, Any]) -> tuple[LockedWheel, ...]:
    found = []
    for wheel in tables(table.get("wheels")):
        url = string(wheel.get("url")) or string(wheel.get("path"))
        name = string(wheel.get("filename")) or filename(url)
        if name:
            found.append(LockedWheel(name, url, optional(wheel.get("hash"))))
    return tuple(found)


_SOURCE_LINE = regex(r"^source = \{ [a-z]+ = \"([^\"\n]*)\"", re.MULTILINE)


def _source_span(text: str, entry: Entry) -> Span | None:
    found = _SOURCE_LINE.search(text, entry.start, entry.end)
    return Span(*found.span(1)) if found is not None else None


def _requirement(table: dict[str, Any], by: str, group: str | None, kind: str) -> LockedRequirement:
    marker = optional(table.get("marker"))
    extra = _EXTRA.search(marker) if marker is not None and group is None and by else None
    place = next((k for k in _SOURCES[1:] if isinstance(table.get(k), str)), None)
    return LockedRequirement(
        package=canonical(string(table.get("name"))),
        specifier=string(table.get("specifier")),
        marker=marker,
        index_url=optional(table.get("index")),
        extra=extra[2] if extra is not None else None,
        group=group,
        by=by,
        kind=kind,
        conflict=_member(table["conflict"]) if "conflict" in table else None,
        extras=strings(table.get("extras")),
        url=f"{place}:{table[place]}" if place is not None else None,
    )


def _recorded(table: dict[str, Any]) -> list[LockedRequirement]:
    """Return what a package's metadata asks of watched packages."""
    by, metadata = canonical(string(table.get("name"))), mapping(table.get("metadata"))
    found = [_requirement(one, by, None, "") for one in tables(metadata.get("requires-dist"))]
    for group, some in mapping(metadata.get("requires-dev")).items():
        found += [_requirement(one, by, group, "") for one in tables(some)]
    return [one for one in found if one.package in WATCHED]


def _workspace(manifest: dict[str, Any], names: set[str]) -> list[LockedRequirement]:
    """Return what the workspace itself, or a script, asks for."""
    found = [_requirement(one, "", None, "") for one in tables(manifest.get("requirements"))]
    for group, some in mapping(manifest.get("dependency-groups")).items():
        found += [_requirement(one, "", group, "") for one in tables(some)]
    for key, kind in (("constraints", "constraint"), ("overrides", "override")):
        found += [_requirement(one, "", None, kind) for one in tables(manifest.get(key))]
    return [
        one for one in found if one.package in WATCHED or (one.package in names and not one.kind)
    ]


def _member(value: object) -> ConflictItem:
    table = mapping(value)
    package = optional(table.get("package"))
    return ConflictItem(
        canonical(package) if package is not None else None,
        optional(table.get("extra")),
        optional(table.get("group")),
    )


def _conflicts(text: str, value: object) -> tuple[ConflictSet, ...]:
    if not isinstance(value, list):
        return ()
    found = re.search(r"^conflicts\s*=\s*\[", text, re.MULTILINE)
    start = found.start() if found is not None else 0
    end = text.find("]]", start) + 2 if found is not None else 0
    span = Span(start, max(start, end))
    return tuple(
        ConflictSet(tuple(_member(one) for one in some), span)
        for some in value
        if isinstance(some, list)
    )
