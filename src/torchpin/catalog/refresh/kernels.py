"""What a refresh reads of a wheel: METADATA, ``version.py``, device code, by ranges."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from torchpin.catalog.bounded import Budget, InspectError
from torchpin.catalog.inspect import ARCH_LIBRARIES, inspect_open, show
from torchpin.catalog.inspection import Inspection
from torchpin.catalog.kernel_lists import LINALG, counts, kernel_lists
from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY, Kernels
from torchpin.catalog.refresh.fetch import Fetcher
from torchpin.catalog.refresh.pages import File
from torchpin.catalog.remote import RemoteFile
from torchpin.catalog.wheel_facts import WheelFacts
from torchpin.catalog.wheel_names import read_name
from torchpin.catalog.zipread import Wheel
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.named import NamedTuple

COMPILED = (*FAMILY, "torchcodec", "torchtext")
"""Packages whose wheels say in ``version.py`` and in their libraries what they were built for."""
WHOLE = 16 * 1024 * 1024
"""A wheel up to so many bytes is read whole where its device code is wanted: then its digest is
computed, too. A bigger one is known by the digest that its page lists."""
WHEEL_SECONDS = 600.0

Lists = tuple[tuple[str, ...], tuple[str, ...], int]
"""SASS, PTX, and in how many fatbins just these are held."""


class Reading(NamedTuple):
    """What one wheel says of itself."""

    file: str
    sha256: str
    """That of the page, ``""`` where it has none."""
    ranged: bool
    """Read from the wheel itself; else its PEP 658 file alone."""
    verified: bool
    """All bytes were read and have this digest."""
    device: bool
    """Device code was looked for."""
    version: str
    """Of METADATA."""
    built: str | None
    """``__version__`` of ``version.py``, with its label."""
    cuda: str | None
    hip: str | None
    requires_python: str | None
    requires: tuple[str, ...]
    stated: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] | None
    """SASS, PTX, gfx that torch itself states."""
    libraries: tuple[tuple[str, tuple[Lists, ...], int], ...]
    """Path, lists, and how many fatbins hold nothing for a GPU."""


def read_wheel(fetcher: Fetcher, file: File, *, device: bool) -> Reading:
    """Read a wheel by ranges.

    Args:
        fetcher: counts what it costs.
        file: as its page lists it.
        device: read the libraries too, unless the wheel says that it is a CPU build.

    Raises:
        InspectError: it cannot be read, or is not what its page and its name say.
    """
    budget = Budget(WHEEL_SECONDS)
    source = fetcher.open(file.url, budget)
    try:
        if file.size is not None and source.size != file.size:
            raise InspectError(f"has {source.size} bytes, its page says {file.size}")
        verified = _verified(source, file, WHOLE if device else 64 * 1024)
        wheel = Wheel(source, budget)
        facts = WheelFacts(wheel)
        wheel.prepare(facts.members)
        facts.read()
        _same(file, facts.package, facts.version)
        found: Inspection | None = None
        label = kind_of_label((facts.said.get("__version__") or "").partition("+")[2])
        if device and (label in ("cuda", "rocm") or not facts.cpu_build):
            only = _torchs_own if canonicalize_name(facts.package or "") == "torch" else None
            whole = only is not None  # what is asked for by name is read however big it is
            found = inspect_open(source, show(file.url), budget, only=only, everything=whole)
        stated, libraries = _code(found)
        return Reading(
            file.name,
            file.sha256,
            True,
            verified,
            device,
            facts.version or "",
            facts.said.get("__version__"),
            facts.said.get("cuda"),
            facts.said.get("hip"),
            facts.requires_python,
            facts.requires,
            stated,
            libraries,
        )
    finally:
        fetcher.done(source)


def _torchs_own(path: str) -> bool:
    """Tell whether a library of torch's wheel tells of the GPUs that the catalog names."""
    return path in ARCH_LIBRARIES or path.endswith(f"/{LINALG}")


def _verified(source: RemoteFile, file: File, most: int) -> bool:
    """Tell whether all bytes were read and have the digest of the page.

    Raises:
        InspectError: they have another.
    """
    if source.size > most or not file.sha256:
        return False
    source.seek(0)
    source.hint([(0, source.size)])
    whole = hashlib.sha256()
    while data := source.read(1024 * 1024):
        whole.update(data)
    source.seek(0)
    if whole.hexdigest() != file.sha256:
        raise InspectError("does not have the SHA-256 that its page lists")
    return True


def _same(file: File, package: str | None, version: str | None) -> None:
    """Raise ``InspectError`` unless METADATA names the project and version of the file name."""
    name = read_name(file.name)
    try:
        same = (
            name is not None
            and canonicalize_name(package or "") == name.package
            and Version(version or "").public == Version(name.version).public
        )
    except ValueError:  # InvalidVersion, or more digits than Python reads
        same = False
    if not same:
        raise InspectError("holds another project or version than its name says")


def _code(found: Inspection | None) -> tuple[Any, Any]:
    if found is None:
        return None, ()
    stated = None
    if found.arches is not None:
        stated = (found.arches.sass, found.arches.ptx, found.arches.gfx)
    libraries = tuple(
        (
            library.name,
            tuple((part.sass, part.ptx, part.fatbins) for part in library.fatbins.parts),
            library.fatbins.others,
        )
        for library in found.libraries
        if (library.fatbins.parts or library.name.endswith(LINALG)) and not library.note
    )
    return stated, libraries


def to_json(reading: Reading) -> list[Any]:
    """Return a reading as JSON values."""
    return list(reading)


def from_json(raw: Any) -> Reading | None:
    """Return the reading that ``to_json`` made; None for anything else."""
    try:
        *plain, requires, stated, libraries = raw
        return Reading(  # type: ignore[call-arg]
            *plain,
            tuple(requires),
            None if stated is None else _triple(stated),
            tuple(
                (name, tuple((tuple(s), tuple(p), n) for s, p, n in lists), others)
                for name, lists, others in libraries
            ),
        )
    except (TypeError, ValueError):
        return None


def _triple(raw: Any) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    sass, ptx, gfx = raw
    return tuple(sass), tuple(ptx), tuple(gfx)


def torch_specifier(requires: Iterable[str]) -> str:
    """Return the specifier on torch of ``Requires-Dist``: ``""`` none, ``>=0`` without bounds."""
    for text in requires:
        try:
            requirement = Requirement(text)
        except ValueError:  # InvalidRequirement, or more digits than Python reads
            continue
        if canonicalize_name(requirement.name) != "torch":
            continue
        if "extra" not in str(requirement.marker or ""):
            return str(requirement.specifier) or ">=0"
    return ""


def channel_of(reading: Reading, platform: str, package: str) -> str:
    """Return what a wheel was built for; ``""`` where it does not tell.

    ``version.py`` names the label; wheels without one name the CUDA, or were built without:
    for Linux on ARM every CUDA build has a label (PyTorch's build scripts, since 2.11).
    """
    if package not in COMPILED or reading.file.endswith("-any.whl") or not reading.ranged:
        return ""
    label = (reading.built or "").partition("+")[2]
    if kind_of_label(label):
        return label
    if reading.cuda:
        return "cu" + "".join(reading.cuda.split(".")[:2])
    unlabelled = package in FAMILY and reading.built is not None
    return "cpu" if unlabelled and platform == "linux-aarch64" else ""


def kernels_of_reading(
    reading: Reading, package: str, where: str
) -> tuple[Kernels | None, tuple[tuple[str, Kernels], ...]]:
    """Return the kernel lists of a build in the words of the catalog: main list, libraries.

    Args:
        reading: with device code.
        package: canonical name.
        where: ``PyPI`` or a channel, for the source.
    """
    proof = f"{where} wheel {reading.file} sha256:{reading.sha256}"
    evidence = MEASURED
    if not reading.sha256:
        proof, evidence = f"{where} wheel {reading.file} (its page lists no digest)", PUBLISHED
    return kernel_lists(
        package,
        reading.stated,
        {path: counts(parts, others) for path, parts, others in reading.libraries},
        proof,
        evidence,
        ARCH_LIBRARIES[1 if "-win_" in reading.file else 0],
    )
