"""Builds as plain records, the JSON contract of ``torchpin catalog show``."""

from __future__ import annotations

from packaging.version import Version

from torchpin.catalog.model import Build, Kernels
from torchpin.catalog.store import Catalog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def show_rows(
    catalog: Catalog,
    package: str,
    version: str | None = None,
    channel: str | None = None,
    platform: str | None = None,
) -> list[dict[str, Any]]:
    """Return the builds that fit, as JSON values, in the order of ``Catalog.builds``.

    Args:
        catalog: where to look.
        package: canonical name.
        version: None for all; with a label (``2.14.0+cu126``) only builds of that label.
        channel: a channel, ``pypi`` for PyPI's builds, None for all. A channel finds only what
            lies on its own index.
        platform: one of ``PLATFORMS``; None for all.

    ``version`` has its label; ``sass``, ``ptx`` and ``gfx`` are empty where no list is known (then
    ``evidence.kernels`` is None); ``pythons_inferred`` are those of ``pythons`` that PyPI has and
    the channel is thought to have.
    """
    public, plus, label = (version or "").partition("+")
    home = None if channel is None else "pypi" if channel == "pypi" else "channel"
    builds = catalog.find(
        package,
        version=public if version else None,
        channel=channel if home == "channel" else None,
        platform=platform,
        home=home,
    )
    return [row(build) for build in builds if not plus or build.label == label]


def row(build: Build) -> dict[str, Any]:
    """Return one build as JSON values."""
    lists = build.kernels
    return {
        "package": build.package,
        "version": build.full_version,
        "channel": build.channel,
        "platform": build.platform,
        "index": build.home,
        "label": build.label,
        "pythons": [*build.pythons, *build.pythons_inferred],
        "pythons_inferred": list(build.pythons_inferred),
        **_arches(lists),
        "gfx": list(lists.gfx) if lists else [],
        "libraries": {name: _arches(k) for name, k in build.libraries},
        "cuda": build.cuda,
        "glibc": build.glibc,
        "macos": build.macos,
        "requires": build.requires_torch,
        "requires_python": build.requires_python,
        "yanked": build.yanked,
        "released": build.released,
        "evidence": {"exists": build.evidence, "kernels": lists.evidence if lists else None},
        "source": build.source,
        "kernels_source": lists.source if lists else None,
    }


def _arches(lists: Kernels | None) -> dict[str, list[str]]:
    if lists is None:
        return {"sass": [], "ptx": []}
    return {
        "sass": [f"sm_{arch}" for arch in lists.sass],
        "ptx": [f"compute_{arch}" for arch in lists.ptx],
    }


def holds(versions: tuple[str, ...], wanted: str) -> bool:
    """Return whether ``wanted``, however it is spelled, is one of ``versions``."""
    try:
        place = Version(wanted)
    except ValueError:  # InvalidVersion, or more digits than Python reads
        return False
    return any(Version(version) == place for version in versions)


def nearest_versions(versions: tuple[str, ...], wanted: str) -> tuple[str, ...]:
    """Return up to two versions below and two above ``wanted``, ascending.

    Args:
        versions: ascending, as ``Catalog.versions`` returns them.
        wanted: a public version; the last three versions are the nearest to what is none.
    """
    try:
        place = Version(wanted)
    except ValueError:  # InvalidVersion, or more digits than Python reads
        return versions[-3:]
    at = sum(Version(version) < place for version in versions)
    return versions[max(0, at - 2) : at + 2]
