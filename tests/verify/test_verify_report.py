"""The text report, and the schema of the lines."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import torchpin.report
from torchpin.report.style import PLAIN, Style
from torchpin.report.verify import TextReport
from torchpin.verify.lines import to_line
from torchpin.verify.model import Host, HostGpu, Kernels, Record, Summary, TorchBuild, Work

SCHEMA = Path(torchpin.report.__file__).parent / "schemas" / "verify.v1.json"
LIBRARIES = (
    Kernels("torch", ("sm_50", "sm_70"), ()),
    Kernels("cudnn", ("sm_70", "sm_90a"), ("compute_90",)),
)
HOST = Host(
    "n01",
    "3.11.7",
    "linux-x86_64",
    "2.31",
    "550.54.15",
    (
        HostGpu(0, "Tesla V100-SXM2-32GB", "7.0", 32768),
        HostGpu(1, "Tesla V100-SXM2-32GB", "7.0", 32768),
    ),
    (("torch", "2.14.1+cu126"), ("torchvision", "0.29.1+cu126")),
    TorchBuild("2.14.1+cu126", "12.6", ("sm_50", "sm_70"), "cu126", LIBRARIES, "files"),
    "training",
    ("driver: 550.54.15 here, 535.104.05 in the profile",),
    ("a note",),
)
IMPORT = Work("n01", None, "torch", "import", "ok", seconds=2.5, predicted="runs", agrees=True)
RECORDS: tuple[Record, ...] = (
    HOST,
    IMPORT,
    Work("n01", 0, "cublas", "matmul fp32", "ok", predicted="runs", agrees=True),
    Work("n01", 0, "cublas", "matmul fp16", "ok", predicted="fails", agrees=False),
    Work("n01", 0, "cublas", "matmul bf16", "skipped", message="this GPU has none"),
    Work(
        *("n01", 0, "cudnn", "convolution fp32", "failed", "no-kernel-image", 209),
        *("CUDA error: no kernel image is available", 0.1, "runs", False),
    ),
    Work("n01", 1, "torch", "sort fp32", "ok", predicted="runs", agrees=True),
    Summary("n01", "training", "failed", 5, 1, 1, 2, ("torch warned: x",)),
)
TEXT = """\
n01: Python 3.11.7, linux-x86_64, glibc 2.31, driver 550.54.15
  torch 2.14.1+cu126 (CUDA 12.6), torchvision 0.29.1+cu126
  GPU 0, 1: Tesla V100-SXM2-32GB (7.0, 32 GiB)
  kernels of torch: 50 70
  kernels of cuDNN: 70 90a PTX 90
  group training of the profile
  differs: driver: 550.54.15 here, 535.104.05 in the profile
  note: a note

Python
  torch        ok       import

GPU 0
  cuBLAS       ok       matmul fp32, fp16 (matmul fp16: predicted fails)
  cuBLAS       skipped  matmul bf16: this GPU has none
  cuDNN        FAILED   convolution fp32: no kernel image (CUDA error 209):
                        CUDA error: no kernel image is available; predicted:
                        runs

GPU 1
  torch        ok       sort fp32

  note: torch warned: x
n01: does not run as it should (5 tried, 1 failed, 1 skipped, 2 otherwise than
     predicted)
"""


def told(*records: Record, style: Style = PLAIN) -> str:
    report = TextReport(style)
    return "".join(map(report.add, records))


def test_text() -> None:
    assert told(*RECORDS) == TEXT
    assert max(map(len, TEXT.splitlines())) < 80


def test_a_gpu_that_is_like_the_last_takes_a_line() -> None:
    works = [
        Work("n01", gpu, "torch", operation, status, message=message)
        for gpu, message in ((0, "x"), (1, "x"), (2, "y"))
        for operation, status in (("sort fp32", "ok"), ("nms", "failed"))
    ]
    text = told(IMPORT, *works, Summary("n01", None, "failed", 6, 3))
    assert "\nGPU 1: as GPU 0\n" in text
    assert "\nGPU 2\n  torch        ok       sort fp32\n" in text


def test_what_cannot_be_shown_is_not() -> None:
    sly = HOST._replace(node="n\x1b[2J", notes=("see https://user:hunter2@files.example/",))
    text = told(sly)
    assert "\x1b" not in text
    assert "hunter2" not in text


def test_colours_change_no_word() -> None:
    import re

    painted = told(*RECORDS, style=Style(color=True))
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == TEXT


@pytest.mark.parametrize(
    ("summary", "words"),
    [
        (Summary("n01", None, "ok", 16), "n01: runs (16 tried, none failed)"),
        (Summary("n01", "a", "failed", 16), "n01: runs, but is not as the profile says"),
        (Summary("n01", None, "incomplete", 1, 0, 4), "n01: no work was tried"),
    ],
)
def test_last_line(summary: Summary, words: str) -> None:
    assert words in told(summary)


def test_a_host_without_torch_and_gpus() -> None:
    text = told(Host("n01", "3.11.7", "linux-x86_64"))
    assert "torch is not installed" in text
    assert "no GPU" in text


@pytest.mark.parametrize("record", RECORDS)
def test_lines_are_as_the_schema_says(record: Record) -> None:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    checker = jsonschema.Draft202012Validator(schema)
    value = json.loads(to_line(record))
    checker.validate(value)
    for key in value:
        assert not checker.is_valid({name: value[name] for name in value if name != key}), key
    assert not checker.is_valid({**value, "version": 2})
    kind = value["kind"]
    (shape,) = (one for one in schema["oneOf"] if one["properties"]["kind"]["const"] == kind)
    assert set(shape["properties"]) == set(value)


def test_an_import_that_fails_is_said_once() -> None:
    failed = Work("n01", None, "torch", "import", "failed", "import-failed", message="no torch")
    report = TextReport(PLAIN)
    text = "".join(report.add(one) for one in (HOST, failed, RECORDS[-1]))
    assert "FAILED   import failed: no torch\n" in text
