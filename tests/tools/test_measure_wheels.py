"""Reading wheels by ranges: zip directories, ELF sections, fatbins, METADATA."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest
from tools._common import FloorError, table

from tools import measure_wheels

Entry = tuple[int, int, int]


def fatbin(*entries: Entry) -> bytes:
    body = b""
    for kind, arch, flags in entries:
        payload = b"\x5a" * 24
        head = struct.pack("<HHIQIIHH", kind, 0, 64, len(payload), 0, 0, 0, 9)
        head += struct.pack("<III", arch, 0, 0)
        head = head.ljust(0x28, b"\0") + struct.pack("<Q", flags)
        body += head.ljust(64, b"\0") + payload
    return struct.pack("<IHHQ", measure_wheels.FATBIN_MAGIC, 1, 16, len(body)) + body


def elf(section: bytes, content: bytes) -> bytes:
    names = b"\0" + section + b"\0.shstrtab\0"
    at_content = 64
    at_names = at_content + len(content)
    at_table = at_names + len(names)
    header = b"\x7fELF\x02\x01".ljust(0x28, b"\0") + struct.pack("<Q", at_table)
    header = header.ljust(0x3A, b"\0") + struct.pack("<HHH", 64, 3, 2)

    def record(name: int, offset: int, size: int) -> bytes:
        return (
            struct.pack("<I", name).ljust(0x18, b"\0") + struct.pack("<QQ", offset, size)
        ).ljust(64, b"\0")

    table_ = record(0, 0, 0) + record(1, at_content, len(content))
    table_ += record(2 + len(section), at_names, len(names))
    return header.ljust(64, b"\0") + content + names + table_


def test_kernels_of_a_library() -> None:
    content = fatbin((2, 75, 0), (2, 90, 0x100000), (1, 120, 0)) + fatbin((2, 75, 0))
    found = measure_wheels.kernels_of(elf(b".nv_fatbin", content))
    assert found == {"fatbins": 2, "sass": {"75": 2, "90a": 1}, "ptx": {"120": 1}}


def test_family_suffix_and_padding_between_fatbins() -> None:
    content = fatbin((2, 100, 0x200000)) + b"\0" * 8 + fatbin((2, 80, 0))
    found = measure_wheels.kernels_of(elf(b".nv_fatbin", content))
    assert found["sass"] == {"100f": 1, "80": 1}


def test_other_sections_do_not_count() -> None:
    found = measure_wheels.kernels_of(elf(b"__nv_relfatbin", fatbin((1, 50, 0))))
    assert found == {"fatbins": 0, "sass": {}, "ptx": {}}


def test_no_elf_is_refused() -> None:
    with pytest.raises(ValueError, match="ELF"):
        measure_wheels.kernels_of(b"MZ" + b"\0" * 100)


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    monkeypatch.setattr(measure_wheels, "size_of", lambda url: len(files[url]))
    monkeypatch.setattr(measure_wheels, "read_range", lambda url, a, b: files[url][a:b])
    return files


def test_members_are_read_by_ranges(remote: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    text = "Metadata-Version: 2.1\nName: x\nRequires-Dist: torch (>=2.0)\n"
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.bin", bytes(range(256)) * 500)
        archive.writestr("x-1.dist-info/METADATA", text)
    remote["x"] = buffer.getvalue()
    members = measure_wheels.central_directory("x")
    assert [m.name for m in members] == ["x/data.bin", "x-1.dist-info/METADATA"]
    assert measure_wheels.read_member("x", members[0]) == bytes(range(256)) * 500
    assert measure_wheels.metadata({"url": "x"}) == text


def test_no_zip_is_an_error(remote: dict[str, bytes]) -> None:
    remote["x"] = b"no zip at all"
    with pytest.raises(OSError, match="end of central directory"):
        measure_wheels.central_directory("x")


@pytest.mark.parametrize(
    ("lines", "specifier"),
    [
        (["torch==2.13.0"], "==2.13.0"),
        (["numpy", "torch (>=2.0,<3)"], "<3,>=2.0"),
        (["torch"], ""),
        (["torch>=2; extra == 'gpu'"], None),
        (["torchvision>=0.1"], None),
        (["%%%", "torch>=1"], ">=1"),
    ],
)
def test_torch_specifier(lines: list[str], specifier: str | None) -> None:
    text = "Metadata-Version: 2.1\n" + "".join(f"Requires-Dist: {line}\n" for line in lines)
    assert measure_wheels.torch_specifier(text) == specifier


def test_an_empty_index_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = tmp_path / "measured.json"
    monkeypatch.setattr(measure_wheels, "MEASURED", target)
    monkeypatch.setattr(measure_wheels, "index_url", lambda: "https://pypi.example/simple")
    monkeypatch.setattr(measure_wheels, "project_files", lambda name: {"versions": [], "files": []})
    with pytest.raises(FloorError, match="fewer than 500"):
        measure_wheels.main(["index"])
    assert not target.exists()


def test_a_table_has_one_record_a_line() -> None:
    text = table({"a": 1, "b": [[1, 2], "x"], "c": {"k": [1]}, "d": []})
    assert json.loads(text) == {"a": 1, "b": [[1, 2], "x"], "c": {"k": [1]}, "d": []}
    assert '[\n[1,2],\n"x"\n]' in text
