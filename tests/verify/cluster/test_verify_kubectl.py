"""The real kubectl does what the manifest says to do, at a small API server that runs the pods."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes_api import TOKEN, Kubectl, cluster
from tests.verify.fake_install import V100, install

PRODUCT = "Tesla-V100-SXM2-32GB"
READY = {"type": "Ready", "status": "True"}
GONE = {"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
SCRIPT = """\
#!/bin/sh
case "$NODE_NAME" in bad1) exec {bad} "$@";; *) exec {good} "$@";; esac
"""
PROFILE = """\
[fleet.training]
gpus = ["Tesla V100"]
platform = "linux-x86_64"
"""
MINOR = 29
"""Of the first kubectl 1.x that checks a manifest by OpenAPI v3 alone."""


def node(name: str, gpus: int, condition: dict[str, str] = READY, *taints: object) -> Any:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64"}
    labels["kubernetes.io/os"] = "linux"
    if gpus:
        labels |= {
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": PRODUCT,
            "nvidia.com/gpu.count": str(gpus),
            "nvidia.com/gpu.compute.major": "7",
            "nvidia.com/gpu.compute.minor": "0",
            "nvidia.com/cuda.driver-version.full": "550.54.15",
        }
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [*taints]},
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus)},
            "conditions": [condition],
            "nodeInfo": {"osImage": "Ubuntu 22.04.5 LTS", "architecture": "amd64"},
        },
    }


NODES = [
    node("a1", 1, READY, TAINT),
    node("bad1", 1),
    node("cpu1", 0),
    node("full1", 2),
    node("gone1", 1, GONE),
    node("pull1", 1),
]


def valid(document: dict[str, Any]) -> None:
    """Hold an object against the published schemas, where they are installed."""
    try:
        schemas = import_module("kubernetes_validate")
    except ImportError:
        return
    schemas.validate(document, schemas.latest_version(), strict=True)


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    version = subprocess.run(
        [program, "version", "--client", "-o", "json"], capture_output=True, check=True
    )
    told_minor = json.loads(version.stdout)["clientVersion"]["minor"]
    if int(told_minor.rstrip("+")) < MINOR:
        pytest.skip(f"kubectl 1.{told_minor} asks for schemas that the server here does not have")
    good: dict[str, Any] = {"devices": [V100], "archs": ["sm_50", "sm_70"]}
    image = {"raise": "AcceleratorError", "error_code": 209, "message": "CUDA error: no image"}
    bad = {**good, "archs": ["sm_75"], "work": {"sin float32": image}}
    python = tmp_path / "python"
    python.write_text(
        SCRIPT.format(good=install(tmp_path / "good", good), bad=install(tmp_path / "bad", bad))
    )
    python.chmod(0o755)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(program)
    (programs / "torchpin").write_text(f'#!/bin/sh\nexec {sys.executable} -m torchpin "$@"\n')
    (programs / "torchpin").chmod(0o755)
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    with cluster(program, NODES, tmp_path, valid) as running:
        running.environ["PATH"] = f"{programs}{os.pathsep}{running.environ['PATH']}"
        running.cluster.unpullable.add("pull1")
        other: Any = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
        spec = {"nodeName": "full1", "containers": [other]}
        place = {"metadata": {"name": "other", "labels": {}}, "spec": spec, "status": {}}
        running.cluster.put("pods", "default", place)
        yield running
        assert not running.cluster.faults


def told(kubectl: Kubectl, line: str, code: int = 0) -> str:
    """Run a line of a shell as a user does, and return all that it prints."""
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=kubectl.folder,
        env=kubectl.environ,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == code, (line, done.stdout, done.stderr)
    assert TOKEN not in done.stdout + done.stderr
    return done.stdout + done.stderr


def written(kubectl: Kubectl, words: str) -> list[str]:
    """Write the manifest, and return the commands that it tells."""
    python = shlex.quote(str(kubectl.folder / "python"))
    told(
        kubectl, f"torchpin verify --kubernetes --image i --python {python} {words} -o verify.yaml"
    )
    text = (kubectl.folder / "verify.yaml").read_text()
    assert TOKEN not in text
    return [line[4:] for line in text.split("\n") if line.startswith("#   ")]


def test_what_the_manifest_says_to_do_tries_the_nodes(kubectl: Kubectl) -> None:
    told(kubectl, "kubectl get nodes -o json > nodes.json")
    create, *collect, delete = written(kubectl, "--nodes nodes.json")
    assert create == "kubectl apply -f verify.yaml"
    told(kubectl, f"{create} --dry-run=client")
    told(kubectl, f"{create} --dry-run=server")
    assert "job.batch/torchpin-verify-1 created" in told(kubectl, create)
    kubectl.cluster.wait("nothing")
    for line in collect[:-1]:
        told(kubectl, line)
    report = told(kubectl, collect[-1], code=1)
    assert "1 node   ok         a1: 1 x Tesla V100-SXM2-32GB, torch 2.14.1+cu126" in report
    assert "1 node   failed     bad1" in report
    assert "no kernel image (CUDA error 209)" in report
    for reason in (
        "full1\n      - no pod is on it; torchpin-verify-1-0 is Pending: Unschedulable: 0/1",
        "gone1\n      - not ready: Kubelet stopped posting node status.",
        "pull1\n      - its pod is Pending: ImagePullBackOff",
    ):
        assert f"1 node   no answer  {reason}" in report
    assert report.endswith("5 nodes: 1 ok, 1 failed, 3 no answer\n")
    assert 'configmap "torchpin-verify-part-0" deleted' in told(kubectl, delete)
    assert [one["metadata"]["name"] for one in kubectl.cluster.listed("pods", None)] == ["other"]


def test_a_daemonset_stays_until_it_is_deleted(kubectl: Kubectl) -> None:
    create, nodes, *collect, delete = written(kubectl, "--namespace ml")
    assert nodes == "kubectl get nodes -o json > nodes.json"
    assert 'namespaces "ml" not found' in told(kubectl, create, code=1)
    kubectl.cluster.put("namespaces", "", {"metadata": {"name": "ml"}})
    told(kubectl, create)
    kubectl.cluster.wait('"kind": "summary"')
    # without --ignore-errors kubectl stops at the first pod that has not begun
    assert "Error from server" in told(kubectl, collect[0].replace("--ignore-errors ", ""), 1)
    for line in (nodes, *collect[:-1]):
        told(kubectl, line)
    report = told(kubectl, f"{collect[-1]} --output-format json", code=1)
    states = {one["node"]: one["status"] for one in json.loads(report)["nodes"]}
    lost = dict.fromkeys(("gone1", "pull1"), "no-answer")
    assert states == {"a1": "ok", "bad1": "failed", "full1": "ok", **lost}
    processes = [*kubectl.cluster.processes.values()]
    assert {process.poll() for process in processes} == {None}
    told(kubectl, delete)
    assert {process.poll() for process in processes} == {143}


def test_the_fleet_is_imported_from_the_nodes(kubectl: Kubectl) -> None:
    profile = told(kubectl, "kubectl get nodes -o json | torchpin fleet import - -q")
    assert 'gpus = ["Tesla-V100-SXM2-32GB"]' in profile
    assert 'platform = "linux-x86_64"' in profile
    assert 'driver = "550.54.15"' in profile
    names = told(kubectl, "kubectl get nodes -o name > names; cat names")
    assert "node/a1" in names
    report = told(kubectl, "torchpin verify --from /dev/null --nodes names", code=1)
    assert report.endswith("6 nodes: 6 no answer\n")


@pytest.mark.parametrize(
    "command",
    [
        "fleet import config",
        "verify --from config",
        "verify --from /dev/null --nodes config",
        "verify --from /dev/null --pods config",
        "verify --kubernetes --image i --nodes config",
        "check config --gpu V100",
        "check --config config",
    ],
)
def test_nothing_of_a_configuration_of_kubectl_is_shown(kubectl: Kubectl, command: str) -> None:
    config = kubectl("config", "view", "--raw")
    assert TOKEN in config
    (kubectl.folder / "config").write_text(config)
    code = 1 if command.startswith("check config") else 2
    told(kubectl, f"torchpin {command}", code=code)
