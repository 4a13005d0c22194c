"""What fatbins hold: every target with its suffix, and no size that is believed unseen."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.catalog.inspect_samples import CUBIN, LTO_IR, elf, entry, fatbin, pe, wrap

from torchpin.catalog.bounded import Budget, Held, InspectError
from torchpin.catalog.elf import read_elf
from torchpin.catalog.fatbin import MAGIC, Fatbins, Part, ordered, read_fatbins
from torchpin.catalog.pe import read_pe


def of(data: bytes) -> Fatbins:
    return read_fatbins(Held(data), [(0, len(data))])


def test_suffixes_and_kinds() -> None:
    found = of(fatbin("75 90a 100f", "120 90a", lto="80") + fatbin("75"))
    assert found.parts == (
        Part(("75",), (), 1),
        Part(("75", "90a", "100f"), ("90a", "120"), 1),
    )
    assert (found.sass, found.ptx) == (("75", "90a", "100f"), ("90a", "120"))
    assert (found.total, found.others) == (2, 0)


def test_lto_ir_alone_is_no_device_code() -> None:
    assert of(fatbin(lto="80 90") + wrap(b"")) == Fatbins((), 2)


def test_packed_data_are_passed_over() -> None:
    noise = struct.pack("<I", MAGIC) * 10
    found = of(wrap(entry(CUBIN, 80, 0x2000, noise) + entry(CUBIN, 90, 0x8000, noise, head=72)))
    assert found.sass == ("80", "90")


def test_padding_of_any_length_between_fatbins() -> None:
    found = of(b"\0" * 8 + fatbin("80") + b"\0" * 300_000 + fatbin("90") + b"\0" * 3)
    assert found.parts == (Part(("80",), (), 1), Part(("90",), (), 1))


def test_the_most_frequent_part_comes_first() -> None:
    found = of(fatbin("90a") + fatbin("80 90") * 5)
    assert [part.fatbins for part in found.parts] == [5, 1]


def test_targets_are_ordered_by_number() -> None:
    assert ordered(["120", "90", "90a", "100f", "90"]) == ("90", "90a", "100f", "120")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (fatbin("80")[:-8], "does not fit its section"),
        (struct.pack("<IHHQ", MAGIC, 1, 16, 2**63), "does not fit its section"),
        (struct.pack("<IHHQ", MAGIC, 1, 0, 64) + b"\0" * 64, "does not fit its section"),
        (wrap(entry(CUBIN, 80, head=64)[:40]), "does not fit its fatbin"),
        (wrap(b"\0" * 64), "does not fit its fatbin"),  # sizes of zero would never end
        (wrap(struct.pack("<HHIQ", 2, 0, 64, 2**60) + b"\0" * 64), "does not fit its fatbin"),
        (wrap(entry(CUBIN, 0)), "for no GPU"),
        (wrap(entry(CUBIN, 2**31)), "for no GPU"),
        (b"\0" * 64, "holds no fatbin"),
        (b"\x5a" * 1000, "holds no fatbin"),
        (wrap(b"".join(entry(CUBIN, n, data=b"") for n in range(10, 700))), "too many GPUs"),
        (b"".join(fatbin(str(n)) for n in range(10, 4200)), "more kinds"),
    ],
)
def test_what_cannot_be_true_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InspectError, match=message):
        of(data)


def test_the_clock_ends_endless_entries() -> None:
    many = wrap(entry(LTO_IR, 80, data=b"") * 10_000)
    with pytest.raises(InspectError, match="no result within"):
        read_fatbins(Held(many), [(0, len(many))], Budget(seconds=-1))


TARGETS = st.sampled_from(["50", "75", "80", "90", "90a", "100f", "120"])


@given(st.lists(st.tuples(st.sets(TARGETS), st.sets(TARGETS)), min_size=1, max_size=6))
def test_what_was_written_is_read(made: list[tuple[set[str], set[str]]]) -> None:
    found = of(b"".join(fatbin(" ".join(sass), " ".join(ptx)) for sass, ptx in made))
    assert set(found.sass) == {target for sass, _ in made for target in sass}
    assert set(found.ptx) == {target for _, ptx in made for target in ptx}
    assert found.total + found.others == len(made)


SEEDS = (
    fatbin("75 90a", "120") + fatbin("80"),
    elf(fatbin("75 90a", "120"), ["libcudart.so.13", "libc.so.6"]),
    pe(fatbin("75", "120"), ["cudart64_13.dll"], ["cublas64_13.dll"]),
)


@settings(max_examples=300)
@given(
    st.sampled_from(SEEDS),
    st.lists(
        st.tuples(
            st.integers(0, 2000),
            st.sampled_from([b"\0", b"\xff", b"\xff" * 4, b"\xff" * 8, b"\x01", b"\0" * 8])
            | st.binary(min_size=1, max_size=8),
        ),
        max_size=6,
    ),
    st.integers(0, 3000),
)
def test_damage_is_an_inspect_error_or_nothing(
    seed: bytes, changes: list[tuple[int, bytes]], length: int
) -> None:
    data = bytearray(seed)
    for at, piece in changes:
        at %= len(data)
        data[at : at + len(piece)] = piece
    view = Held(bytes(data[: length or None]))
    for read in (read_elf, read_pe):
        try:
            layout = read(view)
            read_fatbins(view, layout.fatbins, Budget(seconds=5))
        except InspectError:
            continue
    try:
        read_fatbins(view, [(0, view.size)], Budget(seconds=5))
    except InspectError:
        return


@given(st.binary(max_size=400))
def test_any_bytes_are_an_inspect_error_or_nothing(data: bytes) -> None:
    for head in (b"", b"\x7fELF\x02\x01", b"MZ"):
        view = Held(head + data)
        for read in (read_elf, read_pe):
            try:
                read(view)
            except InspectError:
                continue
