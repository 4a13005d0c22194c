"""What ``judge`` says of the installed builds on each GPU, library by library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from torchpin.catalog.kernel_lists import LINALG
from torchpin.catalog.model import Build
from torchpin.evidence import MEASURED
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.judge.model import BADNESS, FAILS, PARTLY, RUNS, RUNS_VIA_PTX, UNKNOWN, Reason
from torchpin.judge.verdict import judge, judge_companion
from torchpin.verify.classify import COMPANIONS
from torchpin.verify.held import Held
from torchpin.verify.installed import Package
from torchpin.verify.model import (
    CRASHED,
    FAILED,
    NO_DRIVER,
    OTHER,
    OUT_OF_MEMORY,
    SKIPPED,
    TIMEOUT,
    WRONG_RESULT,
    Work,
)

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog

_PRODUCTS = {"cublas": ("cuBLAS ",), "cudnn": ("cuDNN ",), "linalg": (LINALG, "cuSOLVER ")}
"""What the work of a library needs beside torch itself: how the judge's libraries begin."""
_ELSEWHERE = (OUT_OF_MEMORY, TIMEOUT, CRASHED, WRONG_RESULT, NO_DRIVER, OTHER)
"""Failures that do not prove right a prediction that something fails."""
_OF_THE_MOMENT = (OUT_OF_MEMORY, TIMEOUT)


class Prediction:
    """What is expected of each library on some GPUs of this machine."""

    def __init__(self, main: Iterable[Reason], companions: Mapping[str, Iterable[Reason]]) -> None:
        self._main = tuple(main)
        self._companions = {name: tuple(reasons) for name, reasons in companions.items()}

    def of(self, library: str) -> str:
        """Return a word of verdicts for the work of a library."""
        statuses = [reason.status for reason in self._main if reason.question != "libraries"]
        for reason in self._main:
            begins = _PRODUCTS.get(library, ())
            if reason.question == "libraries" and (reason.library or "").startswith(begins):
                statuses.append(self._library(reason))
        statuses += [reason.status for reason in self._companions.get(library, ())]
        if library not in COMPANIONS and not self._main:
            return UNKNOWN
        return max(statuses, key=BADNESS.index, default=UNKNOWN)

    @staticmethod
    def _library(reason: Reason) -> str:
        """A library without kernels fails; linear algebra lies in several, of which one lacks."""
        if reason.status == PARTLY and (reason.library or "").startswith(("cuBLAS", "cuDNN")):
            return FAILS
        return reason.status

    def why(self, library: str) -> str:
        """Return the sentence that a prediction other than ``runs`` rests on."""
        status = self.of(library)
        begins = _PRODUCTS.get(library, ())
        for reason in (*self._companions.get(library, ()), *self._main):
            fits = reason.question != "libraries" or (reason.library or "").startswith(begins)
            if fits and (reason.status == status or self._library(reason) == status):
                return reason.text
        return ""


def predict(torch: Build | None, companions: Sequence[Build], group: NodeGroup) -> Prediction:
    """Return what is expected of the installed builds on a group of like GPUs."""
    if torch is None:
        return Prediction((), {})
    python = group.pythons[0] if group.pythons else None
    target = Target(group, python)
    main = judge(torch, target).reasons
    return Prediction(
        main,
        {
            companion.package: (
                *judge(companion, target).reasons,
                *judge_companion(companion, torch),
            )
            for companion in companions
        },
    )


def is_version(text: str) -> bool:
    """Tell whether a package has a version that can be judged."""
    from packaging.version import Version

    try:
        Version(text)
    except ValueError:  # InvalidVersion, or more digits than Python reads
        return False
    return True


def build_of(
    package: Package, held: Held | None, catalog: Catalog, platform: str, python: Python
) -> Build:
    """Return the installed package as a build: as the catalog has it, with what its files hold.

    That it exists for this Python and platform is beyond doubt: it is installed.
    """
    version, _, label = package.version.partition("+")
    channel = package.channel
    home = "channel" if label else "pypi"
    known = [
        build
        for build in catalog.find(package.name, version=version, platform=platform)
        if build.channel == channel
    ]
    known.sort(key=lambda build: build.home != home)
    if known:
        build = known[0]
    else:
        from torchpin.catalog.refresh.kernels import torch_specifier
        from torchpin.plugin.choice import unknown_build

        where = "the installed files"
        build = unknown_build(package.name, version, label, platform, home=home, source=where)
        wants = torch_specifier(package.requires) if package.name != "torch" else None
        build = build._replace(channel=channel, cuda=package.cuda, requires_torch=wants)
    if held is not None and held.main is not None:
        build = build._replace(kernels=held.main, libraries=held.beside)
    return build._replace(
        pythons=(python.tag,), pythons_inferred=(), requires_python=None, evidence=MEASURED
    )


def compared(work: Work, prediction: Prediction) -> Work:
    """Return work with what was predicted, and whether it went so."""
    predicted = prediction.of(work.library)
    agrees = None if work.status == SKIPPED else _agrees(work, predicted)
    return work._replace(predicted=predicted, agrees=agrees)


def _agrees(work: Work, predicted: str) -> bool | None:
    if predicted in (RUNS, RUNS_VIA_PTX):
        if work.status != FAILED:
            return True
        return None if work.reason in _OF_THE_MOMENT else False
    if predicted == FAILS:
        if work.status != FAILED:
            return False
        return None if work.reason in _ELSEWHERE else True
    if predicted == PARTLY and work.status == FAILED and work.reason not in _ELSEWHERE:
        return True
    return None
