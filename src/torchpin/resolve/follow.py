"""Packages that follow torch: a plan keeps their pins where they fit, and moves them where not.

torchvision and torchaudio move together with torch and decide which torch is taken. These here do
not: torch is chosen first, then for each of them the version that fits beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchpin.catalog.existence import absence
from torchpin.catalog.model import Build
from torchpin.evidence import INFERRED, MEASURED, PUBLISHED
from torchpin.judge.model import FAILS, PARTLY, RUNS, Reason
from torchpin.named import NamedTuple
from torchpin.resolve.model import Want
from torchpin.resolve.policy import NEAREST, allowed, exact_version, nearest_first, soft_anchor
from torchpin.resolve.space import AT_MOST_PARTLY, LEVELS, PYPI, Space, key_of

if TYPE_CHECKING:
    from torchpin.resolve.because import Line
    from torchpin.resolve.solve import Aim, Found

TEXT_LAST = "2.3."
"""The last torch that a torchtext was built for; its METADATA accept every later one."""


class Followed(NamedTuple):
    """One package beside the torch of a plan."""

    package: str
    version: str | None
    """None: no version is known that fits."""
    builds: tuple[tuple[str, str, Build], ...]
    """(platform, package, build), as in a plan."""
    moved: bool
    """The file must say it: its own words bring another version, or none."""
    because: tuple[Line, ...]


def follow(found: Found, numbers: tuple[int, ...], aim: Aim) -> tuple[Followed, ...]:
    """Return what each package that follows torch becomes in a solution."""
    return tuple(_Follower(found, numbers, aim, package).answer() for package in aim.followers)


def brings(space: Space, wants: Iterable[Want], followers: Iterable[str]) -> tuple[str, ...] | None:
    """Return the torch versions that hard wants of followers leave; None where there are none."""
    left: tuple[str, ...] | None = None
    for package in followers:
        hard = [want for want in wants if want.package == package and not want.soft]
        if not any(want.specifier for want in hard):
            continue
        builds = [
            build
            for version in allowed(hard, package, space.versions(package))
            for build in space.catalog.find(package, version=version)
        ]
        left = tuple(
            torch
            for torch in (space.versions("torch") if left is None else left)
            if any(_accepts(build, torch) is not False for build in builds)
        )
    return left


def _accepts(build: Build, torch: str) -> bool | None:
    from torchpin.judge.companions import accepts

    return accepts(build, torch)


class _Follower:
    """Looks for one package beside one torch."""

    def __init__(self, found: Found, numbers: tuple[int, ...], aim: Aim, package: str) -> None:
        self.space = found.problem.space
        self.package = package
        self.policy = aim.policy
        self.torch = found.solution.torch
        self._partners = frozenset(self.space.catalog.partners(self.torch, package))
        self.wants = tuple(want for want in aim.wants if want.package == package)
        self.hosts = [
            (platform, build) for platform, name, build in found.builds if name == "torch"
        ]
        self.numbers = {
            platform: tuple(
                dict.fromkeys(
                    self.space.like(n)
                    for n in numbers
                    if self.space.targets[n].group.platform == platform
                )
            )
            for platform, _ in self.hosts
        }
        everywhere = {build.platform for build in self.space.catalog.builds(package)}
        if everywhere.intersection(platform for platform, _ in self.hosts):
            # Where the package has no wheel at all, its line is for other platforms.
            self.hosts = [(platform, one) for platform, one in self.hosts if platform in everywhere]

    def answer(self) -> Followed:
        """Return the version to take, and why."""
        natural = self._natural()
        for cap in (LEVELS[PARTLY] - 1, AT_MOST_PARTLY):
            for version in self._order(natural):
                builds = self._builds(version, cap, sure=version != natural)
                if builds:
                    moved = version != natural
                    lines = self._lines(natural, version, builds) if moved else ()
                    return Followed(self.package, version, builds, moved, lines)
        shown = ", ".join(build.title for _, build in self.hosts[:1])
        text = f"no {self.package} is known that runs beside {shown}"
        best = next((v for v in self._order(natural) if v != natural), natural)
        first = self._reason(best) if best is not None else None
        if first is not None:
            text += f": {first.text}"
        line = (text, first.evidence if first is not None else INFERRED, "")
        return Followed(self.package, None, (), False, (line,))

    def _soft(self) -> str | None:
        """The version that a soft want names, be it published or not."""
        for want in self.wants:
            if want.soft and want.specifier:
                exact = exact_version(want.specifier, self.space.catalog.versions(self.package))
                if exact is not None:
                    return exact
        anchor = soft_anchor(self.wants, self.package, self.space.versions(self.package))
        return anchor.version if anchor is not None else None

    def _bounded(self) -> tuple[str, ...]:
        """All versions that hard wants allow, newest first; a pinned one too that is no release."""
        versions = self.space.versions(self.package)
        pinned = self._soft()
        known = self.space.catalog.versions(self.package)
        if pinned is not None and pinned in known and pinned not in versions:
            versions = (pinned, *versions)  # a release candidate
        return allowed(self.wants, self.package, versions)

    def _inside(self) -> tuple[str, ...]:
        """The versions that the file admits as it stands, newest first."""
        return allowed((w._replace(soft=False) for w in self.wants), self.package, self._bounded())

    def _natural(self) -> str | None:
        """The version that an installer takes beside this torch, as METADATA bind it."""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        published = self.space.catalog.versions(self.package)
        pinned = [exact_version(want.specifier, published) for want in self.wants]
        if any(pinned):
            return next(version for version in pinned if version)
        if self._required():
            return next((v for v in self._inside() if v in self._required()), None)
        for version in self._inside():
            for build in self.space.catalog.find(self.package, version=version):
                try:
                    if SpecifierSet(build.requires_torch or "").contains(self.torch):
                        return version
                except InvalidSpecifier:
                    continue
        return None

    def _order(self, natural: str | None) -> Iterator[str]:
        """Yield candidates: what the file says; what was made for this torch; the nearest.

        Nothing may stand against what the file says; for any other version something must speak.
        """
        if natural is not None and (natural in self._required() or not self._required()):
            yield natural
        known = [version for version in self._bounded() if self._known(version)]
        inside = set(self._inside())
        yield from (version for version in known if version in inside)
        rest = [version for version in known if version not in inside]
        anchor = self._soft()
        if anchor is not None and self.policy == NEAREST:
            rest = list(nearest_first(rest, anchor))
        yield from sorted(rest, key=lambda version: not self._made_for(version))

    def _required(self) -> tuple[str, ...]:
        """The versions of triton that a CUDA torch for Linux requires; empty for all others."""
        if self.package != "triton" or not any(
            host.cuda and platform.startswith("linux") for platform, host in self.hosts
        ):
            return ()
        return self.space.catalog.partners(self.torch, "triton")

    def _known(self, version: str) -> bool:
        """True if METADATA or a published table says that a version goes with this torch."""
        if self.package == "torchtext" and not self.torch.startswith(TEXT_LAST):
            return self._made_for(version) and version in self._partners
        return version in self._partners or any(
            _accepts(build, self.torch) is True
            and (self.package == "bitsandbytes" or build.requires_torch == "")
            for build in self.space.catalog.find(self.package, version=version)
        )

    def _made_for(self, version: str) -> bool:
        """True if a version pins this torch."""
        return any(
            (build.requires_torch or "").startswith("==")
            for build in self.space.catalog.find(self.package, version=version)
        )

    def _builds(self, version: str, cap: int, *, sure: bool) -> tuple[tuple[str, str, Build], ...]:
        """Return the builds of a version on every platform; empty if one of them does not fit."""
        found = []
        for platform, host in self.hosts:
            build = self._fitting(version, platform, host, cap, sure=sure)
            if build is None:
                return ()
            found.append((platform, self.package, build))
        return tuple(found)

    def _fitting(
        self, version: str, platform: str, host: Build, cap: int, *, sure: bool
    ) -> Build | None:
        keys = self.space.beside_builds(self.package, version, platform)
        for key in dict.fromkeys((key_of(host), PYPI)):
            for build in keys.get(key, ()):
                pair = self.space.pair_level(build, host)
                if pair == LEVELS[PARTLY] and not any(
                    self.space.targets[n].group.gpus for n in self.numbers[platform]
                ):
                    pair = 0
                if pair > cap or (sure and not self._loads(build, host)):
                    continue
                working = self.space.beside(build, host)
                if all(
                    self.space.level(working, n) <= AT_MOST_PARTLY for n in self.numbers[platform]
                ):
                    return build
        return None

    def _loads(self, build: Build, host: Build) -> bool:
        """False for bitsandbytes of which nobody has read whether it has a library for a CUDA."""
        return (
            self.package != "bitsandbytes"
            or host.cuda is None
            or any(
                reason.question == "companion-cuda" and reason.status == RUNS
                for reason in self.space.judge_pair(build, host)
            )
        )

    def _reason(self, version: str) -> Reason | None:
        """Return why a version does not fit beside this torch."""
        worst: Reason | None = None
        for platform, host in self.hosts:
            keys = self.space.beside_builds(self.package, version, platform)
            for key in dict.fromkeys((key_of(host), PYPI, *sorted(keys))):
                for build in keys.get(key, ()):
                    reasons = [*self.space.judge_pair(build, host)]
                    working = self.space.beside(build, host)
                    for number in self.numbers[platform]:
                        reasons += self.space.verdict(working, number).reasons
                    for reason in reasons:
                        if reason.status == FAILS:
                            return reason
                        if reason.status == PARTLY and worst is None:
                            worst = reason
        return worst

    def _lines(
        self, natural: str | None, version: str, builds: tuple[tuple[str, str, Build], ...]
    ) -> tuple[Line, ...]:
        """Say why the version that the file brings is passed over, and why this one fits."""
        lines: list[Line] = []
        known = self.space.catalog.versions(self.package)
        if natural is not None and natural not in known:
            text = f"{self.package} {natural} {absence(self.package)}; the newest is {known[-1]}"
            lines.append((text, PUBLISHED, ""))
        elif natural is not None:
            reason = self._reason(natural)
            if reason is not None:
                lines.append((reason.text, reason.evidence, reason.source))
        if self._required():
            text = f"torch {self.torch} requires triton {' or '.join(self._required())}"
            pypi = any(host.home == PYPI for _, host in self.hosts)
            where = f"METADATA of PyPI's torch {self.torch}"
            lines.append((text, MEASURED if pypi else INFERRED, where))
        for (_, host), (_, _, build) in zip(self.hosts, builds, strict=True):
            for reason in self.space.judge_pair(build, host):
                if reason.status != FAILS:
                    lines.append((reason.text, reason.evidence, reason.source))
        return tuple(dict.fromkeys(lines))
