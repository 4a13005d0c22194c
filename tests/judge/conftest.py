"""Hand-made builds, GPUs and targets, so that the tests need no catalog."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchpin.catalog import internals
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


def _table(folder: Path, **tables: Any) -> internals.Internals:
    path = folder / "internals.json"
    whole = {name: [] for name in ("torch", "brings", "wheels", "lists", "sources")} | tables
    path.write_text(json.dumps(whole), encoding="utf-8")
    return internals.Internals(str(path))


@pytest.fixture
def nothing_brought(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is known of what torch brings."""
    monkeypatch.setattr(internals, "_internals", _table(tmp_path))


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Set what torch 2.13.0 of a channel brings: package → (version, (file, SASS, PTX), …)."""

    def set_table(
        channel: str, evidence: str = "measured", **packages: tuple[str, list[tuple[str, str, str]]]
    ) -> None:
        lists = [[s, p] for _, files in packages.values() for _, s, p in files]
        names = {key: key.replace("_", "-") for key in packages}
        table = _table(
            tmp_path,
            torch=[["2.13.0", "linux-x86_64", channel, 0, evidence, 0]],
            brings=[
                [
                    " ".join(f"{names[k]}=={v}" for k, (v, _) in packages.items()),
                    {names[k]: v for k, (v, _) in packages.items()},
                ]
            ],
            wheels=[
                [
                    names[k],
                    v,
                    "linux-x86_64",
                    [[file, lists.index([s, p])] for file, s, p in files],
                    1,
                ]
                for k, (v, files) in packages.items()
            ],
            lists=lists,
            sources=["METADATA of torch", "wheel of NVIDIA"],
        )
        monkeypatch.setattr(internals, "_internals", table)

    return set_table


@pytest.fixture
def gpu() -> Callable[..., Gpu]:
    return _gpu


@pytest.fixture
def build() -> Callable[..., Build]:
    return _build


@pytest.fixture
def target() -> Callable[..., Target]:
    return _target
