"""What the tutorials say, tried; what commands print there is made by tools/gen_docs.py."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from torchpin.cli.main import guarded

ROOT = Path(__file__).resolve().parent.parent.parent
TUTORIALS = ROOT / "docs" / "tutorial"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Return the exit code, and what was printed, with every run of blanks as one."""
    capsys.readouterr()
    status = guarded(list(words))
    return status, " ".join(capsys.readouterr().out.split())


def example(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(ROOT / "examples" / name, folder / name)
    monkeypatch.chdir(folder / name)
    return folder / name


def page(name: str) -> str:
    return (TUTORIALS / f"{name}.md").read_text("utf-8")


def blocks(text: str, word: str) -> list[str]:
    return re.findall(rf"```{word}\n(.*?)```", text, re.S)


def test_old_gpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = " ".join(page("old-gpus").split())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.txt").write_text("torch\n")
    asked = re.search(r"\$ torchpin (check .*?) ```", text)
    assert asked is not None
    status, told = run(capsys, *asked[1].split())
    assert status == 1 and set(re.findall(r"\[(TP\d+)\]", told)) == {"TP501", "TP203"}
    assert "torch==2.14.1+cu126 (index cu126)" in told

    example("legacy-cluster", tmp_path, monkeypatch)
    assert run(capsys, "fix")[0] == 0
    status, told = run(capsys, "check")
    assert (status, re.findall(r"\[(TP\d+)\]", told)) == (0, ["TP601", "TP601", "TP602"])
    quoted = re.findall(r"\(`([^`]+)`\)", text)
    assert len(quoted) >= 2
    for sentence in quoted[-2:]:
        assert sentence in told
    _, told = run(capsys, "recipe", "--gpu", "V100", "--torch", "2.15.0")
    assert "CUDA_HOME=/usr/local/cuda-12.9" in told and "CUDA 12.9 at most" in text


def test_mixed_fleet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page("mixed-fleet")
    folder = example("mixed-fleet", tmp_path, monkeypatch)
    assert (folder / "requirements.txt").read_text() in text
    run(capsys, "resolve", "--split", "--policy", "newest", "--write", "requirements", "-q")
    (profile,) = blocks(text, 'toml title="torchpin.toml"')
    (folder / "torchpin.toml").write_text(profile)
    assert sorted(one.name for one in (folder / "requirements").iterdir()) == [
        "blackwell.txt",
        "volta.txt",
    ]
    assert run(capsys, "check")[0] == 0


def test_uv_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page("uv-project")
    folder = example("uv-project", tmp_path, monkeypatch)
    (shown,) = blocks(text, 'toml title="pyproject.toml"')
    assert (folder / "pyproject.toml").read_text() == shown
    assert run(capsys, "fix")[0] == 0
    assert "Nothing to change." in run(capsys, "fix")[1]
    group = '[fleet.{}]\ngpus = ["{}"]\ndriver = "580.65.06"\npython = "3.12"\n'
    (folder / "torchpin.toml").write_text(group.format("a", "V100") + group.format("b", "B200"))
    assert "[project.optional-dependencies]" in run(capsys, "check")[1]
    run(capsys, "fix", "--unsafe-fixes")
    after = (folder / "pyproject.toml").read_text()
    assert "conflicts = [" in after and 'extra = "cu126"' in after and 'extra = "cu130"' in after


def test_first_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page("first-check")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.txt").write_text(blocks(text, "text")[0])
    (tmp_path / "torchpin.toml").write_text(blocks(text, "toml")[0])
    commands = re.findall(r"\$ torchpin ([^#\n]+)", text)
    assert len(commands) == 6
    codes = [run(capsys, *line.split())[0] for line in commands]
    assert codes == [1, 1, 0, 0, 0, 0]
    assert "Nothing to change." in run(capsys, "fix", "requirements.txt")[1]


def test_ci(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page("ci")
    folder = example("mixed-fleet", tmp_path, monkeypatch)
    assert run(capsys, "check")[0] == 1
    assert run(capsys, "baseline", "create")[0] == 0
    (line,) = blocks(text, 'toml title="torchpin.toml"')
    profile = folder / "torchpin.toml"
    profile.write_text(line + profile.read_text())
    assert run(capsys, "check")[0] == 0
    assert run(capsys, "fix", "--unsafe-fixes")[0] == 0
    assert (folder / "requirements.txt").read_text() == "torch>=2.8\ntorchvision\n"
    assert run(capsys, "init", "--pre-commit")[0] == 0
    assert "torchpin check" in (folder / ".pre-commit-config.yaml").read_text()
