"""Exact pins, told from the text of a specifier alone."""

from __future__ import annotations

from packaging.version import Version

from torchpin.patterns import regex

_EXACT = regex(r"\s*={2,3}\s*(?P<public>[^\s,;+*]+)(?:\+(?P<label>[^\s,;]+))?\s*")


def exact_version(specifier: str) -> tuple[str, str] | None:
    """Return (public version, local label or ``""``) of an exact pin, None for anything else.

    ``==2.14.0+cu126`` gives ``("2.14.0", "cu126")``; ranges, wildcards and lists give None. The
    public version is as written (compare it by ``same_version``), the label in lower case.
    """
    match = _EXACT.fullmatch(specifier)
    return (match.group("public"), (match.group("label") or "").lower()) if match else None


def same_version(one: str, other: str) -> bool:
    """Return whether two texts name one version by PEP 440: ``2.14``, ``v2.14.0``, ``2.14.0.0``.

    What is no version (a variable) is the same as its own text alone.
    """
    if one == other:
        return True
    try:
        return Version(one) == Version(other)
    except ValueError:  # InvalidVersion, or more digits than Python reads
        return False
