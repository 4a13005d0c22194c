"""Blocks of metadata in Python scripts (PEP 723): ``# /// script``.

The TOML of the block is read where it stands: in a copy of the text in which everything else, the
comment marks too, is blanked, so that all offsets are those of the script. ``uv run script.py``
takes ``[tool.uv]`` from the block and nothing from a project around it. Source:
https://packaging.python.org/en/latest/specifications/inline-script-metadata/ and
https://docs.astral.sh/uv/guides/scripts/.
"""

from __future__ import annotations

import re

from torchpin.documents.base import Document, Edit, Problem, Span
from torchpin.documents.manifest import Manifest
from torchpin.documents.parts import file_of
from torchpin.documents.project import Project, Table
from torchpin.documents.toml_view import View, read_toml
from torchpin.documents.uv_manifest import read_uv
from torchpin.patterns import regex

KIND = "script"
_BLOCK = regex(r"^# /// (?P<type>[a-zA-Z0-9-]+)[ \t]*\r?$\n(?P<body>(?:^#(?:| .*)\r?$\n?)+)", re.M)
_START = b"# /// script"


def has_block(data: bytes) -> bool:
    """Tell whether a Python file may hold a block of metadata."""
    return _START in data


def block_of(text: str) -> Span | None:
    """Return the lines of the TOML in the block ``script``, their comment marks included.

    As the specification has it: the last ``# ///`` line of the run of comments ends the block. None
    if there is none; several blocks are an error, see ``read_script``.
    """
    found = _blocks(text)
    return found[0] if found else None


def _blocks(text: str) -> list[Span]:
    found: list[Span] = []
    at = 0
    while True:
        match = _BLOCK.search(text, at)
        if match is None:
            return found
        body = match["body"]
        end = -1
        offset = 0
        for line in body.splitlines(keepends=True):
            if line.rstrip() == "# ///":
                end = offset
            offset += len(line)
        if end < 0:
            at = match.start() + 1
            continue
        at = match.start("body") + end
        if match["type"] == "script":
            found.append(Span(match.start("body"), at))


def toml_of(text: str, block: Span) -> str:
    """Return the text with all but the TOML of the block blanked; offsets and lines stay."""

    def blank(piece: str) -> str:
        return re.sub(r"[^\r\n]", " ", piece)

    inside = re.sub(r"(?m)^#[ ]?", lambda match: " " * len(match[0]), text[block.start : block.end])
    return blank(text[: block.start]) + inside + blank(text[block.end :])


def twin(document: Document) -> Document:
    """Return a script's document whose text is the TOML of its block alone, up to its end.

    Offsets are those of the script; what stands before the block is blank. ``commented`` turns
    edits of it into edits of the script.
    """
    block = block_of(document.text)
    if block is None:
        return document
    toml = toml_of(document.text, block)[: block.end]
    return document._replace(text=toml, encoding="utf-8", bom=b"")


def reread_twin(document: Document, text: str) -> Document:
    """Return the document of a twin whose text has changed."""
    empty = ()
    file = document._replace(
        text=text, declarations=empty, problems=empty, comments=empty, project=None
    )
    return _filled(file, text, Manifest(text))


def commented(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Return edits of whole lines of a twin as edits of the script: each line gets its mark."""

    def marked(line: str) -> str:
        body = line.rstrip("\r\n")
        end = line[len(body) :]
        if not body.strip():
            return f"#{end}"
        return f"# {body.removeprefix('  ')}{end}"

    return tuple(
        Edit(edit.span, "".join(marked(line) for line in edit.text.splitlines(keepends=True)))
        for edit in edits
    )


def read_script(path: str, data: bytes) -> Document:
    """Return the document of a Python script; never raises.

    Without a block it declares nothing. Problems: ``toml`` in the block, and several blocks of one
    type, at which uv stops.
    """
    file = file_of(path, data, KIND)
    if file.problems or not has_block(data):
        return file
    blocks = _blocks(file.text)
    if not blocks:
        return file
    manifest = Manifest(file.text)
    if len(blocks) > 1:
        message = "a script has one block of metadata; uv stops at several"
        manifest.problem(message, blocks[1], "toml")
    return _filled(file, toml_of(file.text, blocks[0]), manifest)


def _filled(file: Document, toml: str, manifest: Manifest) -> Document:
    """Return a document with what its TOML says."""
    read = read_toml(toml.encode("utf-8", "surrogatepass"))
    if read.problem is not None:
        at = min(read.problem.span.start, len(file.text))
        problem = Problem(read.problem.message, Span(at, at), read.problem.code)
        return file._replace(problems=(problem,))
    root = View(read.data, read.spans.root, "", file.text, manifest.problems)
    python = root.string("requires-python")
    if python is not None:
        _requires_python(manifest, python)
    for item in root.strings("dependencies"):
        manifest.requirement(item, "")
    tool = root.get("tool", "uv")
    if tool is not None and tool.is_table("a table"):
        read_uv(manifest, tool)
    project = Project(
        tool="uv",
        name="",
        requires_python=manifest.requires_python,
        requires_python_span=manifest.requires_python_span,
        extras=(),
        groups=(),
        default_groups=(),
        sources=tuple(manifest.sources),
        indexes=tuple(manifest.indexes),
        conflicts=(),
        environments=manifest.environments,
        required_environments=manifest.required_environments,
        settings=tuple(manifest.settings),
        workspace_members=(),
        workspace_exclude=(),
        tables=tuple(Table(h.path, h.array, h.span, h.body_end) for h in read.spans.headers),
        package=False,
        published=False,
    )
    return file._replace(
        declarations=tuple(manifest.declarations),
        problems=tuple(sorted(dict.fromkeys(manifest.problems), key=lambda one: one.span)),
        comments=read.spans.comments,
        project=project,
    )


def _requires_python(manifest: Manifest, view: View) -> None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(view.value)
    except InvalidSpecifier:
        message = f"{view.value[:60]!r} is no valid version specifier"
        manifest.problem(message, view.span, "specifier")
    else:
        manifest.requires_python = view.value
        manifest.requires_python_span = view.span
