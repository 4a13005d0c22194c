"""Verdicts are shared between targets that are equal in all that matters."""

from __future__ import annotations

from torchpin.catalog.drivers import Drivers
from torchpin.catalog.model import Build
from torchpin.fleet.alike import likeness
from torchpin.fleet.model import Target
from torchpin.judge.model import Verdict
from torchpin.judge.verdict import judge


class SharedJudge:
    """Judges each build once for all targets that are alike."""

    def __init__(self, drivers: Drivers | None = None) -> None:
        self.drivers = drivers
        self._likes: dict[Target, Target] = {}
        self._known: dict[tuple[int, Target], tuple[Build, Verdict]] = {}

    def __call__(self, build: Build, target: Target) -> Verdict:
        """Return the verdict on a build for a target."""
        like = self._likes.get(target)
        if like is None:
            like = self._likes[target] = likeness(target)
        key = (id(build), like)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = build, judge(build, like, self.drivers)
        return found[1]
