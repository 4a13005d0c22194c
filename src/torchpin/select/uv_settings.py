"""The settings of uv that change what ``uv lock`` chooses, and those that nobody can foretell.

They come from one file (``Install.settings``, else the project itself); what belongs to the project
comes from its own file whatever that is (see ``documents.uv_beside``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from packaging.version import Version

from torchpin.documents.base import Document
from torchpin.documents.project import Project
from torchpin.documents.requirement import canonical
from torchpin.named import NamedTuple
from torchpin.select.model import Install
from torchpin.select.uv_dates import Cutoff, cutoff_of

LOWEST, DIRECT = "lowest", "lowest-direct"


class Scoped(NamedTuple):
    """Exclusions or overrides for the dependencies of one package."""

    version: Version | None
    """Of the package; None: any."""
    texts: tuple[str, ...]
    """Names, or requirements."""


class Metadata(NamedTuple):
    """What stands in for the METADATA of a package (``dependency-metadata``)."""

    version: Version | None
    requires: tuple[str, ...]


class UvSettings(NamedTuple):
    """What ``uv lock`` goes by, beside the requirements."""

    resolution: str = ""
    fewest: bool = False
    """``fork-strategy = "fewest"``."""
    strategy: str = ""
    """``index-strategy``."""
    no_sources: bool = False
    sourceless: frozenset[str] = frozenset()
    """Packages whose sources do not count (``no-sources-package``)."""
    cutoff: Cutoff | None = None
    """``exclude-newer``."""
    cutoffs: Mapping[str, Cutoff | None] = {}
    """``exclude-newer-package``; None: no limit for the package."""
    metadata: Mapping[str, tuple[Metadata, ...]] = {}
    wheelless: frozenset[str] | None = frozenset()
    """Packages of which no wheel is taken (``no-binary``); None: all."""
    buildless: frozenset[str] | None = frozenset()
    """Packages that are never built (``no-build``); None: all."""
    excluded: frozenset[str] = frozenset()
    """Packages that nobody's dependencies bring (``exclude-dependencies``)."""
    excluded_of: Mapping[str, tuple[Scoped, ...]] = {}
    overrides_of: Mapping[str, tuple[Scoped, ...]] = {}
    group_pythons: Mapping[str, str] = {}
    """``requires-python`` of dependency groups."""
    unclear: str = ""
    """Why nothing can be said at all."""

    @property
    def markers(self) -> list[str]:
        """The markers in the requirements of these settings."""
        scoped = [one for found in self.overrides_of.values() for one in found]
        texts = [text for found in self.metadata.values() for one in found for text in one.requires]
        texts += [text for one in scoped for text in one.texts]
        return [text.partition(";")[2] for text in texts if ";" in text]

    def cutoff_of(self, package: str) -> Cutoff | None:
        """Return the date after which files of a package do not count."""
        return self.cutoffs.get(package, self.cutoff)

    def metadata_of(self, package: str, version: Version | None) -> tuple[str, ...] | None:
        """Return what stands for the requirements of a version; None if nothing does."""
        found = self.metadata.get(package, ())
        exact = (one for one in found if one.version is not None and one.version == version)
        chosen = next(exact, None) or next((one for one in found if one.version is None), None)
        return None if chosen is None else chosen.requires

    def takes_wheels(self, package: str) -> bool:
        """Return whether wheels of a package are taken."""
        return self.wheelless is not None and package not in self.wheelless

    def builds(self, package: str) -> bool:
        """Return whether source distributions of a package are taken."""
        return self.buildless is not None and package not in self.buildless


def governing(settings: Document | None, root: Document) -> Document | None:
    """Return the file whose settings hold for ``root``; None: its own.

    ``settings`` is what was found beside or above it. Own settings that uv can read win over those
    of a folder above.
    """
    if settings is None or root.project is None:
        return settings
    own, other = (one.path.replace("\\", "/").rpartition("/")[0] for one in (root, settings))
    if settings.kind == "uv.toml" and own == other:
        return settings
    return None if root.project.uv_table and not root.project.ignored else settings


def lead_of(root: Document, siblings: Sequence[Document]) -> Document:
    """Return the manifest that leads a workspace: settings, indexes, constraints are its own.

    It is ``root`` itself unless that is a member.
    """
    if root.project is None or root.project.workspace_members:
        return root
    leads = (one for one in siblings if one.project is not None and one.project.workspace_members)
    return next(leads, root)


def settings_project(install: Install) -> Project | None:
    """Return the project part of the file that gives the settings; None if uv reads none."""
    found = (install.settings or lead_of(install.root, install.siblings)).project
    return None if found is None or found.ignored else found


def settings_of(install: Install) -> UvSettings:
    """Return what ``uv lock`` goes by in the project of an install."""
    given = settings_project(install)
    own = lead_of(install.root, install.siblings).project
    options = {s.key: s.value for s in given.settings} if given is not None else {}
    project = {s.key: s.value for s in own.settings} if own is not None else {}
    wheelless = _names(options.get("uv.no-binary-package", ""))
    buildless = _names(options.get("uv.no-build-package", ""))
    return UvSettings(
        resolution=options.get("uv.resolution", ""),
        fewest=options.get("uv.fork-strategy") == "fewest",
        strategy=options.get("uv.index-strategy", ""),
        no_sources=options.get("uv.no-sources") == "true",
        sourceless=_names(options.get("uv.no-sources-package", "")),
        cutoff=_cutoff(options.get("uv.exclude-newer")),
        cutoffs={
            canonical(key[len("uv.exclude-newer-package.") :]): _cutoff(value)
            for key, value in options.items()
            if key.startswith("uv.exclude-newer-package.")
        },
        metadata=_metadata(options),
        wheelless=None if options.get("uv.no-binary") == "true" else wheelless,
        buildless=None if options.get("uv.no-build") == "true" else buildless,
        excluded=frozenset(
            key[len("uv.exclude-dependencies.") :]
            for key in project
            if key.startswith("uv.exclude-dependencies.")
        ),
        excluded_of=_scoped(project, "uv.exclude-dependencies-of.", ", "),
        overrides_of=_scoped(project, "uv.override-dependencies-of.", "\n"),
        group_pythons={
            key.split(".")[2]: value
            for key, value in project.items()
            if key.startswith("uv.dependency-groups.")
        },
        unclear=_unclear(options, project),
    )


def _unclear(options: Mapping[str, str], project: Mapping[str, str]) -> str:
    if options.get("uv.no-index") == "true":
        return "the project looks at no index (no-index)"
    if project.get("uv.managed") == "false":
        return "uv does not lock a project that says managed = false"
    if "uv.index.exclude-newer" in options:
        return "an index of the project has a date of its own (exclude-newer)"
    if "uv.minimum-libc-version" in project or "uv.minimum-libc-version" in options:
        return "the project asks for a lowest libc (minimum-libc-version)"
    for key in options:
        if key.startswith("uv.dependency-metadata-python."):
            return "dependency-metadata gives a package another requires-python"
    return ""


def _cutoff(text: str | None) -> Cutoff | None:
    return None if text is None or text == "false" else cutoff_of(text)


def _names(text: str) -> frozenset[str]:
    return frozenset(canonical(one) for one in text.split(", ") if one)


def _parent(text: str) -> tuple[str, Version | None]:
    name, _, version = text.partition("==")
    try:
        return canonical(name), Version(version) if version else None
    except ValueError:  # or more digits than Python reads
        return canonical(name), None


def _scoped(
    values: Mapping[str, str], prefix: str, separator: str
) -> dict[str, tuple[Scoped, ...]]:
    found: dict[str, tuple[Scoped, ...]] = {}
    for key, value in values.items():
        if key.startswith(prefix):
            name, version = _parent(key[len(prefix) :])
            texts = tuple(one for one in value.split(separator) if one)
            found[name] = (*found.get(name, ()), Scoped(version, texts))
    return found


def _metadata(options: Mapping[str, str]) -> dict[str, tuple[Metadata, ...]]:
    found: dict[str, tuple[Metadata, ...]] = {}
    prefix = "uv.dependency-metadata."
    for key, value in options.items():
        if key.startswith(prefix):
            name, version = _parent(key[len(prefix) :])
            requires = tuple(one for one in value.split("\n") if one)
            found[name] = (*found.get(name, ()), Metadata(version, requires))
    return found
