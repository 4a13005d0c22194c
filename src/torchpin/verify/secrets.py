"""What the environment holds as a secret is told nowhere, whatever libraries put in messages."""

from __future__ import annotations

from collections.abc import Mapping

from torchpin.patterns import regex
from torchpin.report.style import HIDDEN

_NAME = regex(r"(?i)PASSW|PASSPHRASE|TOKEN|SECRET|CREDENTIAL|(?:API|ACCESS|PRIVATE|AUTH)_?KEY")
_SHORTEST = 6
"""Shorter values are words of any text: ``TOKENIZERS_PARALLELISM=false``."""


def hide(text: str, environ: Mapping[str, str]) -> str:
    """Return ``text`` with ``****`` for values of variables whose names say that they are secret.

    Credentials in URLs are found by ``report.style.redact``, whatever their variables are called.
    """
    values = {
        value.strip() for name, value in environ.items() if value and _NAME.search(name) is not None
    }
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, HIDDEN)
    return text
