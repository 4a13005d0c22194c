"""Load the shipped catalog and answer what exists, where, and how that is known.

The data lie beside this module in ``data/``, one record a line, made by
``tools/build_catalog.py``; each package has its own file, which is read when the package is first
asked for. Wheel digests have files of their own, which only ``hashes`` reads.

What "does not exist" rests on
------------------------------

A row of the facts may deny a build itself (``measured`` or ``published``: an index page that was
read, an official notice). Else absence is *bounded* by the first and the last release of the
package on the channel, both proved (measured, lockfile or published), where the end is proved too:

* **closed** (nothing after the last release), if one of these holds:

  1. a published or measured row denies a later release on the whole channel (cu121, cu126, cu128);
  2. a reading of the channel page names this release as the last (cu118, cu124);
  3. at least two later release *lines* (2.8, 2.9 …) were published without the CUDA channel: one
     line may be late, as cu129 was, a release matrix alone does not bind;
  4. for torch before 2.1, PyTorch's page of previous versions names the CUDA channel for no
     release of at least two later lines (cu101 to cu116).

  Never, if a later release is known or thought to be there, if one is told to be unknown, or if the
  channel once skipped a release and came back (cu129 holds 2.11.0, 2.12.1 and 2.13.0).

* **begun** (nothing before the first release), if the release just before it is denied on the whole
  channel, or, for torch before 2.1, rule 4 holds backwards and the first release opens a line.

So cpu, xpu, cu129, cu130, cu132 and all ROCm channels are open at the end. PyPI's file list is
complete as of ``Catalog.date``: a version or platform that it lacks, and that is not newer than
its newest, is not there (``measured``). A version of the packages that PyPI lacks was published
nowhere: every release that is seen on a channel is on PyPI too, but for the few in ``elsewhere``.
Everything else is unknown (``exists`` None), or ``inferred`` where a row only says so by a pattern.

macOS wheels lie on ``cpu`` and PyPI alone (https://pytorch.org/get-started/locally/).
"""

from __future__ import annotations

import json
import os

from packaging.version import InvalidVersion, Version

from torchpin.catalog.labels import cuda_of, kind_of_label
from torchpin.catalog.model import Build, ChannelSpan, Existence, Health, Kernels
from torchpin.errors import CatalogError
from torchpin.evidence import BOUNDED, INFERRED, MEASURED, ORDER, PROOF, PUBLISHED, weakest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
NO_MACOS = "https://pytorch.org/get-started/locally/ (macOS: one build, no CUDA, ROCm or XPU)"


class _Package:
    """The records of one package, turned into ``Build`` values version by version."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.name: str = raw["package"]
        self.pypi: list[str] = raw["pypi"]
        self.elsewhere: list[str] = raw["elsewhere"]
        self.sources: list[str] = raw["sources"]
        self.rows: list[list[Any]] = raw["rows"]
        self.spans = {s[0]: s for s in raw["spans"]}
        self._kernels: list[list[Any]] = raw["kernels"]
        self._lists: dict[int, Kernels] = {}
        self._raw: dict[str, list[list[Any]]] = {}
        for record in raw["builds"]:
            self._raw.setdefault(record[0], []).append(record)
        self._builds: dict[str, tuple[Build, ...]] = {}
        self._all: tuple[Build, ...] | None = None
        self._names: dict[Version, str] | None = None
        self._versions: tuple[str, ...] | None = None

    def kernels(self, at: int | None) -> Kernels | None:
        if at is None:
            return None
        found = self._lists.get(at)
        if found is None:
            sass, ptx, gfx, evidence, source = self._kernels[at]
            found = self._lists[at] = Kernels(
                tuple(sass.split()),
                tuple(ptx.split()),
                tuple(gfx.split()),
                evidence,
                self.sources[source],
            )
        return found

    def of(self, version: str) -> tuple[Build, ...]:
        """Return the builds of one version, written as the data write it."""
        found = self._builds.get(version)
        if found is None:
            found = self._builds[version] = tuple(
                self._build(record) for record in self._raw.get(version, ())
            )
        return found

    def _build(self, r: list[Any]) -> Build:
        libraries: tuple[tuple[str, Kernels], ...] = ()
        if r[8]:
            libraries = tuple(
                (name, lists) for name, at in r[8] if (lists := self.kernels(at)) is not None
            )
        return Build(
            self.name,
            r[0],
            r[1],
            r[2],
            r[3],
            r[4],
            tuple(r[5].split()),
            tuple(r[6].split()),
            self.kernels(r[7]),
            libraries,
            r[9],
            r[10],
            r[11],
            r[12],
            r[13],
            bool(r[14]),
            r[15],
            r[16],
            self.sources[r[17]],
        )

    def all(self) -> tuple[Build, ...]:
        if self._all is None:
            self._all = tuple(build for version in self._raw for build in self.of(version))
        return self._all

    def versions(self) -> tuple[str, ...]:
        if self._versions is None:
            known = {*self.pypi, *self._raw, *self.elsewhere}
            self._versions = tuple(sorted(known, key=lambda text: (Version(text), text)))
        return self._versions

    def name_of(self, version: str) -> str | None:
        """Return the version as the data write it (``2.14`` → ``2.14.0``), None if unknown."""
        if version in self._raw:
            return version
        if self._names is None:
            self._names = {Version(text): text for text in self.versions()}
        try:
            return self._names.get(Version(version))
        except InvalidVersion:
            return None


class Catalog:
    """What is known of published builds; all methods are look-ups and never raise for unknowns.

    Versions may be written as anyone writes them (``2.14`` finds ``2.14.0``), with their local
    label where a method says so. Packages are canonical names (``torchvision``).
    """

    def __init__(self, folder: str = FOLDER) -> None:
        self._folder = folder
        head = self._read("catalog.json")
        self.date: str = head["date"]
        """As of when the data hold, ISO."""
        self.digest: str = head["digest"]
        """SHA-256 of the data."""
        self.facts: dict[str, str] = head["facts"]
        """Names of the fact files that the data were made of, and their digests."""
        self._newest: dict[str, str] = head["newest"]
        self._counts: dict[str, int] = head["builds"]
        self._packages: dict[str, _Package | None] = {}
        self._files: dict[str, Any] = {}

    def _read(self, name: str) -> Any:
        path = os.path.join(self._folder, name)
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError) as error:
            raise CatalogError(f"catalog data cannot be read: {error}", path=path) from error

    def _file(self, name: str) -> Any:
        if name not in self._files:
            self._files[name] = self._read(name)
        return self._files[name]

    def _package(self, name: str) -> _Package | None:
        if name not in self._packages:
            known = name in self._counts
            self._packages[name] = _Package(self._read(f"builds-{name}.json")) if known else None
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
        if found is None:
            return ()
        if version is None:
            builds = found.all()
        else:
            name = found.name_of(version)
            builds = found.of(name) if name else ()
        if channel is None and platform is None and home is None:
            return builds
        return tuple(
            b
            for b in builds
            if (channel is None or b.channel == channel)
            and (platform is None or b.platform == platform)
            and (home is None or b.home == home)
        )

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
        record = found.spans.get(channel) if found else None
        if found is None or record is None:
            return None
        _, first, last, evidence, source, closed, start = record
        whole = ChannelSpan(
            package,
            channel,
            first,
            last,
            evidence,
            found.sources[source],
            bool(closed),
            start is not None,
        )
        if platform is None:
            return whole
        here = [
            b
            for b in self.find(package, channel=channel, platform=platform, home="channel")
            if b.evidence in PROOF
        ]
        if not here:
            return None
        return whole._replace(
            first=here[0].version,
            last=here[-1].version,
            evidence=weakest(here[0].evidence, here[-1].evidence),
            closed=whole.closed and here[-1].version == last,
            begun=whole.begun and here[0].version == first,
        )

    def existence(
        self,
        package: str,
        version: str,
        *,
        channel: str | None = None,
        home: str | None = None,
        platform: str | None = None,
    ) -> Existence:
        """Return whether a version was published, by the rules that the module tells.

        Args:
            package: canonical name.
            version: with or without a local label; a label names the channel if none is given.
            channel: the index asked (``cu126``, or ``pypi``); None: anywhere.
            home: ``pypi`` or ``channel``; with ``pypi``, ``channel`` narrows to PyPI's builds of
                that kind.
            platform: one of ``PLATFORMS``; None: any.
        """
        try:
            parsed = Version(version)
        except InvalidVersion:
            return Existence(None, INFERRED, f"{version} is no version")
        if channel == "pypi":
            channel, home = None, "pypi"
        if parsed.local is not None:
            if kind_of_label(parsed.local) is None:
                return Existence(None, INFERRED, f"the label +{parsed.local} is not PyTorch's own")
            if home == "pypi":
                return Existence(False, MEASURED, f"{self._list()}: no file carries a label")
            if channel is not None and channel != parsed.local:
                return Existence(
                    None, INFERRED, f"a {parsed.local} build is not looked for on {channel}"
                )
            channel = parsed.local
            version, parsed = parsed.public, Version(parsed.public)
        found = self._package(package)
        if found is None:
            return Existence(None, INFERRED, f"the catalog does not know {package}")
        if home == "pypi":
            return self._on_pypi(found, version, parsed, channel, platform)
        if channel is not None:
            return self._on_channel(found, version, parsed, channel, platform)
        return self._anywhere(found, version, parsed, home, platform)

    def _list(self) -> str:
        return f"PyPI file list of {self.date}"

    def _on_pypi(
        self,
        found: _Package,
        version: str,
        parsed: Version,
        channel: str | None,
        platform: str | None,
    ) -> Existence:
        name = found.name_of(version)
        listed = name is not None and name in found.pypi
        if listed:
            if platform is None and channel is None:
                return Existence(True, MEASURED, self._list())
            builds = self.find(
                found.name, version=name, channel=channel, platform=platform, home="pypi"
            )
            if builds:
                return Existence(True, MEASURED, builds[0].source)
            return Existence(False, MEASURED, f"{self._list()}: no such file of {name}")
        if not found.pypi:
            return Existence(None, INFERRED, f"nothing of {found.name} is known on PyPI")
        if parsed > Version(found.pypi[-1]):
            return self._denied_everywhere(found, parsed) or Existence(
                None, INFERRED, f"newer than the catalog of {self.date}"
            )
        return Existence(False, MEASURED, f"{self._list()}: no version {version}")

    def _on_channel(
        self,
        found: _Package,
        version: str,
        parsed: Version,
        channel: str,
        platform: str | None,
    ) -> Existence:
        builds = self.find(
            found.name, version=version, channel=channel, platform=platform, home="channel"
        )
        if builds:
            best = min(builds, key=lambda b: ORDER.index(b.evidence))
            return Existence(True, best.evidence, best.source)
        rows = [
            r
            for r in found.rows
            if r[1] in (channel, "*") and r[2] in (platform, "*") and Version(r[0]) == parsed
        ]
        rows.sort(key=lambda r: ORDER.index(r[4]))
        for row in rows:
            if row[3] is False and row[4] in PROOF:
                return Existence(False, row[4], found.sources[row[5]])
        kind = kind_of_label(channel)
        if platform and platform.startswith("macos") and kind not in ("cpu", None):
            return Existence(False, PUBLISHED, NO_MACOS)
        beyond = self._beyond(found, parsed, channel)
        if beyond is not None:
            return beyond
        for row in rows:
            return Existence(row[3], row[4], found.sources[row[5]])
        nowhere = self._anywhere(found, version, parsed, "channel", None)
        if nowhere.exists is False and nowhere.evidence in PROOF:
            return nowhere
        return Existence(None, INFERRED, f"nothing is known of {found.name} {version} on {channel}")

    def _beyond(self, found: _Package, parsed: Version, channel: str) -> Existence | None:
        span = self.channel_span(found.name, channel)
        if span is None:
            return None
        if span.closed and parsed > Version(span.last):
            text = f"the last {found.name} on {channel} is {span.last} ({span.source})"
        elif span.begun and parsed < Version(span.first):
            start = found.sources[found.spans[channel][6]]
            text = f"the first {found.name} on {channel} is {span.first} ({start})"
        else:
            return None
        return Existence(False, BOUNDED, text)

    def _denied_everywhere(self, found: _Package, parsed: Version) -> Existence | None:
        for row in found.rows:
            if row[1] == "*" and row[3] is False and Version(row[0]) == parsed:
                return Existence(False, row[4], found.sources[row[5]])
        return None

    def _anywhere(
        self,
        found: _Package,
        version: str,
        parsed: Version,
        home: str | None,
        platform: str | None,
    ) -> Existence:
        name = found.name_of(version)
        builds = self.find(found.name, version=version, platform=platform, home=home)
        if builds:
            best = min(builds, key=lambda b: ORDER.index(b.evidence))
            return Existence(True, best.evidence, best.source)
        if name is not None and platform is None and home is None:
            if name in found.elsewhere:
                return Existence(
                    True,
                    PUBLISHED,
                    "https://pytorch.org/get-started/previous-versions/ (LTS 1.8.2)",
                )
            return Existence(True, MEASURED, self._list())
        denied = self._denied_everywhere(found, parsed)
        if denied is not None:
            return denied
        if name is not None:
            where = platform or "the channels"
            return Existence(None, INFERRED, f"no build of {found.name} {name} seen for {where}")
        if found.pypi and Version(found.pypi[0]) < parsed < Version(found.pypi[-1]):
            if parsed.is_prerelease:
                return Existence(None, INFERRED, f"{version} is a pre-release: not followed")
            return Existence(
                False,
                MEASURED,
                f"{self._list()} has no {found.name} {version}, nor has any channel seen",
            )
        if found.pypi and parsed > Version(found.pypi[-1]):
            return Existence(None, INFERRED, f"newer than the catalog of {self.date}")
        return Existence(None, INFERRED, f"nothing is known of {found.name} {version}")

    def partners(self, torch_version: str, package: str) -> tuple[str, ...]:
        """Return the versions of a package that work with this torch, best first.

        First the version made for it (both have the number of the same release, or its METADATA
        pins it), then those whose METADATA accepts it, newest first; no yanked ones.
        """
        table = self._file("partners.json")
        torch = self._package("torch")
        name = torch.name_of(torch_version.partition("+")[0]) if torch else None
        found = table.get(name or torch_version, {}).get(package, ())
        yanked = self._yanked(package)
        return tuple(version for version, _, _ in found if version not in yanked)

    def _yanked(self, package: str) -> frozenset[str]:
        here = self.find(package, home="pypi")
        live = {b.version for b in here if not b.yanked}
        return frozenset(b.version for b in here) - live

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
        table = self._files.get("pins")
        if table is None:
            records = self._read("pins.json")["pins"]
            table = self._files["pins"] = {(r[0], r[1]): r[2] for r in records}
        found = table.get((package, version))
        if found is None:
            try:
                wanted = Version(version)
            except InvalidVersion:
                return None
            for (name, text), specifier in table.items():
                if name == package and Version(text) == wanted:
                    return str(specifier)
        return found

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


_catalog: Catalog | None = None


def load_catalog() -> Catalog:
    """Return the shipped catalog; one instance a process.

    Raises:
        CatalogError: the data cannot be read.
    """
    global _catalog
    if _catalog is None:
        _catalog = Catalog()
    return _catalog


__all__ = ["Catalog", "cuda_of", "kind_of_label", "load_catalog"]
