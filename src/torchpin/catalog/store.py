"""Load a catalog and answer what exists, where, and how that is known.

The shipped data lie beside this module in ``data/``, one record a line, made by the scripts in
``tools/``; ``catalog refresh`` makes a copy for a user in the same form, which ``load_catalog``
prefers when it is newer. Each package has its own file, which is read when the package is first
asked for. Wheel digests have files of their own, which only ``hashes`` reads.

Whether a build exists, and how that is known, is decided in ``torchpin.catalog.existence``.
"""

from __future__ import annotations

import json
import os

from packaging.version import Version

from torchpin.catalog import existence as rules
from torchpin.catalog.location import user_catalog
from torchpin.catalog.model import Build, ChannelSpan, Existence, Health, PageRead
from torchpin.catalog.package import Package
from torchpin.errors import CatalogError
from torchpin.evidence import INFERRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

FORMAT = 1
"""The form of the data files; another torchpin may write another one."""
_NEEDED = ("date", "digest", "facts", "newest", "builds")
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")


class Catalog:
    """What is known of published builds; all methods are look-ups and never raise for unknowns.

    Versions may be written as anyone writes them (``2.14`` finds ``2.14.0``), with their local
    label where a method says so. Packages are canonical names (``torchvision``).
    """

    def __init__(self, folder: str = FOLDER) -> None:
        self.folder = self._folder = folder
        head = self._read("catalog.json")
        if head.get("format") != FORMAT or not {*_NEEDED} <= head.keys():
            raise CatalogError(
                f"this is no catalog of format {FORMAT}, which this torchpin reads", path=folder
            )
        self.date: str = head["date"]
        """As of when the data hold, ISO."""
        self.digest: str = head["digest"]
        """SHA-256 of the data."""
        self.facts: dict[str, str] = head["facts"]
        """Names of the fact files that the data were made of, and their digests."""
        self.base: str = head.get("base", "")
        """Digest of the shipped catalog that a refreshed one was made from; ``""`` for others."""
        self.notes: tuple[str, ...] = ()
        """What a user should know of the choice of this catalog."""
        self._newest: dict[str, str] = head["newest"]
        self._counts: dict[str, int] = head["builds"]
        self._pinned: list[str] | None = head.get("pinned")
        self._packages: dict[str, Package | None] = {}
        self._files: dict[str, Any] = {}

    def _read(self, name: str) -> Any:
        path = os.path.join(self._folder, name)
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError, RecursionError) as error:
            why = getattr(error, "strerror", None) or error
            raise CatalogError(f"catalog data cannot be read: {why}", path=path) from error
        if not isinstance(data, dict) or not data:
            raise CatalogError("catalog data cannot be read: not a table with entries", path=path)
        return data

    def _file(self, name: str) -> Any:
        if name not in self._files:
            self._files[name] = self._read(name)
        return self._files[name]

    def _package(self, name: str) -> Package | None:
        if name not in self._packages:
            known = name in self._counts
            self._packages[name] = Package(self._read(f"builds-{name}.json")) if known else None
        return self._packages[name]

    def packages(self) -> tuple[str, ...]:
        """Return the names of the packages that have builds, sorted."""
        return tuple(sorted(self._counts))

    def builds(self, package: str) -> tuple[Build, ...]:
        """Return all published builds, ascending by version, then home, channel, platform."""
        found = self._package(package)
        return found.all() if found else ()

    def find(
        self,
        package: str,
        *,
        version: str | None = None,
        channel: str | None = None,
        platform: str | None = None,
        home: str | None = None,
    ) -> tuple[Build, ...]:
        """Return the builds with these values, in the order of ``builds``.

        ``channel`` is what a build really is, so ``channel="cu130"`` finds PyPI's cu130 builds
        too unless ``home="channel"``. ``version`` is a public version.
        """
        found = self._package(package)
        return found.find(version, channel, platform, home) if found else ()

    def versions(self, package: str) -> tuple[str, ...]:
        """Return every version published anywhere, yanked ones too, ascending."""
        found = self._package(package)
        return found.versions() if found else ()

    def newest(self, package: str) -> str:
        """Return the newest stable version on PyPI that is not yanked; ``""`` if unknown."""
        return self._newest.get(package, "")

    def channels(self, package: str = "torch") -> tuple[str, ...]:
        """Return the channels that ever held the package, sorted by name."""
        held = {b.channel for b in self.builds(package) if b.home == "channel"}
        return tuple(sorted(held - {"root"}))

    def channel_span(
        self, package: str, channel: str, platform: str | None = None
    ) -> ChannelSpan | None:
        """Return the first and last proved release on a channel; None if none is proved.

        With a platform: of that platform. Its end is closed only where it is the channel's end.
        """
        found = self._package(package)
        return found.span(channel, platform) if found else None

    def existence(
        self,
        package: str,
        version: str,
        *,
        channel: str | None = None,
        home: str | None = None,
        platform: str | None = None,
    ) -> Existence:
        """Return whether a version was published, by the rules of ``torchpin.catalog.existence``.

        Args:
            package: canonical name.
            version: with or without a local label; a label names the channel if none is given.
            channel: the index asked (``cu126``, or ``pypi``); None: anywhere.
            home: ``pypi`` or ``channel``; with ``pypi``, ``channel`` narrows to PyPI's builds of
                that kind.
            platform: one of ``PLATFORMS``; None: any.
        """
        found = self._package(package)
        if found is None:
            return Existence(None, INFERRED, f"the catalog does not know {package}")
        answer = rules.existence(found, self.date, version, channel, home, platform)
        torch = self._package("torch")
        if answer.exists is None and torch is not None and found is not torch:
            partners = self.partners(version, package)
            return rules.borrowed_number(found, torch, version, partners) or answer
        return answer

    def has_sdist(self, package: str, version: str) -> bool:
        """Return whether PyPI has a source archive of a version: then no wheel is no miss."""
        found = self._package(package)
        return found is not None and (found.name_of(version) or version) in found.sdists

    def partners(self, torch_version: str, package: str) -> tuple[str, ...]:
        """Return the versions of a package that work with this torch, best first.

        First the version made for it (its METADATA pins this torch, or both belong to one
        release), then those that accept it, newest first; no yanked ones. For ``triton``: what
        torch's own METADATA asks for.
        """
        table = self._file("partners.json")
        torch = self._package("torch")
        name = torch.name_of(torch_version.partition("+")[0]) if torch else None
        found = table.get(name or torch_version, {}).get(package, ())
        known = self._package(package)
        yanked = known.yanked() if known and found else frozenset()
        return tuple(version for version, _, _ in found if version not in yanked)

    def page(self, package: str, channel: str) -> PageRead | None:
        """Return when the page of a package on a channel (or ``pypi``) was last read whole.

        None where no refresh read it: what is known of it is as old as the shipped catalog.
        """
        found = self._package(package)
        return found.pages.get(channel) if found else None

    def health(self, channel: str) -> tuple[Health, ...]:
        """Return what is known to be wrong with a channel (``pypi`` for PyPI), and with all."""
        records = self._file("health.json")["health"]
        return tuple(Health(*record) for record in records if record[0] in (channel, "*"))

    def shadowed(self) -> frozenset[str]:
        """Return the general packages of which channels hold stale copies."""
        return frozenset(self._file("health.json")["stale"])

    def mirrored(self) -> frozenset[str]:
        """Return the general packages of which channels hold the current index of PyPI."""
        return frozenset(self._file("health.json")["mirrored"])

    def pins(self, package: str, version: str) -> str | None:
        """Return the torch specifier of a popular package's METADATA; None if not recorded."""
        if self._pinned is not None and package not in self._pinned:
            return None  # most packages: the table need not be read
        known = self.pin_table(package)
        if not known or version in known:
            return known[version] if known else None
        try:
            wanted = Version(version)
        except ValueError:  # InvalidVersion, or more digits than Python reads
            return None
        return next((known[text] for text in known if Version(text) == wanted), None)

    def pin_table(self, package: str) -> Mapping[str, str]:
        """Return version → torch specifier of a popular package, as far as that was read."""
        table = self._files.get("pins")
        if table is None:
            table = self._files["pins"] = {}
            for name, text, specifier, *_ in self._read("pins.json")["pins"]:
                table.setdefault(name, {})[text] = specifier
        known: Mapping[str, str] = table.get(package, {})
        return known

    def hashes(
        self, package: str, full_version: str, platform: str, channel: str | None = None
    ) -> tuple[tuple[str, str], ...]:
        """Return (wheel file name, SHA-256) of a build where known, sorted by name.

        Args:
            package: canonical name.
            full_version: as in the file name, ``2.14.1+cu126``.
            platform: one of ``PLATFORMS``.
            channel: where it lies, ``pypi`` or ``cu126``; None: the label's channel, PyPI without
                a label (the same name may lie on PyPI and on a channel with different bytes).
        """
        name = f"hashes-{package}.json"
        if name not in self._files and not os.path.exists(os.path.join(self._folder, name)):
            return ()
        place = channel or full_version.partition("+")[2] or "pypi"
        return tuple(
            sorted(
                (file, sha256)
                for full, where, lies, file, sha256 in self._file(name)["files"]
                if full == full_version and where == platform and lies == place
            )
        )


SHIPPED = "shipped"
"""What ``--catalog`` and ``TORCHPIN_CATALOG`` call the catalog that came with torchpin."""
VARIABLE = "TORCHPIN_CATALOG"

_catalog: Catalog | None = None
_chosen: dict[tuple[str | None, bool], Catalog] = {}
_choice: tuple[str | None, bool] = (None, False)


def choose(folder: str | None, *, isolated: bool = False) -> None:
    """Set what ``load_catalog`` returns where it is asked for nothing in particular."""
    global _choice
    _choice = (folder, isolated)


def load_catalog(folder: str | None = None, *, isolated: bool = False) -> Catalog:
    """Return the catalog to use; one instance a process and choice.

    Args:
        folder: a catalog's folder, or ``shipped``; None: what ``choose`` was told, else
            ``TORCHPIN_CATALOG``, else the one that the user refreshed, if it is whole and not
            older, else the shipped one.
        isolated: as ``choose`` may say, too: neither the environment nor a user's catalog count.

    Raises:
        CatalogError: the chosen catalog, or the shipped one, cannot be read.
    """
    isolated = isolated or _choice[1]
    key = (folder or _choice[0], isolated)
    if key not in _chosen:
        wanted = key[0] or (None if isolated else os.environ.get(VARIABLE))
        if wanted and wanted != SHIPPED:
            _chosen[key] = _named(wanted)
        elif wanted or isolated:
            _chosen[key] = shipped_catalog()
        else:
            _chosen[key] = _users() or shipped_catalog()
    return _chosen[key]


def shipped_catalog() -> Catalog:
    """Return the catalog that came with torchpin.

    Raises:
        CatalogError: it cannot be read.
    """
    global _catalog
    if _catalog is None:
        _catalog = Catalog()
    return _catalog


def _named(folder: str) -> Catalog:
    """Return the catalog that somebody asked for by its folder.

    Raises:
        CatalogError: it is not whole.
    """
    from torchpin.catalog.whole import check_whole

    found = Catalog(folder)
    wrong = check_whole(folder, deep=True) if found.base else ""
    if wrong:
        raise CatalogError(f"the catalog is damaged: {wrong}", path=folder)
    return found


def _users() -> Catalog | None:
    """Return the user's refreshed catalog; None if there is none that is better than the shipped.

    A damaged one is told in the notes of the shipped one.
    """
    folder = user_catalog()
    if folder is None:
        return None
    from torchpin.catalog.whole import check_whole

    shipped = shipped_catalog()
    wrong = check_whole(folder)
    if not wrong:
        try:
            found = Catalog(folder)
        except CatalogError as error:
            wrong = error.message
        else:
            same = (found.date, found.base) == (shipped.date, shipped.digest)
            return found if found.date > shipped.date or same else None
    shipped.notes = (
        f"the catalog that you refreshed is damaged ({wrong}): the shipped one of {shipped.date} "
        "is used; `torchpin catalog refresh` makes it anew",
    )
    return None
