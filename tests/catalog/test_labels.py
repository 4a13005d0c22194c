from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpin.catalog.labels import cuda_of, kind_of_label, label_of_cuda, parse_label, rocm_of


@pytest.mark.parametrize(
    ("label", "kind", "version"),
    [
        ("cu126", "cuda", "12.6"),
        ("cu130", "cuda", "13.0"),
        ("cu102", "cuda", "10.2"),
        ("cu92", "cuda", "9.2"),
        ("cpu", "cpu", None),
        ("xpu", "xpu", None),
        ("rocm7.2", "rocm", "7.2"),
        ("rocm6.2.4", "rocm", "6.2.4"),
        ("rocm7.14", "rocm", "7.14"),
    ],
)
def test_pytorch_labels(label: str, kind: str, version: str | None) -> None:
    assert kind_of_label(label) == kind
    assert parse_label(label) == (kind, version)
    assert (cuda_of(label) or rocm_of(label)) == version


@pytest.mark.parametrize(
    "label",
    [
        "",
        "cu",
        "cu1",
        "cu1260",
        "cu126\n",
        "CU126",
        "cu128.nv",
        "cpu.cxx11.abi",
        "rocm",
        "rocm7",
        "rocm7.2.1.lw.git1a2b3c",
        "e437e35",
        "root",
        "nv23.6",
    ],
)
def test_vendor_labels_are_unknown(label: str) -> None:
    assert parse_label(label) == (None, None)


@given(st.integers(8, 30), st.integers(0, 9))
def test_labels_of_cuda_turn_back(major: int, minor: int) -> None:
    version = f"{major}.{minor}"
    assert cuda_of(label_of_cuda(version)) == version


@pytest.mark.parametrize("version", ["12", "12.10", "", "x.y"])
def test_no_label_of_other_text(version: str) -> None:
    with pytest.raises(ValueError, match="not a CUDA version"):
        label_of_cuda(version)
