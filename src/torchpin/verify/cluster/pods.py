"""Why a pod printed nothing: ``kubectl get pods -o json``.

Only phases, states, conditions and names of nodes are read; environments and annotations are not.
"""

from __future__ import annotations

from typing import Any

from torchpin.errors import UsageError
from torchpin.fleet.importers.model import printable
from torchpin.fleet.importers.text import decode, parse_json, rows, table, word
from torchpin.named import NamedTuple

_LONGEST = 300
ITS_POD = "its pod is "
"""How a reason begins."""


class Pod(NamedTuple):
    """A pod as the API server tells of it."""

    name: str
    node: str
    """``""``: it has none yet."""
    reason: str
    """Why it has not printed all, in Kubernetes' own words."""
    hostnames: tuple[str, ...] = ()
    """Of the nodes that it may get to; empty: not known."""

    def may_get_to(self, hostname: str) -> bool:
        """Tell whether it may be for the node of a host name."""
        return not self.hostnames or hostname in self.hostnames


def read_pods(data: bytes, source: str) -> tuple[Pod, ...]:
    """Return the pods of ``kubectl get pods -o json``.

    Raises:
        UsageError: it is empty, cut off, or lists no pod.
    """
    told = table(parse_json(decode(data, source), source))
    items = [told] if told.get("kind") == "Pod" else rows(told.get("items"))
    pods = [table(item) for item in items]
    found = tuple(_pod(pod) for pod in pods if pod.get("kind", "Pod") == "Pod")
    if not found:
        raise UsageError(
            "holds no pod", path=source, hint="run: kubectl get pods -o json -l LABEL=VALUE"
        )
    return found


def _pod(pod: dict[str, Any]) -> Pod:
    spec, status = table(pod.get("spec")), table(pod.get("status"))
    return Pod(
        printable(word(table(pod.get("metadata")).get("name")), 253),
        printable(word(spec.get("nodeName")) or _meant(spec), 253),
        printable(_reason(status), _LONGEST),
        tuple(_hostnames(spec)),
    )


def _meant(spec: dict[str, Any]) -> str:
    """Return the node that a DaemonSet made a pod for, which has not got there."""
    values = _required(spec, "matchFields", "metadata.name")
    return values[0] if len(values) == 1 else ""


def _hostnames(spec: dict[str, Any]) -> list[str]:
    """Return the nodes that a Job was made for, by their labels."""
    return _required(spec, "matchExpressions", "kubernetes.io/hostname")


def _required(spec: dict[str, Any], kind: str, key: str) -> list[str]:
    """Return the values of the node that a pod has to have."""
    affinity = table(table(spec.get("affinity")).get("nodeAffinity"))
    terms = table(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    for term in rows(terms.get("nodeSelectorTerms")):
        for one in rows(table(term).get(kind)):
            if table(one).get("key") == key:
                return [word(value) for value in rows(table(one).get("values"))]
    return []


def _reason(status: dict[str, Any]) -> str:
    phase = word(status.get("phase")) or "Unknown"
    told = [word(status.get("reason")), word(status.get("message"))]
    for one in rows(status.get("containerStatuses")):
        told += _container(table(one))
    for one in rows(status.get("conditions")):
        condition = table(one)
        if condition.get("type") == "PodScheduled" and condition.get("status") != "True":
            told += [word(condition.get("reason")), word(condition.get("message"))]
    return ": ".join(dict.fromkeys((f"{ITS_POD}{phase}", *(text for text in told if text))))


def _container(container: dict[str, Any]) -> list[str]:
    state = table(container.get("state"))
    waiting, ended = table(state.get("waiting")), table(state.get("terminated"))
    if not ended:
        ended = table(table(container.get("lastState")).get("terminated"))
    told = [word(waiting.get("reason")), word(waiting.get("message"))]
    code = ended.get("exitCode")
    if isinstance(code, int) and code:
        told += [word(ended.get("reason")), f"exit code {code}", word(ended.get("message"))]
    return told
