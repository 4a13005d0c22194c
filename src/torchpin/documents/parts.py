"""Installs that are written inside a file of another kind: a Dockerfile's ``RUN``, a CI step.

A file that is not itself a list of requirements (``Dockerfile``, ``tox.ini``, ``environment.yml``,
a script) holds any number of *parts*. Each part is what one command or one section installs, in
the words that requirements files have: declarations, index lines, includes. All spans count in the
text of the whole file, so that findings and edits land where the user wrote the words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from torchpin.documents import base
from torchpin.documents.base import Document, Problem, Span
from torchpin.documents.lines import Logical
from torchpin.named import NamedTuple

if TYPE_CHECKING:
    from torchpin.documents.atoms import Word


Cell = tuple[tuple[str, str], ...]
"""Names and values of one cell of a matrix: ``(("python", "3.11"), ("cuda", "cu124"))``."""
IMAGE = base.IMAGE
"""``Part.syntax`` of a base image itself: no command, what the image brings."""

HOOK = "a hook runs where people commit, on no machine of the fleet"
"""``Part.elsewhere`` of what pre-commit installs."""


class Image(NamedTuple):
    """The base image of a container stage, or of a CI job."""

    reference: str
    """As written, variables substituted: ``nvidia/cuda:12.6.3-runtime-ubuntu22.04``."""
    span: Span


class Reserved(NamedTuple):
    """What says that a GPU is there: the words of a compose file that reserve one."""

    words: str
    """``capabilities: [gpu]``; ``""``: none is reserved, but for other services."""
    service: str
    path: str
    """The file that they stand in, and where."""
    line: int
    of: tuple[str, str] = ("", "")
    """Of a part in another file: path of that file, and the name of the part."""


class Part(NamedTuple):
    """What one command or section of a file installs."""

    document: Document
    """Kind ``part``. Path, text, encoding and line ends are those of the whole file; declarations,
    index lines, includes, options and problems are those of this part alone."""
    name: str
    """What a user calls it, unique in the file: ``stage build, line 12``, ``testenv:py311``."""
    client: str
    """Whose rules select: ``pip`` or ``uv``."""
    span: Span
    """The command or section."""
    syntax: str
    """How its words are quoted and where an option may be added: ``shell``, ``argument-list``
    (JSON form of ``RUN``), ``toml``, ``yaml``, ``ini``, ``python``, ``requirements``; ``image``."""
    options_at: int | None = None
    """Offset where ``--index-url URL`` may be inserted for this part; None: nowhere."""
    python: str | None = None
    """PEP 440 specifier or version of the Python that the file itself chooses."""
    pythons: tuple[str, ...] = ()
    """Of an environment that only tests: the version of each Python that it is made with (several
    environments may install the same); ``""``: any, one of the fleet's."""
    platform: str | None = None
    """Machine that the file itself chooses (``linux-x86_64`` …; ``linux``: any Linux), None: the
    fleet's."""
    image: Image | None = None
    runner: Image | None = None
    """A machine without a GPU that the file itself chooses: the label of a hosted CI runner."""
    elsewhere: str | None = None
    """Why its machine need not be one of the fleet: what rests on hardware is no error then."""
    torch_backend: str | None = None
    """``uv pip install --torch-backend cu126`` or ``UV_TORCH_BACKEND``: as written."""
    uncertain: str | None = None
    """Why the words may not be what runs (a variable without a value, a shell function): one
    sentence. What rests on it is never an error."""
    command: bool = False
    """The index lines are options of one command line: they all count before any file that it
    includes, and more than one may follow another. False: they are lines of a requirements list."""
    environment: str = ""
    """Parts of a file with the same environment install into it one after the other; ``a/b`` finds
    what is in ``a`` as well; ``#`` marks one apart from that of the image (a virtual one)."""
    upgrade: bool = False
    """``--upgrade``: what is installed already does not count."""
    words: tuple[tuple[Span, Word], ...] = ()
    """Of a command: the words of requirements and URLs, by the ``line_span`` of what was read from
    them, with the places of their variables."""
    best_match: bool = False
    """``uv pip install --index-strategy unsafe-best-match`` or ``UV_INDEX_STRATEGY``."""
    settings: tuple[tuple[str, str], ...] = ()
    """Of ``uv pip``: options and URLs that a project file where it runs adds to its own."""
    backend: Word = ()
    """The value of ``torch_backend``, with its place."""
    slips: tuple[Problem, ...] = ()
    """Where the shell takes something for what is not meant; the installer never sees it."""
    marker: str | None = None
    """Environment marker under which the part runs at all (a matrix entry, a platform branch)."""
    gpu: Reserved | None = None
    """What says that a GPU is there."""
    without_gpu: bool = False
    """It is for services that reserve no GPU, beside others that do."""
    written_in: str = ""
    """Of a part of a file that this one calls: that file."""
    cell: Cell = ()
    """Of a job with a matrix: the values of the cell that the part stands for, by their names."""


def file_of(path: str, data: bytes, kind: str) -> Document:
    """Return the document of a file that holds parts: its text, and nothing read from it yet.

    Bytes that are no UTF-8 (and have no mark or coding comment) are read as Latin-1, which keeps
    every byte; NUL bytes give an empty text and a problem. A reader fills ``comments`` and
    ``parts`` with ``_replace``.
    """
    from torchpin.documents.decode import decode
    from torchpin.documents.requirements import newline_of

    decoded = decode(data, "latin-1")
    problems: tuple[Problem, ...] = ()
    if decoded.problem not in ("", "encoding"):
        problems = (Problem(decoded.message, Span(0, 0), decoded.problem),)
    return Document(
        path=path,
        kind=kind,
        text=decoded.text,
        encoding=decoded.encoding,
        bom=decoded.bom,
        newline=newline_of(decoded.text),
        declarations=(),
        indexes=(),
        includes=(),
        options=(),
        problems=problems,
        comments=(),
    )


def verbatim(text: str, start: int, end: int) -> Logical:
    """Return ``text[start:end]`` as a requirement line that stands there as it is.

    Blanks at both ends are left out; the span of the line is the rest.
    """
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return Logical(text[start:end], [0], [start], {}, Span(start, end), None)


def quoted(value: str, text: str, start: int, end: int) -> Logical:
    """Return a requirement line that ``text[start:end]``, the inside of quotes, stands for.

    Where escapes or the like make ``value`` differ from the text, the whole of it counts as one
    variable: it is judged, and never edited.
    """
    if text[start:end] == value:
        return verbatim(text, start, end)
    return Logical(value.strip(), [0], [start], {0: end}, Span(start, end), None)


def pieces(parts: Sequence[tuple[str, int, int, bool]], span: Span) -> Logical:
    """Return a line that is put together from pieces: value, start, end, and whether the text
    there is the value itself.

    Those that are not (variables, escapes) are judged by their value, and never edited.
    """
    starts: list[int] = []
    raw: list[int] = []
    opaque: dict[int, int] = {}
    length = 0
    for value, start, end, plain in parts:
        if not value:
            continue
        if not plain:
            opaque[len(starts)] = end
        starts.append(length)
        raw.append(start)
        length += len(value)
    if not starts:
        return Logical("", [0], [span.start], {}, span, None)
    return Logical("".join(one[0] for one in parts), starts, raw, opaque, span, None)


def part_of(
    file: Document,
    lines: Iterable[Logical],
    *,
    name: str,
    span: Span,
    syntax: str,
    client: str = "pip",
    scope: str = "",
) -> Part:
    """Return a part whose lines are those of a requirements file, one requirement or option each.

    They are read by the one reader of requirement lines; other fields are set with ``_replace``.
    ``scope`` is that of its declarations.
    """
    from torchpin.documents.requirements import read_lines

    found = read_lines(lines)
    declarations = found.declarations
    if scope:
        declarations = tuple(one._replace(scope=scope) for one in declarations)
    document = file._replace(
        kind="part",
        declarations=declarations,
        indexes=found.indexes,
        includes=found.includes,
        options=found.options,
        problems=found.problems,
        parts=(),
    )
    return Part(document, name, client, span, syntax)
