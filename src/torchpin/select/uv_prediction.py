"""The lock that ``uv lock`` would make of a project, as far as it can be known.

``uv lock`` solves for all environments of ``requires-python`` × ``environments`` at once and stops
if any part of them has no solution.
"""

from __future__ import annotations

from itertools import pairwise

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchpin.documents.base import Document
from torchpin.evidence import INFERRED, PROOF, PUBLISHED
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.select.asks import Ask, pin_of
from torchpin.select.facts import Facts
from torchpin.select.grid import Grid, UnknownMarkerError
from torchpin.select.misses import Unclear, why_none
from torchpin.select.model import Install, Miss, Placed
from torchpin.select.pools import Pool
from torchpin.select.uv_lowering import Refused, project_of
from torchpin.select.uv_needs import Needs, needs_of
from torchpin.select.uv_resolution import Resolver
from torchpin.select.uv_settings import UvSettings, settings_of
from torchpin.select.uv_state import Resolution, Stopped, UnclearError
from torchpin.select.uv_versions import Offered, Tables

_DATES = "https://docs.astral.sh/uv/concepts/resolution/#reproducible-resolutions"


class Missing(NamedTuple):
    """A requirement for which ``uv lock`` stops: no version of its index serves it."""

    package: str
    placed: tuple[Placed, ...]
    """The declarations that ask for it in the fork."""
    miss: Miss


class Locked(NamedTuple):
    """What ``uv lock`` makes of a project."""

    needs: Needs | None
    """None if the project cannot be read at all."""
    resolutions: tuple[Resolution, ...]
    conflict: str | None
    """Why uv stops."""
    unclear: str
    """Why it cannot be known."""
    python: tuple[int, int] = (0, 0)
    environments: int = 0
    """Cells of the supported environments."""
    missing: tuple[Missing, ...] = ()
    """If it stops: the requirements that nothing serves; ``resolutions`` are the other forks."""


_Key = tuple[Document, tuple[Document, ...], tuple[object, ...], Facts, str, Document | None]
_memory: list[tuple[_Key, Locked]] = []
"""The last few projects, compared by identity: every target and extra asks for the same lock."""


def lock_of(install: Install, facts: Facts, default_python: str = "") -> Locked:
    """Return what ``uv lock`` makes of the project of an install (remembered).

    ``default_python`` stands in for a missing ``requires-python``, where uv takes the version that
    runs it.
    """
    places = (
        install.private,
        tuple((index.option, index.url, index.kind) for index in install.indexes),
    )
    key: _Key = (install.root, install.siblings, places, facts, default_python, install.settings)
    for known, locked in _memory:
        same = known[0] is key[0] and known[3] is key[3] and known[4] == key[4]
        same = same and known[5] is key[5]
        if same and known[2] == key[2] and list(map(id, known[1])) == list(map(id, key[1])):
            return locked
    locked = _lock(install, facts, default_python)
    _memory.insert(0, (key, locked))
    del _memory[4:]
    return locked


def _lock(install: Install, facts: Facts, default_python: str) -> Locked:
    needs: Needs | None = None
    python, supported = (0, 0), 0
    settings = settings_of(install)
    if settings.unclear:
        return Locked(None, (), None, settings.unclear)
    try:
        needs = needs_of(install, default_python)
        for unit in needs.units():
            needs.declared(unit)  # uv reads all of the file before it resolves anything
        python = needs.grid.bounds_of(needs.requires_python) if needs.requires_python else (
            0, len(needs.grid.points)
        )  # fmt: skip
        own = project_of(needs.root)
        environments = tuple((needs.grid.mask(text), text) for text in own.environments)
        for (one, text), (other, text2) in pairwise(environments):
            if one & other:
                raise Refused(f"two environments overlap: {text} and {text2}")
        inside = needs.grid.pythons(*python)
        for mask, text in environments:
            if not mask & inside:
                raise Refused(f"requires-python excludes the environment {text}")
            supported |= mask
        resolver = Resolver(
            needs,
            Tables(install, facts, needs.grid, python, settings),
            facts,
            python,
            environments,
            tuple(needs.grid.mask(text) for text in own.required_environments),
        )
        resolver.pinned = _pinned(needs)
        resolutions = resolver.solve()
    except Refused as refused:
        return Locked(None, (), str(refused), "", python, supported)
    except Stopped as stopped:
        doubt, missing = _doubt(stopped, install, facts, settings, needs.grid if needs else None)
        if doubt:
            return Locked(needs, (), None, doubt, python, supported)
        supported = supported or (needs.grid.all if needs is not None else 0)
        return Locked(needs, stopped.solved, stopped.reason, "", python, supported, missing)
    except UnclearError as unclear:
        return Locked(needs, (), None, str(unclear), python, supported)
    except UnknownMarkerError as unknown:
        text = f"it cannot be known where '{unknown}' holds"
        return Locked(None, (), None, text, python, supported)
    return Locked(needs, tuple(resolutions), None, "", python, supported or needs.grid.all)


def _pinned(needs: Needs) -> dict[str, SpecifierSet]:
    """Return exact pins of the project: they admit yanked versions."""
    found: dict[str, SpecifierSet] = {}
    for unit in needs.units():
        for need in needs.declared(unit):
            for one in needs.overrides.get(need.name, [need]):
                try:
                    parsed = SpecifierSet(one.specifier)
                except ValueError:
                    continue
                if pin_of(parsed) is not None:
                    found[need.name] = parsed
    return found


def _doubt(
    stopped: Stopped, install: Install, facts: Facts, settings: UvSettings, grid: Grid | None
) -> tuple[str, tuple[Missing, ...]]:
    """Return why it cannot be known that there is no solution; ``""`` if it can, and what is
    missing.

    Whatever is missing must be proved to be missing, not only unknown to the catalog.
    """
    state = stopped.state
    if state is None:
        return "", ()
    target = None
    missing: list[Missing] = []
    for name in sorted(stopped.packages):
        table = state.tables.get(name)
        if table is None:
            continue
        specifier = SpecifierSet(",".join(n.specifier for n in state.needs.get(name, ()) if n))
        inside = table.bits(str(specifier))
        if any(inside >> at & 1 and o.compatible for at, o in enumerate(table.versions)):
            if any(
                o.first.requires is None
                for at, o in enumerate(table.versions)
                if inside >> at & 1 and name != "torch"
            ):
                return f"what {name} requires of torch is not known", ()
            continue
        ask = Ask(
            name, None, None, specifier, f"{name}{specifier}", pin_of(specifier), frozenset(), None
        )
        if target is None:
            from torchpin.fleet.model import NodeGroup

            target = Target(NodeGroup("any", (), (), "linux-x86_64"), None)
        cutoff = settings.cutoff_of(name)
        if cutoff is not None:
            text = f"no {ask.text} was uploaded before {cutoff.text} (exclude-newer)"
            reason: Miss | Unclear = Miss("version", text, PUBLISHED, _DATES)
        else:
            reason = why_none(ask, table.pool, install, target, facts)
        if isinstance(reason, Unclear):
            offered = [o for at, o in enumerate(table.versions) if inside >> at & 1]
            other = _for_other_pythons(offered, table.pool, install)
            if other is None:
                return str(reason), ()
            reason = other
        if reason.evidence not in PROOF:
            return reason.message, ()
        asking = tuple(n.placed for n in state.needs.get(name, ()) if n and n.placed is not None)
        where = state.environment.told(grid) if grid is not None else state.environment.text
        told = f"uv lock stops{f' {where}' if where else ''}: {reason.message}"
        missing.append(Missing(name, asking, reason._replace(message=told)))
    return "", tuple(missing)


def _for_other_pythons(offered: list[Offered], pool: Pool, install: Install) -> Miss | None:
    """Return that no file of any version is tagged for a Python of the project, if that is why."""
    builds = [c.build for one in offered for c in one.candidates]
    if pool.hidden or pool.nightly or pool.broad or any(b.yanked for b in builds):
        return None
    project = install.root.project
    if not builds or project is None or not project.requires_python:
        return None
    best = max(builds, key=lambda b: Version(b.version))
    known = all(b.home == "pypi" and b.evidence in PROOF and b.pythons for b in builds)
    text = (
        f"{best.package} {best.full_version} has no wheel for the Pythons of the project "
        f"({project.requires_python})"
    )
    return Miss("python", text, best.evidence if known else INFERRED, best.source)
