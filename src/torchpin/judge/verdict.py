"""Does a build run on a target? All questions together, and how the answers combine."""

from __future__ import annotations

from collections.abc import Iterable

from torchpin.catalog.drivers import Drivers, load_drivers
from torchpin.catalog.model import Build, Kernels
from torchpin.evidence import INFERRED, PROOF, PUBLISHED
from torchpin.fleet.model import Gpu, NodeGroup, Target
from torchpin.judge.companions import judge_companion
from torchpin.judge.driver import judge_driver
from torchpin.judge.internals import judge_internals, not_known
from torchpin.judge.kernels import NONE, PTX, SASS, Match, gfx_match, kernel_match
from torchpin.judge.model import (
    BADNESS,
    FAILS,
    PARTLY,
    RUNS,
    RUNS_VIA_PTX,
    UNKNOWN,
    Reason,
    Verdict,
)
from torchpin.judge.platform import judge_platform, judge_python
from torchpin.judge.settle import settle
from torchpin.judge.words import (
    CPU,
    CUDA,
    ROCM,
    XPU,
    cuda_of,
    kind_of,
    list_kernels,
    list_ptx,
    name_gpu,
)

__all__ = ["combine", "judge", "judge_companion"]

TRITON = "https://github.com/triton-lang/triton#compatibility"
NO_DEVICE_CODE = ("torchdata", "torchtext")
"""Companions without code for GPUs."""
VENDORS = {CUDA: "nvidia", ROCM: "amd", XPU: "intel"}
MAKERS = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}


def judge(build: Build, target: Target, drivers: Drivers | None = None) -> Verdict:
    """Return whether ``build`` runs on ``target``, with every reason and its evidence.

    ``drivers`` defaults to the shipped tables. The status is the worst over the group's GPUs: each
    must run. A reason that rests on inferred facts never says ``fails``; it says ``unknown``.
    """
    group = target.group
    reasons: list[Reason] = [
        *judge_platform(build, group),
        *judge_python(build, target.python),
    ]
    if build.platform == group.platform:
        if group.gpus:
            tables = drivers if drivers is not None else load_drivers()
            for gpu in group.gpus:
                reasons.extend(_judge_gpu(build, gpu, group, tables))
        else:
            reasons.extend(_cpu_node(build))
    if build.evidence not in PROOF:
        reasons = [unproved(reason) for reason in reasons]
    status, told = combine(reasons)
    return Verdict(status, told, _covers(told), _leaves_out(build, group))


def if_there(build: Build) -> Build:
    """Return an announced build as if it were proved to exist.

    For questions where its absence and its failure say the same: what no longer runs.
    """
    return build if build.evidence in PROOF else build._replace(evidence=PUBLISHED)


def unproved(reason: Reason) -> Reason:
    """Return what is said of a build that may not exist: an announced one proves nothing."""
    return reason._replace(evidence=INFERRED) if reason.status == FAILS else reason


def combine(reasons: Iterable[Reason]) -> tuple[str, tuple[Reason, ...]]:
    """Return the worst status and the reasons, each once, with inferred failures as unknown."""
    told: list[Reason] = []
    for reason in reasons:
        settled = settle(reason)
        if settled not in told:
            told.append(settled)
    status = max((reason.status for reason in told), key=BADNESS.index, default=RUNS)
    return status, tuple(told)


def _judge_gpu(build: Build, gpu: Gpu, group: NodeGroup, drivers: Drivers) -> tuple[Reason, ...]:
    kind = kind_of(build)
    subject = build.title
    if kind == CPU:
        return _cpu_build(build, gpu, subject)
    if build.package == "triton" and gpu.vendor == "nvidia":
        return _triton(build, gpu, subject)
    if build.package in NO_DEVICE_CODE:
        return ()
    if kind is None and not build.channel:
        text = f"for which GPUs {subject} holds code is not known"
        return (Reason("kernels", UNKNOWN, text, INFERRED, build.source, gpu),)
    if kind is None:
        text = f"what {subject} was built for is not known: its label is not one of PyTorch's"
        return (Reason("kernels", UNKNOWN, text, INFERRED, build.source, gpu),)
    if gpu.vendor != VENDORS[kind]:
        made = MAKERS.get(gpu.vendor, gpu.vendor)
        text = f"{subject} is built for {MAKERS[VENDORS[kind]]}, {name_gpu(gpu)} is from {made}"
        return (Reason("vendor", FAILS, text, PUBLISHED, build.source, gpu),)
    if kind == CUDA:
        return _judge_cuda(build, gpu, group, drivers, subject)
    if kind == ROCM:
        return _judge_rocm(build, gpu, subject)
    text = f"no table says which Intel GPUs {subject} runs on"
    return (Reason("kernels", UNKNOWN, text, INFERRED, build.source, gpu),)


def _triton(build: Build, gpu: Gpu, subject: str) -> tuple[Reason, ...]:
    """Judge triton: it compiles on the machine, for compute capability 7.0 and newer."""
    if gpu.capability is None:
        return ()
    who = name_gpu(gpu)
    if gpu.capability >= (7, 0):
        text = f"{subject} compiles for {who}"
        return (Reason("triton", RUNS, text, PUBLISHED, TRITON, gpu),)
    text = f"{subject} does not compile for {who}: it needs compute capability 7.0"
    return (Reason("triton", PARTLY, text, PUBLISHED, TRITON, gpu),)


def _cpu_build(build: Build, gpu: Gpu, subject: str) -> tuple[Reason, ...]:
    if build.package != "torch":
        return ()
    text = f"{subject} is a CPU build: {name_gpu(gpu)} stays idle"
    if build.home == "pypi" and build.platform.startswith("windows"):
        text += " (PyPI's Windows wheels of torch are CPU builds)"
    return (Reason("cpu-build", FAILS, text, PUBLISHED, build.source, gpu),)


def _cpu_node(build: Build) -> tuple[Reason, ...]:
    kind = kind_of(build)
    if build.package != "torch" or kind in (CPU, None):
        return ()
    text = f"{build.title} runs without a GPU, but brings gigabytes of GPU libraries"
    return (Reason("cuda-on-cpu", RUNS, text, PUBLISHED, build.source),)


def _judge_cuda(
    build: Build, gpu: Gpu, group: NodeGroup, drivers: Drivers, subject: str
) -> tuple[Reason, ...]:
    cuda = cuda_of(build)
    reasons: list[Reason] = []
    if gpu.capability is None:
        text = f"the compute capability of {gpu.name} is not known"
        return (Reason("kernels", UNKNOWN, text, INFERRED, gpu.source, gpu),)
    how = ""
    if build.kernels is None:
        reasons.extend(_no_list(build, gpu, subject))
    else:
        main = _match(build.kernels, gpu, group, cuda)
        how = main.how
        reasons.append(_kernel_reason(subject, build.kernels, gpu, main))
        if how != NONE or reasons[-1].evidence not in PROOF:
            for name, kernels in build.libraries:
                reasons.extend(_library(subject, name, kernels, gpu, group, cuda, drivers))
            if build.package == "torch":
                reasons.extend(judge_internals(build, gpu, group, cuda))
    if cuda is not None:
        reasons.extend(judge_driver(subject, cuda, gpu, how, group, drivers))
    if build.package == "torch" and gpu.capability < (7, 0) and build.version[0] != "1":
        text = f"torch.compile on {name_gpu(gpu)} is out: Triton needs compute capability 7.0"
        reasons.append(Reason("triton", RUNS, text, PUBLISHED, TRITON, gpu))
    return tuple(reasons)


def _match(kernels: Kernels, gpu: Gpu, group: NodeGroup, cuda: str | None) -> Match:
    assert gpu.capability is not None
    return kernel_match(
        kernels.sass,
        kernels.ptx,
        gpu.capability,
        tegra=gpu.tegra,
        jetpack=group.jetpack,
        cuda=cuda,
    )


def _evidence(kernels: Kernels, match: Match) -> str:
    """How the list is known, unless the rule itself is inferred."""
    return INFERRED if match.evidence == INFERRED else kernels.evidence


def _no_list(build: Build, gpu: Gpu, subject: str) -> tuple[Reason, ...]:
    """Unknown for torch; for a companion it is only left out, or no set would ever be clean."""
    if build.package != "torch":
        return ()
    text = f"for which GPUs {subject} holds kernels is not known"
    return (Reason("kernels", UNKNOWN, text, INFERRED, build.source, gpu),)


def _kernel_reason(subject: str, kernels: Kernels, gpu: Gpu, match: Match) -> Reason:
    evidence = _evidence(kernels, match)
    who, held = name_gpu(gpu), list_kernels(kernels)
    if match.how == SASS:
        text = f"{who} runs the {match.code} kernels of {subject}"
        if match.evidence == INFERRED:
            text += ", by the general rule; no table or test names the pair"
            if gpu.tegra or gpu.capability == (8, 7):
                text = f"{who} is reported to run the {match.code} kernels of {subject}"
        return Reason("kernels", RUNS, text, evidence, kernels.source, gpu)
    if match.how == PTX:
        text = (
            f"{who}: {subject} holds kernels for {held}; the GPU runs them only after the driver "
            f"compiled {match.code} PTX, slowly at first use"
        )
        return Reason("kernels", RUNS_VIA_PTX, text, evidence, kernels.source, gpu)
    if match.how == NONE:
        if kernels.ptx:
            rest = f"PTX {list_ptx(kernels)}, and neither fits"
        else:
            rest = "no PTX that it could compile"
        text = f"{who}: {subject} holds kernels for {held} and {rest}"
        return Reason("kernels", FAILS, text, evidence, kernels.source, gpu)
    text = (
        f"{who}: {subject} holds kernels for {held}; whether {match.code} runs there is contested"
    )
    return Reason("kernels", UNKNOWN, text, INFERRED, match.source, gpu)


def _library(
    subject: str,
    name: str,
    kernels: Kernels,
    gpu: Gpu,
    group: NodeGroup,
    cuda: str | None,
    drivers: Drivers,
) -> tuple[Reason, ...]:
    """Judge a library whose list differs from torch's; one without device code needs no GPU."""
    if not kernels.sass and not kernels.ptx:
        text = f"{name} of {subject} holds no device code, so no GPU is worse off than another"
        return (Reason("libraries", RUNS, text, kernels.evidence, kernels.source, gpu, name),)
    match = _match(kernels, gpu, group, cuda)
    evidence = _evidence(kernels, match)
    who = name_gpu(gpu)
    if match.how == NONE:
        text = (
            f"{who}: {name} of {subject} holds kernels for {list_kernels(kernels)} only, "
            "so what it does for torch fails there"
        )
        status = PARTLY
    elif match.how == SASS:
        text = f"{who} runs the {match.code} kernels of {name}"
        status = RUNS
    elif match.how == PTX:
        text = f"{who} runs {name} of {subject} only by compiling {match.code} PTX"
        status = RUNS_VIA_PTX
        if cuda is not None:
            jit = judge_driver(name, cuda, gpu, PTX, group, drivers)
            if any(reason.status == FAILS and reason.evidence in PROOF for reason in jit):
                text += f", which driver {group.driver} cannot"
                status = PARTLY
    else:
        text = f"{who}: whether {match.code} kernels of {name} run there is contested"
        status = UNKNOWN
    return (Reason("libraries", status, text, evidence, kernels.source, gpu, name),)


def _judge_rocm(build: Build, gpu: Gpu, subject: str) -> tuple[Reason, ...]:
    if build.kernels is None:
        return _no_list(build, gpu, subject)
    if gpu.gfx is None:
        text = f"the ISA (gfx…) of {gpu.name} is not known"
        return (Reason("kernels", UNKNOWN, text, INFERRED, gpu.source, gpu),)
    match = gfx_match(build.kernels.gfx, gpu.gfx)
    evidence = _evidence(build.kernels, match)
    who = name_gpu(gpu)
    if match.how == SASS:
        text = f"{who} runs the {match.code} kernels of {subject}"
        return (Reason("kernels", RUNS, text, evidence, build.kernels.source, gpu),)
    text = f"{who}: {subject} holds kernels for {list_kernels(build.kernels)} only"
    return (Reason("kernels", FAILS, text, evidence, build.kernels.source, gpu),)


def _covers(reasons: tuple[Reason, ...]) -> tuple[str, ...]:
    """Name what was looked at, in the order of the reasons, each once."""
    names: list[str] = []
    for reason in reasons:
        name = {
            "kernels": "kernels",
            "libraries": reason.library or "libraries",
            "driver-branch": "driver",
        }.get(reason.question, reason.question)
        if name not in names and reason.question not in ("triton", "cuda-on-cpu", "cpu-build"):
            names.append(name)
    return tuple(names)


def _leaves_out(build: Build, group: NodeGroup) -> tuple[str, ...]:
    """Name what was not looked at, though it bears on whether the build runs."""
    out: list[str] = []
    kind = kind_of(build)
    nvidia = any(gpu.vendor == "nvidia" for gpu in group.gpus)
    if kind == CUDA and nvidia:
        if build.package == "torch":
            if missing := not_known(build):
                out.append(missing)
            if not build.libraries:
                out.append("libtorch_cuda_linalg.so (its kernels are not known for this build)")
        if build.kernels is None and build.package != "torch":
            out.append(f"kernels of {build.package} (list not known)")
        if group.driver is None and group.jetpack is None:
            out.append("driver (none declared)")
    if kind == ROCM and group.gpus:
        out.append("ROCm driver and runtime")
    if group.platform.startswith("linux") and group.glibc is None and not group.musl:
        out.append("glibc (none declared)")
    return tuple(out)
