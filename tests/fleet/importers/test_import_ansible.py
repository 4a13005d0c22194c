"""Facts of Ansible become node groups, and join what other inputs tell of the same machines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fleet.importers.inputs import (
    arches,
    facts,
    fleet_of,
    gfd,
    group_of,
    node,
    nodes,
    scontrol,
    smi_xml,
    written,
)

from torchpin.errors import UsageError
from torchpin.fleet.importers.distributions import glibc_of


def setup(**hosts: dict[str, Any]) -> str:
    """Return ``ansible all -m setup``."""
    return "".join(
        f"{host} | SUCCESS => {json.dumps({'ansible_facts': told, 'changed': False}, indent=4)}\n"
        for host, told in hosts.items()
    )


def test_facts_alone_tell_no_gpu() -> None:
    result = written(("facts.json", json.dumps({"ansible_facts": facts()})))
    assert (result.declared, result.open) == (0, 1)
    assert "hunter2" not in result.text


def test_facts_tell_system_and_glibc() -> None:
    group = group_of(("facts.json", json.dumps(facts())), gpus=("V100",))
    assert (group.glibc, group.platform, group.pythons) == ("2.35", "linux-x86_64", ())


def test_setup_of_many_hosts_joins_slurm() -> None:
    text = setup(n1=facts(), n2=facts(), n3=facts(ansible_distribution_version="20.04"))
    text += 'n4 | UNREACHABLE! => {"changed": false, "msg": "ssh: hunter2", "unreachable": true}\n'
    slurm = "".join(scontrol(f"n{n}", "gpu:v100:2") for n in (1, 2, 3))
    fleet = fleet_of(("slurm.txt", slurm), ("facts.txt", text))
    assert [group.glibc for group in fleet.groups] == ["2.35", "2.31"]
    assert [arches(group) for group in fleet.groups] == [["sm_70"], ["sm_70"]]
    assert "hunter2" not in written(("slurm.txt", slurm), ("facts.txt", text)).text


def test_xml_names_what_slurm_counts() -> None:
    slurm = ("slurm.txt", scontrol("n1", "gpu:4"))
    group = group_of(slurm, ("n1.xml", smi_xml("Tesla T4")))
    assert (arches(group), group.driver) == (["sm_75"], "550.54.15")


def test_glibc_of_a_host_beats_the_doubtful_one_of_a_node() -> None:
    told = ("nodes.json", nodes(node("n1", gfd("Tesla-T4", "7.5"))))
    assert group_of(told, ("facts.txt", setup(n1=facts()))).glibc == "2.35"


def test_callback_json() -> None:
    told = {"plays": [{"tasks": [{"hosts": {"n1": {"ansible_facts": facts()}}}]}], "stats": {}}
    assert group_of(("run.json", json.dumps(told)), gpus=()).glibc == "2.35"


def test_deepops_counts_gpus() -> None:
    none = facts(ansible_local={"gpus": {"count": 0}})
    some = facts(ansible_local={"gpus": {"count": 8}})
    assert group_of(("f.json", json.dumps(none))).gpus == ()
    assert written(("f.json", json.dumps(some))).open == 1


@pytest.mark.parametrize("machine", ["64-bit", "64-Bit", "64 bits", "64 位", "64비트"])
def test_windows_in_any_language(machine: str) -> None:
    told = facts(
        ansible_system="Win32NT",
        ansible_architecture=machine,
        ansible_distribution="Microsoft Windows Server 2022 Standard",
    )
    group = group_of(("f.json", json.dumps(told, ensure_ascii=False)), gpus=("T4",))
    assert (group.platform, group.glibc) == ("windows-x86_64", None)


def test_macos_musl_and_wsl() -> None:
    mac = facts(
        ansible_system="Darwin",
        ansible_architecture="arm64",
        ansible_distribution="MacOSX",
        ansible_distribution_version="14.6.1",
    )
    alpine = facts(ansible_distribution="Alpine", ansible_distribution_version="3.20.1")
    wsl = facts(ansible_kernel="5.15.167.4-microsoft-standard-WSL2")
    groups = [group_of(("f.json", json.dumps(told)), gpus=()) for told in (mac, alpine, wsl)]
    assert (groups[0].platform, groups[0].macos) == ("macos-arm64", "14.6")
    assert groups[1].musl
    assert groups[2].wsl


def test_nobody_answered() -> None:
    text = 'n4 | UNREACHABLE! => {"changed": false, "unreachable": true}\n'
    with pytest.raises(UsageError, match="none answered"):
        written(("f.txt", text))


def test_cut_off() -> None:
    with pytest.raises(UsageError, match="ends in the middle of a host's facts"):
        written(("f.txt", setup(n1=facts(), n2=facts())[:-30]))


@pytest.mark.parametrize(
    ("system", "glibc"),
    [
        ("Ubuntu 20.04.6 LTS", "2.31"),
        ("Ubuntu 24.04.1 LTS", "2.39"),
        ("Debian GNU/Linux 12 (bookworm)", "2.36"),
        ("Red Hat Enterprise Linux 9.4 (Plow)", "2.34"),
        ("RedHat 8.10", "2.28"),
        ("Rocky Linux 8.9 (Green Obsidian)", "2.28"),
        ("Amazon Linux 2", "2.26"),
        ("Amazon Linux 2023.6.20241010", "2.34"),
        ("Fedora Linux 41 (Workstation Edition)", "2.40"),
        ("Red Hat Enterprise Linux CoreOS 416.94.202409191851-0", ""),
        ("Flatcar Container Linux by Kinvolk 3975.2.2 (Oklo)", ""),
        ("Container-Optimized OS from Google", ""),
        ("Bottlerocket OS 1.26.1 (aws-k8s-1.31)", ""),
        ("Ubuntu 99.04", ""),
        ("", ""),
    ],
)
def test_glibc_of_distributions(system: str, glibc: str) -> None:
    assert glibc_of(system) == glibc
