"""What a project of PDM installs, by the lock that ``pdm lock`` would make of it.

Measured with PDM 2.29.4: a package that the ``include_packages`` of a source name comes from such
sources alone, any other from all that do not exclude it; with ``respect-source-order`` from the
first that has it. As with Poetry a version counts only if its ``Requires-Python`` admits every
Python of the project. The lock names public versions: where PyPI and a channel both hold one, it
lists the files of both (2.13.0 with those of PyPI and of ``+cu126``), and which of them an
installation takes is not said by the lock.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from torchpin.documents.project import ProjectIndex
from torchpin.fleet.model import Target
from torchpin.select.asks import Ask
from torchpin.select.facts import Facts
from torchpin.select.model import Install, SelectedSet
from torchpin.select.poetry_project import RangeLock
from torchpin.select.pools import Candidate, Pool


def select_pdm_project(install: Install, target: Target, catalog: Facts) -> SelectedSet:
    """Return what ``pdm install`` installs on ``target`` after ``pdm lock``."""
    return _PdmLock(install, target, catalog).selected()


class _PdmLock(RangeLock):
    tool = "pdm"
    option = "pdm"

    def pools(self, ask: Ask) -> list[Pool]:
        """Return what the sources of a package offer, in order."""
        own: list[ProjectIndex | None] = [*self.own_indexes()]
        if not any(index is not None and index.default for index in own):
            own.append(None)  # PyPI, unless a source has its name
        named = [i for i in own if i is not None and _matches(ask.package, i.include)]
        rest = [i for i in own if i is None or not _matches(ask.package, i.exclude)]
        pools = [self.pool(ask, index) for index in (named or rest)]
        if any(
            s.key == "pdm.resolution.respect-source-order" and s.value == "true"
            for s in self.project.settings
        ):
            first = next((pool for pool in pools if pool.candidates or pool.hidden), None)
            return pools[:1] if first is None else [first]
        return pools

    def distinct(self, ask: Ask, kept: list[Candidate]) -> list[Candidate]:
        """Return nothing if the newest version comes from several places: the lock holds both."""
        newest = max(candidate.version for candidate in kept).public
        places = {c.place.url for c in kept if c.version.public == newest}
        if len(places) > 1:
            self.unclear[ask.package] = (
                f"the lock lists the files of several sources for {ask.package} {newest}"
            )
            return []
        return kept


def _matches(package: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(package, pattern) for pattern in patterns)
