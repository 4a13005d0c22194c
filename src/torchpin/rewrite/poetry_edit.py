"""What a fix may write into a Poetry project (fix policy F4): explicit sources for the family.

A package without a source would come from PyPI, built with another CUDA; so every declared package
of the family gets one.
"""

from __future__ import annotations

import re

from torchpin.catalog.labels import kind_of_label
from torchpin.documents.base import Document, Edit, Span
from torchpin.documents.pins import exact_version, same_version
from torchpin.documents.project import ProjectIndex
from torchpin.documents.pyproject import read_pyproject
from torchpin.documents.requirement import canonical
from torchpin.documents.toml_spans import Node
from torchpin.resolve.model import Plan
from torchpin.rewrite.parts import versions_for
from torchpin.rewrite.requirement_indexes import CHANNEL_IN_URL
from torchpin.rewrite.toml_edit import ShapeError, TomlText, inline, quoted, text_of
from torchpin.rewrite.uv_edit import LINUX, channel_of
from torchpin.select.channels import channel_url

POETRY = ("tool", "poetry")


def route(document: Document, plan: Plan, names: list[str]) -> str:
    """Return the text with an explicit source for every declared family package, pins moved.

    Raises:
        ShapeError: the file's layout does not allow it, or torch is asked for by others alone.
    """
    project = document.project
    if project is None or "torch" not in names:
        raise ShapeError("torch is not declared")
    toml = TomlText(document.text, document.newline)
    move_pins(toml, document, plan)
    if plan.home != "channel":
        return toml.text
    name = ensure_source(toml, document, plan.channel)
    systems = {target.group.platform.split("-")[0] for target in plan.targets}
    marker = LINUX if "macos" in systems and kind_of_label(plan.channel) != "cpu" else ""
    used = sources_used(toml.data)
    for package in names:
        set_source(toml, document, package, name, marker)
    drop_idle(toml, used - sources_used(toml.data))
    return toml.text


def sources_used(data: object) -> frozenset[str]:
    """Return the names of the sources that dependencies of a Poetry project name."""
    found: set[str] = set()
    if isinstance(data, dict):
        for key, value in data.items():
            if key == "source" and isinstance(value, str):
                found.add(value)
            else:
                found |= sources_used(value)
    for one in data if isinstance(data, list) else ():
        found |= sources_used(one)
    return frozenset(found)


def drop_idle(toml: TomlText, idle: frozenset[str]) -> None:
    """Take out the explicit sources that nothing names any more, where their layout allows it."""
    listed = toml.data.get("tool", {}).get("poetry", {}).get("source")
    for number, one in reversed(list(enumerate(listed if isinstance(listed, list) else ()))):
        if one.get("name") not in idle or one.get("priority") != "explicit":
            continue
        try:
            toml.remove_table((*POETRY, "source"), number)
        except ShapeError:
            continue  # it does no harm


def move_pins(toml: TomlText, document: Document, plan: Plan) -> None:
    """Move exact pins to the plan's versions, without labels; the way they are written stays."""
    edits: list[Edit] = []
    for one in document.declarations:
        pin = exact_version(one.specifier)
        if pin is None or one.specifier_span is None:
            continue
        versions = versions_for(plan, one)
        if len(versions) > 1:
            raise ShapeError(f"{one.name} would need an entry for each platform")
        label = pin[1] if versions and pin[1] != plan.channel else None
        version = versions.pop() if versions else pin[0]
        if same_version(pin[0], version) and (not label or kind_of_label(label) is None):
            continue
        text = document.text[one.specifier_span.start : one.specifier_span.end]
        if pin[0] not in text or one.from_variable or one.scope == "build":
            raise ShapeError(f"the pin of {one.name} cannot be edited as text")
        written = re.sub(r"\+[A-Za-z0-9.]+", "", text).replace(pin[0], version)
        edits.append(Edit(one.specifier_span, written))
    toml.apply(list(dict.fromkeys(edits)))


def ensure_source(toml: TomlText, document: Document, channel: str) -> str:
    """Return the name of the explicit source of a channel; it is added if there is none.

    Raises:
        ShapeError: the channel is a source for every package.
    """
    assert document.project is not None
    for index in document.project.indexes:
        if index.tool == "poetry" and index.name and channel_of(index) == channel:
            if index.priority != "explicit":
                raise ShapeError("the channel is a source for every package")
            return index.name
    taken = {index.name for index in document.project.indexes}
    name = f"pytorch-{channel}".replace(".", "-")
    while name in taken:
        name += "-torchpin"
    own = [index for index in document.project.indexes if index.tool == "poetry"]
    url = text_of(beside(own, channel))
    node = toml.spans.find(*POETRY, "source")
    if node is not None and node.kind == "array":
        item = f'{{ name = "{name}", url = {url}, priority = "explicit" }}'
        toml.append_item((*POETRY, "source"), item)
        return name
    entries = {"name": text_of(name), "url": url, "priority": text_of("explicit")}
    toml.append_table(entries, (*POETRY, "source"))
    return name


def beside(indexes: list[ProjectIndex], channel: str) -> str:
    """Return the URL of a channel: on the mirror of the others, else on PyTorch's own host."""
    for index in indexes:
        if channel_of(index) is not None:
            url, count = CHANNEL_IN_URL.subn(rf"\g<1>{channel}", index.url, count=1)
            if count:
                return url
    return channel_url(channel)


def set_source(toml: TomlText, document: Document, package: str, source: str, marker: str) -> None:
    """Give every place that asks for a package its source."""
    found = False
    for table in tables_of(toml):
        node = toml.spans.find(*table)
        key = next((k for k in (node.entries or {}) if canonical(k) == package), None)  # type: ignore[union-attr]
        if key is None:
            continue
        found = True
        value = toml.spans.find(*table, key)
        assert value is not None
        set_one(toml, (*table, key), value, source, marker)
    if found:
        return
    if not in_project(document, package):
        raise ShapeError(f"{package} is asked for in a place that takes no source")
    entry = inline(source=source)
    if marker:
        rest = inline(markers=opposite(marker))
        entry = two_entries(toml, inline(source=source, markers=marker), rest)
    toml.set_key((*POETRY, "dependencies"), package, entry)


def tables_of(toml: TomlText) -> list[tuple[str, ...]]:
    """Return the tables of a Poetry project that hold dependencies."""
    found: list[tuple[str, ...]] = []
    for path in ((*POETRY, "dependencies"), (*POETRY, "dev-dependencies")):
        if toml.spans.find(*path) is not None:
            found.append(path)
    groups = toml.spans.find(*POETRY, "group")
    for group in (groups.entries or {}) if groups is not None else {}:
        place = (*POETRY, "group", group, "dependencies")
        if toml.spans.find(*place) is not None:
            found.append(place)
    return found


def in_project(document: Document, package: str) -> bool:
    """True if ``[project]`` asks for the package."""
    data = read_pyproject(document.path, document.encode(document.text))
    return any(one.name == package and one.scope == "" for one in data.declarations)


def set_one(toml: TomlText, path: tuple[str, ...], node: Node, source: str, marker: str) -> None:
    """Give one dependency its source; with a marker it becomes two entries."""
    text = toml.text[node.start : node.end]
    if node.kind == "string":
        if marker:
            one = f"{{ version = {text}, source = {text_of(source)}, markers = {text_of(marker)} }}"
            rest = f"{{ version = {text}, markers = {text_of(opposite(marker))} }}"
            toml.apply([Edit(node.span, two_entries(toml, one, rest))])
        else:
            toml.apply([Edit(node.span, f"{{ version = {text}, source = {text_of(source)} }}")])
        return
    if node.kind not in ("inline", "table"):
        raise ShapeError(f"{path[-1]} has several entries")
    have = node.entries or {}
    if {"git", "url", "path", "file", "markers", "platform"} & set(have):
        raise ShapeError(f"{path[-1]} has a place or a marker of its own")
    if not marker:
        if "source" in have and have["source"].kind == "string":
            toml.apply([Edit(have["source"].span, text_of(source))])
        else:
            toml.set_key(path, "source", text_of(source))
        return
    if "source" not in have and node.kind == "table":
        split_table(toml, path, node, source, marker)
        return
    if node.kind != "inline" or node.inner is None:
        raise ShapeError(f"{path[-1]} cannot be split into two entries")
    whole = toml.text[node.inner.start : node.inner.end]
    if "\n" in whole or "#" in whole:
        raise ShapeError(f"{path[-1]} is written over several lines")
    parts = [
        f"{quoted(key)} = {toml.text[child.start : child.end]}"
        for key, child in have.items()
        if key != "source"
    ]
    inside = ", ".join(parts)
    toml.apply([Edit(Span(node.start, node.end), split_in_two(toml, inside, source, marker))])


def split_table(
    toml: TomlText, path: tuple[str, ...], node: Node, source: str, marker: str
) -> None:
    """Turn ``[tool.poetry.dependencies.torch]`` into two entries of the table that it belongs to.

    Raises:
        ShapeError: it holds comments, tables, or values over several lines, or is not written as
            one table.
    """
    name = path[-1]
    headers = [one for one in toml.spans.headers if one.path[: len(path)] == path]
    if len(headers) != 1 or headers[0].array:
        raise ShapeError(f"{name} is not one table")
    header = headers[0]
    start = max(toml.text.rfind("\n", 0, header.span.start) + 1, 0)
    body = toml.text[header.span.end : header.body_end]
    children = list((node.entries or {}).items())
    parts = []
    for key, child in children:
        text = toml.text[child.start : child.end]
        if child.kind in ("table", "tables") or "\n" in text or child.start < header.span.end:
            raise ShapeError(f"{name} has a value that does not go into a line")
        parts.append(f"{quoted(key)} = {text}")
        body = body.replace(text, "", 1)
    if "#" in body or not parts:
        raise ShapeError(f"{name} has comments of its own")
    end = header.body_end
    blank = re.compile(r"(?:[ \t]*\r?\n)?").match(toml.text, end)
    end = blank.end() if blank is not None else end
    toml.apply([Edit(Span(start, end), "")])
    split = split_in_two(toml, ", ".join(parts), source, marker)
    toml.set_key(path[:-1], name, split)


def split_in_two(toml: TomlText, inside: str, source: str, marker: str) -> str:
    """Return two entries with the same keys: with the source where the marker holds, without."""
    inside = f"{inside}, " if inside else ""
    one = f"{{ {inside}source = {text_of(source)}, markers = {text_of(marker)} }}"
    rest = f"{{ {inside}markers = {text_of(opposite(marker))} }}"
    return two_entries(toml, one, rest)


def two_entries(toml: TomlText, one: str, rest: str) -> str:
    """Return an array of two entries, one a line."""
    return f"[{toml.newline}    {one},{toml.newline}    {rest},{toml.newline}]"


def opposite(marker: str) -> str:
    """Return the marker of everything else."""
    return marker.replace("==", "!=")
