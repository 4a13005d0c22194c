"""Is the declared NVIDIA driver new enough for a build and does it still know the GPU?

Rules (NVIDIA, *CUDA Compatibility*): cubins need the floor of their CUDA family (minor-version
compatibility), PTX needs a driver as new as the toolkit that made it, either may come from the
cuda-compat package on data-center GPUs. Besides, the driver itself must know the GPU: no older
than the branch that brought it, no newer than the last one that supports it.
"""

from __future__ import annotations

from torchpin.catalog.drivers import (
    COMPATIBLE,
    Drivers,
    Fact,
    Jetpack,
    at_least,
    version_key,
)
from torchpin.evidence import INFERRED, PUBLISHED, weakest
from torchpin.fleet.model import Gpu, NodeGroup
from torchpin.judge import kernels
from torchpin.judge.model import FAILS, RUNS, UNKNOWN, Reason
from torchpin.judge.words import name_gpu

COMPAT_GUIDE = "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html"
BACKWARD_GUIDE = "https://docs.nvidia.com/deploy/cuda-compatibility/why-cuda-compatibility.html"
WSL_GUIDE = "https://docs.nvidia.com/cuda/wsl-user-guide/index.html"


def judge_driver(
    subject: str, cuda: str, gpu: Gpu, how: str, group: NodeGroup, drivers: Drivers
) -> tuple[Reason, ...]:
    """Judge the group's driver for a build of ``cuda`` that runs on ``gpu`` by ``how``.

    ``how`` is ``kernels.PTX`` where only PTX fits, anything else needs no JIT. Nothing declared:
    no reasons. ``subject`` names the build in the sentences.
    """
    if gpu.capability is None:
        return ()
    if group.jetpack is not None or gpu.tegra or gpu.capability in kernels.TEGRA:
        return _tegra(subject, cuda, gpu, how, group, drivers)
    if group.driver is None:
        return ()
    if version_key(group.driver) is None:
        text = f"driver {group.driver} is not a version that NVIDIA's tables know"
        return (Reason("driver", UNKNOWN, text, INFERRED, "", gpu),)
    gone = dropped(gpu, group.driver, drivers)
    if gone:
        return gone
    reasons = [*_first(gpu, group.driver, drivers)]
    reasons.append(_floor(subject, cuda, gpu, how, group, group.driver, drivers))
    return tuple(reasons)


def dropped(gpu: Gpu, driver: str, drivers: Drivers) -> tuple[Reason, ...]:
    """Return why a driver is newer than the last branch that supports the GPU; empty: it is not."""
    if gpu.capability is None:
        return ()
    last, branch = drivers.gpu_last_branch(gpu.capability), drivers.branch_of(driver)
    if last is None or branch is None or int(branch) <= int(last.value):
        return ()
    known = f" (R{branch})" if drivers.branch_cuda(branch) is not None else ""
    text = (
        f"driver {driver}{known} no longer supports {name_gpu(gpu)}: "
        f"R{last.value} is the last branch that does"
    )
    return (Reason("driver-branch", FAILS, text, last.evidence, last.source, gpu),)


def _first(gpu: Gpu, driver: str, drivers: Drivers) -> tuple[Reason, ...]:
    """A driver older than the branch that first knew the GPU."""
    assert gpu.capability is not None
    first = drivers.gpu_first_branch(gpu.capability)
    if first is None or at_least(driver, first.value):
        return ()
    text = (
        f"driver {driver} does not know {name_gpu(gpu)}: R{first.value} is the first branch for it"
    )
    return (Reason("driver", FAILS, text, first.evidence, first.source, gpu),)


def _need(cuda: str, how: str, platform: str, drivers: Drivers) -> Fact | None:
    if how == kernels.PTX:
        return drivers.toolkit_driver(cuda, platform)
    return drivers.family_floor(cuda, platform)


def _reaches(cuda: str, how: str, driver: str, platform: str, drivers: Drivers) -> bool | None:
    """Whether a driver serves the build on a platform; None where the tables are silent."""
    own = drivers.toolkit_driver(cuda, platform)
    need = _need(cuda, how, platform, drivers)
    if own is not None and at_least(driver, own.value):
        return True
    if need is not None:
        return at_least(driver, need.value)
    branch = drivers.branch_of(driver)
    brings = drivers.branch_cuda(branch) if branch is not None else None
    if brings is not None and _numbers(brings.value) > _numbers(cuda):
        return True  # a driver runs what older toolkits made
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return version_key(version) or (0,)


def _floor(
    subject: str,
    cuda: str,
    gpu: Gpu,
    how: str,
    group: NodeGroup,
    driver: str,
    drivers: Drivers,
) -> Reason:
    platform = "windows-x86_64" if group.wsl else group.platform
    if platform.startswith("windows"):
        platform = "windows-x86_64"
    need = _need(cuda, how, platform, drivers)
    reaches = _reaches(cuda, how, driver, platform, drivers)
    major = cuda.split(".")[0]
    system = "Windows" if platform.startswith("windows") else "Linux"
    if reaches is None:
        text = f"no table says which driver CUDA {cuda} needs; whether {driver} serves is unknown"
        return Reason("driver", UNKNOWN, text, INFERRED, "", gpu)
    if need is None:  # only older CUDA than the tables begin with, and a driver newer than it
        rule = "NVIDIA's drivers run what older toolkits made"
    elif how == kernels.PTX:
        rule = f"compiling PTX of CUDA {cuda} for {name_gpu(gpu)} needs {need.value} or newer"
    else:
        rule = f"CUDA {major} needs driver {need.value} or newer on {system}"
    evidence = need.evidence if need is not None else PUBLISHED
    source = need.source if need is not None else BACKWARD_GUIDE
    if reaches:
        text = f"driver {driver} serves {subject} (CUDA {cuda}): {rule}"
        return Reason("driver", RUNS, text, evidence, source, gpu)
    if group.wsl and _reaches(cuda, how, driver, "linux-x86_64", drivers):
        text = (
            f"driver {driver} would serve CUDA {cuda} as a Linux driver, not as a Windows one; "
            "under WSL declare the Windows driver's version"
        )
        return Reason("driver", UNKNOWN, text, INFERRED, WSL_GUIDE, gpu)
    text = f"driver {driver} is too old for {subject} (CUDA {cuda}): {rule}"
    plain = Reason("driver", FAILS, text, evidence, source, gpu)
    if group.cuda_compat is None:
        return plain
    return _compat(plain, subject, cuda, gpu, how, group, driver, drivers)


def _compat(
    plain: Reason,
    subject: str,
    cuda: str,
    gpu: Gpu,
    how: str,
    group: NodeGroup,
    driver: str,
    drivers: Drivers,
) -> Reason:
    """Judge again with the declared cuda-compat package in place of the driver's own libraries."""
    package = group.cuda_compat
    assert package is not None and gpu.capability is not None
    name = f"cuda-compat {package}"
    if group.wsl or not group.platform.startswith("linux"):
        return plain._replace(text=f"{plain.text}; {name} exists for Linux only")
    if not gpu.datacenter:
        if any(word in gpu.name.lower() for word in ("geforce", "titan")):
            return plain._replace(
                text=f"{plain.text}; {name} does not work on {name_gpu(gpu)} (error 804)",
                evidence=weakest(plain.evidence, PUBLISHED),
            )
        text = f"{plain.text}; whether {name} works on {name_gpu(gpu)} is not known"
        return plain._replace(status=UNKNOWN, text=text, evidence=INFERRED, source=COMPAT_GUIDE)
    says = drivers.cuda_compat_allows(".".join(package.split(".")[:2]), driver)
    if says is None:
        text = (
            f"{plain.text}; NVIDIA's table says nothing of {name} on driver {driver}, "
            "so it is unknown"
        )
        return plain._replace(status=UNKNOWN, text=text, evidence=INFERRED, source=COMPAT_GUIDE)
    if says.value != COMPATIBLE:
        return plain._replace(text=f"{plain.text}; {name} brings nothing newer than that driver")
    reach, asked = _numbers(package), _numbers(cuda)
    enough = reach >= asked if how == kernels.PTX else reach[0] >= asked[0]
    if not enough:
        return plain._replace(text=f"{plain.text}; {name} is too old as well")
    last = drivers.gpu_last_branch(gpu.capability)
    if last is not None:
        ends = drivers.branch_cuda(last.value)
        if ends is None or reach[:2] > _numbers(ends.value):
            text = (
                f"{plain.text}; {name} comes from a branch after R{last.value}, "
                f"the last that supports {name_gpu(gpu)}"
            )
            return plain._replace(status=UNKNOWN, text=text, evidence=INFERRED)
    text = f"driver {driver} serves {subject} (CUDA {cuda}) with {name}"
    return Reason("driver", RUNS, text, says.evidence, says.source, gpu)


def _tegra(
    subject: str, cuda: str, gpu: Gpu, how: str, group: NodeGroup, drivers: Drivers
) -> tuple[Reason, ...]:
    """Judge a board whose driver comes with its system image (JetPack)."""
    if group.jetpack is None:
        if group.driver is None:
            return ()
        if _reaches(cuda, how, group.driver, group.platform, drivers):
            text = f"driver {group.driver} of {name_gpu(gpu)} serves CUDA {cuda}"
            return (Reason("driver", RUNS, text, INFERRED, "", gpu),)
        text = (
            f"the driver of {name_gpu(gpu)} comes with JetPack and is numbered on its own; "
            f"declare jetpack to judge CUDA {cuda}"
        )
        return (Reason("driver", UNKNOWN, text, INFERRED, "", gpu),)
    release = drivers.jetpack(group.jetpack)
    if release is None or release.cuda is None:
        text = f"no table says which CUDA JetPack {group.jetpack} brings"
        return (Reason("driver", UNKNOWN, text, INFERRED, "", gpu),)
    return (_jetpack(subject, cuda, gpu, group, release, release.cuda),)


def _jetpack(
    subject: str, cuda: str, gpu: Gpu, group: NodeGroup, release: Jetpack, brings: str
) -> Reason:
    board = f"JetPack {group.jetpack} (CUDA {brings})"
    if _numbers(brings) >= _numbers(cuda):
        text = f"{board} serves {subject} (CUDA {cuda})"
        return Reason("driver", RUNS, text, release.evidence, release.source, gpu)
    newer = _numbers(brings)[0] == _numbers(cuda)[0]
    if newer or group.cuda_compat is not None:
        text = f"whether {board} serves {subject} (CUDA {cuda}) is not known"
        return Reason("driver", UNKNOWN, text, INFERRED, release.source, gpu)
    text = f"{board} has a driver too old for {subject} (CUDA {cuda})"
    return Reason("driver", FAILS, text, release.evidence, release.source, gpu)
