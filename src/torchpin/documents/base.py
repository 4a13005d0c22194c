"""What every reader returns: a document, its declarations, index lines and problems, with spans.

All offsets count characters of ``Document.text`` (decoded, without BOM). Values are
``NamedTuple`` because they are immutable and cost almost nothing to import.
"""

from __future__ import annotations

from bisect import bisect_right

from torchpin.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torchpin.documents.conda import Conda
    from torchpin.documents.parts import Part, Reserved
    from torchpin.documents.project import Lock, Project

IMAGE = "image"
"""``Part.syntax`` of a base image itself: no command, what the image brings."""


class Span(NamedTuple):
    """Half-open range of offsets ``[start, end)`` into ``Document.text``."""

    start: int
    end: int


class Edit(NamedTuple):
    """Replace the text of ``span`` by ``text``."""

    span: Span
    text: str


class Hash(NamedTuple):
    """One ``--hash=ALGORITHM:DIGEST`` of a declaration; ``span`` covers the whole option."""

    algorithm: str
    digest: str
    span: Span


class OptionText(NamedTuple):
    """An option written behind a requirement, or any global option line that is not an index.

    ``name`` is the long form as pip spells it (``--pre``); ``value`` is None for flags.
    """

    name: str
    value: str | None
    span: Span
    value_span: Span | None


class Declaration(NamedTuple):
    """One place in a document that asks for a package."""

    name: str
    """Canonical name (PEP 503), ``""`` for an unnamed URL or path requirement."""
    specifier: str
    """PEP 440 specifier text after variable substitution, ``""`` if none: ``==2.14.0+cu126``."""
    extras: tuple[str, ...]
    url: str | None
    """Direct reference (``name @ URL``, a bare URL or a path), variables substituted."""
    marker: str | None
    """PEP 508 marker text without the semicolon."""
    scope: str
    """``""`` for plain, ``"extra:NAME"``, ``"group:NAME"``, ``"build"``, ``"constraint"``,
    ``"override"``; ``"env:NAME"`` for a Hatch environment."""
    span: Span
    """From the name to the end of the marker, without options and comment."""
    line_span: Span
    """The logical line with its continuations and comment, without its final line end."""
    name_span: Span
    specifier_span: Span | None
    """From the first operator to the end of the last version (parentheses not included)."""
    marker_span: Span | None
    """The marker text, without the semicolon."""
    url_span: Span | None
    hashes: tuple[Hash, ...] = ()
    options: tuple[OptionText, ...] = ()
    editable: bool = False
    from_variable: bool = False
    """Some part came from ``${VAR}``: it is judged if the value is known, and never edited."""
    valid: bool = True
    """False where pip refuses the line (``torch=2.1``); see ``Document.problems``."""


class IndexLine(NamedTuple):
    """One place that says where packages come from."""

    option: str
    """``--index-url``, ``--extra-index-url``, ``--find-links`` or ``--no-index``."""
    url: str
    """URL or path with variables substituted; ``""`` for ``--no-index``."""
    span: Span
    """The option and its value."""
    url_span: Span
    line_span: Span
    from_variable: bool = False
    misplaced: bool = False
    """Written behind a requirement on the same line, where pip refuses it."""


class Include(NamedTuple):
    """``-r FILE`` or ``-c FILE``."""

    path: str
    """As written, variables substituted; relative to the including document."""
    constraint: bool
    span: Span
    order: int
    """Offset in the text; declarations, index lines and includes share one order."""


class Problem(NamedTuple):
    """Something in the text that the owning tool refuses, or that cannot be understood."""

    message: str
    span: Span
    code: str
    """``syntax``, ``specifier``, ``option``, ``decode`` … (stable words, for rules)."""


class Document(NamedTuple):
    """One dependency file, read without losing a byte."""

    path: str
    kind: str
    """``requirements``, ``pyproject``, ``uv.toml``, ``uv.lock``, ``poetry.lock`` …"""
    text: str
    encoding: str
    """Codec for writing it back, without its BOM: ``utf-8``, ``utf-16-le``, ``latin-1`` …"""
    bom: bytes
    newline: str
    """The line end that most lines use; what inserted lines get."""
    declarations: tuple[Declaration, ...]
    indexes: tuple[IndexLine, ...]
    includes: tuple[Include, ...]
    options: tuple[OptionText, ...]
    """Other global options in order: ``--pre``, ``--no-binary`` …"""
    problems: tuple[Problem, ...]
    comments: tuple[Span, ...]
    """Every comment, ``#`` included: suppressions and headers are read from them."""
    project: Project | None = None
    """Of a ``pyproject.toml`` or ``uv.toml``."""
    lock: Lock | None = None
    """Of a lock file."""
    parts: tuple[Part, ...] = ()
    """Of a file that is no list of requirements itself: what its commands and sections install."""
    conda: Conda | None = None
    """Of an ``environment.yml`` or a Pixi manifest: what conda installs."""
    called: tuple[tuple[str, bytes], ...] = ()
    """Of a file of parts: the other files that its reader has read, and their bytes."""
    reserved: tuple[Reserved, ...] = ()
    """Of a compose file: the parts of other files that are for its services with GPUs."""

    def encode(self, text: str) -> bytes:
        """Return ``text`` as the bytes of this document (its BOM and encoding).

        Raises:
            UnicodeEncodeError: a character does not exist in the encoding of the document.
        """
        return self.bom + text.encode(self.encoding)


class Position(NamedTuple):
    """1-based line and column; columns count characters."""

    line: int
    column: int


_latest: tuple[str, list[int]] = ("", [0])
"""The text that was asked about last, and its lines: findings come file by file."""


def line_starts(text: str) -> list[int]:
    """Return the offset of each line start; lines end as editors see them (LF, CRLF, CR).

    The list is shared with the next caller: it is not to be changed.
    """
    global _latest
    if _latest[0] is not text:
        _latest = (text, starts_of(text))
    return _latest[1]


def starts_of(text: str) -> list[int]:
    """Return the offset of each line start, as ``line_starts`` does, in a list of the caller's."""
    starts = [0]
    lf, cr = text.find("\n"), text.find("\r")
    while lf >= 0 or cr >= 0:
        newline = lf if cr < 0 or 0 <= lf < cr else cr
        index = newline + (2 if text.startswith("\r\n", newline) else 1)
        starts.append(index)
        # Only what was passed is looked for again: a text may hold one kind of line end only.
        if 0 <= lf < index:
            lf = text.find("\n", index)
        if 0 <= cr < index:
            cr = text.find("\r", index)
    return starts


def position(starts: list[int], offset: int) -> Position:
    """Return the position of ``offset``, given ``line_starts(text)``."""
    line = bisect_right(starts, offset)
    return Position(line, offset - starts[line - 1] + 1)


def apply_edits(text: str, edits: tuple[Edit, ...]) -> str:
    """Return ``text`` with all edits applied.

    Raises:
        ValueError: two edits overlap or a span lies outside the text.
    """
    out: list[str] = []
    at = 0
    for edit in sorted(set(edits)):
        if edit.span.start < at or not edit.span.start <= edit.span.end <= len(text):
            raise ValueError(f"edit {edit.span} overlaps another or lies outside the text")
        out += (text[at : edit.span.start], edit.text)
        at = edit.span.end
    out.append(text[at:])
    return "".join(out)
