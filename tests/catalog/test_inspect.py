"""Wheels and libraries on disk: what is told of them, and how hostile ones end."""

from __future__ import annotations

import io
import os
import random
import re
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.inspect_samples import WHEEL_NAME, elf, fatbin, pe, wheel
from tests.effort import effort_below

from torchpin.catalog import bounded, zipread
from torchpin.catalog.bounded import Budget, Held, InspectError, Streamed
from torchpin.catalog.inspect import inspect, show
from torchpin.catalog.inspection import NO_LIBRARY, Inspection

ARCHES = b"\0sm_70\0sm_75 sm_80 sm_90a compute_90\0 not sm_1 sm_2, here\0"
VERSION = "__version__ = '2.15.0+cu132'\ndebug = False\ncuda: Optional[str] = '13.2'\nhip = None\n"


def placed(tmp_path: Path, data: bytes, name: str = WHEEL_NAME) -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def read(tmp_path: Path, data: bytes, name: str = WHEEL_NAME) -> Inspection:
    return inspect(placed(tmp_path, data, name))


def test_a_wheel_is_told_whole(tmp_path: Path) -> None:
    library = elf(fatbin("80 90a", "120") * 2, ["libcudart.so.13", "libc10.so", "libcublas.so.13"])
    made = wheel(
        {
            "ext/_C.abi3.so": library,
            "ext/plain.so.1.2": elf(None, ["libc.so.6"]),
            "ext/odd.so": "INPUT(libother.so)",
            "ext/__init__.py": "import torch",
            "ext/version.py": "__version__: str = \"1.0+cu130\"\ngit_version = 'abc'\n",
        }
    )
    found = read(tmp_path, made)
    assert (found.kind, found.package, found.version) == ("wheel", "ext", "1.0")
    assert found.tags == ("cp312-cp312-manylinux_2_28_x86_64",)
    assert found.requires_python == ">=3.10"
    assert found.requires == ("torch==2.15.0",)
    assert (found.built, found.cuda, found.arches) == ("1.0+cu130", "13.0", None)
    assert (found.requests, found.fetched, found.size) == (0, 0, len(made))
    by_name = {item.name: item for item in found.libraries}
    code = by_name["ext/_C.abi3.so"]
    assert (code.fatbins.sass, code.fatbins.ptx) == (("80", "90a"), ("120",))
    assert code.fatbins.total == 2
    assert code.needs == ("libcudart.so.13", "libcublas.so.13")
    assert code.layout is not None
    assert code.layout.needed == ("libcudart.so.13", "libc10.so", "libcublas.so.13")
    assert found.device == (code,)
    assert by_name["ext/odd.so"].note == NO_LIBRARY
    assert by_name["ext/plain.so.1.2"].fatbins.total == 0


@pytest.mark.parametrize("library", ["libtorch_python.so", "torch_python.dll"])
def test_the_list_that_torch_states(tmp_path: Path, library: str) -> None:
    make = elf(data=ARCHES) if library.endswith(".so") else pe(b"") + ARCHES
    name = "torch-2.15.0-cp312-cp312-win_amd64.whl"
    made = wheel({f"torch/lib/{library}": make, "torch/version.py": VERSION}, "torch", "2.15.0")
    found = read(tmp_path, made, name)
    assert found.arches is not None
    assert found.arches.sass == ("75", "80", "90a")
    assert found.arches.ptx == ("90",)
    assert (found.built, found.cuda, found.hip) == ("2.15.0+cu132", "13.2", None)
    assert found.tags == ("cp312-cp312-win_amd64",)


def test_the_list_of_a_rocm_build(tmp_path: Path) -> None:
    library = elf(data=b"\0gfx90a gfx942 gfx1100\0")
    version = "__version__ = '2.14.0+rocm7.2'\ncuda = None\nhip: Optional[str] = '7.2.5'\n"
    made = wheel({"torch/lib/libtorch_python.so": library, "torch/version.py": version}, "torch")
    found = read(tmp_path, made)
    assert found.arches is not None
    assert found.arches.gfx == ("gfx90a", "gfx942", "gfx1100")
    assert (found.cuda, found.hip) == (None, "7.2.5")


def test_a_list_across_two_blocks_is_found_whole(tmp_path: Path) -> None:
    for shift in (10, 30):
        data = b"\1" * (bounded.BLOCK - 64 - 8 - shift) + ARCHES
        made = wheel({"torch/lib/libtorch_python.so": elf(data=data)}, "torch")
        found = read(tmp_path, made)
        assert found.arches is not None
        assert found.arches.sass == ("75", "80", "90a")


def test_libraries_alone(tmp_path: Path) -> None:
    so = read(tmp_path, elf(fatbin("80"), ["libcudart.so.12"], machine=183), "x.so")
    assert (so.kind, so.file, so.cuda, so.package) == ("library", "x.so", "12", None)
    assert so.libraries[0].layout is not None
    assert so.libraries[0].layout.machine == "aarch64"
    dll = read(
        tmp_path,
        pe(fatbin("90", "90"), ["KERNEL32.dll", "cudart64_12.dll"], ["cublas64_12.dll"]),
        "x.dll",
    )
    assert dll.libraries[0].needs == ("cudart64_12.dll", "cublas64_12.dll")
    assert (dll.libraries[0].fatbins.sass, dll.libraries[0].fatbins.ptx) == (("90",), ("90",))
    arched = read(tmp_path, elf(data=ARCHES), "libtorch_python.so")
    assert arched.arches is not None


def test_device_code_of_the_linker_does_not_count(tmp_path: Path) -> None:
    found = read(tmp_path, elf(fatbin("", "50"), section="__nv_relfatbin"), "x.so")
    assert found.device == ()


def test_a_stripped_section_table_is_said(tmp_path: Path) -> None:
    data = bytearray(elf(fatbin("80")))
    data[0x28:0x30] = bytes(8)
    found = read(tmp_path, bytes(data), "x.so")
    assert found.libraries[0].note == "its section table was stripped"


def test_a_big_library_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = random.Random(1).randbytes(3 * bounded.BLOCK)
    library = elf(
        fatbin("75 80", "90") * 1_000, ["libcudart.so.13"], data=noise, spare=2 * bounded.BLOCK
    )
    path = placed(tmp_path, wheel({"ext/_C.so": library}))
    held = inspect(path)
    monkeypatch.setattr(zipread, "IN_MEMORY", 1000)
    monkeypatch.setattr(bounded, "BLOCK", 64 * 1024)
    tracemalloc.start()
    try:
        streamed = inspect(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert streamed == held
    assert streamed.libraries[0].fatbins.total == 1_000
    assert peak < len(library) / 4


@given(
    st.binary(max_size=3000),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000)), max_size=8),
)
def test_streamed_reads_are_slices(data: bytes, asked: list[tuple[int, int]]) -> None:
    before, bounded.BLOCK = bounded.BLOCK, 100
    try:
        view = Streamed(lambda: io.BytesIO(data), len(data), Budget())
        for start, count in asked:
            if start + count > len(data):
                with pytest.raises(InspectError, match="cut off"):
                    view.read(start, count)
            else:
                assert view.read(start, count) == data[start : start + count]
    finally:
        bounded.BLOCK = before


# What nobody should send.


def changed(data: bytes, sign: bytes, at: int, value: bytes) -> bytes:
    """Replace bytes at ``at`` behind the first ``sign``, the last for directory entries."""
    place = data.rfind(sign) + at
    return data[:place] + value + data[place + len(value) :]


CENTRAL = b"PK\x01\x02"
END = b"PK\x05\x06"


def hostile() -> dict[str, tuple[bytes, str]]:
    good = wheel({"ext/_C.so": elf(fatbin("80"))})
    last = good.index(CENTRAL)  # the entry of ext/_C.so comes first

    def entry(at: int, value: bytes) -> bytes:
        return good[: last + at] + value + good[last + at + len(value) :]

    return {
        "empty": (b"", "is not a wheel"),
        "text": (b"<html>not found</html>", "is not a wheel"),
        "cut": (good[: len(good) // 2], "is not a wheel"),
        "no end": (good[:-30], "is not a wheel"),
        "huge directory": (changed(good, END, 12, struct.pack("<I", 2**31)), "is not a wheel"),
        "unpacks to less": (entry(24, struct.pack("<I", 10)), "cannot be unpacked"),
        "unpacks to more": (entry(24, struct.pack("<I", 5000)), "ends after"),
        "bomb": (entry(24, struct.pack("<I", 2**31)), "claims to unpack"),
        "packed beyond": (entry(20, struct.pack("<I", 2**30)), "beyond the end"),
        "offset beyond": (entry(42, struct.pack("<I", 2**30)), "beyond the end|not a wheel"),
        "encrypted": (entry(8, struct.pack("<H", 1)), "encrypted"),
        "lzma": (entry(10, struct.pack("<H", 14)), "packed in a way"),
        "wrong sum": (entry(16, b"\1\2\3\4"), "cannot be unpacked"),
        "no metadata": (bare({"x.so": b"x"}), "no METADATA"),
        "two metadata": (
            bare({"a-1.dist-info/METADATA": b"", "b-1.dist-info/METADATA": b""}),
            "two METADATA",
        ),
    }


def bare(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize("name", sorted(hostile()))
def test_hostile_wheels_end_in_a_clear_error(tmp_path: Path, name: str) -> None:
    data, message = hostile()[name]
    path = placed(tmp_path, data)
    with pytest.raises(InspectError, match=message) as caught:
        inspect(path)
    assert caught.value.path == path


def test_members_that_lie_over_each_other(tmp_path: Path) -> None:
    data = bytearray(wheel({"ext/a.so": elf(fatbin("80")), "ext/b.so": elf(fatbin("90"))}))
    first = data.index(CENTRAL)
    second = data.index(CENTRAL, first + 4)
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    with pytest.raises(InspectError, match="overlap"):
        inspect(placed(tmp_path, bytes(data)))


def test_two_members_of_one_name(tmp_path: Path) -> None:
    buffer = io.BytesIO(wheel({}))
    with zipfile.ZipFile(buffer, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("ext/a.so", elf())
        archive.writestr("ext/a.so", elf(fatbin("80")))
    with pytest.raises(InspectError, match="same name"):
        inspect(placed(tmp_path, buffer.getvalue()))


def test_the_total_of_unpacked_bytes_is_bounded(tmp_path: Path) -> None:
    made = wheel({f"ext/{n}.so": elf(spare=1_000_000) for n in range(8)})
    with pytest.raises(InspectError, match="more bytes than any wheel"):
        inspect(placed(tmp_path, made), budget=Budget(total=3_000_000))


def test_a_real_bomb_is_not_unpacked(tmp_path: Path) -> None:
    made = wheel({"ext/bomb.so": b"\x7fELF" + bytes(100_000_000)})
    with (
        effort_below(5),
        pytest.raises(InspectError, match=r"ext/bomb\.so claims to unpack"),
    ):
        inspect(placed(tmp_path, made))


def test_metadata_of_megabytes_is_refused(tmp_path: Path) -> None:
    made = bare({"ext-1.0.dist-info/METADATA": b"x" * 5_000_000})
    with pytest.raises(InspectError, match="bigger than"):
        inspect(placed(tmp_path, made))


def test_a_directory_of_megabytes_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for n in range(200):
            archive.writestr(f"{n:03}" + "x" * 60_000, "")
    with pytest.raises(InspectError, match="too big to be true"):
        inspect(placed(tmp_path, buffer.getvalue()))


def broken_elf(at: int, value: bytes, base: bytes = b"") -> bytes:
    data = bytearray(base or elf(fatbin("80"), ["libcudart.so.13"]))
    data[at : at + len(value)] = value
    return bytes(data)


TABLE = struct.unpack_from("<Q", elf(fatbin("80"), ["libcudart.so.13"]), 0x28)[0]
DEVICE, DYNAMIC, NAMES = TABLE + 3 * 64, TABLE + 4 * 64, TABLE + 5 * 64


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (elf()[:30], "cut off"),
        (elf()[:80], "cut off"),
        (broken_elf(0x28, struct.pack("<Q", 2**63)), "cut off"),
        (broken_elf(0x3A, struct.pack("<H", 1)), "section headers of 1 bytes"),
        (broken_elf(0x3E, struct.pack("<H", 60)), "60"),
        (broken_elf(DEVICE + 32, struct.pack("<Q", 2**40)), "reaches beyond"),
        (broken_elf(DEVICE + 24, struct.pack("<Q", 2**40)), "reaches beyond"),
        (broken_elf(DEVICE + 24, struct.pack("<Q", TABLE)), "overlap"),
        (broken_elf(DYNAMIC + 40, struct.pack("<I", 99)), "without names"),
        (broken_elf(DYNAMIC + 32, struct.pack("<Q", 2**40)), "cut off"),
        (broken_elf(NAMES + 32, struct.pack("<Q", 2**50)), "cut off"),
        (broken_elf(NAMES + 32, struct.pack("<Q", 1)), "outside its names"),
        (broken_elf(DEVICE, struct.pack("<I", 2**30)), "outside its names"),
        (pe()[:70], "cut off"),
        (pe(fatbin("80"))[:-20], "reaches beyond"),
        (b"MZ".ljust(0x3C, b"\0") + b"\xff\xff\xff\x7f", "cut off"),
        (broken_elf(208, struct.pack("<I", 0xFFFFFF), pe(imports=["a.dll"])), "outside"),
    ],
)
def test_hostile_libraries_end_in_a_clear_error(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(InspectError, match=message):
        read(tmp_path, data, "x.so")
    with pytest.raises(InspectError, match=rf"ext/_C\.so: .*{message}"):
        read(tmp_path, wheel({"ext/_C.so": data}))


def test_names_of_members_cannot_paint_the_terminal(tmp_path: Path) -> None:
    made = wheel({"ext/\x1b[31m.so": elf()[:30]})
    with pytest.raises(InspectError) as caught:
        read(tmp_path, made)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("kind", ["folder", "missing", "fifo", "nul"])
def test_what_is_no_file(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "x.whl")
    if kind == "folder":
        Path(path).mkdir()
    elif kind == "fifo":
        if not hasattr(os, "mkfifo"):
            pytest.skip("no named pipes here")
        os.mkfifo(path)
    elif kind == "nul":
        path += "\0"
    with pytest.raises(InspectError, match=r"cannot be opened|is not a file"):
        inspect(path)


def test_a_name_that_does_not_fit_is_noted(tmp_path: Path) -> None:
    assert read(tmp_path, wheel({}), "download").notes[0].startswith("download is not the name")
    other = read(tmp_path, wheel({}), "other-2.0-py3-none-any.whl")
    assert "METADATA differs" in other.notes[0]


def test_a_url_is_shown_without_its_secrets() -> None:
    assert show("https://me:secret@files.example/a/b.whl?token=1#sha256=2") == (
        "https://files.example/a/b.whl"
    )
    assert show("https://me:sec ret@files.example/") == "https://…"
    assert show("dir/b.whl") == "dir/b.whl"


SEED_WHEEL = wheel(
    {
        "ext/_C.so": elf(fatbin("80", "90"), ["libcudart.so.13"]),
        "ext/x.dll": pe(fatbin("80"), ["cudart64_12.dll"]),
        "torch/lib/libtorch_python.so": elf(data=ARCHES),
        "ext/version.py": VERSION,
    }
)
SEED_STORED = wheel({"ext/_C.so": elf(fatbin("80"), ["a"])}, method=zipfile.ZIP_STORED)


@settings(max_examples=250, deadline=None)
@given(
    st.sampled_from([SEED_WHEEL, SEED_STORED, elf(fatbin("80"), ["a"]), pe(fatbin("80"), ["a"])]),
    st.lists(
        st.tuples(
            st.integers(0, 1 << 16),
            st.sampled_from([b"\0", b"\xff", b"\xff" * 4, b"\0" * 8, CENTRAL, END])
            | st.binary(min_size=1, max_size=8),
        ),
        max_size=5,
    ),
    st.integers(0, 6000) | st.none(),
)
def test_damage_is_an_inspect_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    seed: bytes,
    changes: list[tuple[int, bytes]],
    length: int | None,
) -> None:
    data = bytearray(seed)
    for at, piece in changes:
        at %= len(data)
        data[at : at + len(piece)] = piece
    path = tmp_path_factory.getbasetemp() / WHEEL_NAME
    path.write_bytes(bytes(data[:length]))
    try:
        found = inspect(str(path), budget=Budget(seconds=10))
    except InspectError as error:
        assert re.search(r"\w", error.message)
    else:
        assert found.size == path.stat().st_size


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300)
    | st.text(max_size=200).map(lambda text: f"Name: x\nVersion: {text}\n".encode()),
    st.binary(max_size=200),
    st.binary(max_size=200) | st.just(b"-" * 60_000),
)
def test_any_text_members_are_an_inspect_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, told: bytes, tags: bytes, version: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / WHEEL_NAME
    members = {
        "ext-1.0.dist-info/METADATA": told,
        "ext-1.0.dist-info/WHEEL": tags,
        "ext/version.py": version,
    }
    path.write_bytes(bare(members))
    try:
        inspect(str(path))
    except InspectError as error:
        assert error.message


def test_held_gives_no_more_than_there_is() -> None:
    with pytest.raises(InspectError, match="cut off"):
        Held(b"abc").read(2, 2)
