"""A small stand-in for torchaudio."""

from importlib import import_module

torch = import_module("torch")

torch._act(torch._PLAN.get("torchaudio", {}))
