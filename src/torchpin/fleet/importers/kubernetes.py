"""``kubectl get nodes -o json``: labels of GPU Feature Discovery and of clouds, nodeInfo.

Only the named labels, the capacity and ``nodeInfo`` are read: annotations, addresses and the rest
never reach the output.
"""

from __future__ import annotations

import re
from typing import Any

from torchpin.errors import ConfigError, UsageError
from torchpin.fleet.importers.distributions import glibc_of
from torchpin.fleet.importers.model import Found, Machine, SeenGpu, Told
from torchpin.fleet.importers.text import rows, table, word
from torchpin.patterns import regex

_PRODUCT = "nvidia.com/gpu.product"
_OTHER_LABELS = (
    "amd.com/gpu.product-name",
    "beta.amd.com/gpu.product-name",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "eks.amazonaws.com/instance-gpu-name",
    "karpenter.azure.com/sku-gpu-name",
    "k8s.amazonaws.com/accelerator",
)
_INSTANCE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_RESOURCE = regex(r"(?:nvidia\.com|amd\.com|gpu\.intel\.com)/(?:gpu|mig-|i915|xe).*")


_ON_BUS = regex(
    r"feature\.node\.kubernetes\.io/pci-(?:(?:0300_|0302_)?10de|1200_1002)(?:_\w+)?\.present"
)
"""Labels of Node Feature Discovery: an NVIDIA device, or an accelerator of AMD, on the PCI bus."""


def is_kubernetes(value: object) -> bool:
    """Tell whether a JSON value is of ``kubectl get … -o json``."""
    told = table(value)
    return "apiVersion" in told and (
        word(told.get("kind")).endswith("List") or word(told.get("kind")) == "Node"
    )


def read_nodes(value: Any, source: str) -> Found:
    """Return the machines of ``kubectl get nodes -o json``.

    Raises:
        UsageError: it holds no node.
    """
    told = table(value)
    items = [told] if told.get("kind") == "Node" else rows(told.get("items"))
    nodes = [table(item) for item in items]
    machines = tuple(_machine(node) for node in nodes if node.get("kind", "Node") == "Node")
    if not machines:
        other = next((word(node.get("kind")) for node in nodes), "")
        raise UsageError(
            "holds no Kubernetes node",
            path=source,
            hint="run: kubectl get nodes -o json" if other else "may you list the nodes?",
        )
    return Found("kubectl get nodes", machines)


def _machine(node: dict[str, Any]) -> Machine:
    metadata, status = table(node.get("metadata")), table(node.get("status"))
    labels, info = table(metadata.get("labels")), table(status.get("nodeInfo"))
    gpus, where = _gpus(labels, table(status.get("capacity")))
    facts: list[tuple[str, Told]] = []
    driver = _driver(labels)
    if driver and where == f"label {_PRODUCT}":
        facts.append(("driver", Told(driver, "labels nvidia.com/cuda.driver-version.*")))
    system = word(info.get("operatingSystem")) or word(labels.get("kubernetes.io/os"))
    machine = word(info.get("architecture")) or word(labels.get("kubernetes.io/arch"))
    if system and machine:
        facts.append(("platform", Told(f"{system}-{machine}", "nodeInfo")))
    image = word(info.get("osImage"))
    glibc = glibc_of(image)
    if glibc and system in ("", "linux"):
        facts.append(
            ("glibc", Told(glibc, f"{image} on the node", "a container brings its own glibc"))
        )
    return Machine(word(metadata.get("name")), gpus, where, tuple(facts))


def _gpus(labels: dict[str, Any], capacity: dict[str, Any]) -> tuple[tuple[SeenGpu, ...], str]:
    product = word(labels.get(_PRODUCT))
    if product:
        major = word(labels.get("nvidia.com/gpu.compute.major"))
        minor = word(labels.get("nvidia.com/gpu.compute.minor"))
        known = re.fullmatch(r"[0-9]{1,2}", major) and re.fullmatch(r"[0-9]", minor)
        capability = (int(major), int(minor)) if known else None
        return (SeenGpu(product, capability),), f"label {_PRODUCT}"
    for label in _OTHER_LABELS:
        name = word(labels.get(label))
        if name:
            return (SeenGpu(name),), f"label {label}"
    for label in _INSTANCE_LABELS:
        name = word(labels.get(label))
        if name and _has_gpu(name):
            return (SeenGpu(name),), f"label {label}"
    if any(
        _RESOURCE.fullmatch(key) and word(number) not in ("", "0")
        for key, number in capacity.items()
    ):
        return (SeenGpu(""),), "the capacity counts GPUs, no label names them"
    if any(_ON_BUS.fullmatch(key) and word(value) == "true" for key, value in labels.items()):
        return (SeenGpu(""),), "a PCI label tells of a GPU, no label names it"
    return (), "no GPU label, no GPU in the capacity"


def _has_gpu(instance: str) -> bool:
    from torchpin.fleet.gpus import find_gpu

    if "." not in instance and "_" not in instance and "-" not in instance:
        return False
    try:
        return bool(find_gpu(instance))
    except ConfigError:
        return False


def _driver(labels: dict[str, Any]) -> str:
    full = word(labels.get("nvidia.com/cuda.driver-version.full"))
    if full:
        return full
    for prefix, last in (("driver-version", "revision"), ("driver", "rev")):
        parts = [
            word(labels.get(f"nvidia.com/cuda.{prefix}.{part}"))
            for part in ("major", "minor", last)
        ]
        if parts[0]:
            return ".".join(part for part in parts if part)
    return ""
