"""The fix of an extra that names another extra of its project (TP416).

A reference hands on the requirements of an extra and not its source; so the extra asks for the
packages itself, with a source of its own, and joins the conflicts of the other. The reference
stays.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Declaration
from torchpin.documents.project import Source
from torchpin.documents.requirement import canonical
from torchpin.rewrite import uv_edit
from torchpin.rewrite.toml_edit import ShapeError, TomlText, text_of
from torchpin.rewrite.uv_project import UvWriter, reread

OWN_SOURCE = "the extra asks for torch itself, with a source of its own"
"""What the fix says that it does."""


def own_sources(writer: UvWriter) -> str:
    """Return the text in which extras that name routed extras ask for the packages themselves.

    Raises:
        ShapeError: the file's layout does not allow it, or two routed extras are named.
    """
    toml = writer.toml()
    project = writer.project
    for extra, scoped in _lost(writer):
        routed = {one.extra for one in scoped}
        if len(routed) > 1:
            raise ShapeError(f"extra {extra} names extras of several indexes")
        for source in scoped:
            asked = [one for one in writer.document.declarations if _asks(one, source)]
            if not asked:
                raise ShapeError(f"extra {source.extra} does not ask for {source.package} itself")
            _list(toml, writer, extra, asked)
            _route(toml, writer, source, extra)
        uv_edit.add_conflicts(
            toml, reread(writer.document, toml), [*(one for one in routed if one), extra]
        )
    if toml.text == writer.document.text:
        raise ShapeError(f"no extra of {project.name} names a routed one")
    return toml.text


def _lost(writer: UvWriter) -> Iterator[tuple[str, list[Source]]]:
    """Yield each extra that names routed extras in a conflict, with their sources."""
    project = writer.project
    own = canonical(project.name)
    apart = {canonical(item.extra) for one in project.conflicts for item in one.items if item.extra}
    named: dict[str, set[str]] = {}
    for one in writer.document.declarations:
        kind, _, extra = one.scope.partition(":")
        if one.name == own and one.extras and kind == "extra" and one.marker is None:
            named.setdefault(extra, set()).update(canonical(name) for name in one.extras)
    for extra, names in named.items():
        mine = {one.package for one in project.sources if one.extra and _same(one.extra, extra)}
        found = [
            one
            for one in project.sources
            if one.kind == "index"
            and one.package in WATCHED
            and one.package not in mine
            and one.extra is not None
            and canonical(one.extra) in names & apart
        ]
        if found:
            yield extra, found


def _asks(one: Declaration, source: Source) -> bool:
    kind, _, extra = one.scope.partition(":")
    return one.name == source.package and kind == "extra" and _same(extra, source.extra or "")


def _same(one: str, other: str) -> bool:
    return canonical(one) == canonical(other)


def _list(toml: TomlText, writer: UvWriter, extra: str, asked: list[Declaration]) -> None:
    """Add requirements to an extra, as the other extra writes them."""
    now = uv_edit.read_again(writer.document, toml.text)
    have = {one.name for one in now.declarations if _same(one.scope.partition(":")[2], extra)}
    for one in asked:
        if one.name in have or one.from_variable or one.url is not None:
            continue
        text = writer.document.text[one.span.start : one.span.end]
        toml.append_item(("project", "optional-dependencies", extra), text_of(text))


def _route(toml: TomlText, writer: UvWriter, source: Source, extra: str) -> None:
    """Give a package the same source for another extra, behind those that it has.

    What the extra installs on macOS today comes from PyPI, and stays so.
    """
    have = uv_edit.sources_of(reread(writer.document, toml), source.package)
    index = uv_edit.index_named(writer.places, source.value)
    channel = uv_edit.channel_of(index) if index is not None else None
    marker = source.marker or writer.marker_for(channel or "cpu")
    if any(toml.text[one.span.start] != "{" for one in have):
        raise ShapeError("the sources are tables of their own")
    written = [toml.text[one.span.start : one.span.end] for one in have]
    entry = uv_edit.source_text(source.value, extra=extra, marker=marker)
    if entry not in written:
        uv_edit.extend_source(toml, source.package, [*written, entry], len(written))
