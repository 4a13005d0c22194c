"""The grid of environments and the search that uv's resolver makes."""

from __future__ import annotations

import pytest

from torchpin.select.forks import Environment, Need, fork
from torchpin.select.grid import Grid, UnknownMarkerError
from torchpin.select.pubgrub import NoSolutionError, Solver

LINUX, NOT_LINUX = "sys_platform == 'linux'", "sys_platform != 'linux'"


def need(grid: Grid, name: str, marker: str = "") -> Need:
    return Need(name, grid.mask(marker), marker, "", None, None)


def test_masks_follow_the_laws_of_markers() -> None:
    machine = "platform_machine == 'ppc64le'"
    grid = Grid([LINUX, NOT_LINUX, machine])
    assert grid.mask(LINUX) & grid.mask(NOT_LINUX) == 0
    assert grid.mask(LINUX) | grid.mask(NOT_LINUX) == grid.all
    assert grid.mask(f"{LINUX} and {machine}") == grid.mask(LINUX) & grid.mask(machine) != 0
    assert grid.mask("platform_system == 'Linux'") == grid.mask(LINUX)
    assert grid.mask("extra == 'a'", "a") == grid.all
    assert grid.mask("extra == 'a'") == 0


def test_every_bound_of_a_python_is_a_point() -> None:
    grid = Grid(["python_full_version >= '3.11.4'"], (">=3.10,<3.13",))
    assert grid.bounds_of(">=3.10,<3.13") == (
        next(at for at, p in enumerate(grid.points) if str(p) == "3.10"),
        next(at for at, p in enumerate(grid.points) if str(p) == "3.13"),
    )
    later = grid.mask("python_full_version >= '3.11.4'")
    assert later & grid.minor(11)
    assert later & grid.minor(11) != grid.minor(11)


def test_a_test_with_in_may_hold_anywhere() -> None:
    marker = "sys_platform in 'linux linux2'"
    grid = Grid([marker])
    assert grid.mask(marker) & grid.system("win32")
    assert grid.mask(marker) & grid.mask("sys_platform not in 'linux linux2'") == 0


@pytest.mark.parametrize("marker", ["platform_release == '6'", "sys_platform ==", "no_such == '1'"])
def test_what_the_grid_cannot_tell(marker: str) -> None:
    with pytest.raises(UnknownMarkerError):
        Grid([marker]).mask(marker)


def test_one_requirement_does_not_fork_and_two_do() -> None:
    grid = Grid([LINUX, NOT_LINUX])
    everywhere, python = Environment(grid.all), (0, len(grid.points))
    alone = fork([need(grid, "torch", LINUX)], everywhere, python, (), grid)
    assert len(alone) == 1
    parts = [need(grid, "torch", LINUX), need(grid, "torch", NOT_LINUX)]
    found = fork(parts, everywhere, python, (), grid)
    assert [one.environment.mask for one in found] == [grid.mask(NOT_LINUX), grid.mask(LINUX)]
    assert [len(one.needs) for one in found] == [1, 1]


def test_a_marker_that_raises_the_python_forks() -> None:
    marker = "python_version >= '3.12'"
    grid = Grid([marker], (">=3.10",))
    python = grid.bounds_of(">=3.10")
    found = fork([need(grid, "torch", marker)], Environment(grid.all), python, (), grid)
    assert len(found) == 2


def test_conflicts_give_a_fork_without_and_one_for_each() -> None:
    grid = Grid([])
    units = [("app", "", ""), ("app", "extra", "a"), ("app", "extra", "b")]
    needs = [Need("app", grid.all, "", "", None, None, unit=unit) for unit in units]
    items = frozenset([units[1], units[2]])
    found = fork(needs, Environment(grid.all), (0, 5), (items,), grid)
    assert [sorted(one.environment.include) for one in found] == [[], [units[1]], [units[2]]]
    assert [len(one.needs) for one in found] == [1, 2, 2]


def solver(**sizes: int) -> Solver:
    made = Solver()
    for name, size in sizes.items():
        made.package(name, size)
        made.requires(name, (1 << size) - 1)
        made.prioritize(name, False)
    return made


def run(made: Solver, needs: dict[tuple[str, int], list[tuple[str, int]]]) -> dict[str, int]:
    while True:
        made.propagate()
        name = made.pick()
        if name is None:
            return made.solution()
        possible = made.range_of(name)
        at = next((n for n in range(made.sizes[name]) if possible >> n & 1), None)
        if at is None:
            made.forbid(name, possible)
        elif made.known(name, at):
            made.decide(name, at)
        else:
            made.add_version(name, at, needs.get((name, at), []))


def test_the_first_package_keeps_its_best_version_while_it_can() -> None:
    made = solver(torch=3, vision=2)
    assert run(made, {("vision", 0): [("torch", 0b100)], ("vision", 1): [("torch", 0b001)]}) == {
        "torch": 0,
        "vision": 1,
    }


def test_the_fifth_clash_turns_the_order() -> None:
    needs = {("vision", at): [("torch", 1 << (at + 1))] for at in range(6)}
    needs["vision", 6] = [("torch", 0b1)]
    assert run(solver(torch=8, vision=7), needs) == {"torch": 1, "vision": 0}


def test_what_excludes_itself_has_no_solution() -> None:
    made = solver(torch=2, vision=1)
    made.requires("torch", 0b01)
    with pytest.raises(NoSolutionError) as raised:
        run(made, {("vision", 0): [("torch", 0b10)]})
    assert raised.value.packages == {"torch", "vision"}


def test_a_clone_is_independent() -> None:
    made = solver(torch=2)
    other = made.clone()
    other.forbid("torch", 0b01)
    assert run(other, {}) == {"torch": 1}
    assert run(made, {}) == {"torch": 0}
