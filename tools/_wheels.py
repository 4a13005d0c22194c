"""What PyPI's CUDA wheels hold: stated GPUs and the kernels of each library."""

from __future__ import annotations

import email.parser
import re
import sys
import time
import urllib.error
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from tools._common import project_files
from tools._contents import NoMetadataError, constants, metadata
from tools._facts import Wheel, pypi_wheels
from tools._zips import RemoteZip

from torchpin.catalog.bounded import Budget, Held, InspectError
from torchpin.catalog.elf import read_elf
from torchpin.catalog.fatbin import Fatbins, read_fatbins
from torchpin.catalog.inspect import inspect

FROM = {
    "torch": Version("1.8"),
    "torchvision": Version("0.15"),
    "torchaudio": Version("2.0"),
    "torchcodec": Version("0"),
    "torchao": Version("0.5"),
    "xformers": Version("0.0.22"),
    "bitsandbytes": Version("0.43"),
    "triton": Version("0"),
}
"""Package → the first release of which wheels are read."""
METADATA_ONLY = ("triton",)
"""Packages whose wheels hold no device code: they compile on the machine."""
WINDOWS = ("bitsandbytes", "torchao", "torchcodec", "torchvision", "torchaudio", "xformers")
"""Packages whose Windows wheels on PyPI may hold device code (those of torch are CPU builds)."""
STATED = "torch/lib/libtorch_python.so"
LINALG = "torch/lib/libtorch_cuda_linalg.so"
KEPT = re.compile(r"(?:torch|triton|pytorch-triton|nvidia-.*|cuda-.*)")
"""Names of the requirements that are recorded."""
INTERNAL = re.compile(r"nvidia-(cudnn|cublas|cusparselt|nccl|cusolver|cusparse|curand)(?:-cu\d+)?")
"""The pinned libraries whose device code lies in their fatbins. That of cuFFT does not since CUDA
12.4: there they hold a stub for sm_52 or sm_75, and cuFFT runs on all GPUs."""
AT_ONCE = 3
TRIES = 3
LISTS = tuple[int, dict[str, int], dict[str, int]]
"""(fatbins, SASS target → in how many of them, PTX target → likewise)"""


class Read(NamedTuple):
    """What one wheel holds."""

    package: str
    file: str
    sha256: str
    version: str | None
    """``__version__`` of its ``version.py``."""
    cuda: str | None
    """``cuda`` of its ``version.py``."""
    requires: list[str]
    """Requires-Dist on torch, triton and NVIDIA's packages, those of extras left out."""
    states: str | None
    """The GPUs that torch states: ``sm_75 sm_80``; None for other packages, ``""`` for none."""
    libraries: dict[str, LISTS]
    """Path in the wheel → its device code, for libraries that hold some (and linalg)."""


def requirements(text: str) -> list[str]:
    """Return the recorded requirements of a METADATA, in its order, in normal form."""
    out = []
    for line in email.parser.Parser().parsestr(text, headersonly=True).get_all("Requires-Dist", []):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        requirement.name = canonicalize_name(requirement.name)
        if KEPT.fullmatch(requirement.name) and "extra" not in str(requirement.marker or ""):
            out.append(str(requirement))
    return out


def lists_of(found: Fatbins) -> LISTS:
    """Count in how many fatbins each target occurs."""
    sass: Counter[str] = Counter()
    ptx: Counter[str] = Counter()
    for part in found.parts:
        sass.update(dict.fromkeys(part.sass, part.fatbins))
        ptx.update(dict.fromkeys(part.ptx, part.fatbins))
    return (found.total + found.others, dict(sorted(sass.items())), dict(sorted(ptx.items())))


def read_torch(file: dict[str, Any]) -> Read:
    """Read the parts of a torch wheel that tell its GPUs; its biggest libraries are left out."""
    archive = RemoteZip(file["url"], file.get("size"))
    said = version_of(archive, "torch")
    libraries: dict[str, LISTS] = {}
    if (member := archive.named(LINALG)) is not None:
        held = Held(archive.read(member))
        libraries[LINALG] = lists_of(read_fatbins(held, read_elf(held).fatbins))
    stated = archive.named(STATED)
    words = stated_gpus(archive.read(stated)) if stated is not None else ""
    return Read(
        "torch",
        file["filename"],
        file["hashes"]["sha256"],
        said.get("__version__"),
        said.get("cuda"),
        requirements(metadata(file, archive)),
        words,
        libraries,
    )


def stated_gpus(data: bytes) -> str:
    """Return what ``torch.cuda.get_arch_list()`` returns: the longest such string of a library."""
    word = rb"(?:sm|compute)_[0-9]{2,3}[af]?"
    found = re.findall(rb"(" + word + rb"(?: " + word + rb")*)\0", data)
    return max(found, key=len, default=b"").decode()


def version_of(archive: RemoteZip, package: str) -> dict[str, str]:
    """Return what ``version.py`` of a wheel says."""
    member = archive.named(f"{package}/version.py")
    return constants(archive.read(member).decode()) if member else {}


def read_wheel(package: str, file: dict[str, Any]) -> Read:
    """Read every library of a wheel."""
    if package == "torch":
        return read_torch(file)
    archive = RemoteZip(file["url"], file.get("size"))
    try:
        required = requirements(metadata(file, archive))
    except NoMetadataError:
        required = []
    said = version_of(archive, package)
    libraries: dict[str, LISTS] = {}
    if package not in METADATA_ONLY and any(
        re.search(r"\.(so(\.\d+)*|dll|pyd)$", member.name) for member in archive.members
    ):
        found = inspect(file["url"], budget=Budget(1800.0), everything=True)
        libraries = {one.name: lists_of(one.fatbins) for one in found.device}
    return Read(
        package,
        file["filename"],
        file["hashes"]["sha256"],
        said.get("__version__"),
        said.get("cuda"),
        required,
        None,
        libraries,
    )


def patiently(package: str, file: dict[str, Any]) -> Read:
    """Read one wheel, again after a pause where the host is busy."""
    for attempt in range(1, TRIES + 1):
        try:
            return read_wheel(package, file)
        except urllib.error.HTTPError as error:
            if attempt == TRIES or error.code not in (429, 500, 502, 503, 504):
                raise
        except (OSError, InspectError):
            if attempt == TRIES:
                raise
        time.sleep(2**attempt)
    raise AssertionError


def chosen(package: str, wheels: Iterable[Wheel]) -> list[str]:
    """Return one file name a version and platform: the first that is not yanked."""
    places = {"linux-x86_64", "linux-aarch64"}
    if package in WINDOWS:
        places.add("windows-x86_64")
    best: dict[tuple[str, str], tuple[bool, str]] = {}
    for wheel in wheels:
        version = Version(wheel.version)
        if version < FROM[package] or version.is_prerelease or wheel.name.endswith("-any.whl"):
            continue
        for platform in places.intersection(wheel.platforms):
            place, rank = (wheel.version, platform), (wheel.yanked, wheel.name)
            best[place] = min(best.get(place, rank), rank)
    return sorted({name for _, name in best.values()})


def read_all(
    package: str, names: list[str], known: dict[tuple[str, str], Any], listed: dict[str, str]
) -> list[list[Any]]:
    """Return the rows of some files; what was read of the same bytes before is not read again."""
    new = [name for name in names if (name, listed[name]) not in known]
    files = {f["filename"]: f for f in project_files(package)["files"]} if new else {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        read = list(pool.map(lambda name: patiently(package, files[name]), new))
    wrong = [one.file for one in read if one.sha256 != listed[one.file]]
    if wrong:
        raise OSError(f"{wrong[0]} is not what the index listed: measure index again")
    print(package, len(names), "wheels,", len(new), "read", file=sys.stderr, flush=True)
    fresh = [list(one) for one in read]
    return [known[name, listed[name]] for name in names if name not in set(new)] + fresh


def measure_wheels(state: dict[str, Any]) -> dict[str, Any]:
    """Return a row a wheel of torch and its companions."""
    known = {(row[1], row[2]): row for row in state.get("wheels", {}).get("rows", [])}
    rows = []
    for package in FROM:
        index = state["index"][package]["files"]
        names = chosen(package, pypi_wheels(package, index))
        rows += read_all(package, names, known, {row[0]: row[1] for row in index})
    return {"rows": sorted(rows, key=lambda row: row[:2])}


BESIDE = (
    ("nvidia-cublas-cu12", "12.6.4.1", "linux-aarch64"),
    ("nvidia-cublas-cu12", "12.8.4.1", "linux-aarch64"),
    ("nvidia-cudnn-cu12", "9.10.2.21", "linux-aarch64"),
    ("nvidia-nccl-cu12", "2.27.5", "linux-aarch64"),
)
"""What a build from source takes and no wheel of PyPI brings: PyPI's torch for aarch64 has been
without CUDA 12. They are the versions that torch brings on x86_64."""


def measure_internals(state: dict[str, Any]) -> dict[str, Any]:
    """Return what torch's wheels bring from NVIDIA, and a row a wheel of those with device code.

    ``cuda-toolkit`` stands for the libraries that its extras name; their versions are in its
    own METADATA.
    """
    known = {(row[1], row[2]): row for row in state.get("internals", {}).get("rows", [])}
    toolkit = Toolkit()
    wanted: dict[str, set[tuple[str, str]]] = defaultdict(set)
    brings = []
    for row in state["wheels"]["rows"]:
        read = Read(*row)
        if read.package != "torch":
            continue
        machine = "aarch64" if read.file.endswith("aarch64.whl") else "x86_64"
        needs = applying(read.requires, machine, toolkit)
        if not needs:
            continue
        exact = {need.name: version for need in needs if (version := toolkit.chosen(need))}
        brings.append(
            [read.file, [f"{n.name}{n.specifier}" for n in needs], dict(sorted(exact.items()))]
        )
        for name, version in exact.items():
            if INTERNAL.fullmatch(name):
                wanted[name].add((version, f"linux-{machine}"))
    for name, version, platform in BESIDE:
        wanted[name].add((version, platform))
    rows = []
    for package in sorted(wanted):
        files = toolkit.files(package)
        names = set()
        for version, platform in wanted[package]:
            fit = [
                w.name
                for w in listed(package, files)
                if Version(w.version) == Version(version) and platform in w.platforms
            ]
            names.update(sorted(fit)[:1])
        digests = {f["filename"]: f["hashes"]["sha256"] for f in files}
        rows += read_all(package, sorted(names), known, digests)
    return {"rows": sorted(rows, key=lambda row: row[:2]), "brings": sorted(brings)}


def listed(package: str, files: list[dict[str, Any]]) -> list[Wheel]:
    """Return the wheels of a PEP 691 page."""
    return pypi_wheels(
        package,
        [[f["filename"], "", "", f.get("yanked") or False, None] for f in files],
    )


class Toolkit:
    """``cuda-toolkit`` of NVIDIA: what its extras bring, read once a version."""

    def __init__(self, index: Callable[[str], dict[str, Any]] = project_files) -> None:
        self._index = index
        self._pages: dict[str, list[dict[str, Any]]] = {}
        self._said: dict[str, list[str]] = {}
        self._versions: dict[str, list[str]] = {}

    def files(self, package: str) -> list[dict[str, Any]]:
        """Return the files of a project."""
        if package not in self._pages:
            self._pages[package] = self._index(package)["files"]
        return self._pages[package]

    def chosen(self, need: Requirement) -> str | None:
        """Return the newest version that a requirement admits; None if there is none."""
        if need.name not in self._versions:
            found = {w.version for w in listed(need.name, self.files(need.name)) if not w.yanked}
            self._versions[need.name] = sorted(found, key=Version, reverse=True)
        return next((v for v in self._versions[need.name] if need.specifier.contains(v)), None)

    def brings(self, requirement: Requirement, machine: str) -> list[Requirement]:
        """Return what ``cuda-toolkit[…]==X`` requires on Linux."""
        version = self.chosen(requirement)
        if version is None:
            raise OSError(f"no {requirement} on the index")
        if version not in self._said:
            file = next(
                f for f in self.files("cuda-toolkit") if f["filename"].split("-")[1] == version
            )
            parsed = email.parser.Parser().parsestr(metadata(file), headersonly=True)
            self._said[version] = parsed.get_all("Requires-Dist", [])
        out = []
        for line in self._said[version]:
            one = Requirement(line)
            places = [{**environment(machine), "extra": extra} for extra in requirement.extras]
            if one.marker is None or any(one.marker.evaluate(place) for place in places):
                out.append(one)
        return out


def environment(machine: str) -> dict[str, str]:
    """Return the markers of a Linux machine."""
    return {
        "platform_system": "Linux",
        "sys_platform": "linux",
        "os_name": "posix",
        "platform_machine": machine,
        "python_version": "3.12",
        "python_full_version": "3.12.0",
        "extra": "",
    }


def applying(requires: Iterable[str], machine: str, toolkit: Toolkit) -> list[Requirement]:
    """Return what a torch wheel asks of triton and NVIDIA on a Linux machine, sorted by name."""
    out: dict[str, Requirement] = {}
    for text in requires:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate(environment(machine)):
            continue
        found = [requirement]
        if requirement.name == "cuda-toolkit":
            found += toolkit.brings(requirement, machine)
        for one in found:
            one.name = canonicalize_name(one.name)
            if one.name.startswith(("nvidia-", "triton", "pytorch-triton", "cuda-")):
                old = out.setdefault(one.name, one)
                old.specifier &= one.specifier
    return [out[name] for name in sorted(out)]
