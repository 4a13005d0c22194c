"""Many commands at a time: what they print, how they end, and that none is left."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest

from torchpin.verify.cluster import jobs
from torchpin.verify.cluster.collect import Collector
from torchpin.verify.cluster.slurm import reason

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Slurm is not for Windows")


def run(
    programs: dict[str, str],
    *,
    at_once: int = 4,
    begin_within: float = 60.0,
    end_within: float = 60.0,
    ticks: list[tuple[int, int]] | None = None,
) -> list[jobs.Event]:
    collector = Collector()
    commands: list[tuple[str, Sequence[str]]] = [
        (name, [sys.executable, "-c", program]) for name, program in programs.items()
    ]
    found = []
    for event in jobs.run(
        commands,
        os.environ,
        at_once=at_once,
        begin_within=begin_within,
        end_within=end_within,
        begun=collector.begun,
        tick=lambda done, running: ticks.append((done, running)) if ticks is not None else None,
    ):
        found.append(event)
        if isinstance(event, jobs.Line):
            collector.feed(event.text, event.name, event.name)
    return found


HOST = '{"version": 1, "kind": "host", "node": "x", "platform": "linux-x86_64"}'


def test_lines_come_before_the_end_of_their_job() -> None:
    first, second, end = run({"a": "import sys; print('one'); print('two'); sys.exit(3)"})
    assert (first, second) == (jobs.Line("a", "one"), jobs.Line("a", "two"))
    assert end == jobs.Ended("a", 3, ())


def test_enormous_output_is_read_in_pieces_and_does_not_pile_up() -> None:
    program = (
        "import sys\n"
        "sys.stdout.write('x' * 20_000_000)\n"
        "print()\n"
        f"print({HOST!r})\n"
        "for n in range(200_000): sys.stderr.write('noise %d\\n' % n)\n"
    )
    events = run({"a": program})
    collector = Collector()
    for event in events:
        if isinstance(event, jobs.Line):
            assert len(event.text) <= 1024 * 1024
            collector.feed(event.text, "a", "a")
    assert collector.begun("a")
    end = events[-1]
    assert isinstance(end, jobs.Ended)
    assert len(end.errors) == 40
    assert end.errors[-1] == "noise 199999"


def test_what_slurm_says_is_kept_beside_a_flood_of_others() -> None:
    program = (
        "import sys\n"
        "print('srun: error: n1: task 0: Killed', file=sys.stderr)\n"
        "for n in range(10_000): print('flood', n, file=sys.stderr)\n"
        "sys.exit(1)\n"
    )
    end = run({"a": program})[-1]
    assert isinstance(end, jobs.Ended)
    told = reason("n1", end.code, end.errors, "")
    assert told == "srun: error: task 0: Killed; the last that it printed: flood 9999"


def test_no_more_than_asked_run_at_a_time() -> None:
    ticks: list[tuple[int, int]] = []
    events = run(dict.fromkeys("abcdef", "print(1)"), at_once=2, ticks=ticks)
    assert sum(isinstance(event, jobs.Ended) for event in events) == 6
    assert max(running for _, running in ticks) == 2


def test_a_job_that_does_not_begin_is_ended() -> None:
    program = (
        "import sys, time\n"
        "print('srun: job 7 queued and waiting for resources', file=sys.stderr, flush=True)\n"
        "time.sleep(60)\n"
    )
    (late,) = run({"a": program}, begin_within=1.0)
    assert late == jobs.Late("a", ("srun: job 7 queued and waiting for resources",), False)


def test_a_job_that_does_not_end_is_ended() -> None:
    program = f"import time; print({HOST!r}, flush=True); time.sleep(60)"
    line, late = run({"a": program}, end_within=1.0)
    assert isinstance(line, jobs.Line)
    assert late == jobs.Late("a", (), True)


def test_jobs_are_ended_when_nobody_reads_any_more() -> None:
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    events = jobs.run(
        [("a", [sys.executable, "-c", program])],
        os.environ,
        at_once=1,
        begin_within=60,
        end_within=60,
        begun=lambda name: True,
        tick=lambda done, running: None,
    )
    event = next(events)
    assert isinstance(event, jobs.Line)
    events.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(event.text), 0)


@pytest.mark.parametrize(
    ("errors", "words", "told"),
    [
        ([], "", "srun ended with exit code 7 and said nothing"),
        ([], "Segmentation fault", "Segmentation fault"),
        (["Traceback", "ModuleNotFoundError: x"], "", "ModuleNotFoundError: x"),
        (
            [
                "noise",
                "torchpin: --python /no: does not start",
                "  write another",
                "srun: error: n1: task 0: Exited with exit code 2",
            ],
            "",
            "torchpin: --python /no: does not start; write another",
        ),
        (
            [
                "srun: error: n1: task 0: Exited with exit code 2",
                "slurmstepd-n1: error: execve(): /home/me/bin/python: No such file or directory",
            ],
            "",
            "slurmstepd: error: execve(): /home/me/bin/python: No such file or directory; "
            "the node needs this torchpin by the same path, on a shared file system",
        ),
        (
            ["/usr/bin/python3: No module named torchpin"],
            "",
            "/usr/bin/python3: No module named torchpin; the node needs this torchpin by the same "
            "path, on a shared file system",
        ),
        (
            ["srun: Job step aborted: Waiting up to 32 seconds", "srun: error: n1: task 0: Killed"],
            "",
            "srun: error: task 0: Killed",
        ),
        (
            [
                "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-30T20:24:28 "
                "DUE TO TIME LIMIT ***"
            ],
            "",
            "slurmstepd: error: *** STEP CANCELLED DUE TO TIME LIMIT ***",
        ),
        (
            ["slurmstepd-n1: error: Detected 1 oom_kill event in StepId=1.0."],
            "",
            "slurmstepd: error: Detected 1 oom_kill event.",
        ),
        (
            [
                "srun: error: Task launch for StepId=6.0 failed on node n1: Communication failure",
                "srun: error: Application launch failed: Communication failure",
            ],
            "",
            "srun: error: Task launch failed: Communication failure",
        ),
    ],
)
def test_reasons_are_in_the_words_of_slurm_and_alike_for_all_nodes(
    errors: list[str], words: str, told: str
) -> None:
    assert reason("n1", 7, errors, words) == told
