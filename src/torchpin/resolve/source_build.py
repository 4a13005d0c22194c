"""A build of torch from source for one GPU or several: is it needed, can it be, and with what.

Each statement has its evidence; ``unknown`` says what nobody measured or published. Nothing is
guessed: without a known toolkit there is no recipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpin.evidence import INFERRED, MEASURED, PUBLISHED
from torchpin.fleet.model import Gpu, NodeGroup, Target
from torchpin.judge.model import Reason
from torchpin.resolve.horizon import best_build, block, horizon
from torchpin.resolve.source_facts import (
    IMAGES,
    NVCC_LISTS,
    RAISED,
    cuda_floor,
    cudnn_floor,
    number,
    toolkit_span,
)
from torchpin.resolve.source_model import (
    BUILD,
    IMPOSSIBLE,
    UNKNOWN,
    WHEEL,
    Asked,
    Companion,
    Note,
    SourceBuild,
)
from torchpin.resolve.source_notes import (
    REPOSITORIES,
    ROCM_GUIDE,
    companion_notes,
    driver_limit,
    driver_notes,
    holding,
    library_note,
    nccl_notes,
    older_releases,
    tried,
)
from torchpin.resolve.space import Space

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog


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
    target = target_of(asked, asked.gpus)
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
    refused = _python_refused(asked, catalog) or _gpu_dropped(asked)
    if refused is not None:
        return SourceBuild(asked, IMPOSSIBLE, (refused,), last=last)
    blocked = _blocked(asked, space, at)
    if blocked is None:
        why = Note(
            f"whether a published build of torch {asked.torch} for {asked.platform} runs on "
            f"{asked.name} is not known",
            UNKNOWN,
            f"catalog of {catalog.date}",
        )
    else:
        why = Note(blocked.text, blocked.evidence, blocked.source)
    elsewhere = _compiled_elsewhere(asked, catalog)
    if last is not None and elsewhere is None and _later(last.version, asked.torch):
        newer = Note(
            f"torch {last.place} serves it; whether older sources know the GPU is not known",
            UNKNOWN,
            last.source,
        )
        return SourceBuild(asked, UNKNOWN, (why, newer), last=last)
    reasons_for = (why,) if elsewhere is None else (why, elsewhere)
    base = SourceBuild(asked, BUILD, reasons_for, last=last, companions=_companions(asked, catalog))
    if asked.more:
        alone = (
            (gpu, best_build(space, asked.torch, space.intern(target_of(asked, (gpu,)))))
            for gpu in asked.gpus
        )
        base = base._replace(alone=tuple(alone))
    if all(gpu.gfx is not None for gpu in asked.gpus):
        return _rocm(base, catalog)
    capabilities = [gpu.capability for gpu in asked.gpus if gpu.capability is not None]
    if len(capabilities) < len(asked.gpus):
        gap = Note(f"no recipe is known for {asked.name}", UNKNOWN, "")
        return base._replace(status=UNKNOWN, because=(why, gap), companions=())
    return _cuda(base, tuple(dict.fromkeys(capabilities)), catalog)


def target_of(asked: Asked, gpus: tuple[Gpu, ...]) -> Target:
    """Return what a build for some GPUs has to run on."""
    name = " and ".join(gpu.name for gpu in gpus)
    return Target(NodeGroup(name, gpus, (), asked.platform, driver=asked.driver), asked.python)


def _blocked(asked: Asked, space: Space, at: int) -> Reason | None:
    """Return why no build of the release runs; for AMD what its own channels lack."""
    found = block(space, asked.torch, at)
    if found is None or asked.gpu.gfx is None:
        return found
    for key in sorted(space.builds("torch", asked.torch, asked.platform)):
        if key.startswith("rocm"):
            return block(space, asked.torch, at, key) or found
    return found


def _compiled_elsewhere(asked: Asked, catalog: Catalog) -> Note | None:
    """Say which published build of the release holds code of all of the GPUs, for any platform.

    Its sources know them then, whatever is published for the platform that is asked for.
    """
    if any(gpu.capability is None for gpu in asked.gpus):
        return None
    wanted = {code.removeprefix("sm_") for code in asked.codes}
    for build in catalog.find("torch", version=asked.torch):
        kernels = build.kernels
        if kernels is None or kernels.evidence == INFERRED or build.platform == asked.platform:
            continue
        if wanted <= {number.rstrip("af") for number in kernels.sass}:
            text = (
                f"torch {build.place} for {build.platform} holds code for "
                f"{' and '.join(asked.codes)}: its sources know it"
            )
            return Note(text, kernels.evidence, kernels.source)
    return None


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


def _gpu_dropped(asked: Asked) -> Note | None:
    """Say that the driver supports one of the GPUs no more: nothing runs there, however built."""
    if asked.driver is None:
        return None
    from torchpin.catalog.drivers import load_drivers
    from torchpin.judge.driver import dropped

    for gpu in asked.gpus:
        for reason in dropped(gpu, asked.driver, load_drivers()):
            return Note(reason.text, reason.evidence, reason.source)
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
        f"which ROCm releases compile torch {asked.torch} for {' and '.join(asked.codes)} is not "
        f"known; {known}"
    )
    notes = (
        Note(text, UNKNOWN, ROCM_GUIDE),
        *companion_notes(base),
    )
    return base._replace(arch=";".join(asked.codes), notes=notes)


def _cuda(
    base: SourceBuild, capabilities: tuple[tuple[int, int], ...], catalog: Catalog
) -> SourceBuild:
    asked, why = base.asked, base.because
    floor = cuda_floor(asked.torch)
    emits: list[Note] = []
    lowest, highest = "0.0", ""
    for capability in capabilities:
        code = f"sm_{capability[0]}{capability[1]}"
        span = toolkit_span(capability)
        if span is None:
            text = f"no CUDA toolkit since 11.7 compiles for {code}"
            found = Note(text, MEASURED, NVCC_LISTS)
            return base._replace(status=IMPOSSIBLE, because=(*why, found), companions=())
        first, last = span
        emits.append(
            Note(
                f"nvcc compiles for {code} from CUDA {first} to {last or 'the newest (13.5)'}",
                MEASURED,
                NVCC_LISTS,
            )
        )
        lowest = max(lowest, first, key=number)
        highest = min((one for one in (highest, last) if one), key=number, default="")
    if floor is None:
        text = f"which CUDA toolkits the build of torch {asked.torch} accepts is not known"
        return base._replace(status=UNKNOWN, because=(*why, Note(text, UNKNOWN, "")), companions=())
    accepts = Note(
        f"the build of torch {asked.torch} accepts CUDA {floor.cuda} and newer, cuDNN "
        f"{cudnn_floor(asked.torch)} and newer",
        floor.evidence,
        f"{floor.source}; {RAISED}" if floor.cuda == "12.6" else floor.source,
    )
    told = (*emits, accepts)
    if highest and number(lowest) > number(highest):
        return base._replace(status=IMPOSSIBLE, because=(*why, *emits), companions=())
    lowest = max(lowest, floor.cuda, key=number)
    if highest and number(lowest) > number(highest):
        return base._replace(
            status=IMPOSSIBLE, because=(*why, *told, *older_releases(highest)), companions=()
        )
    limit = driver_limit(asked)
    if limit is not None:
        ceiling, ground = limit
        told = (*told, ground)
        fitting = [
            cuda
            for cuda in (*IMAGES, highest)
            if cuda
            and number(lowest) <= number(cuda) <= number(ceiling)
            and (not highest or number(cuda) <= number(highest))
        ]
        if not fitting:
            return base._replace(status=IMPOSSIBLE, because=(*why, *told), companions=())
        highest = max(fitting, key=number)
    built = {b.cuda for b in catalog.find("torch", version=asked.torch) if b.cuda}
    fits = [c for c in built if number(lowest) <= number(c) <= number(highest or "99.0")]
    toolkit = max(fits, key=number) if fits else highest or lowest
    return _with_toolkit(base, toolkit, capabilities, told, built)


def _with_toolkit(
    base: SourceBuild,
    toolkit: str,
    capabilities: tuple[tuple[int, int], ...],
    told: tuple[Note, ...],
    built: set[str],
) -> SourceBuild:
    """Return the build with a toolkit, and what is to mind about the libraries around it."""
    asked = base.asked
    made = base._replace(arch=";".join(f"{major}.{minor}" for major, minor in capabilities))
    compiled, held, doubt = nccl_notes(asked, toolkit)
    if asked.gpu.tegra:
        text = "a Jetson builds with CUDA and cuDNN of its JetPack; CUDA must lie in that range"
        jetpack = Note(text, PUBLISHED, "https://developer.nvidia.com/embedded/jetpack-archive")
        notes = (*told, jetpack, compiled, doubt)
        return made._replace(notes=(*notes, *companion_notes(base)))
    cudnn, cublas = (holding(product, asked, toolkit) for product in ("cudnn", "cublas"))
    return made._replace(
        toolkit=toolkit,
        cudnn=cudnn[:2] if cudnn is not None else None,
        notes=(
            *told,
            tried(asked.torch, toolkit, built),
            library_note("cuDNN", "cudnn", asked, toolkit, cudnn),
            library_note("cuBLAS", "cublas", asked, toolkit, cublas),
            compiled,
            held,
            doubt,
            *driver_notes(asked, toolkit),
            *companion_notes(base),
        ),
    )
