"""TP503 for pipenv: is the ``Pipfile.lock`` that of the ``Pipfile``?"""

from __future__ import annotations

import os
from collections.abc import Iterator

from torchpin.documents.base import Document, Span
from torchpin.documents.pipfile import content_hash
from torchpin.documents.pipfile_lock import digest_of
from torchpin.evidence import MEASURED
from torchpin.rules.context import Context
from torchpin.rules.model import Because

SOURCE = "https://pipenv.pypa.io/en/latest/commands.html#verify"


def stale(document: Document, context: Context) -> Iterator[tuple[Span, str, Because]]:
    """Yield place, message and ground where the digest in a ``Pipfile.lock`` is another one than
    that of the ``Pipfile`` beside it, as ``pipenv verify`` compares them."""
    beside = os.path.realpath(document.path.removesuffix(".lock"))
    pipfile = next((one for one in context.documents if os.path.realpath(one.path) == beside), None)
    recorded = digest_of(document.text)
    if pipfile is None or recorded is None:
        return
    fresh = content_hash(pipfile.text)
    if fresh is not None and fresh != recorded[0]:
        ground = Because(
            "`pipenv verify` and `pipenv install --deploy` stop; `pipenv install` locks anew",
            MEASURED,
            SOURCE,
        )
        text = "Pipfile.lock is out of date: Pipfile has changed since: run `pipenv lock`"
        yield recorded[1], text, ground
