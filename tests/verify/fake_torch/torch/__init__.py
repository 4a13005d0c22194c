"""A small stand-in for torch: one number instead of tensors, failures as ``plan.json`` says.

It raises what torch raises, with the classes and error codes of torch.
"""

from __future__ import annotations

import json
import os
import signal
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_PLAN: dict[str, Any] = json.loads(Path(__file__).with_name("plan.json").read_text("utf-8"))
__version__ = _PLAN["version"]
float32, float64, float16, bfloat16 = "float32", "float64", "float16", "bfloat16"


class AcceleratorError(RuntimeError):
    """As in torch 2.8 and later: carries the code of CUDA's runtime."""

    error_code: int


class OutOfMemoryError(RuntimeError):
    """As in torch."""


_KINDS: dict[str, Any] = {
    "AcceleratorError": AcceleratorError,
    "OutOfMemoryError": OutOfMemoryError,
    "RuntimeError": RuntimeError,
    "NotImplementedError": NotImplementedError,
    "ImportError": ImportError,
    "OSError": OSError,
}


def _act(plan: dict[str, Any]) -> None:
    """Fail as a part of the plan says."""
    print("torch says something on standard output", flush=True)
    if "signal" in plan:
        os.kill(os.getpid(), getattr(signal, plan["signal"]))
    if "exit" in plan:
        os._exit(plan["exit"])
    if "hang" in plan:
        time.sleep(600)
    if "warn" in plan:
        warnings.warn(plan["warn"], stacklevel=2)
    if "raise" in plan:
        error = _KINDS[plan["raise"]](plan["message"])
        if "error_code" in plan:
            error.error_code = plan["error_code"]
        raise error


_act(_PLAN.get("import", {}))


class Tensor:
    """One number, with a type, a place and a shape."""

    def __init__(self, value: float, dtype: str, device: str, shape: tuple[int, ...]) -> None:
        self.value, self.dtype, self.device, self.shape = value, dtype, device, shape

    def _like(self, value: float) -> Tensor:
        return Tensor(value, self.dtype, self.device, self.shape)

    def to(self, where: str) -> Tensor:
        if where.startswith(("float", "bfloat")):
            return Tensor(self.value, where, self.device, self.shape)
        return Tensor(self.value, self.dtype, where, self.shape)

    def double(self) -> Tensor:
        return self.to(float64)

    def cpu(self) -> Tensor:
        return self.to("cpu")

    def detach(self) -> Tensor:
        return self

    def item(self) -> float:
        return self.value

    def abs(self) -> Tensor:
        return self._like(abs(self.value))

    def max(self) -> Tensor:
        return self

    def transpose(self, *_: int) -> Tensor:
        return self

    def __getitem__(self, _: object) -> Tensor:
        return self

    def __sub__(self, other: Tensor) -> Tensor:
        return self._like(self.value - other.value)

    def __add__(self, _: object) -> Tensor:
        return self

    __mul__ = __truediv__ = __add__


def _call(name: str, at: Tensor) -> Tensor:
    """Do what ``name`` does: nothing, unless the plan says otherwise for this GPU or the CPU."""
    if at.dtype == float64:
        return at  # the reference
    plans = _PLAN.get("work", {})
    plan = plans.get(f"{at.device} {name} {at.dtype}") or plans.get(f"{name} {at.dtype}") or {}
    _act(plan)
    return at._like(plan.get("result", at.value))


class Generator:
    """As in torch."""

    def manual_seed(self, _: int) -> Generator:
        return self


def randn(shape: tuple[int, ...], generator: Generator) -> Tensor:
    return Tensor(1.0, float32, "cpu", shape)


def zeros(*shape: int) -> Tensor:
    return Tensor(0.0, float32, "cpu", shape)


def eye(size: int, dtype: str) -> Tensor:
    return Tensor(1.0, dtype, "cpu", (size, size))


def tensor(_: list[float], dtype: str) -> Tensor:
    return Tensor(1.0, dtype, "cpu", ())


def cat(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0]


def sin(a: Tensor) -> Tensor:
    return _call("sin", a)


def softmax(a: Tensor, dim: int) -> Tensor:
    return _call("softmax", a)


def sort(a: Tensor, dim: int) -> tuple[Tensor]:
    return (_call("sort", a),)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return _call("matmul", a)


linalg = SimpleNamespace(
    cholesky=lambda a: _call("cholesky", a),
    solve=lambda a, b: _call("solve", a),
    svdvals=lambda a: _call("svdvals", a),
)
nn = SimpleNamespace(
    functional=SimpleNamespace(conv2d=lambda image, weight, padding: _call("conv2d", image))
)
version = SimpleNamespace(cuda=_PLAN.get("cuda"), hip=_PLAN.get("hip"))
backends = SimpleNamespace(cudnn=SimpleNamespace(is_available=lambda: True))


class _Cuda:
    def init(self) -> None:
        _act(_PLAN.get("init", {}))

    def device_count(self) -> int:
        return len(_PLAN.get("devices", ()))

    def get_arch_list(self) -> list[str]:
        return list(_PLAN.get("archs", ()))

    def get_device_properties(self, at: int) -> SimpleNamespace:
        name, (major, minor), memory = _PLAN["devices"][at]
        return SimpleNamespace(name=name, major=major, minor=minor, total_memory=memory << 20)

    def get_device_capability(self, device: str) -> tuple[int, int]:
        major, minor = _PLAN["devices"][int(device.partition(":")[2])][1]
        return major, minor

    def synchronize(self, device: str) -> None:
        _act(_PLAN.get("work", {}).get("synchronize", {}))


cuda = _Cuda()
