"""``torchpin server`` as an editor meets it, over stdio."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types as lsp
from tests.server.editor import FLEET, Editor, session

PINS = "numpy\ntorch==2.14.1\ntorchvision==0.29.1\n"


def place(folder: Path, **files: str) -> Path:
    (folder / "torchpin.toml").write_text(FLEET)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def test_findings_as_one_types(tmp_path: Path) -> None:
    path = place(tmp_path, requirements_txt=PINS) / "requirements.txt"
    before = contents(tmp_path)

    async def steps(editor: Editor) -> None:
        uri = editor.file(path)
        found = await editor.judged(uri)
        assert [one.code for one in found] == ["TP201", "TP203"]
        kernels = found[0]
        assert editor.words(uri, kernels.range) == "torch==2.14.1"
        assert kernels.severity == lsp.DiagnosticSeverity.Error
        assert kernels.source == "torchpin"
        assert "because: Tesla V100 (sm_70)" in kernels.message
        assert "[measured]" in kernels.message
        assert "safe fix: torch==2.14.1+cu126" in kernels.message
        editor.replace(uri, "torch==2.14.1", "torch==2.7.1")
        editor.replace(uri, "torchvision==0.29.1", "torchvision==0.22.1")
        assert await editor.judged(uri) == []
        editor.close(uri)
        await editor.until(lambda: editor.shown[uri].version is None)
        assert editor.codes(uri) == []

    session(steps, tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("versioned", (True, False))
def test_all_safe_fixes_leave_a_clean_text(tmp_path: Path, versioned: bool) -> None:
    path = place(tmp_path, requirements_txt=PINS) / "requirements.txt"

    async def steps(editor: Editor) -> None:
        uri = editor.file(path)
        (action,) = await editor.actions(uri, only=["source.fixAll"])
        assert action.kind == "source.fixAll.torchpin"
        editor.apply(action)
        assert editor.texts[uri] == (
            "--extra-index-url https://download.pytorch.org/whl/cu126\n"
            "numpy\ntorch==2.14.1+cu126\ntorchvision==0.29.1+cu126\n"
        )
        assert await editor.judged(uri) == []
        assert await editor.actions(uri, only=["source.fixAll"]) == []

    session(steps, tmp_path, document_changes=versioned)
    assert path.read_text() == PINS


def test_a_fix_a_comment_and_what_is_advice_only(tmp_path: Path) -> None:
    path = place(tmp_path, requirements_txt=PINS) / "requirements.txt"

    async def steps(editor: Editor) -> None:
        uri = editor.file(path)
        fix, first, second = await editor.actions(uri, "torch==2.14.1", ["quickfix"])
        assert fix.is_preferred and fix.title.startswith("Fix TP201, TP203: torch==2.14.1+cu126")
        assert [one.code for one in fix.diagnostics or ()] == ["TP201", "TP203"]
        assert [first.title, second.title] == ["Ignore TP201 here", "Ignore TP203 here"]
        assert not first.is_preferred
        editor.apply(first)
        assert "torch==2.14.1  # torchpin: ignore[TP201]\n" in editor.texts[uri]
        assert [one.code for one in await editor.judged(uri)] == ["TP203"]
        _, again = await editor.actions(uri, "torch==2.14.1", ["quickfix"])
        editor.apply(again)
        assert "torch==2.14.1  # torchpin: ignore[TP201,TP203]\n" in editor.texts[uri]
        assert await editor.judged(uri) == []
        # A newer torch by an older pin is not offered as safe.
        editor.change(uri, "torch==2.15.0\n")
        unsafe = [one for one in await editor.actions(uri, "torch") if "Ignore" not in one.title]
        assert [one.title.partition(" TP")[0] for one in unsafe] == ["Unsafe fix"]
        assert not unsafe[0].is_preferred
        assert await editor.actions(uri, "torch", ["refactor"]) == []

    session(steps, tmp_path)


def test_hover_tells_what_a_pin_resolves_to(tmp_path: Path) -> None:
    path = place(tmp_path, requirements_txt=PINS) / "requirements.txt"

    async def steps(editor: Editor) -> None:
        uri = editor.file(path)
        said = await editor.hover(uri, "torch==")
        assert said is not None
        for words in (
            "**torch 2.14.1 (PyPI, cu130)** from PyPI",
            "✗ **training** (Tesla V100; Python 3.11): does not run",
            "holds kernels for sm_75",
            "[measured]",
            "CUDA 13 needs driver 580.65.06 or newer on Linux [published]",
            "torchvision 0.29.1 (PyPI, cu130)",
        ):
            assert words in said, words
        assert await editor.hover(uri, "numpy") is None
        editor.replace(uri, "torch==2.14.1", "torch==2.7.1")
        said = await editor.hover(uri, "torch==")
        assert said is not None and "✓ **training**" in said and "2.7.1 (PyPI, cu126)" in said

    session(steps, tmp_path)


def test_completion_offers_what_runs_first(tmp_path: Path) -> None:
    path = place(tmp_path, requirements_txt="") / "requirements.txt"

    async def steps(editor: Editor) -> None:
        uri = editor.file(path, "torch==\n")
        found = await editor.complete(uri, "torch==")
        ordered = sorted(found, key=lambda one: one.sort_text or "")
        first = ordered[0]
        assert first.label == "2.10.0"  # PyPI's newest with kernels for sm_70, and CUDA 12
        assert first.detail is not None and first.detail.startswith("✓ runs on training")
        names = [one.label for one in ordered]
        assert names.index("2.10.0") < names.index("2.9.1") < names.index("2.15.0")
        assert "2.12.2" not in names  # never published
        newest = next(one for one in found if one.label == "2.14.1")
        assert newest.detail is not None and "2.14.1+cu126 runs on training" in newest.detail
        editor.change(uri, "torch==2.14.1+c\n")
        labels = [one.label for one in await editor.complete(uri, "+c")]
        assert labels[0] == "cu126" and "cu124" not in labels
        editor.change(uri, "--index-url https://download.pytorch.org/whl/\ntorch==2.14.1\n")
        channels = await editor.complete(uri, "/whl/")
        assert channels[0].label == "cu126"
        text = channels[0].text_edit
        assert isinstance(text, lsp.TextEdit) and text.new_text == "cu126"
        editor.change(uri, "# torch==\nnumpy==\n")
        assert await editor.complete(uri, "torch==") == []
        assert await editor.complete(uri, "numpy==") == []

    session(steps, tmp_path)


def test_completion_in_a_project_replaces_the_whole_version(tmp_path: Path) -> None:
    place(tmp_path)
    text = '[project]\nname = "app"\nversion = "0"\ndependencies = [\n  "torch>=2.1,<2.1",\n]\n'

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "pyproject.toml", text)  # not saved yet
        found = await editor.complete(uri, ",<2")
        edit = found[0].text_edit
        assert isinstance(edit, lsp.TextEdit)
        assert editor.words(uri, edit.range) == "2.1"
        assert found[0].label == "2.10.0"

    session(steps, tmp_path)


def test_each_folder_has_its_own_fleet(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
        place(folder, requirements_txt=PINS)
    (new / "torchpin.toml").write_text(
        FLEET.replace("Tesla V100", "A100-SXM4-80GB").replace("550.54.15", "580.65.06")
    )

    async def steps(editor: Editor) -> None:
        uris = [editor.file(one / "requirements.txt") for one in (old, new)]
        assert [one.code for one in await editor.judged(uris[0])] == ["TP201", "TP203"]
        assert await editor.judged(uris[1]) == []
        folder = lsp.WorkspaceFolder(old.as_uri(), "old")
        editor.client.workspace_did_change_workspace_folders(
            lsp.DidChangeWorkspaceFoldersParams(
                lsp.WorkspaceFoldersChangeEvent(added=[], removed=[folder])
            )
        )
        editor.change(uris[0], "torch==2.7.1\n")  # still open: judged by itself
        assert await editor.judged(uris[0]) == []

    session(steps, old, new)


def test_a_change_of_the_profile_judges_everything_anew(tmp_path: Path) -> None:
    path = place(tmp_path, requirements_txt=PINS) / "requirements.txt"

    async def steps(editor: Editor) -> None:
        uri = editor.file(path)
        assert len(await editor.judged(uri)) == 2
        profile = editor.file(tmp_path / "torchpin.toml")
        assert await editor.judged(profile) == []
        editor.shown.clear()
        editor.replace(profile, "550.54.15", "580.65.06")
        await editor.until(lambda: uri in editor.shown)
        assert editor.codes(uri) == ["TP201"]
        editor.replace(profile, "Tesla V100", "Tesla V1000")
        (wrong,) = await editor.judged(profile)
        assert wrong.code == "profile" and editor.words(profile, wrong.range).startswith("gpus")
        assert "V1000" in wrong.message
        assert editor.codes(uri) == ["TP201"]  # by the last fleet that could be read
        editor.replace(profile, "Tesla V1000", "A100-SXM4-80GB")
        assert await editor.judged(profile) == []
        await editor.until(lambda: editor.codes(uri) == [])

    session(steps, tmp_path)


PROJECT = """\
[project]
name = "app"
version = "0"
requires-python = "==3.11.*"
dependencies = ["torch==2.7.1"]

[tool.uv]
package = false
"""
LOCK = """\
version = 1
revision = 3
requires-python = "==3.11.*"

[[package]]
name = "app"
version = "0"
source = { virtual = "." }
dependencies = [
    { name = "torch" },
]

[package.metadata]
requires-dist = [{ name = "torch", specifier = "==2.7.1" }]

[[package]]
name = "torch"
version = "2.7.1"
source = { registry = "https://pypi.example/simple" }
wheels = [
    { url = "https://files.example/torch-2.7.1-cp311-cp311-manylinux_2_28_x86_64.whl", \
hash = "sha256:60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7", size = 1 },
]
"""


def test_a_project_shows_the_findings_of_its_lock(tmp_path: Path) -> None:
    place(tmp_path, pyproject_toml=PROJECT, uv_lock=LOCK)
    lock = (tmp_path / "uv.lock").as_uri()

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "pyproject.toml")
        assert await editor.judged(uri) == []
        editor.replace(uri, "torch==2.7.1", "torch==2.8.0")
        await editor.judged(uri)
        found = {*editor.codes(uri), *(editor.codes(lock) if lock in editor.shown else ())}
        assert "TP503" in found
        editor.replace(uri, "torch==2.8.0", "torch==2.7.1")
        assert await editor.judged(uri) == []
        assert lock not in editor.shown or editor.codes(lock) == []
        # A lock that is open counts as it stands.
        locked = editor.file(tmp_path / "uv.lock", LOCK.replace("2.7.1", "2.14.1"))
        assert "TP201" in [one.code for one in await editor.judged(locked)]
        said = await editor.hover(locked, 'version = "2.14.1"\nsource = { registry')
        assert said is not None and "**torch 2.14.1" in said

    session(steps, tmp_path)


def test_included_texts_count_as_they_stand(tmp_path: Path) -> None:
    place(tmp_path, requirements_txt="-r base.in\ntorch==2.14.1\n", base_in="numpy\n")

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "requirements.txt")
        assert "TP201" in [one.code for one in await editor.judged(uri)]
        base = editor.file(tmp_path / "base.in")
        editor.shown.clear()
        editor.change(base, "--extra-index-url https://download.pytorch.org/whl/cu126\n")
        editor.replace(uri, "2.14.1", "2.14.1+cu126")
        assert await editor.judged(uri) == []

    session(steps, tmp_path)


def test_what_the_baseline_holds_is_not_shown(tmp_path: Path) -> None:
    place(tmp_path, requirements_txt=PINS)
    (tmp_path / "torchpin.toml").write_text('baseline = "known.json"\n' + FLEET)
    made = subprocess.run(
        [sys.executable, "-m", "torchpin", "baseline", "create", "-o", "known.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr

    async def steps(editor: Editor) -> None:
        uri = editor.file(tmp_path / "requirements.txt")
        assert await editor.judged(uri) == []
        assert await editor.actions(uri, only=["source.fixAll"]) == []
        editor.replace(uri, "2.14.1", "2.14.0")
        assert "TP201" in [one.code for one in await editor.judged(uri)]
        (tmp_path / "known.json").unlink()
        editor.replace(uri, "2.14.0", "2.14.1")
        assert "TP201" in [one.code for one in await editor.judged(uri)]
        assert any("no such baseline" in one for one in editor.log)

    session(steps, tmp_path)


def test_files_on_disk_are_watched(tmp_path: Path) -> None:
    path = place(tmp_path, requirements_txt=PINS) / "requirements.txt"

    async def steps(editor: Editor) -> None:
        await editor.until(lambda: editor.watching)
        uri = editor.file(path)
        assert len(await editor.judged(uri)) == 2
        editor.shown.clear()
        profile = tmp_path / "torchpin.toml"
        profile.write_text(FLEET.replace("550.54.15", "580.65.06"))
        changed = lsp.FileEvent(profile.as_uri(), lsp.FileChangeType.Changed)
        editor.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([changed]))
        await editor.until(lambda: uri in editor.shown)
        assert editor.codes(uri) == ["TP201"]

    session(steps, tmp_path)
