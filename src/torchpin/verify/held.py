"""For which GPUs the installed libraries hold code, read from the files."""

from __future__ import annotations

import os

from torchpin.catalog.bounded import Budget, InspectError
from torchpin.catalog.inspect import inspect
from torchpin.catalog.inspection import Arches, Library
from torchpin.catalog.kernel_lists import Counts, counts, kernel_lists, sorted_targets
from torchpin.catalog.model import Kernels
from torchpin.evidence import MEASURED
from torchpin.named import NamedTuple
from torchpin.patterns import regex
from torchpin.verify import model
from torchpin.verify.installed import Package

_SECONDS = 120.0
_STATING = regex(r"(?:lib)?torch_python\.(?:so|dll)\Z")
_TORCHS = regex(r"(?:lib)?torch_(?:python|cuda\w*|hip\w*)\.(?:so|dll)\Z")
_NVIDIAS = regex(r"(?:lib)?(cudnn|cublas|cusolver|cusparse(?!Lt)|nccl)[\w.-]*\Z")
_COMPILED = regex(r"\.(?:so(?:\.\d+)*|pyd|dll)\Z")
_PLACES = {"torchvision": ("torchvision",), "torchaudio": ("torchaudio", "torchaudio/lib")}


class Held(NamedTuple):
    """What the libraries of a package hold."""

    package: str
    main: Kernels | None
    beside: tuple[tuple[str, Kernels], ...]
    shown: tuple[model.Kernels, ...]
    problems: tuple[str, ...] = ()


def read_held(package: Package) -> Held:
    """Return what the installed libraries of torch, torchvision or torchaudio hold.

    For torch, what NVIDIA's libraries beside it hold is among ``shown`` only.
    """
    libraries: dict[str, Counts] = {}
    shown: list[model.Kernels] = []
    problems: list[str] = []
    stated: Arches | None = None
    budget = Budget(_SECONDS)
    for path in _files(package):
        name = os.path.basename(path)
        try:
            found = inspect(path, budget=budget)
        except InspectError as error:
            problems.append(f"{name} cannot be read: {error.message}")
            continue
        stated = found.arches if _STATING.match(name) else stated
        for library in found.libraries:
            if library.layout is not None:
                libraries[name] = _counts(library)
    proof = f"the installed files of {package.name} {package.full_version}"
    torchs = None if stated is None else (stated.sass, stated.ptx, stated.gfx)
    main, beside = kernel_lists(package.name, torchs, libraries, proof, MEASURED)
    if package.name == "torch" and main is not None:
        shown += [kernels_of(name, lists) for name, lists in (("torch", main), *beside)]
    elif main is not None:
        shown.append(kernels_of(package.name, main))
    if package.name == "torch":
        shown += _nvidias(package, budget, problems)
    return Held(package.name, main, beside, tuple(shown), tuple(problems))


def _counts(library: Library) -> Counts:
    parts = ((part.sass, part.ptx, part.fatbins) for part in library.fatbins.parts)
    return counts(parts, library.fatbins.others)


def kernels_of(name: str, lists: Kernels) -> model.Kernels:
    """Return the lists of a library as the lines of ``verify`` have them."""
    cubins = lists.gfx or tuple(f"sm_{arch}" for arch in lists.sass)
    return model.Kernels(name, cubins, tuple(f"compute_{arch}" for arch in lists.ptx))


def _files(package: Package) -> list[str]:
    if package.name == "torch":
        folder = os.path.join(package.folder, "torch", "lib")
        return [path for path in _listed(folder) if _TORCHS.match(os.path.basename(path))]
    places = _PLACES.get(package.name, ())
    return [
        path
        for place in places
        for path in _listed(os.path.join(package.folder, place))
        if _COMPILED.search(path)
    ]


def _nvidias(package: Package, budget: Budget, problems: list[str]) -> list[model.Kernels]:
    """Return what cuDNN, cuBLAS … hold, all files of a library together."""
    held: dict[str, tuple[set[str], set[str]]] = {}
    for path in _beside(package):
        match = _NVIDIAS.match(os.path.basename(path))
        if match is None:
            continue
        try:
            found = inspect(path, budget=budget)
        except InspectError as error:
            problems.append(f"{os.path.basename(path)} cannot be read: {error.message}")
            continue
        for library in found.device:
            sass, ptx = held.setdefault(match[1], (set(), set()))
            sass.update(library.fatbins.sass)
            ptx.update(library.fatbins.ptx)
    return [
        kernels_of(name, Kernels(sorted_targets(sass), sorted_targets(ptx), (), MEASURED, ""))
        for name, (sass, ptx) in sorted(held.items())
    ]


def _beside(package: Package) -> list[str]:
    """Return the files of ``torch/lib`` and of the packages ``nvidia/*/lib``."""
    files = _listed(os.path.join(package.folder, "torch", "lib"))
    for folder in _listed(os.path.join(package.folder, "nvidia")):
        for place in ("lib", "bin", "bin/x86_64"):
            files += _listed(os.path.join(folder, place))
    return [path for path in files if _COMPILED.search(path)]


def _listed(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:  # not this kind of torch
        return []
