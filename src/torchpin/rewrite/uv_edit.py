"""What a fix may write into a uv project (fix policy F3): sources, indexes, extras, conflicts.

Never a local label, never a cap. Each function changes a ``TomlText`` by one intention.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchpin.documents.base import Document, Edit
from torchpin.documents.pins import exact_version
from torchpin.documents.project import Project, ProjectIndex, Source
from torchpin.rewrite.requirements import CHANNEL_IN_URL
from torchpin.rewrite.toml_edit import ShapeError, TomlText, inline, text_of
from torchpin.select.channels import channel_url, index_kind

UV = ("tool", "uv")
SOURCES = (*UV, "sources")


def channel_of(index: ProjectIndex) -> str | None:
    """Return the channel that an index of the project is, by its URL."""
    return index_kind(index.url, option=index.option).channel


def index_named(project: Project, name: str) -> ProjectIndex | None:
    """Return the index of a name."""
    return next((one for one in project.indexes if one.name == name), None)


def index_of_channel(project: Project, channel: str) -> ProjectIndex | None:
    """Return the named index that is a channel."""
    return next((one for one in project.indexes if one.name and channel_of(one) == channel), None)


def ensure_index(toml: TomlText, project: Project, channel: str) -> str:
    """Return the name of the explicit index of a channel; it is added if there is none."""
    have = index_of_channel(project, channel)
    if have is not None and have.name is not None:
        return have.name
    taken = {one.name for one in project.indexes}
    name = f"pytorch-{channel}".replace(".", "-")
    while name in taken:
        name += "-torchpin"
    node = toml.spans.find(*UV, "index")
    if node is not None and node.kind == "array":
        entry = f'{{ name = "{name}", url = {text_of(channel_url(channel))}, explicit = true }}'
        toml.append_item((*UV, "index"), entry)
        return name
    lines = [
        "[[tool.uv.index]]",
        f'name = "{name}"',
        f"url = {text_of(channel_url(channel))}",
        "explicit = true",
    ]
    toml.append_table(lines, (*UV, "index"))
    return name


def source_text(index: str, *, marker: str = "", extra: str = "", group: str = "") -> str:
    """Return one source as TOML."""
    return inline(index=index, extra=extra, group=group, marker=marker)


def set_source(
    toml: TomlText, package: str, entries: Sequence[str], key: str | None = None
) -> None:
    """Set the sources of a package: one table, or a list of them, one a line."""
    if len(entries) == 1:
        value = entries[0]
    else:
        lines = "".join(f"    {entry},{toml.newline}" for entry in entries)
        value = f"[{toml.newline}{lines}]"
    toml.set_key(SOURCES, key or package, value)


def sources_of(project: Project, package: str) -> list[Source]:
    """Return the sources of a package."""
    return [one for one in project.sources if one.package == package]


def swap_index_channel(
    document: Document, project: Project, index: ProjectIndex, channel: str
) -> list[Edit]:
    """Return the edits that point an index at another channel.

    Its name follows where it holds the old channel's name (the sources that use it, too).
    """
    old = channel_of(index)
    raw = document.text[index.url_span.start : index.url_span.end]
    edits = [Edit(index.url_span, CHANNEL_IN_URL.sub(rf"\g<1>{channel}", raw, count=1))]
    if old is None or index.name is None or index.name_span is None or old not in index.name:
        return edits
    name = index.name.replace(old, channel)
    if any(one.name == name for one in project.indexes):
        return edits
    edits.append(Edit(index.name_span, name))
    edits += [
        Edit(one.value_span, name)
        for one in project.sources
        if one.kind == "index" and one.value == index.name and one.value_span is not None
    ]
    return edits


def add_marker(toml: TomlText, source: Source, marker: str) -> Edit:
    """Return the edit that gives a source a marker, or adds to the one that it has.

    Raises:
        ShapeError: the source is written as a table of its own.
    """
    if source.marker_span is not None:
        old = toml.text[source.marker_span.start : source.marker_span.end]
        new = f"({old}) and {marker}" if " or " in old else f"{old} and {marker}"
        quote = toml.text[source.marker_span.start - 1]
        return Edit(source.marker_span, new.replace("'", '"') if quote == "'" else new)
    written = toml.text[source.span.start : source.span.end]
    body = written.rstrip()
    if not body.endswith("}"):
        raise ShapeError("the source is a table of its own")
    inside = body[:-1].rstrip()
    comma = "" if inside.endswith((",", "{")) else ","
    end = source.span.start + len(inside)
    close = source.span.start + len(body) - 1
    return Edit(source.span._replace(start=end, end=close), f"{comma} marker = {text_of(marker)} ")


def make_explicit(toml: TomlText, index: ProjectIndex) -> Edit:
    """Return the edit that makes an index explicit.

    Raises:
        ShapeError: it is not a table of ``[[tool.uv.index]]``.
    """
    if index.explicit_span is not None:
        return Edit(index.explicit_span, "true")
    if index.tool != "uv":
        raise ShapeError("the index is a plain URL setting")
    text = toml.text
    quote_end = index.url_span.end + 1
    inside_braces = text[index.span.start] == "{"
    addition = ", explicit = true" if inside_braces else f"{toml.newline}explicit = true"
    if not inside_braces:
        while quote_end < len(text) and text[quote_end] not in "\r\n":
            quote_end += 1
    return Edit(index.url_span._replace(start=quote_end, end=quote_end), addition)


def add_conflicts(toml: TomlText, project: Project, extras: Iterable[str]) -> None:
    """Declare that extras exclude each other: into the set that has one of them, else a new set."""
    extras = list(extras)
    for number, have in enumerate(project.conflicts):
        listed = [item.extra for item in have.items]
        if any(extra in listed for extra in extras):
            for extra in extras:
                if extra not in listed:
                    toml.append_item((*UV, "conflicts", number), inline(extra=extra))
            return
    items = ", ".join(inline(extra=extra) for extra in extras)
    if project.conflicts:
        toml.append_item((*UV, "conflicts"), f"[{items}]")
        return
    value = f"[{toml.newline}    [{items}],{toml.newline}]"
    toml.set_key(UV, "conflicts", value)


def add_extra(toml: TomlText, name: str, requirements: Sequence[str]) -> None:
    """Add an extra with its requirements."""
    listed = ", ".join(text_of(text) for text in requirements)
    toml.set_key(("project", "optional-dependencies"), name, f"[{listed}]")


def pin_edits(document: Document, versions: dict[str, str]) -> list[Edit]:
    """Return the edits that move exact pins of the family to the plan's versions, without labels.

    Raises:
        ShapeError: a pin is written with escapes, or is a direct URL.
    """
    edits: list[Edit] = []
    for declaration in document.declarations:
        version = versions.get(declaration.name)
        pin = exact_version(declaration.specifier)
        if version is None or pin is None or declaration.specifier_span is None:
            continue
        if declaration.scope in ("build",) or (pin[0] == version and not pin[1]):
            continue
        if declaration.from_variable or declaration.url is not None:
            raise ShapeError(f"the pin of {declaration.name} cannot be edited as text")
        edits.append(Edit(declaration.specifier_span, f"=={version}"))
    return edits
