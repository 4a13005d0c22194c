"""Runs of ``verify`` with stand-ins for torch: each way to fail, told by code and told apart."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.verify import fake_install
from tests.verify.fake_install import BUILD, V100, install

from torchpin.catalog.store import load_catalog
from torchpin.errors import UsageError
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import Fleet
from torchpin.fleet.options import fleet_from_options
from torchpin.verify import session
from torchpin.verify.machine import Card, Here
from torchpin.verify.model import Host, HostGpu, Record, Summary, Work

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the stand-ins are for Linux")

FACTS = {"driver": "550.54.15", "glibc": "2.31"}
OUR_V100 = Card(HostGpu(0, V100[0], "7.0", V100[2]), find_gpu("Tesla V100")[0])
COMPANIONS = {"torchvision": "0.29.1+cu126", "torchaudio": "2.11.0+cu126"}
NO_IMAGE = {
    "raise": "AcceleratorError",
    "error_code": 209,
    "message": "CUDA error: no kernel image is available for execution on the device\n"
    "CUDA kernel errors might be asynchronously reported at some other API call",
}
Run = Callable[..., "Ran"]


class Ran:
    """The records of a run."""

    def __init__(self, records: list[Record]) -> None:
        host, *rest, summary = records
        assert isinstance(host, Host)
        assert isinstance(summary, Summary)
        self.host, self.summary = host, summary
        self.works = [record for record in rest if isinstance(record, Work)]
        assert len(self.works) == len(rest)

    def work(self, operation: str, gpu: int | None = 0) -> Work:
        (found,) = (work for work in self.works if (work.operation, work.gpu) == (operation, gpu))
        return found

    def statuses(self) -> dict[str, str]:
        return {work.operation: work.status for work in self.works}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs ``verify`` on a machine with one V100."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def made(
        plan: dict[str, Any] | None,
        *,
        cards: tuple[Card, ...] = (OUR_V100,),
        facts: dict[str, str] = FACTS,
        companions: dict[str, str] = COMPANIONS,
        fleet: Fleet | None = None,
        silent: str = "",
        environ: dict[str, str] | None = None,
        **asked: Any,
    ) -> Ran:
        here = Here("n01", "linux-x86_64", cards, facts, silent)
        monkeypatch.setattr(session, "look", lambda environ: here)
        if plan is not None and cards:
            plan = {"devices": [V100] * len(cards), "archs": ["sm_50", "sm_70"], **plan}
        python = install(tmp_path / "python", plan, **companions)
        words = session.Asked(python, **asked)
        given = dict(os.environ) if environ is None else {**os.environ, **environ}
        return Ran(list(session.verify(words, fleet, load_catalog(), given)))

    return made


def test_all_of_the_work_runs(run: Run) -> None:
    ran = run({})
    assert ran.summary == Summary("n01", None, "ok", 15, 0, 1, 0)
    assert ran.host.packages == (
        ("torch", BUILD),
        ("torchaudio", "2.11.0+cu126"),
        ("torchvision", "0.29.1+cu126"),
    )
    assert ran.host.torch is not None
    assert (ran.host.torch.cuda, ran.host.torch.archs) == ("12.6", ("sm_50", "sm_70"))
    # The stand-in has no libraries: the catalog tells what those of the build hold.
    assert ran.host.torch.evidence == "catalog"
    assert "sm_70" in ran.host.torch.libraries[0].sass
    bf16 = ran.work("matmul bf16")
    assert (bf16.status, bf16.message) == ("skipped", "this GPU has no arithmetic in bf16")
    assert {work.predicted for work in ran.works} == {"runs"}
    assert all(work.agrees for work in ran.works if work.status == "ok")
    assert {work.library for work in ran.works} == {
        *("torch", "cublas", "cudnn", "linalg", "torchvision", "torchaudio")
    }


def test_no_kernel_image_is_told_by_its_code_and_stops_nothing_else(run: Run) -> None:
    ran = run({"work": {"conv2d float16": NO_IMAGE}})
    failed = ran.work("convolution fp16")
    assert (failed.status, failed.reason, failed.error_code) == ("failed", "no-kernel-image", 209)
    assert failed.message == "CUDA error: no kernel image is available for execution on the device"
    assert (failed.predicted, failed.agrees) == ("runs", False)
    assert (ran.summary.status, ran.summary.failed, ran.summary.disagreements) == ("failed", 1, 1)
    assert ran.work("lfilter").status == "ok"


def test_a_failure_that_was_predicted_agrees(run: Run) -> None:
    """torch 2.15.0+cu132 has no code for a V100."""
    every = {f"{name} float32": NO_IMAGE for name in ("sin", "softmax", "sort", "matmul")}
    plan = {"version": "2.15.0+cu132", "cuda": "13.2", "work": every}
    ran = run(plan, companions={}, facts={"driver": "580.65.06", "glibc": "2.31"})
    failed = ran.work("matmul fp32")
    assert (failed.predicted, failed.reason, failed.agrees) == ("fails", "no-kernel-image", True)
    fine = ran.work("cholesky fp32")
    assert (fine.status, fine.predicted, fine.agrees) == ("failed", "fails", True)


def test_what_runs_against_the_prediction_is_counted(run: Run) -> None:
    ran = run({"version": "2.15.0+cu132", "cuda": "13.2"}, companions={})
    assert ran.work("sort fp32").status == "ok"
    assert ran.work("sort fp32").agrees is False
    assert ran.summary.disagreements == 10


def test_old_driver(run: Run) -> None:
    text = "The NVIDIA driver on your system is too old (found version 11040). Please update"
    plan = {"init": {"raise": "RuntimeError", "error_code": 35, "message": text}}
    ran = run(plan, facts={"driver": "470.57.02", "glibc": "2.31"})
    (failed,) = (work for work in ran.works if work.status == "failed")
    assert (failed.operation, failed.gpu, failed.reason) == ("find the GPU", 0, "driver-too-old")
    assert (failed.error_code, failed.message) == (35, text)
    assert (failed.predicted, failed.agrees) == ("fails", True)


def test_old_driver_by_its_words_where_torch_gives_no_code(run: Run) -> None:
    text = "The NVIDIA driver on your system is too old (found version 11040)."
    ran = run({"init": {"raise": "RuntimeError", "message": text}})
    failed = ran.work("find the GPU")
    assert (failed.reason, failed.error_code) == ("driver-too-old", None)


def test_a_gpu_without_a_driver(run: Run) -> None:
    ran = run({}, cards=(), silent="there is an NVIDIA GPU on the PCI bus, but no driver tells")
    failed = ran.work("find the GPU", None)
    assert (failed.status, failed.reason) == ("failed", "no-driver")
    assert ran.summary.status == "failed"


def test_cpu_build_on_a_gpu(run: Run) -> None:
    ran = run({"version": "2.14.1+cpu", "cuda": None, "devices": []}, companions={})
    failed = ran.work("find the GPU")
    assert (failed.reason, failed.predicted, failed.agrees) == ("cpu-build", "fails", True)
    assert "2.14.1+cpu is built without CUDA" in (failed.message or "")


def test_out_of_memory_says_nothing_of_the_prediction(run: Run) -> None:
    text = "CUDA out of memory. Tried to allocate 20.00 MiB."
    ran = run({"work": {"matmul float32": {"raise": "OutOfMemoryError", "message": text}}})
    failed = ran.work("matmul fp32")
    assert (failed.reason, failed.agrees) == ("out-of-memory", None)
    assert ran.summary.disagreements == 0


def test_a_crash_is_told_with_its_signal_and_the_rest_is_done_by_another_process(run: Run) -> None:
    ran = run({"work": {"conv2d float32": {"signal": "SIGSEGV"}}})
    failed = ran.work("convolution fp32")
    assert (failed.reason, failed.agrees) == ("crashed", False)
    assert "ended by SIGSEGV" in (failed.message or "")
    assert ran.work("softmax fp32").status == ran.work("lfilter").status == "ok"
    assert ran.summary.failed == 1


def test_a_process_that_ends_itself(run: Run) -> None:
    ran = run({"work": {"nms float32": {"exit": 7}}})
    assert "exit code 7" in (ran.work("nms").message or "")
    assert ran.work("nms").reason == "crashed"


def test_an_error_that_stays_with_the_process_ends_it(run: Run) -> None:
    """After an illegal address (700) every later call of the process fails."""
    text = "CUDA error: an illegal memory access was encountered"
    plan = {"raise": "AcceleratorError", "error_code": 700, "message": text}
    ran = run({"work": {"sort float32": plan}})
    assert (ran.work("sort fp32").reason, ran.work("sort fp32").error_code) == ("other", 700)
    assert ran.work("matmul fp32").status == "ok"


def test_work_that_hangs_is_ended(run: Run) -> None:
    ran = run({"work": {"svdvals float32": {"hang": 1}}}, timeout=4.0)
    failed = ran.work("svd fp32")
    assert (failed.reason, failed.seconds, failed.agrees) == ("timeout", 4.0, None)
    assert ran.work("nms").status == "ok"


def test_after_two_hangs_the_rest_is_left(run: Run) -> None:
    hang = {"hang": 1}
    ran = run({"work": {"sin float32": hang, "softmax float32": hang}}, timeout=4.0)
    assert ran.summary.failed == 2
    assert ran.work("sort fp32").status == "skipped"
    assert "hung" in (ran.work("sort fp32").message or "")


def test_wrong_result(run: Run) -> None:
    ran = run({"work": {"matmul float16": {"result": 1.5}, "sort float32": {"result": 1.0001}}})
    failed = ran.work("matmul fp16")
    assert (failed.reason, ran.work("sort fp32").status) == ("wrong-result", "ok")
    assert "differs from the CPU's result in double precision by 0.5" in (failed.message or "")


def test_no_number_is_a_wrong_result(run: Run) -> None:
    ran = run({"work": {"solve float32": {"result": float("nan")}}})
    assert ran.work("solve fp32").reason == "wrong-result"


def test_import_fails(run: Run) -> None:
    text = "/opt/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommWindowRegister"
    ran = run({"import": {"raise": "ImportError", "message": text}})
    assert [work.operation for work in ran.works] == ["import"]
    assert (ran.works[0].reason, ran.works[0].message) == ("import-failed", text)
    assert ran.host.torch is not None
    assert ran.host.torch.version == BUILD


@pytest.mark.parametrize(
    ("plan", "reason"), [({"signal": "SIGILL"}, "crashed"), ({"hang": 1}, "timeout")]
)
def test_import_ends_or_hangs(run: Run, plan: dict[str, Any], reason: str) -> None:
    ran = run({"import": plan}, timeout=4.0)
    assert [(work.operation, work.reason) for work in ran.works] == [("import", reason)]
    assert ran.summary.status == "failed"


def test_torch_is_not_installed(run: Run) -> None:
    ran = run(None, companions={})
    assert ran.host.torch is None
    assert (ran.works[0].reason, ran.summary.status) == ("import-failed", "failed")
    message = ran.works[0].message or ""
    assert "is not installed" in message and "--python PATH" in message


def test_companion_of_another_cuda(run: Run) -> None:
    text = (
        "Detected that PyTorch and torchvision were compiled with different CUDA major versions. "
        "PyTorch has CUDA Version=12.6 and torchvision has CUDA Version=13.0."
    )
    plan = {"torchvision": {"raise": "RuntimeError", "message": text}}
    ran = run(plan, companions={"torchvision": "0.29.1+cu130"})
    failed = ran.work("nms")
    assert (failed.reason, failed.predicted, failed.agrees) == ("wrong-companion", "fails", True)
    # A second import of a module that failed half-way fails otherwise; what is told is the first.
    assert ran.work("roi_align").message == failed.message
    assert ran.work("matmul fp32").status == "ok"


def test_companion_without_code_for_gpus(run: Run) -> None:
    text = "Could not run 'torchvision::nms' with arguments from the 'CUDA' backend."
    plan = {"work": {"nms float32": {"raise": "NotImplementedError", "message": text}}}
    ran = run(plan, companions={"torchvision": "0.29.1+cpu"})
    assert ran.work("nms").reason == "wrong-companion"


def test_a_false_warning_is_told_as_that(run: Run) -> None:
    text = "Tesla V100 with CUDA capability sm_70 is not compatible with the current PyTorch"
    ran = run({"init": {"warn": text}})
    assert ran.summary.status == "ok"
    (note,) = ran.summary.notes
    assert note == f"torch warned in vain, all of the work ran: {text}"


def test_a_true_warning_is_told_as_that(run: Run) -> None:
    text = "Tesla V100 with CUDA capability sm_70 is not compatible with the current PyTorch"
    ran = run({"init": {"warn": text}, "work": {"sin float32": NO_IMAGE}})
    assert ran.summary.notes == (f"torch warned, and it does fail: {text}",)


def test_without_gpus_the_work_is_done_on_the_cpu(run: Run) -> None:
    init = {"raise": "RuntimeError", "error_code": 35, "message": "Found no NVIDIA driver"}
    ran = run({"init": init}, cards=(), facts={"glibc": "2.31"})
    assert ran.summary == Summary("n01", None, "ok", 16, 0, 0, 0)
    assert {work.gpu for work in ran.works} == {None}
    assert ran.work("matmul fp32", None).library == "torch"


def test_only_the_asked_gpu_is_tried(run: Run) -> None:
    cards = (OUR_V100, OUR_V100._replace(host=OUR_V100.host._replace(number=1)))
    ran = run({}, cards=cards, gpus=(1,))
    assert {work.gpu for work in ran.works} == {None, 1}


def test_a_gpu_that_is_not_there_is_wrong_usage(run: Run) -> None:
    with pytest.raises(UsageError, match="no such GPU") as caught:
        run({}, gpus=(5,))
    assert caught.value.hint == "it has 0"


def test_a_hidden_gpu_is_skipped(run: Run) -> None:
    ran = run({"devices": []}, environ={"CUDA_VISIBLE_DEVICES": ""})
    assert ran.work("find the GPU").status == "skipped"
    assert "CUDA_VISIBLE_DEVICES=" in (ran.work("find the GPU").message or "")
    assert ran.summary.status == "incomplete"


def test_a_failing_driver_is_none_the_less_told_where_gpus_are_chosen(run: Run) -> None:
    """Slurm chooses the GPUs of a job."""
    init = {"raise": "RuntimeError", "error_code": 35, "message": "too old"}
    ran = run({"devices": [], "init": init}, environ={"CUDA_VISIBLE_DEVICES": "0"})
    assert ran.work("find the GPU").reason == "driver-too-old"


def test_slices_of_a_card_are_each_tried(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices of torch lie in one place on the bus."""
    monkeypatch.setattr(session, "place", lambda here, devices: (here, (0, 0)))
    ran = run({"devices": [V100, V100]})
    assert {work.gpu for work in ran.works} == {None, 0}
    assert [work.operation for work in ran.works].count("matmul fp32") == 2


def test_the_profile_is_compared(run: Run) -> None:
    fleet = fleet_from_options(
        gpus=("Tesla V100",), driver="535.104.05", python="3.9", platform="linux-x86_64"
    )
    ran = run({}, fleet=fleet)
    here = ".".join(map(str, sys.version_info[:3]))
    assert ran.host.differences == (
        "driver: 550.54.15 here, 535.104.05 in the profile",
        f"python: {here} here, 3.9 in the profile",
    )
    assert (ran.summary.status, ran.summary.failed) == ("failed", 0)


def test_no_secret_is_told(run: Run) -> None:
    text = "cannot reach https://user:hunter2@files.example/x"
    ran = run({"import": {"raise": "OSError", "message": text}})
    assert ran.works[0].message == "cannot reach https://****@files.example/x"


def test_no_secret_of_the_environment_is_told(run: Run) -> None:
    environ = {"WANDB_API_KEY": "0123abcdef", "MY_TOKEN": "abc", "HOME_PAGE": "elsewhere"}
    text = "CUDA: key 0123abcdef is refused elsewhere, abc"
    ran = run({"import": {"raise": "OSError", "message": text}}, environ=environ)
    assert ran.works[0].message == "CUDA: key **** is refused elsewhere, abc"


@pytest.mark.parametrize("name", ["torch.py", "torch/__init__.py"])
def test_a_torch_that_hides_the_installed_one_is_told(
    run: Run, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "before" / name
    place.parent.mkdir(parents=True)
    place.write_text("raise RuntimeError('not this one')\n")
    monkeypatch.setattr(fake_install, "BEFORE", f"{tmp_path / 'before'}:")
    ran = run({})
    assert ran.works[0].message == "not this one"
    (note,) = (note for note in ran.host.notes if "PYTHONPATH" in note)
    assert f"takes {place}, which hides torch 2.14.1+cu126 in {tmp_path}" in note
    assert not any("PYTHONPATH" in note for note in plain(run, tmp_path, monkeypatch).host.notes)


def plain(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Return the run without the torch that hides the other."""
    shutil.rmtree(tmp_path / "python")
    monkeypatch.setattr(fake_install, "BEFORE", "")
    return run({})


def test_a_build_that_the_catalog_does_not_know_is_judged_by_what_it_says(run: Run) -> None:
    """A build of one's own: its CUDA counts, and nothing is known of its kernels."""
    plan = {"version": "2.14.0a0+nv25.10", "cuda": "13.0"}
    ran = run(plan, companions={}, facts={"driver": "470.57.02", "glibc": "2.31"})
    assert ran.host.torch is not None
    assert (ran.host.torch.channel, ran.host.torch.evidence) == ("cu130", None)
    assert {work.predicted for work in ran.works if work.gpu == 0} == {"fails"}
    assert ran.work("sort fp32").agrees is False
