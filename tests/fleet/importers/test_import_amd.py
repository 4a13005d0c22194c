"""JSON of rocm-smi and amd-smi becomes node groups."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fleet.importers.inputs import arches, group_of, written

from torchpin.errors import UsageError

ROCM = {
    "card0": {
        "Card Series": "AMD Instinct MI300X",
        "Card Model": "0x74a1",
        "Card Vendor": "Advanced Micro Devices, Inc. [AMD/ATI]",
        "GFX Version": "gfx942",
    },
    "card1": {"Card Series": "AMD Instinct MI300X", "GFX Version": "gfx942"},
    "system": {"Driver version": "6.10.5"},
}


def amd(market: str, gfx: str) -> dict[str, Any]:
    return {
        "gpu": 0,
        "asic": {
            "market_name": market,
            "vendor_id": "0x1002",
            "asic_serial": "0xHUNTER2",
            "target_graphics_version": gfx,
        },
        "driver": {"name": "amdgpu", "version": "6.10.5"},
    }


def test_rocm_smi() -> None:
    group = group_of(("node.json", json.dumps(ROCM)))
    assert arches(group) == ["gfx942"]
    assert group.driver is None  # the number of amdgpu is no ROCm release


def test_warnings_before_the_json_do_not_matter() -> None:
    text = "WARNING: AMD GPU device(s) is/are in a low-power state. Check power control\n\n"
    assert arches(group_of(("node.json", text + json.dumps(ROCM)))) == ["gfx942"]


def test_old_rocm_smi_without_isa_name() -> None:
    old = {"card0": {"Card series": "AMD Instinct MI210", "Card model": "0x0c34"}}
    assert arches(group_of(("node.json", json.dumps(old)))) == ["gfx90a"]


@pytest.mark.parametrize("wrap", [lambda gpus: gpus, lambda gpus: {"gpu_data": gpus}])
def test_amd_smi_static(wrap: Any) -> None:
    text = json.dumps(wrap([amd("AMD Instinct MI300X", "gfx942")]))
    assert arches(group_of(("node.json", text))) == ["gfx942"]
    assert "HUNTER2" not in written(("node.json", text)).text


def test_an_unknown_amd_card_is_kept_by_its_isa_name() -> None:
    result = written(("node.json", json.dumps([amd("AMD Instinct MI999", "GFX950")])))
    assert '"gfx950",  # AMD Instinct MI999: unknown GPU' in result.text


def test_amd_smi_list_names_no_gpu() -> None:
    listed = [{"gpu": 0, "bdf": "0000:0c:00.0", "uuid": "c2ff-1", "node_id": 1}]
    result = written(("node.json", json.dumps(listed)))
    assert (result.declared, result.open) == (0, 1)


def test_a_device_number_is_no_name() -> None:
    result = written(("node.json", json.dumps({"card0": {"Card series": "0xc1e"}})))
    assert "# Which GPUs? one that the input does not name." in result.text


def test_amd_smi_of_one_gpu() -> None:
    assert arches(group_of(("n.json", json.dumps(amd("AMD Instinct MI300X", "N/A"))))) == ["gfx942"]


def test_cut_off_json_says_so() -> None:
    with pytest.raises(UsageError, match="ends in the middle of its JSON"):
        written(("node.json", json.dumps(ROCM, indent=2)[:120]))
