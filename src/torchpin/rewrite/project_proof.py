"""What a project's manifest installs on the fleet, its lock aside: before an edit and after it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from torchpin.catalog.model import FAMILY
from torchpin.documents.base import Document
from torchpin.fleet.model import Target
from torchpin.judge.alike import SharedJudge
from torchpin.judge.companions import loaded
from torchpin.judge.model import FAILS, UNKNOWN
from torchpin.judge.verdict import judge_companion
from torchpin.rules.context import Context, Way
from torchpin.select.alike import select_all
from torchpin.select.model import Install, Placed, SelectedSet
from torchpin.select.projects import project_installs


class Proof:
    """Selects from manifests, and judges what comes out."""

    def __init__(self, ways: tuple[Way, ...], context: Context) -> None:
        self.ways = ways
        self.context = context
        self.siblings = ways[0].install.siblings
        self.client = ways[0].install.client
        self.private = dict(ways[0].private)
        self.judge = SharedJudge(context.drivers)
        self.follow: frozenset[str] = frozenset()
        """Packages beside the family that have to fit torch, too."""
        self.bound = frozenset().union(*(way.bound for way in ways))

    def targets(self, name: str | None = None) -> tuple[Target, ...]:
        """Return the targets of the way of a name; of all ways if there is no such way."""
        ways = [way for way in self.ways if way.install.name == name] or list(self.ways)
        seen: dict[Target, None] = {}
        for way in ways:
            seen.update(dict.fromkeys(one.target for one in way.sets))
        return tuple(seen)

    def selected(
        self, document: Document, enabled: Mapping[str, str], lead: Document | None = None
    ) -> list[SelectedSet]:
        """Return what every target gets from a manifest.

        Args:
            document: the manifest as it would be.
            enabled: group → the new extra that it installs.
            lead: the root of its workspace as it would be; None: as it is.
        """
        found: list[SelectedSet] = []
        for install in self.installs(document, enabled, lead):
            new = set(install.extras) & set(enabled.values())
            targets = []
            for target in self.targets(install.name):
                extra = enabled.get(target.group.name)
                if (extra is not None and extra not in install.extras) or (extra is None and new):
                    continue
                targets.append(target)
            found += select_all(install, targets, self.context.catalog)
        return found

    def installs(
        self, document: Document, enabled: Mapping[str, str], lead: Document | None = None
    ) -> list[Install]:
        """Return the ways in of a manifest that the fleet uses, and those of the new extras."""
        siblings = tuple(
            lead if lead is not None and one.path == lead.path else one for one in self.siblings
        )
        installs = project_installs(
            document,
            lock=None,
            siblings=siblings,
            client=self.client,
            private=self.private,
            settings=self.ways[0].install.settings,
        )
        by_name = {install.name: install for install in installs}
        found: list[Install] = []
        for way in self.ways:
            if way.install.name in by_name:
                found.append(by_name[way.install.name])
            elif way.install.extras or way.install.groups:  # several at once, as a group says
                found.append(again(way.install, document, by_name[None]))
        extras = set(enabled.values())
        found += [one for one in installs if extras & set(one.extras) and one not in found]
        return found

    # -- judging

    def runs(self, chosen: SelectedSet, packages: Collection[str] | None = None) -> bool:
        """True if the family of a set, and what is to follow it, installs and runs together.

        ``packages``: those to look at, if not these.
        """
        looked = (*FAMILY, *self.follow) if packages is None else packages
        torch = next((one.build for one in chosen.selections if one.package == "torch"), None)
        if torch is None or chosen.conflict is not None:
            return False
        for one in chosen.selections:
            if one.status == "skipped" or one.package not in looked:
                continue
            if one.build is None and one.package not in FAMILY and one.status != "none":
                continue  # what comes is not known
            if one.build is None:
                return False
            working = loaded(one.build, torch) if one.package not in FAMILY else one.build
            status = self.judge(working, chosen.target).status
            if status == FAILS or (status == UNKNOWN and one.package == "torch"):
                return False
            if one.package != "torch" and any(
                reason.status == FAILS for reason in judge_companion(one.build, torch)
            ):
                return False
        return True

    def served(self, sets: Iterable[SelectedSet]) -> dict[str, bool]:
        """Return which groups are served: by one of the ways in, or by all that they name."""
        good: dict[str, bool] = {}
        for chosen in sets:
            name = chosen.target.group.name
            runs = self.runs(chosen)
            bound = name in self.bound
            good[name] = (good.get(name, True) and runs) if bound else good.get(name, False) or runs
        return good

    def holds(self, sets: list[SelectedSet]) -> bool:
        """True if no set conflicts and every group is served."""
        good = self.served(sets)
        return bool(good) and all(good.values()) and all(one.conflict is None for one in sets)

    def no_worse(self, before: list[SelectedSet], after: list[SelectedSet]) -> bool:
        """True if everything that ran before runs, and nothing conflicts that did not."""
        ran = {key_of(one) for one in before if self.runs(one)}
        clean = {key_of(one) for one in before if one.conflict is None}
        return all(
            (self.runs(one) or key_of(one) not in ran)
            and (one.conflict is None or key_of(one) not in clean)
            for one in after
        )


def again(install: Install, document: Document, plain: Install) -> Install:
    """Return an install of several extras and groups, taken from a new manifest."""
    scopes = {"", *(f"extra:{e}" for e in install.extras), *(f"group:{g}" for g in install.groups)}
    return install._replace(
        root=document,
        documents=(document, *plain.siblings),
        siblings=plain.siblings,
        requirements=tuple(
            Placed(document, one) for one in document.declarations if one.scope in scopes
        ),
        constraints=plain.constraints,
        indexes=plain.indexes,
        lock=None,
    )


def key_of(chosen: SelectedSet) -> tuple[str | None, Target]:
    """Return what tells a set from the others of a project."""
    return chosen.install.name, chosen.target


def same_torch(before: list[SelectedSet], after: list[SelectedSet]) -> bool:
    """True if every target gets the torch version that it got before, or got none."""

    def versions(sets: list[SelectedSet]) -> dict[tuple[str | None, Target], str]:
        return {
            key_of(chosen): one.build.version
            for chosen in sets
            for one in chosen.selections
            if one.package == "torch" and one.build is not None
        }

    old = versions(before)
    return all(old.get(key, version) == version for key, version in versions(after).items())


def sets_text(
    sets: Iterable[SelectedSet], runs: Mapping[str, SelectedSet], told: Collection[str] = ()
) -> str:
    """Return what each group gets, for people: public versions, and where from.

    ``told``: packages beside the family that are named, too.
    """
    parts: dict[str, list[str]] = {}
    for chosen in sets:
        name = chosen.target.group.name
        if runs.get(name) is not chosen:
            continue
        pins: dict[str, list[str]] = {}
        for one in chosen.selections:
            if one.build is not None and one.package in (*FAMILY, *told):
                home = "PyPI" if one.build.home == "pypi" else f"channel {one.build.channel}"
                pins.setdefault(home, []).append(f"{one.package} {one.build.version}")
        text = " and ".join(f"{' '.join(sorted(pin, key=rank))} ({h})" for h, pin in pins.items())
        parts.setdefault(text, []).append(name)
    return "; ".join(f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in parts.items())


def rank(pin: str) -> int:
    """Return the place of a package in the order of the family."""
    package = pin.partition(" ")[0]
    return FAMILY.index(package) if package in FAMILY else len(FAMILY)
