"""One run of the engine on what the editor holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from torchpin import engine
from torchpin.documents.base import Document
from torchpin.documents.kinds import PART_KINDS
from torchpin.errors import ConfigError, TorchpinError
from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import load_profile, read_profile
from torchpin.fleet.toml_text import decode
from torchpin.named import NamedTuple
from torchpin.rules.context import Context
from torchpin.server.buffers import Buffer, overlay_of
from torchpin.server.units import Unit, files_of, found_files, unit_of
from torchpin.ways import project_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torchpin.report.baseline import Baseline

Stamp = tuple[int, int, int]
"""Of a file on disk: when it was written, its size, its number."""


class Declared(NamedTuple):
    """A fleet, or why there is none that counts."""

    fleet: Fleet | None
    error: ConfigError | None = None


class Analysis(NamedTuple):
    """What one run found."""

    unit: Unit
    buffers: tuple[Buffer, ...]
    """What was open then."""
    options: engine.Options
    fleet: Fleet | None
    context: Context | None
    report: engine.Report | None
    """None where nothing could be judged."""
    error: ConfigError | None = None
    """What is wrong with the profile."""
    told: tuple[str, ...] = ()
    """What else is to be told, once."""
    shown: tuple[str, ...] = ()
    """The files of which findings are shown."""

    @property
    def documents(self) -> tuple[Document, ...]:
        """All documents that were read."""
        return self.report.documents if self.report is not None else ()

    def document(self, path: str) -> Document | None:
        """Return the document of a file, None if it was not read."""
        real = os.path.realpath(path)
        return next((one for one in self.documents if os.path.realpath(one.path) == real), None)

    def buffer(self, path: str) -> Buffer | None:
        """Return the open text of a file, None if it was not open."""
        real = os.path.realpath(path)
        return next((one for one in self.buffers if one.real == real), None)


class Memory:
    """What is kept between runs: files that have not changed are not read again."""

    def __init__(self) -> None:
        self.documents: dict[str, tuple[Stamp | bytes, Document]] = {}
        self.found: dict[Unit, tuple[str, ...]] = {}
        self.fleets: dict[str, Fleet] = {}
        """The last good fleet of each profile: it counts while the file is being edited."""

    def forget_files(self) -> None:
        """Look for files anew in the next run."""
        self.found.clear()

    def forget_gone(self, held: set[str], *, disk: bool) -> None:
        """Drop the documents of texts that are open no more, and, with ``disk``, of files that are
        gone."""
        for path, (stamp, _) in [*self.documents.items()]:
            if isinstance(stamp, bytes):
                gone = os.path.realpath(path) not in held
            else:
                gone = disk and _stamp(path) is None
            if gone:
                del self.documents[path]


class Reader(engine.Reader):
    """Reads open texts and files, those that have not changed since the last run from memory."""

    def __init__(self, overlay: dict[str, bytes], memory: Memory) -> None:
        super().__init__(overlay)
        self.memory = memory

    def __call__(self, path: str) -> Document:
        """Return the document at ``path``.

        Raises:
            TorchpinError: the file cannot be read.
        """
        held = self.overlay.get(os.path.realpath(path))
        stamp = held[1] if held is not None else _stamp(path)
        known = self.memory.documents.get(path)
        if known is not None and stamp is not None and known[0] == stamp:
            return known[1]
        document = super().__call__(path)
        # What reads other files besides (compose files, includes of commands) is read each time.
        if stamp is not None and document.kind not in PART_KINDS:
            self.memory.documents[path] = stamp, document
        return document


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # reading it tells
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def declared(profile: str | None, overlay: Mapping[str, bytes], memory: Memory) -> Declared:
    """Return the fleet of a profile as it stands in the editor, or on disk.

    While the profile is wrong the last good one counts.
    """
    if profile is None:
        return Declared(None)
    held = overlay.get(profile)
    try:
        if held is not None:
            fleet = read_profile(decode(held, profile), profile)
        else:
            fleet = load_profile(profile)
    except ConfigError as error:
        return Declared(memory.fleets.get(profile), error)
    memory.fleets[profile] = fleet
    return Declared(fleet)


def analyse(
    unit: Unit,
    buffers: Iterable[Buffer],
    folders: Sequence[str],
    options: engine.Options,
    memory: Memory,
    fixed: Fleet | None = None,
) -> Analysis:
    """Judge a unit with the texts that are open.

    Args:
        unit: what to judge.
        buffers: all that is open, of other units too: files may include them.
        folders: those of the workspace.
        options: of the command line.
        memory: kept from run to run.
        fixed: the fleet of the command line; its groups replace those of the profile.
    """
    held = tuple(buffers)
    overlay = overlay_of(held)
    fleet, error = declared(unit.profile, overlay, memory)
    if fixed is not None:
        fleet = fixed if fleet is None else fixed._replace(settings=fleet.settings)
    told: list[str] = []
    memory.forget_gone({one.real for one in held}, disk=not memory.found)
    if unit not in memory.found:
        try:
            memory.found[unit] = found_files(unit, overlay)
        except TorchpinError as trouble:
            told.append(str(trouble))
            memory.found[unit] = ()
    mine = [one for one in held if unit_of(one, folders, overlay) == unit]
    return judged(
        Analysis(unit, held, options, fleet, None, None, error, tuple(told)),
        files_of(unit, memory.found[unit], mine),
        memory,
    )


def judged(before: Analysis, files: Sequence[str], memory: Memory) -> Analysis:
    """Return the analysis of some files."""
    before = before._replace(shown=shown_paths(before, files))
    present = tuple(path for path in files if before.buffer(path) or os.path.isfile(path))
    if not present:
        return before
    options = before.options._replace(paths=present, files=present)
    reader = Reader(overlay_of(before.buffers), memory)
    try:
        stages, notes = engine.look(options, before.fleet, reader)
        paths = (*(one.path for one in stages.documents), *present)
        shown = shown_paths(before, paths)
        report = engine.report_of(stages, options, notes, fixes=True, only=frozenset(shown))
    except ConfigError as error:
        return before._replace(options=options, error=before.error or error)
    except TorchpinError as error:
        return before._replace(options=options, told=(*before.told, str(error)))
    found = before._replace(options=options, context=stages.context, report=report, shown=shown)
    path = before.fleet.settings.baseline if before.fleet is not None else ""
    return without_known(found, path) if path else found


def shown_paths(analysis: Analysis, paths: Iterable[str]) -> tuple[str, ...]:
    """Return of which files findings are shown: those that are open, and the others of their
    projects (the lock beside an open ``pyproject.toml``)."""
    unit = analysis.unit
    found = {*paths, *((unit.profile,) if unit.profile is not None else ())}
    real = {path: os.path.realpath(path) for path in found}
    held = {one.real for one in analysis.buffers}
    opened = {place for place in real.values() if place in held}
    near = {project_folder(path) for path in opened}
    return tuple(
        sorted(
            path
            for path, place in real.items()
            if place in opened or (not unit.lone and project_folder(place) in near)
        )
    )


def without_known(analysis: Analysis, path: str) -> Analysis:
    """Return an analysis without the findings that the baseline at ``path`` holds."""
    report = analysis.report
    if report is None:
        return analysis
    try:
        left = baseline(path).new(report.findings)
    except TorchpinError as error:
        return analysis._replace(told=(*analysis.told, str(error)))
    return analysis._replace(report=report._replace(findings=left))


def baseline(path: str) -> Baseline:
    """Return the baseline at a path.

    Raises:
        TorchpinError: it cannot be read, or is none.
    """
    from torchpin.cli.narrow import read
    from torchpin.report.baseline import Baseline, load

    return Baseline(path, load(read(path), path))
