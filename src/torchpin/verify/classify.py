"""Why work failed: by the error code of CUDA, else by the kind of exception, else by its words.

Codes: CUDA Runtime API, *cudaError*; HIP numbers those that are used here alike
(hip_runtime_api.h).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from torchpin.verify.model import (
    CPU_BUILD,
    DRIVER_TOO_OLD,
    IMPORT_FAILED,
    NO_DRIVER,
    NO_KERNEL_IMAGE,
    OTHER,
    OUT_OF_MEMORY,
    WRONG_COMPANION,
)

REASONS_OF_CODES: Mapping[int, str] = {
    2: OUT_OF_MEMORY,  # cudaErrorMemoryAllocation
    34: NO_DRIVER,  # cudaErrorStubLibrary: the toolkit's stand-in for the driver is loaded
    35: DRIVER_TOO_OLD,  # cudaErrorInsufficientDriver
    98: NO_KERNEL_IMAGE,  # cudaErrorInvalidDeviceFunction
    100: NO_DRIVER,  # cudaErrorNoDevice
    200: NO_KERNEL_IMAGE,  # cudaErrorInvalidKernelImage
    209: NO_KERNEL_IMAGE,  # cudaErrorNoKernelImageForDevice
    218: NO_KERNEL_IMAGE,  # cudaErrorInvalidPtx
    222: DRIVER_TOO_OLD,  # cudaErrorUnsupportedPtxVersion: PTX of a later toolkit than the driver's
    804: DRIVER_TOO_OLD,  # cudaErrorCompatNotSupportedOnDevice: cuda-compat where it may not help
}
_STATUSES = (
    ("_ARCH_MISMATCH", NO_KERNEL_IMAGE),  # CUBLAS_STATUS_…, CUSOLVER_STATUS_…, CUDNN_STATUS_…
    ("_STATUS_ALLOC_FAILED", OUT_OF_MEMORY),
    ("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", OUT_OF_MEMORY),
    ("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", OUT_OF_MEMORY),
)
"""Names of error codes of cuBLAS, cuSOLVER and cuDNN, which torch gives in its message."""
_WORDS = (
    ("no kernel image is available", NO_KERNEL_IMAGE),
    ("invalid device function", NO_KERNEL_IMAGE),
    ("driver version is insufficient", DRIVER_TOO_OLD),
    ("driver on your system is too old", DRIVER_TOO_OLD),
    ("unsupported toolchain", DRIVER_TOO_OLD),
    ("Found no NVIDIA driver", NO_DRIVER),
    ("no CUDA-capable device", NO_DRIVER),
    ("No HIP GPUs are available", NO_DRIVER),
    ("No CUDA GPUs are available", NO_DRIVER),
    ("CUDA out of memory", OUT_OF_MEMORY),
    ("not compiled with CUDA enabled", CPU_BUILD),
)
"""For torch before AcceleratorError (2.8), where CUDA's runtime could not be asked either."""
_STRANGE = (
    "undefined symbol",
    "cannot open shared object file",
    "compiled with different CUDA",
    "Couldn't load custom C++ ops",
    "torchvision::nms does not exist",
    "Could not run 'torchvision::",
    "Could not run 'torchaudio::",
    "Could not load this library",
    "DLL load failed",
    "specified procedure could not be found",
)
"""How torchvision and torchaudio tell that they belong to another torch."""
_LOADING = ("Error in dlopen", "cannot open shared object file", "undefined symbol")
COMPANIONS = ("torchvision", "torchaudio")


def classify(
    failure: Mapping[str, Any], library: str, *, driver_cuda: int | None = None
) -> tuple[str, int | None]:
    """Return the reason of a failure and its CUDA error code.

    Args:
        failure: what the worker tells: ``types``, ``error_code``, ``message``, ``stage``.
        library: one of ``model.LIBRARIES``.
        driver_cuda: the CUDA of the driver, 0 if there is none; None: not known.
    """
    types: Collection[str] = failure.get("types") or ()
    message = str(failure.get("message") or "")
    code = failure.get("error_code")
    code = code if isinstance(code, int) else None
    if "OutOfMemoryError" in types or "MemoryError" in types:
        return OUT_OF_MEMORY, code
    if code is not None and code in REASONS_OF_CODES:
        without = code == 35 and driver_cuda == 0
        return NO_DRIVER if without else REASONS_OF_CODES[code], code
    for words, reason in _STATUSES:
        if words in message:
            return reason, code
    if code is not None:
        return OTHER, code
    if library in COMPANIONS and any(words in message for words in _STRANGE):
        return WRONG_COMPANION, None
    loading = "ImportError" in types or any(words in message for words in _LOADING)
    if failure.get("stage") == "import" or loading:
        return IMPORT_FAILED, None
    return next((reason for words, reason in _WORDS if words in message), OTHER), None


def first_line(message: str) -> str:
    """Return what torch says, without its advice on debugging."""
    lines = [line.strip() for line in message.strip().splitlines()]
    return next((line for line in lines if line), "")
