"""The wheels that an install's indexes offer, and which of them fit."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchpin.catalog.model import Build
from torchpin.evidence import INFERRED
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.select.asks import Ask
from torchpin.select.channels import redact
from torchpin.select.environments import wheel_fits
from torchpin.select.facts import Facts
from torchpin.select.model import PlacedIndex

_versions: dict[str, Version] = {}
_specifiers: dict[str, SpecifierSet] = {}
_offered: dict[int, tuple[tuple[Build, ...], list[tuple[Build, Version, bool, str | None]]]] = {}
"""By the identity of a tuple of builds, which is kept beside: what all its candidates share."""
_MOST_OFFERED = 64
_admitted: dict[str, dict[Version, bool]] = {}
"""By the text of a specifier: which versions it admits, pre-releases too."""
_MOST_ADMITTED = 1024
_rows: dict[tuple[int, PlacedIndex, int, bool], list[Candidate]] = {}
"""By the identity of a tuple of builds that ``_offered`` keeps, and by an index that no file names:
equal candidates are the same objects."""
_matched: dict[tuple[str, tuple[int, ...]], tuple[tuple[Candidate, ...], list[Candidate]]] = {}
"""By the text of a specifier and the identities of candidates, which are kept beside: those that it
admits."""


def version_of(text: str) -> Version:
    """Return ``Version(text)``, cached."""
    found = _versions.get(text)
    if found is None:
        found = _versions[text] = Version(text)
    return found


def admits(specifier: str, version: Version) -> bool:
    """Return whether the specifier text admits ``version``, pre-releases too; cached parse."""
    found = _specifiers.get(specifier)
    if found is None:
        found = _specifiers[specifier] = SpecifierSet(specifier)
    return found.contains(version, prereleases=True)


class Candidate(NamedTuple):
    """A build as one index offers it."""

    build: Build
    place: PlacedIndex
    version: Version
    """With its label."""
    rank: int
    """Among equal versions the higher rank wins."""
    inferred: bool
    requires: str | None = None
    """Specifier on torch, ``""`` for none; None: not known."""


class Pool(NamedTuple):
    """What a client sees of one package."""

    candidates: tuple[Candidate, ...]
    """Of every version, platform and Python."""
    hidden: str
    """Why more may be there: ``the index https://… is not known``; ``""`` if all is seen."""
    channels: tuple[str, ...]
    """Channels that the pool is made of, in order."""
    pypi: bool
    """Whether PyPI is part of the pool."""
    nightly: str = ""
    """A nightly index of the pool: it holds development releases only."""
    broad: str = ""
    """A page of many channels (the root, the legacy link page): what it lacks is not known."""


class Offer(NamedTuple):
    """What one index offers of one package."""

    builds: tuple[Build, ...]
    hidden: str = ""
    inferred: bool = False
    nightly: str = ""
    reachable: bool = True
    """False where the client reads nothing from this address."""
    broad: str = ""
    """The page if it lists many channels."""


def index_text(index: PlacedIndex) -> str:
    """Return an index for messages."""
    return "PyPI" if index.url == "" else redact(index.url)


def offer(index: PlacedIndex, ask: Ask, facts: Facts) -> Offer:
    """Return what ``index`` offers of the package of ``ask``.

    A link page works for the project that it lists; the root of an index given to
    ``--find-links`` lists directories only, so that nothing comes from it. An index URL that
    already names a project leads nowhere.
    """
    kind, package = index.kind, ask.package
    links = index.option == "--find-links"
    if kind.kind in ("channel", "pypi", "root") and (
        (links and kind.project != package) or (not links and kind.project is not None)
    ):
        return Offer((), reachable=False)
    if kind.kind == "pypi":
        return Offer(facts.find(package, home="pypi"))
    if kind.kind == "channel":
        builds = facts.find(package, channel=kind.channel, home="channel")
        if not builds and not facts.find("torch", channel=kind.channel, home="channel"):
            return Offer((), f"the catalog does not know the channel {kind.channel}")
        return Offer((*builds, *facts.find(package, channel="root", home="channel")))
    if kind.kind in ("root", "legacy"):
        if kind.kind == "legacy" and (not links or kind.project not in (None, package)):
            return Offer((), reachable=False)
        builds = tuple(
            build
            for build in facts.builds(package)
            if build.home == "channel" and build.label and kind.channel in (None, build.channel)
        )
        if ask.pin is not None and ask.pin[1]:
            return Offer(builds, inferred=True, broad=index_text(index))
        return Offer((), f"{index_text(index)} lists the wheels of every channel")
    if kind.kind == "nightly":
        return Offer((), nightly=index_text(index))
    if kind.kind == "test":
        return Offer((), f"{index_text(index)} holds release candidates")
    if kind.kind == "private":
        return Offer((), f"the private index {index_text(index)} may hold {package}")
    return Offer((), f"it is not known what {index_text(index)} holds")


def requires_of(build: Build, facts: Facts) -> str | None:
    """Return what ``build`` requires of torch, from its own METADATA or that of its release."""
    if build.package == "torch":
        return ""
    if build.requires_torch is not None:
        return build.requires_torch
    return facts.pins(build.package, build.version)


def candidates_of(offered: Offer, index: PlacedIndex, rank: int, facts: Facts) -> list[Candidate]:
    """Return the builds of an offer as candidates."""
    builds, inferred = offered.builds, offered.inferred
    known = _offered.get(id(builds))
    if known is None:  # most files of a run ask for the same builds
        if len(_offered) >= _MOST_OFFERED:
            _offered.clear()
            _rows.clear()
        rows = [
            (
                build,
                version_of(build.full_version),
                build.evidence == INFERRED,
                requires_of(build, facts),
            )
            for build in builds
        ]
        known = _offered[id(builds)] = builds, rows
    key = (id(builds), index, rank, inferred)
    if index.document is None and (shared := _rows.get(key)) is not None:
        return shared
    made = [
        Candidate(build, index, version, rank, inferred or guessed, requires)
        for build, version, guessed, requires in known[1]
    ]
    if index.document is None:
        _rows[key] = made
    return made


def matching(ask: Ask, candidates: tuple[Candidate, ...], *, pre: bool) -> list[Candidate]:
    """Return the candidates whose version ``ask`` admits.

    Pre-releases count only if they are asked for or nothing else is there (PEP 440).
    """
    if pre or ask.specifier.prereleases:
        return [c for c in candidates if ask.specifier.contains(c.version, prereleases=True)]
    if len(_admitted) >= _MOST_ADMITTED:
        _admitted.clear()
    text = str(ask.specifier)
    # The candidates of indexes that no file names are shared: most files of a run ask of the same.
    key = None
    if all(one.place.document is None for one in candidates):
        key = (text, tuple(map(id, candidates)))
        known = _matched.get(key)
        if known is not None:
            return list(known[1])
    verdicts = {} if "===" in text else _admitted.setdefault(text, {})  # it compares spellings
    found: list[Candidate] = []
    for candidate in candidates:
        version = candidate.version
        verdict = verdicts.get(version)
        if verdict is None:
            verdict = verdicts[version] = ask.specifier.contains(version, prereleases=True)
        if verdict:
            found.append(candidate)
    finals = [c for c in found if not c.version.is_prerelease]
    if key is None:
        return finals or found
    if len(_matched) >= _MOST_ADMITTED:
        _matched.clear()
    _matched[key] = candidates, finals or found
    return list(finals or found)


def fitting(found: list[Candidate], target: Target) -> list[Candidate]:
    """Return the candidates that can be installed on ``target``, best first."""
    fits: list[Candidate] = []
    floors: dict[Version, str] = {}
    for candidate in found:
        build = candidate.build
        good, _, inferred = wheel_fits(build, target)
        if good:
            fits.append(candidate._replace(inferred=candidate.inferred or inferred))
            if build.home == "pypi" and build.glibc:
                floors[candidate.version] = build.glibc
    keys: dict[Candidate, tuple[Version, bool, int]] = {}
    for at, candidate in enumerate(fits):
        first, guessed = _tag_rank(candidate.build, floors.get(candidate.version))
        if guessed:
            fits[at] = candidate = candidate._replace(inferred=True)
        keys[candidate] = (candidate.version, first, candidate.rank)
    fits.sort(key=keys.__getitem__, reverse=True)
    return fits


_FIRST_MANYLINUX = {"torch": "2.7", "torchvision": "0.22", "torchaudio": "2.7"}
"""First releases whose wheels for Linux on ARM have a ``manylinux`` tag on the channels; those
before say ``linux_aarch64`` (file names in public lock files: torchaudio 2.6.0 and 2.7.1 …)."""


def _tag_rank(build: Build, twin: str | None) -> tuple[bool, bool]:
    """Return whether the tag of ``build`` ranks with PyPI's, and whether that is guessed.

    It matters where a channel's wheel has the same version as PyPI's (``twin``: its glibc floor):
    without a label. Older Linux ones are tagged ``linux_aarch64``, which ranks below ``manylinux``
    tags (``packaging.tags``); newer ones are ``manylinux_2_28`` as PyPI's are.
    """
    if build.home == "pypi" or build.label or not build.platform.startswith("linux"):
        return True, False
    if build.glibc is not None:
        return build.glibc != "2.17", False
    if twin is None:
        return False, False
    first = _FIRST_MANYLINUX.get(build.package)
    if first is not None and version_of(build.version) < version_of(first):
        return False, False
    return twin != "2.17", True


def without_yanked(ask: Ask, fits: list[Candidate]) -> list[Candidate]:
    """Return ``fits`` without yanked builds, unless an exact pin leaves nothing else (PEP 592)."""
    kept = [c for c in fits if not c.build.yanked]
    return kept if kept or ask.pin is None else fits
