"""What selection asks of the catalog; the shipped catalog has these methods."""

from __future__ import annotations

from typing import Protocol

from torchpin.catalog.model import Build, ChannelSpan, Existence


class Facts(Protocol):
    """The questions about what was published that selection depends on."""

    @property
    def date(self) -> str:
        """ISO date of the catalog."""

    def builds(self, package: str) -> tuple[Build, ...]:
        """Return every build of ``package`` that exists."""

    def find(
        self,
        package: str,
        *,
        version: str | None = None,
        channel: str | None = None,
        platform: str | None = None,
        home: str | None = None,
    ) -> tuple[Build, ...]:
        """Return the builds with these properties."""

    def existence(
        self,
        package: str,
        version: str,
        *,
        channel: str | None = None,
        home: str | None = None,
        platform: str | None = None,
    ) -> Existence:
        """Return whether a version was published there (anywhere if nothing is given)."""

    def versions(self, package: str) -> tuple[str, ...]:
        """Return every published version, ascending."""

    def channel_span(
        self, package: str, channel: str, platform: str | None = None
    ) -> ChannelSpan | None:
        """Return the first and last release of ``package`` on ``channel``."""

    def partners(self, torch_version: str, package: str) -> tuple[str, ...]:
        """Return the versions of ``package`` that accept this torch, best first."""

    def has_sdist(self, package: str, version: str) -> bool:
        """Return whether PyPI has a source archive of a version."""

    def pins(self, package: str, version: str) -> str | None:
        """Return the specifier on torch of a popular package, None if not known."""

    def hashes(self, package: str, full_version: str, platform: str) -> tuple[tuple[str, str], ...]:
        """Return known (wheel file name, SHA-256) pairs."""
