"""The machine beside the profile: its group, and what differs."""

from __future__ import annotations

from typing import Any

import pytest

from torchpin.errors import UsageError
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import Fleet, NodeGroup, Python, Settings
from torchpin.verify.compare import choose_group, differences
from torchpin.verify.machine import Card, Here
from torchpin.verify.model import HostGpu

V100, A100 = find_gpu("Tesla V100")[0], find_gpu("A100-SXM4-80GB")[0]
PYTHON = Python(3, 11)


def group(name: str, *gpus: str, **values: Any) -> NodeGroup:
    found = tuple(find_gpu(gpu)[0] for gpu in gpus)
    made = NodeGroup(name, found, (PYTHON,), "linux-x86_64", driver="550.54.15", glibc="2.31")
    return made._replace(**values)


def fleet(*groups: NodeGroup) -> Fleet:
    return Fleet(groups, Settings(), "torchpin.toml")


def here(*names: str, **facts: str) -> Here:
    cards = tuple(
        Card(HostGpu(number, name), find_gpu(name)[0]) for number, name in enumerate(names)
    )
    return Here("n01", "linux-x86_64", cards, {"driver": "550.54.15", "glibc": "2.31", **facts})


def chosen(found: tuple[NodeGroup | None, str]) -> str | None:
    return found[0].name if found[0] is not None else None


def test_the_group_is_the_one_with_the_gpus() -> None:
    groups = fleet(group("old", "Tesla V100"), group("new", "A100-SXM4-80GB"), group("login"))
    assert chosen(choose_group(groups, None, here("A100-SXM4-80GB"))) == "new"
    assert chosen(choose_group(groups, None, here())) == "login"
    assert choose_group(groups, None, here("H100")) == (
        None,
        "no group of the profile has the GPUs of this machine: say which with --group",
    )


def test_like_groups_are_told_apart_by_the_driver_or_by_name() -> None:
    groups = fleet(
        group("a", "Tesla V100"), group("b", "Tesla V100", driver="535.104.05"), group("c", "L4")
    )
    assert chosen(choose_group(groups, None, here("Tesla V100", driver="535.104.05"))) == "b"
    found, note = choose_group(groups, None, here("Tesla V100", driver="470.57.02"))
    assert found is None
    assert "a or b" in note
    assert chosen(choose_group(groups, "b", here("H100"))) == "b"


def test_a_group_that_is_not_there() -> None:
    with pytest.raises(UsageError) as caught:
        choose_group(fleet(group("a", "L4")), "z", here("L4"))
    assert caught.value.hint == "its groups: a"
    with pytest.raises(UsageError, match="no fleet is declared"):
        choose_group(None, "z", here("L4"))


def test_no_profile_is_no_difference() -> None:
    assert choose_group(None, None, here("L4")) == (None, "")


def test_nothing_differs() -> None:
    declared = group("a", "Tesla V100", "A100-SXM4-80GB")
    assert differences(declared, here("Tesla V100"), PYTHON, "3.11.7") == ()
    branch = group("a", "Tesla V100", driver="550")
    assert differences(branch, here("Tesla V100"), PYTHON, "3.11.7") == ()
    capability = group("a", "sm_70")
    assert differences(capability, here("Tesla V100"), PYTHON, "3.11.7") == ()
    open_group = group("a", "Tesla V100", driver=None, glibc=None, pythons=())
    assert differences(open_group, here("Tesla V100", glibc="2.17"), PYTHON, "3.11.7") == ()


@pytest.mark.parametrize(
    ("machine", "python", "told"),
    [
        (here("L4"), PYTHON, "gpus: L4 here, Tesla V100 in the profile"),
        (here(), PYTHON, "gpus: none here, Tesla V100 in the profile"),
        (
            here("Tesla V100", driver="535.104.05"),
            PYTHON,
            "driver: 535.104.05 here, 550.54.15 in the profile",
        ),
        (here("Tesla V100", glibc="2.28"), PYTHON, "glibc: 2.28 here, 2.31 in the profile"),
        (here("Tesla V100", libc="musl"), PYTHON, "libc: musl here, glibc in the profile"),
        (here("Tesla V100"), Python(3, 12), "python: 3.11.7 here, 3.11 in the profile"),
        (
            here("Tesla V100")._replace(platform="linux-aarch64"),
            PYTHON,
            "platform: linux-aarch64 here, linux-x86_64 in the profile",
        ),
    ],
)
def test_each_value_that_differs(machine: Here, python: Python, told: str) -> None:
    assert differences(group("a", "Tesla V100"), machine, python, "3.11.7") == (told,)


def test_no_driver_where_one_is_declared() -> None:
    machine = Here("n01", "linux-x86_64", (), {"glibc": "2.31"})
    assert "driver: none here, 550.54.15 in the profile" in differences(
        group("a", "Tesla V100"), machine, PYTHON, "3.11.7"
    )
