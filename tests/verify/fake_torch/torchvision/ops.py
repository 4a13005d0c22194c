"""As ``torchvision.ops``."""

from importlib import import_module
from typing import Any

torch = import_module("torch")


def nms(boxes: Any, scores: Any, threshold: float) -> Any:
    return torch._call("nms", boxes)


def roi_align(image: Any, boxes: Any, size: Any) -> Any:
    return torch._call("roi_align", image)
