"""Manifests that the schemas of Kubernetes accept, and what runs in their pods."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.verify.fake_install import V100, install

from torchpin.cli.main import main
from torchpin.errors import UsageError
from torchpin.verify.cluster import bundle
from torchpin.verify.cluster.kubernetes import Asked, documents, to_yaml
from torchpin.verify.cluster.model import Expected

IMAGE = "registry.example/torch:2.14.1"
NODES = {
    "kind": "List",
    "apiVersion": "v1",
    "items": [
        {
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kubernetes.io/hostname": f"{name}.example", **labels},
            },
            "spec": spec,
            "status": {
                "allocatable": {"nvidia.com/gpu": gpus},
                "capacity": {"nvidia.com/gpu": gpus},
                "conditions": [{"type": "Ready", "status": ready, "message": message}],
            },
        }
        for name, gpus, ready, message, spec, labels in [
            ("a1", "8", "True", "", {}, {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}),
            ("a2", "8", "True", "", {}, {"nvidia.com/gpu.product": "Tesla-V100-SXM2-32GB"}),
            ("b1", "1", "True", "", {}, {"nvidia.com/gpu.product": "Tesla-T4"}),
            ("b2", "1", "Unknown", "Kubelet stopped posting node status.", {}, {}),
            ("b3", "1", "True", "", {"unschedulable": True}, {}),
            ("cpu1", "0", "True", "", {}, {}),
        ]
    ],
}


def torchpin(folder: Path, *words: str, code: int = 0) -> str:
    """Return what ``torchpin verify`` prints; both streams where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "torchpin", "verify", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + (done.stderr if code else "")


def manifest(folder: Path, *words: str) -> dict[str, dict[str, Any]]:
    """Return the objects by kind and name; the schemas of Kubernetes accept each."""
    text = torchpin(folder, "--kubernetes", f"--image={IMAGE}", *words)
    found: dict[str, dict[str, Any]] = {}
    for one in yaml.safe_load_all(text):
        valid(one)
        found[f"{one['kind']}/{one['metadata']['name']}"] = one
    return found


def valid(document: dict[str, Any]) -> None:
    """Hold an object against the published schemas, strictly: no unknown field."""
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    version = kubernetes_validate.latest_version()
    kubernetes_validate.validate(document, version, strict=True)


def parts(made: dict[str, dict[str, Any]]) -> list[str]:
    """Return the names of what brings torchpin."""
    return [name for name in made if name.startswith("ConfigMap/")]


def pod(workload: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = workload["spec"]["template"]["spec"]
    return spec


def expressions(workload: dict[str, Any]) -> list[dict[str, Any]]:
    affinity = pod(workload)["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (term,) = terms
    found: list[dict[str, Any]] = term["matchExpressions"]
    return found


def test_the_schemas_are_strict() -> None:
    (wrong,) = documents(Asked(IMAGE, "daemonset"), None)
    wrong["spec"]["template"]["spec"]["restartPolicies"] = "Always"
    pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    with pytest.raises(Exception, match="restartPolicies"):
        valid(wrong)


def test_a_daemonset_goes_to_every_node_with_a_gpu(tmp_path: Path) -> None:
    made = manifest(tmp_path)
    assert [*made] == [*parts(made), "DaemonSet/torchpin-verify"]
    assert parts(made)[:2] == [f"ConfigMap/torchpin-verify-part-{number}" for number in (0, 1)]
    spec = pod(made["DaemonSet/torchpin-verify"])
    assert spec["restartPolicy"] == "Always"  # the only one that a DaemonSet may have
    assert spec["containers"][0]["args"][1] == "stay"  # so that it is not started again and again
    assert spec["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert expressions(made["DaemonSet/torchpin-verify"]) == [
        {"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}
    ]
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert spec["tolerations"] == [toleration]


def test_pods_have_no_privilege_and_no_token(tmp_path: Path) -> None:
    made = manifest(tmp_path, "--kind=daemonset")
    spec = pod(made["DaemonSet/torchpin-verify"])
    assert spec["automountServiceAccountToken"] is False
    security = spec["containers"][0]["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    text = json.dumps(made)
    for word in ("privileged", "hostPath", "hostNetwork", "hostPID"):
        assert f'"{word}"' not in text


def test_a_job_has_one_pod_a_node_and_all_gpus_of_the_node(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(json.dumps(NODES))
    made = manifest(tmp_path, "--nodes=nodes.json", "-q")
    small, big = made["Job/torchpin-verify-0"], made["Job/torchpin-verify-1"]
    assert (small["spec"]["completions"], small["spec"]["parallelism"]) == (1, 1)
    assert (big["spec"]["completions"], big["spec"]["parallelism"]) == (2, 2)
    assert big["spec"]["completionMode"] == "Indexed"
    assert pod(big)["restartPolicy"] == "Never"
    assert pod(big)["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 8}}
    (names,) = expressions(big)
    assert names["key"] == "kubernetes.io/hostname"
    assert names["values"] == ["a1.example", "a2.example"]
    (apart,) = pod(big)["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    # the pods of both Jobs keep away from each other: their labels are those of the selector
    labels = small["spec"]["template"]["metadata"]["labels"]
    assert apart["labelSelector"]["matchLabels"].items() <= labels.items()


def test_nodes_that_take_no_pod_are_named(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(json.dumps(NODES))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torchpin", "verify", "--kubernetes", "--image=i"),
            *("--nodes=nodes.json", "--in-image", "-o", "out.yaml"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "b2 gets no pod: not ready: Kubelet stopped posting node status." in done.stderr
    assert "b3 gets no pod: cordoned" in done.stderr
    assert "create its pods: kubectl apply -f out.yaml" in done.stderr
    assert "b2" not in (tmp_path / "out.yaml").read_text()


def test_options_reach_the_manifest(tmp_path: Path) -> None:
    made = manifest(
        tmp_path,
        *("--kind=job", "--count=3", "--gpus=4", "--name=check", "--namespace=ml", "--in-image"),
        *("--node-selector=pool=true", "--toleration=dedicated=ml:NoExecute", "--toleration=x"),
        *("--python=/opt/conda/bin/python", "--timeout=60", "--run-as-user=1000"),
        *("--image-pull-secret=registry", "--wait=100", "--node-timeout=200"),
    )
    (job,) = made.values()
    assert [*made] == ["Job/check"]
    assert job["metadata"]["namespace"] == "ml"
    assert job["spec"]["completions"] == 3
    assert job["spec"]["activeDeadlineSeconds"] == 300
    spec = pod(job)
    (container,) = spec["containers"]
    assert container["command"][0] == "/opt/conda/bin/python"
    assert container["args"] == ["-", "end", "--timeout=60"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 4}}
    assert container["securityContext"]["runAsNonRoot"] is True
    assert spec["nodeSelector"] == {"pool": "true"}  # a text, not a truth
    assert "nodeAffinity" not in spec["affinity"]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["tolerations"][1:] == [
        {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoExecute"},
        {"key": "x", "operator": "Exists"},
    ]


def test_other_vendors_and_nodes_without_gpu(tmp_path: Path) -> None:
    made = manifest(tmp_path, "--resource=amd.com/gpu", "--gpus=2", "--in-image")
    spec = pod(made["DaemonSet/torchpin-verify"])
    assert spec["containers"][0]["resources"] == {"limits": {"amd.com/gpu": 2}}
    assert "affinity" not in spec
    made = manifest(tmp_path, "--gpus=0", "--in-image")
    spec = pod(made["DaemonSet/torchpin-verify"])
    assert "resources" not in spec["containers"][0]
    assert "affinity" not in spec


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--image="], "say which image is tried"),
        (["--image=a b"], "say which image is tried"),
        (["--image=user:hunter2@reg.example/torch:1"], "--image is no name of an image"),
        (["--image=https://user:hunter2@reg.example/torch"], "--image is no name of an image"),
        (["--image=i", "--kind=job"], "a Job needs to know for how many nodes"),
        (["--image=i", "--kind=daemonset", "--count=2"], "goes with --kind job"),
        (["--image=i", "--count=0"], "--count takes a number above 0"),
        (["--image=i", "--gpus=-1"], "--gpus takes a number from 0"),
        (["--image=i", "--name=Not_DNS"], "no name for Kubernetes"),
        (["--image=i", "--namespace=a/b"], "no name for Kubernetes"),
        (["--image=i", "--node-selector=nonsense"], "is not LABEL=VALUE"),
        (["--image=i", "--node-selector=a=b c"], "is not LABEL=VALUE"),
        (["--image=i", "--toleration=a=b:Never"], "is not KEY[=VALUE][:EFFECT]"),
        (["--image=i", "--resource=gpu"], "no name of a resource"),
        (["--image=i", "--run-as-user=-5"], "takes the number of a user"),
        (["--image=i", "--group=x"], "do not go with --kubernetes"),
        (["--image=i", "--slurm"], "cannot stand together"),
        (["--image=i", "--nodes=missing.json"], "cannot be read"),
        (["--image=i", "--", "-p", "x"], "options of srun go with --slurm"),
    ],
    ids=str,
)
def test_what_kubernetes_does_not_take(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        main(["verify", "--kubernetes", *words])
    assert message in str(caught.value)
    assert "hunter2" not in f"{caught.value}{caught.value.hint}"


@pytest.mark.parametrize(
    "image",
    [
        "python",
        "nvcr.io/nvidia/pytorch:25.01-py3",
        "localhost:5000/a/b_c:v1.0",
        "[::1]:5000/a:b",
        "reg.example/torch@sha256:" + "0a" * 32,
        "reg.example:443/team/torch:2.9@sha256:" + "0a" * 32,
    ],
)
def test_names_of_images(image: str, tmp_path: Path) -> None:
    made = manifest(tmp_path, f"--image={image}", "--in-image")
    assert pod(made["DaemonSet/torchpin-verify"])["containers"][0]["image"] == image


def test_texts_that_yaml_would_read_otherwise_stay_texts() -> None:
    asked = Asked("123", "job", nodes=(Expected("no", gpus=1), Expected("1e3", gpus=1)))
    text = to_yaml(documents(asked, None), ["a comment"])
    (job,) = yaml.safe_load_all(text)
    assert pod(job)["containers"][0]["image"] == "123"
    assert expressions(job)[0]["values"] == ["no", "1e3"]
    assert "&" not in text.split("command:")[0]  # no anchors: some tools do not read them


def test_the_same_torchpin_makes_the_same_manifest(tmp_path: Path) -> None:
    words = ["--kubernetes", f"--image={IMAGE}"]
    assert torchpin(tmp_path, *words) == torchpin(tmp_path, *words)


def unpack(made: dict[str, dict[str, Any]], folder: Path) -> bytes:
    """Write the parts of torchpin as a pod finds them; return the whole."""
    whole = b""
    for name in parts(made):
        ((file, text),) = made[name]["binaryData"].items()
        (folder / file).write_bytes(base64.b64decode(text))
        whole += (folder / file).read_bytes()
    (folder / "..data").mkdir()  # as in a volume of ConfigMaps
    return whole


def test_the_config_maps_fit_into_the_annotation_of_kubectl_apply(tmp_path: Path) -> None:
    made = manifest(tmp_path)
    for name in parts(made):
        assert len(json.dumps(made[name])) < 256 * 1024
    names = zipfile.ZipFile(io.BytesIO(unpack(made, tmp_path))).namelist()
    assert "torchpin/verify/worker.py" in names
    assert not [name for name in names if "/rules/" in name or name.startswith("/")]


def test_the_command_of_the_pod_runs_where_torchpin_is_not_installed(tmp_path: Path) -> None:
    made = manifest(tmp_path, "--count=1")
    (container,) = pod(made["Job/torchpin-verify"])["containers"]
    unpack(made, tmp_path)
    python = install(tmp_path / "good", {"devices": [V100], "archs": ["sm_70"]})
    # -I -S: this Python with neither its packages nor its variables
    command = [sys.executable, "-I", "-S", *container["command"][1:]]
    _, *rest = container["args"]
    done = subprocess.run(
        [*command, str(tmp_path), *rest, f"--python={python}"],
        capture_output=True,
        text=True,
        env={"NODE_NAME": "gpu-7", "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["node"] for line in lines} == {"gpu-7"}
    assert lines[-1]["status"] == "ok"
    predicted = {line["predicted"] for line in lines if line["kind"] == "work"}
    assert "runs" in predicted  # the facts of the catalog are in the bundle


def test_a_failure_ends_the_pod_well_and_a_wrong_option_does_not(tmp_path: Path) -> None:
    for name, part in bundle.parts(bundle.build()).items():
        (tmp_path / name).write_bytes(part)
    python = install(tmp_path / "none", None)
    for words, code in (([f"--python={python}"], 0), (["--gpu=x"], 2)):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", bundle.PROGRAM, str(tmp_path), "end", *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
