"""AMD cards that ROCm's own pages do not list any more."""

from __future__ import annotations

import pytest

from torchpin.fleet.gpus import find_gpu


@pytest.mark.parametrize(
    ("text", "gfx"),
    [
        ("Radeon VII", "gfx906"),
        ("AMD Radeon VII", "gfx906"),
        ("Radeon Pro VII", "gfx906"),
        ("RX Vega 64", "gfx900"),
        ("Radeon R9 Nano", "gfx803"),
        ("Radeon RX 480", "gfx803"),
    ],
)
def test_name(text: str, gfx: str) -> None:
    (gpu,) = find_gpu(text)
    assert (gpu.vendor, gpu.gfx) == ("amd", gfx)
