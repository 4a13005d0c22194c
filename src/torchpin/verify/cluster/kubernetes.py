"""The manifest of a DaemonSet or an indexed Job that verifies each node in a pod; pure.

Nodes are chosen by the labels of NVIDIA's GPU Feature Discovery, by labels that are given, or by
their names. A pod asks for all GPUs of its node, runs without privileges and without a token of
the API server, and prints JSON lines.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torchpin.errors import UsageError
from torchpin.named import NamedTuple
from torchpin.verify.cluster.bundle import PROGRAM, parts
from torchpin.verify.cluster.model import Expected

DAEMONSET, JOB = "daemonset", "job"
NVIDIA = "nvidia.com/gpu"
APP = "torchpin-verify"
_PRESENT = "nvidia.com/gpu.present"
_HOSTNAME = "kubernetes.io/hostname"
_NAME_LABEL, _INSTANCE = "app.kubernetes.io/name", "app.kubernetes.io/instance"
_FOLDER = "/opt/torchpin"
_DNS = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_IMAGE = (
    r"(?:(?:[\w.-]+|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?"
    r"[\w./-]+(?::[\w.-]+)?(?:@[\w+.-]+:[0-9a-fA-F]+)?"
)
_KEY = (
    r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_VALUE = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

Object = dict[str, Any]


class Asked(NamedTuple):
    """What the manifest is for."""

    image: str
    kind: str
    """``DAEMONSET`` or ``JOB``."""
    name: str = APP
    namespace: str | None = None
    python: str = "python3"
    """Of the image."""
    options: tuple[str, ...] = ()
    """Of ``torchpin verify`` in the pod."""
    nodes: tuple[Expected, ...] = ()
    """Those to verify; empty: those that the labels say."""
    number: int = 0
    """How many nodes a Job is for; 0: those of ``nodes``."""
    gpus: int | None = None
    """GPUs that a pod asks for; None: those of its node, or one."""
    resource: str = NVIDIA
    selectors: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[tuple[str, str | None, str], ...] = ()
    """Key, value (None: any) and effect (``""``: any)."""
    pull_secret: str | None = None
    """Name of the secret that lets the image be pulled."""
    user: int | None = None
    """Number of the user that the pods run as; None: that of the image."""
    seconds: int = 3600
    """A Job is ended after this."""


def documents(asked: Asked, bundle: bytes | None) -> list[Object]:
    """Return the objects of the manifest.

    Args:
        asked: what it is for.
        bundle: torchpin for an image that lacks it; None: it is in the image.

    Raises:
        UsageError: a name, label or number that Kubernetes does not take.
    """
    _check(asked)
    brought = [
        (f"{asked.name}-part-{number}", file, part)
        for number, (file, part) in enumerate(parts(bundle or b"").items())
    ]
    made: list[Object] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": _metadata(asked, name),
            "binaryData": {file: base64.b64encode(part).decode("ascii")},
        }
        for name, file, part in brought
    ]
    maps = [name for name, _, _ in brought]
    shapes = _shapes(asked)
    for number, (gpus, nodes) in enumerate(shapes):
        name = asked.name if len(shapes) == 1 else f"{asked.name}-{number}"
        made.append(_workload(asked, name, gpus, nodes, maps))
    return made


def to_yaml(objects: Iterable[Object], comments: Sequence[str]) -> str:
    """Return objects as YAML documents below a comment."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts of several lines as they are."""

        def ignore_aliases(self, data: Any) -> bool:
            """Write what stands twice twice."""
            return True

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = "|" if "\n" in value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    head = "".join(f"# {line}".rstrip() + "\n" for line in comments)
    body = yaml.dump_all(
        objects,
        Dumper=Dumper,
        sort_keys=False,
        default_flow_style=False,
        explicit_start=True,
        allow_unicode=False,
        width=4096,
    )
    return head + body


def read_selector(text: str) -> tuple[str, str]:
    """Return key and value of ``LABEL=VALUE``.

    Raises:
        UsageError: it is none.
    """
    key, equals, value = text.partition("=")
    if not equals or not re.fullmatch(_KEY, key) or not re.fullmatch(_VALUE, value):
        raise UsageError(
            f"--node-selector {text!r} is not LABEL=VALUE", hint=f"write {_PRESENT}=true"
        )
    return key, value


def read_toleration(text: str) -> tuple[str, str | None, str]:
    """Return key, value and effect of ``KEY[=VALUE][:EFFECT]``.

    Raises:
        UsageError: it is none.
    """
    rest, colon, effect = text.partition(":")
    key, equals, value = rest.partition("=")
    if (
        not re.fullmatch(_KEY, key)
        or not re.fullmatch(_VALUE, value)
        or (colon and effect not in _EFFECTS)
    ):
        raise UsageError(
            f"--toleration {text!r} is not KEY[=VALUE][:EFFECT]",
            hint=f"write gpu=reserved:NoSchedule; effects are {', '.join(_EFFECTS)}",
        )
    return key, value if equals else None, effect


def _check(asked: Asked) -> None:
    if not asked.image or not asked.image.isprintable() or " " in asked.image:
        raise UsageError(
            "say which image is tried: --image NAME", hint="the image that your pods use"
        )
    if not re.fullmatch(_IMAGE, asked.image):
        raise UsageError(
            "--image is no name of an image: [HOST[:PORT]/]NAME[:TAG][@DIGEST]",
            hint="a login does not go into it: see --image-pull-secret",
        )
    for option, name, most in (
        ("--name", asked.name, 50),
        ("--namespace", asked.namespace, 63),
        ("--image-pull-secret", asked.pull_secret, 253),
    ):
        if name is not None and (len(name) > most or not re.fullmatch(_DNS, name)):
            raise UsageError(
                f"{option} {name!r}: no name for Kubernetes",
                hint=f"lower-case letters, digits and dashes, at most {most}",
            )
    if asked.user is not None and not 0 <= asked.user < 2**31:
        raise UsageError("--run-as-user takes the number of a user")
    if not re.fullmatch(_KEY, asked.resource) or "/" not in asked.resource:
        raise UsageError(f"--resource {asked.resource!r}: no name of a resource")
    if asked.gpus is not None and not 0 <= asked.gpus <= 1024:
        raise UsageError("--gpus takes a number from 0")
    if asked.number and (asked.kind != JOB or asked.number < 0):
        raise UsageError("--count takes a number above 0, and goes with --kind job")
    if asked.kind == JOB and not asked.number and not asked.nodes:
        raise UsageError(
            "a Job needs to know for how many nodes it is",
            hint="give --count N or --nodes FILE (kubectl get nodes -o json), or --kind daemonset",
        )


def _shapes(asked: Asked) -> list[tuple[int, tuple[Expected, ...]]]:
    """Return the nodes by how many GPUs they have: a pod asks for all of a node."""
    if not asked.nodes:
        return [(1 if asked.gpus is None else asked.gpus, ())]
    if asked.gpus is not None:
        return [(asked.gpus, asked.nodes)]
    found: dict[int, list[Expected]] = {}
    for node in asked.nodes:
        found.setdefault(node.gpus, []).append(node)
    return [(gpus, tuple(nodes)) for gpus, nodes in sorted(found.items())]


def _metadata(asked: Asked, name: str) -> Object:
    made: Object = {"name": name}
    if asked.namespace is not None:
        made["namespace"] = asked.namespace
    return {**made, "labels": _labels(asked)}


def _labels(asked: Asked) -> Object:
    return {_NAME_LABEL: APP, _INSTANCE: asked.name}


def _workload(
    asked: Asked, name: str, gpus: int, nodes: Sequence[Expected], maps: Sequence[str]
) -> Object:
    labels = {**_labels(asked), "app.kubernetes.io/component": name}
    template = {"metadata": {"labels": labels}, "spec": _pod(asked, gpus, nodes, maps)}
    if asked.kind == DAEMONSET:
        return {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": _metadata(asked, name),
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    count = asked.number or len(nodes)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(asked, name),
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimitPerIndex": 0,
            "activeDeadlineSeconds": asked.seconds,
            "template": template,
        },
    }


def _pod(asked: Asked, gpus: int, nodes: Sequence[Expected], maps: Sequence[str]) -> Object:
    job = asked.kind == JOB
    mounts: list[Object] = [{"name": "tmp", "mountPath": "/tmp"}]
    volumes: list[Object] = [{"name": "tmp", "emptyDir": {}}]
    if maps:
        mounts.append({"name": "torchpin", "mountPath": _FOLDER, "readOnly": True})
        sources = [{"configMap": {"name": one}} for one in maps]
        volumes.append({"name": "torchpin", "projected": {"sources": sources}})
    container: Object = {
        "name": "verify",
        "image": asked.image,
        "command": [asked.python, "-c", PROGRAM],
        "args": [
            _FOLDER if maps else "-",
            "end" if job else "stay",
            *asked.options,
        ],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if asked.user is not None:
        container["securityContext"] |= {"runAsUser": asked.user, "runAsNonRoot": asked.user > 0}
    if gpus:
        container["resources"] = {"limits": {asked.resource: gpus}}
    affinity = _affinity(asked, gpus, nodes, job=job)
    made: Object = {
        "restartPolicy": "Never" if job else "Always",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "tolerations": _tolerations(asked),
    }
    if asked.pull_secret is not None:
        made["imagePullSecrets"] = [{"name": asked.pull_secret}]
    if asked.selectors:
        made["nodeSelector"] = dict(asked.selectors)
    if affinity:
        made["affinity"] = affinity
    return {**made, "containers": [container], "volumes": volumes}


def _tolerations(asked: Asked) -> list[Object]:
    made: list[Object] = [{"key": asked.resource, "operator": "Exists", "effect": "NoSchedule"}]
    for key, value, effect in asked.tolerations:
        one: Object = {"key": key, "operator": "Exists" if value is None else "Equal"}
        if value is not None:
            one["value"] = value
        if effect:
            one["effect"] = effect
        made.append(one)
    return made


def _affinity(asked: Asked, gpus: int, nodes: Sequence[Expected], *, job: bool) -> Object:
    made: Object = {}
    wanted: Mapping[str, list[str]] = {}
    if nodes:
        wanted = {_HOSTNAME: [node.hostname or node.name for node in nodes]}
    elif not asked.selectors and gpus and asked.resource == NVIDIA:
        wanted = {_PRESENT: ["true"]}
    if wanted:
        terms = [{"key": key, "operator": "In", "values": found} for key, found in wanted.items()]
        made["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": terms}]
            }
        }
    if job:  # one pod a node
        made["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": _labels(asked)},
                    "topologyKey": _HOSTNAME,
                }
            ]
        }
    return made
