"""Failures by error code first, by words last."""

from __future__ import annotations

import pytest

from torchpin.verify.classify import classify, first_line
from torchpin.verify.model import REASONS

RUNTIME = ["RuntimeError", "Exception", "BaseException", "object"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (209, "no-kernel-image"),
        (98, "no-kernel-image"),
        (200, "no-kernel-image"),
        (218, "no-kernel-image"),
        (35, "driver-too-old"),
        (222, "driver-too-old"),
        (804, "driver-too-old"),
        (100, "no-driver"),
        (34, "no-driver"),
        (2, "out-of-memory"),
        (700, "other"),
        (999, "other"),
    ],
)
def test_the_code_decides_whatever_the_words_are(code: int, reason: str) -> None:
    for message in ("", "CUDA out of memory", "no kernel image is available"):
        failure = {"types": ["AcceleratorError", *RUNTIME], "error_code": code, "message": message}
        assert classify(failure, "torch") == (reason, code)


def test_an_insufficient_driver_of_no_version_is_none() -> None:
    failure = {"types": RUNTIME, "error_code": 35, "message": "Found no NVIDIA driver"}
    assert classify(failure, "torch", driver_cuda=0) == ("no-driver", 35)
    assert classify(failure, "torch", driver_cuda=11040) == ("driver-too-old", 35)


@pytest.mark.parametrize(
    ("message", "library", "reason"),
    [
        ("CUDA error: CUBLAS_STATUS_ARCH_MISMATCH when calling cublasSgemm", "cublas", 1),
        ("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH", "cudnn", 1),
        ("cusolver error: CUSOLVER_STATUS_ARCH_MISMATCH", "linalg", 1),
        ("CUDA error: no kernel image is available for execution on the device", "torch", 1),
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate", "cublas", 2),
        ("Torch not compiled with CUDA enabled", "torch", 3),
        ("operator torchvision::nms does not exist", "torchvision", 4),
        ("/x/_C.so: undefined symbol: _ZN3c104cuda", "torchvision", 4),
        ("libcudart.so.13: cannot open shared object file: No such file", "torchaudio", 4),
        ("libcudnn.so.9: cannot open shared object file: No such file", "torch", 5),
        ("Error in dlopen for library libtorch_cuda_linalg.so", "linalg", 5),
        ("the weather is bad", "torch", 0),
    ],
)
def test_without_a_code_names_of_codes_and_words_decide(
    message: str, library: str, reason: int
) -> None:
    names = ("other", "no-kernel-image", "out-of-memory", "cpu-build", "wrong-companion")
    expected = (*names, "import-failed")[reason]
    told, code = classify({"types": RUNTIME, "error_code": None, "message": message}, library)
    assert (told, code) == (expected, None)
    assert told in REASONS


def test_an_import_that_fails_for_its_own_reasons() -> None:
    failure = {"types": ["ModuleNotFoundError", "ImportError"], "message": "No module named numpy"}
    assert classify(failure, "torchvision") == ("import-failed", None)
    assert classify({**failure, "types": RUNTIME, "stage": "import"}, "torch") == (
        *("import-failed", None),
    )


def test_the_advice_on_debugging_is_left_out() -> None:
    assert first_line("\nCUDA error: x\nFor debugging consider passing …\n") == "CUDA error: x"
    assert first_line("") == ""
