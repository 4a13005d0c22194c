"""Plans as edits of commands and sections inside files of another kind.

What stands in quotes keeps them: only versions and URLs change, which hold no character that any
shell, JSON, YAML, TOML or ini file treats as special. Options come and go as whole words, or as
whole lines of a list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from torchpin.documents.base import Document, Edit, Span, apply_edits
from torchpin.documents.kinds import kind_of
from torchpin.documents.loader import kind_by_text, read_as
from torchpin.documents.parts import Part
from torchpin.documents.requirements import read_requirements
from torchpin.errors import RewriteError
from torchpin.rules.context import Way
from torchpin.rules.model import FileEdits
from torchpin.select.installs import install_of
from torchpin.select.model import Install
from torchpin.select.parts import without_met

LISTS = frozenset(("ini", "requirements", "yaml"))
"""Syntaxes in which each requirement and each option has a line of its own."""


def reread(document: Document, text: str) -> Document:
    """Return the file that a new text of a file of parts makes."""
    data = document.encode(text)
    return read_as(kind_of(document.path) or kind_by_text(data), document.path, data)


def same_part(before: Document, part: Part, after: Document) -> Part | None:
    """Return what became of a part; None if the parts of the files are not the same."""
    if len(before.parts) != len(after.parts):
        return None
    for old, new in zip(before.parts, after.parts, strict=True):
        if old.span.start == part.span.start and old.name == part.name:
            return new
    return None


def edited_part(way: Way, edits: Sequence[FileEdits]) -> Install:
    """Return the install of a part with edits applied in memory.

    Raises:
        RewriteError: the edits make other parts of the file.
    """
    part = way.part
    assert part is not None
    root = part.document
    texts = {
        os.path.realpath(one.document.path): apply_edits(one.document.text, one.edits)
        for one in edits
    }
    mine = os.path.realpath(root.path)
    after = same_part(reread(root, root.text), part, reread(root, texts.get(mine, root.text)))
    if after is None:
        raise RewriteError("the file would hold other commands", path=root.path)
    documents = {os.path.realpath(one.path): one for one in way.install.documents}

    def load(path: str) -> Document:
        key = os.path.realpath(path)
        if key not in documents or key == mine:
            raise RewriteError("not part of the install", path=path)
        document = documents[key]
        if key in texts:
            return read_requirements(document.path, document.encode(texts[key]))
        return document

    install = install_of(
        after.document,
        load,
        client=way.install.client,
        private=dict(way.private),
        extra_indexes=way.extra_indexes,
        part=after,
    )
    return without_met(install, after, way.before)


# -- options of a command, lines of a list


def delete_option(part: Part, document: Document, span: Span) -> Edit:
    """Return the edit that takes an option with its value, or a requirement, out of a part."""
    text = document.text
    start, end = span
    if part.syntax == "argument-list":
        before = re.search(r",\s*$", text[:start])
        return Edit(Span(before.start() if before else start, end), "")
    if part.command:
        while start and text[start - 1] in " \t":
            start -= 1
        return Edit(Span(start, end), "")
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    rest = re.match(r"[ \t]*(?:[#;][^\r\n]*)?(?:\r\n|\r|\n|$)", text[end:].lstrip("'\""))
    if part.syntax in LISTS and rest is not None and not text[line:start].strip(" \t-'\""):
        stop = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)").match(text, end)
        return Edit(Span(line, stop.end() if stop else end), "")
    return Edit(Span(start, end), "")


def add_options(part: Part, document: Document, lines: Sequence[str]) -> Edit | None:
    """Return the edit that adds options (``--extra-index-url URL``); None: there is no place."""
    at = part.options_at
    if at is None or not lines:
        return None
    text = document.text
    if part.syntax == "argument-list":
        words = [word for line in lines for word in line.split()]
        return Edit(Span(at, at), "".join(f', "{word}"' for word in words))
    if part.command:
        return Edit(Span(at, at), "".join(f" {line}" for line in lines))
    if part.syntax not in LISTS:
        return None
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    indent = text[begin:at]
    if indent.strip():
        return None
    dash = "- " if part.syntax == "yaml" else ""
    return Edit(Span(at, at), "".join(f"{dash}{line}{document.newline}{indent}" for line in lines))


def replace_option(part: Part, span: Span, lines: Sequence[str]) -> Edit | None:
    """Return the edit that puts options in the place of one; None: they do not go there."""
    if part.syntax == "argument-list":
        words = [word for line in lines for word in line.split()]
        return Edit(span, ", ".join(f'"{word}"' for word in words))
    if part.command:
        return Edit(span, " ".join(lines))
    return Edit(span, lines[0]) if len(lines) == 1 else None
