"""Single values of a profile and the options of the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from torchpin.catalog.model import PLATFORMS
from torchpin.errors import ConfigError, UsageError
from torchpin.fleet.model import Python
from torchpin.fleet.profile import fleet_from_options, load_profile
from torchpin.fleet.values import (
    parse_driver,
    parse_glibc,
    parse_macos,
    parse_platform,
    parse_pythons,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3.11", "3.11"),
        ("3.11.4", "3.11"),
        ("cp312", "3.12"),
        ("3.14t", "3.14t"),
        (">=3.10,<3.13", "3.10 3.11 3.12"),
        (">=3.13", "3.13 3.14 3.15"),
        ("<3.9", "3.8"),
        ("==3.11.*", "3.11"),
        ("~=3.12", "3.12 3.13 3.14 3.15"),
        (">=3.10.4,<3.11", "3.10"),
        (">=3.9,!=3.10.*,<3.12", "3.9 3.11"),
        (["3.12", "3.10", "3.12"], "3.10 3.12"),
        (["3.14t", "3.14", ">=3.11,<3.13"], "3.11 3.12 3.14 3.14t"),
        ("3.7", "3.7"),
    ],
)
def test_pythons(value: object, expected: str) -> None:
    assert " ".join(map(str, parse_pythons(value))) == expected


@pytest.mark.parametrize(
    "value",
    [
        *("4", "4.0", "2.7", "3", "3.99", "3.12t", "", "latest", "3.11; x"),
        *(">=3.12,<3.11", ">=4", "==banana", [], 3.11, [3.11]),
        *("3." + "9" * 5000, ">=3." + "9" * 5000, "==3.11." + "9" * 5000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_impossible_pythons(value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_pythons(value, path="p", line=3)
    assert (caught.value.path, caught.value.line) == ("p", 3)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_canonical_platforms(platform: str) -> None:
    assert parse_platform(platform) == platform
    assert parse_platform(platform.upper().replace("-", "_", 1)) == platform


@pytest.mark.parametrize(
    ("text", "platform"),
    [
        ("linux_x86_64", "linux-x86_64"),
        ("linux-amd64", "linux-x86_64"),
        ("linux-64", "linux-x86_64"),
        ("manylinux_2_28_x86_64", "linux-x86_64"),
        ("x86_64-unknown-linux-gnu", "linux-x86_64"),
        ("linux", "linux-x86_64"),
        ("linux-arm64", "linux-aarch64"),
        ("linux/arm64", "linux-aarch64"),
        ("win_amd64", "windows-x86_64"),
        ("win-64", "windows-x86_64"),
        ("windows-amd64", "windows-x86_64"),
        ("win_arm64", "windows-arm64"),
        ("darwin-arm64", "macos-arm64"),
        ("macosx_14_0_arm64", "macos-arm64"),
        ("aarch64-apple-darwin", "macos-arm64"),
        ("osx-64", "macos-x86_64"),
    ],
)
def test_platform_spellings(text: str, platform: str) -> None:
    assert parse_platform(text) == platform


@pytest.mark.parametrize(
    "text", ["", "linux-riscv64", "linux-ppc64le", "freebsd-amd64", "win32", "arm64"]
)
def test_unknown_platforms(text: str) -> None:
    with pytest.raises(ConfigError, match="unknown platform"):
        parse_platform(text)


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (parse_driver, "535", "535"),
        (parse_driver, "R570", "570"),
        (parse_driver, "550.54.15", "550.54.15"),
        (parse_driver, " 531.79 ", "531.79"),
        (parse_glibc, "2.31", "2.31"),
        (parse_glibc, "manylinux_2_28", "2.28"),
        (parse_macos, "14", "14"),
        (parse_macos, "15.2", "15.2"),
        (parse_macos, "10.15", "10.15"),
        (parse_macos, "26", "26"),
    ],
)
def test_versions(parse: Callable[[str], str], text: str, expected: str) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_driver, "latest"),
        (parse_driver, "12.4"),
        (parse_driver, "550.x"),
        (parse_driver, "199"),
        (parse_glibc, "3.1"),
        (parse_glibc, "2"),
        (parse_glibc, "2.2"),
        (parse_macos, "17"),
        (parse_macos, "10.4"),
        (parse_macos, "sonoma"),
    ],
)
def test_impossible_versions(parse: Callable[[str], str], text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text)


def test_options_make_one_group() -> None:
    fleet = fleet_from_options(
        gpus=["V100,RTX 4090", "sm_90"],
        driver="550.54.15",
        python=["3.10,3.11", ">=3.12,<3.14"],
        platform="linux_x86_64",
        glibc="2.31",
    )
    (group,) = fleet.groups
    assert [gpu.arch for gpu in group.gpus] == ["sm_70", "sm_89", "sm_90"]
    assert [str(python) for python in group.pythons] == ["3.10", "3.11", "3.12", "3.13"]
    assert (group.name, group.driver, group.platform, group.glibc, group.line) == (
        "command-line",
        "550.54.15",
        "linux-x86_64",
        "2.31",
        0,
    )
    assert fleet.path is None
    assert len(fleet.targets()) == 4


def test_options_for_a_machine_without_gpu() -> None:
    (group,) = fleet_from_options(gpus=["none"], python="3.12").groups
    assert group.gpus == ()
    assert group.pythons == (Python(3, 12),)


@pytest.mark.parametrize("gpus", [[], [""], ["none", "V100"]])
def test_options_without_a_clear_gpu(gpus: list[str]) -> None:
    with pytest.raises(UsageError, match="--gpu"):
        fleet_from_options(gpus=gpus, driver="550")


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ({"gpus": ["RTX 6000"]}, "--gpu: ambiguous"),
        ({"gpus": ["RTX 5090"], "driver": "535"}, "no branch before 570"),
        ({"gpus": ["V100"], "driver": "newest"}, "--driver: "),
        ({"gpus": ["V100"], "python": "9"}, "--python: "),
        ({"gpus": ["V100"], "platform": "plan9"}, "--platform: "),
        ({"gpus": ["V100"], "platform": "macos-arm64"}, "--gpu none"),
        ({"gpus": ["none"], "platform": "win_amd64", "glibc": "2.31"}, "glibc on"),
    ],
)
def test_wrong_options(options: dict[str, object], fragment: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fleet_from_options(**options)  # type: ignore[arg-type]
    assert fragment in str(caught.value)


def test_arm_only_gpus_set_the_default_platform() -> None:
    assert fleet_from_options(gpus=["GH200"]).groups[0].platform == "linux-aarch64"
    assert fleet_from_options(gpus=["H200"]).groups[0].platform == "linux-x86_64"


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("python", "3.10"),
        ("glibc", "2.30"),
        ("driver", "550.10"),
        ("driver", "535.0"),
        ("rocm", "6.10"),
        ("macos", "14.0"),
        ("gpus", "9.0"),
    ],
)
def test_hints_say_floats_as_they_are_written(tmp_path: Path, key: str, written: str) -> None:
    """``python = 3.10`` is the number 3.1: the hint must not say that."""
    profile = tmp_path / "torchpin.toml"
    other = "" if key == "gpus" else 'gpus = ["V100"]\n'
    profile.write_text(f"[fleet.main]\n{other}{key} = {written}\n")
    with pytest.raises(ConfigError, match="not a float") as caught:
        load_profile(str(profile))
    assert f'"{written}"' in caught.value.hint


@pytest.mark.parametrize(
    ("name", "title"),
    [("torchpin.toml", "[fleet.main]"), ("pyproject.toml", "[tool.torchpin.fleet.main]")],
)
def test_a_fleet_without_a_group_name_is_one_error(tmp_path: Path, name: str, title: str) -> None:
    profile = tmp_path / name
    table = "tool.torchpin.fleet" if name == "pyproject.toml" else "fleet"
    profile.write_text(f'[{table}]\ngpus = ["V100"]\ndriver = "550"\npython = "3.11"\n')
    with pytest.raises(ConfigError) as caught:
        load_profile(str(profile))
    assert caught.value.line == 2
    assert title in caught.value.hint
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("arm64", "name the system too: linux-aarch64, windows-arm64 or macos-arm64"),
        ("x86_64", "name the system too: linux-x86_64, windows-x86_64 or macos-x86_64"),
    ],
)
def test_a_machine_without_its_system_is_asked_for_it(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_platform(text)
    assert raised.value.hint == hint
