"""Is an edited file of commands or sections what was meant? Read it again, part by part."""

from __future__ import annotations

from typing import Any

from torchpin.catalog.model import FOLLOWERS, WATCHED
from torchpin.documents.base import Document, Edit, apply_edits
from torchpin.documents.parts import Part
from torchpin.errors import RewriteError
from torchpin.patterns import regex
from torchpin.rewrite.commands import reread

_BRANCH = regex(r"(?<=/)((?:if|ca))\d+")
"""Branches are named by their places, which an edit before them moves."""


def check_part_edit(before: Document, after_text: str, edits: tuple[Edit, ...]) -> Document:
    """Return the file that ``after_text`` makes, if it is the file of ``before`` with these edits.

    Args:
        before: the document of one part, whose text is that of the whole file.

    Raises:
        RewriteError: the text is not what the edits give, a part came or went, has a new problem,
            or anything but the family's pins, index options and comments changed.
    """
    try:
        expected = apply_edits(before.text, edits)
        before.encode(after_text)
    except ValueError as error:
        raise RewriteError(f"not edited: {error}", path=before.path) from error
    if expected != after_text:
        raise RewriteError("not edited: the text is not what the edits give", path=before.path)
    old, new = reread(before, before.text), reread(before, after_text)
    if new.text != after_text or new.encoding != old.encoding:
        raise RewriteError("not edited: its encoding would change", path=before.path)
    if len(old.parts) != len(new.parts):
        raise RewriteError("not edited: the file would hold other commands", path=before.path)
    for one, other in zip(old.parts, new.parts, strict=True):
        if asked_of_others(one) != asked_of_others(other):
            raise RewriteError(f"not edited: {one.name} would install others", path=before.path)
        if len(other.document.problems) > len(one.document.problems):
            message = other.document.problems[-1].message
            raise RewriteError(f"not edited: {message}", path=before.path)
    return new


def asked_of_others(part: Part) -> tuple[Any, ...]:
    """Return all that a part says but for the family, its internals and the indexes."""
    document = part.document
    return (
        part.client,
        part.syntax,
        part.python,
        part.platform,
        part.image.reference if part.image is not None else None,
        part.command,
        _BRANCH.sub(r"\1", part.environment),
        part.upgrade,
        [
            (one.name, one.specifier, one.marker, one.scope, one.url, one.extras, one.editable)
            for one in document.declarations
            if one.name not in (*WATCHED, *FOLLOWERS)
            and not one.name.startswith(("nvidia-", "cuda-"))
        ],
        sorted(
            one.name
            for one in document.declarations
            if one.name in WATCHED and one.name not in ("triton",)
        ),
        [(one.path, one.constraint) for one in document.includes],
        [(one.name, one.value) for one in document.options],
    )
