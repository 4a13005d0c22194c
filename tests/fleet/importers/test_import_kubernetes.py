"""Nodes of Kubernetes become node groups."""

from __future__ import annotations

import json

import pytest
from tests.fleet.importers.inputs import arches, fleet_of, gfd, group_of, node, nodes, written

from torchpin.errors import UsageError


def test_labels_of_gpu_feature_discovery() -> None:
    text = nodes(node("gpu-1", gfd("NVIDIA-H100-80GB-HBM3", "9.0")))
    group = group_of(("nodes.json", text))
    assert arches(group) == ["sm_90"]
    assert (group.driver, group.platform, group.glibc) == ("550.54.15", "linux-x86_64", None)


def test_glibc_of_the_node_is_a_comment() -> None:
    text = written(("nodes.json", nodes(node("gpu-1", gfd("Tesla-T4", "7.5"))))).text
    assert '# glibc = "2.35"  # Ubuntu 22.04.5 LTS on the node; a container brings its own' in text


@pytest.mark.parametrize(
    "product",
    [
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
        "NVIDIA-A100-SXM4-40GB-SHARED",
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED",
        "A100-SXM4-40GB",
    ],
)
def test_slices_and_shared_cards(product: str) -> None:
    labels = gfd(product, "8.0")
    assert arches(group_of(("n", nodes(node("a", labels))))) == ["sm_80"]
    del labels["nvidia.com/gpu.compute.major"]
    assert arches(group_of(("n", nodes(node("a", labels))))) == ["sm_80"]


def test_slices_and_whole_cards_fold() -> None:
    fleet = fleet_of(
        (
            "n",
            nodes(
                node("a", gfd("NVIDIA-A100-SXM4-40GB", "8.0")),
                node("b", gfd("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "8.0")),
            ),
        )
    )
    assert len(fleet.groups) == 1


def test_many_nodes_fold_and_no_secret_comes_through() -> None:
    items = [node(f"gpu-{n}", gfd("NVIDIA-L4", "8.9")) for n in range(1, 300)]
    items += [node(f"cpu{n:02}") for n in range(20)]
    items.append(node("arm", gfd("NVIDIA-GH200-480GB", "9.0"), architecture="arm64"))
    result = written(("nodes.json", nodes(*items)))
    assert result.declared == 3
    assert "gpu-[1-299]" in result.text
    assert "cpu[00-19]" in result.text
    assert "linux-aarch64" in result.text
    for secret in ("hunter2", "10.0.0", "annotations"):
        assert secret not in result.text


def test_drivers_make_groups() -> None:
    old = node("a", gfd("NVIDIA-L4", "8.9", "535.54.03"))
    new = node("b", gfd("NVIDIA-L4", "8.9", "550.54.15"))
    assert [g.driver for g in fleet_of(("n", nodes(old, new))).groups] == ["535.54.03", "550.54.15"]


def test_driver_labels_of_every_age() -> None:
    labels = gfd("NVIDIA-L4", "8.9")
    base = {k: v for k, v in labels.items() if "driver" not in k}
    ages = (
        {"nvidia.com/cuda.driver-version.full": "550.54.15"},
        {"nvidia.com/cuda.driver.major": "550", "nvidia.com/cuda.driver.minor": "54"},
        {"nvidia.com/cuda.driver-version.major": "550", "nvidia.com/cuda.driver-version.minor": ""},
    )
    drivers = [group_of(("n", nodes(node("a", {**base, **age})))).driver for age in ages]
    assert drivers == ["550.54.15", "550.54", "550"]


@pytest.mark.parametrize(
    ("labels", "arch"),
    [
        ({"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, "sm_75"),
        ({"node.kubernetes.io/instance-type": "p3.2xlarge"}, "sm_70"),
        ({"node.kubernetes.io/instance-type": "Standard_NC6s_v3"}, "sm_70"),
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "gfx942"),
    ],
)
def test_labels_of_clouds_and_of_amd(labels: dict[str, str], arch: str) -> None:
    assert arches(group_of(("n", nodes(node("a", labels))))) == [arch]


def test_a_cpu_instance_type_is_no_gpu() -> None:
    labels = {"node.kubernetes.io/instance-type": "m5.xlarge"}
    assert group_of(("n", nodes(node("a", labels)))).gpus == ()


def test_a_gpu_without_label_is_left_open_not_cpu() -> None:
    bare = ("n", nodes(node("a", capacity={"nvidia.com/gpu": "8"})))
    assert (written(bare).declared, written(bare).open) == (0, 1)
    assert arches(group_of(bare, gpus=("V100",))) == ["sm_70"]
    assert group_of(("n", nodes(node("a", capacity={"nvidia.com/gpu": "0"})))).gpus == ()


@pytest.mark.parametrize("kind", ["10de", "0302_10de", "1200_1002"])
def test_a_card_on_the_bus_without_driver_is_left_open(kind: str) -> None:
    labels = {f"feature.node.kubernetes.io/pci-{kind}.present": "true"}
    assert written(("n", nodes(node("a", labels)))).open == 1


@pytest.mark.parametrize("kind", ["1234", "0300_1002", "0403_10de", "8086"])
def test_other_devices_on_the_bus_are_no_gpu(kind: str) -> None:
    labels = {f"feature.node.kubernetes.io/pci-{kind}.present": "true"}
    assert group_of(("n", nodes(node("a", labels)))).gpus == ()


def test_an_architecture_without_wheels_is_left_out_whole() -> None:
    result = written(("n", nodes(node("a", architecture="ppc64le"), node("b"))))
    assert (result.declared, result.open) == (1, 1)
    assert "# Left out: unknown platform" in result.text


def test_windows_nodes() -> None:
    group = group_of(
        ("n", nodes(node("w", image="Windows Server 2022 Datacenter", system="windows")))
    )
    assert group.platform == "windows-x86_64"


def test_one_node_and_none() -> None:
    assert group_of(("n", json.dumps(node("a", gfd("Tesla-T4", "7.5"))))).gpus
    with pytest.raises(UsageError, match="no Kubernetes node"):
        written(("n", nodes()))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
    with pytest.raises(UsageError, match="no Kubernetes node"):
        written(("n", nodes(pod)))
