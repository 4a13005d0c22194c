"""A plan as minimal edits of requirements files.

Several ways to write a plan are tried from the least change to the most; which one is taken is
decided by reading the edited text again and selecting from it (``rewrite.plan``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from torchpin import seen
from torchpin.catalog.store import Catalog
from torchpin.documents.base import Document, Edit, Span
from torchpin.patterns import regex
from torchpin.resolve.model import Plan
from torchpin.rewrite.draft import Draft, RefusedError, draft
from torchpin.rewrite.request import family_declarations
from torchpin.rewrite.requirement_indexes import (
    CHANNEL_IN_URL,
    backend_edits,
    channel_lines,
    delete_line,
    home_of,
    insert_index,
    link_pages,
    swap_channel,
)
from torchpin.rewrite.requirement_pins import pin_edits
from torchpin.rules.context import Way

OPEN = regex(r"^\s*(>|!=|$)|~=\s*\d+\.\d+\s*$")


def drafts(way: Way, plan: Plan, catalog: Catalog) -> Iterator[Draft]:
    """Yield ways to write ``plan``, least change first.

    Raises:
        RefusedError: a pin comes from a variable or a URL, or carries hashes that are not known;
            the file is a lock.
    """
    if way.part is not None and way.part.syntax == "json":
        raise RefusedError("the owner of a lock writes it: change Pipfile, then run `pipenv lock`")
    if way.part is not None and way.part.syntax == "lock":
        manifest = _pixi_manifest(way.install.root.path)
        raise RefusedError(
            f"the owner of a lock writes it: change {manifest}, then run `pixi lock`"
        )
    for index_edits, unnamed in index_drafts(way, plan):
        if not unnamed and not needs_pins(way):
            yield draft(index_edits, [], pinned=False)
        for style in ("kept", "labelled"):
            pins = pin_edits(way, plan, catalog, style, new_index=unnamed)
            yield draft(index_edits, pins, pinned=True)


def _pixi_manifest(lock: str) -> str:
    """Return the name of what a ``pixi.lock`` was made from; ``pixi.toml`` wins, as for Pixi."""
    folder = os.path.dirname(lock)
    beside = [
        name for name in ("pixi.toml", "pyproject.toml") if seen.is_file(os.path.join(folder, name))
    ]
    return f"[tool.pixi] of {beside[0]}" if beside == ["pyproject.toml"] else "pixi.toml"


def replacing_drafts(way: Way, plan: Plan, catalog: Catalog) -> Iterator[Draft]:
    """Yield ways to make the channel an additional place, with labelled pins.

    Raises:
        RefusedError: see ``drafts``.
    """
    lines = channel_lines(way)
    pins = pin_edits(way, plan, catalog, "labelled", new_index=True, labels=True)
    if way.install.client == "uv":
        yield draft(link_pages(way, lines, plan), pins, pinned=True)
        return
    edits: list[tuple[Document, Edit]] = []
    for index in lines:
        assert index.document is not None
        assert index.line is not None
        if index.line.option == "--index-url":
            option = index.line.span.start
            end = index.line.url_span.start
            written = index.document.text[option:end]
            separator = "=" if written.rstrip().endswith("=") else " "
            edits.append((index.document, Edit(Span(option, end), f"--extra-index-url{separator}")))
        url = index.document.text[index.line.url_span.start : index.line.url_span.end]
        if index.kind.channel != plan.channel:
            new = CHANNEL_IN_URL.sub(rf"\g<1>{plan.channel}", url, count=1)
            edits.append((index.document, Edit(index.line.url_span, new)))
    yield draft(edits, pins, pinned=True)


def needs_pins(way: Way) -> bool:
    """True if an open requirement competes with PyPI: then only pins bring the channel's build."""
    pypi = any(index.kind.kind == "pypi" for index in way.install.indexes)
    return pypi and any(
        OPEN.search(placed.declaration.specifier) and "<" not in placed.declaration.specifier
        for placed in family_declarations(way)
    )


def index_drafts(way: Way, plan: Plan) -> Iterator[tuple[list[tuple[Document, Edit]], bool]]:
    """Yield the edits of index lines, least change first, and whether the index is a new one."""
    backend = backend_edits(way, plan)
    if backend is not None:
        yield backend, False
        return
    lines = channel_lines(way)
    if plan.home == "pypi":
        yield [], not lines
        if lines:
            yield [delete_line(way, index) for index in lines], False
        return
    if lines:
        yield swap_channel(way, lines, plan.channel), False
        if way.install.client == "uv":
            yield link_pages(way, lines, plan), True
        return
    for document in dict.fromkeys((home_of(way), way.install.root)):
        yield [insert_index(way, document, plan)], True
