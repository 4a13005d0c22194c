"""Companions: version and CUDA."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from torchpin.catalog.model import Build
from torchpin.judge.companions import cuda_rule, loaded
from torchpin.judge.verdict import combine, judge_companion

Make = Callable[..., Build]


def answer(companion: Build, torch: Build, question: str) -> str | None:
    for reason in judge_companion(companion, torch):
        if reason.question == question:
            return reason.status
    return None


@pytest.mark.parametrize(
    ("package", "version", "requires", "torch", "expected"),
    [
        ("torchvision", "0.19.0", "==2.4.0", "2.4.0", "runs"),
        ("torchvision", "0.19.0", "==2.4.0", "2.14.0", "fails"),
        ("torchvision", "0.29.1", ">=2.14.0", "2.15.0", "runs"),
        ("torchvision", "0.29.1", ">=2.14.0", "2.13.0", "fails"),
        ("torchvision", "0.20.0", "==2.5.0+cu126", "2.5.0", "runs"),
        ("torchvision", "0.20.0", "==2.5.0+cu124", "2.5.0", "fails"),
        ("torchvision", "0.20.0", ">=2.5.0a0", "2.5.0rc1", "runs"),
        ("torchaudio", "2.11.0", "", "2.11.0", "runs"),
        ("torchaudio", "2.11.0", "", "2.14.0", "runs"),
        ("torchaudio", "2.11.0", "", "2.10.0", "fails"),
        ("torchaudio", "2.10.0", "==2.10.0", "2.11.0", "fails"),
        ("torchao", "0.10.0", "", "2.1.0", None),
        ("torchvision", "0.11.3", ">=0", "2.14.1", "fails"),  # its table: torch 1.10
        ("torchvision", "0.11.3", ">=0", "1.10.2", "runs"),
        ("torchvision", "0.14.1", ">=0", "2.0.0", "fails"),
        ("torchvision", "0.15.1", ">=0", "2.0.1", "runs"),
        ("torchvision", "0.2.2", ">=0", "2.0.1", "runs"),  # older than the table
        ("torchvision", "0.99.0", None, "2.15.0", "unknown"),
        ("torchvision", "0.99.0", "garbage", "2.15.0", "unknown"),
    ],
)
def test_version(
    build: Make,
    package: str,
    version: str,
    requires: str | None,
    torch: str,
    expected: str | None,
) -> None:
    companion = build("cu126", package=package, version=version, requires_torch=requires)
    assert answer(companion, build("cu126", version=torch), "companion-version") == expected


CUDA = [
    # package, version, its channel, torch's channel, expected
    ("torchaudio", "2.11.0", "cu130", "cu132", "fails"),
    ("torchaudio", "2.11.0", "cu130", "cu130", "runs"),
    ("torchaudio", "2.11.0", "cu130", "cu129", "fails"),
    ("torchaudio", "2.5.0", "cu121", "cu124", "fails"),
    ("torchaudio", "0.12.0", "cu113", "cu116", "unknown"),
    ("torchaudio", "2.11.1", "cu132", "cu130", "runs"),
    ("torchaudio", "2.11.1", "cu132", "cu126", "fails"),
    ("torchvision", "0.29.2", "cu132", "cu130", "runs"),
    ("torchvision", "0.29.2", "cu132", "cu126", "fails"),
    ("torchvision", "0.16.0", "cu118", "cu121", "fails"),
    ("torchvision", "0.17.0", "cu121", "cu124", "runs"),
    ("torchvision", "0.15.2", "cu117", "cu118", "fails"),
    ("torchvision", "0.14.0", "cu116", "cu117", "unknown"),
    ("torchvision", "0.14.0", "cu117", "cu117", "runs"),
    ("torchvision", "0.28.0", "cpu", "cu130", "partly"),
    ("torchvision", "0.28.0", "cu130", "cpu", "fails"),
    ("torchaudio", "2.11.0", "cpu", "cu130", "partly"),
    ("torchaudio", "2.11.0", "cu130", "cpu", "fails"),
    ("torchaudio", "2.5.0", "rocm6.2", "cu124", "fails"),
    ("torchvision", "0.28.0", "rocm7.1", "rocm7.2", "unknown"),
    ("torchvision", "0.28.0", "rocm7.2", "rocm7.2", "runs"),
    ("torchvision", "0.28.0", "cu128.nv", "cu128", "unknown"),
    ("torchvision", "0.28.0", "xpu", "cu128", "unknown"),
    ("torchcodec", "0.14.0", "cu130", "cu126", "partly"),
    ("torchcodec", "0.14.0", "cpu", "cu126", None),
    ("xformers", "0.0.30", "cu118", "cu126", "partly"),
    ("xformers", "0.0.33", "cu128", "cu126", "runs"),
    ("torchdata", "0.9.0", "cpu", "cu126", None),
]


@pytest.mark.parametrize(("package", "version", "ours", "theirs", "expected"), CUDA)
def test_cuda(
    build: Make, package: str, version: str, ours: str, theirs: str, expected: str | None
) -> None:
    companion = build(ours, package=package, version=version, requires_torch="")
    got = answer(companion, build(theirs), "companion-cuda")
    assert got == expected or (got, expected) == (None, "runs")


def test_rules_of_the_imports() -> None:
    assert cuda_rule("torchaudio", "2.11.0")[0] == "minor"
    assert cuda_rule("torchaudio", "2.11.1")[0] == "major"
    assert cuda_rule("torchvision", "0.15.2")[0] == "minor"
    assert cuda_rule("torchvision", "0.16.0")[0] == "major"


def test_combine_keeps_a_failing_companion(build: Make) -> None:
    companion = build("cu130", package="torchaudio", version="2.11.0", requires_torch="")
    status, reasons = combine(judge_companion(companion, build("cu132", version="2.15.0")))
    assert status == "fails"
    failing = [reason for reason in reasons if reason.status == "fails"]
    assert [reason.question for reason in failing] == ["companion-cuda"]
    assert "13.0" in failing[0].text
    assert "13.2" in failing[0].text


BITS = tuple(
    (f"libbitsandbytes_cuda{cuda}.so", sass, "")
    for cuda, sass in (("118", "60"), ("121", "60 70"), ("128", "70"), ("130", "75"))
)


@pytest.mark.parametrize(
    ("version", "channel", "status", "library"),
    [
        ("0.50.2", "cu128", "runs", "cuda128"),
        ("0.50.2", "cu126", "runs", "cuda121"),
        ("0.50.2", "cu120", "runs", "cuda121"),
        ("0.50.2", "cu132", "runs", "cuda130"),
        ("0.50.2", "cu102", "fails", "CUDA 10.2"),
        ("0.49.0", "cu128", "runs", "cuda128"),
        ("0.49.0", "cu126", "fails", "CUDA 12.6"),
        ("0.44.0", "cu126", None, ""),
        ("0.50.2", "rocm6.3", None, ""),
        ("0.50.2", "cpu", None, ""),
    ],
)
def test_the_library_that_bitsandbytes_loads(
    build: Make, version: str, channel: str, status: str | None, library: str
) -> None:
    bits = build("", package="bitsandbytes", version=version, libraries=BITS, requires_torch="")
    bits = bits._replace(evidence="measured")
    torch = build(channel)
    reasons = judge_companion(bits, torch)
    assert [reason.status for reason in reasons] == ([status] if status else [])
    assert all(library in reason.text for reason in reasons)
    beside = loaded(bits, torch)
    if status == "runs":
        assert beside.kernels == dict(bits.libraries)[f"libbitsandbytes_{library}.so"]
        assert (beside.channel, beside.libraries) == (library.replace("cuda", "cu"), ())
    else:
        assert beside == bits


def test_other_companions_are_as_they_are(build: Make) -> None:
    vision = build("cu126", package="torchvision")
    assert loaded(vision, build("cu126")) is vision
