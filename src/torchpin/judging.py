"""Floor 5: stages 2 and 3 for one install: what it selects on each target, with the verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchpin.catalog.model import Build
from torchpin.catalog.store import Catalog
from torchpin.documents.pins import exact_version
from torchpin.fleet.model import Target
from torchpin.judge.alike import SharedJudge
from torchpin.judge.companions import loaded
from torchpin.judge.model import Reason, Verdict
from torchpin.judge.verdict import judge_companion
from torchpin.rules.context import Judged, JudgedSet
from torchpin.select.alike import select_all
from torchpin.select.model import Install, SelectedSet, Selection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchpin.select.parts import Installed

COMPANIONS = (
    *("torchvision", "torchaudio", "torchtext", "torchcodec"),
    *("torchao", "torchdata", "xformers", "bitsandbytes"),
)
HARDWARE = frozenset(("kernels", "driver", "driver-branch", "vendor"))


def meant_build(selection: Selection, chosen: SelectedSet, catalog: Catalog) -> Build | None:
    """Return the build that a pin means although it cannot be installed on the target.

    Known only for an exact version that exists for the platform in exactly one place. (Hashes that
    fit no known wheel say that another build is meant: nothing is judged then.)
    """
    if selection.miss is None or selection.miss.kind not in ("glibc", "python"):
        return None
    pin = exact_version(selection.placed.declaration.specifier) if selection.placed else None
    if pin is None:
        return None
    builds = [
        build
        for build in catalog.find(
            selection.package, version=pin[0], platform=chosen.target.group.platform
        )
        if any(
            (build.home == "pypi" and index.kind.kind == "pypi" and not pin[1])
            or (build.home == "channel" and index.kind.channel == build.channel)
            for index in chosen.install.indexes
        )
    ]
    return builds[0] if len(builds) == 1 else None


def judge_set(
    chosen: SelectedSet, catalog: Catalog, judge: SharedJudge, declared: bool
) -> JudgedSet:
    """Stage 3. Return the selections of one install on one target with their verdicts."""
    torch = next((one for one in chosen.selections if one.package == "torch"), None)
    judged: list[Judged] = []
    for selection in chosen.selections:
        verdict: Verdict | None = None
        beside: tuple[Reason, ...] = ()
        build = selection.build
        if build is not None:
            if declared:
                host = torch.build if torch is not None else None
                verdict = judge(loaded(build, host) if host else build, chosen.target)
            if torch is not None and torch.build is not None and selection.package in COMPANIONS:
                beside = judge_companion(build, torch.build)
        elif declared:
            meant = meant_build(selection, chosen, catalog)
            if meant is not None:
                found = judge(meant, chosen.target)
                reasons = tuple(one for one in found.reasons if one.question in HARDWARE)
                judged.append(Judged(selection, found._replace(reasons=reasons), meant))
                continue
        judged.append(Judged(selection, verdict, None, beside))
    return JudgedSet(chosen, tuple(judged))


def judge_install(
    install: Install,
    targets: Iterable[Target],
    catalog: Catalog,
    judge: SharedJudge,
    declared: bool,
    before: Mapping[str, Installed] | None = None,
) -> tuple[JudgedSet, ...]:
    """Stages 2 and 3 for one install on several targets.

    ``before``: what is installed already; what a companion needs and is there is not installed.
    """
    sets = list(select_all(install, targets, catalog))
    if before:
        from torchpin.select.parts import without_installed

        sets = [without_installed(chosen, before) for chosen in sets]
    return tuple(judge_set(chosen, catalog, judge, declared) for chosen in sets)
