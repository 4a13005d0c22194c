"""What torch brings from NVIDIA, on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchpin.catalog.internals import Internals, load_internals
from torchpin.catalog.model import Build
from torchpin.catalog.store import load_catalog
from torchpin.errors import CatalogError
from torchpin.fleet.model import Gpu, Target
from torchpin.judge.verdict import judge

Make = Callable[..., Build]
MakeGpu = Callable[..., Gpu]
MakeTarget = Callable[..., Target]
Brought = Callable[..., None]

DNN = ("9.11.0", [("libcudnn_ops.so.9", "75 80", ""), ("libcudnn_adv.so.9", "80", "")])
BLAS = ("12.6.4.1", [("libcublas.so.12", "50 60 70 80", "90")])
SPARSE = ("0.7.1", [("libcusparseLt.so.0", "80 90", "")])


def told(verdict: Any) -> list[tuple[str, str, str | None]]:
    return [(r.question, r.status, r.library) for r in verdict.reasons]


def test_all_that_torch_brings_runs(
    build: Make, gpu: MakeGpu, target: MakeTarget, brought: Brought
) -> None:
    brought("cu126", nvidia_cudnn_cu12=DNN, nvidia_cublas_cu12=BLAS)
    verdict = judge(build("cu126", "60 70 75"), target(gpu("T4", "7.5")))
    assert told(verdict) == [
        ("kernels", "runs", None),
        ("libraries", "runs", "cuDNN 9.11.0, cuBLAS 12.6.4.1"),
    ]
    assert "cuDNN 9.11.0 (sm_75), cuBLAS 12.6.4.1 (sm_70)" in verdict.reasons[1].text
    assert "cuDNN 9.11.0, cuBLAS 12.6.4.1" in verdict.covers
    assert "NCCL" in verdict.leaves_out


def test_a_library_without_kernels_makes_it_partly(
    build: Make, gpu: MakeGpu, target: MakeTarget, brought: Brought
) -> None:
    brought("cu126", nvidia_cudnn_cu12=DNN, nvidia_cublas_cu12=BLAS)
    verdict = judge(build("cu126", "60 70 75"), target(gpu("GTX 1080", "6.1")))
    assert verdict.status == "partly"
    assert told(verdict)[2] == ("libraries", "partly", "cuDNN 9.11.0")
    reason = verdict.reasons[2]
    assert reason.evidence == "measured"
    assert "cuDNN 9.11.0" in reason.text
    assert "sm_75 sm_80 only" in reason.text
    assert reason.source == "METADATA of torch; wheel of NVIDIA"


def test_ptx_of_a_library_counts(
    build: Make, gpu: MakeGpu, target: MakeTarget, brought: Brought
) -> None:
    brought("cu126", nvidia_cublas_cu12=BLAS)
    verdict = judge(build("cu126", "120"), target(gpu("RTX 5090", "12.0")))
    assert verdict.status == "runs"
    assert "cuBLAS 12.6.4.1 (compute_90)" in verdict.reasons[1].text


def test_sparse_tensor_cores_are_missed_by_nobody(
    build: Make, gpu: MakeGpu, target: MakeTarget, brought: Brought
) -> None:
    brought("cu126", nvidia_cusparselt_cu12=SPARSE)
    verdict = judge(build("cu126", "70 80"), target(gpu("V100", "7.0")))
    assert verdict.status == "runs"
    assert "semi-structured sparsity is not for this GPU" in verdict.reasons[1].text


def test_what_is_inferred_of_a_channel_stays_inferred(
    build: Make, gpu: MakeGpu, target: MakeTarget, brought: Brought
) -> None:
    brought("cu126", "inferred", nvidia_cudnn_cu12=DNN)
    verdict = judge(build("cu126", "60"), target(gpu("P100", "6.0")))
    assert [(r.status, r.evidence) for r in verdict.reasons[1:2]] == [("partly", "inferred")]


def test_a_torch_that_does_not_run_needs_no_more_words(
    build: Make, gpu: MakeGpu, target: MakeTarget, brought: Brought
) -> None:
    brought("cu126", nvidia_cudnn_cu12=DNN)
    verdict = judge(build("cu126", "80"), target(gpu("P100", "6.0")))
    assert "libraries" not in {r.question for r in verdict.reasons}


@pytest.mark.usefixtures("nothing_brought")
def test_nothing_known(build: Make, gpu: MakeGpu, target: MakeTarget) -> None:
    verdict = judge(build("cu126", "80"), target(gpu("A100", "8.0")))
    assert told(verdict) == [("kernels", "runs", None)]
    assert "cuDNN, cuBLAS and the other NVIDIA libraries" in verdict.leaves_out


def test_the_shipped_table() -> None:
    table = load_internals()
    catalog = load_catalog()
    newest = catalog.find("torch", version="2.9.1", home="pypi", platform="linux-x86_64")[0]
    brings = table.brings(newest)
    assert brings is not None
    assert ("nvidia-cudnn-cu12", "==9.10.2.21") in brings.requires
    assert ("triton", "==3.5.1") in brings.requires
    assert "sha256:" in brings.source
    held = {one.name: one.kernels.sass for one in table.libraries(newest)}
    assert {"50", "60", "61", "70"} <= set(held["libcudnn_ops.so.9"])
    twin = catalog.find("torch", version="2.9.1", channel="cu128", home="channel")
    linux = [b for b in twin if b.platform == "linux-x86_64"]
    assert [table.brings(b) == brings for b in linux] == [True]
    assert table.brings(newest._replace(package="torchvision")) is None
    windows = [b for b in twin if b.platform == "windows-x86_64"]
    assert [table.brings(b) for b in windows] == [None]


def test_a_broken_table_is_told() -> None:
    with pytest.raises(CatalogError, match="cannot be read"):
        Internals("no-such-file.json")
