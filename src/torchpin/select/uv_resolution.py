"""What ``uv lock`` puts into each fork, for the packages that the catalog knows.

A port of the outer loop of uv's resolver (``ResolverState::solve``, ``choose_version_registry``,
``fork_version_registry``, ``CandidateSelector``): forks are solved last in, first out, what one
fork chose is preferred in the next, a version whose wheels need a higher Python divides the fork,
and so does a labelled version whose bare twin serves other platforms. Packages that the catalog
does not know are taken to be satisfiable; their markers fork all the same.
"""

from __future__ import annotations

from packaging.specifiers import SpecifierSet

from torchpin.select.asks import pin_of, watched
from torchpin.select.facts import Facts
from torchpin.select.forks import Environment, Fork, Need, fork
from torchpin.select.joint import Accepts
from torchpin.select.model import PlacedIndex
from torchpin.select.pubgrub import NoSolutionError, Solver, inner_of, name_of, proxy_of
from torchpin.select.uv_demands import demanded, required
from torchpin.select.uv_lowering import Unit
from torchpin.select.uv_needs import Needs
from torchpin.select.uv_platforms import Parts, Platforms
from torchpin.select.uv_settings import DIRECT, LOWEST
from torchpin.select.uv_state import Preference, Resolution, State, Stopped, UnclearError
from torchpin.select.uv_versions import Table, Tables

_FORKS = 400
"""More forks than any project has; a guard against a grid that is too fine."""


class Resolver:
    """Solves one project; ``solve`` may be called once."""

    def __init__(
        self,
        needs: Needs,
        tables: Tables,
        facts: Facts,
        python: tuple[int, int],
        environments: tuple[tuple[int, str], ...],
        required: tuple[int, ...],
    ) -> None:
        self.needs = needs
        self.grid = needs.grid
        self.tables = tables
        self.facts = facts
        self.settings = needs.settings
        self._direct = _direct(needs) if self.settings.resolution == DIRECT else {}
        self.python = python
        self.environments = environments
        self.platforms = Platforms(self.grid, (*(mask for mask, _ in environments), *required))
        self.accepts = Accepts(facts)
        self._guarded = any(
            self.grid.all & ~need.within for unit in needs.units() for need in needs.declared(unit)
        )
        self.preferences: dict[str, list[Preference]] = {}
        self.pinned: dict[str, SpecifierSet] = {}
        self._stack: list[State] = []
        self._count = 0

    def solve(self) -> list[Resolution]:
        """Return the solved forks.

        Raises:
            Stopped: uv stops with an error.
            UnclearError: something cannot be known.
        """
        start = State(Environment(self.grid.all), self.python)
        if self.environments:
            for mask, words in reversed(self.environments):
                environment = start.environment.narrow(mask, words)
                self._stack.append(start.moved(environment, self._narrowed(start, environment)))
            self._sort(self._stack)
        else:
            self._stack.append(start)
        for state in self._stack:
            state.units = [("", "root", "")]
        out: list[Resolution] = []
        stopped: Stopped | None = None
        while self._stack:
            self._count += 1
            try:
                if self._count > _FORKS:
                    raise UnclearError("the project divides into too many forks")
                done = self._run(self._stack.pop())
            except Stopped as one:
                stopped = stopped or one
                continue
            except UnclearError:
                if stopped is None:
                    raise
                break
            if done is not None:
                out.append(done)
        if stopped is not None:
            stopped.solved = tuple(out)
            raise stopped
        return out

    # -- forks

    def _narrowed(self, state: State, environment: Environment) -> tuple[int, int]:
        bounds = self.grid.bounds(environment.mask)
        low, high = state.python
        if bounds is None:
            return low, high
        return max(low, bounds[0]), min(high, bounds[1])

    def _low(self, environment: Environment) -> int:
        bounds = self.grid.bounds(environment.mask)
        return 0 if bounds is None else bounds[0]

    def _sort(self, states: list[State]) -> None:
        states.sort(key=lambda s: self._sign * self._low(s.environment))

    @property
    def _sign(self) -> int:
        return -1 if self.settings.fewest or self.settings.resolution == LOWEST else 1

    def _spread(self, state: State, forks: list[Fork], version: int | None) -> None:
        """Push one state a fork, in the order in which uv solves them."""
        forks = sorted(
            forks, key=lambda f: (self._sign * self._low(f.environment), _upper_bounds(f))
        )
        states = []
        for one in forks:
            environment = one.environment
            new = state.moved(environment, self._narrowed(state, environment))
            self._take(new, one.needs, version)
            states.append(new)
        self._stack += states

    def _push(self, state: State, parts: Parts, name: str) -> None:
        for environment, version in parts:
            new = state.moved(environment, self._narrowed(state, environment))
            new.initial = (name, version)
            self._stack.append(new)

    # -- requirements

    def _run(self, state: State) -> Resolution | None:
        """Solve one state; None if it was divided."""
        while state.units:
            unit = state.units.pop(0)
            forks = fork(
                self._needs_of(unit, state),
                state.environment,
                state.python,
                self.needs.conflicts,
                self.grid,
            )
            if len(forks) != 1:
                self._spread(state, forks, None)
                return None
            self._take(state, forks[0].needs, None)
        return self._decide(state)

    def _needs_of(self, unit: Unit, state: State) -> list[Need]:
        if unit[1] == "root":
            return [
                Need(part[0], self.grid.all, "", "", None, None, unit=part)
                for part in self.needs.units()
            ]
        if unit[1] == "demand":
            asked, parent = self.needs.parsed(unit[2].split("\n")), (unit[0], None)
        else:
            asked, parent = self.needs.declared(unit), (unit[0], None)
        return self.needs.applied(asked, state.environment, state.python, parent)

    def _take(self, state: State, needs: list[Need], version: int | None) -> None:
        """Add requirements to a state: of the project, or of the version that is being chosen."""
        if any(need.unit is not None for need in needs):
            state.units = [need.unit for need in needs if need.unit is not None]
            return
        bits: list[tuple[str, int]] = []
        for need in needs:
            if not watched(need.name, self.facts):
                self._demand(state, need)
                continue
            if need.problem:
                raise UnclearError(f"{need.name}: {need.problem}")
            table = self._table(state, need)
            admitted = table.bits(need.specifier)
            if need.accepts is not None:
                admitted = sum(
                    1 << at
                    for at, offered in enumerate(table.versions)
                    if self.accepts(need.accepts, offered.first)
                )
            singleton = pin_of(SpecifierSet(need.specifier)) is not None
            solver, package = state.solver, need.name
            if need.mask != self.grid.all:
                package = proxy_of(need.name, need.mask)
                solver.package(package, table.size)
                solver.prioritize(package, singleton)
                solver.bind(package, need.name, admitted)
            solver.prioritize(need.name, singleton)
            state.reach[need.name] = state.reach.get(need.name, 0) | need.mask
            if version is None:
                solver.requires(package, admitted)
                state.needs[need.name] = (*state.needs.get(need.name, ()), need)
            else:
                bits.append((package, admitted))
        if version is not None:
            state.solver.add_version(state.solver.next, version, bits)

    def _demand(self, state: State, need: Need) -> None:
        """A package outside the family may require torch: a pinned one, or as the project says."""
        texts = demanded(self.needs, self.facts, need)
        if texts:
            state.units.append((need.name, "demand", "\n".join(texts)))

    def _table(self, state: State, need: Need) -> Table:
        """Return the versions of a package in a fork; its index is fixed at the first visit."""
        routes = self.needs.routes(need.name, state.environment)
        places: dict[str, tuple[PlacedIndex, list[str]]] = {}
        for routed, source in routes:
            places.setdefault(routed.url, (routed, []))[1].append(source)
        known = state.tables.get(need.name)
        if known is not None and known.place is not None:
            places.setdefault(known.place.url, (known.place, []))
        if len(places) > 1:
            urls = " and ".join(
                f"{url} ({', '.join(dict.fromkeys(who))})" if who else url
                for url, (_, who) in places.items()
            )
            where = state.environment.text
            raise Stopped(f"{need.name} has two indexes{' ' + where if where else ''}: {urls}")
        place = next((one for one, _ in places.values()), None)
        if known is None or (known.place is None) != (place is None):
            table = self.tables.of(need.name, place, self.pinned.get(need.name, SpecifierSet()))
            if table.unclear:
                raise UnclearError(table.unclear)
            state.tables[need.name] = table
            state.solver.package(need.name, table.size)
            bad = sum(1 << at for at, o in enumerate(table.versions) if not o.compatible)
            if bad:
                state.solver.forbid(need.name, bad)
        return state.tables[need.name]

    # -- versions

    def _decide(self, state: State) -> Resolution | None:
        solver = state.solver
        while True:
            initial, state.initial = state.initial, None
            if initial is not None:
                name, version = initial
                solver.next = name
            else:
                try:
                    solver.propagate()
                except NoSolutionError as error:
                    raise self._no_solution(state, error.packages) from None
                picked = solver.pick()
                if picked is None:
                    return self._finish(state)
                name, version = picked, None
            if version is None:
                choice = self._choose(state, name)
                if choice is None:
                    return None
                if choice < 0:
                    continue
                version = choice
            if solver.known(name, version):
                solver.decide(name, version)
                continue
            if name != name_of(name) and not name.endswith("\0"):
                self._open_proxy(solver, name, version)
                continue
            offered = state.tables[name_of(name)].versions[version]
            parent = (name_of(name), offered.version)
            needs = required(self.needs, offered)
            needs = self.needs.applied(needs, state.environment, state.python, parent)
            forks = fork(needs, state.environment, state.python, self.needs.conflicts, self.grid)
            if len(forks) == 1:
                self._take(state, forks[0].needs, version)
            else:
                self._spread(state, forks, version)
                return None

    def _open_proxy(self, solver: Solver, proxy: str, version: int) -> None:
        """A proxy needs the plain package and the one under its marker, at the same version."""
        base, inner = name_of(proxy), inner_of(proxy)
        solver.package(inner, solver.sizes[proxy])
        for package in (base, inner):
            solver.prioritize(package, True)
        solver.add_version(proxy, version, [(base, 1 << version), (inner, 1 << version)])

    def _choose(self, state: State, name: str) -> int | None:
        """Return the version to try; -1 if there is none left, None if the fork was divided."""
        table, solver = state.tables[name_of(name)], state.solver
        possible = solver.range_of(name) & ((1 << len(table.versions)) - 1)
        at = self._best(state, table, possible)
        if at is None:
            solver.forbid(name, solver.range_of(name))
            return -1
        offered = table.versions[at]
        if not offered.compatible:
            solver.forbid(name, 1 << at)
            return -1
        low, high = state.python
        if offered.python > low:
            if not self.settings.fewest and offered.python < high:
                parts = self._python_parts(state, offered.python)
                if parts:
                    self._push(state, parts, name)
                    return None
            solver.forbid(name, 1 << at)
            solver.restart(name)
            return -1
        if not self.tables.suits(offered, (0, high)):
            solver.forbid(name, 1 << at)
            return -1
        parts_or_version = self.platforms.decide(state, name, at, possible)
        if isinstance(parts_or_version, int):
            return parts_or_version
        self._push(state, parts_or_version, name)
        return None

    def _python_parts(self, state: State, at: int) -> Parts:
        low, high = state.python
        point = self.grid.points[at]
        parts: Parts = []
        for bounds, words in (((low, at), f"Python < {point}"), ((at, high), f"Python >= {point}")):
            mask = self.grid.pythons(*bounds)
            if state.environment.mask & mask:
                parts.append((state.environment.narrow(mask, words), None))
        return parts

    def _best(self, state: State, table: Table, possible: int) -> int | None:
        lowest = self._lowest(table.name, state.environment)
        # Measured with uv 0.13.9: with lowest-direct every fork chooses anew.
        if self.settings.resolution != DIRECT:
            preferred = self._preferred(state, table, possible)
            if preferred is not None:
                return preferred
        order = range(len(table.versions))
        if lowest:
            order = range(len(table.versions) - 1, -1, -1)
        inside = [at for at in order if possible >> at & 1]
        stable = [at for at in inside if not table.versions[at].version.is_prerelease]
        return next(iter(stable or inside), None)

    def _lowest(self, name: str, environment: Environment) -> bool:
        """Return whether the lowest version of a package is taken (``ResolutionStrategy``)."""
        if self.settings.resolution == DIRECT:
            return bool(self._direct.get(name, 0) & environment.mask)
        return self.settings.resolution == LOWEST

    def _preferred(self, state: State, table: Table, possible: int) -> int | None:
        mask = state.environment.mask
        entries = [
            entry
            for entry in self.preferences.get(table.name, ())
            if table.place is None or entry.place.url == table.place.url
        ]
        lowest = self.settings.resolution == LOWEST
        entries.sort(key=lambda e: e.offered.version, reverse=not lowest)
        entries.sort(key=lambda e: not e.mask & mask)
        for entry in entries:
            wanted = entry.offered.version
            for at, offered in enumerate(table.versions):
                if offered.version != wanted or not possible >> at & 1:
                    continue
                for above in range(at):
                    local = table.versions[above]
                    same = (
                        local.local
                        and local.version.public == str(wanted)
                        and local.first.place == offered.first.place
                    )
                    if same and possible >> above & 1:
                        return above
                return at
        return None

    def _finish(self, state: State) -> Resolution:
        if state.solver.backtracked and self._guarded:
            text = "an extra names another one under a marker, and versions exclude each other"
            raise UnclearError(f"{text}: the order in which uv tries them is not followed there")
        chosen = {
            name: state.tables[name].versions[at] for name, at in state.solver.solution().items()
        }
        for name, offered in chosen.items():
            entry = Preference(state.environment.mask, offered, offered.first.place)
            self.preferences.setdefault(name, []).append(entry)
        return Resolution(state.environment, chosen, state.tables, state.needs)

    def _no_solution(self, state: State, packages: frozenset[str]) -> Stopped:
        where = state.environment.told(self.grid)
        packages = frozenset(name_of(package) for package in packages)
        asked = [
            f"{need.name}{need.specifier}"
            for name in sorted(packages)
            for need in state.needs.get(name, ())
        ]
        told = " and ".join(dict.fromkeys(asked)) or " and ".join(sorted(packages))
        stopped = Stopped(f"no solution for {told}{' ' + where if where else ''}", state)
        stopped.packages = packages
        return stopped


def _direct(needs: Needs) -> dict[str, int]:
    """Return where the project itself asks for a package (``Manifest::user_requirements``)."""
    found: dict[str, int] = {}
    for unit in needs.units():
        for need in needs.declared(unit):
            for one in needs.overrides.get(need.name, [need]):
                found[one.name] = found.get(one.name, 0) | one.mask
    return found


def _upper_bounds(one: Fork) -> int:
    """Return how many requirements of a fork have an upper bound (``cmp_upper_bounds``)."""
    count = 0
    for need in one.needs:
        try:
            parsed = SpecifierSet(need.specifier)
        except ValueError:
            continue
        count += any(s.operator in ("<", "<=", "==", "===", "~=") for s in parsed)
    return count
