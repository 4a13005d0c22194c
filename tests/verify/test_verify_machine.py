"""What is there: NVML's GPUs one by one, and which of torch's devices is which."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import torchpin
from torchpin.fleet import nvml
from torchpin.fleet.gpus import find_gpu
from torchpin.verify.machine import Card, Here, child_environment, hides, look, node_name, place
from torchpin.verify.model import HostGpu

V100, A100 = find_gpu("Tesla V100")[0], find_gpu("A100-SXM4-80GB")[0]
FAKE = Path(torchpin.__file__).parents[2] / "tests" / "fleet" / "fake_nvml.c"


def here(*cards: Card) -> Here:
    return Here("n01", "linux-x86_64", cards, {})


def card(number: int, pci: str = "", capability: str | None = "7.0") -> Card:
    return Card(HostGpu(number, "Tesla V100", capability, 32768), V100, pci)


def device(pci: str | None = None, capability: tuple[int, int] = (7, 0)) -> dict[str, Any]:
    return {"name": "Tesla V100", "capability": capability, "memory_mib": 32500, "pci": pci}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc", path=os.environ.get("PATH", os.defpath))
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler, or not Linux")
    path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(path), str(FAKE)], check=True)
    return path


def test_devices_of_nvml(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = ctypes.CDLL(str(library))
    monkeypatch.setattr(nvml, "load", lambda: loaded)
    found = look({"SLURMD_NODENAME": "n07"})
    assert found.node == "n07"
    assert [(one.host, one.pci) for one in found.cards] == [
        (HostGpu(0, "Tesla V100-SXM2-16GB", "7.0", 16384), "00000000:3b:00.0"),
        (HostGpu(1, "Tesla V100-SXM2-16GB", "7.0", 16384), "00000000:3c:00.0"),
    ]
    assert found.cards[0].gpu is not None
    assert found.cards[0].gpu.arch == "sm_70"
    assert found.facts["driver"] == "550.54.15"


def test_a_lost_gpu_keeps_the_numbers_of_the_others(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = ctypes.CDLL(str(library))
    monkeypatch.setattr(nvml, "load", lambda: loaded)
    monkeypatch.setenv("FAKE_LOST", "0")
    found = look({})
    assert [one.host.number for one in found.cards] == [1]
    assert found.notes == ("GPU 0 does not answer: the GPU has fallen off the bus",)


def test_a_gpu_that_no_table_has_is_judged_by_its_capability(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = ctypes.CDLL(str(library))
    monkeypatch.setattr(nvml, "load", lambda: loaded)
    monkeypatch.setenv("FAKE_NAME", "NVIDIA Zaphod 42")
    found = look({})
    assert found.cards[0].host.name == "NVIDIA Zaphod 42"
    assert found.cards[0].gpu is not None
    assert found.cards[0].gpu.name == "sm_70"


def test_devices_are_found_by_their_place_on_the_bus() -> None:
    """torch counts the fastest first unless told otherwise."""
    machine = here(card(0, "00000000:3b:00.0"), card(1, "00000000:af:00.0"))
    found, numbers = place(machine, [device("0000:af:00.0"), device("0000:3B:00.0")])
    assert numbers == (1, 0)
    assert found == machine


def test_devices_without_a_place_are_taken_in_order() -> None:
    machine = here(card(0), Card(HostGpu(1, "A100", "8.0", 81920), A100), card(2))
    _, numbers = place(machine, [device(capability=(8, 0)), device(), device()])
    assert numbers == (1, 0, 2)


def test_a_visible_part_of_the_gpus() -> None:
    machine = here(card(0, "00000000:3b:00.0"), card(1, "00000000:af:00.0"))
    assert place(machine, [device("0000:af:00.0")])[1] == (1,)


def test_a_device_that_nothing_else_tells_of_is_added() -> None:
    found, numbers = place(here(), [device("0000:3b:00.0")])
    assert numbers == (0,)
    assert found.cards[0].host == HostGpu(0, "Tesla V100", "7.0", 32500)
    assert found.cards[0].gpu is not None
    assert found.cards[0].gpu.arch == "sm_70"


def test_what_torch_tells_fills_what_the_driver_does_not() -> None:
    machine = here(Card(HostGpu(0, "Tesla V100", None, None), None))
    found, _ = place(machine, [device()])
    assert found.cards[0].host == HostGpu(0, "Tesla V100", "7.0", 32500)


def test_slices_of_a_card_have_its_number() -> None:
    machine = here(card(0, "00000000:3b:00.0"))
    assert place(machine, [device("0000:3b:00.0"), device("0000:3b:00.0")])[1] == (0, 0)


@pytest.mark.parametrize(
    ("vendor", "silent", "noted"), [("0x10de", "NVIDIA GPU", ""), ("0x8086", "", "Intel card")]
)
def test_a_card_on_the_bus_that_nothing_tells_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vendor: str, silent: str, noted: str
) -> None:
    monkeypatch.setattr(nvml, "load", lambda: None)
    monkeypatch.setenv("PATH", "")
    folder = tmp_path / "sys/bus/pci/devices/0000:3b:00.0"
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(f"{vendor}\n")
    (folder / "class").write_text("0x030200\n")
    found = look({}, str(tmp_path))
    assert silent in found.silent
    assert bool(found.silent) == bool(silent)
    assert noted in "".join(found.notes)


def test_what_hides_gpus() -> None:
    for value in ("", "-1", "NoDevFiles"):
        assert hides({"CUDA_VISIBLE_DEVICES": value}, some_are_seen=False)
    assert not hides({"CUDA_VISIBLE_DEVICES": "0"}, some_are_seen=False)
    assert hides({"CUDA_VISIBLE_DEVICES": "0"}, some_are_seen=True)
    assert not hides({}, some_are_seen=True)


def test_the_name_of_the_node() -> None:
    assert node_name({"NODE_NAME": "worker-3"}) == "worker-3"
    assert node_name({"SLURMD_NODENAME": "n01\n\x1b[31m"}) == "n01 ?[31m"
    assert "." not in node_name({})


def test_the_order_of_devices_is_left_where_some_are_chosen() -> None:
    assert child_environment({"HOME": "/h"})["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert "CUDA_DEVICE_ORDER" not in child_environment({"CUDA_VISIBLE_DEVICES": "1"})
