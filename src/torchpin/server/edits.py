"""Edits of documents as edits of the protocol; the server itself writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from lsprotocol.types import (
    OptionalVersionedTextDocumentIdentifier,
    TextDocumentEdit,
    TextEdit,
    WorkspaceEdit,
)

from torchpin.documents.base import Document, Edit, Span, apply_edits, line_starts, position
from torchpin.documents.loader import read_as
from torchpin.documents.suppressions import suppressions
from torchpin.server.diagnostics import Places

_MOST_LINES = 4000
"""A longer text is compared by its beginning and end alone."""


def workspace_edit(
    edits: Mapping[str, Sequence[Edit]], places: Places, *, versions: bool
) -> WorkspaceEdit:
    """Return the edits of some files, by path, as one edit of the workspace.

    ``versions``: the client takes edits of texts in the versions that they were made for.
    """
    by_uri: dict[str, list[TextEdit]] = {}
    numbers: dict[str, int | None] = {}
    for path, some in edits.items():
        uri = places.uri(path)
        buffer = places.analysis.buffer(path)
        numbers[uri] = buffer.version if buffer is not None else None
        by_uri[uri] = [
            TextEdit(places.range(path, *edit.span), edit.text) for edit in sorted(set(some))
        ]
    if not versions:
        return WorkspaceEdit(changes=by_uri)
    return WorkspaceEdit(
        document_changes=[
            TextDocumentEdit(OptionalVersionedTextDocumentIdentifier(uri, numbers[uri]), list(some))
            for uri, some in by_uri.items()
        ]
    )


def between(old: str, new: str) -> tuple[Edit, ...]:
    """Return the edits that make ``new`` of ``old``: whole lines, or what differs in one line."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if len(before) > _MOST_LINES or len(after) > _MOST_LINES:
        return (_trimmed(old, new, 0),) if old != new else ()
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    out: list[Edit] = []
    for tag, low, high, first, last in SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            text = "".join(after[first:last])
            out.append(_trimmed(old[starts[low] : starts[high]], text, starts[low]))
    return tuple(out)


def _trimmed(old: str, new: str, offset: int) -> Edit:
    """Return the edit of ``old`` (at ``offset``) to ``new`` without what both begin or end with."""
    most = min(len(old), len(new))
    head = next((at for at in range(most) if old[at] != new[at]), most)
    if head and old[head - 1 : head] == "\r":  # a line end stays whole
        head -= 1
    most -= head
    tail = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    if tail and old[len(old) - tail] == "\n" and old[len(old) - tail - 1 :][:1] == "\r":
        tail -= 1
    end = len(old) - tail
    return Edit(Span(offset + head, offset + end), new[head : len(new) - tail])


def ignore_edit(document: Document, offset: int, code: str) -> Edit | None:
    """Return the edit that silences a rule for the place at ``offset`` by a comment.

    Behind the line, else on a line of its own above it, or above the first of the lines that it
    continues. Each is tried on the text: the comment must be one, must cover the line, and must
    change nothing else that is read. None: no comment can, or the file is a lock, which its tool
    writes anew.
    """
    if document.lock is not None or document.path.endswith(".lock"):
        return None
    text, starts = document.text, line_starts(document.text)
    line = position(starts, offset).line
    drafts: list[Edit] = []
    for one in suppressions(document):
        if one.codes and not one.whole_file and one.first_line <= line <= one.last_line:
            comment = text[one.span.start : one.span.end]
            close = comment.find("]")
            if close > 0:
                at = one.span.start + close
                drafts.append(Edit(Span(at, at), f",{code}"))
    begin = starts[line - 1]
    end = starts[line] if line < len(starts) else len(text)
    stop = begin + len(text[begin:end].rstrip("\r\n"))
    words = f"# torchpin: ignore[{code}]"
    file = _whole(document)
    if file.kind != "dockerfile":  # there a comment has a line of its own
        drafts.append(Edit(Span(stop, stop), f"  {words}"))
    above = line
    while above > 1 and text[starts[above - 2] : starts[above - 1]].rstrip().endswith("\\"):
        above -= 1
    for number in dict.fromkeys((line, above)):
        at = starts[number - 1]
        end = starts[number] if number < len(starts) else len(text)
        row = text[at:end]
        indent = row[: len(row) - len(row.lstrip(" \t"))]
        drafts.append(Edit(Span(at, at), f"{indent}{words}{document.newline}"))
    for draft in drafts:
        if _silences(file, draft, offset, code, in_part=document.kind == "part"):
            return draft
    return None


def _whole(document: Document) -> Document:
    """Return the document of a file anew: that of a part of it holds the part alone."""
    from torchpin.documents.kinds import kind_of
    from torchpin.documents.loader import kind_by_text

    data = document.encode(document.text)
    return read_as(kind_of(document.path) or kind_by_text(data), document.path, data)


def _silences(document: Document, draft: Edit, offset: int, code: str, *, in_part: bool) -> bool:
    text = apply_edits(document.text, (draft,))
    after = read_as(document.kind, document.path, document.encode(text))
    moved = offset + (len(draft.text) if draft.span.start <= offset else 0)
    line = position(line_starts(text), moved).line
    # What a reader does not take for a comment silences nothing: within a string, behind FROM.
    held = [part.document.comments for part in after.parts] if in_part else [after.comments]
    return _asked(after) == _asked(document) and any(
        one.covers(code, line)
        and all(any(span.start <= one.span.start < span.end for span in some) for some in held)
        for one in suppressions(after)
    )


def _asked(document: Document) -> list[object]:
    """Return what a document asks for, wherever it stands in it."""
    out: list[object] = []
    for one in (document, *(part.document for part in document.parts)):
        out.append([(ask.name, ask.specifier, ask.url, ask.marker) for ask in one.declarations])
        out.append([(index.option, index.url) for index in one.indexes])
        out.append([include.path for include in one.includes])
        out.append([problem.message for problem in one.problems])
    out.append(len(document.parts))
    if document.lock is not None:
        out.append([(one.name, one.version) for one in document.lock.packages])
    return out


def joined(edits: Iterable[tuple[str, Sequence[Edit]]]) -> dict[str, list[Edit]]:
    """Return edits by path: those of several parts of one file together."""
    out: dict[str, list[Edit]] = {}
    for path, some in edits:
        out.setdefault(path, []).extend(some)
    return out
