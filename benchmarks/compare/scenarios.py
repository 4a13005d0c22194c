"""The machines and files on which the tools are compared."""

from __future__ import annotations

from typing import NamedTuple


class Machine(NamedTuple):
    """A machine that asks for the newest torch that runs on it."""

    about: str
    gpus: tuple[str, ...]
    """Names as ``nvidia-smi`` writes them."""
    capabilities: tuple[str, ...]
    driver: str
    cuda: str
    """The CUDA version that ``nvidia-smi`` of this driver shows."""
    python: str = "3.11"


MACHINES = (
    Machine("V100", ("Tesla V100-SXM2-32GB",), ("7.0",), "580.82.07", "13.0"),
    Machine("GTX 1080", ("NVIDIA GeForce GTX 1080",), ("6.1",), "580.82.07", "13.0"),
    Machine("V100, old driver", ("Tesla V100-SXM2-32GB",), ("7.0",), "550.54.15", "12.4"),
    Machine("T4, old driver", ("Tesla T4",), ("7.5",), "550.54.15", "12.4"),
    Machine("A100, Python 3.10", ("NVIDIA A100-SXM4-80GB",), ("8.0",), "580.82.07", "13.0", "3.10"),
    Machine("A100, driver of CUDA 11", ("NVIDIA A100-SXM4-80GB",), ("8.0",), "470.82.01", "11.4"),
    Machine("RTX 5090, R570", ("NVIDIA GeForce RTX 5090",), ("12.0",), "570.124.06", "12.8"),
    Machine("B200", ("NVIDIA B200",), ("10.0",), "580.82.07", "13.0"),
    Machine(
        "V100 and B200",
        ("Tesla V100-SXM2-32GB", "NVIDIA B200"),
        ("7.0", "10.0"),
        "580.82.07",
        "13.0",
    ),
)


class File(NamedTuple):
    """A Dockerfile, and whether it is right."""

    about: str
    text: str
    right: bool
    because: str


FILES = (
    File(
        "pins of a guide: `torch==2.14.0+cu124 torchvision==0.19.0+cu124`",
        "FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04\n"
        "RUN pip install torch==2.14.0+cu124 torchvision==0.19.0+cu124 "
        "--index-url https://download.pytorch.org/whl/cu124\n",
        False,
        "cu124 ended with 2.6.0",
    ),
    File(
        "`torch==2.12.0` from the cu128 index",
        "FROM nvidia/cuda:12.8.1-runtime-ubuntu22.04\n"
        "RUN pip install torch==2.12.0 --index-url https://download.pytorch.org/whl/cu128\n",
        False,
        "cu128 ended with 2.11.0",
    ),
    File(
        "`torch==2.14.1` from the cu130 index, CUDA 13 image",
        "FROM nvidia/cuda:13.0.1-runtime-ubuntu22.04\n"
        "RUN pip install torch==2.14.1 --index-url https://download.pytorch.org/whl/cu130\n",
        True,
        "",
    ),
    File(
        "the same on `python:3.12`",
        "FROM python:3.12\n"
        "RUN pip install torch==2.14.1 --index-url https://download.pytorch.org/whl/cu130\n",
        True,
        "the wheels bring their own CUDA libraries",
    ),
)
