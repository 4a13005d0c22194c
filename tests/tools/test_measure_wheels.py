"""Reading wheels by ranges: zip directories, ELF sections, fatbins, METADATA."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
import time
import urllib.error
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from tools._common import FloorError
from tools._contents import (
    NoMetadataError,
    measure_contents,
    metadata,
    read_content,
    torch_specifier,
)
from tools._wheels import lists_of, stated_gpus
from tools._zips import RemoteZip

from tools import _contents, _zips, measure_wheels
from torchpin.catalog import fatbin as fatbins
from torchpin.catalog.bounded import Held
from torchpin.catalog.elf import read_elf
from torchpin.catalog.fatbin import read_fatbins
from torchpin.catalog.records import table

Entry = tuple[int, int, int]


def fatbin(*entries: Entry) -> bytes:
    body = b""
    for kind, arch, flags in entries:
        payload = b"\x5a" * 24
        head = struct.pack("<HHIQIIHH", kind, 0, 64, len(payload), 0, 0, 0, 9)
        head += struct.pack("<III", arch, 0, 0)
        head = head.ljust(0x28, b"\0") + struct.pack("<Q", flags)
        body += head.ljust(64, b"\0") + payload
    return struct.pack("<IHHQ", fatbins.MAGIC, 1, 16, len(body)) + body


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


def lists(library: bytes) -> Any:
    held = Held(library)
    return lists_of(read_fatbins(held, read_elf(held).fatbins))


def test_kernels_of_a_library() -> None:
    content = fatbin((2, 75, 0), (2, 90, 0x100000), (1, 120, 0)) + fatbin((2, 75, 0))
    assert lists(elf(b".nv_fatbin", content)) == (2, {"75": 2, "90a": 1}, {"120": 1})


def test_family_suffix_and_padding_between_fatbins() -> None:
    content = fatbin((2, 100, 0x200000)) + b"\0" * 8 + fatbin((2, 80, 0))
    assert lists(elf(b".nv_fatbin", content))[1] == {"100f": 1, "80": 1}


def test_other_sections_do_not_count() -> None:
    assert lists(elf(b"__nv_relfatbin", fatbin((1, 50, 0)))) == (0, {}, {})


@pytest.mark.parametrize(
    ("data", "states"),
    [
        (b"x\0sm_70 sm_75 compute_75\0\0sm_90\0", "sm_70 sm_75 compute_75"),
        (b"std::string ipc_hsm_70 sm_120\0", "sm_70 sm_120"),  # as in torch 2.8 and 2.9
        (b"sm_70 sm_75 and more", ""),
        (b"", ""),
    ],
)
def test_what_torch_states(data: bytes, states: str) -> None:
    assert stated_gpus(data) == states


class Host:
    """Files by address, and the ranges that were asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, int, int]] = []

    def read(self, url: str, start: int, end: int) -> bytes:
        self.asked.append((url, start, end))
        return self.files[url][start:end]


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host()
    monkeypatch.setattr(_zips, "size_of", lambda url: len(host.files[url]))
    monkeypatch.setattr(_zips, "read_range", host.read)
    return host


def zipped(members: dict[str, bytes | str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


METADATA = "Metadata-Version: 2.1\nName: x\nRequires-Dist: torch (>=2.0)\n"


def test_members_are_read_by_ranges(remote: Host) -> None:
    noise = random.Random(1).randbytes(200_000)
    remote.files["x"] = zipped({"x/data.bin": noise, "x-1.dist-info/METADATA": METADATA})
    archive = RemoteZip("x")
    assert [m.name for m in archive.members] == ["x/data.bin", "x-1.dist-info/METADATA"]
    assert metadata({"url": "x"}, archive) == METADATA
    assert len(remote.asked) == 1, "the end of the file holds the directory and METADATA"
    assert archive.read(archive.members[0]) == noise
    assert len(remote.asked) == 2


def test_a_long_extra_field_is_read_to_its_end(
    remote: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_zips, "SLACK", -20)
    noise = random.Random(1).randbytes(200_000)
    remote.files["x"] = zipped({"data": noise})
    archive = RemoteZip("x", len(remote.files["x"]))
    assert archive.read(archive.members[0]) == noise


def test_no_zip_is_an_error(remote: Host) -> None:
    remote.files["x"] = b"no zip at all"
    with pytest.raises(OSError, match="end of central directory"):
        RemoteZip("x")


def test_no_metadata_is_an_error(remote: Host) -> None:
    remote.files["x"] = zipped({"torch-1.7.0.dist.info/METADATA": METADATA})
    with pytest.raises(NoMetadataError):
        metadata({"url": "x"})


def listed(name: str, data: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    return {"filename": name, "url": name, "size": len(data), "hashes": {"sha256": digest}}


@pytest.mark.parametrize(
    ("members", "told"),
    [
        (
            {"vision/version.py": "__version__ = '1+cu117'\ncuda = '11.7'\n", "D": "torch"},
            (">=0", "1+cu117", "11.7"),
        ),
        ({"vision/version.py": "__version__: str = '1'\n", "D": "numpy"}, ("", "1", None)),
        ({"vision/version.py": "cuda = check()\n", "D": "torch==2"}, ("==2", None, None)),
        ({"D": "torch; extra == 'x'"}, ("", None, None)),
        ({"vision/version.py": "__version__ = '1'\n"}, (None, "1", None)),
    ],
)
def test_what_a_wheel_says(remote: Host, members: dict[str, str], told: tuple[Any, ...]) -> None:
    files: dict[str, bytes | str] = {k: v for k, v in members.items() if k != "D"}
    if "D" in members:
        files["vision-1.dist-info/METADATA"] = f"Name: vision\nRequires-Dist: {members['D']}\n"
    remote.files["w.whl"] = zipped(files)
    content = read_content("vision", listed("w.whl", remote.files["w.whl"]))
    assert (content.requires_torch, content.version, content.cuda) == told


def test_one_wheel_a_version_and_platform_is_read_once(
    remote: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"torchvision-9.0-cp3{n}-cp3{n}-win_amd64.whl" for n in (10, 11)]
    data = zipped({"torchvision-9.0.dist-info/METADATA": METADATA})
    remote.files |= dict.fromkeys(names, data)
    page = {"files": [listed(name, data) for name in names]}
    monkeypatch.setattr(_contents, "project_files", lambda name: page)
    monkeypatch.setattr(_contents, "PACKAGES", ("torchvision",))
    digest = page["files"][0]["hashes"]["sha256"]
    files = [[names[0], digest, "", "bad", None], [names[1], digest, "", False, None]]
    state: dict[str, Any] = {"index": {"torchvision": {"files": files}}}
    found = measure_contents(state)
    assert found["rows"] == [["torchvision", names[1], digest, ">=2.0", None, None]]
    remote.asked.clear()
    assert measure_contents({**state, "contents": found}) == found
    assert remote.asked == []
    other = [[name, "0" * 64, *rest] for name, _, *rest in files]
    with pytest.raises(OSError, match="measure index again"):
        measure_contents({"index": {"torchvision": {"files": other}}})


def test_a_busy_host_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = [503, 429, 404]
    pauses: list[float] = []

    def busy(package: str, file: dict[str, Any]) -> Any:
        raise urllib.error.HTTPError("x", codes.pop(0), "", Message(), None)

    monkeypatch.setattr(_contents, "read_content", busy)
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        _contents.patiently("x", {})
    assert pauses == [2, 4]


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
    assert torch_specifier(text) == specifier


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
