"""What a real Slurm prints is read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fleet.importers.inputs import arches, written
from tests.slurm_cluster import Slurm, cluster

from torchpin.fleet.model import Fleet
from torchpin.fleet.profile import read_profile

pytestmark = pytest.mark.slurm
NODES = {
    "a001": "gpu:a100:2",
    "a002": "gpu:a100:2",
    "m001": "gpu:nvidia_a100_3g.20gb:1",
    "v1": "gpu:tesla_v100-pcie-16gb:1",
    "u1": "gpu:1",
    "c001": "",
}


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with cluster(NODES, ["PartitionName=long Nodes=a001,a002 State=UP"]) as running:
        yield running


def kinds(fleet: Fleet) -> list[list[str]]:
    return sorted(sorted(set(arches(group))) for group in fleet.groups)


@pytest.mark.parametrize(
    "command",
    [
        ("scontrol", "show", "nodes"),
        ("scontrol", "show", "nodes", "--oneliner"),
        ("sinfo", "-o", "%N %G"),
        ("sinfo", "-h", "-N", "-o", "%N|%G|%f"),
        ("sinfo", "-O", "nodelist:40,gres:40"),
        ("sinfo", "--json"),
        ("scontrol", "show", "nodes", "--json"),
    ],
    ids=" ".join,
)
def test_every_output_tells_the_same_fleet(slurm: Slurm, command: tuple[str, ...]) -> None:
    try:
        text = slurm(*command)
    except subprocess.CalledProcessError as error:
        if "--json" in command:  # Debian 12's scontrol (22.05) does not know it
            pytest.skip(f"this Slurm does not: {error.stderr.strip()}")
        raise
    result = written(("slurm.txt", text))
    fleet = read_profile(result.text, "torchpin.toml")
    assert kinds(fleet) == [[], ["sm_70"], ["sm_80"]]
    assert (result.declared, result.open) == (3, 1)  # u1 has a GPU without a type
    assert "# 3 machines" in result.text  # a001, a002 and the slice of m001
    assert "a[001-002] m001" in result.text
    if "scontrol" in command or "--json" in command:
        machine = os.uname().machine
        assert f'platform = "linux-{machine}"' in result.text


def test_the_command_itself(slurm: Slurm, tmp_path: Path) -> None:
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "fleet", "import", "-", "--gpu", "T4"],
        input=slurm("scontrol", "show", "nodes"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stderr
    fleet = read_profile(done.stdout, "torchpin.toml")
    assert kinds(fleet) == [[], ["sm_70"], ["sm_75"], ["sm_80"]]
