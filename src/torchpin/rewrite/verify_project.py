"""Is an edited project file what was meant? Parsed again, and compared part by part."""

from __future__ import annotations

from typing import Any

from torchpin.catalog.model import FOLLOWERS, WATCHED
from torchpin.documents.base import Document, Edit, apply_edits
from torchpin.documents.pyproject import read_pyproject
from torchpin.documents.toml_view import read_toml
from torchpin.errors import RewriteError
from torchpin.rewrite.toml_edit import without_empty

TOUCHED = (
    ("dependencies",),
    ("project", "dependencies"),
    ("project", "optional-dependencies"),
    ("dependency-groups",),
    ("tool", "uv"),
    ("tool", "poetry", "dependencies"),
    ("tool", "poetry", "group"),
    ("tool", "poetry", "source"),
    ("tool", "pdm"),
)
"""Where a fix may change values; everything else must parse to what it was."""


def check_project_edit(before: Document, after_text: str, edits: tuple[Edit, ...]) -> Document:
    """Return the document that ``after_text`` makes, if it is ``before`` with these edits.

    Raises:
        RewriteError: the text is not what the edits give, it is no TOML, it has a new problem, or
            anything but dependencies, sources and indexes changed its value.
    """
    try:
        expected = apply_edits(before.text, edits)
        data = before.encode(after_text)
    except ValueError as error:
        raise RewriteError(f"not edited: {error}", path=before.path) from error
    if expected != after_text:
        raise RewriteError("not edited: the text is not what the edits give", path=before.path)
    if before.kind == "script":
        return check_script_edit(before, after_text, data)
    after = read_pyproject(before.path, data)
    if len(after.problems) > len(before.problems):
        raise RewriteError(f"not edited: {after.problems[-1].message}", path=before.path)
    if asked_of_others(before) != asked_of_others(after):
        raise RewriteError("not edited: another dependency would change", path=before.path)
    if rest_of(before.text) != rest_of(after_text):
        raise RewriteError("not edited: another part of the file would change", path=before.path)
    return after


def check_script_edit(before: Document, after_text: str, data: bytes) -> Document:
    """Return the script that ``data`` makes, if nothing but its block of metadata has changed, and
    of this only dependencies of the family, sources and indexes.

    Raises:
        RewriteError: something else changed, or the block cannot be read any more.
    """
    from torchpin.documents.script_block import block_of, read_script, toml_of

    after = read_script(before.path, data)
    old, new = block_of(before.text), block_of(after_text)
    if new is None or old is None or after.text != after_text:
        raise RewriteError("not edited: the block of metadata would be lost", path=before.path)
    if len(after.problems) > len(before.problems):
        raise RewriteError(f"not edited: {after.problems[-1].message}", path=before.path)
    outside = before.text[: old.start], before.text[old.end :]
    if outside != (after_text[: new.start], after_text[new.end :]):
        raise RewriteError("not edited: the code of the script would change", path=before.path)
    if asked_of_others(before) != asked_of_others(after):
        raise RewriteError("not edited: another dependency would change", path=before.path)
    if rest_of(toml_of(before.text, old)) != rest_of(toml_of(after_text, new)):
        raise RewriteError("not edited: another part of the block would change", path=before.path)
    return after


def asked_of_others(document: Document) -> list[tuple[str, ...]]:
    """Return everything that is asked for outside the family and its internals, in order."""
    return [
        (one.name, one.specifier, one.marker or "", one.scope, one.url or "", *one.extras)
        for one in document.declarations
        if one.name not in (*WATCHED, *FOLLOWERS) and not one.name.startswith(("nvidia-", "cuda-"))
    ]


def rest_of(text: str) -> dict[str, Any]:
    """Return the parsed file without the parts that a fix may change.

    Raises:
        RewriteError: the text is no TOML.
    """
    value = parsed(text)
    for path in TOUCHED:
        table: Any = value
        for key in path[:-1]:
            table = table.get(key) if isinstance(table, dict) else None
        if isinstance(table, dict):
            table.pop(path[-1], None)
    return without_empty(value)


def parsed(text: str) -> dict[str, Any]:
    """Return the parsed TOML.

    Raises:
        RewriteError: the text is no TOML.
    """
    read = read_toml(text.encode("utf-8"))
    if read.problem is not None:
        raise RewriteError(f"not edited: the result {read.problem.message}")
    return read.data
