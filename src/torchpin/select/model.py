"""The words of selection: index kinds, installs, selections."""

from __future__ import annotations

from torchpin.catalog.model import Build
from torchpin.documents.base import Declaration, Document, IndexLine
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple


class IndexKind(NamedTuple):
    """What a URL is, by its form."""

    kind: str
    """``channel`` · ``pypi`` · ``root`` (``/whl``) · ``nightly`` · ``test`` · ``legacy``
    (``torch_stable.html``) · ``private`` · ``unknown``."""
    channel: str | None = None
    """For ``channel``, ``nightly`` and ``test``: ``cu126``."""
    project: str | None = None
    """Set if the URL is the page of one project (``/whl/cu126/torch/``)."""


class PlacedIndex(NamedTuple):
    """An index line in its document, or one that the client adds (PyPI: document and line None)."""

    document: Document | None
    line: IndexLine | None
    option: str
    url: str
    """``""`` for the default PyPI."""
    kind: IndexKind


class Placed(NamedTuple):
    """A declaration in its document."""

    document: Document
    declaration: Declaration


class Unread(NamedTuple):
    """An include that is not followed: what it asks for is unknown."""

    document: Document
    because: str
    """One sentence."""
    offset: int
    """Of the include in its document."""
    constraint: bool
    """It only limits versions, so that an exact pin means what it says."""


class Install(NamedTuple):
    """What one command would install."""

    root: Document
    """The document given on the command line."""
    name: str | None
    """Extra, group or fork; None for the plain install."""
    client: str
    """``pip`` or ``uv``."""
    documents: tuple[Document, ...]
    """The root and everything that it includes, each once, in reading order."""
    requirements: tuple[Placed, ...]
    constraints: tuple[Placed, ...]
    indexes: tuple[PlacedIndex, ...]
    """Effective indexes in the client's order of priority (pip: one pool, order as written)."""
    discarded: tuple[PlacedIndex, ...]
    """Index lines that a later ``--index-url`` throws away (pip)."""
    pre: bool = False
    no_index: bool = False
    problems: tuple[tuple[Document, str, int], ...] = ()
    """Missing includes and the like: document, message, offset."""
    lock: Document | None = None
    """The lock that installs in place of the manifest."""
    extras: tuple[str, ...] = ()
    """Extras of the project that are enabled."""
    groups: tuple[str, ...] = ()
    """Dependency groups that are enabled, the default ones included."""
    siblings: tuple[Document, ...] = ()
    """Manifests of the workspace that are locked together with the root (the root excluded)."""
    private: tuple[tuple[str, str], ...] = ()
    """What the profile says about URLs, for the indexes that only sources name."""
    unread: tuple[Unread, ...] = ()
    """Includes that are not followed."""
    settings: Document | None = None
    """uv: the file whose settings hold in place of the project's own (``uv.toml``)."""
    best_match: bool = False
    """``uv pip install --index-strategy unsafe-best-match``: every index counts."""
    torch_backend: str | None = None
    """``uv pip install --torch-backend cu126``: where the PyTorch packages come from, and only
    they."""


class Miss(NamedTuple):
    """Why an installer finds no build. ``kind`` is one of:

    ``version`` never published · ``python`` · ``platform`` · ``glibc`` · ``label-not-on-index`` ·
    ``not-on-channel`` (exists, outside the channel) · ``yanked`` · ``nightly`` · ``companion``
    (no version accepts the chosen torch) · ``specifier`` (cannot be parsed) · ``no-index``.
    """

    kind: str
    message: str
    """One sentence with the names and versions in it."""
    evidence: str
    source: str
    channel: str | None = None
    first: str | None = None
    last: str | None = None
    """First and last release of the package on the channel, where that is the reason."""
    cure: str = ""
    """What the project may say instead so that there is a build (``requires-python = "…"``)."""


class Selection(NamedTuple):
    """The build that an installer would pick for a package of an install on a target."""

    package: str
    placed: Placed | None
    """Its first declaration whose marker holds; None: implied by another package."""
    implied_by: str | None
    target: Target
    status: str
    """``selected`` · ``none`` · ``unknown`` · ``skipped`` (no declaration applies here)."""
    build: Build | None
    chosen_from: PlacedIndex | None
    miss: Miss | None
    because: str
    """Why this build, or why it is unknown: one sentence."""
    exact: bool = False
    """The file fixes the version (``==`` without a wildcard, a direct URL, a hash)."""
    inferred: bool = False
    """The choice itself rests on inferred facts (a Python tag, an existence)."""


class SelectedSet(NamedTuple):
    """All selections of one install on one target; they were chosen together."""

    install: Install
    target: Target
    selections: tuple[Selection, ...]
    conflict: str | None = None
    """Set if the declarations exclude each other: the client would stop with an error."""
