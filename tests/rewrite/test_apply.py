"""Writing files: all or none, and nothing but the edited bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchpin.documents.base import Edit, Span
from torchpin.documents.requirements import read_requirements
from torchpin.errors import RewriteError
from torchpin.rewrite.apply import changed_bytes, write_all


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def two(folder: Path) -> list[tuple[str, bytes, bytes]]:
    (folder / "a.txt").write_bytes(b"a1")
    (folder / "b.txt").write_bytes(b"b1")
    return [(str(folder / "a.txt"), b"a1", b"a2"), (str(folder / "b.txt"), b"b1", b"b2")]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbftorch==2.1\r\n# \xc3\xa9\r\n",
        b"\xff\xfe" + "torch==2.1\r\n".encode("utf-16-le"),
        b"# -*- coding: latin-1 -*-\ntorch==2.1 # \xe9",
        b"torch==2.1\rx\r\n\n",
    ],
)
def test_all_other_bytes_stay(data: bytes) -> None:
    document = read_requirements("x", data)
    span = document.declarations[0].specifier_span
    assert span is not None
    new = changed_bytes(document, (Edit(span, "==2.2"),))
    old, changed = (text.encode(document.encoding) for text in ("==2.1", "==2.2"))
    assert new == data.replace(old, changed)
    assert changed_bytes(document, ()) == data


def test_edits_that_cannot_be() -> None:
    document = read_requirements("x", b"# coding: latin-1\ntorch==2.1\n")
    with pytest.raises(RewriteError, match="does not exist in the encoding"):
        changed_bytes(document, (Edit(Span(0, 0), "→"),))
    with pytest.raises(RewriteError, match="overlaps"):
        changed_bytes(document, (Edit(Span(0, 3), "a"), Edit(Span(2, 4), "b")))
    with pytest.raises(RewriteError, match="outside"):
        changed_bytes(document, (Edit(Span(0, 300), "a"),))


def test_writes_all_and_leaves_no_trace(tmp_path: Path) -> None:
    write_all(two(tmp_path))
    assert contents(tmp_path) == {"a.txt": b"a2", "b.txt": b"b2"}


def test_mode_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = tmp_path / "real" / "requirements.txt"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link = tmp_path / "requirements.txt"
    link.symlink_to(path)
    write_all([(str(link), b"old", b"new")])
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in (tmp_path / "real").iterdir()] == ["requirements.txt"]


def test_a_file_changed_meanwhile_stops_all(tmp_path: Path) -> None:
    changes = two(tmp_path)
    (tmp_path / "b.txt").write_bytes(b"b1 and more")
    with pytest.raises(RewriteError, match="changed on disk") as caught:
        write_all(changes)
    assert caught.value.path == str(tmp_path / "b.txt")
    assert contents(tmp_path) == {"a.txt": b"a1", "b.txt": b"b1 and more"}


@pytest.mark.parametrize("step", ["replace", "link", "fsync"])
def test_a_failure_half_way_puts_all_back(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = two(tmp_path)
    real_replace, real_fsync = os.replace, os.fsync
    calls = {"replace": 0, "fsync": 0}

    def replace(source: str, target: str) -> None:
        calls["replace"] += 1
        if step == "replace" and calls["replace"] == 2:
            raise OSError(28, "No space left on device")
        real_replace(source, target)

    def fsync(descriptor: int) -> None:
        calls["fsync"] += 1
        if step == "fsync" and calls["fsync"] == 2:
            raise OSError(5, "Input/output error")
        real_fsync(descriptor)

    def no_link(source: str, target: str) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "fsync", fsync)
    if step == "link":  # no failure: backups are copies then
        monkeypatch.setattr(os, "link", no_link)
        write_all(changes)
        assert contents(tmp_path) == {"a.txt": b"a2", "b.txt": b"b2"}
        return
    with pytest.raises(RewriteError, match="nothing was changed") as caught:
        write_all(changes)
    assert caught.value.path == str(tmp_path / "b.txt")
    assert contents(tmp_path) == {"a.txt": b"a1", "b.txt": b"b1"}


def test_a_failure_half_way_with_copied_backups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = two(tmp_path)
    (tmp_path / "a.txt").chmod(0o640)
    real = os.replace

    def replace(source: str, target: str) -> None:
        if target.endswith("b.txt") and source.endswith(".new"):
            raise OSError(28, "No space left on device")
        real(source, target)

    def no_link(source: str, target: str) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(RewriteError, match="No space left"):
        write_all(changes)
    assert contents(tmp_path) == {"a.txt": b"a1", "b.txt": b"b1"}
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


def test_an_interrupt_puts_all_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = two(tmp_path)
    real = os.replace

    def replace(source: str, target: str) -> None:
        if target.endswith("b.txt") and source.endswith(".new"):
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write_all(changes)
    assert contents(tmp_path) == {"a.txt": b"a1", "b.txt": b"b1"}


def test_where_putting_back_fails_the_old_text_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = two(tmp_path)
    real = os.replace
    calls = 0

    def replace(source: str, target: str) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(5, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(RewriteError, match="old contents are in") as caught:
        write_all(changes)
    kept = [name for name in contents(tmp_path) if name.endswith(".old")]
    assert any((tmp_path / name).read_bytes() == b"a1" for name in kept)
    assert all(str(tmp_path / name) in caught.value.message for name in kept)


def test_read_only_file(tmp_path: Path) -> None:
    changes = two(tmp_path)
    (tmp_path / "b.txt").chmod(0o444)
    with pytest.raises(RewriteError, match="read-only") as caught:
        write_all(changes)
    assert caught.value.path == str(tmp_path / "b.txt")
    assert contents(tmp_path) == {"a.txt": b"a1", "b.txt": b"b1"}


def test_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = two(tmp_path)
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(".new"):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RewriteError, match="Permission denied; nothing was changed"):
        write_all(changes)
    monkeypatch.undo()
    assert contents(tmp_path) == {"a.txt": b"a1", "b.txt": b"b1"}


def test_a_file_that_went_away(tmp_path: Path) -> None:
    changes = two(tmp_path)
    (tmp_path / "b.txt").unlink()
    with pytest.raises(RewriteError, match="nothing was changed"):
        write_all(changes)
    assert contents(tmp_path) == {"a.txt": b"a1"}


def test_one_file_by_two_names(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a1")
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    with pytest.raises(RewriteError, match="two different texts"):
        write_all([(str(path), b"a1", b"a2"), (str(link), b"a1", b"a3")])
    write_all([(str(path), b"a1", b"a2"), (str(link), b"a1", b"a2")])
    assert path.read_bytes() == b"a2"


def test_no_change_touches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a1")
    path.chmod(0o444)
    before = path.stat()
    write_all([(str(path), b"a1", b"a1")])
    assert path.stat().st_ino == before.st_ino
