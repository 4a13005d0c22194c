"""Nodes of Slurm become node groups."""

from __future__ import annotations

import json

import pytest
from tests.fleet.importers.inputs import arches, fleet_of, group_of, scontrol, written

from torchpin.errors import UsageError
from torchpin.fleet.importers.slurm import gpus_of

SINFO = """NODELIST GRES
node[001-064] gpu:a100:4(S:0-1)
old[1-3],older7 gpu:tesla_v100-pcie-16gb:2,shard:8
login (null)
"""


@pytest.mark.parametrize(
    ("gres", "names"),
    [
        ("gpu:a100:4(S:0-1)", ["a100"]),
        ("gpu:nvidia_a100_3g.20gb:2", ["nvidia_a100"]),
        ("gpu:nvidia_a100_80gb_pcie_1g.10gb+me:7(S:0,2-3)", ["nvidia_a100_80gb_pcie"]),
        ("gpu:a100:2,gpu:v100:2,shard:16,mps:400", ["a100", "v100"]),
        ("gpu:4", [""]),
        ("gpu", [""]),
        ("gpu:h100:no_consume:8", ["h100"]),
        ("gpu:a100:0", []),
        ("lustre:1,license:matlab:4", []),
        ("", []),
        ("gpu:a100:4(S:0-1),gpu:a100:4(S:2)", ["a100"]),
    ],
)
def test_gres(gres: str, names: list[str]) -> None:
    assert [gpu.name for gpu in gpus_of(gres)] == names


def test_scontrol() -> None:
    text = "".join(scontrol(f"node{n:03}", "gpu:a100:4(S:0-1)") for n in range(1, 65))
    text += scontrol("login", "(null)") + scontrol("grace1", "gpu:gh200:1", "aarch64")
    fleet = fleet_of(("slurm.txt", text))
    assert [arches(group) for group in fleet.groups] == [["sm_80"], [], ["sm_90"]]
    assert [group.platform for group in fleet.groups] == [
        "linux-x86_64",
        "linux-x86_64",
        "linux-aarch64",
    ]
    shown = written(("slurm.txt", text)).text
    assert "node[001-064]" in shown
    assert "hunter2" not in shown


def test_scontrol_on_one_line() -> None:
    text = " ".join(scontrol("n1", "gpu:v100:2").split()) + "\n"
    assert arches(group_of(("slurm.txt", text * 2))) == ["sm_70"]


def test_scontrol_that_is_cut_off() -> None:
    text = scontrol("n1", "gpu:v100:2") + scontrol("n2", "gpu:v100:2")[:100]
    with pytest.raises(UsageError, match="ends in the middle of a node"):
        written(("slurm.txt", text))


def test_sinfo() -> None:
    result = written(("sinfo.txt", SINFO))
    assert result.declared == 3
    assert "# 64 machines" in result.text
    assert "old[1-3] older7" in result.text
    assert "[fleet.cpu]" in result.text


@pytest.mark.parametrize(
    "text",
    [
        "gpu:a100:4 node[1-2]\n",
        "node1|gpu:a100:4|ib\nnode2|gpu:a100:4|(null)\n",
        "GRES                 NODELIST\ngpu:a100:4           node[1-2]\n",
        "main* node[1-2] gpu:a100:4\n",
        "long node1 idle gpu:a100:4\nlong node2 idle gpu:a100:4\n",
        "PARTITION NODELIST GRES\ngpu* node[1-2] gpu:a100:4\nlong node[1-2] gpu:a100:4\n",
    ],
)
def test_sinfo_with_other_columns(text: str) -> None:
    shown = written(("sinfo.txt", text)).text
    assert "# 2 machines" in shown
    assert "node[1-2]" in shown


@pytest.mark.parametrize(
    "told",
    [
        {"nodes": [{"name": "n1", "architecture": "x86_64", "gres": "gpu:a100:4(S:0)"}]},
        {"sinfo": [{"nodes": {"nodes": ["n1"]}, "gres": {"total": "gpu:a100:4"}}], "errors": []},
    ],
)
def test_json(told: object) -> None:
    assert arches(group_of(("slurm.json", json.dumps(told)))) == ["sm_80"]


def test_a_gpu_without_type_is_left_open() -> None:
    bare = ("s.txt", scontrol("n1", "gpu:4"))
    assert (written(bare).declared, written(bare).open) == (0, 1)
    assert arches(group_of(bare, gpus=("RTX 3090",))) == ["sm_86"]


def test_slurm_that_did_not_answer() -> None:
    with pytest.raises(UsageError, match="controller did not answer"):
        written(("s.txt", "slurm_load_node error: Unable to contact slurm controller\n"))
