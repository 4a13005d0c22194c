"""Small outputs in the form of the real tools."""

from __future__ import annotations

import json
from typing import Any

from torchpin.fleet.importers.fold import fold
from torchpin.fleet.importers.profile import Written, profile_text
from torchpin.fleet.importers.recognise import read
from torchpin.fleet.model import Fleet, NodeGroup
from torchpin.fleet.profile import read_profile


def written(*inputs: tuple[str, str | bytes], gpus: tuple[str, ...] | None = None) -> Written:
    """Return the profile of inputs: (name of the file, content)."""
    found = [read(data.encode() if isinstance(data, str) else data, name) for name, data in inputs]
    return profile_text(fold(found, gpus), "test")


def fleet_of(*inputs: tuple[str, str | bytes], gpus: tuple[str, ...] | None = None) -> Fleet:
    """Return the fleet that the profile of the inputs declares."""
    return read_profile(written(*inputs, gpus=gpus).text, "torchpin.toml")


def group_of(*inputs: tuple[str, str | bytes], gpus: tuple[str, ...] | None = None) -> NodeGroup:
    """Return the only node group of the inputs."""
    (group,) = fleet_of(*inputs, gpus=gpus).groups
    return group


def arches(group: NodeGroup) -> list[str]:
    """Return the architectures of a group."""
    return [gpu.arch for gpu in group.gpus]


def smi_xml(*names: str, driver: str = "550.54.15", model: str = "N/A") -> str:
    """Return ``nvidia-smi -q -x`` of a machine, shortened."""
    gpus = "".join(
        f"""\t<gpu id="00000000:{number:02X}:00.0">
\t\t<product_name>{name}</product_name>
\t\t<product_brand>NVIDIA</product_brand>
\t\t<driver_model>
\t\t\t<current_dm>{model}</current_dm>
\t\t\t<pending_dm>{model}</pending_dm>
\t\t</driver_model>
\t\t<uuid>GPU-5e0f1a2b-0000-1111-2222-33334444555{number}</uuid>
\t\t<fb_memory_usage>
\t\t\t<total>81920 MiB</total>
\t\t</fb_memory_usage>
\t\t<processes>
\t\t\t<process_info>
\t\t\t\t<process_name>python --token=hunter2</process_name>
\t\t\t</process_info>
\t\t</processes>
\t</gpu>
"""
        for number, name in enumerate(names)
    )
    return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<timestamp>Mon Nov 30 10:11:12 2026</timestamp>
\t<driver_version>{driver}</driver_version>
\t<cuda_version>12.4</cuda_version>
\t<attached_gpus>{len(names)}</attached_gpus>
{gpus}
</nvidia_smi_log>
"""


def node(
    name: str,
    labels: dict[str, str] | None = None,
    capacity: dict[str, str] | None = None,
    image: str = "Ubuntu 22.04.5 LTS",
    architecture: str = "amd64",
    system: str = "linux",
) -> dict[str, Any]:
    """Return one node as ``kubectl get node -o json`` prints it, shortened."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"cluster.example/join-token": "hunter2"},
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"providerID": "aws:///eu-west-1a/i-0hunter2", "podCIDR": "10.0.0.0/24"},
        "status": {
            "addresses": [{"address": "10.0.0.7", "type": "InternalIP"}],
            "capacity": {"cpu": "96", "memory": "1000000Ki", "pods": "110", **(capacity or {})},
            "nodeInfo": {
                "architecture": architecture,
                "bootID": "1",
                "containerRuntimeVersion": "containerd://1.7.25",
                "kernelVersion": "5.15.0-1075-aws",
                "kubeletVersion": "v1.31.4",
                "operatingSystem": system,
                "osImage": image,
            },
        },
    }


def nodes(*items: dict[str, Any]) -> str:
    """Return ``kubectl get nodes -o json``."""
    told = {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {}}
    return json.dumps(told, indent=4)


def gfd(product: str, capability: str, driver: str = "550.54.15") -> dict[str, str]:
    """Return the labels of GPU Feature Discovery."""
    major, minor, revision = driver.split(".")
    compute = capability.split(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.memory": "81920",
        "nvidia.com/gpu.compute.major": compute[0],
        "nvidia.com/gpu.compute.minor": compute[1],
        "nvidia.com/cuda.driver-version.major": major,
        "nvidia.com/cuda.driver-version.minor": minor,
        "nvidia.com/cuda.driver-version.revision": revision,
        "nvidia.com/cuda.runtime-version.major": "12",
    }


def scontrol(name: str, gres: str, arch: str = "x86_64") -> str:
    """Return one node as ``scontrol show nodes`` prints it."""
    return f"""NodeName={name} Arch={arch} CoresPerSocket=32
   CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.01
   AvailableFeatures=ib,a100
   ActiveFeatures=ib,a100
   Gres={gres}
   NodeAddr={name} NodeHostName={name} Version=23.11.4
   OS=Linux 5.15.0-91-generic #101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023
   RealMemory=500000 AllocMem=0 FreeMem=490000 Sockets=2 Boards=1
   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=gpu
   BootTime=2026-11-30T13:08:11 SlurmdStartTime=2026-11-30T17:51:53
   CfgTRES=cpu=64,mem=500000M,billing=64,gres/gpu=4
   AllocTRES=
   Comment=hunter2

"""


def facts(**more: Any) -> dict[str, Any]:
    """Return Ansible's facts of a machine, shortened."""
    return {
        "ansible_architecture": "x86_64",
        "ansible_distribution": "Ubuntu",
        "ansible_distribution_major_version": "22",
        "ansible_distribution_release": "jammy",
        "ansible_distribution_version": "22.04",
        "ansible_env": {"HOME": "/root", "API_TOKEN": "hunter2"},
        "ansible_hostname": "node001",
        "ansible_kernel": "5.15.0-91-generic",
        "ansible_python_version": "3.10.12",
        "ansible_system": "Linux",
        **more,
    }
