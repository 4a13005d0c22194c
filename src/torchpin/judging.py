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

    from torchpin.documents.base import Span
    from torchpin.select.model import Placed
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
    chosen: SelectedSet,
    catalog: Catalog,
    judge: SharedJudge,
    declared: bool,
    earlier: Judged | None = None,
) -> JudgedSet:
    """Stage 3. Return the selections of one install on one target with their verdicts.

    ``earlier``: the torch that is there already, and stays where none is installed.
    """
    torch = next((one for one in chosen.selections if one.package == "torch"), None)
    if torch is not None:
        earlier = None
    elif earlier is not None:
        torch = earlier.selection
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
    return JudgedSet(chosen, tuple(judged), earlier)


def judge_install(
    install: Install,
    targets: Iterable[Target],
    catalog: Catalog,
    judge: SharedJudge,
    declared: bool,
    before: Mapping[str, Installed] | None = None,
    earlier: EarlierTorch | None = None,
) -> tuple[JudgedSet, ...]:
    """Stages 2 and 3 for one install on several targets.

    ``before``: what is installed already; what a companion needs and is there is not installed.
    ``earlier``: what the commands above it installed; this one is added.
    """
    sets = list(select_all(install, targets, catalog))
    if before:
        from torchpin.select.parts import without_installed

        sets = [without_installed(chosen, before) for chosen in sets]
    placed = before["torch"].placed if before and "torch" in before else None
    found: list[JudgedSet] = []
    for chosen in sets:
        there = earlier.of(placed, chosen.target) if earlier is not None else None
        found.append(judge_set(chosen, catalog, judge, declared, there))
    if earlier is not None:
        earlier.note(found)
    return tuple(found)


class EarlierTorch:
    """The torch that the commands of a file install, by what asks for it and by target."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Span, Target], Judged] = {}

    def of(self, placed: Placed | None, target: Target) -> Judged | None:
        """Return what a declaration of an earlier command installs on a target, if known."""
        if placed is None:
            return None
        return self._found.get((placed.document.path, placed.declaration.span, target))

    def note(self, sets: Iterable[JudgedSet]) -> None:
        """Note the torch of the sets of one install."""
        for one in sets:
            torch = one.of("torch")
            if torch is None or torch.selection.placed is None or torch.selection.build is None:
                continue
            document, declaration = torch.selection.placed
            self._found[document.path, declaration.span, one.target] = torch
