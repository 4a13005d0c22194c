"""``check --ignored``, and the rule that asks for reasons."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.cli.main import guarded

PROFILE = """\
[per-file-ignores]
"legacy/*" = ["TP1"]

[fleet.main]
gpus = ["A100"]
driver = "580.65.06"
python = "3.11"
"""
INDEX = "--extra-index-url https://download.pytorch.org/whl/cu124\n"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    (tmp_path / "requirements.txt").write_text(
        "torch==2.14.0+cu124  # torchpin: ignore[TP106] our mirror has it\n"
        f"torchaudio==2.14.0  # torchpin: ignore\n{INDEX}"
    )
    (tmp_path / "legacy").mkdir()
    (tmp_path / "legacy" / "requirements.txt").write_text(f"torch==2.14.0+cu124\n{INDEX}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_silenced_is_listed_with_who_silences_it_and_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guarded(["check", "--ignored"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "legacy/requirements.txt:1:1: error[TP106] cu124 stopped at torch 2.6.0: "
        "it has no torch 2.14.0",
        "  = per-file-ignores: legacy/*: TP1",
        "requirements.txt:1:1: error[TP106] cu124 stopped at torch 2.6.0: it has no torch 2.14.0",
        "  = line 1: our mirror has it",
        "requirements.txt:2:1: error[TP101] torchaudio 2.14.0 was never published "
        "(the last is 2.11.1)",
        "  = line 2: no reason is given",
        "3 findings ignored, 1 without a reason.",
    ]


def test_nothing_is_listed_where_nothing_is_silenced(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "requirements.txt").write_text("torch==2.9.1\n")
    assert guarded(["check", "--ignored", "requirements.txt"]) == 0
    assert capsys.readouterr().out == "Nothing is ignored.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("--output-format", "json"),
        ("--statistics",),
        ("--diff",),
        ("--evidence", "measured"),
        ("--changed-since", "HEAD"),
    ],
)
def test_the_list_has_no_other_form(words: tuple[str, ...]) -> None:
    assert guarded(["check", "--ignored", *words]) == 2


def test_a_profile_may_ask_for_reasons(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["check", "--output-format", "concise"]) == 0
    assert "TP004" not in capsys.readouterr().out
    (project / "torchpin.toml").write_text(f"require-reasons = true\n{PROFILE}")
    assert guarded(["check", "--output-format", "concise"]) == 1
    out = capsys.readouterr().out
    # a comment without codes does not silence what is said of itself
    assert "requirements.txt:2:21: warning[TP004] this comment gives no reason\n" in out
    assert out.count("TP004") == 1
