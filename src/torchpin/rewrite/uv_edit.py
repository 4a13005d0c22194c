"""What a fix may write into a uv project (fix policy F3): sources, indexes, extras, conflicts.

Never a local label, never a cap. Each function changes a ``TomlText`` by one intention.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from torchpin.documents.base import Declaration, Document, Edit, Span
from torchpin.documents.pins import exact_version, same_version
from torchpin.documents.project import Project, ProjectIndex, Source
from torchpin.documents.requirement import canonical
from torchpin.rewrite.requirement_indexes import CHANNEL_IN_URL
from torchpin.rewrite.toml_edit import ShapeError, TomlText, inline, text_of
from torchpin.select.channels import channel_url, index_kind

UV = ("tool", "uv")
SOURCES = (*UV, "sources")

LINUX = "sys_platform == 'linux'"
"""The marker of GPU builds: PyPI serves macOS and Windows."""


def read_again(document: Document, text: str) -> Document:
    """Return the document that a new text makes: of a project file, or of a script's block."""
    if document.kind == "script":
        from torchpin.documents.script_block import reread_twin

        return reread_twin(document, text)
    from torchpin.documents.pyproject import read_pyproject

    return read_pyproject(document.path, document.encode(text))


def channel_of(index: ProjectIndex) -> str | None:
    """Return the channel that an index of the project is, by its URL."""
    return index_kind(index.url, option=index.option).channel


def index_named(project: Project, name: str) -> ProjectIndex | None:
    """Return the index of a name."""
    return next((one for one in project.indexes if one.name == name), None)


def index_of_channel(project: Project, channel: str) -> ProjectIndex | None:
    """Return the named index that is a channel."""
    return next((one for one in project.indexes if one.name and channel_of(one) == channel), None)


def ensure_index(toml: TomlText, project: Project, channel: str, url: str = "") -> str:
    """Return the name of the explicit index of a channel; it is added if there is none.

    ``url``: where the channel is mirrored; PyTorch's own host if empty.
    """
    url = url or channel_url(channel)
    have = index_of_channel(project, channel)
    if have is not None and have.name is not None:
        return have.name
    name = free_name(project, channel)
    node = toml.spans.find(*UV, "index")
    if node is not None and node.kind == "array":
        entry = f'{{ name = "{name}", url = {text_of(url)}, explicit = true }}'
        toml.append_item((*UV, "index"), entry)
        return name
    entries = {"name": text_of(name), "url": text_of(url), "explicit": "true"}
    toml.append_table(entries, (*UV, "index"))
    return name


def free_name(project: Project, channel: str) -> str:
    """Return a name for the index of a channel that no other index has."""
    taken = {one.name for one in project.indexes}
    name = f"pytorch-{channel}".replace(".", "-")
    while name in taken:
        name += "-torchpin"
    return name


def source_text(index: str, *, marker: str = "", extra: str = "", group: str = "") -> str:
    """Return one source as TOML."""
    return inline(index=index, extra=extra, group=group, marker=marker)


def set_source(toml: TomlText, package: str, entries: Sequence[str]) -> None:
    """Set the sources of a package: one table, or a list of them, one a line."""
    if len(entries) == 1:
        value = entries[0]
    else:
        lines = "".join(f"    {entry},{toml.newline}" for entry in entries)
        value = f"[{toml.newline}{lines}]"
    node = toml.spans.find(*SOURCES)
    written = (node.entries or {}) if node is not None else {}
    key = next((key for key in written if canonical(key) == package), package)
    toml.set_key(SOURCES, key, value)


def extend_source(toml: TomlText, package: str, entries: Sequence[str], kept: int) -> None:
    """Set the sources of a package, of which the first ``kept`` are those of the file.

    A list that has no others is added to, so that its comments and its layout stay.
    """
    node = toml.spans.find(*SOURCES)
    written = (node.entries or {}) if node is not None else {}
    key = next((key for key in written if canonical(key) == package), package)
    have = written.get(key)
    if not kept or have is None or have.kind != "array" or len(have.items or ()) != kept:
        set_source(toml, package, entries)
        return
    for entry in entries[kept:]:
        toml.append_item((*SOURCES, key), entry)


def point_source(toml: TomlText, source: Source, index: str, marker: str) -> None:
    """Point a source that is a table of its own, or dotted keys, at another index.

    Raises:
        ShapeError: its index is written with escapes, or it takes no further key.
    """
    if source.value_span is None:
        raise ShapeError("the source names no index")
    edits = [Edit(source.value_span, index)]
    if marker and not source.marker:
        edits.append(add_entry(toml, source, "marker", marker))
    toml.apply(edits)


def add_tables(toml: TomlText, package: str, entries: Iterable[Mapping[str, str]]) -> None:
    """Append sources of a package as ``[[tool.uv.sources.PACKAGE]]``, as its others are written."""
    node = toml.spans.find(*SOURCES)
    written = (node.entries or {}) if node is not None else {}
    key = next((key for key in written if canonical(key) == package), package)
    for entry in entries:
        values = {name: text_of(value) for name, value in entry.items() if value}
        toml.append_table(values, (*SOURCES, key))


def add_constraint(toml: TomlText, requirement: str) -> None:
    """Add a constraint: a package that only others ask for follows its source then.

    uv drops a constraint that bounds nothing, and the source with it.
    """
    if toml.spans.find(*UV, "constraint-dependencies") is None:
        toml.set_key(UV, "constraint-dependencies", f"[{text_of(requirement)}]")
    else:
        toml.append_item((*UV, "constraint-dependencies"), text_of(requirement))


def sources_of(project: Project, package: str) -> list[Source]:
    """Return the sources of a package."""
    return [one for one in project.sources if one.package == package]


def swap_index_channel(
    document: Document, project: Project, index: ProjectIndex, channel: str, *, rename: bool
) -> tuple[list[Edit], str]:
    """Return the edits that point an index at another channel, and its name then.

    ``rename``: its name follows where it holds the old channel's name, and so do the sources that
    use it.

    Raises:
        ShapeError: the URL is written with escapes, or nothing in it names the channel.
    """
    old, name = channel_of(index), index.name or ""
    raw = document.text[index.url_span.start : index.url_span.end]
    url, count = CHANNEL_IN_URL.subn(rf"\g<1>{channel}", raw, count=1)
    if not count or raw != index.url:
        raise ShapeError("the URL of the index does not show its channel")
    edits = [Edit(index.url_span, url)]
    if not rename or old is None or index.name_span is None or old not in name:
        return edits, name
    new = name.replace(old, channel)
    if any(one.name == new for one in project.indexes):
        return edits, name
    edits.append(Edit(index.name_span, new))
    edits += [
        Edit(one.value_span, new)
        for one in project.sources
        if one.kind == "index" and one.value == name and one.value_span is not None
    ]
    return edits, new


def add_marker(toml: TomlText, source: Source, marker: str) -> Edit:
    """Return the edit that gives a source a marker, or adds to the one that it has.

    Raises:
        ShapeError: the source is written in a way that takes no further key.
    """
    if source.marker_span is not None:
        old = toml.text[source.marker_span.start : source.marker_span.end]
        if old != source.marker:
            raise ShapeError("the marker is written with escapes")
        new = f"({old}) and {marker}" if " or " in old else f"{old} and {marker}"
        quote = toml.text[source.marker_span.start - 1]
        return Edit(source.marker_span, new.replace("'", '"') if quote == "'" else new)
    return add_entry(toml, source, "marker", marker)


def add_entry(toml: TomlText, source: Source, key: str, value: str) -> Edit:
    """Return the edit that adds a key to a source: in braces, in a table of its own, or as one
    more dotted key below the others.

    Raises:
        ShapeError: the source is written in a way that takes no further key.
    """
    if source.value_span is None:
        raise ShapeError("the source names no index")
    quote_end = source.value_span.end + 1
    if toml.text[source.span.start] == "{":
        return Edit(Span(quote_end, quote_end), f", {key} = {text_of(value)}")
    line_end = re.compile(r"[ \t]*(#[^\r\n]*)?").match(toml.text, quote_end)
    if line_end is None:
        raise ShapeError("the source is written in a way that takes no further key")
    at = line_end.end()
    prefix = prefix_of(toml, source.value_span.start - 1)
    return Edit(Span(at, at), f"{toml.newline}{prefix}{key} = {text_of(value)}")


def prefix_of(toml: TomlText, value: int) -> str:
    """Return what stands on the line before the last part of the key whose value begins at
    ``value``: blanks and the dotted parts of the key.

    Raises:
        ShapeError: something else stands there.
    """
    start = max(toml.text.rfind("\n", 0, value), toml.text.rfind("\r", 0, value)) + 1
    part = r"""(?:[A-Za-z0-9_-]+|"[^"\\\r\n]*"|'[^'\r\n]*')"""
    match = re.fullmatch(
        rf"([ \t]*(?:{part}[ \t]*\.[ \t]*)*){part}[ \t]*=[ \t]*", toml.text[start:value]
    )
    if match is None:
        raise ShapeError("the source is written in a way that takes no further key")
    return match[1]


def scope_by_extra(toml: TomlText, source: Source) -> list[Edit]:
    """Return the edits that turn ``marker = "extra == 'X'"`` of a source into ``extra = "X"``.

    Raises:
        ShapeError: the marker is not that simple.
    """
    match = re.fullmatch(
        r"""extra\s*==\s*(['"])(?P<name>[^'"]+)\1(?:\s+and\s+(?P<rest>.+))?""", source.marker or ""
    )
    if match is None or source.marker_span is None or source.extra or " or " in source.marker:  # type: ignore[operator]
        raise ShapeError("the marker of the source is not extra == … alone")
    span = source.marker_span
    if match["rest"]:
        return [Edit(span, match["rest"]), add_entry(toml, source, "extra", match["name"])]
    key = re.compile(r"""marker([ \t]*=[ \t]*)['"]$""").search(toml.text[: span.start])
    if key is None:
        raise ShapeError("the marker is not written as one plain key")
    start = key.start()
    return [Edit(Span(start, start + len("marker")), "extra"), Edit(span, match["name"])]


def make_explicit(toml: TomlText, index: ProjectIndex, name: str) -> list[Edit]:
    """Return the edits that make an index explicit; it gets ``name`` if it has none.

    Raises:
        ShapeError: it is not a table of ``[[tool.uv.index]]``.
    """
    if index.tool != "uv":
        raise ShapeError("the index is a plain URL setting")
    text = toml.text
    quote_end = index.url_span.end + 1
    inside_braces = text[index.span.start] == "{"
    between = ", " if inside_braces else toml.newline
    if not inside_braces:
        while quote_end < len(text) and text[quote_end] not in "\r\n":
            quote_end += 1
    edits = [] if index.explicit_span is None else [Edit(index.explicit_span, "true")]
    keys = [] if index.name else [f"name = {text_of(name)}"]
    keys += ["explicit = true"] if index.explicit_span is None else []
    if keys:
        addition = "".join(f"{between}{key}" for key in keys)
        edits.append(Edit(index.url_span._replace(start=quote_end, end=quote_end), addition))
    return edits


def add_conflicts(
    toml: TomlText, project: Project, extras: Iterable[str], groups: Iterable[str] = ()
) -> None:
    """Declare that extras and groups exclude each other: in the set that has one, or a new one."""
    members = [("extra", one) for one in extras] + [("group", one) for one in groups]
    for number, have in enumerate(project.conflicts):
        listed = [
            ("extra", item.extra) if item.extra else ("group", item.group or "")
            for item in have.items
        ]
        if any(member in listed for member in members):
            for kind, name in members:
                if (kind, name) not in listed:
                    toml.append_item((*UV, "conflicts", number), inline(**{kind: name}))
            return
    items = [inline(**{kind: name}) for kind, name in members]
    if toml.spans.find(*UV, "conflicts") is not None:
        toml.append_item((*UV, "conflicts"), f"[{', '.join(items)}]")
        return
    nl = toml.newline
    listed_text = "".join(f"        {item},{nl}" for item in items)
    toml.set_key(UV, "conflicts", f"[{nl}    [{nl}{listed_text}    ],{nl}]")


def add_extra(toml: TomlText, name: str, requirements: Sequence[str]) -> None:
    """Add an extra with its requirements."""
    listed = ", ".join(text_of(text) for text in requirements)
    toml.set_key(("project", "optional-dependencies"), name, f"[{listed}]")


def pin_edits(
    document: Document, versions_of: Callable[[Declaration], Collection[str]]
) -> list[Edit]:
    """Return the edits that move exact pins of the family to the plan's versions, without labels.

    ``versions_of`` gives the versions that a declaration is to have: none where it stays.

    Raises:
        ShapeError: a pin is written with escapes, is a direct URL, or would need two lines.
    """
    edits: list[Edit] = []
    for declaration in document.declarations:
        pin = exact_version(declaration.specifier)
        if pin is None or declaration.specifier_span is None:
            continue
        versions = versions_of(declaration)
        if not versions:
            continue
        if len(versions) > 1:
            raise ShapeError(f"{declaration.name} would need a line for each platform")
        (version,) = versions
        if declaration.scope in ("build",) or (same_version(pin[0], version) and not pin[1]):
            continue
        if declaration.from_variable or declaration.url is not None:
            raise ShapeError(f"the pin of {declaration.name} cannot be edited as text")
        edits.append(Edit(declaration.specifier_span, f"=={version}"))
    return edits
