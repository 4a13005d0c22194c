"""What was found, as JSON and back."""

from __future__ import annotations

import os

from torchpin import seen
from torchpin.documents.base import Document, Edit, Span
from torchpin.report.model import CheckView
from torchpin.report.style import redact
from torchpin.rules.model import Because, FileEdits, Finding, Fix, Related

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TYPES: dict[str, Any] = {
    one.__name__: one for one in (Because, CheckView, Edit, FileEdits, Finding, Fix, Related, Span)
}
_DOCUMENT = "Document"
_NO_TEXT = -1
"""In place of the length of a byte order mark, of a document without text."""


class UnfitError(Exception):
    """A result that is not kept; the message says why."""


def pack(
    view: CheckView, notes: tuple[str, ...], trace: seen.Trace
) -> tuple[dict[str, Any] | None, str]:
    """Return the entry of a result, or None and why it cannot be kept."""
    packer = _Packer(trace)
    places = {one.path for one in view.findings}
    places.update(place.path for one in view.findings for place in one.related)
    view = view._replace(documents=tuple(one for one in view.documents if one.path in places))
    try:
        packed = packer.value(view)
        told = packer.value(notes)
    except UnfitError as reason:
        return None, str(reason)
    entry = {
        "walk": trace.walk,
        "asked": asked_of(trace),
        "texts": packer.texts,
        "documents": packer.documents,
        "view": packed,
        "notes": told,
    }
    return entry, ""


def asked_of(trace: seen.Trace) -> list[list[str]]:
    """Return the questions that the listing of the folders does not answer by itself.

    Of what exists, where its links lead counts too: files are told apart by it.
    """
    asked = []
    for (question, about), answer in trace.answers.items():
        known = trace.files.get(about)
        if known is not None and (
            (question == seen.STATE and answer == "file")
            or (question == seen.READ and answer == known)
        ):
            continue
        real = os.path.realpath(about) if question == seen.READ and "\0" not in about else ""
        asked.append([question, about, answer, real])
    return asked


class _Packer:
    """Turns values into JSON: tuples become lists, words of torchpin tables of one key."""

    def __init__(self, trace: seen.Trace) -> None:
        self.trace = trace
        self.texts: dict[str, str] = {}
        """Files whose text is shown, and their digests."""
        self.documents: list[list[str | int]] = []
        self.places: dict[tuple[str, int], int] = {}

    def value(self, value: object) -> Any:
        """Return a value as JSON.

        Raises:
            UnfitError: it cannot be written so, or shows what looks like a credential.
        """
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, str):
            if ("@" in value or "://" in value) and redact(value) != value:
                raise UnfitError("a finding shows what looks like a credential")
            return value
        if isinstance(value, Document):
            return {_DOCUMENT: self.document(value)}
        name = type(value).__name__
        if isinstance(value, tuple):
            items = [self.value(one) for one in value]
            if type(value) is tuple:
                return items
            if _TYPES.get(name) is type(value):
                return {name: items}
        raise UnfitError(f"a {name} cannot be kept")

    def document(self, document: Document) -> int:
        """Return the place of a document in the table; its text is read anew from its file."""
        key = (document.path, id(document.text))
        if key in self.places:
            return self.places[key]
        path = document.path
        digest = self.trace.answers.get((seen.READ, path))
        try:
            written = document.encode(document.text)
        except (UnicodeError, LookupError) as error:
            raise UnfitError("a text cannot be written back") from error
        shown = bool(document.text)  # of what cannot be decoded there is no text
        if digest is None or (shown and digest != seen.digest(written)):
            raise UnfitError("a text is not that of its file")
        self.texts[path] = digest
        place = self.places[key] = len(self.documents)
        bom = len(document.bom) if shown else _NO_TEXT
        self.documents.append([path, document.kind, document.encoding, bom])
        return place


def unpack(
    entry: dict[str, Any], contents: dict[str, bytes]
) -> tuple[CheckView, tuple[str, ...]] | None:
    """Return the view and the notes of an entry; None if it has another form. Never raises."""
    try:
        documents = [_document(*one, contents=contents) for one in entry["documents"]]
        view = _value(entry["view"], documents)
        notes = _value(entry["notes"], documents)
    except (KeyError, TypeError, ValueError, LookupError, AttributeError, RecursionError):
        return None
    if not isinstance(view, CheckView) or not isinstance(notes, tuple):
        return None
    return view, notes


def _document(
    path: str, kind: str, encoding: str, bom: int, *, contents: dict[str, bytes]
) -> Document:
    """Return what a report shows of a document: its text."""
    data = contents[path] if bom != _NO_TEXT else b""
    text = data[max(bom, 0) :].decode(encoding)
    return Document(path, kind, text, encoding, data[:bom], "\n", (), (), (), (), (), ())


def _value(value: Any, documents: list[Document]) -> Any:
    if isinstance(value, list):
        return tuple([_value(one, documents) for one in value])
    if isinstance(value, dict):
        ((name, held),) = value.items()
        if name == _DOCUMENT:
            return documents[held]
        return _TYPES[name]._make([_value(one, documents) for one in held])
    return value
