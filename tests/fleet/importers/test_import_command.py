"""``torchpin fleet import`` as a user runs it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from tests.fleet.importers.inputs import gfd, node, nodes, scontrol, smi_xml

from torchpin.cli.main import guarded
from torchpin.fleet.profile import load_profile


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes.json").write_text(nodes(node("a1", gfd("Tesla-T4", "7.5")), node("c1")))
    (tmp_path / "slurm.txt").write_text(scontrol("n1", "gpu:4"))
    (tmp_path / "node001.xml").write_text(smi_xml("Tesla T4"))
    return tmp_path


def test_printed_profile_is_one_that_check_takes(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(["fleet", "import", "nodes.json"]) == 0
    (here / "torchpin.toml").write_text(capsys.readouterr().out, encoding="utf-8")
    assert [group.name for group in load_profile("torchpin.toml").groups] == ["t4", "cpu"]
    (here / "requirements.txt").write_text("torch==2.5.1\n")
    assert guarded(["check", "requirements.txt"]) in (0, 1)
    assert guarded(["fleet", "show"]) == 0


def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = io.TextIOWrapper(io.BytesIO(smi_xml("Tesla T4").encode("utf-16")))
    monkeypatch.setattr(sys, "stdin", data)
    assert guarded(["fleet", "import", "-"]) == 0
    assert "from standard input" in capsys.readouterr().out


def test_output_is_never_overwritten_unasked(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(["fleet", "import", "nodes.json", "--output", "torchpin.toml"]) == 0
    assert "Wrote torchpin.toml: 2 node groups." in capsys.readouterr().out
    before = (here / "torchpin.toml").read_bytes()
    assert guarded(["fleet", "import", "node001.xml", "--output", "torchpin.toml"]) == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert (here / "torchpin.toml").read_bytes() == before
    arguments = ["fleet", "import", "node001.xml", "--output", "torchpin.toml", "--force"]
    assert guarded(arguments) == 0
    assert guarded(arguments) == 0
    assert len(load_profile("torchpin.toml").groups) == 1
    assert sorted(path.name for path in here.iterdir()) == [
        "node001.xml",
        "nodes.json",
        "slurm.txt",
        "torchpin.toml",
    ]


def test_a_pyproject_is_never_replaced(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "pyproject.toml").write_text("[project]\n")
    arguments = ["fleet", "import", "nodes.json", "--output", "pyproject.toml", "--force"]
    assert guarded(arguments) == 2
    assert "is not overwritten" in capsys.readouterr().err
    assert (here / "pyproject.toml").read_text() == "[project]\n"


def test_what_is_left_open_is_exit_1_and_gpu_closes_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guarded(["fleet", "import", "slurm.txt"]) == 1
    told = capsys.readouterr()
    assert "1 to be filled in by hand" in told.err
    assert "Which GPUs?" in told.out
    assert guarded(["fleet", "import", "slurm.txt", "--gpu", "V100", "--group", "train"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert "[fleet.train]" in told.out


def test_a_value_that_is_left_out_is_exit_1(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "new.csv").write_text("NVIDIA GeForce RTX 5090, 535.104.05\n")
    assert guarded(["fleet", "import", "new.csv", "-o", "torchpin.toml"]) == 1
    assert "1 to be filled in by hand" in capsys.readouterr().err
    assert '# driver = "535.104.05"' in (here / "torchpin.toml").read_text(encoding="utf-8")
    assert load_profile("torchpin.toml").groups[0].driver is None


def test_files_join(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / "n1.xml").write_text(smi_xml("Tesla T4"))
    assert guarded(["fleet", "import", "slurm.txt", "n1.xml"]) == 0
    assert "told by scontrol show nodes and nvidia-smi -q -x" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "FILE"),
        (["absent.json"], "cannot be read"),
        (["."], "is a folder"),
        (["-", "-"], "once only"),
        (["nodes.json", "--from", "slurm"], "is an output of kubernetes, not of slurm"),
        (["nodes.json", "--from", "nagios"], "invalid choice"),
        (["nodes.json", "--gpu", "V1000"], "unknown GPU"),
        (["nodes.json", "--group", "a]b"], "is no name for a node group"),
        (["nodes.json", "--force"], "--force goes with --output"),
        (["nodes.json", "--output", "no/such/folder.toml"], "cannot be written"),
        (["nodes.json", "--output", "."], "is a folder"),
    ],
)
def test_wrong_usage(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    before = sorted(here.iterdir())
    try:
        code = guarded(["fleet", "import", *arguments])
    except SystemExit as left:
        code = int(str(left.code))
    told = capsys.readouterr()
    assert code == 2
    assert words in told.err
    assert told.out == ""
    assert sorted(here.iterdir()) == before
