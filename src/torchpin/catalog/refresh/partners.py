"""Which companions go with which torch, as their METADATA say (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchpin.catalog.records import Part, State
from torchpin.catalog.refresh.kernels import Reading

Table = dict[str, dict[str, list[list[Any]]]]
"""torch version → package → [version, specifier or None, made for it], best first."""


def with_partners(state: State, readings: Mapping[str, Reading]) -> Table:
    """Return the table with new torch releases and new companions.

    A new torch release takes over what its predecessor's partners accept; a companion that pins
    one torch was made for it. What the table says of releases that it knows stays.
    """
    table: Table = {
        torch: {package: [list(item) for item in found] for package, found in entry.items()}
        for torch, entry in state.partners.items()
    }
    if "torch" not in state.parts:
        return table
    known = {package for entry in table.values() for package in entry}
    highest = {
        package: max(
            (Version(item[0]) for entry in table.values() for item in entry.get(package, ())),
        )
        for package in known
    }
    _add_torch(table, state.parts["torch"], readings)
    for package in sorted(known - {"triton"}):
        part = state.parts.get(package)
        for version, specifier in _declared(part) if part else ():
            if Version(version) > highest[package]:
                _add_companion(table, package, version, specifier)
    return {torch: table[torch] for torch in sorted(table, key=Version)}


def _add_torch(table: Table, torch: Part, readings: Mapping[str, Reading]) -> None:
    versions = {*torch.pypi, *(b.version for b in torch.builds if b.evidence != "inferred")}
    top = max(map(Version, table), default=Version("0"))
    for text in sorted(versions, key=Version):
        version = Version(text)
        if version <= top or version.is_prerelease or text in table:
            continue
        before = max((t for t in table if Version(t) < version), key=Version, default=None)
        entry: dict[str, list[list[Any]]] = {}
        for package, found in table[before].items() if before else ():
            kept = [[v, s, 0] for v, s, _ in found if package != "triton" and _accepts(s, text)]
            kept.sort(key=lambda item: Version(item[0]), reverse=True)
            if kept:
                entry[package] = kept
        table[text] = dict(sorted(entry.items()))
    for text in versions & set(table):
        if "triton" not in table[text] and (triton := _triton(text, readings)):
            entry = {**table[text], "triton": [[triton, None, 1]]}
            table[text] = dict(sorted(entry.items()))


def _declared(part: Part) -> list[tuple[str, str | None]]:
    """Return the versions whose METADATA was read, with their specifier on torch (None: none)."""
    out: dict[str, str | None] = {}
    for build in part.builds:
        told = build.requires_torch
        if told is not None and not Version(build.version).is_prerelease:
            out[build.version] = None if told in ("", ">=0") else told
    return sorted(out.items(), key=lambda item: Version(item[0]))


def _add_companion(table: Table, package: str, version: str, specifier: str | None) -> None:
    newest = max(table, key=Version)
    for torch, entry in table.items():
        if specifier is None and torch != newest:
            continue  # it says nothing: taken to go with the torch of its time
        if not _accepts(specifier, torch):
            continue
        made = int(specifier is not None and specifier.startswith("=="))
        item = [version, specifier, made]
        found = [old for old in entry.get(package, []) if old[0] != version]
        found.append(item)
        found.sort(key=lambda i: Version(i[0]), reverse=True)
        found.sort(key=lambda i: -int(i[2]))
        entry[package] = found


def _triton(version: str, readings: Mapping[str, Reading]) -> str:
    """Return the triton that a Linux wheel of torch from PyPI pins, ``""`` if none was read."""
    for reading in readings.values():
        name = f"torch-{version}-"
        if not reading.file.startswith(name) or "linux" not in reading.file:
            continue
        for text in reading.requires:
            try:
                requirement = Requirement(text)
            except ValueError:  # InvalidRequirement, or more digits than Python reads
                continue
            pins = [s.version for s in requirement.specifier if s.operator == "=="]
            if requirement.name == "triton" and len(pins) == 1:
                return pins[0]
    return ""


def _accepts(specifier: str | None, version: str) -> bool:
    if specifier is None:
        return True
    try:
        return SpecifierSet(specifier).contains(version)
    except ValueError:  # InvalidSpecifier, or more digits than Python reads
        return False
