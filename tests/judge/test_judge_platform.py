"""Platform, Python, C library and macOS of a wheel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchpin.catalog.model import Build
from torchpin.fleet.model import NodeGroup, Python
from torchpin.judge.platform import judge_platform, judge_python

Make = Callable[..., Build]


def nodes(platform: str = "linux-x86_64", **extra: Any) -> NodeGroup:
    return NodeGroup("nodes", (), (), platform)._replace(**extra)


def answers(reasons: tuple[object, ...]) -> list[tuple[str, str]]:
    return [(r.question, r.status) for r in reasons]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("floor", "have", "expected"),
    [
        ("2.28", "2.17", "fails"),
        ("2.28", "2.27", "fails"),
        ("2.28", "2.28", "runs"),
        ("2.28", "2.31", "runs"),
        ("2.5", "2.17", "runs"),
    ],
)
def test_glibc(build: Make, floor: str, have: str, expected: str) -> None:
    reasons = judge_platform(build("cu126", glibc=floor), nodes(glibc=have))
    assert answers(reasons) == [("glibc", expected)]


def test_nothing_declared_nothing_said(build: Make) -> None:
    assert judge_platform(build("cu126"), nodes()) == ()
    assert judge_platform(build("cu126", glibc=None), nodes(glibc="2.17")) == ()
    assert judge_python(build("cu126"), None) == ()


def test_another_platform_fails(build: Make) -> None:
    reasons = judge_platform(build("cu126"), nodes("linux-aarch64", glibc="2.17"))
    assert answers(reasons) == [("platform", "fails")]


def test_musl_has_no_torch(build: Make) -> None:
    assert answers(judge_platform(build("cpu"), nodes(musl=True))) == [("platform", "fails")]
    pure = build("cpu", package="torchdata", glibc=None)
    assert answers(judge_platform(pure, nodes(musl=True))) == [("platform", "unknown")]


@pytest.mark.parametrize(
    ("floor", "have", "expected"),
    [("14.0", "13", "fails"), ("14.0", "14", "runs"), ("11.0", "10.15", "fails")],
)
def test_macos(build: Make, floor: str, have: str, expected: str) -> None:
    mac = build("cpu", platform="macos-arm64", macos=floor, glibc=None)
    assert answers(judge_platform(mac, nodes("macos-arm64", macos=have))) == [("macos", expected)]


PYTHONS = [
    # home, tags, inferred tags, Requires-Python, Python, expected
    ("pypi", "cp310 cp311", "", ">=3.10", "3.11", "runs"),
    ("pypi", "cp310 cp311", "", ">=3.10", "3.14", "fails"),
    ("pypi", "cp310 cp311", "", ">=3.10", "3.9", "fails"),
    ("channel", "cp310 cp311", "", ">=3.10", "3.9", "fails"),
    ("channel", "cp310 cp311", "", ">=3.10", "3.15", "unknown"),
    ("channel", "cp310", "cp311", ">=3.10", "3.11", "runs"),
    ("pypi", "cp313", "", None, "3.13t", "fails"),
    ("pypi", "cp313 cp313t", "", None, "3.13t", "runs"),
    ("channel", "cp313", "", None, "3.13t", "unknown"),
    ("pypi", "py3", "", ">=3.10", "3.14t", "runs"),
    ("pypi", "py3", "", ">=3.10", "3.9", "fails"),
    ("pypi", "py3", "", ">=3.10.4", "3.10", "runs"),
    ("pypi", "py3", "", "not a specifier", "3.10", "runs"),
    ("pypi", "py39", "", ">=3.9", "3.12", "runs"),
    ("pypi", "py39", "", ">=3.9", "3.14t", "runs"),
    ("pypi", "py311", "", None, "3.10", "fails"),
    ("pypi", "cp310-abi3", "", None, "3.12", "runs"),
    ("pypi", "cp310-abi3", "", None, "3.12t", "fails"),
    ("pypi", "", "", None, "3.12", "unknown"),
]


@pytest.mark.parametrize(("home", "tags", "inferred", "requires", "python", "expected"), PYTHONS)
def test_python(
    build: Make,
    home: str,
    tags: str,
    inferred: str,
    requires: str | None,
    python: str,
    expected: str,
) -> None:
    made = build(
        "cu126",
        home=home,
        pythons=tuple(tags.split()),
        pythons_inferred=tuple(inferred.split()),
        requires_python=requires,
    )
    number = python.removesuffix("t").split(".")
    wanted = Python(int(number[0]), int(number[1]), python.endswith("t"))
    assert answers(judge_python(made, wanted)) == [("python", expected)]


def test_a_tag_taken_from_pypi_is_inferred(build: Make) -> None:
    made = build("cu126", pythons=("cp310",), pythons_inferred=("cp311",))
    (reason,) = judge_python(made, Python(3, 11))
    assert reason.evidence == "inferred"
