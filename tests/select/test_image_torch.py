"""The torch that an image brings is judged, where nothing replaces it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.engine import Options, check
from torchpin.fleet.profile import fleet_from_options
from torchpin.rules.model import DISPLAY, ERROR, Finding

IMAGE = "FROM pytorch/pytorch:2.11.0-cuda12.8-cudnn9-runtime\n"


def found(folder: Path, text: str, gpu: str = "V100", platform: str = "") -> list[Finding]:
    path = folder / "Dockerfile"
    path.write_text(text, "utf-8")
    fleet = fleet_from_options(
        gpus=(gpu,),
        driver="580.82.07",
        python="3.14",
        platform=platform or "linux-x86_64",
        glibc="2.17",
    )
    return list(check(Options((str(path),), isolated=True), fleet).findings)


@pytest.mark.parametrize(
    "more",
    [
        "",
        "COPY . /app\n",
        "RUN pip install numpy torchvision\n",
        "RUN pip install 'torch>=2.4'\n",
        "RUN python -m venv /env && /env/bin/pip install numpy\n",
    ],
)
def test_it_is_judged_where_the_image_is_named(more: str, tmp_path: Path) -> None:
    (finding,) = found(tmp_path, IMAGE + more)
    assert (finding.code, finding.severity) == ("TP201", ERROR)
    assert finding.document is not None
    underlined = finding.document.text[finding.span.start : finding.span.end]
    assert underlined == "pytorch/pytorch:2.11.0-cuda12.8-cudnn9-runtime"
    assert any("brings torch 2.11.0 for CUDA 12.8" in one.text for one in finding.because)
    assert finding.fix is not None
    assert finding.fix.safety == DISPLAY
    assert "torch==2.11.0+cu126" in finding.fix.message


@pytest.mark.parametrize(
    "more",
    [
        "RUN pip install torch==2.10.0 --index-url https://download.pytorch.org/whl/cu126\n",
        "RUN pip install -U torch --index-url https://download.pytorch.org/whl/cu126\n",
        "RUN pip install -r made-elsewhere.txt\n",
        "RUN conda install -y pytorch\n",
        "RUN pip uninstall -y torch && ./build.sh\n",
        "FROM python:3.14-slim\nCOPY --from=0 /opt /opt\n",
    ],
)
def test_it_is_not_judged_where_it_may_be_replaced(more: str, tmp_path: Path) -> None:
    findings = found(tmp_path, IMAGE + more)
    assert not [one for one in findings if any("brings torch" in b.text for b in one.because)]


@pytest.mark.parametrize(
    "image",
    [
        "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime",  # a build of conda
        "pytorch/pytorch:latest",
        "pytorch/pytorch:2.11.0-cuda11.1-cudnn9-runtime",  # no such channel
        "corp.example/pytorch/pytorch:2.11.0-cuda12.8-cudnn9-runtime",
        "nvcr.io/nvidia/pytorch:25.01-py3",
    ],
)
def test_nothing_is_said_of_an_image_whose_build_is_not_known(image: str, tmp_path: Path) -> None:
    assert found(tmp_path, f"FROM {image}\n") == []


def test_it_runs_on_a_newer_gpu_and_is_for_x86_alone(tmp_path: Path) -> None:
    assert found(tmp_path, IMAGE, gpu="A100-SXM4-80GB") == []
    assert found(tmp_path, IMAGE, gpu="GH200", platform="linux-aarch64") == []
