"""What can be chosen: builds that an installer could be given, and how well each runs where.

Everything is looked up or judged once a solve and remembered; nothing is judged before it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from torchpin.catalog.model import Build
from torchpin.evidence import PROOF
from torchpin.fleet.alike import likeness
from torchpin.fleet.model import NodeGroup, Target
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
from torchpin.named import NamedTuple

if TYPE_CHECKING:
    from torchpin.catalog.store import Catalog

PYPI = "pypi"
"""The key of PyPI's own builds: their real channel differs from version to version."""

ROOT = "root"
"""Builds that lie on ``/whl`` itself and on no channel: never part of a plan."""

LEVELS = {RUNS: 0, RUNS_VIA_PTX: 1, PARTLY: 2, UNKNOWN: 3, FAILS: 4}
"""How good a verdict is for a plan. ``partly`` comes before ``unknown``: it is known."""
AT_MOST_PARTLY = 2
AT_MOST_UNKNOWN = 3


class Option(NamedTuple):
    """One platform and the targets (by number, see ``Space.intern``) that a build must serve."""

    platform: str
    targets: tuple[int, ...]


class Lane(NamedTuple):
    """What one virtual package ``channel@<name>`` stands for.

    A plan takes one channel a lane. A lane is a platform with its targets; where an explanation
    asks what another platform would allow, it has several options, and one of them must hold.
    """

    name: str
    options: tuple[Option, ...]
    lenient: frozenset[int] = frozenset()
    """Targets for which no build is known to run: an unknown verdict is accepted for them."""


def key_of(build: Build) -> str:
    """Return the value that ``channel@…`` takes for a build."""
    return PYPI if build.home == PYPI else build.channel


class Space:
    """The builds of a catalog, as one request may use them, with their verdicts.

    Args:
        catalog: where builds come from.
        pypi: whether PyPI's own builds may be used.
        channels: if not empty, only these channels may be used.
        avoid_inferred: leave out builds whose existence is inferred.
        judge_build, judge_pair: replace the judge (tests).
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        pypi: bool = True,
        channels: Iterable[str] = (),
        avoid_inferred: bool = True,
        judge_build: Callable[[Build, Target], Verdict] | None = None,
        judge_pair: Callable[[Build, Build], tuple[Reason, ...]] | None = None,
    ) -> None:
        if judge_build is None or judge_pair is None:
            from torchpin.judge.verdict import judge, judge_companion

            judge_build = judge_build or judge
            judge_pair = judge_pair or judge_companion
        self.catalog = catalog
        self.pypi = pypi
        self.channels = frozenset(channels)
        self.avoid_inferred = avoid_inferred
        self.judge = judge_build
        self.judge_pair = judge_pair
        self._numbers: dict[Target, int] = {}
        self._likes: dict[Target, int] = {}
        self._like: list[int] = []
        self.targets: list[Target] = []
        self._builds: dict[tuple[str, str, str], dict[str, list[Build]]] = {}
        self._verdicts: dict[tuple[int, int], Verdict] = {}
        self._levels: dict[tuple[int, int], int] = {}
        self._pairs: dict[tuple[int, int], int] = {}
        self._beside: dict[tuple[int, int], Build] = {}
        self._versions: dict[str, tuple[str, ...]] = {}
        self._best: dict[
            tuple[str, str, str, Option, frozenset[int]], tuple[int, Build] | None
        ] = {}

    def intern(self, target: Target) -> int:
        """Return the number of a target (equal targets have one number)."""
        number = self._numbers.get(target)
        if number is None:
            number = self._numbers[target] = len(self.targets)
            self.targets.append(target)
            self._like.append(self._likes.setdefault(likeness(target), number))
        return number

    def like(self, number: int) -> int:
        """Return the number of the first target that is equal to one in all that matters."""
        return self._like[number]

    def lanes(
        self, targets: Iterable[int], lenient: frozenset[int] = frozenset()
    ) -> tuple[Lane, ...]:
        """Return one lane a platform; the lane that leads (a GPU, then Linux) comes first."""
        by_platform: dict[str, dict[int, None]] = {}
        for number in targets:
            alike = by_platform.setdefault(self.targets[number].group.platform, {})
            alike[self._like[number]] = None
        likes = frozenset(self._like[number] for number in lenient)
        lanes = [
            Lane(platform, (Option(platform, tuple(numbers)),), likes.intersection(numbers))
            for platform, numbers in by_platform.items()
        ]
        return tuple(sorted(lanes, key=lambda lane: (not self.has_gpu(lane), _rank(lane.name))))

    def has_gpu(self, lane: Lane) -> bool:
        """Return whether any target of the lane has a GPU."""
        return any(self._any_gpu(option) for option in lane.options)

    def versions(self, package: str) -> tuple[str, ...]:
        """Return the published final versions, newest first."""
        found = self._versions.get(package)
        if found is None:
            from packaging.version import Version

            found = self._versions[package] = tuple(
                version
                for version in reversed(self.catalog.versions(package))
                if not Version(version).is_prerelease
            )
        return found

    def builds(self, package: str, version: str, platform: str) -> dict[str, list[Build]]:
        """Return key → builds of a version on a platform that the request may use."""
        at = (package, version, platform)
        found = self._builds.get(at)
        if found is None:
            found = self._builds[at] = {}
            for build in self.catalog.find(package, version=version, platform=platform):
                if self._offered(build):
                    found.setdefault(key_of(build), []).append(build)
        return found

    def beside_builds(self, package: str, version: str, platform: str) -> dict[str, list[Build]]:
        """Return the same for a package that follows torch: PyPI has it, wherever torch lies."""
        at = (f"{package} beside", version, platform)
        found = self._builds.get(at)
        if found is None:
            found = self._builds[at] = {}
            for build in self.catalog.find(package, version=version, platform=platform):
                if self._offered(build, pypi=True):
                    found.setdefault(key_of(build), []).append(build)
        return found

    def _offered(self, build: Build, *, pypi: bool = False) -> bool:
        if self.avoid_inferred and build.evidence not in PROOF:
            return False
        return self.usable(build, pypi=pypi)

    def usable(self, build: Build, *, pypi: bool = False) -> bool:
        """Return whether the request may use a build, if it exists."""
        if build.yanked:
            return False
        if build.home == PYPI:
            return pypi or self.pypi
        if build.channel == ROOT or "/" in build.channel:
            return False
        return not self.channels or build.channel in self.channels

    def verdict(self, build: Build, number: int) -> Verdict:
        """Return the verdict on a build for a target."""
        number = self._like[number]
        at = (id(build), number)
        found = self._verdicts.get(at)
        if found is None:
            found = self._verdicts[at] = self.judge(build, self.targets[number])
        return found

    def level(self, build: Build, number: int) -> int:
        """Return how good a build is for a target (a value of ``LEVELS``).

        Kernels that are only inferred count as unknown, unless inferred facts are allowed or all
        GPUs are AMD's: for ROCm builds since 2.5 nothing better is known than the build image, and
        ``because`` says so. For a
        companion, kernels that nobody has read do not stand in the way of a plan.
        """
        number = self._like[number]
        at = (id(build), number)
        found = self._levels.get(at)
        if found is None:
            found = self._levels[at] = self._level(build, number)
        return found

    def _level(self, build: Build, number: int) -> int:
        verdict = self.verdict(build, number)
        target = self.targets[number]
        if verdict.status == FAILS or (verdict.status == UNKNOWN and _cannot(build, target)):
            return LEVELS[FAILS]
        level = 0
        for reason in verdict.reasons:
            unread = build.package != "torch" and reason.question in ("kernels", "libraries")
            if reason.status != UNKNOWN or not unread:
                level = max(level, LEVELS[reason.status])
        if not verdict.reasons:
            level = LEVELS[verdict.status]
        if self.avoid_inferred and unproved_kernels(build, target.group):
            level = max(level, LEVELS[UNKNOWN])
        if level == 0 and build.package == "torch" and build.home != PYPI and not build.libraries:
            return self._like_pypi(build, number)
        return level

    def _like_pypi(self, build: Build, number: int) -> int:
        """Return ``partly`` if PyPI's build of the same version and kernel list is known so.

        The libraries of few channel wheels were read. Where PyPI's wheel with the same list lacks
        kernels in one of them, a channel's wheel is not taken for better because nobody looked.
        """
        for twin in self.builds("torch", build.version, build.platform).get(PYPI, ()):
            lists, own = twin.kernels, build.kernels
            if twin.libraries and lists is not None and own is not None and lists.sass == own.sass:
                return LEVELS[PARTLY] if self.level(twin, number) == LEVELS[PARTLY] else 0
        return 0

    def pair_level(self, companion: Build, torch: Build) -> int:
        """Return how well two builds accept each other; what is not known does not count."""
        at = (id(companion), id(torch))
        found = self._pairs.get(at)
        if found is None:
            statuses = [reason.status for reason in self.judge_pair(companion, torch)]
            known = (LEVELS[status] for status in statuses if status != UNKNOWN)
            found = self._pairs[at] = max(known, default=0)
        return found

    def beside(self, companion: Build, torch: Build) -> Build:
        """Return a companion as it works beside a torch build; the same object each time."""
        at = (id(companion), id(torch))
        found = self._beside.get(at)
        if found is None:
            from torchpin.judge.companions import loaded

            found = self._beside[at] = loaded(companion, torch)
        return found

    def best(
        self, package: str, version: str, key: str, option: Option, lenient: frozenset[int]
    ) -> tuple[int, Build] | None:
        """Return the best build at a place and its level over all targets of the option."""
        at = (package, version, key, option, lenient)
        if at in self._best:
            return self._best[at]
        best: tuple[int, Build] | None = None
        for build in self.builds(package, version, option.platform).get(key, ()):
            level = 0
            for number in option.targets:
                one = self.level(build, number)
                if one == LEVELS[UNKNOWN] and number in lenient:
                    one = AT_MOST_PARTLY
                level = max(level, one)
                if level > AT_MOST_PARTLY:
                    break
            else:
                if best is None or level < best[0]:
                    best = (level, build)
        self._best[at] = best
        return best

    def torch_keys(self, version: str, lane: Lane) -> dict[str, tuple[int, tuple[Option, ...]]]:
        """Return key → (level, the options that hold) of a torch version on a lane."""
        found: dict[str, tuple[int, tuple[Option, ...]]] = {}
        for option in lane.options:
            for key in self.builds("torch", version, option.platform):
                best = self.best("torch", version, key, option, lane.lenient)
                if best is None:
                    continue
                level, options = found.get(key, (AT_MOST_UNKNOWN, ()))
                found[key] = (min(level, best[0]), (*options, option))
        return found

    def companion(
        self,
        package: str,
        version: str,
        torch: str,
        key: str,
        option: Option,
        lenient: frozenset[int],
    ) -> tuple[int, Build] | None:
        """Return the companion's build that fits beside a torch build, or None.

        It lies where torch lies. A package that the channels do not hold at all may come from
        PyPI beside a channel's torch.
        """
        host = self.best("torch", torch, key, option, lenient)
        if host is None:
            return None
        keys = [key]
        if key != PYPI and self.pypi and not self._on_channels(package):
            keys.append(PYPI)
        for at in keys:
            best = self.best(package, version, at, option, lenient)
            if best is None:
                continue
            pair = self.pair_level(best[1], host[1])
            if pair == LEVELS[PARTLY] and not self._any_gpu(option):
                pair = 0  # only its GPU operators are missing
            if pair <= AT_MOST_PARTLY:
                return (max(best[0], pair), best[1])
        return None

    def _any_gpu(self, option: Option) -> bool:
        return any(self.targets[number].group.gpus for number in option.targets)

    def _on_channels(self, package: str) -> bool:
        return package in ("torchvision", "torchaudio") or any(
            build.home != PYPI for build in self.catalog.builds(package)
        )


def unproved_kernels(build: Build, group: NodeGroup) -> bool:
    """Return whether the kernels of a torch are only thought to be those that a group needs.

    Of AMD's GPUs nothing better is known than the build image: there it counts.
    """
    lists = build.kernels
    if build.package != "torch" or lists is None or lists.evidence in PROOF:
        return False
    return any(gpu.vendor != "amd" for gpu in group.gpus)


def _cannot(build: Build, target: Target) -> bool:
    """Whether nothing speaks for torch on a GPU: no list, or one, if inferred, without the GPU.

    The judge calls both unknown, rightly; but no plan shall rest on them. (No XPU build has a
    list: there the platform is all that is known.)
    """
    lists, group = build.kernels, target.group
    if build.package != "torch" or not group.gpus:
        return False
    if lists is None:
        return build.channel != "xpu" or any(gpu.vendor != "intel" for gpu in group.gpus)
    from torchpin.judge.kernels import NONE, gfx_match, kernel_match

    for gpu in group.gpus:
        if gpu.capability is not None and lists.sass:
            match = kernel_match(
                lists.sass,
                lists.ptx,
                gpu.capability,
                tegra=gpu.tegra,
                jetpack=group.jetpack,
                cuda=build.cuda,
            )
        elif gpu.gfx is not None and lists.gfx:
            match = gfx_match(lists.gfx, gpu.gfx)
        else:
            continue
        if match.how == NONE:
            return True
    return False


def _rank(platform: str) -> int:
    order = ("linux-x86_64", "linux-aarch64", "windows-x86_64")
    return order.index(platform) if platform in order else len(order)


assert set(LEVELS) == set(BADNESS)
