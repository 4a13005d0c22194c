"""TP2: the wheel does not run on the hardware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from torchpin.catalog.model import Build
from torchpin.evidence import PROOF
from torchpin.judge.model import FAILS, PARTLY, RUNS_VIA_PTX, UNKNOWN, Reason
from torchpin.rules.context import Context, Judged, JudgedSet, Way, because
from torchpin.rules.exists import narrow
from torchpin.rules.model import ERROR, INFO, WARNING, Because, Finding, Related
from torchpin.rules.registry import Rule


def group_related(judged_set: JudgedSet, *keys: str) -> tuple[Related, ...]:
    """Return the lines of the profile that a reason rests on."""
    group = judged_set.target.group
    if not group.line or group.path.startswith("<"):
        return ()
    lines = [setting.line for setting in group.settings if setting.key in keys]
    return (Related(group.path, (lines or [group.line])[0], f"group {group.name} declared here"),)


def newest_that_runs(
    way: Way, context: Context, judged_set: JudgedSet, package: str, *, known: bool = False
) -> Build | None:
    """Return the best build that the file allows and that would run on the target, if any.

    Args:
        known: leave out builds of which it is not known whether they run.
    """
    from torchpin.judge.verdict import judge
    from torchpin.select.pools import admits, version_of
    from torchpin.select.projects import locked_too
    from torchpin.select.selection import candidates

    others = [
        one.declaration.specifier
        for one in locked_too(way.install)
        if one.declaration.name == package and one.declaration.specifier
    ]
    for build, _ in candidates(way.install, package, judged_set.target, context.catalog):
        if not all(admits(specifier, version_of(build.full_version)) for specifier in others):
            continue
        status = judge(build, judged_set.target, context.drivers).status
        if status != FAILS and not (known and status == UNKNOWN):
            return build
    return None


def floats_badly(way: Way, context: Context, judged_set: JudgedSet, one: Judged) -> bool:
    """True if the pin floats, and another version that it allows would run (TP501)."""
    package = one.selection.package
    return not one.selection.exact and (
        newest_that_runs(way, context, judged_set, package) is not None
    )


class HardwareRule(Rule):
    """Base of the rules that follow from one question to the judges about torch itself."""

    question: str
    status: str = FAILS
    keys: ClassVar[tuple[str, ...]] = ("gpus",)

    def message(self, one: Judged, reasons: list[Reason]) -> str:
        """Return the one sentence of the finding."""
        return reasons[0].text

    def bad(self, one: Judged) -> list[Reason]:
        """Return the reasons of the verdict that the rule speaks of.

        If no fact proves that the build fails, those that are only inferred: a warning, never an
        error. They are those of a build that is announced but not seen, and kernel lists told by
        their neighbours.
        """
        reasons = [
            reason
            for reason in (one.verdict.reasons if one.verdict else ())
            if reason.question == self.question
        ]
        proved = [reason for reason in reasons if reason.status == self.status]
        if proved or self.status != FAILS or one.build is None:
            return proved
        told = self.question == "kernels" or one.build.evidence not in PROOF
        return [reason for reason in reasons if reason.lacks and told]

    def grade(self, reasons: list[Reason]) -> str:
        """Return the severity before the other ways in are looked at; what is inferred warns."""
        proved = all(reason.status == self.status for reason in reasons)
        return self.severity if proved else WARNING

    def wanted(self, way: Way, context: Context, judged_set: JudgedSet, one: Judged) -> bool:
        """True if this rule, not another, is to speak of the selection."""
        return one.selection.package == "torch"

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield a finding for every selection whose verdict answers the question badly."""
        if not context.declared:
            return
        for judged_set, one in context.pairs(way):
            if one.verdict is None or one.build is None:
                continue
            reasons = self.bad(one)
            if not reasons or not self.wanted(way, context, judged_set, one):
                continue
            document, span = judged_set.place(one.selection)
            yield self.finding(
                document,
                narrow(document, span, one.selection),
                self.message(one, reasons),
                severity=context.severity(
                    way, judged_set.target, self.grade(reasons), hardware=True
                ),
                package=one.selection.package,
                target=judged_set.target,
                because=self.grounds(way, context, judged_set, reasons),
                related=group_related(judged_set, *self.keys),
            )

    def grounds(
        self, way: Way, context: Context, judged_set: JudgedSet, reasons: list[Reason]
    ) -> list[Because]:
        """Return the grounds of the finding."""
        return [because(reason) for reason in reasons]


def gpu_names(reasons: list[Reason]) -> str:
    """Return the GPUs of some reasons: ``Tesla V100 (sm_70), GTX 1080 (sm_61)``."""
    names = [
        reason.gpu.name
        if reason.gpu.name == reason.gpu.arch
        else f"{reason.gpu.name} ({reason.gpu.arch})"
        for reason in reasons
        if reason.gpu is not None
    ]
    return ", ".join(dict.fromkeys(names))


class NoKernelImage(HardwareRule):
    """No kernel in the wheel runs on a GPU of the fleet.

    What it does: compares the kernel list of the build that would be installed with every GPU of
    the group: cubins of the same major and no higher minor, or PTX that the driver can compile.

    Why it is bad: everything installs, ``torch.cuda.is_available()`` is true, and the first kernel
    dies with "no kernel image is available for execution on the device".

    Example: ``torch==2.11.0`` from PyPI (cu130) on a Tesla V100.

    Fix: the same version from a channel that still holds the kernels, else the nearest version.

    Evidence: kernel lists measured from the wheels, or taken from PyTorch's build scripts.
    """

    code = "TP201"
    name = "no-kernel-image"
    severity = ERROR
    question = "kernels"

    def message(self, one: Judged, reasons: list[Reason]) -> str:
        """Name the build and the GPUs."""
        build = one.build
        name = build.title if build else "torch"
        return f"{name} holds no kernels for {gpu_names(reasons)}"

    def wanted(self, way: Way, context: Context, judged_set: JudgedSet, one: Judged) -> bool:
        """Leave floating pins to TP501."""
        return super().wanted(way, context, judged_set, one) and not floats_badly(
            way, context, judged_set, one
        )


class PtxOnly(HardwareRule):
    """The build runs only by compiling PTX on the GPU's first use.

    What it does: reports builds without a cubin for a GPU, but with PTX that its driver compiles.

    Why it is bad: the first start takes minutes, and it needs a driver as new as the toolkit.

    Example: ``torch==1.10.0+cu102`` on Windows with an RTX 3090: PTX 3.7 is all that fits.

    Fix: a build with cubins for the GPU.

    Evidence: as for TP201.
    """

    code = "TP202"
    name = "ptx-only"
    severity = WARNING
    question = "kernels"
    status = RUNS_VIA_PTX


class DriverTooOld(HardwareRule):
    """The driver of the group is too old for the wheel's CUDA runtime.

    What it does: compares the declared driver with the floor of the CUDA major version
    (minor-version compatibility), and with the first driver that knows the GPU.

    Why it is bad: torch says that the driver is too old and finds no GPU.

    Example: ``torch==2.9.0+cu130`` with driver 550: CUDA 13 needs 580.65.06.

    Fix: a build for a CUDA version that the driver carries; or a newer driver, or cuda-compat on
    data-center GPUs.

    Evidence: NVIDIA's CUDA compatibility documents and release notes.
    """

    code = "TP203"
    name = "driver-too-old"
    severity = ERROR
    question = "driver"
    keys: ClassVar[tuple[str, ...]] = ("driver", "gpus")


class DriverDroppedGpu(HardwareRule):
    """The declared driver branch no longer supports the GPU.

    What it does: compares the driver's branch with the last branch for the GPU's architecture.

    Why it is bad: no CUDA program sees the GPU, whatever is installed.

    Example: driver 590 with a Tesla V100; R580 is the last branch for Maxwell, Pascal and Volta.

    Fix: none in the files: stay on the last branch.

    Evidence: NVIDIA's driver and architecture matrix.
    """

    code = "TP204"
    name = "driver-dropped-gpu"
    severity = ERROR
    question = "driver-branch"
    keys: ClassVar[tuple[str, ...]] = ("driver", "gpus")


class CpuBuild(HardwareRule):
    """A CPU build on a group with GPUs.

    What it does: reports that the selected build holds no GPU code at all.

    Why it is bad: training runs, twenty times slower; nothing fails.

    Example: plain ``torch`` on Windows, whose wheels on PyPI are CPU builds. A service of a compose
    file that reserves a GPU and installs from the ``cpu`` channel gives a warning without a fleet,
    too.

    Fix: a channel whose build runs on the GPUs.

    Evidence: ``torch/version.py`` of the wheel, or the channel's name.
    """

    code = "TP205"
    name = "cpu-build-on-gpu-node"
    severity = ERROR
    question = "cpu-build"

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield the findings on the fleet, or those beside a GPU that the file itself reserves."""
        yield from super().check(way, context)
        if context.declared or way.part is None or way.part.gpu is None:
            return
        for judged_set, one in context.pairs(way):
            if one.build is None or one.build.channel != "cpu" or one.build.package != "torch":
                continue
            document, span = judged_set.place(one.selection)
            build = one.build
            yield self.finding(
                document,
                narrow(document, span, one.selection),
                f"torch {build.full_version} is a CPU build: its GPU stays idle",
                severity=WARNING,
                package="torch",
                target=judged_set.target,
                because=(Because("the cpu channel holds CPU builds", build.evidence, build.source),)
                if build.home == "channel"
                else (),
            )


class CudaOnCpu(HardwareRule):
    """A CUDA build on a group without GPUs: gigabytes for nothing.

    What it does: tells where a CPU group would download a CUDA build.

    Why it is bad: it works; it costs disk and minutes.

    Example: plain ``torch`` on Linux continuous-integration machines.

    Fix: the cpu channel for these machines, if the size matters.

    Evidence: as for TP205.
    """

    code = "TP206"
    name = "cuda-build-on-cpu-node"
    severity = INFO
    question = "cuda-on-cpu"
    status = "runs"


class WrongVendor(HardwareRule):
    """A CUDA build on AMD GPUs, or a ROCm build on NVIDIA GPUs.

    What it does: compares the build's platform with the GPU's vendor.

    Why it is bad: torch finds no GPU.

    Example: plain ``torch`` on an MI300X.

    Fix: a rocm channel for AMD, a cu channel for NVIDIA.

    Evidence: the channel's name.
    """

    code = "TP207"
    name = "wrong-vendor"
    severity = ERROR
    question = "vendor"


class PartialKernels(HardwareRule):
    """torch runs, but a library in it holds no kernels for the GPU.

    What it does: looks at the kernel lists of the single libraries in the wheel.

    Why it is bad: most of torch works, and some calls of ``torch.linalg`` die with "no kernel
    image": torch's own list of architectures hides it.

    Example: ``torch==2.13.0`` on a Tesla T4: ``libtorch_cuda_linalg.so`` has no sm_75 kernels
    since 2.11.0.

    Fix: none without moving the version; a release before 2.11, or keep linalg on the CPU.

    Evidence: fatbins measured from the wheel (static; not run on a GPU).
    """

    code = "TP208"
    name = "partial-kernels"
    severity = WARNING
    question = "libraries"
    status = PARTLY


RULES = (
    NoKernelImage,
    PtxOnly,
    DriverTooOld,
    DriverDroppedGpu,
    CpuBuild,
    CudaOnCpu,
    WrongVendor,
    PartialKernels,
)
