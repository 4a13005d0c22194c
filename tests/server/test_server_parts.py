"""The parts of the server that are functions of their arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pygls")
from lsprotocol import types as lsp
from tests.server.editor import FLEET, applied, index, position

from torchpin.documents.base import apply_edits
from torchpin.documents.kinds import kind_of
from torchpin.documents.loader import read_as
from torchpin.engine import Options
from torchpin.server.actions import wanted
from torchpin.server.analysis import Analysis, Memory, analyse
from torchpin.server.buffers import changed, opened
from torchpin.server.completion import Asked, asked, newest_first
from torchpin.server.diagnostics import diagnostics
from torchpin.server.edits import between, ignore_edit
from torchpin.server.positions import ENCODINGS, Lines
from torchpin.server.units import unit_of
from torchpin.server.uris import path_of, uri_of

TEXT = st.text(st.sampled_from("ab \t\r\n\x0c\u2028é漢🔥\ufeff"), max_size=30)
ENCODING = st.sampled_from(ENCODINGS)


@pytest.mark.parametrize(
    ("uri", "path"),
    (
        ("file:///a/b%20c/%F0%9F%94%A5.txt", "/a/b c/🔥.txt"),
        ("file:///a/50%25", "/a/50%"),
        ("file:///a/x?y#z", "/a/x?y#z"),
        ("file://localhost/a", "/a"),
        ("FILE:///a", "/a"),
        ("untitled:Untitled-1", None),
        ("git:/a/requirements.txt", None),
        ("file:///a%00b", None),
        ("http://[::1/", None),
        ("", None),
    ),
)
def test_paths_of_uris(uri: str, path: str | None) -> None:
    assert path_of(uri, windows=False) == path


@pytest.mark.parametrize(
    ("uri", "path"),
    (
        ("file:///c%3A/Users/a%20b/requirements.txt", r"C:\Users\a b\requirements.txt"),
        ("file:///C:/x", r"C:\x"),
        ("file://server/share/x", r"\\server\share\x"),
    ),
)
def test_paths_of_windows(uri: str, path: str) -> None:
    assert path_of(uri, windows=True) == path
    assert path_of(uri_of(path, windows=True), windows=True) == path


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_a_path_comes_back_from_its_uri(name: str) -> None:
    assert path_of(uri_of(f"/{name}", windows=False), windows=False) == f"/{name}"


@given(TEXT, ENCODING, st.integers(0, 40))
def test_positions_are_those_of_the_encoding(text: str, encoding: str, at: int) -> None:
    offset = min(at, len(text))
    lines = Lines(text, encoding)
    place = lines.position(offset)
    if not text[:offset].endswith("\r") or not text[offset:].startswith("\n"):
        assert place == position(text, offset, encoding)
        assert lines.offset(place) == offset == index(text, place, encoding)


@given(TEXT, ENCODING, st.integers(0, 40), st.integers(0, 40))
def test_any_position_is_taken(text: str, encoding: str, line: int, column: int) -> None:
    assert 0 <= Lines(text, encoding).offset(lsp.Position(line, column)) <= len(text)


@given(TEXT, ENCODING, st.integers(0, 40), st.integers(0, 40), TEXT)
def test_changes_are_made_where_they_are_meant(
    text: str, encoding: str, first: int, second: int, new: str
) -> None:
    ends = sorted(
        index(text, position(text, min(one, len(text)), encoding), encoding)
        for one in (first, second)
    )
    place = lsp.Range(position(text, ends[0], encoding), position(text, ends[1], encoding))
    edit = lsp.TextEdit(place, new)
    buffer = opened("file:///a/requirements.txt", "x", 1, text, "/")
    after = changed(buffer, [lsp.TextDocumentContentChangePartial(place, new)], 2, encoding)
    assert after.text == applied(text, [edit], encoding)
    assert after.version == 2


@given(TEXT, TEXT)
def test_the_edits_between_two_texts(old: str, new: str) -> None:
    edits = between(old, new)
    assert apply_edits(old, edits) == new
    lines = Lines(old)
    for one in edits:  # none begins or ends between a carriage return and its line feed
        for end in one.span:
            assert lines.offset(lines.position(end)) == end


PIN = "torch==2.14.1"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    (
        ("requirements.txt", f"{PIN}\n", f"{PIN}  # torchpin: ignore[TP201]\n"),
        ("requirements.txt", f"{PIN}\r\n", f"{PIN}  # torchpin: ignore[TP201]\r\n"),
        (
            "requirements.txt",
            f"{PIN}  # torchpin: ignore[TP301] it runs\n",
            f"{PIN}  # torchpin: ignore[TP301,TP201] it runs\n",
        ),
        (
            "requirements.txt",
            f"{PIN} \\\n  --hash=sha256:{'a' * 64}\n",
            f"# torchpin: ignore[TP201]\n{PIN} \\\n  --hash=sha256:{'a' * 64}\n",
        ),
        (
            "pyproject.toml",
            f'[project]\nname = "a"\ndependencies = [\n  "{PIN}",\n]\n',
            f'[project]\nname = "a"\ndependencies = [\n  "{PIN}",  # torchpin: ignore[TP201]\n]\n',
        ),
        (
            "Dockerfile",
            f"FROM python:3.11\nRUN pip install \\\n    {PIN} \\\n    numpy\n",
            "FROM python:3.11\n# torchpin: ignore[TP201]\n"
            f"RUN pip install \\\n    {PIN} \\\n    numpy\n",
        ),
        (
            "Dockerfile",
            f"FROM python:3.11\nRUN pip install {PIN}\n",
            f"FROM python:3.11\n# torchpin: ignore[TP201]\nRUN pip install {PIN}\n",
        ),
        # A comment within a string is none.
        (
            "setup.py",
            f'from setuptools import setup\nsetup(install_requires="""\n{PIN}\n""")\n',
            None,
        ),
        (
            ".github/workflows/a.yml",
            "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n"
            f"          pip install {PIN}\n",
            "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n"
            f"          pip install {PIN}  # torchpin: ignore[TP201]\n",
        ),
        ("Pipfile.lock", '{"default": {"torch": {"version": "==2.14.1"}}}\n', None),
        (
            "Makefile",
            f"all:\n\tpip install {PIN}\n",
            f"all:\n\tpip install {PIN}  # torchpin: ignore[TP201]\n",
        ),
    ),
)
def test_the_comment_that_ignores(name: str, text: str, expected: str | None) -> None:
    document = read_as(kind_of(name) or "", name, text.encode())
    offset = text.index("torch==") if "torch==" in text else text.index("torch")
    document = next((part.document for part in document.parts), document)  # as findings have it
    edit = ignore_edit(document, offset, "TP201")
    assert (None if edit is None else apply_edits(text, (edit,))) == expected


@pytest.mark.parametrize(
    ("before", "found"),
    (
        ("torch==", Asked("version", "torch", "", 7)),
        ("torch>=2.1,<2.", Asked("version", "torch", "", 12)),
        ('  "torchvision ~= 0.2', Asked("version", "torchvision", "", 18)),
        ("torch[opt]==2.14.1+cu", Asked("label", "torch", "2.14.1", 19)),
        ('torch = "^2.', Asked("version", "torch", "", 10)),
        ('torch = { version = "==2.1+', Asked("label", "torch", "2.1", 27)),
        ('torch = { extras = ["a"], version = "2', Asked("version", "torch", "", 37)),
        ("pip install torch==2.1", Asked("version", "torch", "", 19)),
        ("-i https://download.pytorch.org/whl/cu1", Asked("channel", "torch", "", 36)),
        ("--extra-index-url=http://m.example/whl/nightly/", Asked("channel", "torch", "", 47)),
        ("my-torch==", None),
        ("numpy==", None),
        ("# torch==", None),
        ("torch", None),
        ("torch==2.1 ; ", None),
        ("https://download.pytorch.org/whl/cu126/to", None),
    ),
)
def test_what_is_being_written(before: str, found: Asked | None) -> None:
    assert asked(before) == found


def test_channels_go_from_new_to_old() -> None:
    found = newest_first(("cu92", "rocm6.4", "cpu", "cu126", "cu130", "xpu", "rocm7.14", "rocm7.2"))
    assert found == ["cu130", "cu126", "cu92", "cpu", "rocm7.14", "rocm7.2", "rocm6.4", "xpu"]


def test_kinds_of_actions_are_a_tree() -> None:
    assert wanted("quickfix", None) and wanted("quickfix", [])
    assert wanted("source.fixAll.torchpin", ["source"])
    assert wanted("source.fixAll.torchpin", ["source.fixAll"])
    assert not wanted("source.fixAll.torchpin", ["source.organizeImports", "source.fix"])


def analysed(folder: Path, **texts: str) -> Analysis:
    """Return an analysis of some open files."""
    (folder / "torchpin.toml").write_text(FLEET)
    buffers = [
        opened((folder / name.replace("_", ".")).as_uri(), "x", 1, text, str(folder))
        for name, text in texts.items()
    ]
    place = (str(folder),)
    return analyse(unit_of(buffers[0], place, {}), buffers, place, Options(()), Memory())


def test_diagnostics_lead_to_the_pages_of_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchpin.server.diagnostics.pages", lambda: "https://docs.example/rules/")
    analysis = analysed(tmp_path, requirements_txt="torch==2.14.1\n")
    found = diagnostics(analysis, "utf-16")[str(tmp_path / "requirements.txt")]
    assert [one.code_description and one.code_description.href for one in found] == [
        "https://docs.example/rules/TP201/",
        "https://docs.example/rules/TP203/",
    ]


def test_words_without_effect_are_faded(tmp_path: Path) -> None:
    text = (
        "--index-url https://download.pytorch.org/whl/cu118\n--index-url https://m.example/simple\n"
    )
    analysis = analysed(tmp_path, requirements_txt=f"{text}torch==2.7.1\n")
    found = diagnostics(analysis, "utf-16")[str(tmp_path / "requirements.txt")]
    faded = [one for one in found if one.code == "TP414"]
    assert faded and faded[0].tags == [lsp.DiagnosticTag.Unnecessary]
    assert faded[0].range.start.line == 0


def test_related_places_are_those_of_the_client(tmp_path: Path) -> None:
    analysis = analysed(
        tmp_path,
        requirements_txt="torch==2.7.1\n",
        pyproject_toml='[project]\nname = "a"\nversion = "0"\ndependencies = ["torch==2.8.0"]\n',
    )
    assert analysis.report is not None
    found = diagnostics(analysis, "utf-16")
    told = [one for some in found.values() for one in some if one.related_information]
    assert told, found
    related = (told[0].related_information or ())[0]
    assert related.location.uri.startswith(tmp_path.as_uri())
    assert related.location.range.end.character > 0
