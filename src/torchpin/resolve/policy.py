"""In which order versions, channels and companions are tried.

docs/explanation/resolution.md tells the same for users.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from torchpin.catalog.labels import parse_label
from torchpin.errors import UsageError
from torchpin.named import NamedTuple
from torchpin.resolve.model import Want
from torchpin.resolve.space import PYPI

NEAREST = "nearest"
NEWEST = "newest"


def specifier_of(want: Want) -> SpecifierSet:
    """Return the specifier of a want.

    Raises:
        UsageError: the text is not a PEP 440 specifier.
    """
    try:
        return SpecifierSet(want.specifier)
    except InvalidSpecifier:
        raise UsageError(
            f"not a version specifier: {want.package}{want.specifier}",
            path=want.origin.path,
            line=want.origin.line,
        ) from None


def allowed(wants: Iterable[Want], package: str, versions: Sequence[str]) -> tuple[str, ...]:
    """Return the versions that every hard want on a package allows, in the order given."""
    hard = [specifier_of(w) for w in wants if w.package == package and not w.soft and w.specifier]
    return tuple(v for v in versions if all(s.contains(v, prereleases=True) for s in hard))


def exact_version(specifier: str, versions: Sequence[str] = ()) -> str | None:
    """Return the version that ``==X`` (no wildcard) or ``===X`` names, else None.

    Where it is one of ``versions``, it is written as there: ``==2.14`` names ``2.14.0``.
    """
    match = re.fullmatch(r"\s*===?\s*([^\s,*]+)\s*", specifier)
    if match is None:
        return None
    try:
        public = Version(match[1]).public
    except ValueError:  # or more digits than Python reads
        return None
    if public in versions:
        return public
    wanted = Version(public)
    return next((version for version in versions if Version(version) == wanted), public)


class Anchor(NamedTuple):
    """The version that ``nearest`` stays close to."""

    version: str
    text: str
    """The requirement that it comes from."""


def soft_anchor(wants: Iterable[Want], package: str, versions: Sequence[str]) -> Anchor | None:
    """Return what a soft want of a package names: its exact version, or the newest in its range."""
    for want in wants:
        if want.package != package or not want.soft or not want.specifier:
            continue
        exact = exact_version(want.specifier, versions)
        if exact is None:
            specifier = specifier_of(want)
            exact = next((v for v in versions if specifier.contains(v, prereleases=True)), None)
        if exact is not None:
            return Anchor(exact, want.origin.text)
    return None


def nearest_first(versions: Sequence[str], anchor: str) -> tuple[str, ...]:
    """Return ``versions`` (newest first) by their distance from ``anchor``.

    The version itself; other patches of its minor, higher ones first, the nearest of them first;
    lower minors, the nearest first, each with its newest patch first; then higher minors likewise.
    """
    at = Version(anchor)

    def distance(text: str) -> tuple[int, int, int, int]:
        version = Version(text)
        if version == at:
            return (0, 0, 0, 0)
        if version.release[:2] == at.release[:2]:
            return (1, version < at, abs(version.micro - at.micro), 0)
        gap = (version.major - at.major) * 1000 + version.minor - at.minor
        return (2 if gap < 0 else 3, abs(gap), -version.micro, 0)

    return tuple(sorted(versions, key=distance))


def channel_parts(channel: str) -> tuple[str, int, int]:
    """Return kind, major and minor of a channel: ``cu126`` → ``("cuda", 12, 6)``."""
    kind, version = parse_label(channel)
    if kind is None or version is None:
        return (kind or channel, 0, 0)
    major, _, rest = version.partition(".")
    return (kind, int(major), int(rest.partition(".")[0]))


def key_cost(
    key: str, real: str, *, current: str | None, default: str | None, cpu_only: bool
) -> tuple[int, int, int, int, int, int, str]:
    """Return what it costs to take a key; the cheapest is tried first.

    Args:
        key: ``pypi`` or a channel.
        real: the channel that the build really is.
        current: what the file names today; None or ``pypi`` for PyPI.
        default: what PyPI's own build of this version is where it is a CUDA build; the reference
            where the file names no channel.
        cpu_only: no target has a GPU.

    First what the file names today. Then the same kind and major with the nearest number, the
    older of two equally near (it needs the older driver). Where the file names no channel,
    PyPI's build comes first and the reference is what PyPI serves.
    """
    if key == (current or PYPI):
        return (0, 0, 0, 0, 0, 0, key)
    plain = current is None or current == PYPI
    reference = channel_parts((default or "cpu") if current is None or plain else current)
    kind, major, minor = channel_parts(real)
    if cpu_only and plain:
        kind_rank = 0 if kind == "cpu" else 1 if kind == "cuda" else 2
    else:
        kind_rank = 0 if kind == reference[0] else 1 if kind == "cuda" else 2
    if kind != reference[0]:
        return (1, kind_rank, 0, -major, -minor, key == PYPI, key)
    gap = abs(major - reference[1])
    # Of another major the end that lies nearest.
    toward = -minor if major < reference[1] else minor
    near = toward if gap else abs(minor - reference[2])
    return (1, kind_rank, gap, near, minor, key == PYPI, key)


def companion_order(
    package: str,
    partners: Sequence[str],
    wants: Iterable[Want],
    policy: str,
) -> tuple[str, ...]:
    """Return the companion versions for a torch version, best first.

    Hard wants bound them. ``nearest`` keeps a soft exact pin that fits; then ``partners``, whose
    first is the one made for this torch.
    """
    wants = tuple(wants)
    fit = allowed(wants, package, partners)
    if policy == NEAREST:
        anchor = soft_anchor(wants, package, partners)
        if anchor is not None and anchor.version in fit:
            return (anchor.version, *(v for v in fit if v != anchor.version))
    return fit
