"""TP4 on uv projects: an extra in the marker of a source."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.documents.base import Document, Edit, Span
from torchpin.documents.project import Project, Source
from torchpin.documents.requirement import canonical
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.patterns import regex
from torchpin.rules.context import Context, Way
from torchpin.rules.model import SAFE, UNSAFE, WARNING, Because, FileEdits, Finding, Fix
from torchpin.rules.project_words import UV, UV_SOURCES, ProjectRule

_EXTRA = regex(r"\bextra\s*==\s*(['\"])(?P<name>[^'\"]+)\1")
_ONLY = regex(r"\s*extra\s*==\s*(['\"])(?P<name>[^'\"]+)\1\s*\Z")


class ExtraAsMarker(ProjectRule):
    """An extra in the marker of a source.

    What it does: reports ``marker = "extra == 'cuda'"`` in ``[tool.uv.sources]``.

    Why it is bad: uv has a key for it, and only that key takes part in ``conflicts``. With the
    marker the index holds for the package in every extra, and never for the base dependencies.

    Example: ``torch = { index = "pytorch-cu126", marker = "extra == 'cuda'" }``

    Fix: ``torch = { index = "pytorch-cu126", extra = "cuda" }``

    Evidence: real uv: the lock of a project with the extras ``cpu`` and ``cuda`` holds the
    channel's build alone.
    """

    code = "TP411"
    name = "extra-as-marker"
    severity = WARNING

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield sources whose marker names an extra."""
        for source in project.sources:
            match = _EXTRA.search(source.marker or "")
            if match is None or source.marker_span is None:
                continue
            extra = match["name"]
            listed = any(
                one.name == source.package
                and one.scope.startswith("extra:")
                and canonical(one.scope[6:]) == canonical(extra)
                for one in root.declarations
            )
            text = f"use extra = {extra!r}: as a marker it holds for other extras too"
            if not listed:
                text = (
                    f"extra {extra!r} does not list {source.package}: "
                    "the marker is never true for it"
                )
            yield self.finding(
                root,
                source.marker_span,
                text.replace("'", '"') if listed else text,
                package=source.package,
                because=(
                    Because("without conflicts, one index serves all extras", MEASURED, UV),
                    Because("extra is a key of a source", PUBLISHED, UV_SOURCES),
                ),
            )._replace(fix=as_key(root, source, project) if listed else None)


def as_key(root: Document, source: Source, project: Project) -> Fix | None:
    """Return the fix that writes the extra as a key; None where the marker says more."""
    match = _ONLY.match(source.marker or "")
    if match is None or source.marker_span is None or source.extra or source.group:
        return None
    text, span = root.text, source.marker_span
    if text[span.start : span.end] != source.marker:
        return None
    key = re.search(r"(?<![\w.-])marker\s*=\s*(['\"])\Z", text[: span.start])
    if key is None or text[span.end : span.end + 1] != key[1]:
        return None
    edit = Edit(Span(key.start(), span.end + 1), f'extra = "{match["name"]}"')
    scoped = any(item.extra for one in project.conflicts for item in one.items)
    safety = UNSAFE if scoped else SAFE
    return Fix(safety, f'extra = "{match["name"]}"', (FileEdits(root, (edit,)),))


RULES = (ExtraAsMarker,)
