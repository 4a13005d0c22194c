"""``torchpin verify --slurm`` on a real Slurm, whose nodes have stand-ins for torch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.slurm_cluster import Slurm, cluster
from tests.verify.fake_install import V100, install

pytestmark = pytest.mark.slurm
NODES = {
    "n1": "gpu:tesla_v100:2",
    "n2": "gpu:tesla_v100:2",
    "n10": "gpu:tesla_v100:2",
    "bad1": "gpu:tesla_v100:1",
    "kill1": "gpu:1",
    "late1": "gpu:1",
    "dead1": "gpu:1",
    "c1": "",
}
NO_IMAGE = {
    "raise": "AcceleratorError",
    "error_code": 209,
    "message": "CUDA error: no kernel image is available for execution on the device",
}
SCRIPT = """\
#!/bin/sh
case "$SLURMD_NODENAME $*" in
  "kill1 "*" work "*) kill -9 $PPID; sleep 1;;
  "late1 "*" work "*) echo $$ > "{folder}/process-late1"; exec sleep 300;;
esac
# what is allocated, for the test
echo "$SLURM_GPUS_ON_NODE" > "{folder}/gpus-$SLURMD_NODENAME"
case "$SLURMD_NODENAME" in bad1) which=bad;; *) which=good;; esac
exec "{folder}/$which/python" "$@"
"""
PROFILE = """\
[fleet.training]
gpus = ["Tesla V100"]
platform = "linux-x86_64"
"""


class Run:
    """``torchpin verify --slurm`` in a folder of its own, with the stand-ins."""

    def __init__(self, slurm: Slurm, folder: Path) -> None:
        self.slurm, self.folder = slurm, folder
        good: dict[str, Any] = {"devices": [V100], "archs": ["sm_50", "sm_70"]}
        install(folder / "good", good)
        work = {
            f"{name} {kind}": NO_IMAGE
            for name in ("sin", "softmax", "sort")
            for kind in ("float32", "float16", "bfloat16")
        }
        install(folder / "bad", {**good, "archs": ["sm_75"], "work": work})
        self.python = folder / "python"
        self.python.write_text(SCRIPT.format(folder=folder))
        self.python.chmod(0o755)

    def __call__(self, *words: str, code: int = 0, **environ: str) -> str:
        """Return what it prints; both streams where the exit code is 2."""
        done = self.done(*words, **environ)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code == 2 else "")

    def words(self, *words: str) -> list[str]:
        command = [sys.executable, "-m", "torchpin", "verify", "--slurm"]
        return [*command, f"--python={self.python}", "--isolated", *words]

    def done(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*words),
            cwd=self.folder,
            env={**self.slurm.environ, **environ},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    def nodes(self, *words: str, code: int = 0) -> dict[str, Any]:
        """Return the nodes of the JSON report by their names."""
        told = json.loads(self("--output-format=json", *words, code=code))
        return {node["node"]: node for node in told["nodes"]}


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    more = ["PartitionName=few Nodes=n1,n2 State=UP", "KillWait=2", "TCPTimeout=1"]
    with cluster(NODES, more) as running:
        yield running


@pytest.fixture(scope="module")
def run(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(slurm, tmp_path_factory.mktemp("verify"))


def test_a_partition_of_fine_nodes_is_one_row(run: Run) -> None:
    text = run("--no-color", "--", "-p", "few")
    assert "2 nodes  ok  n[1-2]: 1 x Tesla V100-SXM2-32GB, torch 2.14.1+cu126" in text
    assert text.endswith("2 nodes: 2 ok\n")


def test_each_node_gets_all_of_its_gpus(run: Run) -> None:
    run.nodes("--", "-w", "n[1,10]")
    assert (run.folder / "gpus-n1").read_text() == "2\n"


def test_gpus_that_the_options_name_are_not_overruled(run: Run) -> None:
    run.nodes("--", "-w", "n1", "--gres=gpu:1")
    assert (run.folder / "gpus-n1").read_text() == "1\n"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--", "-w", "n[1-2]"], ["n1", "n2"]),
        (["--", "--nodelist=n2,c1"], ["c1", "n2"]),
        (["--srun-option=-wn10"], ["n10"]),
        (["--", "-p", "few", "-x", "n1"], ["n2"]),
        (["--", "-N", "1", "-p", "few", "--exclude", "n2"], ["n1"]),
        (["--at-once=1", "--", "-N2", "--partition=few"], ["n1", "n2"]),
    ],
    ids=str,
)
def test_options_of_srun_choose_nodes(run: Run, words: list[str], names: list[str]) -> None:
    assert [*run.nodes(*words)] == names


def test_a_node_whose_kernels_do_not_run_fails_the_run(run: Run) -> None:
    text = run("--no-color", "--", "-w", "n1,n2,bad1", code=1)
    assert "2 nodes  ok      n[1-2]:" in text
    assert "1 node   failed  bad1:" in text
    told = " ".join(text.split())
    assert "GPU 0: torch element-wise fp32" in told
    assert "no kernel image (CUDA error 209): CUDA error: no kernel image is available" in told
    assert text.endswith("3 nodes: 2 ok, 1 failed\n")


def test_a_killed_task_keeps_what_it_told(run: Run) -> None:
    node = run.nodes("--", "-w", "n1,kill1", code=1)["kill1"]
    assert node["status"] == "cut-short"
    assert node["host"]["torch"]["version"] == "2.14.1+cu126"
    assert "srun: error: task 0: Killed" in node["reason"]


def test_a_node_that_takes_too_long_is_ended(run: Run, slurm: Slurm) -> None:
    node = run.nodes("--node-timeout=2", "--", "-w", "late1", code=1)["late1"]
    assert node["status"] == "cut-short"
    assert node["reason"].startswith("it was not done in 2 s and was ended")
    slurm_is_free(slurm, "late1")


def test_a_busy_node_is_waited_for_and_then_named(run: Run, slurm: Slurm) -> None:
    other = subprocess.Popen(["srun", "-w", "c1", "sleep", "60"], env=slurm.environ)
    try:
        until(lambda: "c1" in slurm("squeue", "-h", "-t", "R", "-o", "%N"))
        node = run.nodes("--wait=2", "--", "-w", "c1", code=1)["c1"]
        assert node["status"] == "no-answer"
        assert node["reason"].startswith("it did not begin in 2 s and was ended: srun: job ")
        assert node["reason"].endswith("job queued and waiting for resources")
    finally:
        other.terminate()
        other.wait()
    slurm_is_free(slurm, "c1")


def test_a_dead_node_takes_no_other_with_it(run: Run, slurm: Slurm) -> None:
    slurm.stop_node("dead1")
    nodes = run.nodes("--", "-w", "n1,dead1", code=1)
    assert nodes["n1"]["status"] == "ok"
    assert nodes["dead1"]["status"] == "no-answer"
    assert (
        "srun: error: Task launch failed: Communication connection failure"
        in nodes["dead1"]["reason"]
    )


def test_a_drained_node_is_named_with_the_reason_that_slurm_has(run: Run, slurm: Slurm) -> None:
    slurm("scontrol", "update", "nodename=n2", "state=drain", "reason=fan is broken")
    try:
        text = run("--no-color", "--", "-p", "few", code=1)
    finally:
        slurm("scontrol", "update", "nodename=n2", "state=resume")
    assert "1 node   ok         n1:" in text
    assert "did not answer\n  1 node   no answer  n2\n" in text
    assert "- Slurm has it drained: fan is broken" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "--no-such-option"], "srun refuses: srun: unrecognized option '--no-such-option'"),
        (["--", "-p", "nowhere"], "invalid partition specified: nowhere"),
        (["--", "-w", "zz9"], "Slurm knows no node zz9"),
        (["--", "-w", "n[1-2"], "n[1-2: no list of nodes: a bracket has no other"),
        (["--", "-w", "n1", "--constraint=none"], "Invalid feature specification"),
        (["--", "-N", "99"], "srun refuses: "),
        (["--", "-w", "n1", "-x", "n1"], "no node is left"),
        (["--", "-o", "/tmp/x"], "cannot be used here"),
        (["--", "-w"], "needs a value"),
        (["--wait=0"], "--wait takes seconds above 0"),
        (["--at-once=0"], "--at-once takes a number above 0"),
    ],
    ids=str,
)
def test_what_srun_refuses_is_wrong_usage_in_its_own_words(
    run: Run, words: list[str], message: str
) -> None:
    text = run(*words, code=2)
    assert message in " ".join(text.split())


def test_an_allocation_that_has_ended(run: Run) -> None:
    text = " ".join(run("--", "-w", "n1", code=2, SLURM_JOB_ID="999999").split())
    assert "srun refuses: srun: error: Unable to confirm allocation for job 999999" in text
    assert "Check SLURM_JOB_ID environment variable" in text


@pytest.mark.parametrize("python", ["/nowhere/python", "."])
def test_a_python_that_is_not_there(run: Run, python: str) -> None:
    node = run.nodes(f"--python={python}", "--", "-w", "n1", code=1)["n1"]
    assert node["reason"].startswith("torchpin: --python ")
    assert node["reason"].endswith(
        "No such file or directory; write the path of a Python of 3.8 or newer"
    )


def test_no_slurm_at_all(run: Run, tmp_path: Path) -> None:
    text = run("--", "-p", "few", code=2, PATH=str(tmp_path))
    assert "srun is not on the PATH" in text


def test_a_controller_that_is_not_there(run: Run, tmp_path: Path) -> None:
    wrong = tmp_path / "slurm.conf"
    text = (run.slurm.folder / "slurm.conf").read_text()
    ports = [line for line in text.splitlines() if line.startswith("SlurmctldPort=")]
    wrong.write_text(text.replace(ports[0], "SlurmctldPort=1\nMessageTimeout=2"))
    assert "sinfo does not tell the nodes" in run("--", "-p", "few", code=2, SLURM_CONF=str(wrong))


def test_within_an_allocation_its_nodes_are_verified(run: Run, slurm: Slurm) -> None:
    done = subprocess.run(
        ["salloc", "-p", "few", "-N2", *run.words("--output-format=json")],
        cwd=run.folder,
        env=slurm.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    nodes = json.loads(done.stdout)["nodes"]
    assert [(node["node"], node["status"]) for node in nodes] == [("n1", "ok"), ("n2", "ok")]


def test_lines_come_as_they_are_and_can_be_read_again(run: Run, tmp_path: Path) -> None:
    lines = run("--output-format=jsonl", "--", "-w", "n1,bad1", code=1)
    kinds = [json.loads(line)["kind"] for line in lines.splitlines()]
    assert kinds.count("host") == kinds.count("summary") == kinds.count("node") == 2
    assert kinds[-1] == "cluster"
    (tmp_path / "answers.jsonl").write_text(lines)
    words = [sys.executable, "-m", "torchpin", "verify", "--from", "answers.jsonl", "--isolated"]
    again = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert again.stdout == run("--no-color", "--", "-w", "n1,bad1", code=1)


def test_the_profile_names_the_group_and_what_differs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    words = [word for word in run.words("--no-color", "--", "-w", "n1,c1") if word != "--isolated"]
    done = subprocess.run(
        words, cwd=tmp_path, env=run.slurm.environ, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("training\n  2 nodes  ")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_job_and_no_process(
    run: Run, slurm: Slurm, number: signal.Signals, code: int
) -> None:
    child = subprocess.Popen(
        run.words("--", "-w", "n1,late1"),
        env=slurm.environ,
        cwd=run.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that runs the tests in the background has the signal ignored
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    process = run.folder / "process-late1"
    process.unlink(missing_ok=True)
    until(process.exists)
    slurm_is_free(slurm, "n1")
    time.sleep(1)  # its answer is on its way
    os.kill(child.pid, number)
    told, _ = child.communicate(timeout=90)
    assert child.returncode == code
    assert "  1 node   ok         n1: " in told
    assert "  1 node   cut short  late1: " in told
    assert "      - not done when it was interrupted\n" in told
    slurm_is_free(slurm, "late1")
    until(lambda: not is_running(int(process.read_text())))


def is_running(number: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except FileNotFoundError:
        return False


def slurm_is_free(slurm: Slurm, name: str) -> None:
    until(lambda: name not in slurm("squeue", "-h", "-o", "%N"))


def until(condition: Callable[[], bool]) -> None:
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it does not come to that")
