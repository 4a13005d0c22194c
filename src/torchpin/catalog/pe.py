"""The parts of a 64-bit Windows library that tell what it needs (Microsoft, *PE Format*)."""

from __future__ import annotations

import struct

from torchpin.catalog.bounded import InspectError, ReadAt, check_apart
from torchpin.catalog.elf import Layout
from torchpin.named import NamedTuple

MAGIC = b"MZ"
FATBIN = b".nv_fatb"
"""Eight bytes are all that PE has for a name."""
MACHINES = {0x8664: "x86_64", 0xAA64: "aarch64"}
_MOST_SECTIONS = 96
_MOST_IMPORTS = 1024
_NAME = 256
_IMPORT, _DELAYED = (1, 20, 12), (13, 32, 4)
"""Directory, size of a descriptor, and where in it the address of the name stands."""


class _Section(NamedTuple):
    name: bytes
    virtual: int
    address: int
    raw: int
    offset: int


def read_pe(data: ReadAt) -> Layout:
    """Read the section table and the import directories.

    Raises:
        InspectError: not a 64-bit PE file, or tables that reach beyond it.
    """
    head = data.read(0, 64)
    if head[:2] != MAGIC:
        raise InspectError("is not a Windows library")
    at = struct.unpack_from("<I", head, 0x3C)[0]
    coff = data.read(at, 24)
    if coff[:4] != b"PE\0\0":
        raise InspectError("is not a Windows library")
    machine, count = struct.unpack_from("<HH", coff, 4)
    optional = struct.unpack_from("<H", coff, 20)[0]
    if count > _MOST_SECTIONS:
        raise InspectError(f"has {count} sections")
    extra = data.read(at + 24, optional)
    if optional < 112 or extra[:2] != b"\x0b\x02":
        raise InspectError("is not a 64-bit Windows library")
    table = data.read(at + 24 + optional, 40 * count)
    sections = [
        _Section(*struct.unpack_from("<8sIIII", table, 40 * number)) for number in range(count)
    ]
    fatbins: list[tuple[int, int]] = []
    for section in sections:
        if section.name == FATBIN and section.raw:
            end = section.offset + min(section.raw, section.virtual or section.raw)
            if end > data.size:
                raise InspectError("has a section .nv_fatb that reaches beyond the file")
            fatbins.append((section.offset, end))
    check_apart("sections .nv_fatb", [*fatbins, (0, at + 24 + optional + 40 * count)])
    directories = min(struct.unpack_from("<I", extra, 108)[0], (optional - 112) // 8)
    needed: list[str] = []
    for number, size, name in (_IMPORT, _DELAYED):
        if number < directories:
            where = struct.unpack_from("<I", extra, 112 + 8 * number)[0]
            if where:
                needed += _imports(data, sections, where, size, name)
    return Layout(
        "pe",
        MACHINES.get(machine, f"machine {machine}"),
        tuple(sorted(fatbins)),
        tuple(dict.fromkeys(needed)),
        sections=True,
    )


def _imports(data: ReadAt, sections: list[_Section], where: int, size: int, name: int) -> list[str]:
    out: list[str] = []
    offset = _offset(sections, where)
    for number in range(_MOST_IMPORTS):
        raw = data.read(offset + number * size, size)
        address = struct.unpack_from("<I", raw, name)[0]
        if not address:
            return out
        place = _offset(sections, address)
        piece = data.read(place, min(_NAME, data.size - place) if place < data.size else 1)
        out.append(piece.partition(b"\0")[0].decode("utf-8", "replace"))
    raise InspectError(f"imports more than {_MOST_IMPORTS} libraries")


def _offset(sections: list[_Section], address: int) -> int:
    for section in sections:
        if section.address <= address < section.address + section.raw:
            return section.offset + address - section.address
    raise InspectError("imports from outside its sections")
