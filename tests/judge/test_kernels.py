"""The tables of binary and PTX compatibility, row by row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpin.judge.kernels import cubin_match, gfx_match, kernel_match, parse_code, ptx_match

DEVICES = [
    "5.0",
    "5.2",
    "5.3",
    "6.0",
    "6.1",
    "6.2",
    "7.0",
    "7.2",
    "7.5",
    "8.0",
    "8.6",
    "8.7",
    "8.8",
    "8.9",
    "9.0",
    "10.0",
    "10.1",
    "10.3",
    "10.7",
    "11.0",
    "12.0",
    "12.1",
]
RANK = {"sass": 0, "ptx": 1, "unknown": 2, "none": 3}

# cubin: devices it runs on; devices where the answer is contested
CUBINS = {
    "50": ("5.0 5.2", ""),
    "52": ("5.2", ""),
    "53": ("5.3", ""),
    "60": ("6.0 6.1", ""),
    "61": ("6.1", ""),
    "62": ("6.2", ""),
    "70": ("7.0 7.5", "7.2"),
    "72": ("7.2", ""),
    "75": ("7.5", ""),
    "80": ("8.0 8.6 8.8 8.9", "8.7"),
    "86": ("8.6 8.8 8.9", "8.7"),
    "87": ("8.7", ""),
    "89": ("8.9", ""),
    "90": ("9.0", ""),
    "100": ("10.0 10.3 10.7", ""),
    "101": ("10.1 11.0", ""),
    "103": ("10.3 10.7", ""),
    "110": ("10.1 11.0", ""),
    "120": ("12.0 12.1", ""),
    "121": ("12.1", ""),
    "90a": ("9.0", ""),
    "100a": ("10.0", ""),
    "120a": ("12.0", ""),
    "100f": ("10.0 10.3 10.7", ""),
    "103f": ("10.3 10.7", ""),
    "107f": ("10.7", ""),
    "101f": ("10.1 11.0", ""),
    "110f": ("10.1 11.0", ""),
    "120f": ("12.0 12.1", ""),
    "121f": ("12.1", ""),
}


def cc(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


@pytest.mark.parametrize(
    ("cubin", "device"), [(cubin, device) for cubin in CUBINS for device in DEVICES]
)
def test_cubin_table(cubin: str, device: str) -> None:
    runs, contested = CUBINS[cubin]
    expected = (
        "sass" if device in runs.split() else "unknown" if device in contested.split() else "none"
    )
    assert cubin_match(cubin, cc(device)).how == expected


@pytest.mark.parametrize("cubin", ["100", "103"])
def test_rubin_rests_on_the_rule_alone(cubin: str) -> None:
    assert cubin_match(cubin, (10, 7)).evidence == "inferred"


@pytest.mark.parametrize(
    ("ptx", "device", "runs"),
    [
        *[
            ("80", d, True)
            for d in [
                "8.0",
                "8.6",
                "8.7",
                "8.8",
                "8.9",
                "9.0",
                "10.0",
                "10.3",
                "10.7",
                "11.0",
                "12.0",
                "12.1",
            ]
        ],
        ("80", "7.5", False),
        ("37", "5.0", True),
        ("90", "8.9", False),
        ("103", "11.0", True),
        ("103", "12.0", True),
        ("120", "11.0", False),
        ("120", "12.1", True),
        ("120", "10.7", False),
        ("90a", "9.0", True),
        ("90a", "10.0", False),
        ("100a", "10.3", False),
        ("100f", "10.3", True),
        ("100f", "10.7", True),
        ("100f", "12.0", False),
        ("120f", "12.1", True),
        ("120f", "12.0", True),
        ("121f", "12.0", False),
        ("103f", "10.0", False),
    ],
)
def test_ptx_goes_forward(ptx: str, device: str, runs: bool) -> None:
    assert (ptx_match(ptx, cc(device)).how == "ptx") is runs


# sass, ptx, device → how, with which code
WORKED = [
    ("50 60 70 75 80 86 90", "", "7.0", "sass", "sm_70"),
    ("75 80 86 90 100 120", "", "7.0", "none", ""),
    ("80 86 90", "", "8.9", "sass", "sm_86"),
    ("100", "", "10.3", "sass", "sm_100"),
    ("120", "", "12.1", "sass", "sm_120"),
    ("100 120", "", "11.0", "none", ""),
    ("80 90", "", "8.7", "unknown", "sm_80"),
    ("100", "", "10.7", "sass", "sm_100"),
    ("80 90 100 110 120", "", "7.5", "none", ""),
    ("37 50 60 70", "37", "8.6", "ptx", "compute_37"),
    ("80 90", "80", "8.7", "ptx", "compute_80"),
    ("50 60 70", "", "7.5", "sass", "sm_70"),
    ("90a", "", "9.0", "sass", "sm_90a"),
    ("86", "", "8.0", "none", ""),
    ("", "", "8.0", "none", ""),
]


@pytest.mark.parametrize(("sass", "ptx", "device", "how", "code"), WORKED)
def test_worked_cases(sass: str, ptx: str, device: str, how: str, code: str) -> None:
    match = kernel_match(sass.split(), ptx.split(), cc(device))
    assert (match.how, match.code) == (how, code)


@pytest.mark.parametrize(
    ("jetpack", "cuda", "how"),
    [
        (None, "13.0", "unknown"),
        ("6.2", "12.6", "unknown"),
        ("7.1", "13.0", "unknown"),
        ("7.2", "12.6", "unknown"),
        ("7.2", "13.0", "sass"),
        ("7.2", "13.2", "sass"),
        ("7.10", "13.2", "sass"),
        ("8", "13.2", "sass"),
    ],
)
def test_orin_depends_on_the_boards_stack(jetpack: str | None, cuda: str, how: str) -> None:
    match = kernel_match(["80", "90"], [], (8, 7), tegra=True, jetpack=jetpack, cuda=cuda)
    assert match.how == how
    assert match.evidence == "inferred"


def test_orin_own_code_is_certain() -> None:
    match = kernel_match(["80", "87"], [], (8, 7), tegra=True)
    assert (match.how, match.code, match.evidence) == ("sass", "sm_87", "published")


@pytest.mark.parametrize("text", ["", "x", "8", "90b", "gfx90a"])
def test_unreadable_code_is_unknown(text: str) -> None:
    assert parse_code(text) is None
    assert kernel_match([text], [], (9, 0)).how == "unknown"


@pytest.mark.parametrize(
    ("targets", "gfx", "runs"),
    [
        ("gfx90a gfx942", "gfx90a", True),
        ("gfx90a gfx942", "gfx90a:sramecc+:xnack-", True),
        ("gfx90a:xnack-", "gfx90a", True),
        ("gfx90a gfx942", "gfx941", False),
        ("gfx1030", "gfx1031", False),
        ("gfx1100", "gfx1103", False),
        ("gfx10-3-generic", "gfx1031", True),
        ("gfx11-generic", "gfx1151", True),
        ("gfx9-generic", "gfx906", True),
        ("gfx9-generic", "gfx90a", False),
        ("gfx9-4-generic", "gfx942", True),
        ("gfx12-generic", "gfx1201", True),
        ("", "gfx942", False),
    ],
)
def test_gfx(targets: str, gfx: str, runs: bool) -> None:
    assert (gfx_match(targets.split(), gfx).how == "sass") is runs


CODES = st.lists(st.sampled_from(sorted(CUBINS)), max_size=6)


@given(CODES, CODES, st.sampled_from(sorted(CUBINS)), st.sampled_from(DEVICES))
def test_more_code_never_hurts(sass: list[str], ptx: list[str], more: str, device: str) -> None:
    before = RANK[kernel_match(sass, ptx, cc(device)).how]
    assert RANK[kernel_match([*sass, more], ptx, cc(device)).how] <= before
    assert RANK[kernel_match(sass, [*ptx, more], cc(device)).how] <= before


@given(CODES, CODES, st.sampled_from(DEVICES), st.randoms(use_true_random=False))
def test_order_of_the_lists_does_not_matter(
    sass: list[str], ptx: list[str], device: str, random: object
) -> None:
    expected = kernel_match(sass, ptx, cc(device))
    assert kernel_match(sass[::-1], ptx[::-1], cc(device)).how == expected.how
    assert kernel_match(sass[::-1], ptx[::-1], cc(device)).code == expected.code
