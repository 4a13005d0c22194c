"""Small libraries and wheels of the tests' own making, byte by byte."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence

from torchpin.catalog.fatbin import MAGIC

PTX, CUBIN, LTO_IR = 1, 2, 8
ACCELERATED, FAMILY = 0x100000, 0x200000
FLAGS = {"a": ACCELERATED, "f": FAMILY, "": 0}


def entry(
    kind: int, arch: int, flags: int = 0, data: bytes = b"\x5a" * 24, head: int = 64
) -> bytes:
    header = struct.pack("<HHIQIIHH", kind, 0x101, head, len(data), 0, 0, 0, 9)
    header += struct.pack("<III", arch, 0, 0)
    header = header.ljust(0x28, b"\0") + struct.pack("<Q", flags)
    return header.ljust(head, b"\0") + data


def wrap(body: bytes) -> bytes:
    whole = struct.pack("<IHHQ", MAGIC, 1, 16, len(body)) + body
    return whole.ljust((len(whole) + 7) // 8 * 8, b"\0")


def fatbin(sass: str = "", ptx: str = "", lto: str = "") -> bytes:
    """Return a fatbin: ``fatbin("80 90a", "120")``."""
    body = b""
    for kind, targets in ((CUBIN, sass), (PTX, ptx), (LTO_IR, lto)):
        for target in targets.split():
            digits = target.rstrip("af")
            body += entry(kind, int(digits), FLAGS[target[len(digits) :]])
    return wrap(body)


def elf(
    device: bytes | None = None,
    needed: Sequence[str] = (),
    *,
    data: bytes = b"",
    section: str = ".nv_fatbin",
    machine: int = 62,
    spare: int = 0,
) -> bytes:
    """Return a shared object with a device code section, DT_NEEDED entries and other data.

    ``spare`` zero bytes lie before the section table.
    """
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    entries = b""
    at = 1
    for name in needed:
        entries += struct.pack("<QQ", 1, at)
        at += len(name.encode()) + 1
    entries += struct.pack("<QQ", 0, 0)
    parts: list[tuple[str, int, bytes, int]] = [  # name, kind, content, link
        (".dynstr", 3, strings, 0),
        (".rodata", 1, data, 0),
        (section, 1, device or b"", 0),
        (".dynamic", 6, entries, 1),
    ]
    if device is None:
        parts[2] = (".text", 1, b"", 0)
    names = b"\0" + b"".join(name.encode() + b"\0" for name, *_ in parts) + b".shstrtab\0"
    parts.append((".shstrtab", 3, names, 0))
    body = b""
    headers = struct.pack("<IIQQQQIIQQ", *([0] * 10))
    label = 1
    for name, kind, content, link in parts:
        body = body.ljust((len(body) + 7) // 8 * 8, b"\0")
        headers += struct.pack(
            "<IIQQQQIIQQ", label, kind, 0, 0, 64 + len(body), len(content), link, 0, 8, 0
        )
        body += content
        label += len(name.encode()) + 1
    body += b"\0" * spare
    body = body.ljust((len(body) + 7) // 8 * 8, b"\0")
    head = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HHI", 3, machine, 1)
    head += struct.pack("<QQQ", 0, 0, 64 + len(body))
    head += struct.pack("<IHHHHHH", 0, 64, 56, 0, 64, len(parts) + 1, len(parts))
    return head + body + headers


def pe(device: bytes = b"", imports: Sequence[str] = (), delayed: Sequence[str] = ()) -> bytes:
    """Return a 64-bit DLL with a ``.nv_fatb`` section and import directories."""
    base = 0x1000
    descriptors = 20 * (len(imports) + 1)
    delay_at = base + descriptors
    names_at = delay_at + 32 * (len(delayed) + 1)
    names = b""
    places = []
    for name in (*imports, *delayed):
        places.append(names_at + len(names))
        names += name.encode() + b"\0"
    data = b"".join(struct.pack("<IIIII", 1, 0, 0, p, 1) for p in places[: len(imports)])
    data += b"\0" * 20
    data += b"".join(
        struct.pack("<IIIIIIII", 1, p, 0, 0, 0, 0, 0, 0) for p in places[len(imports) :]
    )
    data += b"\0" * 32 + names
    sections = [(b".rdata\0\0", base, data)]
    if device:
        sections.append((b".nv_fatb", 0x100000, device))
    directories = [(0, 0)] * 16
    directories[1] = (base, descriptors) if imports else (0, 0)
    directories[13] = (delay_at, 32) if delayed else (0, 0)
    optional = b"\x0b\x02".ljust(108, b"\0") + struct.pack("<I", 16)
    optional += b"".join(struct.pack("<II", *pair) for pair in directories)
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 64)
    head += b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, len(sections), 0, 0, 0, len(optional), 0)
    head += optional
    at = len(head) + 40 * len(sections)
    table = body = b""
    for title, address, content in sections:
        table += struct.pack("<8sIIII", title, len(content), address, len(content), at + len(body))
        table += b"\0" * 16
        body += content
    return head + table + body


def metadata(name: str, version: str) -> str:
    return (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: >=3.10\n"
        "Requires-Dist: torch==2.15.0\n\nA description.\n"
    )


def wheel(
    members: Mapping[str, bytes | str],
    name: str = "ext",
    version: str = "1.0",
    *,
    method: int = zipfile.ZIP_DEFLATED,
) -> bytes:
    """Return a wheel: ``members`` and its ``.dist-info``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for path, content in members.items():
            archive.writestr(path, content)
        info = f"{name}-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", metadata(name, version))
        tag = "cp312-cp312-manylinux_2_28_x86_64"
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
    return buffer.getvalue()


WHEEL_NAME = "ext-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
