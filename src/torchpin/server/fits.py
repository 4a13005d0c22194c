"""Which versions and channels run on the fleet: what completion tells of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchpin.catalog.model import Build
from torchpin.fleet.model import Target
from torchpin.judge.model import BADNESS, FAILS, RUNS, RUNS_VIA_PTX
from torchpin.named import NamedTuple
from torchpin.rules.context import Context, Way
from torchpin.select.environments import wheel_fits
from torchpin.server.hover import MARKS, WORDS

ABSENT = "absent"
"""No wheel for the machine."""
_ORDER = (*BADNESS, ABSENT)


class Fit(NamedTuple):
    """How one choice fares on each group."""

    groups: tuple[tuple[str, str, str], ...]
    """Name, status (of ``BADNESS``, or ``ABSENT``), and the reason for the worst of it."""
    builds: tuple[Build, ...]
    """The builds that were judged best, one a target."""

    @property
    def rank(self) -> int:
        """0 if it runs everywhere, more the less it does."""
        worst = max((_ORDER.index(status) for _, status, _ in self.groups), default=0)
        runs = any(status in (RUNS, RUNS_VIA_PTX) for _, status, _ in self.groups)
        return worst if runs or not self.groups else worst + len(_ORDER)

    @property
    def mark(self) -> str:
        """One character that tells the rank."""
        if not self.groups:
            return ""
        return MARKS.get(_ORDER[self.rank % len(_ORDER)], "✗")

    @property
    def text(self) -> str:
        """Where it runs and where not, in a line."""
        runs = [name for name, status, _ in self.groups if status in (RUNS, RUNS_VIA_PTX)]
        rest = [
            f"{'no wheel for' if status == ABSENT else WORDS[status] + ' on'} {name}"
            for name, status, _ in self.groups
            if status not in (RUNS, RUNS_VIA_PTX)
        ]
        return "; ".join([*([f"runs on {', '.join(runs)}"] if runs else []), *rest])


class Fits:
    """Judges builds on the fleet of one context; what was judged is kept."""

    def __init__(self, context: Context) -> None:
        from torchpin.judge.alike import SharedJudge

        self.context = context
        self.judge = SharedJudge(context.drivers)
        self.targets: tuple[Target, ...] = context.fleet.targets() if context.declared else ()

    def of(self, builds: Sequence[Build]) -> Fit:
        """Return how the best of some builds fares on each target, group by group."""
        groups: dict[str, tuple[str, str, str]] = {}
        chosen: dict[Build, None] = {}
        for target in self.targets:
            best: tuple[str, str, Build | None] = (ABSENT, "", None)
            for build in builds:
                if not wheel_fits(build, target)[0]:
                    continue
                verdict = self.judge(build, target)
                if _ORDER.index(verdict.status) < _ORDER.index(best[0]):
                    why = next(
                        (one.text for one in verdict.reasons if one.status == verdict.status), ""
                    )
                    best = verdict.status, why if verdict.status != RUNS else "", build
            if best[2] is not None and best[0] != FAILS:
                chosen[best[2]] = None
            name = target.group.name
            known = groups.get(name)
            if known is None or _ORDER.index(known[1]) < _ORDER.index(best[0]):
                groups[name] = (name, best[0], best[1])
        return Fit(tuple(groups.values()), tuple(chosen))


def served(builds: Iterable[Build], ways: Sequence[Way]) -> list[Build]:
    """Return the builds that the indexes of some ways serve; all of them where that is unknown."""
    builds = list(builds)
    if not ways:
        return builds
    channels: set[str] = set()
    pypi = False
    for way in ways:
        for index in way.install.indexes:
            if index.kind.kind == "pypi":
                pypi = True
            elif index.kind.channel is not None:
                channels.add(index.kind.channel)
            else:
                return builds
    return [
        one
        for one in builds
        if (one.home == "pypi" and pypi) or (one.home == "channel" and one.channel in channels)
    ]
