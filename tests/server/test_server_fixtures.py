"""Every kind of file: what the server says of golden files, and that its comments silence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pygls")
from lsprotocol.types import CodeAction, Position, Range, TextDocumentEdit, TextEdit
from tests.server.editor import applied

from torchpin.documents.kinds import kind_of
from torchpin.engine import Options
from torchpin.server.actions import actions
from torchpin.server.analysis import Analysis, Memory, analyse
from torchpin.server.buffers import Buffer, opened, overlay_of
from torchpin.server.completion import completion
from torchpin.server.diagnostics import diagnostics
from torchpin.server.fits import Fits
from torchpin.server.hover import hover
from torchpin.server.positions import Lines
from torchpin.server.units import Unit, unit_of

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
CASES = sorted(one.parent for one in FIXTURES.rglob("input") if one.is_dir())[::9]


def buffers_of(folder: Path) -> list[Buffer]:
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and kind_of(str(path)) is not None:
            try:
                text = path.read_bytes().decode()
            except UnicodeDecodeError:
                continue
            found.append(opened(path.as_uri(), "x", 1, text, str(folder)))
    return found


def count(analysis: Analysis, path: str, code: str) -> int:
    assert analysis.report is not None
    return sum(one.code == code and one.path == path for one in analysis.report.findings)


def silenced(action: CodeAction, buffers: list[Buffer]) -> tuple[Buffer, list[Buffer]]:
    """Return the text that an action is for, and all texts after it."""
    assert action.edit is not None and action.edit.document_changes is not None
    (change,) = action.edit.document_changes
    assert isinstance(change, TextDocumentEdit)
    edits = [one for one in change.edits if isinstance(one, TextEdit)]
    meant = next(one for one in buffers if one.uri == change.text_document.uri)
    text = applied(meant.text, edits, "utf-16")
    after = meant._replace(text=text, data=text.encode())
    return meant, [after if one is meant else one for one in buffers]


def codes_of(analysis: Analysis) -> set[str]:
    assert analysis.report is not None
    return {one.code for one in analysis.report.findings}


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_what_is_said_of_golden_files(case: Path, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    shutil.copytree(case / "input", folder, symlinks=True)
    (folder / ".git").mkdir()
    if (case / "torchpin.toml").is_file():
        shutil.copy(case / "torchpin.toml", folder)
    buffers, memory, place = buffers_of(folder), Memory(), (str(folder),)

    def again(unit: Unit, some: list[Buffer]) -> Analysis:
        return analyse(unit, some, place, Options(()), memory)

    for unit in {unit_of(one, place, overlay_of(buffers)) for one in buffers}:
        analysis = again(unit, buffers)
        assert analysis.context is not None and analysis.error is None
        shown = diagnostics(analysis, "utf-16")
        fits = Fits(analysis.context) if analysis.context.declared else None
        for buffer in buffers:
            if analysis.document(buffer.path) is None:
                continue
            lines = Lines(buffer.text)
            for one in shown.get(buffer.path, ()):
                assert lines.offset(one.range.start) <= lines.offset(one.range.end)
            for offset in range(0, len(buffer.text), max(1, len(buffer.text) // 20)):
                hover(analysis, buffer.path, offset)
                completion(analysis, buffer.path, lines, lines.position(offset), fits)
            whole = Range(Position(0, 0), lines.position(len(buffer.text)))
            for action in actions(analysis, buffer.path, whole, None, "utf-16", versions=True):
                if action.title.startswith("Ignore "):
                    meant, texts = silenced(action, buffers)
                    after = again(unit, texts)
                    code = action.title.split()[1]
                    assert count(after, meant.path, code) < count(analysis, meant.path, code)
                    assert codes_of(after) <= codes_of(analysis)
