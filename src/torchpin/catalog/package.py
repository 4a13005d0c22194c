"""One package of the catalog: records of a data file, turned into values when asked for.

A data file ``builds-PACKAGE.json`` holds, one record a line:

* ``pypi``: every version on PyPI; ``elsewhere``: versions published off PyPI and the channels;
  ``sdists``: versions with a source archive on PyPI;
* ``spans``: channel, first, last, evidence, source, closed, source of the beginning or null;
* ``kernels``: SASS, PTX, gfx (words joined by blanks), evidence, source;
* ``builds``: version, label, channel, home, platform, Python tags, inferred Python tags, kernels,
  libraries as [name, kernels], CUDA, glibc, macOS, specifier on torch, Requires-Python, yanked,
  date, evidence, source;
* ``rows``: version, channel, platform, exists (false or null), evidence, source: what is denied
  or left open;
* ``pages`` (of refreshed catalogs): channel or ``pypi``, when read, newest version then;
* ``sources``: the texts that the numbers above point to.
"""

from __future__ import annotations

from packaging.version import Version

from torchpin.catalog.model import Build, ChannelSpan, Kernels, PageRead
from torchpin.evidence import PROOF, weakest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Package:
    """The records of one package; a record becomes a ``Build`` when it is first asked for."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.name: str = raw["package"]
        self.pypi: list[str] = raw["pypi"]
        self.elsewhere: list[str] = raw["elsewhere"]
        self.sdists = frozenset(raw.get("sdists", ()))
        self.sources: list[str] = raw["sources"]
        self.rows: list[list[Any]] = raw["rows"]
        self.pages = {page[0]: PageRead(*page) for page in raw.get("pages", ())}
        self._spans = {s[0]: s for s in raw["spans"]}
        self._kernels: list[list[Any]] = raw["kernels"]
        self._lists: dict[int, Kernels] = {}
        self._records: list[list[Any]] = raw["builds"]
        self._builds: list[Build | None] = [None] * len(self._records)
        self._of: dict[str, list[int]] = {}
        for at, record in enumerate(self._records):
            self._of.setdefault(record[0], []).append(at)
        self._all: tuple[Build, ...] | None = None
        self._found: dict[tuple[str | None, str | None, str | None], tuple[Build, ...]] = {}
        self._names: dict[Version, str] | None = None
        self._versions: tuple[str, ...] | None = None

    def kernels(self, at: int | None) -> Kernels | None:
        """Return the kernel list of a number; None for null."""
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

    def _build_at(self, at: int) -> Build:
        found = self._builds[at]
        if found is None:
            found = self._builds[at] = self._build(self._records[at])
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
        """Return every build, ascending by version, then home, channel, platform."""
        if self._all is None:
            self._all = tuple(map(self._build_at, range(len(self._records))))
        return self._all

    def versions(self) -> tuple[str, ...]:
        """Return every version published anywhere, ascending."""
        if self._versions is None:
            known = {*self.pypi, *self._of, *self.elsewhere}
            self._versions = tuple(sorted(known, key=lambda text: (Version(text), text)))
        return self._versions

    def name_of(self, version: str) -> str | None:
        """Return the version as the data write it (``2.14`` → ``2.14.0``), None if unknown."""
        if version in self._of:
            return version
        if self._names is None:
            self._names = {Version(text): text for text in self.versions()}
        try:
            return self._names.get(Version(version))
        except ValueError:  # InvalidVersion, or more digits than Python reads
            return None

    def find(
        self,
        version: str | None = None,
        channel: str | None = None,
        platform: str | None = None,
        home: str | None = None,
    ) -> tuple[Build, ...]:
        """Return the builds with these values; None means any."""
        if version is None and channel is None and platform is None and home is None:
            return self.all()
        places: Iterable[int] = range(len(self._records))
        if version is not None:
            places = self._of.get(self.name_of(version) or "", ())
        else:  # few different questions, each about every record
            known = self._found.get((channel, platform, home))
            if known is not None:
                return known
        found = []
        for at in places:
            record = self._records[at]
            if (
                (channel is None or record[2] == channel)
                and (platform is None or record[4] == platform)
                and (home is None or record[3] == home)
            ):
                found.append(self._build_at(at))
        if version is None:
            self._found[channel, platform, home] = tuple(found)
        return tuple(found)

    def yanked(self) -> frozenset[str]:
        """Return the versions of which every file on PyPI is yanked."""
        here = [record for record in self._records if record[3] == "pypi"]
        live = {record[0] for record in here if not record[14]}
        return frozenset(record[0] for record in here) - live

    def span(self, channel: str, platform: str | None = None) -> ChannelSpan | None:
        """Return the first and last proved release on a channel; see ``Catalog.channel_span``."""
        record = self._spans.get(channel)
        if record is None:
            return None
        _, first, last, evidence, source, closed, start = record
        whole = ChannelSpan(
            self.name,
            channel,
            first,
            last,
            evidence,
            self.sources[source],
            bool(closed),
            start is not None,
        )
        if platform is None:
            return whole
        here = [
            b
            for b in self.find(channel=channel, platform=platform, home="channel")
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

    def start_source(self, channel: str) -> str:
        """Return what proves the first release on a channel, ``""`` if nothing does."""
        start = self._spans[channel][6]
        return "" if start is None else self.sources[start]
