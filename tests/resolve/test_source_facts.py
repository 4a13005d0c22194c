"""What the builds of torch releases accept."""

from __future__ import annotations

import pytest

from torchpin.catalog.internals import load_internals
from torchpin.resolve.source_facts import built_by_pip, cuda_floor, cudnn_floor, newest_accepting


@pytest.mark.parametrize(
    ("torch", "cuda"),
    [
        ("1.13.1", None),
        ("2.0.1", "11.0"),
        ("2.8.0", "11.0"),
        ("2.9.1", "12.0"),
        ("2.11.0", "12.0"),
        ("2.12.1", "12.1"),
        ("2.13.0", "12.1"),
        ("2.14.0", "12.6"),
        ("2.15.0", "12.6"),
        ("2.16.0", None),
    ],
)
def test_cuda_floor_as_cuda_cmake_of_the_wheels_says(torch: str, cuda: str | None) -> None:
    found = cuda_floor(torch)
    assert (found.cuda if found else None) == cuda
    assert found is None or torch in found.source


def test_newest_release_that_accepts_a_toolkit() -> None:
    found = {cuda: newest_accepting(cuda) for cuda in ("10.2", "11.8", "12.4", "12.9")}
    assert found["10.2"] is None
    assert [f[0] for f in found.values() if f] == ["2.8", "2.13", "2.15"]


def test_who_drives_the_build() -> None:
    assert [built_by_pip(v) for v in ("2.12.1", "2.13.0", "2.15.0")] == [False, True, True]
    assert [cudnn_floor(v) for v in ("2.2.2", "2.3.1")] == ["8.0", "8.1"]


def test_measured_wheels_of_a_product() -> None:
    found = load_internals().wheels("cusparse", "linux-x86_64")
    assert found
    assert all(not package.startswith("nvidia-cusparselt") for package, _, _ in found)
    cudnn = {v: k.sass for _, v, k in load_internals().wheels("cudnn", "linux-x86_64")}
    assert "70" in cudnn["9.10.2.21"]
    assert "70" not in cudnn["9.26.0.51"]
