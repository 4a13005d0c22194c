"""What to mind with a build from source: toolkits, drivers, cuDNN, cuBLAS, NCCL, companions."""

from __future__ import annotations

from torchpin.catalog.internals import load_internals
from torchpin.catalog.model import Kernels
from torchpin.evidence import PUBLISHED
from torchpin.fleet.model import Gpu
from torchpin.judge.kernels import PTX, SASS, kernel_match
from torchpin.resolve.source_facts import NO_CUDA_12, newest_accepting, number, release_of
from torchpin.resolve.source_model import UNKNOWN, Asked, Note, SourceBuild

REPOSITORIES = {
    "torchvision": "https://github.com/pytorch/vision",
    "torchaudio": "https://github.com/pytorch/audio",
}
ROCM_GUIDE = "https://github.com/pytorch/pytorch#amd-rocm-support"
NCCL_MAKE = "https://github.com/pytorch/pytorch/blob/main/cmake/External/nccl.cmake"


def driver_limit(asked: Asked) -> tuple[str, Note] | None:
    """Return the highest CUDA that a declared driver runs, where that is a limit, and why."""
    if asked.driver is None:
        return None
    from torchpin.catalog.drivers import load_drivers

    tables = load_drivers()
    for major in ("13", "12", "11"):
        floor = tables.family_floor(major, asked.platform)
        if floor is None or number(asked.driver) >= number(floor.value):
            return None
        text = f"driver {asked.driver} is too old for CUDA {major}, which needs {floor.value}"
        below = str(int(major) - 1)
        lower = tables.family_floor(below, asked.platform)
        if lower is not None and number(asked.driver) >= number(lower.value):
            return f"{below}.99", Note(text, floor.evidence, floor.source)
    return None


def older_releases(last: str) -> tuple[Note, ...]:
    """Name the newest release series whose build still accepts a toolkit."""
    found = newest_accepting(last)
    if found is None:
        return ()
    series, floor = found
    text = f"torch {series} is the newest whose build is known to accept CUDA {last}"
    return (Note(text, floor.evidence, floor.source),)


def tried(torch: str, toolkit: str, built: set[str]) -> Note:
    """Say whether PyTorch itself builds a release with a toolkit."""
    names = ", ".join(sorted(built, key=number))
    channels = "https://download.pytorch.org/whl/"
    if toolkit in built:
        return Note(f"PyTorch builds torch {torch} with CUDA {names}", PUBLISHED, channels)
    known = f"PyTorch builds it with CUDA {names}" if names else "nothing is known of its builds"
    text = f"whether torch {torch} compiles with CUDA {toolkit} to the end is not known: {known}"
    return Note(text, UNKNOWN, NO_CUDA_12 if release_of(torch) == (2, 15) else channels)


def driver_notes(asked: Asked, toolkit: str) -> tuple[Note, ...]:
    """Say which drivers run what a toolkit compiles, and which are the last for the GPUs."""
    from torchpin.catalog.drivers import load_drivers

    tables = load_drivers()
    floor = tables.family_floor(toolkit, asked.platform)
    out = []
    if floor is not None:
        text = f"CUDA {toolkit} runs on driver {floor.value} and newer"
        out.append(Note(text, floor.evidence, floor.source))
    for gpu in asked.gpus:
        last = tables.gpu_last_branch(gpu.capability) if gpu.capability is not None else None
        if last is not None:
            text = f"driver branch {last.value} is the last that supports {gpu.arch}"
            out.append(Note(text, last.evidence, last.source))
    return tuple(dict.fromkeys(out))


def holding(product: str, asked: Asked, toolkit: str) -> tuple[str, str, Kernels] | None:
    """Return the newest measured wheel of a product, for the CUDA major, with code for the GPUs."""
    found = None
    for package, version, kernels in load_internals().wheels(product, asked.platform):
        if _major_of(product, package, version) != toolkit.split(".")[0]:
            continue
        if all(_runs(kernels, gpu) for gpu in asked.gpus):
            found = (package, version, kernels)
    return found


def _runs(kernels: Kernels, gpu: Gpu) -> bool:
    if gpu.capability is None:
        return False
    match = kernel_match(kernels.sass, kernels.ptx, gpu.capability, tegra=gpu.tegra)
    return match.how in (SASS, PTX)


def _major_of(product: str, package: str, version: str) -> str:
    """Return the CUDA major of a wheel: by its name, else by its version (CUDA 13 and later)."""
    label = package.removeprefix(f"nvidia-{product}").removeprefix("-cu")
    return label or version.split(".")[0]


def _measured(product: str, asked: Asked, major: str) -> str:
    """Return which versions of a product were measured: ``9.10.2.21 to 9.26.0.51``, or ``""``."""
    found = [
        version
        for package, version, _ in load_internals().wheels(product, asked.platform)
        if _major_of(product, package, version) == major
    ]
    return " to ".join(dict.fromkeys((found[0], found[-1]))) if found else ""


def library_note(
    title: str,
    product: str,
    asked: Asked,
    toolkit: str,
    found: tuple[str, str, Kernels] | None,
) -> Note:
    """Say whether a library of NVIDIA holds kernels for the GPUs."""
    major = toolkit.split(".")[0]
    arch = " and ".join(asked.codes)
    if found is None:
        looked_at = _measured(product, asked, major)
        if looked_at:
            what = f"{title} for CUDA {major} that was measured ({looked_at})"
            text = f"no {what} holds kernels for {arch}"
        else:
            text = (
                f"no {title} for CUDA {major} was measured on {asked.platform}: whether one holds "
                f"kernels for {arch} is not known"
            )
        more = "; the recipe leaves it out (USE_CUDNN=0)" if product == "cudnn" else ""
        return Note(text + more, UNKNOWN, "")
    package, version, kernels = found
    text = f"{title} {version} ({package}) holds kernels for {arch}"
    following = str(int(major) + 1)
    looked_at = _measured(product, asked, following)
    if looked_at and holding(product, asked, following) is None:
        text += f"; those for CUDA {following} that were measured ({looked_at}) hold none"
    if product == "cudnn":
        text += "; whether newer ones do was not measured"
    return Note(text, kernels.evidence, kernels.source)


def nccl_notes(asked: Asked, toolkit: str) -> tuple[Note, ...]:
    """Say how the build comes to NCCL, what NVIDIA's own holds, and what is not known."""
    code = " and ".join(asked.codes)
    compiled = Note(
        f"the build compiles NCCL from its own source for {code}; NVIDIA's wheels are not used",
        PUBLISHED,
        NCCL_MAKE,
    )
    found = holding("nccl", asked, toolkit)
    if found is not None:
        text = f"NVIDIA's own NCCL {found[1]} ({found[0]}) holds kernels for {code}"
        compiled_for = Note(text, found[2].evidence, found[2].source)
    else:
        major = toolkit.split(".")[0]
        looked_at = _measured("nccl", asked, major)
        text = (
            f"no NCCL of NVIDIA's for CUDA {major} that was measured ({looked_at}) holds {code}"
            if looked_at
            else f"no NCCL of NVIDIA's for CUDA {major} was measured on {asked.platform}"
        )
        compiled_for = Note(text, UNKNOWN, "")
    doubt = Note(
        f"whether the NCCL of torch {asked.torch} compiles for {code} is not known: if it does "
        "not, export USE_NCCL=0 before the build (one GPU a process, or the gloo backend)",
        UNKNOWN,
        NCCL_MAKE,
    )
    return compiled, compiled_for, doubt


def companion_notes(base: SourceBuild) -> tuple[Note, ...]:
    """Say which companions go with the release, and which are not known."""
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
