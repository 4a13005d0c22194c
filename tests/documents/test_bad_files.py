"""Bad input: clear words, no crash, no endless wait."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchpin.documents import loader
from torchpin.documents.base import Document
from torchpin.documents.discover import discover, load
from torchpin.errors import TorchpinError, UsageError

BAD = Path(__file__).parents[2] / "fixtures" / "bad"
root_only = pytest.mark.skipif(
    hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything"
)


def test_binary_file() -> None:
    with pytest.raises(TorchpinError, match="binary") as caught:
        load(str(BAD / "binary" / "requirements.txt"), {})
    assert caught.value.exit_code == 2
    assert caught.value.path is not None


def test_undecodable_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_locale_encoding", lambda: "utf-8")
    document = load(str(BAD / "undecodable" / "requirements.txt"), {})
    assert [problem.code for problem in document.problems] == ["decode"]
    assert "0xe9" in document.problems[0].message
    assert document.text == ""
    assert document.declarations == ()


def test_undecodable_file_where_the_locale_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_locale_encoding", lambda: "cp1252")
    document = load(str(BAD / "undecodable" / "requirements.txt"), {})
    assert [problem.code for problem in document.problems] == ["encoding"]
    assert [d.specifier for d in document.declarations] == ["==2.14.0+cu124"]


def test_unknown_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_locale_encoding", lambda: "utf-8")
    document = load(str(BAD / "unknown-codec" / "requirements.txt"), {})
    assert [problem.code for problem in document.problems] == ["decode"]
    assert "no-such-codec" in document.problems[0].message


def test_nonsense() -> None:
    document = load(str(BAD / "nonsense" / "requirements.txt"), {})
    assert {problem.code for problem in document.problems} == {
        *("syntax", "specifier", "option", "marker")
    }
    assert [d.name for d in document.declarations if d.valid] == []
    lines = {document.text.count("\n", 0, problem.span.start) + 1 for problem in document.problems}
    assert lines == {1, 2, 3, 4, 5, 6, 7, 8}


def test_large_file(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    with path.open("wb") as file:
        file.truncate(50 * 1024 * 1024)  # a hole: costs no disk
    with pytest.raises(TorchpinError, match="too large: more than 32 MiB"):
        load(str(path), {})


@root_only
def test_unreadable_file(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch\n")
    path.chmod(0)
    with pytest.raises(TorchpinError, match="permission denied"):
        load(str(path), {})


def test_unreadable_file_as_the_system_says_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch\n")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(TorchpinError, match="permission denied") as caught:
        load(str(path), {})
    assert caught.value.path == str(path)
    assert caught.value.hint


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in the file system")
def test_pipe_does_not_block(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    os.mkfifo(path)
    with pytest.raises(TorchpinError, match="no regular file"):
        load(str(path), {})
    assert discover([str(tmp_path)]).files == ()


def test_device_and_folder(tmp_path: Path) -> None:
    with pytest.raises(TorchpinError, match="folder"):
        load(str(tmp_path), {})
    if Path("/dev/zero").exists():
        with pytest.raises(TorchpinError, match="no regular file"):
            load("/dev/zero", {})


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(TorchpinError, match="does not exist"):
        load(str(tmp_path / "requirements.txt"), {})
    with pytest.raises(UsageError, match="no such file"):
        discover([str(tmp_path / "nowhere")])
    (tmp_path / "requirements.txt").write_text("torch")
    with pytest.raises(UsageError, match="no such file"):
        discover([str(tmp_path / "requirements.txt" / "x")])
    with pytest.raises(TorchpinError):
        discover(["a\0b"])
    with pytest.raises(TorchpinError):
        load("a\0b", {})


def test_folder_loop(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "requirements.txt").write_text("torch\n")
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path / "a", target_is_directory=True)
    (tmp_path / "self").symlink_to(tmp_path / "self")
    found = discover([str(tmp_path)])
    assert [file.path for file in found.files] == [str(tmp_path / "a" / "requirements.txt")]


def test_load_reads_once(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch==2.1\n")
    cache: dict[str, Document] = {}
    first = load(str(path), cache)
    path.write_text("torch==2.2\n")
    assert load(str(path), cache) is first


def test_the_environment_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "token")
    path = tmp_path / "requirements.txt"
    path.write_text("--index-url https://${SECRET}@a.example/simple\ntorch==${SECRET}\n")
    document = load(str(path), {})
    assert "token" not in repr(document)
    assert document.declarations[0].from_variable
