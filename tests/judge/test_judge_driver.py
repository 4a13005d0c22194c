"""Floors, branches, PTX, cuda-compat, Windows, WSL and JetPack."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpin.catalog.drivers import load_drivers
from torchpin.fleet.model import Gpu, NodeGroup
from torchpin.judge.driver import judge_driver
from torchpin.judge.model import BADNESS
from torchpin.judge.verdict import combine


def status(
    cuda: str,
    capability: str,
    driver: str | None,
    how: str = "sass",
    *,
    name: str = "card",
    datacenter: bool = False,
    tegra: bool = False,
    **group: Any,
) -> tuple[str, set[str]]:
    """Return the status and the questions that are not answered with ``runs``."""
    major, minor = capability.split(".")
    gpu = Gpu(name, name, "nvidia", (int(major), int(minor)), None, tegra, datacenter)
    nodes = NodeGroup("nodes", (gpu,), (), "linux-x86_64", driver)._replace(**group)
    worst, told = combine(judge_driver("torch", cuda, gpu, how, nodes, load_drivers()))
    return worst, {reason.question for reason in told if reason.status != "runs"}


@pytest.mark.parametrize(
    ("cuda", "below", "at"),
    [
        ("11.8", "450.80.01", "450.80.02"),
        ("11.1", "450.51.06", "450.80.02"),
        ("11.0", "450.36.05", "450.36.06"),
        ("12.1", "525.60.12", "525.60.13"),
        ("12.6", "525.60.12", "525.60.13"),
        ("12.9", "470.256.02", "535.54.03"),
        ("13.0", "580.65.05", "580.65.06"),
        ("13.2", "575.57.08", "580.65.06"),
        ("13.4", "570.26", "580.95.05"),
    ],
)
def test_linux_floor(cuda: str, below: str, at: str) -> None:
    assert status(cuda, "7.5", below) == ("fails", {"driver"})
    assert status(cuda, "7.5", at)[0] == "runs"
    assert status(cuda, "7.5", at, platform="linux-aarch64")[0] == "runs"


@pytest.mark.parametrize(
    ("cuda", "below", "at"),
    [
        ("11.8", "452.38", "452.39"),
        ("12.6", "527.41", "528.33"),
        ("12.0", "527.40", "527.41"),
        ("13.2", "576.02", "580.88"),
        ("13.0", "576.02", "581.15"),
    ],
)
def test_windows_floor(cuda: str, below: str, at: str) -> None:
    assert status(cuda, "7.5", below, platform="windows-x86_64") == ("fails", {"driver"})
    assert status(cuda, "7.5", at, platform="windows-x86_64")[0] == "runs"


def test_a_bare_branch_stands_for_its_releases() -> None:
    assert status("13.0", "8.0", "580")[0] == "runs"
    assert status("12.6", "8.0", "525")[0] == "runs"
    assert status("13.0", "8.0", "575")[0] == "fails"


@pytest.mark.parametrize(
    ("capability", "cuda", "driver", "expected"),
    [
        ("7.0", "12.6", "580.95.05", "runs"),
        ("7.0", "12.6", "525.60.13", "runs"),
        ("7.0", "12.6", "590.44.01", "fails"),
        ("6.1", "12.6", "595.45.04", "fails"),
        ("5.2", "11.8", "620.70.06", "fails"),
        ("3.7", "11.8", "470.256.02", "runs"),
        ("3.7", "11.8", "495.29.05", "fails"),
        ("7.5", "12.6", "620.70.06", "runs"),
        ("7.0", "12.6", "700.1", "fails"),
    ],
)
def test_last_branch(capability: str, cuda: str, driver: str, expected: str) -> None:
    worst, open_questions = status(cuda, capability, driver)
    assert worst == expected
    assert open_questions == ({"driver-branch"} if expected == "fails" else set())


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        ("595.71.05", "driver 595.71.05 (R595) no longer"),
        ("629.1", "driver 629.1 (R620) no longer"),
        ("630.2", "driver 630.2 no longer"),  # of a branch that no table knows
        ("700", "driver 700 no longer"),
    ],
)
def test_only_a_known_branch_is_named(driver: str, words: str) -> None:
    volta = Gpu("V100", "V100", "nvidia", (7, 0), None)
    nodes = NodeGroup("nodes", (volta,), (), "linux-x86_64", driver)
    (reason,) = judge_driver("torch", "12.6", volta, "sass", nodes, load_drivers())
    assert reason.status == "fails" and reason.text.startswith(words)


def test_last_branch_on_windows_counts_by_branch() -> None:
    assert status("12.6", "7.0", "582.28", platform="windows-x86_64")[0] == "runs"
    assert status("12.6", "7.0", "591.44", platform="windows-x86_64")[0] == "fails"


@pytest.mark.parametrize(
    ("capability", "driver", "expected"),
    [
        ("10.0", "565.57.01", "fails"),
        ("12.0", "535.54.03", "fails"),
        ("12.0", "570.26", "runs"),
        ("10.3", "570.26", "unknown"),  # only inferred from the first toolkit
        ("12.1", "575.51.03", "runs"),
        ("10.7", "610.43.02", "fails"),
        ("10.7", "615", "runs"),
    ],
)
def test_first_branch(capability: str, driver: str, expected: str) -> None:
    assert status("12.8", capability, driver)[0] == expected


@pytest.mark.parametrize(
    ("cuda", "below", "at"),
    [
        ("12.8", "560.35.03", "570.26"),
        ("13.2", "590.48.01", "595.45.04"),
        ("13.4", "610.43.02", "615.71.09"),
        ("13.5", "615.71.09", "620.70.06"),
    ],
)
def test_ptx_needs_the_toolkits_own_driver(cuda: str, below: str, at: str) -> None:
    assert status(cuda, "8.0", below, "ptx")[0] == "fails"
    assert status(cuda, "8.0", at, "ptx")[0] == "runs"


def test_ptx_on_windows_13_has_no_figure() -> None:
    assert status("13.2", "8.0", "581.15", "ptx", platform="windows-x86_64")[0] == "unknown"
    assert status("13.2", "8.0", "596.21", "ptx", platform="windows-x86_64")[0] == "runs"


def test_no_driver_no_reason() -> None:
    assert status("13.0", "8.0", None) == ("runs", set())


def test_a_driver_that_is_no_version_is_unknown() -> None:
    assert status("13.0", "8.0", "latest")[0] == "unknown"


def test_silent_tables_are_unknown() -> None:
    assert status("10.2", "7.0", "440.33.01") == ("unknown", {"driver"})
    assert status("10.2", "7.0", "418.87")[0] == "unknown"
    assert status("9.2", "7.0", "396.26")[0] == "unknown"
    assert status("10.2", "7.0", "535.54.03")[0] == "runs"  # newer drivers run older toolkits


@pytest.mark.parametrize(
    ("compat", "cuda", "driver", "how", "expected"),
    [
        (None, "13.0", "535.54.03", "sass", "fails"),
        ("13.0", "13.0", "535.54.03", "sass", "runs"),
        ("13.0", "13.2", "535.54.03", "sass", "runs"),
        ("13.0", "13.2", "535.54.03", "ptx", "fails"),
        ("13.2", "13.2", "535.54.03", "ptx", "runs"),
        ("12.8", "13.0", "535.54.03", "sass", "fails"),
        ("13.0", "13.0", "570.26", "sass", "runs"),
        ("13.0", "13.0", "550.54.15", "sass", "unknown"),  # branch not in the table
        ("13.5", "13.5", "535.54.03", "sass", "unknown"),  # package not in the table
        ("13.0", "13.2", "590.48.01", "ptx", "fails"),  # older than the driver itself
    ],
)
def test_cuda_compat(compat: str | None, cuda: str, driver: str, how: str, expected: str) -> None:
    worst, _ = status(cuda, "9.0", driver, how, datacenter=True, cuda_compat=compat)
    assert worst == expected


def test_cuda_compat_needs_the_right_card_and_system() -> None:
    driver = "535.54.03"
    geforce = "GeForce RTX 4090"
    assert status("13.0", "8.9", driver, name=geforce, cuda_compat="13.0")[0] == "fails"
    for name in ("RTX 6000 Ada", "RTX 5000 Ada"):  # some professional cards may use it
        assert status("13.0", "8.9", driver, name=name, cuda_compat="13.0")[0] == "unknown"
    assert (
        status("13.0", "9.0", driver, datacenter=True, cuda_compat="13.0", wsl=True)[0] == "fails"
    )


def test_cuda_compat_after_the_gpus_last_branch_is_unknown() -> None:
    args = {"datacenter": True, "cuda_compat": "13.2"}
    assert status("13.2", "7.0", "535.54.03", **args)[0] == "unknown"  # type: ignore[arg-type]


def test_wsl_uses_the_windows_driver() -> None:
    assert status("12.6", "8.6", "551.86", wsl=True)[0] == "runs"
    assert status("12.6", "8.6", "525.60.13", wsl=True)[0] == "unknown"
    assert status("13.0", "8.6", "551.86", wsl=True)[0] == "fails"


@pytest.mark.parametrize(
    ("jetpack", "cuda", "expected"),
    [
        ("6.2", "12.6", "runs"),
        ("6.2.1", "12.4", "runs"),
        ("6.0", "12.6", "unknown"),
        ("6.2", "13.0", "fails"),
        ("7.2", "13.2", "runs"),
        ("7.2", "13.0", "runs"),
        ("7.1", "13.2", "unknown"),
        ("5.1", "12.6", "unknown"),  # its CUDA is from memory only
        ("9.9", "13.0", "unknown"),
    ],
)
def test_jetpack(jetpack: str, cuda: str, expected: str) -> None:
    assert status(cuda, "8.7", None, tegra=True, jetpack=jetpack)[0] == expected


def test_a_jetsons_driver_has_its_own_numbers() -> None:
    assert status("13.0", "11.0", "580.00", tegra=True)[0] == "unknown"
    assert status("12.6", "8.7", "540.4.0", tegra=True)[0] == "runs"
    assert status("13.0", "8.7", None, tegra=True) == ("runs", set())


DRIVERS = [
    "450.51.05",
    "450.80.02",
    "470.82.01",
    "520.61.05",
    "525.60.12",
    "525.60.13",
    "535.54.03",
    "550.54.15",
    "560.35.03",
    "570.26",
    "575.51.03",
    "580.65.06",
    "590.48.01",
    "595.58.03",
    "610.43.02",
    "615.71.09",
    "620.70.06",
]
LAST = {"7.0": "590", "6.1": "590", "5.2": "590"}


@given(
    st.sampled_from(
        ["5.2", "6.1", "7.0", "7.5", "8.0", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1", "10.7"]
    ),
    st.sampled_from(["10.2", "11.0", "11.8", "12.0", "12.6", "12.8", "13.0", "13.2", "13.5"]),
    st.sampled_from(["sass", "ptx", "none", "unknown"]),
    st.integers(0, len(DRIVERS) - 1),
    st.integers(0, len(DRIVERS) - 1),
    st.sampled_from([None, "12.8", "13.0"]),
)
def test_a_newer_driver_never_hurts(
    capability: str, cuda: str, how: str, one: int, two: int, compat: str | None
) -> None:
    low, high = DRIVERS[min(one, two)], DRIVERS[max(one, two)]
    if capability in LAST and high >= LAST[capability]:
        high = "580.65.06"
        low = min(low, high)
    older = status(cuda, capability, low, how)[0]
    newer = status(cuda, capability, high, how)[0]
    assert BADNESS.index(newer) <= BADNESS.index(older)
    with_compat = status(cuda, capability, low, how, datacenter=True, cuda_compat=compat)[0]
    assert BADNESS.index(with_compat) <= BADNESS.index(older)
