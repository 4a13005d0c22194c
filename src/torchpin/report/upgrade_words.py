"""The sentences that the reports of ``upgrade`` share."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from torchpin.catalog.model import Build
from torchpin.evidence import weakest
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.report import upgrade_model as model
from torchpin.report.model import plural
from torchpin.report.upgrade_model import Break, Row, Upgrade
from torchpin.resolve.upgrade import Reach, Standing

STATUS = {
    "runs": "runs",
    "runs-via-ptx": "runs, compiled at start (PTX)",
    "partly": "runs partly",
    "fails": "does not run",
    "unknown": "not known",
}
REFRESH = "`torchpin catalog refresh` reads what is published now"
DECLARE = "write torchpin.toml (`torchpin init`), or use --gpu, --driver and --python"


class Folded(NamedTuple):
    """Targets of which the same is to be said."""

    group: str
    """The names of the groups."""
    gpus: tuple[str, ...]
    pythons: tuple[str, ...]
    row: Row
    """The first of them."""
    today: tuple[str, ...]
    """What they have today, with the Pythons where not all have it."""


def folded(rows: Iterable[Row]) -> tuple[Folded, ...]:
    """Return rows with what is the same told once: the Pythons of a group together, then groups.

    The machines of CI files often have one name and differ in what they install today.
    """
    groups: dict[object, list[Row]] = {}
    for row in rows:
        group = row.standing.target.group
        groups.setdefault((group.name, group.gpus, _said(row)), []).append(row)
    joined: dict[object, list[Folded]] = {}
    for some in groups.values():
        group = some[0].standing.target.group
        gpus = tuple(dict.fromkeys(gpu.name for gpu in group.gpus)) or ("CPU",)
        pythons = _pythons(some)
        one = Folded(group.name, gpus, pythons, some[0], _today(some, pythons))
        joined.setdefault((gpus, pythons, one.today, _said(one.row)), []).append(one)
    return tuple(
        same[0]._replace(group=", ".join(dict.fromkeys(one.group for one in same)))
        for same in joined.values()
    )


def _said(row: Row) -> tuple[object, ...]:
    """Return what reports say of a row, but for what it has today."""
    reach = row.reach
    why = reach.blocked if reach is not None else None
    ends = tuple((one.text, one.evidence) for one in (*row.standing.reasons, why) if one)
    far = (reach_text(reach), reach.following) if reach is not None else None
    return standing_text(row.standing), ends, far, row.open_index


def index_text(row: Row) -> str:
    """Return that it is not known whether the index of the files has the release, if so."""
    if row.open_index is None or row.standing.build is None:
        return ""
    return f"from {row.open_index}, the index of its files: not known"


def _pythons(rows: Iterable[Row]) -> tuple[str, ...]:
    pythons = {row.standing.target.python for row in rows}
    return tuple(str(one) for one in sorted(one for one in pythons if one is not None))


def _today(rows: Iterable[Row], pythons: tuple[str, ...]) -> tuple[str, ...]:
    having: dict[Build, list[Row]] = {}
    for row in rows:
        for build in (*filter(None, (row.today,)), *row.others):
            having.setdefault(build, []).append(row)
    out = []
    for build, some in having.items():
        own = _pythons(some)
        where = f" (Python {' '.join(own)})" if own != pythons else ""
        out.append(f"{build.title} [{build.evidence}]{where}")
    return tuple(out)


def changes(found: Upgrade) -> int:
    """Return how many places have to change beside the pins of the family."""
    return len({(one.path, one.line, one.package, one.remedy) for one in found.changes})


def verdict(found: Upgrade) -> str:
    """Return the verdict in a few words."""
    number = changes(found)
    after = f"safe after {plural(number, 'change')}" if number else "safe now"
    moves = len({move for unit in found.units for move in unit.moves})
    if not number and moves:
        after += f" ({plural(moves, 'pin')} {'moves' if moves == 1 else 'move'})"
    if found.limited:
        after += f", with limits on {', '.join(found.limited)}"
    if not found.goal.known:
        return f"not known: {found.doubts[0].source}; {REFRESH}"
    if found.verdict == model.BLOCKED:
        return _blocked(found, after)
    if found.declared and (found.unknown or found.open_files):
        return "; ".join(_doubtful(found, after, ()))
    if not found.declared:
        told = f"; in the files {after}" if found.asked_for else ""
        return f"not known for your machines: no fleet is declared{told}"
    return after


def _blocked(found: Upgrade, after: str) -> str:
    every = [row.standing.target for row in found.rows]
    bad = [row.standing.target for row in found.rows if row.standing.status == "fails"]
    pins = [one for one in found.breaks if one.kind == "pin" and one.blocking]
    names = ", ".join(dict.fromkeys(one.package for one in pins if one.package))
    if not every:
        return f"not with {names}"
    groups = {name for one in pins for name in one.groups}
    held = [target for target in every if target.group.name in groups and target not in bad]
    told = [f"not for {target_names(bad, every)}"] if bad else []
    if held:
        where = f" on {target_names(held, every)}" if bad or len(held) < len(every) else ""
        told.append(f"not with {names}{where}")
    return "; ".join([*told, *_doubtful(found, after, (*bad, *held))])


def _doubtful(found: Upgrade, after: str, told: Collection[Target]) -> list[str]:
    """Say it of the targets that are not told of yet."""
    every = [row.standing.target for row in found.rows]
    left = [row.standing for row in found.rows if row.standing.target not in told]
    files_open = [row.standing for row in found.rows if row.open_index is not None]
    unknown = [one for one in left if not one.proved]
    nothing = [one.target for one in unknown if any(r.status == "fails" for r in one.reasons)]
    rest = [one.target for one in left if one.proved and one not in files_open]
    open_ = [one.target for one in unknown if one.target not in nothing]
    words = []
    if nothing:
        words.append(f"nothing that is known runs on {target_names(nothing, every)}")
    if open_:
        words.append(f"not known for {target_names(open_, every)}")
    if found.open_files:
        words.append(f"not known for {', '.join(dict.fromkeys(found.open_files))}")
    if rest and (told or words):
        after = f"for {target_names(rest, every)} {after}"
    return [*words, after] if rest else words


def evidence_of(build: Build) -> str:
    """Return how it is known that a build exists and what it was compiled for."""
    return weakest(build.evidence, build.kernels.evidence if build.kernels else build.evidence)


def standing_text(standing: Standing) -> str:
    """Return what a release is on a target."""
    word = STATUS[standing.status]
    build = standing.build
    if any(reason.status == "fails" for reason in standing.reasons) and build is None:
        word += "" if standing.status == "fails" else " (nothing that is known runs)"
    return f"{word}: {build.title} [{evidence_of(build)}]" if build is not None else word


def reach_text(reach: Reach) -> str:
    """Return the last safe release of a target."""
    if reach.last is None:
        return "no release is proved to run"
    return f"last safe: {reach.last.title} [{evidence_of(reach.last)}]"


def place(one: Break) -> str:
    """Return where a break is: ``train.py:3``, a group, or ``""``."""
    if one.path is not None:
        return f"{one.path}:{one.line}" if one.line is not None else one.path
    pythons = f" (Python {', '.join(one.pythons)})" if one.pythons else ""
    return f"{', '.join(one.groups)}{pythons}"


def target_names(targets: Iterable[Target], every: Iterable[Target] = ()) -> str:
    """Return the groups of targets; with ``every``, a group's Pythons where not all are meant."""
    pythons: dict[str, dict[str, None]] = {}
    for target in targets:
        name = target.group.name
        pythons.setdefault(name, {})[str(target.python)] = None
    whole: dict[str, set[str]] = {}
    for target in every:
        whole.setdefault(target.group.name, set()).add(str(target.python))
    return ", ".join(
        name if len(some) >= len(whole.get(name, ())) else f"{name} (Python {' '.join(some)})"
        for name, some in pythons.items()
    )


def fleet_text(found: Upgrade) -> tuple[str, ...]:
    """Return how far the whole fleet can go: with a build for each group, and with one set."""
    if found.last_for_all is None:
        return ("no release is proved to run on every group",)
    text = f"torch {found.last_for_all} is the last that runs on every group"
    plan = found.one_set
    groups = {row.standing.target.group.name for row in found.rows}
    if len(groups) < 2 and plan is not None and dict(plan.versions)["torch"] == found.last_for_all:
        return (text,)
    if plan is None:
        return (f"{text}, each with a build of its own; no single set serves all",)
    builds = dict.fromkeys(build.place for _, name, build in plan.builds if name == "torch")
    return (text, f"one set for all: torch {' and '.join(builds)}")
