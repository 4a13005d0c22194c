from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.markers import default_environment

from torchpin.catalog.model import PLATFORMS, Build
from torchpin.select.environments import marker_environment, marker_holds, wheel_fits

if TYPE_CHECKING:
    from tests.select.conftest import Targets


def build(**changes: object) -> Build:
    base = Build(
        "torch", "2.9.1", "cu126", "cu126", "channel", "linux-x86_64", ("cp311", "cp314t"),
        ("cp312",), None, (), "12.6", "2.28", None, "", ">=3.10", False, None, "lockfile", "x",
    )  # fmt: skip
    return base._replace(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_marker_variable_has_a_value(platform: str, target: Targets) -> None:
    values = marker_environment(target("3.12", platform))
    assert set(default_environment()) <= set(values)
    assert values["python_version"] == "3.12"


@pytest.mark.parametrize(
    ("marker", "python", "platform", "holds"),
    [
        (None, "3.11", "linux-x86_64", True),
        ("sys_platform == 'linux'", "3.11", "linux-aarch64", True),
        ("sys_platform == 'linux'", "3.11", "macos-arm64", False),
        ("sys_platform == 'windows'", "3.11", "windows-x86_64", False),
        ("platform_machine == 'AMD64'", "3.11", "windows-x86_64", True),
        ("platform_machine == 'arm64'", "3.11", "macos-arm64", True),
        ("platform_machine == 'aarch64'", "3.11", "linux-aarch64", True),
        ("os_name == 'nt'", "3.11", "windows-arm64", True),
        ("python_version >= '3.10'", "3.9", "linux-x86_64", False),
        ("python_version < '3.13'", "3.14t", "linux-x86_64", False),
        ("python_full_version >= '3.11.0'", "3.11", "linux-x86_64", True),
        ("python_full_version < '3.11.4'", "3.11", "linux-x86_64", None),
        ("python_version >= '3.9'", None, "linux-x86_64", True),
        ("python_version >= '3.12'", None, "linux-x86_64", None),
        ("python_version >= '3.12' and sys_platform == 'win32'", None, "linux-x86_64", False),
        ("platform_release >= '5'", "3.11", "linux-x86_64", None),
        ("extra == 'gpu'", "3.11", "linux-x86_64", False),
        ("implementation_name == 'pypy'", "3.11", "linux-x86_64", False),
        ("sys_platform = 'linux'", "3.11", "linux-x86_64", None),
        ("no_such_variable == '1'", "3.11", "linux-x86_64", None),
    ],
)
def test_markers(
    marker: str | None, python: str | None, platform: str, holds: bool | None, target: Targets
) -> None:
    assert marker_holds(marker, target(python, platform)) is holds


def test_an_extra_can_be_given(target: Targets) -> None:
    assert marker_holds("extra == 'gpu'", target(), "gpu") is True


@pytest.mark.parametrize(
    ("changes", "python", "platform", "answer"),
    [
        ({}, "3.11", "linux-x86_64", (True, "", False)),
        ({}, "3.12", "linux-x86_64", (True, "", True)),
        ({}, None, "linux-x86_64", (True, "", False)),
        ({}, "3.14t", "linux-x86_64", (True, "", False)),
        ({}, "3.13", "linux-x86_64", (False, "python", True)),
        ({}, "3.15", "linux-x86_64", (False, "python", True)),
        ({"pythons": ("cp311",)}, "3.14", "linux-x86_64", (False, "python", False)),
        ({}, "3.9", "linux-x86_64", (False, "python", False)),
        (
            {"home": "pypi", "pythons_inferred": ()},
            "3.13",
            "linux-x86_64",
            (False, "python", False),
        ),
        ({}, "3.11", "linux-aarch64", (False, "platform", False)),
        ({"glibc": "2.36"}, "3.11", "linux-x86_64", (False, "glibc", False)),
        ({"glibc": None}, "3.11", "linux-x86_64", (True, "", False)),
        ({"pythons": ("py3",)}, "3.15", "linux-x86_64", (True, "", False)),
        ({"pythons": ("py310",)}, "3.12", "linux-x86_64", (True, "", False)),
        ({"pythons": ("cp310-abi3",)}, "3.13", "linux-x86_64", (True, "", False)),
        ({"pythons": ("cp310-abi3",)}, "3.13t", "linux-x86_64", (False, "python", True)),
        ({"requires_python": ">=3.12"}, "3.11", "linux-x86_64", (False, "python", False)),
    ],
)
def test_wheel_fits(
    changes: dict[str, object],
    python: str | None,
    platform: str,
    answer: tuple[bool, str, bool],
    target: Targets,
) -> None:
    assert wheel_fits(build(**changes), target(python, platform)) == answer


def test_musl_and_macos(target: Targets) -> None:
    assert wheel_fits(build(), target(musl=True))[1] == "glibc"
    mac = build(platform="macos-arm64", glibc=None, macos="14.0")
    assert wheel_fits(mac, target("3.11", "macos-arm64", macos="13.6"))[1] == "platform"
    assert wheel_fits(mac, target("3.11", "macos-arm64", macos="14"))[0]
