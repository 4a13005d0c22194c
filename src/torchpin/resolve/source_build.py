"""A build of torch from source for one GPU: is it needed, can it be, and with what.

Each statement has its evidence; ``unknown`` says what nobody measured or published. Nothing is
guessed: without a known toolkit there is no recipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpin.catalog.internals import load_internals
from torchpin.catalog.model import Build, Kernels
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.fleet.model import Gpu, NodeGroup, Python, Target
from torchpin.judge.kernels import PTX, SASS, kernel_match
from torchpin.judge.model import Reason
from torchpin.named import NamedTuple
from torchpin.resolve.horizon import best_build, block, horizon
from torchpin.resolve.source_facts import (
    NO_CUDA_12,
    NVCC_LISTS,
    RAISED,
    cuda_floor,
    cudnn_floor,
    newest_accepting,
    number,
    release_of,
    toolkit_span,
)
from torchpin.resolve.space import Space

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog

WHEEL = "wheel"
"""A published build serves the GPU: nothing needs to be built."""
BUILD = "build"
"""No published build serves it; there is a recipe."""
IMPOSSIBLE = "impossible"
"""No published build serves it, and no toolkit that torch accepts compiles for it."""
UNKNOWN = "unknown"
"""What would be needed for a recipe is not known."""

REPOSITORIES = {
    "torchvision": "https://github.com/pytorch/vision",
    "torchaudio": "https://github.com/pytorch/audio",
}
ROCM_GUIDE = "https://github.com/pytorch/pytorch#amd-rocm-support"
NCCL_MAKE = "https://github.com/pytorch/pytorch/blob/main/cmake/External/nccl.cmake"


class Note(NamedTuple):
    """One thing to know, and how it is known."""

    text: str
    evidence: str
    """A word of evidence, or ``unknown``."""
    source: str


class Companion(NamedTuple):
    """A package to build against the torch that was built."""

    package: str
    version: str
    repository: str


class Asked(NamedTuple):
    """What a recipe is asked for."""

    gpu: Gpu
    torch: str
    """Public version: ``2.15.0``."""
    python: Python | None
    platform: str


class SourceBuild(NamedTuple):
    """The answer for one GPU and one release."""

    asked: Asked
    status: str
    """``wheel``, ``build``, ``impossible`` or ``unknown``."""
    because: tuple[Note, ...]
    """Why that is the answer."""
    wheel: Build | None = None
    """With ``wheel``: the build that serves."""
    last: Build | None = None
    """The newest release of which a wheel serves the GPU (and the Python)."""
    toolkit: str | None = None
    """CUDA toolkit to build with: ``12.9``; None: the one of the JetPack, or no CUDA."""
    arch: str = ""
    """For ``TORCH_CUDA_ARCH_LIST`` (``7.0``) or ``PYTORCH_ROCM_ARCH`` (``gfx906``)."""
    cudnn: tuple[str, str] | None = None
    """Package and version of a cuDNN that holds kernels for the GPU; None: none is known."""
    companions: tuple[Companion, ...] = ()
    notes: tuple[Note, ...] = ()
    """What to mind."""
    beside: tuple[str, ...] = ()
    """With ``wheel``: pins of torchvision and torchaudio to install with it."""
    newest: str = ""
    """The newest release of all, where it has no wheel for the GPU and none was asked for."""


def newest_wheel(asked: Asked, catalog: Catalog) -> SourceBuild:
    """Return the newest release of which a wheel serves a GPU; without one, what of ``asked``.

    ``asked.torch`` must be the newest release that the catalog knows.
    """
    found = source_build(asked, catalog)
    if found.status == WHEEL or found.last is None:
        return found
    other = source_build(asked._replace(torch=found.last.version), catalog)
    return other._replace(newest=asked.torch) if other.status == WHEEL else found


def source_build(asked: Asked, catalog: Catalog) -> SourceBuild:
    """Return what serves a GPU with a torch release: a wheel, or a build from source.

    ``asked.torch`` must be a version that the catalog knows.
    """
    group = NodeGroup(asked.gpu.name, (asked.gpu,), (), asked.platform)
    target = Target(group, asked.python)
    space = Space(catalog)
    at = space.intern(target)
    last = horizon(target, catalog, space).last_build
    wheel = best_build(space, asked.torch, at)
    if wheel is not None:
        reasons = space.judge(wheel, target).reasons
        told = tuple(
            Note(r.text, r.evidence, r.source)
            for r in reasons
            if r.question in ("kernels", "libraries", "vendor")
        )
        return SourceBuild(asked, WHEEL, told, wheel=wheel, last=last)
    refused = _python_refused(asked, catalog)
    if refused is not None:
        return SourceBuild(asked, IMPOSSIBLE, (refused,), last=last)
    blocked = _blocked(asked, space, at)
    if blocked is None:
        why = Note(
            f"whether a published build of torch {asked.torch} for {asked.platform} runs on "
            f"{asked.gpu.name} is not known",
            UNKNOWN,
            f"catalog of {catalog.date}",
        )
    else:
        why = Note(blocked.text, blocked.evidence, blocked.source)
    if last is not None and _later(last.version, asked.torch):
        newer = Note(
            f"torch {last.place} serves it; whether older sources know the GPU is not known",
            UNKNOWN,
            last.source,
        )
        return SourceBuild(asked, UNKNOWN, (why, newer), last=last)
    base = SourceBuild(asked, BUILD, (why,), last=last, companions=_companions(asked, catalog))
    if asked.gpu.gfx is not None:
        return _rocm(base, catalog)
    if asked.gpu.capability is None:
        gap = Note(f"no recipe is known for {asked.gpu.name}", UNKNOWN, "")
        return base._replace(status=UNKNOWN, because=(why, gap), companions=())
    return _cuda(base, asked.gpu.capability, catalog)


def _blocked(asked: Asked, space: Space, at: int) -> Reason | None:
    """Return why no build of the release runs; for AMD what its own channels lack."""
    found = block(space, asked.torch, at)
    if found is None or asked.gpu.gfx is None:
        return found
    for key in sorted(space.builds("torch", asked.torch, asked.platform)):
        if key.startswith("rocm"):
            return block(space, asked.torch, at, key) or found
    return found


def _later(one: str, other: str) -> bool:
    from packaging.version import Version

    return Version(one) > Version(other)


def _python_refused(asked: Asked, catalog: Catalog) -> Note | None:
    if asked.python is None:
        return None
    from packaging.specifiers import SpecifierSet

    plain = f"{asked.python.major}.{asked.python.minor}"
    for build in catalog.find("torch", version=asked.torch):
        if build.requires_python and not SpecifierSet(build.requires_python).contains(plain):
            text = f"torch {asked.torch} requires Python {build.requires_python}, not {plain}"
            return Note(text, build.evidence, build.source)
    return None


def _companions(asked: Asked, catalog: Catalog) -> tuple[Companion, ...]:
    found = ((name, catalog.partners(asked.torch, name)) for name in REPOSITORIES)
    return tuple(Companion(name, them[0], REPOSITORIES[name]) for name, them in found if them)


def _rocm(base: SourceBuild, catalog: Catalog) -> SourceBuild:
    asked = base.asked
    labels = {b.channel for b in catalog.find("torch", version=asked.torch)}
    tried = sorted(label for label in labels if label.startswith("rocm"))
    known = f"PyTorch builds with {', '.join(tried)}" if tried else "no channel of it is known"
    text = (
        f"which ROCm releases compile torch {asked.torch} for {asked.gpu.gfx} is not known; {known}"
    )
    notes = (
        Note(text, UNKNOWN, ROCM_GUIDE),
        *_companion_notes(base),
    )
    return base._replace(arch=asked.gpu.gfx or "", notes=notes)


def _cuda(base: SourceBuild, capability: tuple[int, int], catalog: Catalog) -> SourceBuild:
    asked, why = base.asked, base.because
    code = f"sm_{capability[0]}{capability[1]}"
    span, floor = toolkit_span(capability), cuda_floor(asked.torch)
    if span is None:
        text = f"no CUDA toolkit since 11.7 compiles for {code}"
        found = Note(text, MEASURED, NVCC_LISTS)
        return base._replace(status=IMPOSSIBLE, because=(*why, found), companions=())
    if floor is None:
        text = f"which CUDA toolkits the build of torch {asked.torch} accepts is not known"
        return base._replace(status=UNKNOWN, because=(*why, Note(text, UNKNOWN, "")), companions=())
    first, last = span
    lowest = max(first, floor.cuda, key=number)
    emits = Note(
        f"nvcc compiles for {code} from CUDA {first} to {last or 'the newest (13.5)'}",
        MEASURED,
        NVCC_LISTS,
    )
    accepts = Note(
        f"the build of torch {asked.torch} accepts CUDA {floor.cuda} and newer, cuDNN "
        f"{cudnn_floor(asked.torch)} and newer",
        floor.evidence,
        f"{floor.source}; {RAISED}" if floor.cuda == "12.6" else floor.source,
    )
    if last and number(lowest) > number(last):
        return base._replace(
            status=IMPOSSIBLE, because=(*why, emits, accepts, *_older(last)), companions=()
        )
    built = {b.cuda for b in catalog.find("torch", version=asked.torch) if b.cuda}
    fits = [c for c in built if number(lowest) <= number(c) <= number(last or "99.0")]
    toolkit = max(fits, key=number) if fits else last or lowest
    made = base._replace(arch=f"{capability[0]}.{capability[1]}")
    compiled, held, doubt = _nccl_notes(asked, toolkit, code)
    if asked.gpu.tegra:
        text = "a Jetson builds with CUDA and cuDNN of its JetPack; CUDA must lie in that range"
        jetpack = Note(text, PUBLISHED, "https://developer.nvidia.com/embedded/jetpack-archive")
        notes = (emits, accepts, jetpack, compiled, doubt)
        return made._replace(notes=(*notes, *_companion_notes(base)))
    cudnn, cublas = (_holding(product, asked, toolkit) for product in ("cudnn", "cublas"))
    return made._replace(
        toolkit=toolkit,
        cudnn=cudnn[:2] if cudnn is not None else None,
        notes=(
            emits,
            accepts,
            _tried(asked.torch, toolkit, built),
            _library_note("cuDNN", "cudnn", asked, toolkit, cudnn),
            _library_note("cuBLAS", "cublas", asked, toolkit, cublas),
            compiled,
            held,
            doubt,
            *_driver_notes(asked, toolkit),
            *_companion_notes(base),
        ),
    )


def _older(last: str) -> tuple[Note, ...]:
    """Name the newest release series whose build still accepts a toolkit."""
    found = newest_accepting(last)
    if found is None:
        return ()
    series, floor = found
    text = f"torch {series} is the newest whose build is known to accept CUDA {last}"
    return (Note(text, floor.evidence, floor.source),)


def _tried(torch: str, toolkit: str, built: set[str]) -> Note:
    names = ", ".join(sorted(built, key=number))
    channels = "https://download.pytorch.org/whl/"
    if toolkit in built:
        return Note(f"PyTorch builds torch {torch} with CUDA {names}", PUBLISHED, channels)
    known = f"PyTorch builds it with CUDA {names}" if names else "nothing is known of its builds"
    text = f"whether torch {torch} compiles with CUDA {toolkit} to the end is not known: {known}"
    return Note(text, UNKNOWN, NO_CUDA_12 if release_of(torch) == (2, 15) else channels)


def _driver_notes(asked: Asked, toolkit: str) -> tuple[Note, ...]:
    from torchpin.catalog.drivers import load_drivers

    assert asked.gpu.capability is not None
    tables = load_drivers()
    floor = tables.family_floor(toolkit, asked.platform)
    last = tables.gpu_last_branch(asked.gpu.capability)
    out = []
    if floor is not None:
        text = f"CUDA {toolkit} runs on driver {floor.value} and newer"
        out.append(Note(text, floor.evidence, floor.source))
    if last is not None:
        text = f"driver branch {last.value} is the last that supports {asked.gpu.arch}"
        out.append(Note(text, last.evidence, last.source))
    return tuple(out)


def _holding(product: str, asked: Asked, toolkit: str) -> tuple[str, str, Kernels] | None:
    """Return the newest measured wheel of a product, for the CUDA major, with code for the GPU."""
    found = None
    for package, version, kernels in load_internals().wheels(product, asked.platform):
        if _major_of(product, package, version) != toolkit.split(".")[0]:
            continue
        assert asked.gpu.capability is not None
        match = kernel_match(kernels.sass, kernels.ptx, asked.gpu.capability, tegra=asked.gpu.tegra)
        if match.how in (SASS, PTX):
            found = (package, version, kernels)
    return found


def _major_of(product: str, package: str, version: str) -> str:
    """Return the CUDA major of a wheel: by its name, else by its version (CUDA 13 and later)."""
    label = package.removeprefix(f"nvidia-{product}").removeprefix("-cu")
    return label or version.split(".")[0]


def _library_note(
    title: str,
    product: str,
    asked: Asked,
    toolkit: str,
    found: tuple[str, str, Kernels] | None,
) -> Note:
    major = toolkit.split(".")[0]
    arch = asked.gpu.arch
    if found is None:
        more = "; the recipe leaves it out (USE_CUDNN=0)" if product == "cudnn" else ""
        text = f"no {title} for CUDA {major} is known to hold kernels for {arch}{more}"
        return Note(text, UNKNOWN, "")
    package, version, kernels = found
    text = f"{title} {version} ({package}) holds kernels for {arch}"
    following = str(int(major) + 1)
    measured = [
        number_
        for name, number_, _ in load_internals().wheels(product, asked.platform)
        if _major_of(product, name, number_) == following
    ]
    if measured and _holding(product, asked, following) is None:
        names = " to ".join(dict.fromkeys((measured[0], measured[-1])))
        text += f"; those for CUDA {following} that were measured ({names}) hold none"
    if product == "cudnn":
        text += "; whether newer ones do was not measured"
    return Note(text, kernels.evidence, kernels.source)


def _nccl_notes(asked: Asked, toolkit: str, code: str) -> tuple[Note, ...]:
    compiled = Note(
        f"the build compiles NCCL from its own source for {code}; NVIDIA's wheels are not used",
        PUBLISHED,
        NCCL_MAKE,
    )
    found = _holding("nccl", asked, toolkit)
    if found is not None:
        text = f"NVIDIA's own NCCL {found[1]} ({found[0]}) holds kernels for {code}"
        compiled_for = Note(text, found[2].evidence, found[2].source)
    else:
        text = f"no NCCL of NVIDIA's for CUDA {toolkit.split('.')[0]} is known to hold {code}"
        compiled_for = Note(text, UNKNOWN, "")
    doubt = Note(
        f"whether the NCCL of torch {asked.torch} compiles for {code} is not known: if it does "
        "not, export USE_NCCL=0 before the build (one GPU a process, or the gloo backend)",
        UNKNOWN,
        NCCL_MAKE,
    )
    return compiled, compiled_for, doubt


def _companion_notes(base: SourceBuild) -> tuple[Note, ...]:
    missing = [name for name in REPOSITORIES if name not in {c.package for c in base.companions}]
    told = [
        Note(
            f"{c.package} {c.version} is the version for torch {base.asked.torch}; it is built "
            "against the torch that was built, without its dependencies, which would replace it",
            PUBLISHED,
            c.repository,
        )
        for c in base.companions
    ]
    told += [
        Note(f"no {name} for torch {base.asked.torch} is known", UNKNOWN, "") for name in missing
    ]
    return tuple(told)
