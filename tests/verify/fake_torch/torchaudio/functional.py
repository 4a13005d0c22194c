"""As ``torchaudio.functional``."""

from importlib import import_module
from typing import Any

torch = import_module("torch")


def resample(wave: Any, old: int, new: int) -> Any:
    return torch._call("resample", wave)


def lfilter(wave: Any, poles: Any, zeros: Any, clamp: bool) -> Any:
    return torch._call("lfilter", wave)
