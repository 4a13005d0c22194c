"""The last release that runs on a target."""

from __future__ import annotations

import pytest
from tests.resolve.resolve_fleets import gpu, group, targets

from torchpin.catalog.store import load_catalog
from torchpin.evidence import PROOF
from torchpin.resolve.horizon import horizon, last_release
from torchpin.resolve.recipe import recipe
from torchpin.resolve.source_facts import toolkit_span


@pytest.mark.parametrize(
    ("name", "last"),
    [("Tesla V100", "2.14.1+cu126"), ("GTX 1080", "2.14.1+cu126"), ("Tesla K80", "2.6.0+cu118")],
)
def test_last_release(name: str, last: str) -> None:
    found = last_release(gpu(name), load_catalog())
    assert found is not None
    assert found.full_version == last


def test_no_release_for_t4g_and_kepler() -> None:
    assert last_release(gpu("T4G"), load_catalog(), "linux-aarch64") is None
    assert last_release(gpu("sm_30"), load_catalog()) is None


def test_horizon_tells_what_blocks_the_newest() -> None:
    found = horizon(targets(group("v", "Tesla V100"))[0], load_catalog())
    assert (found.last_version, found.newest_version) == ("2.14.1", "2.15.0")
    assert found.blocked_by is not None
    assert found.blocked_by.question == "kernels"
    assert found.blocked_by.evidence in PROOF


def test_horizon_of_an_old_python() -> None:
    found = horizon(targets(group("a", "A100-SXM4-80GB", python="3.10"))[0], load_catalog())
    assert found.last_version == "2.14.1"
    assert found.last_build is not None
    assert found.last_build.home == "pypi"
    assert found.blocked_by is not None
    assert found.blocked_by.question == "python"


def test_nothing_blocks_a_modern_machine() -> None:
    found = horizon(targets(group("b", "B200"))[0], load_catalog())
    assert (found.last_version, found.blocked_by) == ("2.15.0", None)


@pytest.mark.parametrize(
    ("capability", "span"),
    [
        ((3, 0), None),
        ((3, 7), ("11.7", "11.8")),
        ((7, 0), ("11.7", "12.9")),
        ((7, 5), ("11.7", "")),
        ((9, 0), ("11.8", "")),
        ((10, 1), ("13.0", "")),
        ((10, 3), ("12.9", "")),
        ((12, 1), ("12.9", "")),
    ],
)
def test_toolkit_span(capability: tuple[int, int], span: tuple[str, str] | None) -> None:
    assert toolkit_span(capability) == span


def test_recipe_names_toolkit_arch_and_pip() -> None:
    lines = recipe(gpu("Tesla V100"), "2.15.0")
    assert 'export TORCH_CUDA_ARCH_LIST="7.0"' in lines
    assert "export CUDA_HOME=/usr/local/cuda-12.9" in lines
    assert "python -m pip install . -v --no-build-isolation" in lines
    assert not any(line.startswith("python setup.py") for line in lines)
    assert any("12.6" in line for line in lines)
    assert any("https://" in line for line in lines)


def test_recipe_that_cannot_be() -> None:
    assert any("older torch" in line for line in recipe(gpu("Tesla K80"), "2.14.0"))
    assert not any(line.startswith("export") for line in recipe(gpu("sm_30"), "2.14.0"))
    assert "export PYTORCH_ROCM_ARCH=gfx906" in recipe(gpu("gfx906"), "2.14.0")
