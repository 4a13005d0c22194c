"""Which channels ``uv pip --torch-backend=auto`` tries on a driver, in order.

Measured with uv 0.13.9 and ``UV_CUDA_DRIVER_VERSION`` for 29 drivers on Linux and Windows (the
first URLs of ``-vv``). The GPU plays no part: https://github.com/astral-sh/uv/issues/14742.
"""

from __future__ import annotations

from torchpin.catalog.drivers import at_least

_STEPS = (
    (("cu132", "cu130"), "580", "580"),
    (
        ("cu129", "cu128", "cu126", "cu125", "cu124", "cu123", "cu122", "cu121", "cu120"),
        "525.60.13",
        "528.33",
    ),
    (
        ("cu118", "cu117", "cu116", "cu115", "cu114", "cu113", "cu112", "cu111"),
        "450.80.2",
        "452.39",
    ),
    (("cu110",), "450.36.6", "451.22"),
    (("cu102",), "440.33", "441.22"),
    (("cu101",), "418.39", "418.96"),
    (("cu100",), "410.48", "411.31"),
    (("cu92",), "396.26", "398.26"),
    (("cu91",), "390.46", "391.29"),
    (("cu90",), "384.81", "385.54"),
    (("cu80",), "375.26", "376.51"),
)
"""Channels, with the lowest driver on Linux and on Windows."""


def backends(platform: str, driver: str) -> tuple[str, ...]:
    """Return the channels that ``auto`` tries beside an NVIDIA driver, first choice first.

    Args:
        platform: one of ``catalog.model.PLATFORMS``.
        driver: the driver's version, ``570.86.15``.
    """
    if platform.startswith("macos"):
        return ("cpu",)
    windows = platform.startswith("windows")
    found = [
        channel
        for channels, linux, win in _STEPS
        if at_least(driver, win if windows else linux)
        for channel in channels
    ]
    return (*found, "cpu")
