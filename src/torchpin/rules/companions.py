"""TP3: a companion or a library of torch's own, looked at by itself."""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.catalog.model import Build
from torchpin.documents.pins import exact_version, same_version
from torchpin.evidence import MEASURED, PROOF, PUBLISHED
from torchpin.judge.model import FAILS
from torchpin.patterns import regex
from torchpin.rules.context import Context, JudgedSet, Way, because
from torchpin.rules.exists import narrow
from torchpin.rules.family import exact_public
from torchpin.rules.hardware import gpu_names, group_related
from torchpin.rules.model import ERROR, INFO, WARNING, Because, Finding
from torchpin.rules.registry import Rule
from torchpin.select.environments import marker_holds


class CompanionNoKernel(Rule):
    """A companion holds no kernels for a GPU on which torch itself runs.

    What it does: compares the kernel lists of torchvision, torchaudio and others with the GPUs.

    Why it is bad: torch works; the first call of the companion's own operator dies.

    Example: ``torchvision==0.24.1+cu128`` beside ``torch==2.9.1+cu126`` on a GTX 1080.

    Fix: the companion from torch's own channel.

    Evidence: as for TP201.
    """

    code = "TP303"
    name = "companion-no-kernel"
    severity = ERROR

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield companions without kernels where torch has them."""
        if not context.declared:
            return
        for judged_set in way.sets:
            torch = judged_set.of("torch")
            if torch is None or torch.selection.build is None or torch.verdict is None:
                continue
            torch_bad = {
                reason.gpu
                for reason in torch.verdict.reasons
                if reason.status == FAILS or reason.lacks
            }
            for one in judged_set.judged:
                build = one.selection.build
                if one is torch or one.verdict is None or build is None:
                    continue
                if any(reason.status == FAILS for reason in one.beside_torch):
                    continue  # it does not even import: TP301, TP302
                reasons = [
                    reason
                    for reason in one.verdict.reasons
                    if reason.question == "kernels"
                    and reason.status == FAILS
                    and reason.gpu not in torch_bad
                ]
                if not reasons:
                    continue
                document, span = judged_set.place(one.selection)
                yield self.finding(
                    document,
                    narrow(document, span, one.selection),
                    f"{build.title} holds no kernels for {gpu_names(reasons)}",
                    severity=context.severity(way, judged_set.target, self.severity),
                    package=one.selection.package,
                    target=judged_set.target,
                    because=[because(reason) for reason in reasons],
                    related=group_related(judged_set, "gpus"),
                )


class CompanionEnded(Rule):
    """A companion whose development has ended.

    What it does: reports torchtext beside a torch that is newer than its last partner.

    Why it is bad: torchtext 0.18.0 is the last release and was built against torch 2.3; its
    METADATA accepts every later torch all the same.

    Example: ``torch==2.6.0`` beside ``torchtext``.

    Fix: remove it, or stay on torch 2.3.

    Evidence: METADATA and release notes of torchtext.
    """

    code = "TP304"
    name = "companion-ended"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield torchtext beside torch 2.4 or newer."""
        from packaging.version import Version

        for judged_set in way.sets:
            torch, text = judged_set.of("torch"), judged_set.of("torchtext")
            if torch is None or text is None or text.selection.status == "skipped":
                continue
            build = torch.selection.build
            if build is None or Version(build.version) < Version("2.4"):
                continue
            document, span = judged_set.place(text.selection)
            yield self.finding(
                document,
                span,
                f"torchtext ended with 0.18.0, made for torch 2.3, not {build.version}",
                package="torchtext",
                target=judged_set.target,
                because=(
                    Because(
                        "torchtext 0.18.0 (2024-04-24) is the last release",
                        MEASURED,
                        "file list on PyPI",
                    ),
                ),
            )


INTERNAL = regex(
    r"nvidia-(?:cublas|cuda-cupti|cuda-nvrtc|cuda-runtime|cudnn|cufft|cufile|curand|cusolver"
    r"|cusparse|cusparselt|nccl|nvjitlink|nvshmem|nvtx)-cu(\d+)"
)
"""Libraries that some release of torch requires (Requires-Dist of torch 2.0 to 2.15); others
of NVIDIA's (nvcomp, nvcc, npp …) are the project's own."""
OTHERS = frozenset(
    (
        "onnxruntime-gpu",
        "tensorflow",
        "jax",
        "jaxlib",
        "cupy",
        "cupy-cuda11x",
        "cupy-cuda12x",
        "paddlepaddle-gpu",
        "tensorrt",
        "faiss-gpu",
        "ctranslate2",
    )
)
"""Packages that may need another CUDA than torch has."""


class PinnedInternals(Rule):
    """A library of torch's own is pinned against what torch requires.

    What it does: reports ``nvidia-*-cu11`` beside a CUDA 12 torch (a warning), and a pin of
    ``triton`` or of one of NVIDIA's libraries that the selected torch does not accept (an error).

    Why it is bad: gigabytes for nothing; a version that torch does not accept is a conflict that
    stops the install of pip and uv.

    Example: ``nvidia-cublas-cu11==11.10.3.66`` left over beside ``torch==2.9.1``.

    Fix: remove the line; torch brings its own.

    Evidence: the package's name; Requires-Dist in torch's METADATA.
    """

    code = "TP305"
    name = "pinned-internals"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield pins on NVIDIA libraries of another CUDA major, and on a wrong triton."""
        for judged_set in way.sets:
            torch = judged_set.of("torch")
            build = torch.selection.build if torch else None
            if build is None:
                continue
            yield from self._refused(way, context, judged_set, build)
            for placed in judged_set.chosen.install.requirements:
                match = INTERNAL.fullmatch(placed.declaration.name)
                if match is None or build.cuda is None:
                    continue
                if match.group(1) == build.cuda.split(".")[0]:
                    continue
                if not marker_holds(placed.declaration.marker, judged_set.target):
                    continue
                names = {one.declaration.name for one in judged_set.chosen.install.requirements}
                yield self.finding(
                    placed.document,
                    placed.declaration.span,
                    f"{placed.declaration.name} is for CUDA {match.group(1)}; "
                    f"{build.title} uses CUDA {build.cuda}",
                    severity=INFO if names & OTHERS else WARNING,
                    package=placed.declaration.name,
                    target=judged_set.target,
                    because=(
                        Because(
                            "the ending of the name is the CUDA major version",
                            PUBLISHED,
                            "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#pip-wheels",
                        ),
                    ),
                )
            triton = judged_set.of("triton")
            version = exact_public(triton)
            accepted = context.catalog.partners(build.version, "triton")
            if triton is None or version is None or not accepted:
                continue
            if any(same_version(version, one) for one in accepted):
                continue
            if triton.selection.status == "none":
                continue  # TP1 says it
            if build.home != "pypi" or build.cuda is None:
                continue
            document, span = judged_set.place(triton.selection)
            yield self.finding(
                document,
                narrow(document, span, triton.selection),
                f"{build.title} requires triton {accepted[0]}, not {version}",
                severity=context.severity(way, judged_set.target, ERROR),
                package="triton",
                target=judged_set.target,
                because=(
                    Because(
                        f"torch {build.version} requires triton=={accepted[0]}",
                        MEASURED,
                        f"METADATA of torch {build.version}",
                    ),
                ),
            )

    def _refused(
        self, way: Way, context: Context, judged_set: JudgedSet, build: Build
    ) -> Iterator[Finding]:
        """Yield pins of NVIDIA's libraries that torch's own requirement excludes."""
        placed = [
            one
            for one in judged_set.chosen.install.requirements
            if one.declaration.name.startswith("nvidia-")
            and one.declaration.scope != "override"
            and exact_version(one.declaration.specifier) is not None
        ]
        if not placed:
            return
        from packaging.specifiers import SpecifierSet

        from torchpin.catalog.internals import load_internals

        brings = load_internals().brings(build)
        if brings is None or brings.evidence not in PROOF:
            return
        wanted = dict(brings.requires)
        for one in placed:
            name, pin = one.declaration.name, exact_version(one.declaration.specifier)
            specifier = wanted.get(name, "")
            if pin is None or SpecifierSet(specifier).contains(pin[0], prereleases=True):
                continue
            if not marker_holds(one.declaration.marker, judged_set.target):
                continue
            yield self.finding(
                one.document,
                one.declaration.span,
                f"{build.title} requires {name}{specifier}, not {pin[0]}",
                severity=context.severity(way, judged_set.target, ERROR),
                package=name,
                target=judged_set.target,
                because=(
                    Because(
                        f"torch {build.version} requires {name}{specifier}",
                        brings.evidence,
                        brings.source,
                    ),
                ),
            )


RULES = (CompanionNoKernel, CompanionEnded, PinnedInternals)
