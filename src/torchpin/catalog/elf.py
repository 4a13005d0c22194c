"""The parts of a 64-bit little-endian ELF file that tell what it needs (gABI, *Object Files*)."""

from __future__ import annotations

import struct

from torchpin.catalog.bounded import InspectError, ReadAt, check_apart
from torchpin.named import NamedTuple
from torchpin.patterns import regex

MAGIC = b"\x7fELF"
FATBIN = ".nv_fatbin"
"""``__nv_relfatbin`` holds leftovers of device linking that nothing loads: it does not count."""
MACHINES = {62: "x86_64", 183: "aarch64"}
_MOST_SECTIONS = 65_536
_MOST_NEEDED = 1024
_NAME = 512
_NOBITS, _DYNAMIC = 8, 6
_VERNEED = 0x6FFFFFFE
"""The section type of ``.gnu.version_r`` (Linux Standard Base, *Symbol Versioning*)."""
_MOST_VERSIONS = 4096
_GLIBC = regex(rb"GLIBC_(\d{1,3}(?:\.\d{1,3}){1,2})\0")
_SECTION = struct.Struct("<IIQQQQIIQQ")


class Layout(NamedTuple):
    """What an ELF or PE file says of itself."""

    format: str
    """``elf`` or ``pe``."""
    machine: str
    """``x86_64``, ``aarch64`` or ``machine 7``."""
    fatbins: tuple[tuple[int, int], ...]
    """Start and end of the sections with device code."""
    needed: tuple[str, ...]
    """Libraries that it is linked with."""
    sections: bool
    """False: the section table was stripped, so nobody can tell where device code lies."""
    glibc: str | None = None
    """The newest version of the GNU C library whose symbols an ELF file asks for: ``2.17``."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


def read_elf(data: ReadAt) -> Layout:
    """Read section table and dynamic section.

    Raises:
        InspectError: not such an ELF file, or tables that reach beyond it.
    """
    head = data.read(0, 64)
    if head[:6] != MAGIC + b"\x02\x01":
        raise InspectError("is not a 64-bit little-endian ELF file")
    machine = struct.unpack_from("<H", head, 0x12)[0]
    table = struct.unpack_from("<Q", head, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", head, 0x3A)
    title = MACHINES.get(machine, f"machine {machine}")
    if not table:
        return Layout("elf", title, (), (), sections=False)
    if size < _SECTION.size:
        raise InspectError(f"has section headers of {size} bytes")
    if not count or names == 0xFFFF:  # more than 16 bits can say: in section 0
        first = _Section(*_SECTION.unpack(data.read(table, _SECTION.size)))
        count, names = count or first.size, first.link if names == 0xFFFF else names
    if not 0 < count <= _MOST_SECTIONS or names >= count:
        raise InspectError(f"has {count} sections, of which {names} names them")
    raw = data.read(table, size * count)
    sections = [_Section(*_SECTION.unpack_from(raw, size * n)) for n in range(count)]
    held = _text(data, sections[names])
    fatbins: list[tuple[int, int]] = []
    dynamic: _Section | None = None
    versions: _Section | None = None
    for section in sections:
        if section.kind == _DYNAMIC:
            dynamic = dynamic or section
        elif section.kind == _VERNEED:
            versions = versions or section
        elif section.kind != _NOBITS and section.size and _name(held, section.name) == FATBIN:
            end = section.offset + section.size
            if end > data.size:
                raise InspectError(f"has a section {FATBIN} that reaches beyond the file")
            fatbins.append((section.offset, end))
    check_apart(f"sections {FATBIN}", [*fatbins, (table, table + size * count)])
    glibc = _glibc(data, versions, sections) if versions is not None else None
    needed = _needed(data, dynamic, sections) if dynamic is not None else ()
    return Layout("elf", title, tuple(sorted(fatbins)), needed, sections=True, glibc=glibc)


def _text(data: ReadAt, section: _Section) -> bytes:
    if section.kind == _NOBITS:
        raise InspectError("keeps the names of its sections nowhere")
    return data.read(section.offset, section.size)


def _name(held: bytes, at: int) -> str:
    if at >= len(held):
        raise InspectError("names a section outside its names")
    end = held.find(b"\0", at, at + _NAME)
    return held[at : end if end >= 0 else at + _NAME].decode("utf-8", "replace")


def _needed(data: ReadAt, dynamic: _Section, sections: list[_Section]) -> tuple[str, ...]:
    """Return the DT_NEEDED names, in order."""
    if dynamic.link >= len(sections):
        raise InspectError("has a dynamic section without names")
    names = sections[dynamic.link]
    raw = data.read(dynamic.offset, dynamic.size // 16 * 16)
    places: list[int] = []
    for tag, value in struct.iter_unpack("<QQ", raw):
        if tag == 0:
            break
        if tag == 1:
            places.append(value)
    if len(places) > _MOST_NEEDED:
        raise InspectError(f"needs {len(places)} libraries")
    out: dict[int, str] = {}
    for place in sorted(places):
        if place >= names.size:
            raise InspectError("names a needed library outside its names")
        piece = data.read(names.offset + place, min(_NAME, names.size - place))
        out[place] = piece.partition(b"\0")[0].decode("utf-8", "replace")
    return tuple(out[place] for place in places)


def _glibc(data: ReadAt, versions: _Section, sections: list[_Section]) -> str | None:
    """Return the newest version of the C library that the file asks for, None if it names none."""
    if versions.link >= len(sections) or sections[versions.link].kind == _NOBITS:
        raise InspectError("has a version section without names")
    names = sections[versions.link]
    raw = data.read(versions.offset, versions.size)
    places: set[int] = set()
    at, steps = 0, 0
    while at + 16 <= len(raw):
        _, count, _, first, following = struct.unpack_from("<HHIII", raw, at)
        where = at + first
        for _ in range(count):
            steps += 1
            if steps > _MOST_VERSIONS:
                raise InspectError(f"asks for more than {_MOST_VERSIONS} versions")
            if where + 16 > len(raw):
                raise InspectError("asks for a version outside its version section")
            name, step = struct.unpack_from("<II", raw, where + 8)
            places.add(name)
            where += step
        if not following:
            break
        at += following
    best: tuple[int, ...] = ()
    for place in sorted(places):
        if place >= names.size:
            raise InspectError("names a version outside its names")
        piece = data.read(names.offset + place, min(_NAME, names.size - place))
        match = _GLIBC.match(piece)
        if match is not None:
            best = max(best, tuple(int(part) for part in match[1].split(b".")))
    return ".".join(map(str, best)) or None
