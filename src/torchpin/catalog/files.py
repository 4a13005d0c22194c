"""Wheel file names, as far as digests need them."""

from __future__ import annotations


def admits_python(wheel: str, tag: str | None) -> bool:
    """Return whether a wheel of this file name is what a Python of ``tag`` installs.

    ``cp313`` does not take ``cp313-cp313t``; ``cp313t`` takes nothing else (PEP 703); ``py3`` and
    ``abi3`` wheels serve all. ``tag`` None: any Python.
    """
    parts = wheel.removesuffix(".whl").split("-")
    if tag is None or len(parts) < 5:
        return True
    python, abi = parts[-3], parts[-2]
    if python.startswith("py3") or python == "py2.py3":
        return True
    if tag.endswith("t"):
        return abi == tag
    return abi in (tag, "none", "abi3", f"{tag}m") and (abi == "abi3" or python == tag)
