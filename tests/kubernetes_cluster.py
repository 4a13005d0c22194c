"""Objects of a cluster of Kubernetes, placed on nodes as a scheduler does, and run as processes.

What a real API server refuses is refused: schemas, sizes, names that are taken.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Object = dict[str, Any]
KINDS = {
    "namespaces": ("v1", "Namespace"),
    "nodes": ("v1", "Node"),
    "pods": ("v1", "Pod"),
    "configmaps": ("v1", "ConfigMap"),
    "daemonsets": ("apps/v1", "DaemonSet"),
    "jobs": ("batch/v1", "Job"),
}
UNBOUND = ("namespaces", "nodes")
"""Kinds of objects that stand in no namespace."""
MOST_ANNOTATED = 256 * 1024
MOST = 1024 * 1024


class RefusedError(Exception):
    """What the server answers instead."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message


class Cluster:
    """The objects of a cluster, and the processes of its pods."""

    def __init__(self, nodes: list[Object], folder: Path, validate: Callable[[Object], None]):
        self.folder = folder
        self.validate = validate
        self.lock = threading.RLock()
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.unpullable: set[str] = set()
        """Nodes that cannot pull an image."""
        self.requests: list[str] = []
        self.faults: list[str] = []
        """Of this server."""
        self.number = 0
        for node in nodes:
            self.put("nodes", "", node)
        self.put("namespaces", "", {"metadata": {"name": "default"}})

    def put(self, kind: str, space: str, one: Object) -> Object:
        """Add an object, and what a controller adds because of it."""
        version, name = KINDS[kind]
        self.number += 1
        meta = {**one["metadata"], "uid": f"uid-{self.number}"}
        meta["resourceVersion"] = str(self.number)
        meta["creationTimestamp"] = "2026-01-01T00:00:00Z"
        if space:
            meta["namespace"] = space
        made = {**one, "apiVersion": version, "kind": name, "metadata": meta}
        self.objects[kind, space, meta["name"]] = made
        return made

    def listed(self, kind: str, space: str | None, selector: str = "") -> list[Object]:
        wanted = dict(part.split("=", 1) for part in selector.split(",") if part)
        return [
            one
            for (of, where, _), one in sorted(self.objects.items())
            if of == kind
            and space in (None, where)
            and wanted.items() <= one["metadata"].get("labels", {}).items()
        ]

    def create(self, kind: str, space: str, one: Object, *, dry: bool) -> Object:
        """Take an object as an API server does."""
        name = one["metadata"]["name"]
        if (kind, space, name) in self.objects:
            raise RefusedError(409, "AlreadyExists", f'{kind} "{name}" already exists')
        if kind not in UNBOUND and ("namespaces", "", space) not in self.objects:
            raise RefusedError(404, "NotFound", f'namespaces "{space}" not found')
        annotated = sum(map(len, one["metadata"].get("annotations", {}).values()))
        if annotated > MOST_ANNOTATED:
            raise RefusedError(
                422,
                "Invalid",
                f'{KINDS[kind][1]} "{name}" is invalid: metadata.annotations: Too long: '
                f"must have at most {MOST_ANNOTATED} bytes",
            )
        held = sum(len(base64.b64decode(text)) for text in one.get("binaryData", {}).values())
        if held > MOST:
            raise RefusedError(422, "Invalid", f"must have at most {MOST} bytes")
        try:
            self.validate(one)
        except Exception as error:
            raise RefusedError(400, "BadRequest", f"strict decoding error: {error}") from error
        if dry:
            return one
        made = self.put(kind, space, one)
        if kind in ("daemonsets", "jobs"):
            self._start(made, kind == "jobs")
        return made

    def delete(self, kind: str, space: str, name: str) -> None:
        """Remove an object and its pods."""
        del self.objects[kind, space, name]
        for pod in self.listed("pods", space):
            if _owner(pod) == name:
                self.stop(pod["metadata"]["name"])
                del self.objects["pods", space, pod["metadata"]["name"]]

    def stop(self, pod: str) -> None:
        process = self.processes.pop(pod, None)
        if process is not None:
            process.terminate()
            process.wait(30)

    def wait(self, line: str) -> None:
        """Wait until each process has ended, or has printed ``line``."""
        for name, process in [*self.processes.items()]:
            log = self.folder / f"{name}.log"
            for _ in range(1200):
                if process.poll() is not None or line in log.read_text("utf-8"):
                    break
                time.sleep(0.05)
            else:
                raise AssertionError(log.read_text("utf-8"))

    def _start(self, owner: Object, job: bool) -> None:
        """Make the pods of a workload; a DaemonSet makes one for each node that its labels say."""
        template = owner["spec"]["template"]
        nodes = [one for one in self.listed("nodes", "") if _fits(template["spec"], one)]
        if job:
            nodes = [one for one in nodes if _is_ready(one)]
            for index in range(owner["spec"]["completions"]):
                free = [one for one in nodes if self._free(template, one)]
                self._pod(owner, f"{index}", free[0] if free else None, "")
            return
        for index, node in enumerate(nodes):
            fits = self._free(template, node)
            self._pod(owner, f"x{index}", node if fits else None, node["metadata"]["name"])

    def _free(self, template: Object, node: Object) -> bool:
        """Tell whether a pod finds its GPUs on a node, and no pod that it keeps away from."""
        name = node["metadata"]["name"]
        here = [pod for pod in self.listed("pods", None) if pod["spec"].get("nodeName") == name]
        away = template["spec"].get("affinity", {}).get("podAntiAffinity", {})
        for apart in away.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            labels = apart["labelSelector"]["matchLabels"].items()
            if any(labels <= pod["metadata"]["labels"].items() for pod in here):
                return False
        for resource, asked in _limits(template["spec"]).items():
            there = int(node["status"]["allocatable"].get(resource, "0"))
            if asked + sum(_limits(pod["spec"]).get(resource, 0) for pod in here) > there:
                return False
        return True

    def _pod(self, owner: Object, suffix: str, node: Object | None, meant: str) -> None:
        space = owner["metadata"]["namespace"]
        name = f"{owner['metadata']['name']}-{suffix}"
        template = json.loads(json.dumps(owner["spec"]["template"]))
        spec = template["spec"]
        if meant:
            terms = [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [meant]}]}
            ]
            spec["affinity"] = {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
                }
            }
        meta = {
            **template["metadata"],
            "name": name,
            "ownerReferences": [{"kind": owner["kind"], "name": owner["metadata"]["name"]}],
        }
        pod = self.put("pods", space, {"metadata": meta, "spec": spec, "status": {}})
        if node is None:
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.",
            }
            pod["status"] = {"phase": "Pending", "conditions": [condition]}
            return
        spec["nodeName"] = node["metadata"]["name"]
        maps = [name for _, name in _maps(spec)]
        waiting: Object = {}
        if not all(("configmaps", space, one) in self.objects for one in maps):
            waiting = {"reason": "ContainerCreating"}
        if spec["nodeName"] in self.unpullable:
            waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
        state = {"name": "verify", "ready": False, "state": {"waiting": waiting}}
        if waiting or not _is_ready(node):
            pod["status"] = {"phase": "Pending", "containerStatuses": [state] if waiting else []}
            return
        self._run(pod, space)

    def _run(self, pod: Object, space: str) -> None:
        """Run the container of a pod as a process, with its ConfigMap as a folder."""
        spec = pod["spec"]
        (container,) = spec["containers"]
        words = [*container["command"], *container["args"]]
        mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
        room = Path(tempfile.mkdtemp(dir=self.folder))
        for volume, name in _maps(spec):
            held = self.objects["configmaps", space, name]
            for file, text in held["binaryData"].items():
                (room / file).write_bytes(base64.b64decode(text))
            words = [str(room) if one == mounts[volume] else one for one in words]
        environ = {"PATH": os.defpath, "TMPDIR": str(room), "HOME": str(room)}
        for one in container["env"]:
            assert one["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
            environ[one["name"]] = spec["nodeName"]
        with self._log(pod).open("wb") as log:
            self.processes[pod["metadata"]["name"]] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, cwd=room
            )

    def _log(self, pod: Object) -> Path:
        return self.folder / f"{pod['metadata']['name']}.log"

    def log(self, pod: Object) -> bytes:
        """Return what a pod has printed, as the kubelet of its node answers."""
        name = pod["metadata"]["name"]
        if pod["spec"].get("nodeName") is None:
            return b""
        if not pod["status"].get("containerStatuses", [True]):
            raise RefusedError(500, "InternalError", "dial tcp: connect: no route to host")
        if name not in self.processes:
            told = f'container "verify" in pod "{name}" has not begun: image cannot be pulled'
            raise RefusedError(400, "BadRequest", told)
        return self._log(pod).read_bytes()

    def look(self) -> None:
        """Bring the states of pods and Jobs up to date."""
        for pod in self.listed("pods", None):
            process = self.processes.get(pod["metadata"]["name"])
            if process is None:
                continue
            code = process.poll()
            if code is None:
                pod["status"] = {"phase": "Running"}
                continue
            ended = {"name": "verify", "state": {"terminated": {"exitCode": code}}}
            phase = "Failed" if code else "Succeeded"
            pod["status"] = {"phase": phase, "containerStatuses": [ended]}
        for job in self.listed("jobs", None):
            name = job["metadata"]["name"]
            phases = [
                pod["status"]["phase"]
                for pod in self.listed("pods", job["metadata"]["namespace"])
                if _owner(pod) == name
            ]
            if {*phases} == {"Succeeded"}:
                done = {"type": "Complete", "status": "True"}
                job["status"] = {"succeeded": len(phases), "conditions": [done]}


def _owner(pod: Object) -> str:
    found: list[Object] = pod["metadata"].get("ownerReferences", [])
    return found[0]["name"] if found else ""


def _maps(spec: Object) -> list[tuple[str, str]]:
    """Return the volumes that hold ConfigMaps, and their names."""
    return [
        (volume["name"], source["configMap"]["name"])
        for volume in spec["volumes"]
        for source in volume.get("projected", {}).get("sources", ())
    ]


def _limits(spec: Object) -> dict[str, int]:
    (container,) = spec["containers"]
    found: dict[str, int] = container.get("resources", {}).get("limits", {})
    return found


def _is_ready(node: Object) -> bool:
    (condition,) = node["status"]["conditions"]
    return bool(condition["status"] == "True")


def _fits(spec: Object, node: Object) -> bool:
    """Tell whether a pod may go to a node, whatever else runs there."""
    labels = node["metadata"].get("labels", {})
    if not spec.get("nodeSelector", {}).items() <= labels.items():
        return False
    wanted = spec.get("affinity", {}).get("nodeAffinity", {})
    if wanted:
        (term,) = wanted["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        for one in term["matchExpressions"]:
            assert one["operator"] == "In"
            if labels.get(one["key"]) not in one["values"]:
                return False
    for taint in node["spec"].get("taints", []):
        if not any(_tolerates(one, taint) for one in spec["tolerations"]):
            return False
    return not node["spec"].get("unschedulable")


def _tolerates(toleration: Object, taint: Object) -> bool:
    return (
        toleration["key"] == taint["key"]
        and toleration.get("effect") in (None, taint["effect"])
        and (toleration["operator"] == "Exists" or toleration["value"] == taint.get("value"))
    )
