"""Short words for fleets and requests."""

from __future__ import annotations

import re

from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import Gpu, NodeGroup, Python, Setting, Target
from torchpin.resolve.model import Origin, Request, Want


def gpu(name: str) -> Gpu:
    return find_gpu(name)[0]


def group(
    name: str,
    *gpus: str,
    python: str = "3.11",
    platform: str = "linux-x86_64",
    driver: str | None = None,
    glibc: str | None = None,
    musl: bool = False,
    jetpack: str | None = None,
) -> NodeGroup:
    pythons = tuple(
        Python(int(v.split(".")[0]), int(v.split(".")[1].rstrip("t")), v.endswith("t"))
        for v in python.split()
    )
    return NodeGroup(
        name,
        tuple(gpu(g) for g in gpus),
        pythons,
        platform,
        driver=driver,
        glibc=glibc,
        musl=musl,
        jetpack=jetpack,
        path="torchpin.toml",
        line=1,
        settings=(Setting("gpus", 2), Setting("driver", 3), Setting("python", 4)),
    )


def targets(*groups: NodeGroup) -> tuple[Target, ...]:
    return tuple(Target(g, python) for g in groups for python in (g.pythons or (None,)))


def wants(*texts: str) -> tuple[Want, ...]:
    """``torch==2.1`` is a pin that may move, ``torch!==2.1`` a hard one, ranges are hard."""
    found = []
    for line, text in enumerate(texts, 1):
        match = re.match(r"([a-z]+)(!?)(.*)", text)
        assert match is not None
        name, hard, specifier = match.groups()
        soft = specifier.startswith("==") and not hard
        found.append(Want(name, specifier, Origin("r.txt", line, name + specifier), soft))
    return tuple(found)


def request(
    groups: tuple[NodeGroup, ...],
    *texts: str,
    policy: str = "nearest",
    channel: str | None = None,
    asked: tuple[str, ...] = (),
    pypi: bool = True,
) -> Request:
    return Request(
        wants(*texts),
        targets(*groups),
        policy=policy,
        current_channel=channel,
        asked_channels=asked,
        pypi=pypi,
    )
