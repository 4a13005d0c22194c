"""The child process of ``verify``: imports torch and does real work. The only place that does.

It runs as a plain file in any Python from 3.8 on, whether torchpin is installed there or not, and
tells what happens as JSON, one object a line, on what was its standard output:

* ``describe``: this Python and where it looks for packages; torch is not imported;
* ``probe``: what torch says of itself and of the GPUs;
* ``work``: ``begin`` and ``end`` of each operation, so that the parent knows where a child died.

Results are compared with those of the same work in double precision on the CPU.
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]  # this folder: its modules would hide others of the same names

import importlib
import json
import os
import re
import time
from typing import Any, Callable  # noqa: UP035 (the alias below is evaluated by Python 3.8 too)

_LONGEST = 600
"""Characters of a message."""
_GOES_ON = (2, 98, 200, 209, 218, 222)
"""CUDA's errors after which other work may go well; others stay with the process (CUDA Runtime API,
*cudaError*)."""
_CODES = (2, 3, 34, 35, 46, 98, 100, 101, 200, 209, 214, 218, 221, 222, 300, 301, 304, 700, 701)
_MORE_CODES = (702, 710, 714, 715, 716, 717, 718, 719, 720, 801, 802, 803, 804, 999)
_RUNTIME = r"/[^\s]*/lib(?:cudart|amdhip64)[^/\s]*\.so[^/\s]*"
_SINGLE, _HALF, _BRAIN = "fp32", "fp16", "bf16"
_DTYPES = {_SINGLE: "float32", _HALF: "float16", _BRAIN: "bfloat16"}
_TOLERANCES = {_SINGLE: 5e-3, _HALF: 2e-2, _BRAIN: 5e-2}
"""Of the largest absolute value. TensorFloat-32 keeps ten bits, which torch may use for fp32."""
_FIRST = {_HALF: (5, 3), _BRAIN: (8, 0)}
"""The first compute capability with arithmetic of this type (CUDA C++ Programming Guide)."""

_PARTS = {"torchvision": ("torchvision.ops",), "torchaudio": ("torchaudio.functional",)}
"""What the work needs beside the module itself."""

Work = Callable[..., Any]


class Operation:
    """One piece of work."""

    def __init__(
        self,
        library: str,
        name: str,
        dtype: str,
        shapes: tuple[tuple[int, ...], ...],
        work: Work,
        module: str = "torch",
    ) -> None:
        """Take what it is.

        Args:
            library: what does it on a GPU.
            name: what it is called.
            dtype: ``fp32`` and its like.
            shapes: of the inputs.
            work: takes the module, and the inputs.
            module: what is imported for it.
        """
        self.library, self.name, self.dtype = library, name, dtype
        self.shapes, self.work, self.module = shapes, work, module


def _element_wise(torch: Any, a: Any, b: Any) -> Any:
    return torch.sin(a) * b + a / (b * b + 1)


def _softmax(torch: Any, a: Any) -> Any:
    return torch.softmax(a, dim=1)


def _sort(torch: Any, a: Any) -> Any:
    return torch.sort(a, dim=1)[0]


def _matmul(torch: Any, a: Any, b: Any) -> Any:
    return torch.matmul(a, b)


def _convolution(torch: Any, image: Any, weight: Any) -> Any:
    return torch.nn.functional.conv2d(image, weight, padding=1)


def _definite(torch: Any, a: Any) -> Any:
    """Return a symmetric matrix of which all eigenvalues are 1 or more."""
    size = a.shape[-1]
    one = torch.eye(size, dtype=a.dtype).to(a.device)
    return torch.matmul(a, a.transpose(-2, -1)) / size + one


def _cholesky(torch: Any, a: Any) -> Any:
    return torch.linalg.cholesky(_definite(torch, a))


def _solve(torch: Any, a: Any, b: Any) -> Any:
    return torch.linalg.solve(_definite(torch, a), b)


def _svd(torch: Any, a: Any) -> Any:
    return torch.linalg.svdvals(a)


def _nms(torchvision: Any, corners: Any, scores: Any) -> Any:
    boxes = _boxes(torchvision, corners)
    return torchvision.ops.nms(boxes, scores[:, 0], 0.3)


def _roi_align(torchvision: Any, image: Any, corners: Any) -> Any:
    boxes = _boxes(torchvision, corners)
    first = boxes[:, :1] * 0
    return torchvision.ops.roi_align(image, _torch().cat([first, boxes], dim=1), (4, 4))


def _boxes(torchvision: Any, corners: Any) -> Any:
    at = corners.abs() * 4
    return _torch().cat([at[:, :2], at[:, :2] + at[:, 2:] + 1], dim=1)


def _resample(torchaudio: Any, wave: Any) -> Any:
    return torchaudio.functional.resample(wave, 16000, 8000)


def _lfilter(torchaudio: Any, wave: Any) -> Any:
    torch = _torch()
    poles = torch.tensor([1.0, -0.5, 0.25], dtype=wave.dtype).to(wave.device)
    zeros = torch.tensor([0.5, 0.25, 0.125], dtype=wave.dtype).to(wave.device)
    return torchaudio.functional.lfilter(wave, poles, zeros, clamp=False)


_SQUARE = (96, 96)
_PAIR = (_SQUARE, _SQUARE)
_IMAGE = ((2, 16, 24, 24), (32, 16, 3, 3))
OPERATIONS = (
    Operation("torch", "element-wise fp32", _SINGLE, _PAIR, _element_wise),
    Operation("torch", "softmax fp32", _SINGLE, (_SQUARE,), _softmax),
    Operation("torch", "sort fp32", _SINGLE, (_SQUARE,), _sort),
    Operation("cublas", "matmul fp32", _SINGLE, _PAIR, _matmul),
    Operation("cublas", "matmul fp16", _HALF, _PAIR, _matmul),
    Operation("cublas", "matmul bf16", _BRAIN, _PAIR, _matmul),
    Operation("cudnn", "convolution fp32", _SINGLE, _IMAGE, _convolution),
    Operation("cudnn", "convolution fp16", _HALF, _IMAGE, _convolution),
    Operation("linalg", "cholesky fp32", _SINGLE, (_SQUARE,), _cholesky),
    Operation("linalg", "solve fp32", _SINGLE, _PAIR, _solve),
    Operation("linalg", "svd fp32", _SINGLE, (_SQUARE,), _svd),
    Operation("torchvision", "nms", _SINGLE, ((64, 4), (64, 1)), _nms, "torchvision"),
    Operation(
        *("torchvision", "roi_align", _SINGLE, ((1, 3, 24, 24), (8, 4)), _roi_align, "torchvision")
    ),
    Operation("torchaudio", "resample", _SINGLE, ((1, 4000),), _resample, "torchaudio"),
    Operation("torchaudio", "lfilter", _SINGLE, ((1, 400),), _lfilter, "torchaudio"),
)


def _torch() -> Any:
    return importlib.import_module("torch")


class Channel:
    """Where the parent listens."""

    def __init__(self) -> None:
        # What libraries print to standard output must not come between the lines.
        self._file = os.fdopen(os.dup(1), "w", encoding="ascii", newline="\n")
        os.dup2(2, 1)

    def tell(self, event: str, **fields: Any) -> None:
        """Write one line."""
        self._file.write(json.dumps({"event": event, **fields}) + "\n")
        self._file.flush()


class Runtime:
    """CUDA's runtime library, the one that torch has loaded, asked without torch."""

    def __init__(self) -> None:
        self._library: Any = None
        self._prefix = "cuda"
        try:
            with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
                found = re.search(_RUNTIME, file.read())
        except OSError:  # not Linux
            found = None
        if found is not None:
            import ctypes

            self._prefix = "hip" if "amdhip64" in found.group() else "cuda"
            try:
                self._library = ctypes.CDLL(found.group())
            except OSError:  # replaced while it was mapped
                self._library = None

    def _function(self, name: str) -> Any:
        return getattr(self._library, self._prefix + name, None)

    def device_code(self) -> int | None:
        """Return the error code of counting the GPUs; None: there is no library to ask."""
        import ctypes

        function = self._function("GetDeviceCount")
        return None if function is None else int(function(ctypes.byref(ctypes.c_int())))

    def driver(self) -> int | None:
        """Return the CUDA of the driver, 12040 for 12.4; 0: there is none."""
        import ctypes

        function, version = self._function("DriverGetVersion"), ctypes.c_int()
        return version.value if function and function(ctypes.byref(version)) == 0 else None

    def pci(self, device: int) -> str | None:
        """Return the PCI address of a GPU, ``0000:3b:00.0``."""
        import ctypes

        function = self._function("DeviceGetPCIBusId")
        if function is None:
            return None
        buffer = ctypes.create_string_buffer(32)
        code = function(buffer, ctypes.c_int(32), ctypes.c_int(device))
        return buffer.value.decode("ascii", "replace").lower() if code == 0 else None

    def code_in(self, message: str) -> int | None:
        """Return the code whose name or words, as the library has them, are in a message."""
        import ctypes

        found: list[tuple[int, int]] = []
        for name in ("GetErrorName", "GetErrorString"):
            function = self._function(name)
            if function is None:
                continue
            function.restype = ctypes.c_char_p
            for code in _CODES + _MORE_CODES:
                words = (function(ctypes.c_int(code)) or b"").decode("ascii", "replace")
                if words and words in message:
                    found.append((len(words), code))
        return max(found)[1] if found else None


def _failure(error: BaseException, runtime: Runtime | None) -> dict[str, Any]:
    """Return what an exception tells."""
    message = str(error).strip() or type(error).__name__
    code = getattr(error, "error_code", None)
    if not isinstance(code, int) or isinstance(code, bool):
        code = runtime.code_in(message) if runtime is not None else None
    return {
        "types": [kind.__name__ for kind in type(error).__mro__],
        "error_code": code,
        "message": message[:_LONGEST],
    }


def _describe(channel: Channel) -> None:
    import platform
    import sysconfig

    channel.tell(
        "python",
        version=platform.python_version(),
        implementation=platform.python_implementation(),
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        machine=platform.machine(),
        path=[os.path.abspath(folder) for folder in sys.path],
    )


def _import(channel: Channel, name: str) -> Any:
    """Import torch; what it warns of goes to the parent."""
    import warnings

    def show(message: Any, category: Any, *_: Any, **__: Any) -> None:
        channel.tell("warning", text=str(message).strip()[: 2 * _LONGEST])

    warnings.simplefilter("always", UserWarning)
    warnings.showwarning = show
    return importlib.import_module(name)


def _origin() -> str:
    """Return the file that ``import torch`` would read; ``""`` if there is none."""
    from importlib.util import find_spec

    try:
        found = find_spec("torch")
    except Exception:  # noqa: BLE001 (a finder of somebody else's: the import tells)
        return ""
    return str(found.origin or "") if found is not None else ""


def _probe(channel: Channel) -> None:
    if _origin():
        channel.tell("place", file=_origin())
    channel.tell("begin", operation="import")
    begun = time.perf_counter()
    try:
        torch = _import(channel, "torch")
        torch.zeros(1)  # a namespace package of this name has none
    except BaseException as error:  # noqa: BLE001 (told, whatever it is)
        failure = _failure(error, None)
        channel.tell("end", operation="import", seconds=time.perf_counter() - begun, **failure)
        return
    channel.tell("end", operation="import", seconds=time.perf_counter() - begun)
    runtime = Runtime()
    version = torch.version
    channel.tell(
        "torch",
        version=str(torch.__version__),
        cuda=getattr(version, "cuda", None),
        hip=getattr(version, "hip", None),
        cudnn=bool(torch.backends.cudnn.is_available()),
    )
    if not (getattr(version, "cuda", None) or getattr(version, "hip", None)):
        return
    channel.tell("begin", operation="find the GPUs")
    begun = time.perf_counter()
    failure = {}
    try:
        torch.cuda.init()
    except BaseException as error:  # noqa: BLE001 (told, whatever it is)
        failure = _failure(error, runtime)
    if failure and runtime.device_code():
        failure["error_code"] = runtime.device_code()
    archs: list[str] = []
    devices: list[dict[str, Any]] = []
    if not failure:
        try:
            archs = [str(arch) for arch in torch.cuda.get_arch_list()]
            devices = [_device(torch, runtime, at) for at in range(torch.cuda.device_count())]
        except BaseException as error:  # noqa: BLE001 (told, whatever it is)
            failure = _failure(error, runtime)
    seconds = time.perf_counter() - begun
    channel.tell("devices", archs=archs, devices=devices, driver_cuda=runtime.driver())
    channel.tell("end", operation="find the GPUs", seconds=seconds, **failure)


def _device(torch: Any, runtime: Runtime, at: int) -> dict[str, Any]:
    found = torch.cuda.get_device_properties(at)
    hip = getattr(torch.version, "hip", None)
    return {
        "name": str(found.name),
        "capability": None if hip else [int(found.major), int(found.minor)],
        "gfx": str(getattr(found, "gcnArchName", "")).split(":")[0] if hip else None,
        "memory_mib": int(found.total_memory) // (1024 * 1024),
        "pci": runtime.pci(at),
    }


def _work(channel: Channel, device: str, names: list[str]) -> None:
    torch = _import(channel, "torch")
    runtime = Runtime()
    capability = None
    if device != "cpu" and getattr(torch.version, "cuda", None):
        capability = tuple(torch.cuda.get_device_capability(device))
    broken: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        if operation.name not in names:
            continue
        channel.tell("begin", operation=operation.name)
        begun = time.perf_counter()
        told = broken.get(operation.module)  # a second import may fail otherwise, and tells less
        if told is None:
            told = _done(channel, torch, runtime, operation, device, capability)
        if told.get("stage") == "import":
            broken[operation.module] = told
        channel.tell("end", operation=operation.name, seconds=time.perf_counter() - begun, **told)
        code = told.get("error_code")
        if device != "cpu" and code is not None and code not in _GOES_ON:
            channel.tell("restart")  # the error stays with this process
            return
    channel.tell("done")


def _done(
    channel: Channel,
    torch: Any,
    runtime: Runtime,
    operation: Operation,
    device: str,
    capability: tuple[int, ...] | None,
) -> dict[str, Any]:
    """Do one piece of work; return what went wrong."""
    first = _FIRST.get(operation.dtype)
    if capability is not None and first is not None and capability < first:
        return {"skipped": "this GPU has no arithmetic in " + operation.dtype}
    stage = "import"
    try:
        module = _import(channel, operation.module)
        for part in _PARTS.get(operation.module, ()):
            importlib.import_module(part)
        stage = "work"
        error = _error(torch, module, operation, device)
    except BaseException as failed:  # noqa: BLE001 (told, whatever it is)
        told = _failure(failed, runtime)
        if device == "cpu" and "not implemented for" in told["message"]:
            return {"skipped": "this torch has no such work for the CPU"}
        return {"stage": stage, **told}
    tolerance = _TOLERANCES[operation.dtype]
    if error is None or error <= tolerance:
        return {}
    text = "differs from the CPU's result in double precision by %.3g of its largest value, more "
    return {"wrong": (text + "than %g") % (error, tolerance)}


def _error(torch: Any, module: Any, operation: Operation, device: str) -> float | None:
    """Return how far a result is off, as part of the largest value; infinite: not a number."""
    generator = torch.Generator().manual_seed(7)
    dtype = getattr(torch, _DTYPES[operation.dtype])
    inputs = [torch.randn(shape, generator=generator).to(dtype) for shape in operation.shapes]
    reference = operation.work(module, *[one.double() for one in inputs])
    result = operation.work(module, *[one.to(device) for one in inputs])
    if device != "cpu":
        torch.cuda.synchronize(device)
    result, reference = result.detach().cpu().double(), reference.detach().double()
    if tuple(result.shape) != tuple(reference.shape):
        return float("inf")
    error = float((result - reference).abs().max().item())
    largest = float(reference.abs().max().item())
    return error / (largest or 1.0) if error == error else float("inf")


def main(task: str, device: str = "cpu", *names: str) -> None:
    """Do what the parent asks for."""
    if os.name == "posix":
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    channel = Channel()
    if task == "describe":
        _describe(channel)
    elif task == "probe":
        _probe(channel)
    else:
        _work(channel, device, list(names))
    channel.tell("end-of-task")


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(0)  # nothing that a broken driver does at exit counts
