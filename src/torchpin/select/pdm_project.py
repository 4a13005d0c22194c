"""What a project of PDM installs, by the lock that ``pdm lock`` would make of it.

Measured with PDM 2.29.4: there is one version of a package for all groups, the extras that are
locked (``-G``) and all platforms; a marker only says where it is installed. A package that the
``include_packages`` of a source name comes from such sources alone, any other from all that do not
exclude it; with ``respect-source-order`` the order of the sources counts before the version. The
lock names public versions: it lists the files of that version of every source of the package
(2.13.0 with those of PyPI and of ``+cu126``), and an installation takes the highest of them that
fits its platform: the labelled one where there is one. An override is locked whatever others ask
for, and what ``excludes`` names is locked for nobody's sake and never installed.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchpin.documents.project import ProjectIndex
from torchpin.evidence import MEASURED
from torchpin.fleet.model import Python, Target
from torchpin.select.asks import Ask, combine
from torchpin.select.environments import marker_holds, tag_admits
from torchpin.select.facts import Facts
from torchpin.select.joint import Accepts, Choice
from torchpin.select.lock_walk import pdm_excludes
from torchpin.select.model import Install, Miss, Placed, SelectedSet
from torchpin.select.pdm_search import Led, choose, narrowness
from torchpin.select.pools import Candidate, Pool
from torchpin.select.whole_lock import Solved, WholeLock, evaluate, named

PDM = "https://pdm-project.org/latest/usage/config/"
_PLATFORMS = ("linux-x86_64", "linux-aarch64", "macos-arm64", "macos-x86_64", "windows-x86_64")


def select_pdm_project(install: Install, target: Target, catalog: Facts) -> SelectedSet:
    """Return what ``pdm install`` installs on ``target`` after ``pdm lock``."""
    return _PdmLock(install, target, catalog).selected()


class _PdmLock(WholeLock):
    tool = "pdm"

    def __init__(self, install: Install, target: Target, facts: Facts) -> None:
        super().__init__(install, target, facts)
        settings = {one.key: one.value for one in self.project.settings}
        self.ordered = settings.get("pdm.resolution.respect-source-order") == "true"
        self.excludes = pdm_excludes(self.project)
        self.overrides = {
            one.name: Placed(install.root, one)
            for one in install.root.declarations
            if one.scope == "override"
        }
        releases = [Version(text).release for text in self.pythons()]
        self.minors = {Python(release[0], release[1]) for release in releases}
        extras = {f"extra:{extra}" for extra in install.extras}
        self.wanted = named(
            placed
            for placed in self.whole()
            if self._can_hold(placed.declaration.marker)
            and (not placed.declaration.scope.startswith("extra:")
                 or placed.declaration.scope in extras)
        )  # fmt: skip

    def _can_hold(self, marker: str | None) -> bool:
        """Return whether a marker holds anywhere in the project: PDM drops what does not."""
        if not marker:
            return True
        return any(
            evaluate(marker, platform, python) is not False
            for python in self.pythons()
            for platform in _PLATFORMS
        )

    # -- the lock

    def solve(self) -> Solved:
        """Return the one lock for all."""
        asks: dict[str, Ask] = {}
        markers: dict[str, tuple[str | None, ...]] = {}
        for name, placed in self.wanted.items():
            asks[name] = self.overridden(name, self.asked(name, placed))
            first = min(placed, key=lambda one: narrowness(one.declaration.specifier))
            markers[name] = (first.declaration.marker,)
        lists: dict[str, list[Candidate]] = {}
        pools: dict[str, Pool] = {}
        misses: dict[str, Miss] = {}
        unclear: dict[str, str] = {}
        roots = frozenset(asks)
        for name in (*asks, *([] if "torch" in asks else ["torch"])):
            if name not in asks:
                if "torch" in self.excludes or not any(
                    c.requires for found in lists.values() for c in found
                ):
                    break
                asks[name] = self.overridden(name, self.implied_torch(next(iter(lists))))
            ask = asks[name]
            if ask.unclear or ask.url is not None:
                unclear[name] = ask.unclear or "it comes from a URL"
                continue
            pools[name] = pool = self.merged(ask)
            if not pool.pypi and not pool.channels and not pool.hidden and not pool.nightly:
                text = f"no index is left to take {name} from"
                misses[name] = Miss("no-index", text, MEASURED, PDM)
                continue
            if pool.hidden or pool.nightly:
                unclear[name] = pool.hidden or f"{pool.nightly} holds development releases"
                continue
            kept = [] if ask.invalid else self.admitted(ask, pool, markers.get(name, (None,)))
            if name in self.overrides and not kept:  # then Requires-Python does not count either
                kept = self.admitted(ask, pool, ())
            if kept:
                lists[name] = self._in_order(kept)
                continue
            reason = self.why_not(ask, pool, markers.get(name, (None,)))
            if isinstance(reason, str):
                unclear[name] = reason
            elif name in roots or name in self.overrides:
                misses[name] = reason
        if unclear or misses:
            return Solved(asks, lists, pools, Choice({}, None), misses, self._spread(unclear))
        apart = "torch" in self.excludes
        led = self._led(asks, lists, pools, markers)
        if "torch" not in lists and (found := next(filter(None, led.by.values()), None)):
            lists["torch"] = list(found)
        choice = choose(lists, asks, self._accepts(), roots, apart, led)
        return Solved(asks, lists, pools, choice, misses, unclear)

    def _led(
        self,
        asks: dict[str, Ask],
        lists: dict[str, list[Candidate]],
        pools: dict[str, Pool],
        markers: dict[str, tuple[str | None, ...]],
    ) -> Led:
        """Return the versions of torch that count where a companion's requirement leads: those for
        all Pythons of the marker under which the project asks for the companion."""
        own = min(
            (one.declaration.specifier for one in self.wanted.get("torch", ())),
            key=narrowness,
            default="",
        )
        if "torch" not in pools or "torch" in self.overrides:
            return Led(own, {})
        by = {
            name: self._in_order(self.admitted(asks["torch"], pools["torch"], markers[name]))
            for name in lists
            if name != "torch"
        }
        return Led(own, by)

    def _spread(self, unclear: dict[str, str]) -> dict[str, str]:
        """Return what is not known of the other packages where one is not."""
        why = next(iter(unclear.items()), None)
        if why is None:
            return unclear
        text = f"{why[0]} is locked together with it: {why[1]}"
        return {**dict.fromkeys(self.wanted, text), **unclear}

    def overridden(self, name: str, ask: Ask) -> Ask:
        """Return an ask as an override leaves it."""
        placed = self.overrides.get(name)
        if placed is None:
            return ask
        fixed = combine(name, [placed], (), self.target)
        if not str(fixed.specifier) and fixed.url is None:
            fixed = fixed._replace(unclear="PDM reads no override without a version (*)")
        return fixed._replace(placed=ask.placed, implied_by=ask.implied_by, skipped=ask.skipped)

    def _accepts(self) -> Accepts:
        return _Overridden(self.facts) if "torch" in self.overrides else Accepts(self.facts)

    def merged(self, ask: Ask) -> Pool:
        """Return what the sources of a package offer together."""
        pools = self.pools(ask)
        found: list[Candidate] = []
        for rank, pool in enumerate(pools):
            found += [c._replace(rank=-rank) for c in pool.candidates]
        return Pool(
            tuple(filter(self._tagged, found)),
            next((text for pool in pools if (text := pool.hidden or pool.broad)), ""),
            tuple(dict.fromkeys(c for pool in pools for c in pool.channels)),
            any(pool.pypi for pool in pools),
            next((pool.nightly for pool in pools if pool.nightly), ""),
        )

    def pools(self, ask: Ask) -> list[Pool]:
        """Return what each source of a package offers, in order."""
        own: list[ProjectIndex | None] = [*self.own_indexes()]
        if not any(index is not None and index.default for index in own):
            own.insert(0, None)  # PyPI, unless a source has its name
        included = [i for i in own if i is not None and _matches(ask.package, i.include)]
        rest = [i for i in own if i is None or not _matches(ask.package, i.exclude)]
        return [self.pool(ask, index) for index in (included or rest)]

    def _tagged(self, candidate: Candidate) -> bool:
        """Return whether a wheel is tagged for a Python of the project: PDM sees no other."""
        tags = candidate.build.pythons
        return not tags or any(tag_admits(tag, one) for tag in tags for one in self.minors)

    def _in_order(self, kept: list[Candidate]) -> list[Candidate]:
        """Return one candidate a version, in the order in which PDM tries them."""
        if not self.ordered:
            return _once(self.versions(kept))
        ranks = sorted({c.rank for c in kept}, reverse=True)
        return _once([c for r in ranks for c in self.versions([k for k in kept if k.rank == r])])

    # -- the installation

    def reached(self, solved: Solved) -> dict[str, Ask]:
        """Return what the groups and markers of the lock install."""
        asks = self.gathered()
        merged = dict(asks)
        for name in self.wanted:
            found = self._installed(name)
            ask = asks.get(name)
            if found is True and (ask is None or ask.skipped):
                merged[name] = solved.asks[name]._replace(unclear="")
            elif found is not True and ask is not None:
                unclear = "" if found is False else "it is not known whether its marker holds"
                merged[name] = ask._replace(skipped=found is False, unclear=unclear)
        torch = merged.get("torch")
        if torch is None or torch.skipped:
            for name, ask in merged.items():
                chosen = solved.choice.chosen.get(name)
                needs = chosen is not None and chosen.requires != ""
                if not ask.skipped and needs and "torch" in solved.choice.chosen:
                    merged.pop("torch", None)
                    merged["torch"] = self.implied_torch(name)
                    break
        for name in self.excludes & set(merged):
            merged[name] = merged[name]._replace(skipped=True)
        return merged

    def _installed(self, name: str) -> bool | None:
        """Return whether the lock installs a package that the project asks for.

        Its groups and its markers are merged each, so that the marker of one group serves another.
        """
        enabled = {"", *(f"extra:{e}" for e in self.install.extras)}
        enabled |= {f"group:{g}" for g in self.install.groups}
        placed = self.wanted[name]
        if not any(p.declaration.scope in enabled for p in placed):
            return False
        answers = {marker_holds(p.declaration.marker, self.target) for p in placed}
        return True if True in answers else None if None in answers else False

    def files(self, package: str, chosen: Candidate, solved: Solved) -> list[Candidate]:
        """Return every file of the locked public version."""
        pin = f"=={chosen.version.public}"
        single = next(iter(self.wanted.get(package, [])), None)
        label = solved.asks[package].pin
        if single is not None and label is not None and label[1]:
            pin = f"=={chosen.version}"
        specifier = SpecifierSet(pin)
        return [
            c
            for c in solved.pools[package].candidates
            if specifier.contains(c.version, prereleases=True)
            and (not self.ordered or c.rank == chosen.rank)
        ]


class _Overridden(Accepts):
    """Every companion accepts the torch of an override."""

    def __call__(self, companion: Candidate, torch: Candidate) -> bool:
        """Return True."""
        return True


def _once(found: list[Candidate]) -> list[Candidate]:
    """Return the first candidate of each version."""
    best: dict[str, Candidate] = {}
    for candidate in found:
        best.setdefault(str(candidate.version), candidate)
    return list(best.values())


def _matches(package: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(package, pattern) for pattern in patterns)
