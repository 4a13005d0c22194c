"""The order in which versions, channels and companions are tried."""

from __future__ import annotations

import pytest

from torchpin.errors import UsageError
from torchpin.resolve.model import Origin, Want
from torchpin.resolve.policy import (
    NEAREST,
    NEWEST,
    allowed,
    channel_parts,
    companion_order,
    exact_version,
    key_cost,
    nearest_first,
    soft_anchor,
)

VERSIONS = ("2.15.0", "2.14.1", "2.14.0", "2.13.0", "2.12.1", "2.12.0", "2.11.0", "2.10.0")


def want(package: str, specifier: str, *, soft: bool = False) -> Want:
    return Want(package, specifier, Origin("r.txt", 3, f"{package}{specifier}"), soft)


def test_nearest_takes_patch_then_lower_minor_then_higher() -> None:
    assert nearest_first(VERSIONS, "2.12.0") == (
        "2.12.0",
        "2.12.1",
        "2.11.0",
        "2.10.0",
        "2.13.0",
        "2.14.1",
        "2.14.0",
        "2.15.0",
    )


def test_nearest_to_a_version_that_does_not_exist() -> None:
    assert nearest_first(VERSIONS, "2.14.7")[:3] == ("2.14.1", "2.14.0", "2.13.0")


def test_hard_wants_bound_and_soft_ones_do_not() -> None:
    assert allowed((want("torch", ">=2.13"), want("torch", "!=2.14.0")), "torch", VERSIONS) == (
        "2.15.0",
        "2.14.1",
        "2.13.0",
    )
    assert allowed((want("torch", "==2.12.0", soft=True),), "torch", VERSIONS) == VERSIONS
    assert allowed((want("numpy", "==2.12.0"),), "torch", VERSIONS) == VERSIONS


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("==2.14.0", "2.14.0"),
        ("== 2.14", "2.14"),
        ("===2.14.0", "2.14.0"),
        ("==2.14.*", None),
        (">=2.14", None),
        ("==2.14.0,!=2.15", None),
        ("===nonsense", None),
        ("", None),
    ],
)
def test_exact_version(text: str, version: str | None) -> None:
    assert exact_version(text) == version


def test_soft_range_anchors_at_its_newest() -> None:
    found = soft_anchor((want("torch", "~=2.12.0", soft=True),), "torch", VERSIONS)
    assert found is not None
    assert found.version == "2.12.1"
    assert soft_anchor((want("torch", ">=2.12"),), "torch", VERSIONS) is None


def test_bad_specifier_is_told_with_its_place() -> None:
    with pytest.raises(UsageError) as caught:
        allowed((want("torch", ">=2.4+cu121"),), "torch", VERSIONS)
    assert (caught.value.path, caught.value.line) == ("r.txt", 3)


def ranked(keys: list[str], current: str | None, pypi: str = "cu130", **options: bool) -> list[str]:
    cpu_only = options.get("cpu_only", False)

    def cost(key: str) -> tuple[object, ...]:
        real = pypi if key == "pypi" else key
        return key_cost(key, real, current=current, default=pypi, cpu_only=cpu_only)

    return sorted(keys, key=cost)


def test_channel_of_the_file_comes_first() -> None:
    assert ranked(["pypi", "cu130", "cu126"], "cu126")[0] == "cu126"


def test_nearest_channel_by_driver() -> None:
    """cu124 was asked: cu126 needs the same driver, cu130 a newer one."""
    assert ranked(["cpu", "pypi", "cu130", "cu126", "cu132"], "cu124") == [
        "cu126",
        "cu130",
        "pypi",
        "cu132",
        "cpu",
    ]


def test_next_major_up_and_down_by_the_nearest_end() -> None:
    assert ranked(["cu130", "cu132"], "cu128") == ["cu130", "cu132"]
    assert ranked(["cu121", "cu128"], "cu130") == ["cu128", "cu121"]


def test_pypi_first_where_the_file_names_no_channel() -> None:
    assert ranked(["cu126", "cu132", "cu130", "pypi", "cpu"], None) == [
        "pypi",
        "cu130",
        "cu132",
        "cu126",
        "cpu",
    ]


def test_cpu_machines_take_the_cpu_channel_after_pypi() -> None:
    assert ranked(["cu130", "cpu", "pypi"], None, cpu_only=True) == ["pypi", "cpu", "cu130"]


def test_newest_rocm_where_pypi_has_cuda() -> None:
    assert ranked(["rocm7.2", "rocm7.14"], None) == ["rocm7.14", "rocm7.2"]


def test_channel_parts() -> None:
    assert channel_parts("cu92") == ("cuda", 9, 2)
    assert channel_parts("rocm6.2.4") == ("rocm", 6, 2)
    assert channel_parts("cpu") == ("cpu", 0, 0)
    assert channel_parts("nonsense") == ("nonsense", 0, 0)


def test_companion_made_for_torch_first_and_pin_kept_if_it_fits() -> None:
    partners = ("0.29.0", "0.29.2", "0.29.1")
    pin = (want("torchvision", "==0.29.1", soft=True),)
    assert companion_order("torchvision", partners, (), NEAREST) == partners
    assert companion_order("torchvision", partners, pin, NEAREST)[0] == "0.29.1"
    assert companion_order("torchvision", partners, pin, NEWEST) == partners
    moved = (want("torchvision", "==0.19.0", soft=True),)
    assert companion_order("torchvision", partners, moved, NEAREST) == partners
    hard = (want("torchvision", "<0.29.2"),)
    assert companion_order("torchvision", partners, hard, NEAREST) == ("0.29.0", "0.29.1")
