"""Verdicts on the builds of the shipped catalog: what is known about real releases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchpin.catalog.model import Build
from torchpin.catalog.store import load_catalog
from torchpin.fleet.model import Gpu, Target
from torchpin.judge.verdict import judge, judge_companion

MakeGpu = Callable[..., Gpu]
MakeTarget = Callable[..., Target]


def find(package: str, version: str, home: str, channel: str, platform: str) -> Build:
    builds = load_catalog().find(
        package, version=version, home=home, channel=channel, platform=platform
    )
    assert len(builds) == 1, builds
    return builds[0]


X86, ARM = "linux-x86_64", "linux-aarch64"

CASES = [
    # version, home, channel, platform, GPU, driver, expected
    ("2.10.0", "pypi", "cu128", X86, "7.0", "580.95.05", "runs"),
    ("2.11.0", "pypi", "cu130", X86, "7.0", "580.95.05", "fails"),
    ("2.11.0", "channel", "cu128", X86, "7.0", "580.95.05", "fails"),
    ("2.14.1", "channel", "cu126", X86, "7.0", "580.95.05", "runs"),
    ("2.14.1", "channel", "cu126", X86, "7.0", "590.48.01", "fails"),
    ("2.7.1", "pypi", "cu126", X86, "6.1", "580.95.05", "runs"),
    ("2.8.0", "pypi", "cu128", X86, "6.1", "580.95.05", "fails"),
    ("2.10.0", "pypi", "cu128", X86, "10.0", "580.95.05", "runs"),
    ("2.15.0", "pypi", "cu132", X86, "8.0", "580.95.05", "runs"),
    ("2.15.0", "pypi", "cu132", X86, "8.0", "575.57.08", "fails"),
    ("2.13.0", "pypi", "cu130", X86, "7.5", None, "partly"),
    ("2.13.0", "pypi", "cu130", ARM, "7.5", None, "fails"),
    ("2.14.1", "pypi", "cu130", ARM, "12.1", None, "runs"),
    ("2.9.1", "channel", "cu128", ARM, "11.0", None, "fails"),
]


@pytest.mark.parametrize(
    ("version", "home", "channel", "platform", "capability", "driver", "expected"), CASES
)
def test_torch(
    gpu: MakeGpu,
    target: MakeTarget,
    version: str,
    home: str,
    channel: str,
    platform: str,
    capability: str,
    driver: str | None,
    expected: str,
) -> None:
    build = find("torch", version, home, channel, platform)
    nodes = target(gpu("card", capability), platform=platform, driver=driver)
    assert judge(build, nodes).status == expected


def test_pypis_torchaudio_beside_torch_2_15() -> None:
    audio = find("torchaudio", "2.11.0", "pypi", "cu130", X86)
    torch = find("torch", "2.15.0", "pypi", "cu132", X86)
    failing = [r.question for r in judge_companion(audio, torch) if r.status == "fails"]
    assert failing == ["companion-cuda"]
    older = find("torch", "2.10.0", "pypi", "cu128", X86)
    failing = [r.question for r in judge_companion(audio, older) if r.status == "fails"]
    assert failing == ["companion-version", "companion-cuda"]


def test_every_build_gets_a_verdict_with_a_source(gpu: MakeGpu, target: MakeTarget) -> None:
    for build in load_catalog().builds("torch"):
        nodes = target(
            gpu("card", "8.0"), platform=build.platform, driver="580.95.05", glibc="2.31"
        )
        for reason in judge(build, nodes).reasons:
            assert reason.text
            assert reason.source or reason.status == "unknown", (build.full_version, reason)


@pytest.mark.parametrize("capability", ["5.2", "7.0", "7.5", "8.0", "9.0", "10.0", "12.0"])
def test_inferred_lists_never_fail_on_kernels(
    gpu: MakeGpu, target: MakeTarget, capability: str
) -> None:
    for build in load_catalog().builds("torch"):
        if build.kernels is None or build.kernels.evidence != "inferred":
            continue
        reasons = judge(build, target(gpu("card", capability), platform=build.platform)).reasons
        assert not any(r.question == "kernels" and r.status == "fails" for r in reasons)
