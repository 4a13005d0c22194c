"""``torchpin recipe``: a wheel where one serves, else a build from source that can be."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import torchpin.report
from torchpin.cli.main import guarded, help_text
from torchpin.documents.dockerfile import read_dockerfile

SCHEMA = json.loads(
    (Path(torchpin.report.__file__).parent / "schemas" / "recipe.v1.json").read_text("utf-8")
)
V100 = ("--gpu", "V100", "--torch", "2.15.0", "--python", "3.12")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = guarded(["recipe", "--isolated", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_volta_and_2_15(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, *V100)
    assert code == 0
    for words in (
        "export CUDA_HOME=/usr/local/cuda-12.9",
        'export TORCH_CUDA_ARCH_LIST="7.0"',
        "python -m pip install . -v --no-build-isolation\n",
        "git clone --recursive --branch v2.15.0 https://github.com/pytorch/pytorch",
        "nvidia-cudnn-cu12==9.10.2.21",
        "torch==2.14.1+cu126 --extra-index-url https://download.pytorch.org/whl/cu126",
        "--branch v0.29.2 https://github.com/pytorch/vision",
        "python -m pip install numpy pillow\n",
        "--branch v2.11.1 https://github.com/pytorch/audio",
        "accepts CUDA 12.6 and newer, cuDNN 8.1 and newer [measured]",
        "not known: PyTorch builds it with CUDA 13.0, 13.2 [unknown]",
        "driver branch 580 is the last that supports sm_70",
        "https://github.com/pytorch/pytorch/pull/192257",
    ):
        assert words in said, words
    assert "python setup.py" not in said


@pytest.mark.parametrize(
    ("written", "release"),
    [
        *(("2.14", "2.14.1"), ("v2.14.0", "2.14.0"), ("2.14.0+cu126", "2.14.0")),
        *(("torch==2.14", "2.14.0"), ("==2.14.1", "2.14.1"), ("torch === 2.14.1", "2.14.1")),
        *(("torch2.15", "2.15.0"), ("latest", "2.15.0")),
    ],
)
def test_a_release_as_users_write_it(
    written: str, release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, _ = run(capsys, "--gpu", "V100", "--torch", written)
    assert code == 0
    assert said.startswith(f"torch {release} on Tesla V100 ")


@pytest.mark.parametrize("written", ["arm64", "aarch64", "linux/arm64", "linux-aarch64"])
def test_aarch64_takes_the_cudnn_that_was_measured_there(
    written: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, _ = run(capsys, *V100, "--platform", written)
    assert code == 0
    assert ", linux-aarch64, Python 3.12: no published build" in said
    assert "nvidia-cudnn-cu12==9.10.2.21" in said
    assert "cuDNN 9.10.2.21 (nvidia-cudnn-cu12) holds kernels for sm_70" in said
    assert "nvidia_cudnn_cu12-9.10.2.21-py3-none-manylinux_2_27_aarch64.whl" in said
    assert "USE_CUDNN" not in said


def test_what_nobody_measured_is_not_called_missing(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "K80", "--torch", "2.0.1", "--platform", "aarch64")
    code, said, _ = run(capsys, *words)
    assert code == 0
    assert "no cuDNN for CUDA 11 was measured on linux-aarch64: whether one holds" in said
    assert "export USE_CUDNN=0" in said


@pytest.mark.parametrize("gpus", ["V100", "K80", "V100,H100", "gfx803"])
@pytest.mark.parametrize("form", ["script", "dockerfile"])
def test_comments_fit_80_columns(form: str, gpus: str, capsys: pytest.CaptureFixture[str]) -> None:
    for torch in ("2.15.0", "2.8.0"):
        _, said, _ = run(capsys, "--gpu", gpus, "--torch", torch, "--format", form)
        wide = [line for line in said.splitlines() if line.startswith("#") and len(line) > 80]
        assert not [line for line in wide if " " in line[2:].strip()]
    _, said, _ = run(capsys, "--gpu", gpus, "--torch", "2.15.0")
    comments = [line.strip() for line in said.splitlines() if line.startswith("    # ")]
    assert not [line for line in comments if len(line) > 76 and " " in line[2:]]


def test_a_wheel_that_serves_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "V100", "--torch", "2.14.1")
    code, said, _ = run(capsys, *words)
    assert code == 0
    assert "a published build serves it" in said
    command = (
        "python -m pip install torch==2.14.1+cu126 "
        "--extra-index-url https://download.pytorch.org/whl/cu126"
    )
    assert f"    {command}\n" in said
    assert "git clone" not in said
    _, script, _ = run(capsys, *words, "--format", "script")
    assert script.endswith(f"\n{command}\n")
    _, docker, _ = run(capsys, *words, "--format", "dockerfile")
    assert f"RUN {command}\n" in docker


def test_without_a_release_a_wheel_comes_first(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "--gpu", "V100", "--python", "3.12")
    assert code == 0
    assert "torch 2.14.1 on Tesla V100" in said
    assert re.search(
        r"pip install torch==2\.14\.1\+cu126 torchvision==\S+\+cu126( torchaudio==\S+)? "
        r"--extra-index-url https://download\.pytorch\.org/whl/cu126\n",
        said,
    )
    assert said.endswith("    torchpin recipe --gpu V100 --torch 2.15.0 --python 3.12\n")
    assert "git clone" not in said
    _, script, _ = run(capsys, "--gpu", "V100", "--format", "script")
    assert "git clone" not in script and "torch==2.14.1+cu126 torchvision==" in script
    _, newest, _ = run(capsys, "--gpu", "T4")
    assert "torch==2.15.0 torchvision==" in newest and "can be built" not in newest


def test_kepler_and_2_15_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "--gpu", "K80", "--torch", "2.15.0")
    assert code == 1
    assert "cannot be built" in said
    assert "torch 2.8 is the newest whose build is known to accept CUDA 11.8" in said
    assert "torch==2.6.0+cu118" in said
    assert "git clone" not in said


def test_kepler_and_2_8_can_be_by_setup_py(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "--gpu", "K80", "--torch", "2.8.0")
    assert code == 0
    assert "export CUDA_HOME=/usr/local/cuda-11.8" in said
    assert "python setup.py bdist_wheel" in said


def test_sources_older_than_the_gpu_have_no_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "--gpu", "B200", "--torch", "2.5.1")
    assert code == 1
    assert "no recipe is known" in said
    assert "python -m pip install torch==2.15.0\n" in said


def test_sources_that_another_platform_was_compiled_from_know_the_gpu(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, said, _ = run(capsys, "--gpu", "GH200", "--torch", "2.4.0")
    assert code == 0
    assert re.search(r"torch 2\.4\.0 .* for linux-x86_64 holds code for sm_90: its sources", said)
    assert 'export TORCH_CUDA_ARCH_LIST="9.0"' in said
    assert run(capsys, "--gpu", "RTX 5090", "--torch", "2.6.0")[0] == 1


@pytest.mark.parametrize("form", ["script", "dockerfile"])
def test_without_a_recipe_standard_output_is_empty(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, told = run(capsys, "--gpu", "K80", "--torch", "2.15.0", "--format", form)
    assert (code, said) == (1, "")
    assert "cannot be built" in told


def test_a_python_that_the_release_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "--gpu", "V100", "--torch", "2.15.0", "--python", "3.9")
    assert code == 1
    assert "torch 2.15.0 requires Python >=3.11, not 3.9 [measured]" in said


def test_a_driver_that_left_the_gpu_behind(capsys: pytest.CaptureFixture[str]) -> None:
    for torch in ("2.15.0", "2.14.1"):
        words = ("--gpu", "V100", "--torch", torch, "--driver", "590.44.01")
        code, said, _ = run(capsys, *words)
        assert code == 1
        assert "it cannot be built either" in said
        assert "no longer supports Tesla V100 (sm_70): R580 is the last branch that does" in said


def test_amd_says_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "--gpu", "gfx803", "--torch", "2.14.1")
    assert code == 0
    assert "export PYTORCH_ROCM_ARCH=gfx803" in said
    assert re.search(r"which ROCm releases compile .* is not known; .*\[unknown\]", said)
    assert "CUDA_HOME" not in said


def test_a_jetson_takes_the_cuda_of_its_jetpack(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "--gpu", "sm_87", "--torch", "2.15.0", "--format", "script")
    assert code == 0
    assert 'CUDA_HOME="${CUDA_HOME:-/usr/local/cuda}"' in said
    assert "nvidia-cudnn" not in said
    assert "of its JetPack" in said


@pytest.mark.parametrize("words", [V100, ("--gpu", "gfx803"), ("--gpu", "sm_87"), ("--gpu", "T4")])
def test_the_script_is_sound(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, *words, "--format", "script")
    assert code == 0
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    done = subprocess.run([bash, "-n"], input=said, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    shellcheck = shutil.which("shellcheck")
    if shellcheck is not None:
        checked = subprocess.run(
            [shellcheck, "-"], input=said, text=True, capture_output=True, check=False
        )
        assert checked.returncode == 0, checked.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_script_refuses_a_toolkit_without_the_gpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, said, _ = run(capsys, *V100, "--format", "script")
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.parent.mkdir()
    nvcc.write_text("#!/bin/sh\nprintf 'sm_75\\nsm_80\\n'\n")
    nvcc.chmod(0o755)
    done = subprocess.run(
        ["bash", "-s"],
        input=said,
        text=True,
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "CUDA_HOME": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "does not compile for sm_70" in done.stderr
    assert not (tmp_path / "torch-venv").exists()


def test_the_dockerfile_is_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    _, said, _ = run(capsys, *V100, "--format", "dockerfile")
    document = read_dockerfile("Dockerfile", said.encode())
    assert not document.problems
    assert document.parts
    assert not any(part.document.problems for part in document.parts)
    names = {d.name for part in document.parts for d in part.document.declarations}
    assert "nvidia-cudnn-cu12" in names
    assert "ARG BASE=nvidia/cuda:12.9.1-devel-ubuntu22.04\nFROM ${BASE}\n" in said
    assert "uv venv --seed --python 3.12 " in said


def test_an_image_that_is_not_known_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, said, _ = run(capsys, "--gpu", "gfx803", "--format", "dockerfile")
    assert "\nARG BASE\nFROM ${BASE}\n" in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--gpu", "V100", "--torch", "2.99.0"), "torch 2.99.0 is not in the catalog"),
        (("--gpu", "V100", "--torch", "torch>=2.14,<2.15"), "did you mean `--torch 2.14.1`?"),
        (("--gpu", "V100", "--torch", "torch>=3"), "torch >=3 is not in the catalog"),
        (("--gpu", "V100", "--torch", "newest"), "write --torch 2.15.0"),
        (("--gpu", "V100", "--platform", "macos-arm64"), "--platform"),
        (("--gpu", "V100", "--python", "three"), "not a Python version"),
        (("--gpu", "Voodoo"), "Voodoo"),
        (("--gpu", "V100,MI300X"), "no build serves nvidia and amd"),
        (("--gpu", "V100", "--gpu", "Jetson AGX Orin"), "a Jetson builds for itself"),
        (("--gpu", "V100", "--driver", "new"), "new"),
        (("--gpu", "V100", "--group", "old"), "--group is of the fleet"),
        (("--gpu", "V100", "--output-format", "json", "--format", "script"), "json has no"),
        ((), "--gpu"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, said, error = run(capsys, *words)
    assert (code, said) == (2, "")
    assert told in error


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    code = guarded(["recipe", "--output-format", "json", *words])
    value = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SCHEMA).validate(value)
    recipes: list[dict[str, Any]] = value["recipes"]
    return code, recipes


def test_json_tells_all_that_the_text_tells(capsys: pytest.CaptureFixture[str]) -> None:
    code, (one,) = told(capsys, "--isolated", *V100)
    assert code == 0
    assert (one["status"], one["toolkit"], one["arch"]) == ("build", "12.9", "7.0")
    assert one["cudnn"] == {"package": "nvidia-cudnn-cu12", "version": "9.10.2.21"}
    assert one["last"] == {"version": "2.14.1+cu126", "channel": "cu126", "index": "channel"}
    assert {c["package"] for c in one["companions"]} == {"torchvision", "torchaudio"}
    _, script, _ = run(capsys, *V100, "--format", "script")
    commands = [command for step in one["steps"] for command in step["commands"]]
    assert commands and all(command in script for command in commands)
    assert {"unknown", "measured"} <= {note["evidence"] for note in one["notes"]}
    code, (wheel,) = told(capsys, "--isolated", "--gpu", "T4")
    assert (code, wheel["status"], wheel["steps"]) == (0, "wheel", [])
    assert "torch==2.15.0 torchvision==" in wheel["command"]
    code, (never,) = told(capsys, "--isolated", "--gpu", "K80", "--torch", "2.15.0")
    assert (code, never["status"], never["command"]) == (1, "impossible", None)


def test_one_build_for_several_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "V100,B200", "--torch", "2.14.1", "--python", "3.12")
    code, said, _ = run(capsys, *words)
    assert code == 0
    for text in (
        'export TORCH_CUDA_ARCH_LIST="7.0;10.0"',
        "export CUDA_HOME=/usr/local/cuda-12.9",  # the last for one, new enough for the other
        "    Tesla V100: 2.14.1+cu126\n    B200: 2.14.1 (PyPI, cu130)\n",
        "The newest release with a wheel for all of them is torch 2.10.0 (PyPI, cu128):",
        "cuDNN 9.10.2.21 holds kernels for these GPUs",
    ):
        assert text in said, text
    _, script, _ = run(capsys, *words, "--format", "script")
    assert "grep -qx sm_70; then" in script and "grep -qx sm_100; then" in script
    _, (one,) = told(capsys, "--isolated", *words)
    assert [gpu["build"]["channel"] for gpu in one["alone"]] == ["cu126", "cu130"]
    code, said, _ = run(capsys, "--gpu", "V100", "--gpu", "B200")
    assert "torch 2.10.0 on Tesla V100 and B200" in said  # one wheel serves both


def test_gpus_that_no_toolkit_compiles_for_together(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "V100", "--gpu", "sm_107", "--torch", "2.15.0")
    code, said, _ = run(capsys, *words)
    assert code == 1
    assert "nvcc compiles for sm_70 from CUDA 11.7 to 12.9" in said
    assert "nvcc compiles for sm_107 from CUDA 13.4" in said
    assert "git clone" not in said


def test_a_driver_limits_the_toolkit(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--isolated", "--gpu", "A100", "--torch", "2.15.0", "--driver")
    code, (old,) = told(capsys, *words, "535.104.05")
    assert (code, old["status"], old["toolkit"]) == (0, "build", "12.9")
    texts = [note["text"] for note in old["notes"]]
    assert "driver 535.104.05 is too old for CUDA 13, which needs 580.65.06" in texts
    code, (new,) = told(capsys, *words, "595.45.04")
    assert (code, new["status"]) == (0, "wheel")
    code, (older,) = told(capsys, *words, "470.57.02")  # CUDA 11 alone, which 2.15 refuses
    assert (code, older["status"]) == (1, "impossible")


PROFILE = """\
[fleet.old]
gpus = ["V100"]
driver = "550.54.15"
python = ["3.11", "3.12"]
platform = "linux-x86_64"
[fleet.ci]
gpus = []
[fleet.new]
gpus = ["A100", "B200"]
platform = "linux-x86_64"
"""


def test_without_a_gpu_each_group_of_the_fleet_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    code, recipes = told(capsys, "--torch", "2.15.0")
    assert code == 0
    assert [(one["group"], one["status"]) for one in recipes] == [
        ("old", "build"),
        ("new", "wheel"),
    ]
    assert (recipes[0]["python"], recipes[0]["driver"]) == ("3.12", "550.54.15")
    assert [gpu["name"] for gpu in recipes[1]["gpus"]] == ["A100", "B200"]
    assert guarded(["recipe"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Group old:\ntorch 2.14.1 on Tesla V100")
    assert "\nGroup new:\ntorch 2.15.0 on A100 and B200" in said
    assert guarded(["recipe", "--format", "script"]) == 2
    assert "use --group, one of old, new" in capsys.readouterr().err
    assert guarded(["recipe", "--format", "script", "--group", "new"]) == 0
    assert "torch==2.15.0" in capsys.readouterr().out
    assert guarded(["recipe", "--group", "ci"]) == 2
    assert "no group with GPUs runs Linux" in capsys.readouterr().err
    assert guarded(["recipe", "--group", "gone"]) == 2
    assert "known: old, ci, new" in capsys.readouterr().err


def test_the_help_still_fits_a_screen() -> None:
    assert "recipe" in help_text()
    assert len(help_text().splitlines()) <= 24
