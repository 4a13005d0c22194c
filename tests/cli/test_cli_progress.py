"""Long work shows on a terminal how far it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchpin.cli import progress
from torchpin.cli.main import guarded
from torchpin.progress import counting
from torchpin.rules.context import Way
from torchpin.rules.model import Finding


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(20):
        Path(str(number)).mkdir()
        (Path(str(number)) / "requirements.txt").write_text("torch==2.15.0\n")
    Path("torchpin.toml").write_text('[fleet.a]\ngpus = ["V100"]\npython = "3.11"\n')


@pytest.mark.parametrize(
    "args",
    [
        ("check", "--no-cache"),
        ("check", "--no-cache", "--statistics"),
        ("check", "--ignored"),
        ("fix", "--diff", "--unsafe-fixes"),
        ("show",),
        ("resolve",),
        ("upgrade", "--to", "2.15"),
        ("baseline", "create"),
    ],
    ids=" ".join,
)
def test_a_terminal_sees_how_far_it_is(
    args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    drawn: list[str] = []
    draw = progress.Bar.draw

    def watch(self: progress.Bar, what: str, done: int, total: int | None, size: str = "") -> None:
        drawn.append(f"{what} {done}/{total}")
        draw(self, what, done, total, size)

    monkeypatch.setattr(progress.Bar, "draw", watch)
    guarded(list(args))
    assert "reading files 19/20" in drawn
    assert "looking at what would be installed 19/None" in drawn
    drawn.clear()
    guarded([*args, "--quiet"] if args[0] != "baseline" else ["check", "--no-cache", "-q"])
    assert drawn == []


def test_a_pipe_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER", 0.0)
    guarded(["check", "--no-cache"])
    assert "reading files" not in capsys.readouterr().err


def test_counting_passes_all_on() -> None:
    told: list[tuple[str, int, int | None]] = []
    assert list(counting(lambda *one: told.append(one), "x", ["a", "b"])) == ["a", "b"]
    assert told == [("x", 0, 2), ("x", 1, 2)]


def test_planning_looks_at_the_files_of_a_finding_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    tells = Way.tells

    def watch(way: Way, finding: Finding) -> bool:
        asked.append(finding)
        return tells(way, finding)

    monkeypatch.setattr(Way, "tells", watch)
    guarded(["check", "--no-cache", "-q"])
    findings = 20 * 2
    assert 0 < len(asked) <= 5 * findings, "each finding against each way would be 20 times as many"
