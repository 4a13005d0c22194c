"""What a project of Poetry installs, by the lock that ``poetry lock`` would make of it.

Measured with Poetry 2.5.1: a package comes from the source that it names, else from all primary
sources together (the highest version wins, a label sorts above none, the first source wins a tie),
from the supplemental ones only where no primary one has it. A version counts only if its
``Requires-Python`` admits every Python of the project: with ``python = ">=3.11"`` no torchvision
that says ``!=3.14.1`` is taken. Platforms do not count; a wheel that is missing is noticed when
the lock is installed. There is one version of a package, unless markers divide its declarations.
"""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from torchpin.documents.manifest import index_line
from torchpin.documents.project import Project, ProjectIndex
from torchpin.fleet.model import Target
from torchpin.select.asks import Ask, gather, implied
from torchpin.select.channels import index_kind
from torchpin.select.environments import marker_holds
from torchpin.select.facts import Facts
from torchpin.select.joint import Accepts, choose
from torchpin.select.misses import Unclear, why_none
from torchpin.select.model import Install, Miss, PlacedIndex, SelectedSet, Selection
from torchpin.select.pools import Candidate, Pool, fitting, index_text
from torchpin.select.uv import pool_of

_MINORS = range(8, 20)
_PRIMARY = ("primary", "default")


def select_poetry_project(install: Install, target: Target, catalog: Facts) -> SelectedSet:
    """Return what ``poetry install`` installs on ``target`` after ``poetry lock``."""
    return RangeLock(install, target, catalog).selected()


class RangeLock:
    """The selections of a lock that holds one version for all Pythons of the project."""

    tool = "poetry"
    option = "poetry"
    """``ProjectIndex.tool`` of the indexes that count."""

    def __init__(self, install: Install, target: Target, facts: Facts) -> None:
        assert install.root.project is not None
        self.install = install
        self.target = target
        self.facts = facts
        self.project: Project = install.root.project
        self.misses: dict[str, Miss] = {}
        self.unclear: dict[str, str] = {}

    def selected(self) -> SelectedSet:
        """Return the selections, an implied torch last."""
        asks = gather(self.install, self.target, self.facts)
        lists = {n: found for n, a in asks.items() if not a.skipped and (found := self._list(a))}
        torch = asks.get("torch")
        if torch is None or torch.skipped:
            by = next((name for name, found in lists.items() if found[0].requires), "")
            if by:
                asks.pop("torch", None)
                asks["torch"] = implied("torch", by, self.install, self.target)
                found = self._list(asks["torch"])
                if found:
                    lists["torch"] = found
        choice = choose(lists, asks, Accepts(self.facts), (), "pip")
        out = []
        for name, ask in asks.items():
            chosen = choice.chosen.get(name) if name in lists else None
            out.append(self._one(ask, chosen, choice.conflict))
        return SelectedSet(self.install, self.target, tuple(out), choice.conflict)

    # -- candidates

    def _list(self, ask: Ask) -> list[Candidate]:
        """Return the versions that Poetry may lock, highest first, one candidate each."""
        if ask.unclear or ask.url is not None:
            self.unclear[ask.package] = ask.unclear or "it comes from a URL"
            return []
        pools = self.pools(ask)
        found: list[Candidate] = []
        hidden = nightly = ""
        for rank, pool in enumerate(pools):
            hidden = hidden or pool.hidden or pool.broad
            nightly = nightly or pool.nightly
            found += [c._replace(rank=-rank) for c in pool.candidates]
        merged = Pool(
            tuple(found),
            hidden,
            tuple(dict.fromkeys(c for pool in pools for c in pool.channels)),
            any(pool.pypi for pool in pools),
            nightly,
        )
        admitted = [
            c
            for c in found
            if ask.specifier.contains(c.version, prereleases=True) and self._python_fits(c, ask)
        ]
        finals = [c for c in admitted if not c.version.is_prerelease]
        kept = [c for c in finals or admitted if not c.build.yanked or ask.pin is not None]
        if hidden or nightly:
            text = hidden or f"{nightly} holds development releases"
            self.unclear[ask.package] = text
            return []
        if not kept or ask.invalid:
            reason = why_none(ask, merged, self.install, self.target, self.facts)
            if isinstance(reason, Unclear):
                self.unclear[ask.package] = str(reason)
            else:
                self.misses[ask.package] = reason
            return []
        kept = self.distinct(ask, kept)
        if not kept:
            return []
        best: dict[tuple[Version, int], list[Candidate]] = {}
        for candidate in kept:
            best.setdefault((candidate.version, candidate.rank), []).append(candidate)
        return [
            (fitting(best[key], self.target) or best[key])[0] for key in sorted(best, reverse=True)
        ]

    def distinct(self, ask: Ask, kept: list[Candidate]) -> list[Candidate]:
        """Return the candidates between which the lock tells; all of them for Poetry."""
        return kept

    def pools(self, ask: Ask) -> list[Pool]:
        """Return what the sources of a package offer, in order."""
        named = {
            source.value
            for source in self.project.sources
            if source.package == ask.package
            and marker_holds(source.marker, self.target) is not False
            and source.group in (None, *self.install.groups)
        }
        own = self.own_indexes()
        if named:
            return [self.pool(ask, index) for index in own if index.name in named]
        primary = [index for index in own if index.priority in _PRIMARY]
        pools = [self.pool(ask, index) for index in primary] or [self.pool(ask, None)]
        if any(pool.candidates or pool.hidden for pool in pools):
            return pools
        rest = [index for index in own if index.priority in ("supplemental", "secondary")]
        return pools + [self.pool(ask, index) for index in rest]

    def own_indexes(self) -> list[ProjectIndex]:
        """Return the indexes of the file that its tool reads."""
        return [index for index in self.project.indexes if index.tool == self.option]

    def pool(self, ask: Ask, index: ProjectIndex | None) -> Pool:
        """Return what one source offers of a package; None is PyPI."""
        if index is None or not index.url:
            place = PlacedIndex(None, None, "", "", index_kind(""))
        else:
            root, private = self.install.root, dict(self.install.private)
            kind = index_kind(index.url, private, option=index.option)
            line = index_line(root.text, index)
            place = PlacedIndex(root, line, "--index-url", index.url, kind)
        return pool_of(ask, self.install._replace(indexes=(place,)), self.facts)

    def _python_fits(self, candidate: Candidate, ask: Ask) -> bool:
        """Return whether a version admits every Python of the project that its markers leave."""
        wanted = candidate.build.requires_python
        if not wanted:
            return True
        try:
            admits = SpecifierSet(wanted)
            own = SpecifierSet(self.project.requires_python or "")
        except InvalidSpecifier:
            return True
        texts = {f"3.{minor}.{patch}" for minor in _MINORS for patch in (0, 1, 99)} | {"4.0.0"}
        texts |= {one.version for one in admits if "*" not in one.version}
        marker = ask.placed.declaration.marker if ask.placed is not None else None
        return all(
            admits.contains(text, prereleases=True)
            for text in texts
            if own.contains(text, prereleases=True) and self._holds_on(marker, text)
        )

    def _holds_on(self, marker: str | None, python: str) -> bool:
        if marker is None or "python" not in marker:
            return True
        from packaging.markers import InvalidMarker, Marker

        from torchpin.select.environments import marker_environment

        values = marker_environment(self.target)
        release = (*Version(python).release, 0, 0)
        values |= {
            "python_version": f"{release[0]}.{release[1]}",
            "python_full_version": f"{release[0]}.{release[1]}.{release[2]}",
        }
        try:
            return Marker(marker).evaluate(values)
        except InvalidMarker:
            return True

    # -- selections

    def _one(self, ask: Ask, chosen: Candidate | None, conflict: str | None) -> Selection:
        name, target = ask.package, self.target
        if ask.skipped:
            text = f"no declaration of {name} applies to {target.text}"
            return self._plain(ask, "skipped", text)
        if name in self.unclear:
            return self._plain(ask, "unknown", self.unclear[name])
        if chosen is None:
            miss = self.misses[name]
            return self._plain(ask, "none", miss.message, miss)
        version, place = chosen.build.full_version, index_text(chosen.place)
        if conflict is not None:
            return self._plain(ask, "unknown", f"{self.tool} stops: {conflict}")
        told = f"{self.tool} locks {name} {version} from {place}"
        if not fitting([chosen], target):
            pinned = ask._replace(
                specifier=SpecifierSet(f"=={version}"),
                text=f"{name}=={version}",
                pin=(chosen.build.version, chosen.build.label),
            )
            pool = Pool((chosen,), "", (chosen.build.channel,), chosen.build.home == "pypi")
            reason = why_none(pinned, pool, self.install, target, self.facts)
            if isinstance(reason, Unclear):
                return self._plain(ask, "unknown", f"{told}, and {reason}")
            told = f"{told}, and {reason.message}"
            return self._plain(ask, "none", told, reason._replace(message=told))
        return self._plain(ask, "selected", told)._replace(
            build=chosen.build, chosen_from=chosen.place, inferred=chosen.inferred
        )

    def _plain(self, ask: Ask, status: str, because: str, miss: Miss | None = None) -> Selection:
        return Selection(
            package=ask.package,
            placed=ask.placed,
            implied_by=ask.implied_by,
            target=self.target,
            status=status,
            build=None,
            chosen_from=None,
            miss=miss,
            because=because,
            exact=ask.exact,
        )
