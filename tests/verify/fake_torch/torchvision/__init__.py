"""A small stand-in for torchvision."""

from importlib import import_module

torch = import_module("torch")

torch._act(torch._PLAN.get("torchvision", {}))
