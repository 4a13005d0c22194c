"""What a wheel or a library says of itself: tags, torch and CUDA versions, device code.

Nothing is executed or imported; sizes in the file are believed only as far as ``bounded`` allows.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote, urlsplit

from torchpin.catalog import elf, pe
from torchpin.catalog.bounded import BLOCK, Budget, InspectError, OfFile, ReadAt, Source
from torchpin.catalog.fatbin import NOTHING, read_fatbins
from torchpin.catalog.http import IDLE_SECONDS, split_login
from torchpin.catalog.inspection import (
    NO_CUDA,
    NO_LIBRARY,
    NOT_FETCHED,
    Arches,
    Inspection,
    Library,
)
from torchpin.catalog.remote import Progress, RemoteFile
from torchpin.catalog.wheel_facts import WheelFacts
from torchpin.catalog.zipread import LocalFile, Wheel
from torchpin.patterns import regex

SKIPPED_ABOVE = 64 * 1024 * 1024
"""Packed bytes from which a library of torch's own wheel is not fetched by URL: the list of GPUs
that torch states stands for it."""
_MOST_LIBRARIES = 2000
_LIBRARY = regex(r"\.(?:so(?:\.\d+)*|dll|pyd)\Z")
_CUDART = regex(r"(?:lib)?cudart(?:[.-][0-9a-f]{8})?(?:\.so\.|64_)(\d+)")
_TARGET = rb"(?:(?:sm|compute)_\d{2,4}[af]?|gfx[0-9a-f]{3,5}(?:[:+-][\w:+-]{1,40})?)"
_ARCHES = regex(
    rb"(?:(?<![\w ])"
    + _TARGET
    + rb"|(?<=\w)"
    + _TARGET
    + rb"(?= ))(?: "
    + _TARGET
    + rb"){0,64}(?=\0)"
)
"""Compilers lay a string right behind 16 bytes of another (torch 2.8, 2.9: ``ipc_hsm_70 sm_75``):
two targets or more may follow a letter."""
_OVERLAP = 4096
ARCH_LIBRARIES = ("torch/lib/libtorch_python.so", "torch/lib/torch_python.dll")

Step = Callable[[str, int], None]
"""Called with what is read next and its packed bytes (0: not known)."""


def inspect(
    target: str,
    *,
    budget: Budget | None = None,
    everything: bool = False,
    only: Callable[[str], bool] | None = None,
    idle: float = IDLE_SECONDS,
    step: Step | None = None,
    progress: Progress | None = None,
) -> Inspection:
    """Read a wheel or a library.

    Args:
        target: a path or an http(s) URL.
        budget: time and bytes; default 600 s and 16 GiB unpacked.
        everything: by URL, read torch's biggest libraries too.
        only: tells from its path whether a library of a wheel is asked for; None: all are.
        idle: seconds without a byte that end a request.
        step, progress: are told how it goes on.

    Raises:
        InspectError: it cannot be read; the message names what is wrong with it.
    """
    limits = budget or Budget()
    remote = "://" in target
    shown = show(target)
    source: RemoteFile | LocalFile | None = None
    try:
        if step is not None:
            step("directory", 0)
        if remote:
            source = RemoteFile(target, limits, idle=idle, progress=progress)
        else:
            source = LocalFile(target, progress)
        return inspect_open(
            source, shown, limits, everything=everything or not remote, only=only, step=step
        )
    except InspectError as error:
        if error.path is not None:
            raise
        raise InspectError(printable(error.message), path=shown, hint=error.hint) from error
    finally:
        if source is not None:
            source.close()


def inspect_open(
    source: RemoteFile | LocalFile,
    shown: str,
    budget: Budget,
    *,
    everything: bool = False,
    only: Callable[[str], bool] | None = None,
    step: Step | None = None,
) -> Inspection:
    """Read a wheel or a library that is open already; it stays open.

    Args:
        source: where it is read from.
        shown: its path, or its URL without credentials and query.
        budget: time and bytes.
        everything, only, step: as for ``inspect``.

    Raises:
        InspectError: it cannot be read; the message names what is wrong with it.
    """
    try:
        return _read(source, shown, budget, everything=everything, only=only, step=step)
    except InspectError as error:
        raise type(error)(printable(error.message), path=shown, hint=error.hint) from error
    except RecursionError as error:
        raise InspectError("is nested too deeply", path=shown) from error


def show(target: str) -> str:
    """Return a path as it is, a URL without credentials, query and fragment."""
    if "://" not in target:
        return target
    try:
        url, _ = split_login(target)
    except InspectError:
        return f"{target.partition('://')[0][:20]}://…"
    return url.partition("?")[0]


def printable(text: str) -> str:
    """Return ``text`` without control characters: names inside a wheel may hold any."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _read(
    source: RemoteFile | LocalFile,
    shown: str,
    budget: Budget,
    *,
    everything: bool,
    only: Callable[[str], bool] | None,
    step: Step | None,
) -> Inspection:
    name = os.path.basename(unquote(urlsplit(shown).path) if "://" in shown else shown)
    source.seek(0)
    head = source.read(4)
    if head[:2] == pe.MAGIC or head == elf.MAGIC:
        return _alone(source, shown, name, budget)
    wheel = Wheel(source, budget)
    try:
        return _wheel(wheel, shown, name, budget, everything=everything, only=only, step=step)
    finally:
        wheel.close()


def _alone(source: RemoteFile | LocalFile, shown: str, name: str, budget: Budget) -> Inspection:
    if isinstance(source, RemoteFile):
        source.hint([(0, source.size)])
    view = OfFile(source, source.size, budget)
    library = _library(view, name, source.size, source.size, budget)
    arches = _arches(view, name) if name in {p.rpartition("/")[2] for p in ARCH_LIBRARIES} else None
    return _made(
        source,
        source=shown,
        kind="library",
        file=name,
        cuda=_runtime((library,)),
        arches=arches,
        libraries=(library,),
    )


def _wheel(
    wheel: Wheel,
    shown: str,
    name: str,
    budget: Budget,
    *,
    everything: bool,
    only: Callable[[str], bool] | None,
    step: Step | None,
) -> Inspection:
    found = [
        info
        for info in wheel.members
        if _LIBRARY.search(info.filename) and (only is None or only(info.filename))
    ]
    if len(found) > _MOST_LIBRARIES:
        raise InspectError(f"holds {len(found)} libraries")
    facts = WheelFacts(wheel)
    states = {info.filename for info in found} & set(ARCH_LIBRARIES)
    left: list[zipfile.ZipInfo] = []
    if not everything and states:
        left = [
            info
            for info in found
            if info.compress_size > SKIPPED_ABOVE and info.filename not in states
        ]
    chosen = [info for info in found if info not in left]
    wheel.prepare([*facts.members, *chosen, *left])
    facts.read()
    arches: Arches | None = None
    libraries: dict[str, Library] = {}
    for info in sorted(chosen, key=lambda info: info.header_offset):
        libraries[info.filename], told = _member(wheel, info, budget, step)
        arches = told or arches
    for info in left:
        note = NOT_FETCHED if arches is not None else NO_CUDA if facts.cpu_build else ""
        if note:
            libraries[info.filename] = Library(
                *(info.filename, info.file_size, info.compress_size, None, NOTHING, note)
            )
        else:  # torch says nothing that could stand for it
            libraries[info.filename], _ = _member(wheel, info, budget, step)
    ordered = tuple(libraries[path] for path in sorted(libraries))
    notes = facts.notes(name)
    return _made(
        wheel.source,
        source=shown,
        kind="wheel",
        file=name,
        package=facts.package,
        version=facts.version,
        tags=facts.tags,
        requires_python=facts.requires_python,
        requires=facts.requires,
        built=facts.said.get("__version__"),
        cuda=facts.said.get("cuda") or facts.label_cuda() or _runtime(ordered),
        hip=facts.said.get("hip"),
        arches=arches,
        libraries=ordered,
        notes=notes,
    )


def _member(
    wheel: Wheel, info: zipfile.ZipInfo, budget: Budget, step: Step | None
) -> tuple[Library, Arches | None]:
    name = info.filename
    if step is not None:
        step(name, info.compress_size)
    try:
        view = wheel.open(info)
        library = _library(view, name, info.file_size, info.compress_size, budget)
        return library, _arches(view, name) if name in ARCH_LIBRARIES else None
    except InspectError as error:
        raise InspectError(f"{name}: {error.message}", hint=error.hint) from error


def _made(source: Source, /, **values: Any) -> Inspection:
    """Return an inspection; what is not told is None or empty."""
    blank = Inspection(
        *("", "", "", source.size, None, None, (), None, ()),
        *(None, None, None, None, (), ()),
        requests=source.requests if isinstance(source, RemoteFile) else 0,
        fetched=source.fetched if isinstance(source, RemoteFile) else 0,
    )
    return blank._replace(**values)


def _library(view: ReadAt, name: str, size: int, packed: int, budget: Budget) -> Library:
    head = view.read(0, min(6, view.size))
    if head[:4] == elf.MAGIC:
        if head[4:] != b"\x02\x01":
            return Library(name, size, packed, None, NOTHING, "not a 64-bit library")
        layout = elf.read_elf(view)
    elif head[:2] == pe.MAGIC:
        layout = pe.read_pe(view)
    else:
        return Library(name, size, packed, None, NOTHING, NO_LIBRARY)
    note = "" if layout.sections else "its section table was stripped"
    return Library(name, size, packed, layout, read_fatbins(view, layout.fatbins, budget), note)


def _arches(view: ReadAt, name: str) -> Arches | None:
    """Find the longest list of targets: what the build wrote as ``TORCH_CUDA_ARCH_LIST``."""
    best: tuple[str, ...] = ()
    before = b""
    for offset in range(0, view.size, BLOCK):
        block = before + view.read(offset, min(BLOCK, view.size - offset))
        for match in _ARCHES.finditer(block):
            words = tuple(match[0].decode().split(" "))
            best = max(best, words, key=len)
        before = block[-_OVERLAP:]
    if not best:
        return None
    return Arches(
        tuple(word.removeprefix("sm_") for word in best if word.startswith("sm_")),
        tuple(word.removeprefix("compute_") for word in best if word.startswith("compute_")),
        tuple(word for word in best if word.startswith("gfx")),
        name,
    )


def _runtime(libraries: Iterable[Library]) -> str | None:
    """Return the CUDA major that all needed runtime libraries name; None if they differ."""
    found = {
        match[1]
        for library in libraries
        for name in library.needs
        if (match := _CUDART.match(name))
    }
    majors = {text[:2] if text < "7" else text[:1] for text in found}  # 64_110 is 11, 64_92 is 9
    return majors.pop() if len(majors) == 1 else None
