"""``torchpin verify`` as a user runs it: with a fake NVML, stand-ins for torch, or a real torch."""

from __future__ import annotations

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.verify.fake_install import V100, install

import torchpin
import torchpin.report
from torchpin.verify import worker
from torchpin.verify.lines import read_line
from torchpin.verify.model import LIBRARIES, Host, Summary, Work

linux = pytest.mark.skipif(sys.platform != "linux", reason="the stand-ins are for Linux")
SOURCE = Path(torchpin.__file__).parents[2]
SCHEMA = Path(torchpin.report.__file__).parent / "schemas" / "verify.v1.json"
TORCH = os.environ.get("TORCHPIN_TORCH_PYTHON", "")
real = pytest.mark.skipif(not TORCH, reason="TORCHPIN_TORCH_PYTHON names no Python with torch")
PROFILE = """\
[fleet.training]
gpus = ["Tesla V100"]
driver = "{driver}"
platform = "linux-x86_64"
"""


def build(source: Path, target: Path) -> None:
    compiler = shutil.which("cc", path=os.environ.get("PATH", os.defpath))
    if compiler is None:
        pytest.skip("no C compiler")
    words = [compiler, "-shared", "-fPIC", f"-Wl,-soname,{target.name}"]
    subprocess.run([*words, "-o", str(target), str(source)], check=True)


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a fake NVML that tells of two V100s."""
    folder = tmp_path_factory.mktemp("nvml")
    build(SOURCE / "tests" / "fleet" / "fake_nvml.c", folder / "libnvidia-ml.so.1")
    return folder


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a fake driver: NVML, and a libcuda that fails as it is told to."""
    folder = tmp_path_factory.mktemp("driver")
    build(SOURCE / "tests" / "fleet" / "fake_nvml.c", folder / "libnvidia-ml.so.1")
    build(SOURCE / "tests" / "verify" / "fake_cuda.c", folder / "libcuda.so.1")
    return folder


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "torchpin", "verify", *words]


def verify(
    cwd: Path, *words: str, environ: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    base = {key: value for key, value in os.environ.items() if key != "CUDA_VISIBLE_DEVICES"}
    return subprocess.run(
        command(*words),
        cwd=cwd,
        env={**base, "NODE_NAME": "n01", **(environ or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def plan(**values: Any) -> dict[str, Any]:
    return {"devices": [V100, V100], "archs": ["sm_50", "sm_70"], **values}


@linux
def test_two_gpus_that_run(tmp_path: Path, nvml: Path) -> None:
    python = install(tmp_path / "python", plan(), torchvision="0.29.1+cu126")
    (tmp_path / "torchpin.toml").write_text(PROFILE.format(driver="550.54.15"))
    done = verify(tmp_path, "--python", python, environ={"LD_LIBRARY_PATH": str(nvml)})
    assert (done.returncode, done.stderr) == (0, "")
    for words in (
        "n01: Python 3.",
        "driver 550.54.15",
        "GPU 0, 1: Tesla V100-SXM2-16GB (7.0, 16 GiB)",
        "group training of the profile",
        "\nGPU 0\n  torch        ok       element-wise fp32, softmax fp32, sort fp32\n",
        "\nGPU 1: as GPU 0\n",
        "cuBLAS       skipped  matmul bf16: this GPU has no arithmetic in bf16",
        "n01: runs (25 tried, none failed, 2 skipped)",
    ):
        assert words in done.stdout, words
    assert "differs" not in done.stdout


@linux
def test_a_failure_and_a_difference_give_1(tmp_path: Path, nvml: Path) -> None:
    failing = {"raise": "AcceleratorError", "error_code": 209, "message": "CUDA error: no kernel"}
    plans = plan(work={"cuda:1 conv2d float32": failing})
    python = install(tmp_path / "python", plans)
    (tmp_path / "torchpin.toml").write_text(PROFILE.format(driver="535.104.05"))
    words = ("--python", python, "--output-format", "jsonl")
    done = verify(tmp_path, *words, environ={"LD_LIBRARY_PATH": str(nvml)})
    assert (done.returncode, done.stderr) == (1, "")
    checker = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))
    for line in done.stdout.splitlines():
        checker.validate(json.loads(line))
    host, *works, summary = map(read_line, done.stdout.splitlines())
    assert isinstance(host, Host)
    assert isinstance(summary, Summary)
    assert host.differences == ("driver: 550.54.15 here, 535.104.05 in the profile",)
    (failed,) = (work for work in works if isinstance(work, Work) and work.status == "failed")
    assert (failed.gpu, failed.reason, failed.error_code) == (1, "no-kernel-image", 209)
    assert (summary.status, summary.failed, summary.group) == ("failed", 1, "training")


@linux
def test_only_one_gpu(tmp_path: Path, nvml: Path) -> None:
    python = install(tmp_path / "python", plan())
    words = ("--python", python, "--gpu", "1", "--isolated")
    done = verify(tmp_path, *words, environ={"LD_LIBRARY_PATH": str(nvml)})
    assert "\nGPU 1\n" in done.stdout
    assert "\nGPU 0\n" not in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--python", "/nowhere/python"), "write the path of a Python"),
        (("--gpu", "V100"), "not a number"),
        (("--gpu", "9"), "this machine has no such GPU"),
        (("--group", "training"), "no fleet is declared"),
        (("--timeout", "0"), "--timeout takes seconds above 0"),
        (("--output-format", "xml"), "invalid choice"),
    ],
)
def test_wrong_usage_gives_2(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    done = verify(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


@linux
def test_what_is_no_python_is_wrong_usage(tmp_path: Path) -> None:
    done = verify(tmp_path, "--python", "/bin/true")
    assert (done.returncode, done.stdout) == (2, "")


@linux
def test_an_interrupted_run_leaves_no_process(tmp_path: Path) -> None:
    python = install(tmp_path / "python", {"import": {"hang": 1}})
    running = subprocess.Popen(
        command("--python", python), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 60
    while not _workers(tmp_path) and time.monotonic() < until:
        time.sleep(0.05)
    assert _workers(tmp_path)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert not _workers(tmp_path)


def _workers(folder: Path) -> list[int]:
    """Return the processes that have the stand-ins of a folder and probe torch."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            environ = (entry / "environ").read_bytes()
        except OSError:  # no process, or one that has ended
            continue
        if b"probe" in words and f"{folder}/python/site".encode() in environ:
            found.append(int(entry.name))
    return found


def test_the_worker_is_of_python_3_8_and_knows_nothing_of_torchpin() -> None:
    text = Path(worker.__file__).read_text("utf-8")
    tree = ast.parse(text, feature_version=(3, 8))
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }
    assert imported <= {
        *(
            "__future__",
            "ctypes",
            "importlib",
            "importlib.util",
            "json",
            "os",
            "platform",
            "re",
            "resource",
            "sys",
        ),
        *("sysconfig", "time", "typing", "warnings"),
    }


def test_operations_are_of_the_libraries_of_the_lines() -> None:
    names = [operation.name for operation in worker.OPERATIONS]
    assert len(names) == len(set(names))
    assert {operation.library for operation in worker.OPERATIONS} == set(LIBRARIES)


def test_torch_is_never_imported_by_torchpin(tmp_path: Path) -> None:
    """What happens in torch must not happen in torchpin."""
    code = (
        "import sys, torchpin.verify.session, torchpin.cli.verify, torchpin.report.verify\n"
        "assert not {'torch', 'torchvision', 'torchaudio', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


@real
def test_real_torch(tmp_path: Path) -> None:
    """Whatever the machine has: what is tried runs, and is as predicted."""
    done = verify(tmp_path, "--python", TORCH, "--isolated", "--output-format", "jsonl")
    records = [read_line(line) for line in done.stdout.splitlines()]
    host, summary = records[0], records[-1]
    assert isinstance(host, Host)
    assert isinstance(summary, Summary)
    works = [record for record in records if isinstance(record, Work)]
    bad = [(work.operation, work.reason, work.message) for work in works if work.status == "failed"]
    assert (bad, summary.status, done.returncode) == ([], "ok", 0)
    assert summary.disagreements == 0
    assert host.torch is not None
    assert {work.gpu for work in works} == {None, *(gpu.number for gpu in host.gpus)}
    if host.torch.cuda is not None:
        assert {library.library for library in host.torch.libraries} >= {"torch"}
        stated = {library.library: library for library in host.torch.libraries}["torch"]
        if host.gpus:
            assert set(stated.sass) <= set(host.torch.archs)


@real
@linux
@pytest.mark.parametrize(
    ("cuda", "init", "reason", "code"),
    [
        (11040, 0, "driver-too-old", 35),
        (99000, 100, "no-driver", 100),
        (99000, 999, "other", 999),
    ],
)
def test_real_torch_on_a_driver_that_fails(
    tmp_path: Path, driver: Path, cuda: int, init: int, reason: str, code: int
) -> None:
    """The codes are those that CUDA's real runtime gives; torch must be of CUDA 12 or newer."""
    environ = {"FAKE_CUDA": str(cuda), "FAKE_CUINIT": str(init), "FAKE_DRIVER": "470.57.02"}
    environ["LD_LIBRARY_PATH"] = str(driver)
    words = ("--python", TORCH, "--isolated", "--output-format", "jsonl")
    done = verify(tmp_path, *words, environ=environ)
    records = [read_line(line) for line in done.stdout.splitlines()]
    if not isinstance(records[0], Host) or not (records[0].torch and records[0].torch.cuda):
        pytest.skip("this torch is built without CUDA")
    assert done.returncode == 1
    failed = [work for work in records if isinstance(work, Work) and work.status == "failed"]
    assert [(work.gpu, work.operation, work.reason, work.error_code) for work in failed] == [
        (0, "find the GPU", reason, code),
        (1, "find the GPU", reason, code),
    ]
    assert all(work.agrees is (True if reason == "driver-too-old" else None) for work in failed)
