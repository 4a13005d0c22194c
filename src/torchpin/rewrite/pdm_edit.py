"""What a fix may write into a PDM project: a source of one channel for the family alone.

``include_packages`` makes the family come from it and from nowhere else, ``exclude_packages``
keeps everything else away from it. Source: PDM's page on configuration, "include and exclude
packages from source"; the fixed projects are locked by real PDM.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from torchpin.documents.base import Document, Edit
from torchpin.documents.project import ProjectIndex
from torchpin.resolve.model import Plan
from torchpin.rewrite.poetry_edit import beside, move_pins
from torchpin.rewrite.toml_edit import ShapeError, TomlText, text_of
from torchpin.rewrite.uv_edit import channel_of, read_again, swap_index_channel

SOURCES = ("tool", "pdm", "source")


def route(document: Document, plan: Plan, names: list[str]) -> str:
    """Return the text with the family from the plan's channel, pins moved.

    Raises:
        ShapeError: the file's layout does not allow it, torch is asked for by others alone, or
            macOS, for which channels of CUDA hold no wheel, is among the targets.
    """
    project = document.project
    if project is None or "torch" not in names:
        raise ShapeError("torch is not declared")
    toml = TomlText(document.text, document.newline)
    move_pins(toml, document, plan)
    if plan.home != "channel":
        return toml.text
    if any(target.group.platform.startswith("macos") for target in plan.targets):
        raise ShapeError("a source of PDM cannot be bound to a platform")
    own = [index for index in project.indexes if index.tool == "pdm"]
    channels = [index for index in own if channel_of(index) is not None]
    if not channels:
        add_source(toml, own, plan.channel, names)
    elif len(channels) == 1:
        swap_source(toml, document, channels[0], plan.channel, names)
    else:
        raise ShapeError("several sources are channels")
    return toml.text


def add_source(toml: TomlText, own: list[ProjectIndex], channel: str, names: list[str]) -> None:
    """Add the source of a channel.

    Raises:
        ShapeError: the sources are written in a way that cannot be extended.
    """
    taken = {index.name for index in own}
    name = f"pytorch-{channel}".replace(".", "-")
    while name in taken:
        name += "-torchpin"
    entries = {
        "name": text_of(name),
        "url": text_of(beside(own, channel)),
        "include_packages": f"[{', '.join(map(text_of, names))}]",
        "exclude_packages": '["*"]',
    }
    node = toml.spans.find(*SOURCES)
    if node is not None and node.kind == "array":
        inside = ", ".join(f"{key} = {value}" for key, value in entries.items())
        toml.append_item(SOURCES, f"{{ {inside} }}")
        return
    toml.append_table(entries, SOURCES)


def swap_source(
    toml: TomlText, document: Document, index: ProjectIndex, channel: str, names: list[str]
) -> None:
    """Point the one source of a channel to another, and name the whole family in it.

    Raises:
        ShapeError: it stands in for PyPI, or is not written plainly.
    """
    serve_family(toml, index, names)
    again = read_again(document, toml.text)
    assert again.project is not None
    same = next(one for one in again.project.indexes if one.url == index.url)
    edits, name = swap_index_channel(again, again.project, same, channel, rename=False)
    old = channel_of(index)
    if same.name_span is not None and old and old in name:
        edits.append(Edit(same.name_span, name.replace(old, channel)))
    toml.apply(edits)


def serve_family(toml: TomlText, index: ProjectIndex, names: list[str]) -> None:
    """Make all packages of the family come from a source; where it says nothing about packages,
    make all others come from elsewhere.

    Raises:
        ShapeError: the source stands in for PyPI, or cannot be extended.
    """
    left = [n for n in names if not any(fnmatchcase(n, p) for p in index.include)]
    if not left:
        return
    if index.default:
        raise ShapeError("the source of the channel stands in for PyPI")
    number = number_of(toml, index)
    if index.include:
        for name in left:
            toml.append_item((*SOURCES, number, "include_packages"), text_of(name))
        return
    if index.exclude:
        raise ShapeError("the source of the channel excludes packages")
    toml.set_in_array(SOURCES, number, "include_packages", f"[{', '.join(map(text_of, names))}]")
    toml.set_in_array(SOURCES, number, "exclude_packages", '["*"]')


def number_of(toml: TomlText, index: ProjectIndex) -> int:
    """Return which of the sources an index is.

    Raises:
        ShapeError: it is not the only one with its URL.
    """
    sources = toml.data["tool"]["pdm"]["source"]
    found = [at for at, one in enumerate(sources) if one.get("url") == index.url]
    if len(found) != 1:
        raise ShapeError("several sources have one URL")
    return found[0]
