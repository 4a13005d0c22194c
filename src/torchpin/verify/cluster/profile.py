"""Compare what nodes answered with the profile of the one who asks; pure.

A node that sees no profile (a pod, a host without the shared folder) tells no group.
"""

from __future__ import annotations

from torchpin.errors import ConfigError
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import Fleet, Gpu, Python
from torchpin.report.style import clean
from torchpin.verify.cluster.model import Answer
from torchpin.verify.compare import choose_group, differences
from torchpin.verify.machine import Card, Here
from torchpin.verify.model import Host, HostGpu


def compared(answer: Answer, fleet: Fleet | None, name: str | None = None) -> Answer:
    """Return an answer with its group and what differs, where the node did not tell them.

    Args:
        answer: of a node.
        fleet: of the profile; None: nothing is compared.
        name: the group that all nodes belong to; None: found by the hardware.

    Raises:
        UsageError: there is no group of that name.
    """
    host = answer.host
    if fleet is None or host is None or host.group is not None:
        return answer
    here = _here(host)
    group, doubt = choose_group(fleet, name, here)
    if group is None:
        notes = (*host.notes, doubt) if doubt else host.notes
        return answer._replace(host=host._replace(notes=notes))
    if host.glibc is None and group.platform.startswith("linux"):
        group = group._replace(musl=False)  # the node does not tell which libc it has
    told = differences(group, here, _python(host.python), host.python or "")
    return answer._replace(
        host=host._replace(group=group.name, differences=tuple(clean(text) for text in told))
    )


def _here(host: Host) -> Here:
    facts = {"driver": host.driver, "glibc": host.glibc}
    return Here(
        host.node,
        host.platform,
        tuple(Card(gpu, _known(gpu)) for gpu in host.gpus),
        {key: value for key, value in facts.items() if value is not None},
    )


def _known(gpu: HostGpu) -> Gpu | None:
    for text in (gpu.name, gpu.gfx or gpu.capability or ""):
        try:
            found = find_gpu(text) if text else ()
        except ConfigError:  # not in the table
            continue
        if len(found) == 1 and (
            gpu.capability is None
            or found[0].capability is None
            or ".".join(map(str, found[0].capability)) == gpu.capability
        ):
            return found[0]
    return None


def _python(version: str | None) -> Python | None:
    parts = (version or "").split(".")
    if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None
    return Python(int(parts[0]), int(parts[1]))
