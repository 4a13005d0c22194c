"""Edits of the index lines of requirements files and commands."""

from __future__ import annotations

import re

from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Document, Edit, Span
from torchpin.patterns import regex
from torchpin.resolve.model import Plan
from torchpin.rewrite.draft import RefusedError
from torchpin.rewrite.request import family_declarations, follower_declarations
from torchpin.rules.context import Way
from torchpin.select.channels import channel_url
from torchpin.select.model import PlacedIndex

CHANNEL_IN_URL = regex(r"(/whl/)(?:nightly/|test/)?[A-Za-z0-9.]+(?=/|$)")


def channel_lines(way: Way) -> list[PlacedIndex]:
    """Return the lines that name a place of PyTorch's own, each once."""
    found: dict[tuple[str, Span], PlacedIndex] = {}
    for index in (*way.install.indexes, *way.install.discarded):
        if index.document is None or index.line is None:
            continue
        if index.kind.kind in ("channel", "nightly", "test", "legacy", "root"):
            found.setdefault((index.document.path, index.line.span), index)
    return list(found.values())


def backend_edits(way: Way, plan: Plan) -> list[tuple[Document, Edit]] | None:
    """Return the edits that name the plan's channel as torch backend; None: the command names
    none.

    Raises:
        RefusedError: the plan needs PyPI, or the backend has no one place in the file.
    """
    if way.part is None or way.install.torch_backend is None:
        return None
    from torchpin.rewrite.commands import replaced

    edits = replaced(way.part.backend, plan.channel) if way.part.backend else None
    if edits is None or plan.home == "pypi":
        raise RefusedError("the torch backend stands elsewhere, or has no such channel")
    return [(way.part.document, edit) for edit in edits]


def swap_channel(way: Way, lines: list[PlacedIndex], channel: str) -> list[tuple[Document, Edit]]:
    """Point every line to ``channel``; lines that become the same are written once.

    Raises:
        RefusedError: a URL comes from a variable.
    """
    edits: list[tuple[Document, Edit]] = []
    seen: set[tuple[str, str]] = set()
    for index in lines:
        assert index.document is not None
        assert index.line is not None
        if index.line.from_variable:
            edits += channel_of_variable(way, index, channel)
            continue
        raw = index.document.text[index.line.url_span.start : index.line.url_span.end]
        option = index.line.option
        bare_links = option == "--find-links" and index.kind.project is None
        if index.kind.kind == "legacy" or (bare_links and index.kind.kind == "channel"):
            option, new = "--extra-index-url", channel_url(channel)
            edit = written_anew(way, index, [f"{option} {new}"])
        elif index.kind.kind == "root" or index.kind.channel is None:
            new = re.sub(r"(/whl)(/nightly|/test)?(?=/|$)", rf"\1/{channel}", raw, count=1)
            edit = Edit(index.line.url_span, new)
        else:
            new = CHANNEL_IN_URL.sub(rf"\g<1>{channel}", raw, count=1)
            edit = Edit(index.line.url_span, new)
        key = (option if option == "--index-url" else "extra", new.rstrip("/"))
        if key in seen:
            edits.append(delete_line(way, index))
            continue
        seen.add(key)
        edits.append((index.document, edit))
    return edits


def channel_of_variable(way: Way, index: PlacedIndex, channel: str) -> list[tuple[Document, Edit]]:
    """Return the edits of the variables in a command's URL that make its channel another.

    Raises:
        RefusedError: the value has no one place in the file.
    """
    document, line = index.document, index.line
    assert document is not None
    assert line is not None
    edits = None
    if way.part is not None and document is way.part.document:
        from torchpin.rewrite.commands import channel_edits

        edits = channel_edits(way.part, line, CHANNEL_IN_URL, channel)
    if edits is None:
        if way.part is not None and way.part.written_in:
            elsewhere = way.part.written_in
            raise RefusedError(f"the index URL is not written in this file: see {elsewhere}")
        raise RefusedError("the index URL comes from a variable")
    return [(document, edit) for edit in edits]


def link_pages(way: Way, lines: list[PlacedIndex], plan: Plan) -> list[tuple[Document, Edit]]:
    """Put one link page a package in the place of the channel lines (fix policy F2, uv).

    A link page shadows nothing, and uv falls back to PyPI where it has no wheel for the platform.
    """
    if any(shares_line(index) for index in lines):
        raise RefusedError("another option stands on the line of the index")
    edits = [delete_line(way, index) for index in lines]
    document, first = edits[0]
    base = mirror_of(lines, plan.channel)
    if document.kind == "part":
        return [(document, written_anew(way, lines[0], pages_for(way, plan, base))), *edits[1:]]
    pages = "".join(page + document.newline for page in pages_for(way, plan, base))
    return [(document, first._replace(text=pages)), *edits[1:]]


def mirror_of(lines: list[PlacedIndex], channel: str) -> str | None:
    """Return the channel's URL on the host that the file names: a mirror stays a mirror.

    Raises:
        RefusedError: the URL comes from a variable.
    """
    for index in lines:
        assert index.document is not None
        assert index.line is not None
        if index.kind.kind != "channel":
            continue
        if index.line.from_variable:
            raise RefusedError("the index URL comes from a variable")
        raw = index.document.text[index.line.url_span.start : index.line.url_span.end]
        match = CHANNEL_IN_URL.search(raw)
        if match is not None:
            return raw[: match.start()] + match.group(1) + channel
    return None


def pages_for(way: Way, plan: Plan, base: str | None = None) -> list[str]:
    """Return the link pages of the channel for the packages of the file, and torch.

    ``base``: the channel's URL where it is not PyTorch's own host.
    """
    url = base or plan.index_url or channel_url(plan.channel)
    names = {placed.declaration.name for placed in family_declarations(way)} | {"torch"}
    pages = [name for name in FAMILY if name in names]
    followers = {placed.declaration.name for placed in follower_declarations(way)}
    pages += [
        name
        for name in dict.fromkeys(name for _, name, _ in plan.builds)
        if name in followers and any(b.home != "pypi" for _, n, b in plan.builds if n == name)
    ]
    return [f"-f {url}/{name}/" for name in pages]


def written_anew(way: Way, index: PlacedIndex, options: list[str]) -> Edit:
    """Return the edit that puts other options in the place of an index line.

    Raises:
        RefusedError: the command or section has no room for them.
    """
    assert index.document is not None
    assert index.line is not None
    if index.document.kind != "part" or way.part is None:
        return Edit(index.line.span, index.document.newline.join(options))
    from torchpin.rewrite.commands import replace_option

    edit = None if index.line.from_variable else replace_option(way.part, index.line.span, options)
    if edit is None:
        raise RefusedError("the index is not written as an option of its own")
    return edit


def delete_line(way: Way, index: PlacedIndex) -> tuple[Document, Edit]:
    """Return the edit that deletes an index line with its line end.

    Where something else stands on the line, only the option goes, with the blanks beside it.

    Raises:
        RefusedError: the option of a command comes from a variable.
    """
    assert index.document is not None
    assert index.line is not None
    if index.document.kind == "part" and way.part is not None:
        from torchpin.rewrite.commands import delete_option

        if index.line.from_variable or index.line.span == index.line.url_span:
            raise RefusedError("the index does not stand in the command itself")
        return index.document, delete_option(way.part, index.document, index.line.span)
    text, line = index.document.text, index.line.line_span
    if not shares_line(index):
        return index.document, Edit(whole_line(text, line), "")
    start, end = index.line.span
    while end < line.end and text[end] in " \t":
        end += 1
    while end == line.end and start > line.start and text[start - 1] in " \t":
        start -= 1
    return index.document, Edit(Span(start, end), "")


def shares_line(index: PlacedIndex) -> bool:
    """True if another option, an include or a requirement stands on the line of ``index``."""
    assert index.document is not None
    assert index.line is not None
    document, line, own = index.document, index.line.line_span, index.line.span
    if own == line:
        return False  # the usual line, told without a look at all others
    spans = [one.span for one in document.indexes]
    spans += [one.span for one in document.options]
    spans += [one.span for one in document.includes]
    spans += [one.span for one in document.declarations]
    return sum(line.start <= span.start < line.end for span in spans) > 1


def whole_line(text: str, line: Span) -> Span:
    """Return the span of a logical line with its line end."""
    end = line.end
    if text.startswith("\r\n", end):
        end += 2
    elif end < len(text) and text[end] in "\r\n":
        end += 1
    return Span(line.start, end)


def home_of(way: Way) -> Document:
    """Return the document that asks for torch, or else for another family package."""
    declared = [placed for placed in family_declarations(way) if placed in way.install.requirements]
    for placed in declared:
        if placed.declaration.name == "torch":
            return placed.document
    return declared[0].document if declared else way.install.root


def index_lines_for(way: Way, plan: Plan) -> list[str]:
    """Return the index lines that a file without any gets (fix policy F2)."""
    url = plan.index_url or channel_url(plan.channel)
    if way.install.client == "pip":
        return [f"--extra-index-url {url}"]
    others = any(placed.declaration.name not in FAMILY for placed in way.install.requirements)
    if not others and len({build.platform for _, _, build in plan.builds}) == 1:
        return [f"--index-url {url}"]
    return pages_for(way, plan)


def insert_index(way: Way, document: Document, plan: Plan) -> tuple[Document, Edit]:
    """Return the edit that adds index lines: behind the last index line, else at the top.

    Raises:
        RefusedError: the command or section has no place for them.
    """
    lines = index_lines_for(way, plan)
    if document.kind == "part" and way.part is not None:
        from torchpin.rewrite.commands import add_options

        edit = add_options(way.part, document, lines)
        if edit is None:
            wanted = lines[0] if lines else "the index"
            if way.part.syntax == "toml" and way.part.name.startswith("environment "):  # Pixi
                wanted = f'index = "{channel_url(plan.channel)}" at each of them'
            raise RefusedError(f"no index line can be added here; by hand: {wanted}")
        return document, edit
    newline = document.newline
    if document.indexes:
        end = max(line.line_span.end for line in document.indexes)
        return document, Edit(Span(end, end), "".join(newline + line for line in lines))
    starts = [declaration.line_span.start for declaration in document.declarations]
    starts += [include.span.start for include in document.includes]
    starts += [option.span.start for option in document.options]
    at = min(starts, default=0)
    at = max(document.text.rfind("\n", 0, at), document.text.rfind("\r", 0, at)) + 1
    return document, Edit(Span(at, at), "".join(line + newline for line in lines))
