"""Options of srun that choose nodes are found in all their spellings; the rest is passed on."""

from __future__ import annotations

import pytest

from torchpin.errors import UsageError
from torchpin.verify.cluster.model import Expected
from torchpin.verify.cluster.slurm import command
from torchpin.verify.cluster.srun_options import SrunOptions, read


@pytest.mark.parametrize(
    "words",
    [
        ["-w", "n[1-2]"],
        ["-wn[1-2]"],
        ["--nodelist", "n[1-2]"],
        ["--nodelist=n[1-2]"],
        ["--nodel=n[1-2]"],
        ["-w", "other", "-w", "n[1-2]"],
    ],
    ids=str,
)
def test_spellings_of_a_node_list(words: list[str]) -> None:
    assert read([*words, "-t", "5"]) == SrunOptions(("-t", "5"), nodelist="n[1-2]")


def test_each_option_that_chooses_nodes() -> None:
    told = read(["-N2", "-n", "4", "--part=gpu", "-x", "n1", "--ntasks-per-node=3", "-F", "f"])
    assert (told.number, told.tasks, told.nodefile) == ("2", "4", "f")
    assert (told.partition, told.exclude) == ("gpu", "n1")
    assert told.rest == ("--partition=gpu", "--exclude=n1")


@pytest.mark.parametrize(
    "word", ["--gres=gpu:1", "--gres=none", "-G4", "--gpus-per-node=2", "--gpus=1"]
)
def test_gpus_that_are_asked_for(word: str) -> None:
    assert read([word]).asks_gpus
    node = Expected("n1", gpus=8)
    assert "--gres=gpu:8" not in command(read([word]), node, ["true"], allocated=False)
    assert "--gres=gpu:8" in command(read(["-t5"]), node, ["true"], allocated=False)
    assert "--gres=gpu:8" not in command(read([]), node, ["true"], allocated=True)


@pytest.mark.parametrize(
    "words",
    [["--exclusive"], ["--exclu"], ["-c4"], ["--gpu-bind=none"], ["-A", "x y"], ["-q", "a", "-v"]],
    ids=str,
)
def test_other_options_stay_as_they_are(words: list[str]) -> None:
    assert read(words) == SrunOptions(tuple(words))


@pytest.mark.parametrize(
    "words",
    [["hostname"], ["-p", "gpu", "hostname"], ["-A", "lab", "hostname"], ["--mem=1G", "./x", "-a"]],
    ids=str,
)
def test_a_command_would_run_in_place_of_torchpin(words: list[str]) -> None:
    with pytest.raises(UsageError, match="is no option of srun"):
        read(words)


@pytest.mark.parametrize("word", ["-o", "--output=x", "--outp=x", "--pty", "-h", "--multi-prog"])
def test_options_that_take_the_output_away(word: str) -> None:
    with pytest.raises(UsageError, match="cannot be used here"):
        read([word, "x"])


def test_a_value_that_is_missing() -> None:
    with pytest.raises(UsageError, match="--partition needs a value"):
        read(["--partition"])


def test_the_node_is_the_last_word_of_the_options() -> None:
    words = command(read(["--mem=1G"]), Expected("n1"), ["python", "-m", "x"], allocated=True)
    assert words == [
        *("srun", "--mem=1G", "--nodelist=n1", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1"),
        *("python", "-m", "x"),
    ]
