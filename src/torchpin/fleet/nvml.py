"""What NVIDIA's driver tells of this machine, through its own library NVML, without a package.

Functions and codes: NVML API Reference Guide (https://docs.nvidia.com/deploy/nvml-api/) and nvml.h.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from typing import Any

from torchpin.fleet.importers.model import SeenGpu
from torchpin.named import NamedTuple

_NAME_BYTES = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE
_VERSION_BYTES = 80  # NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
_PCI_BYTES, _PCI_AT = 68, 36  # sizeof(nvmlPciInfo_t), offsetof(nvmlPciInfo_t, busId)
_SUCCESS = 0
_MEANINGS = {
    3: "not supported",
    4: "no permission",
    9: "the NVIDIA driver is not loaded",
    12: "a library of the NVIDIA driver is missing",
    15: "the GPU has fallen off the bus",
    16: "the GPU has fallen off the bus",
    18: "the driver in the kernel and its libraries are of different versions: reboot",
    999: "an internal error of the driver",
}
_MOST_GPUS = 256


class Nvml(NamedTuple):
    """What NVML tells."""

    gpus: tuple[SeenGpu, ...]
    driver: str
    problems: tuple[str, ...] = ()
    """What did not answer, in words."""


class Device(NamedTuple):
    """One GPU by itself."""

    number: int
    gpu: SeenGpu
    memory_mib: int | None
    pci: str
    """Address on the bus, ``00000000:3b:00.0``; ``""``: not told."""


def libraries() -> tuple[str, ...]:
    """Return where NVML may be: by its name, and where WSL and Windows keep it."""
    if sys.platform == "win32":
        files = os.environ.get("PROGRAMW6432", r"C:\Program Files")
        return ("nvml.dll", rf"{files}\NVIDIA Corporation\NVSMI\nvml.dll")
    return ("libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1")


def load() -> Any | None:
    """Return the library, or None where there is none."""
    for name in libraries():
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def ask(library: Any) -> Nvml:
    """Return what NVML tells; whatever it refuses is a problem in words, never an exception."""
    try:
        code = library.nvmlInit_v2()
    except AttributeError:
        return Nvml((), "", ("NVML lacks nvmlInit_v2",))
    if code != _SUCCESS:
        return Nvml((), "", (f"NVML did not start: {_meaning(code)}",))
    try:
        return _ask(library)
    except AttributeError as error:
        return Nvml((), "", (f"NVML lacks a function: {error}",))
    finally:
        library.nvmlShutdown()


def _ask(library: Any) -> Nvml:
    problems: list[str] = []
    buffer = ctypes.create_string_buffer(_VERSION_BYTES)
    driver = ""
    code = library.nvmlSystemGetDriverVersion(buffer, ctypes.c_uint(_VERSION_BYTES))
    if code == _SUCCESS:
        driver = buffer.value.decode("ascii", "replace")
    else:
        problems.append(f"NVML tells no driver version: {_meaning(code)}")
    gpus = tuple(_gpu(library, handle) for _, handle in _handles(library, problems))
    return Nvml(gpus, driver, tuple(problems))


def _handles(library: Any, problems: list[str]) -> Iterator[tuple[int, ctypes.c_void_p]]:
    """Yield the number and handle of each GPU that answers."""
    count = ctypes.c_uint(0)
    code = library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    if code != _SUCCESS:
        problems.append(f"NVML tells no number of GPUs: {_meaning(code)}")
    for number in range(min(count.value, _MOST_GPUS)):
        handle = ctypes.c_void_p()
        code = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(number), ctypes.byref(handle))
        if code == _SUCCESS:
            yield number, handle
        else:
            problems.append(f"GPU {number} does not answer: {_meaning(code)}")


def devices(library: Any) -> tuple[Device, ...]:
    """Return the GPUs that answer, each by itself; none if NVML does not start."""
    try:
        if library.nvmlInit_v2() != _SUCCESS:
            return ()
    except AttributeError:
        return ()
    try:
        return tuple(
            Device(number, _gpu(library, handle), _memory(library, handle), _pci(library, handle))
            for number, handle in _handles(library, [])
        )
    except AttributeError:
        return ()
    finally:
        library.nvmlShutdown()


def _memory(library: Any, handle: ctypes.c_void_p) -> int | None:
    function = getattr(library, "nvmlDeviceGetMemoryInfo", None)
    sizes = (ctypes.c_ulonglong * 3)()  # nvmlMemory_t: total, free, used
    if function is None or function(handle, ctypes.byref(sizes)) != _SUCCESS:
        return None
    return int(sizes[0]) // (1024 * 1024)


def _pci(library: Any, handle: ctypes.c_void_p) -> str:
    function = getattr(library, "nvmlDeviceGetPciInfo_v3", None)
    buffer = ctypes.create_string_buffer(_PCI_BYTES)
    if function is None or function(handle, buffer) != _SUCCESS:
        return ""
    return buffer.raw[_PCI_AT:].split(b"\0")[0].decode("ascii", "replace").lower()


def _gpu(library: Any, handle: ctypes.c_void_p) -> SeenGpu:
    buffer = ctypes.create_string_buffer(_NAME_BYTES)
    code = library.nvmlDeviceGetName(handle, buffer, ctypes.c_uint(_NAME_BYTES))
    name = buffer.value.decode("utf-8", "replace") if code == _SUCCESS else ""
    major, minor = ctypes.c_int(), ctypes.c_int()
    capability = None
    function = getattr(library, "nvmlDeviceGetCudaComputeCapability", None)  # drivers from 384 on
    if function is not None:
        code = function(handle, ctypes.byref(major), ctypes.byref(minor))
        if code == _SUCCESS:
            capability = (major.value, minor.value)
    return SeenGpu(name, capability)


def _meaning(code: int) -> str:
    return _MEANINGS.get(code, f"NVML error {code}")
