"""Where files for an index come from: the catalog, live indexes, folders of wheels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import Build
from torchpin.catalog.wheel_names import WheelName, read_name
from torchpin.errors import UsageError
from torchpin.named import NamedTuple
from torchpin.plugin.choice import PACKAGES, Wheel, unknown_build
from torchpin.plugin.plan import Places
from torchpin.select.channels import index_kind, redact

if TYPE_CHECKING:
    from torchpin.catalog.refresh.fetch import Fetcher
    from torchpin.catalog.store import Catalog

_CHUNK = 1 << 20
_WINDOWS = {"x86_64": "win_amd64", "arm64": "win_arm64"}


class Gathered(NamedTuple):
    """Files, and what could not be looked at."""

    wheels: tuple[Wheel, ...]
    notes: tuple[str, ...] = ()
    nameless: tuple[tuple[Build, tuple[str, ...]], ...] = ()
    """Builds, each with the Python tags of files that exist (or are thought to) and whose names are
    not known."""


def from_catalog(
    catalog: Catalog, places: Places, platforms: set[str], *, derive: bool
) -> Gathered:
    """Return the files of PyTorch's channels that the catalog knows by name and digest.

    Args:
        catalog: what exists.
        places: where the channels lie.
        platforms: those that are wanted.
        derive: also files whose names follow from the tags of a build, without digest.
    """
    wheels: list[Wheel] = []
    nameless: list[tuple[Build, tuple[str, ...]]] = []
    for package in PACKAGES:
        for build in catalog.builds(package):
            if build.home == "pypi" or build.platform not in platforms:
                continue
            files = list(catalog.hashes(package, build.full_version, build.platform, build.channel))
            known = {name.python for file, _ in files if (name := _name(file)) is not None}
            tags = (*build.pythons, *build.pythons_inferred)
            missing = tuple(tag for tag in tags if tag not in known)
            derived = list(_derived(build, missing)) if derive else []
            files += [(file, "") for file in derived]
            if missing and not derived:
                nameless.append((build, missing))
            for file, sha256 in files:
                found = _name(file)
                if found is not None:
                    url = f"{places.of(build.channel)}/{quote(file)}"
                    wheels.append(
                        Wheel(
                            *(package, file, found.python, build, url, sha256),
                            requires_python=build.requires_python,
                            yanked=build.yanked,
                        )
                    )
    return Gathered(tuple(wheels), nameless=tuple(nameless))


class _Tagged(NamedTuple):
    name: WheelName
    python: str


def _name(file: str) -> _Tagged | None:
    name = read_name(file)
    return _Tagged(name, name.pythons[0]) if name is not None and name.pythons else None


def _derived(build: Build, tags: Iterable[str]) -> Iterator[str]:
    """Yield the file names that a build has for some Python tags, by the form of its channel."""
    system, machine = build.platform.split("-")
    if system == "linux" and build.glibc:
        place = f"manylinux_{build.glibc.replace('.', '_')}_{machine}"
    elif system == "windows":
        place = _WINDOWS[machine]
    else:
        return
    for tag in tags:
        if tag.startswith("cp") and "-" not in tag:
            stem = f"{build.package.replace('-', '_')}-{build.full_version}"
            yield f"{stem}-{tag.rstrip('t')}-{tag}-{place}.whl"


def from_index(
    url: str, catalog: Catalog, fetcher: Fetcher, channels: Iterable[str], private: dict[str, str]
) -> Gathered:
    """Return the family's files that a live index lists today.

    ``https://…/whl`` stands for the channels below it. Links that hold a login lose it.

    Args:
        url: of an index, or of the folder of PyTorch's channels.
        catalog: what is known of the builds.
        fetcher: fetches.
        channels: those that are worth looking at below a folder of channels.
        private: what the profile says about URLs.

    Raises:
        UsageError: nothing of the index can be read.
    """
    from torchpin.catalog.bounded import InspectError
    from torchpin.catalog.refresh.pages import ACCEPT_BOTH, parse

    base = url.rstrip("/")
    kind = index_kind(base, private)
    indexes = [(base, kind.channel if kind.kind == "channel" else kind.kind)]
    if kind.kind == "root":
        indexes = [(f"{base}/{channel}", channel) for channel in channels]
    asked = [(index, place, package) for index, place in indexes for package in PACKAGES]
    wheels: list[Wheel] = []
    notes: list[str] = []
    pages = 0

    def read(item: tuple[str, str | None, str]) -> list[Wheel]:
        index, place, package = item
        got = fetcher.page(f"{index}/{package}/", ACCEPT_BOTH)
        if got.status == "absent":
            return []
        page = parse(got.body, got.url, got.content_type, complete=got.complete)
        found: list[Wheel] = []
        for file in page.files:
            name = read_name(file.name)
            if name is None or name.package != package:
                continue
            for build in builds_of(name, place, catalog, redact(index)):
                found.append(
                    Wheel(
                        *(package, file.name, name.pythons[0], build, without_login(file.url)),
                        *(file.sha256, file.requires_python, file.metadata, file.yanked),
                    )
                )
        return found

    failed: list[str] = []
    for item, result in fetcher.each(read, asked):
        if isinstance(result, InspectError):
            failed.append(f"{redact(item[0])}/{item[2]}/: {result}")
        else:
            pages += bool(result)
            wheels += result
    if failed and not pages:
        raise UsageError(f"--from {redact(url)} cannot be read", hint=failed[0])
    notes += failed
    return Gathered(tuple(wheels), tuple(notes))


def without_login(url: str) -> str:
    """Return a URL without user and password: pages are for others to read."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def builds_of(name: WheelName, place: str | None, catalog: Catalog, source: str) -> list[Build]:
    """Return what is known of a file, a build for each platform of its tags.

    Args:
        name: of the file.
        place: the channel that it lies on, ``pypi``, or another word: only its label tells then.
        catalog: what is known.
        source: where the file is listed.
    """
    home = "pypi" if place == "pypi" else "channel"
    channel = place if place and kind_of_label(place) else name.label
    out: list[Build] = []
    for platform in name.platforms:
        found: tuple[Build, ...] = ()
        if home == "pypi" or kind_of_label(channel or ""):
            found = tuple(
                build
                for build in catalog.find(
                    name.package, version=name.version, platform=platform, home=home
                )
                if build.label == name.label and (home == "pypi" or build.channel == channel)
            )
        out.append(
            found[0]
            if found
            else unknown_build(
                *(name.package, name.version, name.label, platform), home=home, source=source
            )
        )
    return out


def from_folder(folder: str, catalog: Catalog) -> Gathered:
    """Return the family's wheels in a folder, with their digests.

    A file counts as the published build of its name only where its digest is the published one, or
    where no digest is known and its label is one of PyTorch's.

    Raises:
        UsageError: the folder cannot be read.
    """
    try:
        files = sorted(os.listdir(folder))
    except OSError as error:
        raise UsageError(f"--from {folder}: {error.strerror}") from error
    wheels: list[Wheel] = []
    for file in files:
        name = read_name(file) if file.endswith(".whl") else None
        if name is None or name.package not in PACKAGES or not name.pythons:
            continue
        path = os.path.join(folder, file)
        sha256 = _digest(path)
        for build in _local_builds(name, file, sha256, catalog, path):
            url = f"files/{quote(file)}"
            wheels.append(Wheel(name.package, file, name.pythons[0], build, url, sha256, path=path))
    return Gathered(tuple(wheels))


def _local_builds(
    name: WheelName, file: str, sha256: str, catalog: Catalog, source: str
) -> Iterator[Build]:
    full = f"{name.version}+{name.label}" if name.label else name.version
    for platform in name.platforms:
        builds = catalog.find(name.package, version=name.version, platform=platform)
        match: Build | None = None
        for build in builds:
            place = "pypi" if build.home == "pypi" else build.channel
            told = dict(catalog.hashes(name.package, full, platform, place)).get(file)
            if build.label == name.label and (
                told == sha256 or (told is None and kind_of_label(name.label))
            ):
                match = build
                break
        yield match or unknown_build(
            *(name.package, name.version, name.label, platform), home="channel", source=source
        )


def _digest(path: str) -> str:
    import hashlib

    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_CHUNK):
                digest.update(block)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    return digest.hexdigest()
