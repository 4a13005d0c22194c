"""What a project file says beyond its declarations: sources, indexes, conflicts, environments."""

from __future__ import annotations

from torchpin.documents.base import Span
from torchpin.named import NamedTuple


class Source(NamedTuple):
    """One entry that pins a package to a place (``[tool.uv.sources]``; Poetry's ``source``)."""

    package: str
    """Canonical name."""
    kind: str
    """``index``, ``url``, ``git``, ``path`` or ``workspace``."""
    value: str
    """Index name, URL or path; ``""`` for a workspace member."""
    marker: str | None
    extra: str | None
    group: str | None
    span: Span
    """The entry: the inline table, or the whole sub-table."""
    value_span: Span | None
    """Inside the quotes of the index name, URL or path."""
    marker_span: Span | None
    """Inside the quotes of the marker."""
    key_span: Span
    """The package's key."""
    listed: bool = False
    """One of a list of entries."""


class Enriched(NamedTuple):
    """One entry of Poetry's own tables for a package that ``[project]`` asks for.

    It adds a source, a marker and bounds to the requirement, which stays where it is.
    """

    package: str
    """Canonical name."""
    group: str | None
    specifier: str
    """PEP 440."""
    understood: bool
    """False where PEP 440 cannot say the constraint."""
    marker: str | None
    source: str | None
    """Name of the source."""


class ProjectIndex(NamedTuple):
    """One index of a project file."""

    tool: str
    """``uv`` (``[[tool.uv.index]]``), ``uv-url`` (``index-url``, ``extra-index-url``,
    ``find-links``, also under ``[tool.uv.pip]`` with ``scope`` ``pip``), ``poetry``, ``pdm``."""
    name: str | None
    url: str
    explicit: bool
    default: bool
    """uv: ``default = true`` or ``index-url``; Poetry: priority ``primary`` or ``default``."""
    option: str
    """What it is in pip's words: ``--index-url``, ``--extra-index-url`` or ``--find-links``."""
    span: Span
    """The whole table with its header, or the key and its value."""
    url_span: Span
    """Inside the quotes."""
    name_span: Span | None
    explicit_span: Span | None
    """The value of ``explicit`` (``true``); None if the key is missing."""
    priority: str | None = None
    """Poetry."""
    scope: str = ""
    include: tuple[str, ...] = ()
    """PDM: patterns of the packages that come from here alone (``include_packages``)."""
    exclude: tuple[str, ...] = ()
    """PDM: patterns of the packages that never come from here (``exclude_packages``)."""


class ConflictItem(NamedTuple):
    """One member of a conflict set."""

    package: str | None
    extra: str | None
    group: str | None


class ConflictSet(NamedTuple):
    """Extras and groups that exclude each other (``[tool.uv] conflicts``)."""

    items: tuple[ConflictItem, ...]
    span: Span


class Setting(NamedTuple):
    """A single setting that a rule or select looks at: ``torch-backend``, ``index-strategy`` …"""

    key: str
    """Dotted path without ``tool.``: ``uv.torch-backend``, ``uv.pip.torch-backend``."""
    value: str
    span: Span
    """Key and value."""


class Table(NamedTuple):
    """Where a table stands, for insertions."""

    path: tuple[str, ...]
    """``("tool", "uv", "sources")``."""
    array: bool
    """``[[…]]``."""
    header: Span
    body_end: int
    """Offset behind the last line that belongs to it (comments and blanks after it excluded)."""


class Project(NamedTuple):
    """A ``pyproject.toml`` or ``uv.toml``."""

    tool: str
    """Who owns it: ``uv``, ``poetry``, ``pdm``, ``hatch`` or ``pip`` (none of them)."""
    name: str
    requires_python: str | None
    requires_python_span: Span | None
    extras: tuple[str, ...]
    """Declared extras, as written."""
    groups: tuple[str, ...]
    """Declared dependency groups, as written (``dev`` for ``dev-dependencies``)."""
    default_groups: tuple[str, ...]
    """uv: ``default-groups`` (``dev``), ``("*",)`` for all; Poetry: all but the optional."""
    sources: tuple[Source, ...]
    indexes: tuple[ProjectIndex, ...]
    """In order of priority as the tool reads them."""
    conflicts: tuple[ConflictSet, ...]
    environments: tuple[str, ...]
    """``[tool.uv] environments`` markers; empty: all."""
    required_environments: tuple[str, ...]
    settings: tuple[Setting, ...]
    workspace_members: tuple[str, ...]
    workspace_exclude: tuple[str, ...]
    tables: tuple[Table, ...]
    """Every table header in order."""
    package: bool = True
    """False for ``[tool.uv] package = false``."""
    published: bool = False
    """True where the file looks like metadata of a library (a build backend and a package)."""
    group_includes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Groups that hold others (``include-group``), with these, as written: the declarations of an
    included group stand in ``Document.declarations`` once, under the group's own name."""
    ignored: str = ""
    """Why uv passes over the settings of ``[tool.uv]`` (indexes, ``resolution`` …), but not over
    what belongs to the project (sources, conflicts, constraints …); ``""`` if it does not."""
    uv_table: bool = False
    """The file has a ``[tool.uv]``, so that uv looks for settings no further (``uv.toml``: it is
    one)."""
    enriched: tuple[Enriched, ...] = ()
    """Poetry: what its own tables add to requirements of ``[project]``."""


class LockedWheel(NamedTuple):
    """One file of a locked package."""

    filename: str
    url: str
    hash: str | None
    """``sha256:…``; None if the lock has none."""


class LockedUse(NamedTuple):
    """One edge of the lock: who uses a package, under which marker."""

    by: str
    """Name of the package that has the dependency."""
    extra: str | None
    """``package.optional-dependencies`` it stands in."""
    group: str | None
    """``package.dev-dependencies`` group it stands in."""
    version: str | None
    """The build that the edge names; None if there is only one."""
    source: str | None
    marker: str | None
    """May hold uv's encoded conflicts: ``extra == 'extra-4-demo-cu126'``."""
    extras: tuple[str, ...] = ()


class LockedPackage(NamedTuple):
    """One ``[[package]]`` of a lock."""

    name: str
    version: str
    """With its label."""
    source: str
    """Registry URL, ``""`` for the default or unknown, ``virtual``/``editable``/``git`` … as
    ``kind:value``."""
    markers: tuple[str, ...]
    """``resolution-markers`` (uv) or ``markers`` (Poetry): the forks that this build is for."""
    wheels: tuple[LockedWheel, ...]
    span: Span
    version_span: Span
    source_span: Span | None
    uses: tuple[LockedUse, ...] = ()
    """Edges *from* this package to packages of the lock's list (``by`` is the used package
    here)."""
    requires_python: str | None = None
    groups: tuple[str, ...] = ()
    """Poetry, PDM: the dependency groups that it belongs to; empty where the lock has none."""
    optional: bool = False
    """Poetry: installed only where an extra asks for it."""
    sdist: bool = False
    """The lock lists a source distribution, too, from which the client would build."""
    group_markers: tuple[tuple[str, str], ...] = ()
    """Poetry 2: markers that hold for one group only."""


class LockedRequirement(NamedTuple):
    """One entry of ``requires-dist`` or ``requires-dev`` that uv recorded from the manifest."""

    package: str
    specifier: str
    marker: str | None
    index_url: str | None
    extra: str | None
    group: str | None
    by: str = ""
    """The package whose metadata it is; ``""`` for the workspace's own (``[manifest]``)."""
    kind: str = ""
    """``""`` for a requirement, else ``constraint`` or ``override``."""
    conflict: ConflictItem | None = None
    """The member of a conflict set that routes it."""
    extras: tuple[str, ...] = ()
    """Extras of the required package."""
    url: str | None = None
    """Where it comes from if not from an index, as ``kind:value``."""


class Lock(NamedTuple):
    """A lock file, as far as the family and the root packages go."""

    tool: str
    """``uv``, ``poetry``, ``pdm``, ``pylock``, ``pipenv``."""
    version: str
    requires_python: str | None
    resolution_markers: tuple[str, ...]
    conflicts: tuple[ConflictSet, ...]
    packages: tuple[LockedPackage, ...]
    """Watched packages, those of the project itself (source ``virtual``, ``editable`` …), and
    those that lead to a watched package (without their wheels)."""
    manifest: tuple[LockedRequirement, ...]
    """What the lock recorded from the manifest for watched packages."""
    complete: bool = True
    """False if only a part could be read."""
    supported_markers: tuple[str, ...] = ()
    """Where the lock holds at all (``environments``); empty: everywhere."""
    members: tuple[str, ...] = ()
    """uv: names of the workspace's members; empty for a single project."""
    extras: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Poetry: packages of each extra. pylock: the extras, without packages."""
    groups: tuple[str, ...] = ()
    """pylock, PDM: the groups that it was made for."""
    default_groups: tuple[str, ...] = ()
    """pylock: ``default-groups``."""
    content_hash: str | None = None
    """Poetry, PDM: digest of the manifest that it was made from."""
