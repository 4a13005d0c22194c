"""The builds that a lock installs on a target: a lock beats its manifest."""

from __future__ import annotations

import os.path
from collections.abc import Mapping

from torchpin.catalog.model import WATCHED, Build
from torchpin.documents.base import Declaration, Document, IndexLine, Span
from torchpin.documents.poetry_constraint import to_alternatives
from torchpin.documents.project import Lock, LockedPackage, LockedWheel
from torchpin.evidence import INFERRED, LOCKFILE, MEASURED
from torchpin.fleet.model import Python, Target
from torchpin.named import NamedTuple
from torchpin.select.asks import name_of
from torchpin.select.channels import channel_url, index_kind, is_channel
from torchpin.select.environments import marker_holds
from torchpin.select.facts import Facts
from torchpin.select.lock_walk import Reached, walk
from torchpin.select.lock_wheels import Fit, fit
from torchpin.select.model import (
    IndexKind,
    Install,
    Miss,
    Placed,
    PlacedIndex,
    SelectedSet,
    Selection,
)
from torchpin.select.pools import index_text
from torchpin.select.wheels import wheel_name

_PATCHES = ("0", "99")


class _Home(NamedTuple):
    """Where a locked package lies."""

    place: PlacedIndex | None
    home: str
    """``pypi`` or ``channel``; ``""`` where it cannot be known."""
    channel: str | None = None
    unclear: str = ""
    inferred: bool = False


def select_locked(
    install: Install,
    target: Target,
    catalog: Facts,
    *,
    private: Mapping[str, str] | None = None,
) -> SelectedSet:
    """Return what the lock of ``install`` installs on ``target`` of every watched package.

    ``private`` says what private index URLs are, as in the fleet profile; the indexes of the
    install, which know it already, come first.

    A package of the lock that no enabled extra, group or marker leads to is left out, and
    ``skipped`` if the manifest names it. Selections point at the lock: ``placed`` is its entry
    with the version as specifier, and the version is exact.
    """
    document = install.lock
    if document is None or document.lock is None:
        why = document.problems[0].message if document and document.problems else "is missing"
        name = os.path.basename(document.path) if document is not None else "the lock"
        return SelectedSet(install, target, _unread(install, target, f"{name} {why}"))
    lock = document.lock
    hole = _uncovered(document, lock, target)
    if hole is not None:
        some = walk(lock, install, target, everywhere=True)
        names = dict.fromkeys(r.package.name for r in some.reached)
        first = {r.package.name: r for r in reversed(some.reached)}
        missed = tuple(
            _none(document, first[name], target, hole) for name in names if name in first
        )
        return SelectedSet(install, target, missed, some.conflict)
    walked = walk(lock, install, target)
    if walked.unclear or walked.conflict is not None:
        text = walked.unclear or f"{_tool(lock)} stops: {walked.conflict}"
        return SelectedSet(install, target, _unread(install, target, text), walked.conflict)
    chooser = _Chooser(install, document, lock, target, catalog, private or {})
    by_name: dict[str, list[Reached]] = {}
    for reached in walked.reached:
        by_name.setdefault(reached.package.name, []).append(reached)
    selections = [chooser.one(name, found) for name, found in by_name.items()]
    selections += _skipped(install, target, set(by_name))
    return SelectedSet(install, target, tuple(selections))


def _tool(lock: Lock) -> str:
    return "the installer" if lock.tool == "pylock" else lock.tool


# -- what no lock says


def _declared(install: Install) -> dict[str, Placed]:
    found: dict[str, Placed] = {}
    for placed in install.requirements:
        name = name_of(placed)
        if name in WATCHED:
            found.setdefault(name, placed)
    return found


def _unread(install: Install, target: Target, why: str) -> tuple[Selection, ...]:
    """Return an unknown for each package that the manifest names."""
    return tuple(
        Selection(name, placed, None, target, "unknown", None, None, None, why)
        for name, placed in _declared(install).items()
    )


def _skipped(install: Install, target: Target, found: set[str]) -> list[Selection]:
    return [
        Selection(
            name,
            placed,
            None,
            target,
            "skipped",
            None,
            None,
            None,
            f"the lock installs no {name} on {target.text}",
        )
        for name, placed in _declared(install).items()
        if name not in found
    ]


def _uncovered(document: Document, lock: Lock, target: Target) -> Miss | None:
    """Return why the lock is not for ``target``, None if it is or if that cannot be known."""
    name = os.path.basename(document.path)
    if lock.requires_python and not admits(lock.requires_python, target.python):
        text = f"{name} is for Python {lock.requires_python}, not for {target.python}"
        return Miss("python", text, MEASURED, name)
    markers = lock.supported_markers
    if markers and all(marker_holds(marker, target) is False for marker in markers):
        text = f"{name} is made for other environments only: {'; '.join(markers)}"
        return Miss("platform", text, MEASURED, name)
    return None


def admits(requires: str, python: Python | None) -> bool:
    """Return whether a ``requires-python`` (Poetry's writing, too) admits some ``python``."""
    if python is None:
        return True
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    versions = [f"{python.major}.{python.minor}.{patch}" for patch in _PATCHES]
    try:
        admitted = [SpecifierSet(requires)]
    except InvalidSpecifier:
        try:
            admitted = [SpecifierSet(text) for text in to_alternatives(requires)]
        except (InvalidSpecifier, ValueError):
            return True  # what cannot be read excludes nothing
    return any(one.contains(v, prereleases=True) for one in admitted for v in versions)


# -- one package


def declaration_of(document: Document, package: LockedPackage) -> Declaration:
    """Return the entry of a lock as a declaration: name, exact version, and where they stand."""
    text, start = document.text, package.span.start
    line = text.find("\n", package.version_span.end)
    begin = text.rfind("\n", 0, package.version_span.start) + 1
    name_at = text.find(f'"{package.name}"', start, package.span.end)
    name_span = Span(name_at + 1, name_at + 1 + len(package.name)) if name_at >= 0 else None
    end = line if line >= 0 else len(text)
    return Declaration(
        name=package.name,
        specifier=f"=={package.version}" if package.version else "",
        extras=(),
        url=None,
        marker=None,
        scope="",
        span=package.version_span,
        line_span=Span(begin, end - 1 if text[end - 1 : end] == "\r" else end),
        name_span=name_span or package.version_span,
        specifier_span=package.version_span,
        marker_span=None,
        url_span=None,
    )


def _placed(document: Document, package: LockedPackage) -> Placed:
    return Placed(document, declaration_of(document, package))


def _none(document: Document, reached: Reached, target: Target, miss: Miss) -> Selection:
    return Selection(
        reached.package.name,
        _placed(document, reached.package),
        reached.by,
        target,
        "none",
        None,
        None,
        miss,
        miss.message,
        exact=True,
    )


class _Chooser:
    """Maps the packages of one lock to builds of the catalog."""

    def __init__(
        self,
        install: Install,
        document: Document,
        lock: Lock,
        target: Target,
        facts: Facts,
        private: Mapping[str, str],
    ) -> None:
        self.document = document
        self.lock = lock
        self.target = target
        self.facts = facts
        self.private = private
        self.file = os.path.basename(document.path)
        self.elsewhere = any(index.kind.kind != "pypi" for index in install.indexes)
        self.kinds = {index.url: index.kind for index in install.indexes if index.url}

    def one(self, name: str, found: list[Reached]) -> Selection:
        """Return the selection of one package, given every entry of it that may install."""
        sure = [reached for reached in found if reached.sure]
        first = (sure or found)[0]
        if len(found) > 1:
            texts = " and ".join(_title(reached.package) for reached in found)
            why = (
                f"{self.file} installs {texts} together"
                if len(sure) == len(found)
                else f"it cannot be known which of {texts} {self.file} installs"
            )
            return self._unknown(first, why)
        if not sure:
            return self._unknown(first, f"it cannot be known whether {self.file} installs {name}")
        excluded = self._python_excluded(first.package)
        if excluded is not None:
            return _none(self.document, first, self.target, excluded)
        package, fits = first.package, fit(first.package, self.target)
        if self.lock.tool == "pdm":
            package, fits = with_label(package, fits, self.target)
        if fits.wheel is None and not package.source.startswith(("git:", "path:", "directory:")):
            if package.sdist or not package.wheels:
                why = f"{self.file} lists no wheel of {_title(package)} for {self.target.text}"
                return self._unknown(first, f"{why}, a source distribution may be built")
            return _none(self.document, first, self.target, self._miss(package, fits))
        home = self._home(package, fits)
        if home.unclear:
            return self._unknown(first, home.unclear, home.place)
        build = self._build(package, fits, home)
        if build is None:
            where = "PyPI" if home.home == "pypi" else home.channel
            why = (
                f"the catalog of {self.facts.date} does not know {package.name} {package.version} "
                f"on {where} for {self.target.group.platform}"
            )
            return self._unknown(first, why, home.place)
        place = f" from {index_text(home.place)}" if home.place is not None else ""
        return Selection(
            name,
            _placed(self.document, first.package),
            first.by,
            self.target,
            "selected",
            build,
            home.place,
            None,
            f"{self.file} installs {_title(package)}{place}",
            exact=True,
            inferred=home.inferred,
        )

    def _unknown(self, reached: Reached, why: str, index: PlacedIndex | None = None) -> Selection:
        placed = _placed(self.document, reached.package)
        return Selection(
            reached.package.name,
            placed,
            reached.by,
            self.target,
            "unknown",
            None,
            index,
            None,
            why,
            exact=True,
        )

    def _python_excluded(self, package: LockedPackage) -> Miss | None:
        if not package.requires_python or admits(package.requires_python, self.target.python):
            return None
        text = f"{_title(package)} in {self.file} is for Python {package.requires_python}"
        return Miss("python", f"{text}, not for {self.target.python}", MEASURED, self.file)

    def _miss(self, package: LockedPackage, fits: Fit) -> Miss:
        group, title = self.target.group, _title(package)
        if fits.kind == "platform":
            listed = ", ".join(fits.platforms) or "other platforms"
            text = f"{self.file} lists no wheel of {title} for {group.platform}: only {listed}"
            return Miss("platform", text, MEASURED, self.file)
        if fits.kind == "python":
            tags = ", ".join(sorted(fits.pythons, key=lambda tag: (len(tag), tag)))
            text = f"{self.file} lists no wheel of {title} for Python {self.target.python}"
            return Miss("python", f"{text} on {group.platform}: only {tags}", MEASURED, self.file)
        if fits.kind == "macos":
            text = f"{title} in {self.file} needs macOS {fits.floor}, the group has {group.macos}"
            return Miss("platform", text, MEASURED, self.file)
        if group.musl:
            text = f"{self.file} lists no wheel of {title} for musl"
        else:
            text = f"{title} in {self.file} needs glibc {fits.floor}, the group has {group.glibc}"
        return Miss("glibc", text, MEASURED, self.file)

    # -- where it lies

    def _index(self, package: LockedPackage, url: str, kind: IndexKind) -> PlacedIndex:
        line = None
        span = package.source_span
        if span is not None:
            line = IndexLine("--index-url", url, span, span, span)
        return PlacedIndex(self.document, line, "--index-url", url, kind)

    def _home(self, package: LockedPackage, fits: Fit) -> _Home:
        source, label = package.source, package.version.partition("+")[2]
        kind_word, colon, value = source.partition(":")
        if colon and not value.startswith("//"):
            if kind_word == "url":
                return self._by_folder(package, value, label)
            return _Home(None, "", unclear=f"it comes from {source}, not from an index")
        if source:
            kind = self.kinds.get(source) or index_kind(source, self.private)
            return self._by_kind(self._index(package, source, kind), label)
        wheel = fits.wheel
        if wheel is not None and "://" in wheel.url:
            return self._by_folder(package, wheel.url, label)
        if not label:
            pypi = PlacedIndex(None, None, "--index-url", "", IndexKind("pypi"))
            # Poetry names every index but PyPI; of the others the manifest may have changed it.
            return _Home(pypi, "pypi", inferred=self.lock.tool != "poetry" and self.elsewhere)
        if is_channel(label):
            known = self.facts.hashes(package.name, package.version, self.target.group.platform)
            digest = (wheel.hash or "").partition(":")[2] if wheel is not None else ""
            proved = bool(digest) and any(digest == sha for _, sha in known)
            index = PlacedIndex(
                None, None, "--index-url", channel_url(label), IndexKind("channel", label)
            )
            return _Home(index, "channel", label, inferred=not proved)
        return _Home(None, "", unclear=f"+{label} is not a label of PyTorch's channels")

    def _by_folder(self, package: LockedPackage, url: str, label: str) -> _Home:
        """A wheel's own URL: its folder says where it lies."""
        folder = url.split("#", 1)[0].split("?", 1)[0].rpartition("/")[0]
        kind = index_kind(folder, self.private)
        index = self._index(package, folder, kind)
        if kind.kind in ("channel", "root", "private") and kind.project is None:
            return self._by_kind(index, label)
        if "/packages/" in folder and not label:
            return _Home(PlacedIndex(None, None, "--index-url", "", IndexKind("pypi")), "pypi")
        return _Home(index, "", unclear=f"it is not known what {index_text(index)} holds")

    def _by_kind(self, index: PlacedIndex, label: str) -> _Home:
        kind = index.kind
        if label and not is_channel(label):
            return _Home(index, "", unclear=f"+{label} is not a label of PyTorch's channels")
        if kind.kind == "channel":
            return _Home(index, "channel", kind.channel)
        if kind.kind == "pypi":
            if label:
                text = f"{index_text(index)} holds +{label}, which PyPI cannot hold"
                return _Home(index, "", unclear=text)
            return _Home(index, "pypi")
        if kind.kind == "root" and label:
            return _Home(index, "channel", label)
        return _Home(index, "", unclear=f"it is not known what {index_text(index)} holds")

    def _build(self, package: LockedPackage, fits: Fit, home: _Home) -> Build | None:
        public, _, label = package.version.partition("+")
        platform = self.target.group.platform
        found = [
            build
            for build in self.facts.find(
                package.name,
                version=public,
                channel=home.channel,
                home=home.home,
                platform=platform,
            )
            if build.label == label
        ]
        if not found:
            return None
        build, wheel = found[0], fits.wheel
        if wheel is None:
            return build
        build = build._replace(pythons=fits.pythons, pythons_inferred=())
        if fits.floor is not None and platform.startswith("linux"):
            build = build._replace(glibc=fits.floor)
        elif fits.floor is not None and platform.startswith("macos"):
            build = build._replace(macos=fits.floor)
        if wheel.hash is not None and build.evidence == INFERRED:
            build = build._replace(evidence=LOCKFILE, source=self.file)
        return build


def with_label(package: LockedPackage, fits: Fit, target: Target) -> tuple[LockedPackage, Fit]:
    """Return a package of PDM as the build that PDM takes of it.

    The lock names the public version and lists the files of every source: the highest version among
    them that fits wins, so that one with a label comes before one without (measured with PDM
    2.29.4).
    """
    from packaging.version import Version

    groups: dict[str, list[LockedWheel]] = {}
    for wheel in package.wheels:
        name = wheel_name(wheel.filename)
        if name is not None:
            label = f"+{name.label}" if name.label else ""
            groups.setdefault(name.version + label, []).append(wheel)
    if len(groups) == 1 and package.version in groups:
        return package, fits
    try:
        ordered = sorted(groups, key=Version, reverse=True)
    except ValueError:  # or more digits than Python reads
        return package, fits
    for version in ordered:
        some = package._replace(version=version, wheels=tuple(groups[version]))
        found = fit(some, target)
        if found.wheel is not None:
            return some, found
    return package, fits


def _title(package: LockedPackage) -> str:
    name = wheel_name(package.wheels[0].filename) if package.wheels else None
    version = package.version or (name.version if name is not None else "")
    return f"{package.name} {version}".rstrip()
