"""What silences findings: comments, --select, --ignore, per-file settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

BROKEN = "torch==2.11.0"
"""Without kernels for a V100 (TP201)."""
PROFILE = '[fleet.volta]\ngpus = ["Tesla V100"]\npython = "3.11"\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchpin.toml").write_text(PROFILE, "utf-8")
    return tmp_path


def codes(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Return the codes of a run in the present folder."""
    capsys.readouterr()
    code = guarded(["check", "--output-format", "json", *arguments])
    captured = capsys.readouterr()
    assert code in (0, 1), captured.err
    return [one["code"] for one in json.loads(captured.out)["findings"]]


@pytest.mark.parametrize(
    "text, silenced",
    [
        (f"{BROKEN}\n", False),
        (f"{BROKEN}  # torchpin: ignore[TP201] tried on the machine\n", True),
        (f"{BROKEN}  # torchpin: ignore\n", True),
        (f"{BROKEN}  # Torchpin : ignore[tp201]\n", True),
        (f"{BROKEN}  # torchpin: ignore[TP2]\n", True),
        (f"{BROKEN}  # torchpin: ignore[TP203]\n", False),
        (f"{BROKEN}  # torchpin: ignore[TP203, TP201]\n", True),
        (f"# torchpin: ignore[TP201]\n{BROKEN}\n", True),
        (f"# torchpin: ignore[TP201]\nnumpy\n{BROKEN}\n", False),
        (f"# torchpin: ignore[TP201]\n\n{BROKEN}\n", False),
        (f"# torchpin: ignore-file[TP201]\n\nnumpy\n{BROKEN}\n", True),
        (f"numpy\n{BROKEN}\n# torchpin: ignore-file\n", True),
        (f"{BROKEN}  # ignore[TP201]\n", False),
    ],
)
def test_comments(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, silenced: bool
) -> None:
    (project / "requirements.txt").write_text(text, "utf-8")
    assert ("TP201" not in codes(capsys)) is silenced


def test_a_silenced_finding_is_not_fixed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "requirements.txt"
    text = f"{BROKEN}  # torchpin: ignore[TP201] held back\n"
    file.write_text(text, "utf-8")
    assert guarded(["check"]) == 0
    assert guarded(["fix", "--unsafe-fixes"]) == 0
    assert file.read_text("utf-8") == text


@pytest.mark.parametrize(
    "arguments, expected",
    [
        ((), ["TP403", "TP201", "TP601"]),
        (("--select", "TP2"), ["TP201"]),
        (("--select", "TP2,TP4"), ["TP403", "TP201"]),
        (("--select", "TP2", "--select", "TP601"), ["TP201", "TP601"]),
        (("--select", "ALL"), ["TP403", "TP201", "TP601"]),
        (("--ignore", "TP2"), ["TP403", "TP601"]),
        (("--ignore", "TP6", "--ignore", "TP403"), ["TP201"]),
        (("--select", "TP2", "--ignore", "TP201"), []),
        (("--per-file-ignores", "requirements.txt:TP201"), ["TP403", "TP601"]),
        (("--per-file-ignores", "*.txt:TP2,TP4"), ["TP601"]),
        (("--per-file-ignores", "other/*:TP2"), ["TP403", "TP201", "TP601"]),
    ],
)
def test_options(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    expected: list[str],
) -> None:
    (project / "requirements.txt").write_text(f"--trusted-host a.example\n{BROKEN}\n", "utf-8")
    found = codes(capsys, *arguments)
    assert [code for code in found if code in ("TP403", "TP201", "TP601")] == [
        code for code in expected if code != "TP601" or "TP601" in found
    ]
    assert set(found) <= {"TP403", "TP201", "TP601"}


@pytest.mark.parametrize(
    "setting, expected",
    [
        ('select = ["TP4"]', ["TP403"]),
        ('ignore = ["TP4"]', ["TP201"]),
        ('per-file-ignores = { "requirements.txt" = ["TP2"] }', ["TP403"]),
    ],
)
def test_settings_of_the_profile(
    project: Path, capsys: pytest.CaptureFixture[str], setting: str, expected: list[str]
) -> None:
    (project / "torchpin.toml").write_text(f"{setting}\n{PROFILE}", "utf-8")
    (project / "requirements.txt").write_text(f"--trusted-host a.example\n{BROKEN}\n", "utf-8")
    assert codes(capsys) == expected


def test_select_on_the_command_line_beats_the_profile(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "torchpin.toml").write_text(f'select = ["TP4"]\n{PROFILE}', "utf-8")
    (project / "requirements.txt").write_text(f"--trusted-host a.example\n{BROKEN}\n", "utf-8")
    assert codes(capsys, "--select", "TP201") == ["TP201"]


@pytest.mark.parametrize("option", ["--select", "--ignore"])
def test_unknown_codes_are_wrong_usage(
    project: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    (project / "requirements.txt").write_text(f"{BROKEN}\n", "utf-8")
    assert guarded(["check", option, "TP999"]) == 2
    assert "TP999" in capsys.readouterr().err
