"""A way to write a plan into files: a draft of edits, or the refusal to make one."""

from __future__ import annotations

from torchpin.documents.base import Document, Edit
from torchpin.named import NamedTuple
from torchpin.rules.model import FileEdits


class RefusedError(Exception):
    """The plan cannot be written into this file; the message says why."""


class Draft(NamedTuple):
    """One way to write a plan."""

    edits: tuple[FileEdits, ...]
    pinned: bool
    """Every family package is pinned to the plan's version."""


def draft(
    index_edits: list[tuple[Document, Edit]],
    pins: list[tuple[Document, Edit]],
    *,
    pinned: bool,
) -> Draft:
    """Return edits of several documents as a draft."""
    by_path: dict[str, tuple[Document, list[Edit]]] = {}
    for document, edit in side_by_side(index_edits, pins):
        if document.text[edit.span.start : edit.span.end] != edit.text:
            by_path.setdefault(document.path, (document, []))[1].append(edit)
    return Draft(
        tuple(FileEdits(document, tuple(edits)) for document, edits in by_path.values()), pinned
    )


def side_by_side(
    index_edits: list[tuple[Document, Edit]], pins: list[tuple[Document, Edit]]
) -> list[tuple[Document, Edit]]:
    """Return all edits; where both add text at one place (the end of a command), the pin's text
    comes first."""
    ends = {edit.span: edit for _, edit in pins if edit.span.start == edit.span.end}
    kept: list[tuple[Document, Edit]] = []
    for document, edit in index_edits:
        pin = ends.pop(edit.span, None) if document.kind == "part" else None
        if pin is None:
            kept.append((document, edit))
        else:
            kept.append((document, Edit(edit.span, pin.text + edit.text)))
            pins = [one for one in pins if one[1] != pin]
    return [*kept, *pins]
