"""Hand-made builds, GPUs and targets, so that the tests need no catalog."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchpin.catalog.model import Build, Kernels
from torchpin.fleet.model import Gpu, NodeGroup, Python, Target


def _gpu(name: str, capability: str, **extra: Any) -> Gpu:
    major, minor = capability.split(".")
    gpu = Gpu(name, name, "nvidia", (int(major), int(minor)), None)
    return gpu._replace(**extra)


def _build(
    channel: str,
    sass: str = "",
    ptx: str = "",
    gfx: str = "",
    *,
    package: str = "torch",
    version: str = "2.13.0",
    libraries: tuple[tuple[str, str, str], ...] = (),
    evidence: str = "measured",
    **extra: Any,
) -> Build:
    def lists(sass: str, ptx: str, gfx: str = "") -> Kernels:
        return Kernels(
            tuple(sass.split()), tuple(ptx.split()), tuple(gfx.split()), evidence, "wheel"
        )

    build = Build(
        package=package,
        version=version,
        label=channel,
        channel=channel,
        home="channel",
        platform="linux-x86_64",
        pythons=("cp310", "cp311", "cp312"),
        pythons_inferred=(),
        kernels=lists(sass, ptx, gfx) if sass or ptx or gfx else None,
        libraries=tuple((name, lists(s, p)) for name, s, p in libraries),
        cuda=None,
        glibc="2.28",
        macos=None,
        requires_torch=None,
        requires_python=">=3.10",
        yanked=False,
        released=None,
        evidence="published",
        source="test",
    )
    return build._replace(**extra)


def _target(*gpus: Gpu, python: Python | None = None, **extra: Any) -> Target:
    group = NodeGroup("nodes", gpus, (), "linux-x86_64")
    return Target(group._replace(**extra), python)


@pytest.fixture
def gpu() -> Callable[..., Gpu]:
    return _gpu


@pytest.fixture
def build() -> Callable[..., Build]:
    return _build


@pytest.fixture
def target() -> Callable[..., Target]:
    return _target
