"""Exact pins, told from the text of a specifier alone."""

from __future__ import annotations

from torchpin.patterns import regex

_EXACT = regex(r"\s*={2,3}\s*(?P<public>[^\s,;+*]+)(?:\+(?P<label>[^\s,;]+))?\s*")


def exact_version(specifier: str) -> tuple[str, str] | None:
    """Return (public version, local label or ``""``) of an exact pin, None for anything else.

    ``==2.14.0+cu126`` gives ``("2.14.0", "cu126")``; ranges, wildcards and lists give None.
    """
    match = _EXACT.fullmatch(specifier)
    return (match.group("public"), match.group("label") or "") if match else None
