"""The words of rules: findings and fixes."""

from __future__ import annotations

from torchpin.documents.base import Document, Edit, Span
from torchpin.named import NamedTuple

ERROR = "error"
WARNING = "warning"
INFO = "info"
SEVERITIES = (INFO, WARNING, ERROR)

SAFE = "safe"
UNSAFE = "unsafe"
DISPLAY = "display"


class Because(NamedTuple):
    """One ground of a finding."""

    text: str
    evidence: str
    source: str


class Related(NamedTuple):
    """Another place that belongs to a finding."""

    path: str
    line: int
    message: str


class FileEdits(NamedTuple):
    """The edits of one document."""

    document: Document
    edits: tuple[Edit, ...]


class Fix(NamedTuple):
    """How a finding can be mended."""

    safety: str
    """``safe``, ``unsafe`` or ``display`` (advice only, no edits)."""
    message: str
    edits: tuple[FileEdits, ...] = ()
    command: str | None = None
    """What to run afterwards or instead (relock, recompile)."""


class Finding(NamedTuple):
    """A rule that does not hold at a place."""

    code: str
    name: str
    severity: str
    document: Document | None
    """None for a finding about the fleet profile or an unreadable file."""
    path: str
    span: Span
    message: str
    package: str | None = None
    group: str | None = None
    """Names of the node groups it concerns, comma-separated; None if it needs no fleet."""
    python: str | None = None
    because: tuple[Because, ...] = ()
    related: tuple[Related, ...] = ()
    fix: Fix | None = None
    cells: tuple[tuple[tuple[str, str], ...], ...] = ()
    """Of a job with a matrix: the cells that it concerns (names and values), as few names as tell
    them from the others; empty if it concerns them all, or there is no matrix."""
