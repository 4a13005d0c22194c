"""A whole refresh: pages, wheels, the next catalog, and where it goes."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from packaging.version import Version

from torchpin import __version__
from torchpin.catalog.bounded import InspectError
from torchpin.catalog.location import CURRENT, catalogs_dir, user_catalog
from torchpin.catalog.records import State, read_state, render, write_folder
from torchpin.catalog.refresh.address import pypi_index
from torchpin.catalog.refresh.cache import Cache, remove_parts
from torchpin.catalog.refresh.changes import changes
from torchpin.catalog.refresh.fetch import Fetcher, today
from torchpin.catalog.refresh.gather import Gathered
from torchpin.catalog.refresh.kernels import Reading, torch_specifier
from torchpin.catalog.refresh.listing import PYPI, Listing
from torchpin.catalog.refresh.merge import merge
from torchpin.catalog.refresh.metadata import key_of, read_file
from torchpin.catalog.refresh.plan import Task, pins_to_read, tasks
from torchpin.catalog.refresh.rebase import rebase
from torchpin.catalog.refresh.settings import PACKAGES, Change, Failed, Result, Settings
from torchpin.catalog.store import Catalog, shipped_catalog
from torchpin.catalog.whole import HEAD, check_whole
from torchpin.errors import CatalogError, UsageError

ROUNDS = 3
"""So often wheels may name channels that no page named."""


SPARED = 3600.0
"""Seconds for which catalogs that are not in use stay: another refresh may be writing one."""


class Watch(Protocol):
    """Is told how it goes on."""

    def pages(self, done: int, total: int) -> None:
        """So many pages are read."""

    def wheels(self, done: int, total: int) -> None:
        """So many wheels are read."""

    def bytes(self, count: int) -> None:
        """So many bytes came since the last call; other threads call this."""


class Nobody:
    """Watches nothing."""

    def pages(self, done: int, total: int) -> None:
        """Ignore it."""

    def wheels(self, done: int, total: int) -> None:
        """Ignore it."""

    def bytes(self, count: int) -> None:
        """Ignore it."""


def refresh(settings: Settings, watch: Watch | None = None) -> Result:
    """Renew the catalog.

    Args:
        settings: what is asked for.
        watch: is told how it goes on.

    Raises:
        CatalogError: the old catalog cannot be read, the new one not be written, or is not sound.
        UsageError: PyPI's address is not known, or a package is none of the catalog's.
    """
    started = time.monotonic()
    watch = watch or Nobody()
    day = settings.today or today()
    cache = Cache(keeps=not settings.dry_run)
    fetcher = Fetcher(cache, jobs=settings.jobs, idle=settings.idle, today=day)
    fetcher.progress = watch.bytes
    folder, before = begin(settings)
    _known(settings, before)
    if not settings.dry_run:
        _writable(settings.output or catalogs_dir())
        if settings.output is None:
            remove_parts(catalogs_dir())
    gathered = Gathered(fetcher, settings, before, watch.pages)
    if not settings.channels or PYPI in settings.channels:
        gathered.pypi(settings.pypi or pypi_index())
    if not settings.channels or set(settings.channels) != {PYPI}:
        gathered.channels()
    reader = _Reader(fetcher, settings, before, watch)
    after = merge(before, list(gathered.listings.values()), {})
    for _ in range(ROUNDS):
        listings = list(gathered.listings.values())
        reader.read(merge(before, listings, reader.readings), listings)
        after = merge(before, listings, reader.readings)
        found = _labels(after) - _labels(before)
        if settings.channels or settings.dry_run or not found - gathered.seen:
            break
        gathered.of(found)
    after = after._replace(pins=reader.pins(gathered.pins))
    failed = [*gathered.failed, *reader.failed]
    if not gathered.answered:
        return _result(None, before, (), failed, gathered, reader, fetcher, started)
    after, files, unsound = _sound(_headed(after, before, day), before)
    failed += unsound
    found_changes = _changes(folder, files)
    place: str | None = None
    if not settings.dry_run:
        place = settings.output or os.path.join(catalogs_dir(), _name(files))
        if settings.output is not None or not _lies_there(place, files):
            write_folder(place, files)
        if settings.output is None:
            _point(place)
    used = before if place is None else after._replace(head=json.loads(files[HEAD]))
    return _result(place, used, found_changes, failed, gathered, reader, fetcher, started)


def _lies_there(folder: str, files: dict[str, str]) -> bool:
    """Tell whether a folder holds these files already."""
    try:
        with open(os.path.join(folder, HEAD), encoding="utf-8") as file:
            return file.read() == files[HEAD] and not check_whole(folder)
    except (OSError, ValueError):
        return False


def _changes(folder: str, files: dict[str, str]) -> tuple[Change, ...]:
    """Return what a refresh found.

    Raises:
        CatalogError: there is no room for temporary files.
    """
    try:
        staged = tempfile.TemporaryDirectory(prefix="torchpin-refresh-")
    except OSError as error:
        raise CatalogError(f"temporary files cannot be written: {error.strerror}") from error
    with staged as place:
        write_folder(place, files)
        return changes(Catalog(folder), Catalog(place))


def begin(settings: Settings) -> tuple[str, State]:
    """Return the folder of the catalog to begin with, and what it holds.

    That of ``--output`` if one lies there, else the user's, else the shipped one. A user's catalog
    that was made from another torchpin's is brought up to this one's.

    Raises:
        CatalogError: it cannot be read.
    """
    shipped = shipped_catalog()
    if settings.output is not None and os.path.lexists(os.path.join(settings.output, HEAD)):
        return settings.output, _there(settings.output)
    own = user_catalog()
    if own is not None and not check_whole(own):
        with suppress(CatalogError):  # of another torchpin: it is made anew
            base, known = Catalog(own).base, read_state(own)
            if base == shipped.digest:
                return own, known
            return shipped.folder, rebase(read_state(shipped.folder), known)
    return shipped.folder, read_state(shipped.folder)


def _there(folder: str) -> State:
    """Return the catalog that lies where a new one is to go.

    Raises:
        CatalogError: it is damaged or of another torchpin.
    """
    try:
        wrong = check_whole(folder) if Catalog(folder).base else ""
        if not wrong:
            return read_state(folder)
    except CatalogError as error:
        wrong = error.message
    raise CatalogError(
        f"the catalog in the folder of --output cannot be renewed: {wrong}",
        path=folder,
        hint="remove it, or name another folder",
    )


def _writable(folder: str) -> None:
    """Try, before anything is fetched, whether a catalog can be written.

    Raises:
        CatalogError: it cannot.
    """
    probe = os.path.join(folder, f".torchpin.{os.getpid()}.part")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(probe, "wb"):
            pass
        os.unlink(probe)
    except OSError as error:
        raise CatalogError(
            f"cannot be written: {error.strerror}",
            path=folder,
            hint="--output DIR or TORCHPIN_CACHE_DIR names another folder",
        ) from error


def _known(settings: Settings, state: State) -> None:
    """Refuse packages that the catalog does not follow.

    Raises:
        UsageError: there is one.
    """
    from difflib import get_close_matches

    followed = {*PACKAGES, *state.parts, *(row[0] for row in state.pins)}
    for name in settings.packages:
        if name not in followed:
            near = get_close_matches(name, sorted(followed), n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"it follows {', '.join(PACKAGES)}"
            raise UsageError(f"--package: the catalog does not follow {name!r}", hint=hint)


class _Reader:
    """Reads wheels and keeps what they say."""

    def __init__(self, fetcher: Fetcher, settings: Settings, before: State, watch: Watch) -> None:
        self._fetcher = fetcher
        self._settings = settings
        self._before = before
        self._watch = watch
        self._tried: set[str] = set()
        own = settings.output is not None
        self._newest: dict[str, str] = before.head["newest"] if own else {}
        if not own:
            shipped = shipped_catalog()
            self._newest = {name: shipped.newest(name) for name in shipped.packages()}
        self.readings: dict[str, Reading] = {}
        self.failed: list[Failed] = []
        self.left = 0
        """Wheels that a dry run would have read."""

    def read(self, state: State, listings: Sequence[Listing]) -> None:
        """Read the wheels of builds that lack facts."""
        wanted = [
            task
            for task in tasks(state, listings, self.readings, self._newest, self._settings.since)
            if key_of(task.file) not in self._tried
        ]
        if self._settings.dry_run:
            self.left += len(wanted)
            return
        self._all(wanted)

    def _all(self, wanted: Sequence[Task]) -> None:
        def one(task: Task) -> Reading:
            return read_file(self._fetcher, task.file, device=task.device)

        for done, (task, answer) in enumerate(self._fetcher.each(one, wanted), 1):
            self._watch.wheels(done, len(wanted))
            self._tried.add(key_of(task.file))
            if isinstance(answer, InspectError):
                kept = "" if task.channel else str(self._before.head["date"])
                self.failed.append(Failed(task.file.name, answer.message, kept))
            else:
                self.readings[key_of(task.file)] = answer

    def pins(self, listings: dict[str, Listing]) -> list[list[str]]:
        """Return the pins of torch with those of new releases."""
        rows = list(self._before.pins)
        named = {row[0] for row in rows}
        wanted: dict[str, tuple[str, str]] = {}
        new: list[Task] = []
        for package in sorted(named & set(listings)):
            for version, file in pins_to_read(self._before, listings[package]):
                wanted[key_of(file)] = (package, version)
                if key_of(file) not in self.readings:
                    new.append(Task(file, False, package, ""))
        if self._settings.dry_run:
            self.left += len(new)
            return rows
        self._all(new)
        for key, (package, version) in wanted.items():
            reading = self.readings.get(key)
            if reading is None or not reading.sha256:
                continue
            specifier = torch_specifier(reading.requires)
            if specifier:
                text = "" if specifier == ">=0" else specifier
                rows.append([package, version, text, reading.sha256])
        return sorted(rows, key=lambda row: (row[0], Version(row[1])))


def _labels(state: State) -> set[str]:
    """Return what PyPI's builds were built for: each is the name of a channel."""
    return {b.channel for part in state.parts.values() for b in part.builds if b.channel}


def _headed(state: State, before: State, day: str) -> State:
    """Return the state with a head that says when and by what it was made."""
    dates = [
        next((page[1] for page in part.pages if page[0] == PYPI), str(before.head["date"]))
        for part in state.parts.values()
        if part.pypi
    ]
    head: dict[str, Any] = {
        key: value for key, value in state.head.items() if key not in ("files", "newest", "builds")
    }
    head |= {
        "date": max(min(dates), str(before.head["date"])),
        "base": shipped_catalog().digest,
        "refreshed": day,
        "tool": __version__,
        "newest": state.head["newest"],
        "builds": state.head["builds"],
    }
    return state._replace(head=head)


def _sound(after: State, before: State) -> tuple[State, dict[str, str], list[Failed]]:
    """Return the catalog and its files; packages of which no catalog can hold the new data stay.

    Raises:
        CatalogError: it is not sound for another reason.
    """
    from torchpin.catalog.schema import check_files

    failed: list[Failed] = []
    while True:
        files = render(after)
        problems = check_files({name: text.encode() for name, text in files.items()})
        if not problems:
            return after, files, failed
        wrong = {
            problem.file.partition("-")[2].removesuffix(".json"): str(problem)
            for problem in reversed(problems)
        }
        wrong = {name: text for name, text in wrong.items() if name in after.parts}
        if not wrong or any(after.parts[n] == before.parts.get(n) for n in wrong):
            raise CatalogError(
                f"the indexes say what no catalog can hold: {problems[0]}; the old catalog stays"
            )
        parts = dict(after.parts)
        newest = dict(after.head["newest"])
        for name, text in wrong.items():
            failed.append(Failed(name, f"what its pages say is odd ({text})", _as_of(before)))
            parts.pop(name)
            newest.pop(name, None)
            if name in before.parts:
                parts[name] = before.parts[name]
                newest[name] = before.head["newest"].get(name, "")
        head = after.head | {"newest": newest}
        ordered = {name: parts[name] for name in sorted(parts)}
        after = after._replace(head=head, parts=ordered)


def _as_of(state: State) -> str:
    return str(state.head["date"])


def _name(files: dict[str, str]) -> str:
    """Return the name of the folder for these files: no two catalogs share one."""
    import hashlib

    return hashlib.sha256(files[HEAD].encode()).hexdigest()[:16]


def _point(folder: str) -> None:
    """Make a folder the user's catalog, and remove those before the last.

    Raises:
        CatalogError: the pointer cannot be written.
    """
    base = catalogs_dir()
    pointer = os.path.join(base, CURRENT)
    last = user_catalog()
    part = f"{pointer}.{os.getpid()}.part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(f"{os.path.basename(folder)}\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, pointer)
    except OSError as error:
        raise CatalogError(f"cannot be written: {error.strerror}", path=pointer) from error
    keep = {os.path.basename(folder), os.path.basename(last or "")}
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if name not in keep and os.path.isdir(path) and _older(path):
            shutil.rmtree(path, ignore_errors=True)


def _older(path: str) -> bool:
    """Tell whether a folder is older than another refresh may still need it."""
    try:
        return time.time() - os.stat(path).st_mtime > SPARED
    except OSError:  # another refresh was quicker
        return False


def _result(
    folder: str | None,
    state: State,
    found: tuple[Change, ...],
    failed: Sequence[Failed],
    gathered: Gathered,
    reader: _Reader,
    fetcher: Fetcher,
    started: float,
) -> Result:
    return Result(
        folder,
        str(state.head["date"]),
        str(state.head["digest"]),
        found,
        tuple(failed),
        gathered.answered,
        gathered.unchanged,
        reader.left or fetcher.wheels,
        fetcher.requests,
        fetcher.fetched,
        time.monotonic() - started,
        fetcher.unreachable,
        fetcher.cache.trouble,
    )
