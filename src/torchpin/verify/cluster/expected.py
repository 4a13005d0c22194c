"""The nodes that should answer: ``kubectl get nodes -o json``, or a list of names."""

from __future__ import annotations

from typing import Any

from torchpin.errors import UsageError
from torchpin.fleet.importers.hosts import expand
from torchpin.fleet.importers.kubernetes import read_nodes
from torchpin.fleet.importers.model import printable
from torchpin.fleet.importers.text import decode, parse_json, rows, table, word
from torchpin.patterns import regex
from torchpin.verify.cluster.model import Expected

_NAME = regex(r"[A-Za-z0-9_][A-Za-z0-9._\[\],-]{0,252}")
_HOSTNAME = "kubernetes.io/hostname"


def read_expected(
    data: bytes, source: str, resource: str = "nvidia.com/gpu"
) -> tuple[Expected, ...]:
    """Return the nodes that should answer: those with GPUs, where any has.

    Args:
        data: ``kubectl get nodes -o json``, or names, one a line (``node/n01`` and host lists too).
        source: its name, for errors.
        resource: what counts GPUs.

    Raises:
        UsageError: it is empty, cut off, or lists no node.
    """
    text = decode(data, source)
    if not text.lstrip().startswith(("{", "[")):
        return tuple(map(Expected, _names(text, source)))
    value = parse_json(text, source)
    machines = read_nodes(value, source).machines
    told = table(value)
    items = [told] if told.get("kind") == "Node" else rows(told.get("items"))
    raw = {word(table(table(item).get("metadata")).get("name")): table(item) for item in items}
    some = any(machine.gpus for machine in machines)
    return tuple(
        _expected(raw.get(machine.name, {}), machine.name, resource)
        for machine in machines
        if machine.name and (machine.gpus or not some)
    )


def _names(text: str, source: str) -> list[str]:
    """Return the names in a list; what is no name is not quoted, it may be a secret.

    Raises:
        UsageError: a word is no name of a node.
    """
    found: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        for part in line.split():
            names = [name.removeprefix("node/") for name in expand(part)]
            if not all(map(_NAME.fullmatch, names)):
                raise UsageError(
                    "holds a word that is no name of a node",
                    path=source,
                    line=number,
                    hint="kubectl get nodes -o json, or -o name; of Slurm: sinfo -h -N -o %N",
                )
            found += names
    return found


def only(nodes: tuple[Expected, ...], source: str) -> tuple[Expected, ...]:
    """Return the nodes on which a pod can start.

    Raises:
        UsageError: there is none.
    """
    usable = tuple(node for node in nodes if not node.reason)
    if not usable:
        raise UsageError("no node of it takes pods", path=source)
    return usable


def _expected(item: dict[str, Any], name: str, resource: str) -> Expected:
    status = table(item.get("status"))
    labels = table(table(item.get("metadata")).get("labels"))
    counted = word(table(status.get("allocatable")).get(resource))
    gpus = int(counted) if counted.isdecimal() and len(counted) < 5 else 0
    return Expected(
        printable(name, 253),
        _unusable(status, table(item.get("spec"))),
        gpus,
        word(labels.get(_HOSTNAME)),
    )


def _unusable(status: dict[str, Any], spec: dict[str, Any]) -> str:
    """Return why no pod starts on a node, in the words of its conditions, or ``""``."""
    for one in rows(status.get("conditions")):
        condition = table(one)
        if word(condition.get("type")) == "Ready" and condition.get("status") != "True":
            why = word(condition.get("message")) or word(condition.get("reason"))
            return printable(f"not ready: {why}" if why else "not ready", 300)
    return "cordoned: it takes no new pods" if spec.get("unschedulable") is True else ""
