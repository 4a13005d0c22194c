"""Properties of the requirements reader: any bytes, no byte lost, places that are right."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from torchpin.documents.base import Document, Edit, Span, apply_edits
from torchpin.documents.lines import logical_lines
from torchpin.documents.requirements import read_requirements
from torchpin.documents.suppressions import suppressions
from torchpin.rewrite.apply import changed_bytes

PIECES = [
    *("torch", "==2.1", "==2.14.0+cu126", " ", "  ", "\n", "\r\n", "\r", "\x0c", "\x85", "\u2028"),
    *("\\\n", "\\", "#", " # c", ";", " ; sys_platform == 'linux'", "'", '"', "[a,b]", "(", ")"),
    *(
        "@",
        " @ https://files.example/torch-2.1-cp311-cp311-linux_x86_64.whl",
        "-",
        " --hash=sha256:",
    ),
    *(" --hash=sha256:" + "a" * 64, " --hash=sha256:ab", "-r x.txt", "-c", "-e .", "--pre", "--"),
    *("-i https://a.example/simple", " --index-url 'x y'", "=", ",", ">=2,<3", "${V}", "${W}"),
    *("\ufeff", "é", "＝", "\0", "\t", "-e git+https://g#egg=x", "# torchpin: ignore[TP101] why"),
    *("torchvision", "0", "-f", "./x.whl", "https://", "not in", "and"),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join)


def spans(document: Document) -> Iterator[Span]:
    for d in document.declarations:
        yield from (d.span, d.line_span, d.name_span)
        yield from (s for s in (d.specifier_span, d.marker_span, d.url_span) if s is not None)
        yield from (h.span for h in d.hashes)
        yield from (o.span for o in d.options)
    for line in document.indexes:
        yield from (line.span, line.url_span, line.line_span)
    yield from (i.span for i in document.includes)
    yield from (o.span for o in document.options)
    yield from (p.span for p in document.problems)
    yield from document.comments


def well_formed(document: Document) -> None:
    for span in spans(document):
        assert 0 <= span.start <= span.end <= len(document.text)
    for d in document.declarations:
        assert d.line_span.start <= d.span.start <= d.span.end <= d.line_span.end
        assert d.span.start <= d.name_span.start <= d.name_span.end <= d.span.end
    assert suppressions(document) is not None


@given(st.binary(max_size=300))
@example(b"\xff\xfe\0\0")
@example(b"# coding: punycode\n\xff")
@example(b"# coding: unicode_escape\n\\p")
@example(b"# coding: zip\n")
@example(b"#coding:..\n")
def test_any_bytes_make_a_document(data: bytes) -> None:
    document = read_requirements("x", data)
    well_formed(document)
    if not document.problems or document.text:
        assert document.encode(document.text) == data


@given(texts, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
@settings(max_examples=300)
def test_no_byte_is_lost(text: str, encoding: str) -> None:
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError:
        return
    document = read_requirements("x", data, {"V": "2.1"})
    well_formed(document)
    if not any(p.code in ("decode", "binary") for p in document.problems):
        assert changed_bytes(document, ()) == data


@given(texts)
@settings(max_examples=400)
def test_places_read_again_to_the_same(text: str) -> None:
    """The text of a declaration, alone in a file, is that declaration."""
    if "\\" in text.replace("\\\n", ""):
        return  # backslashes elsewhere mean something else at the end of another line
    document = read_requirements("x", text.encode("utf-8", "surrogatepass"))
    for d in document.declarations:
        alone = document.text[d.span.start : d.span.end]
        if d.editable or not d.valid or alone.endswith("\\\n"):
            continue
        again = read_requirements("x", alone.encode())
        if any(problem.code == "binary" for problem in again.problems):
            continue
        assert [
            (e.name, e.specifier, e.extras, e.url, e.marker, e.valid) for e in again.declarations
        ] == [(d.name, d.specifier, d.extras, d.url, d.marker, d.valid)]
        if d.specifier_span is not None and not d.from_variable:
            raw = document.text[d.specifier_span.start : d.specifier_span.end]
            assert raw.replace("\\\n", "") == d.specifier
    for line in document.indexes:
        raw = document.text[line.url_span.start : line.url_span.end]
        if "'" not in raw and '"' not in raw and "\\" not in raw:
            assert raw == line.url


@given(texts)
def test_logical_lines_know_where_they_come_from(text: str) -> None:
    for line in logical_lines(text, {}):
        for at, char in enumerate(line.text):
            if not line.touches_variable(at, at + 1):
                assert text[line.start(at)] == char
                assert line.end(at + 1) == line.start(at) + 1


@given(st.sampled_from(["2.14.1+cu126", "2.10.0"]), texts, texts)
def test_an_edit_moves_nothing_else(version: str, before: str, after: str) -> None:
    text = f"{before}\n\ntorch==2.1\n{after}"
    document = read_requirements("x", text.encode("utf-8", "surrogatepass"))
    for d in document.declarations:
        if d.name == "torch" and d.specifier == "==2.1" and d.specifier_span is not None:
            edits = (Edit(d.specifier_span, f"=={version}"),)
            result = apply_edits(document.text, edits)
            assert result.startswith(document.text[: d.specifier_span.start])
            assert result.endswith(document.text[d.specifier_span.end :])
            return


@pytest.mark.parametrize(
    "unit",
    [
        *(" ", "#", "\\", "\\\n", '"', "a ", "(", "--pre ", "-f x ", "${A} ", "a==1,", "a[", "a@"),
        *("a;", "-", "a  \t", "a;os_name=='a' and ", "--hash=a ", "a\n", "a\\\n", "a.", "==1+a."),
        *(
            "https://a ",
            "#egg=a",
            "-a.whl",
            "1",
            " -e a@",
            "\r",
            "\u2028a ",
            "a;(",
            "\\\\\n#",
            " '",
        ),
        *("torch\\\n--hash=sha256:aa\\\n", "# torchpin: ignore[a]\n"),
    ],
)
def test_time_is_linear(unit: str) -> None:
    """Eight times the text must not take much more than eight times the time."""
    for prefix in ("", "torch", "torch==1", "torch ; ", "torch @ ", "-i "):
        small = _seconds(prefix + unit * 1_000)
        limit = 24 * small + 0.25
        large = _seconds(prefix + unit * 8_000)
        if large >= limit:  # once more: a busy machine counts to a process what it does not do
            large = _seconds(prefix + unit * 8_000)
        assert large < limit, (prefix, small, large)


def _seconds(text: str) -> float:
    data = text.encode()
    start = time.process_time()
    suppressions(read_requirements("x", data, {"A": "b"}))
    return time.process_time() - start


def test_real_files_keep_every_byte() -> None:
    root = os.environ.get("TORCHPIN_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus"
    files = sorted(Path(root, "requirements").glob("*"))
    if not files:
        pytest.skip("no corpus of real files here")
    for file in files:
        data = file.read_bytes()
        document = read_requirements(str(file), data)
        well_formed(document)
        assert document.encode(document.text) == data
        for d in document.declarations:
            raw = document.text[d.name_span.start : d.name_span.end]
            assert raw.lower().replace("_", "-").replace(".", "-") == d.name


def test_a_large_hashed_file_is_fast() -> None:
    text = "".join(
        f"pkg{i}==1.{i} ; python_version >= '3.8' \\\n"
        + " \\\n".join(f"    --hash=sha256:{i * j:064x}" for j in range(20))
        + "\n    # via something\n"
        for i in range(400)
    ).encode()
    assert len(text) > 700_000
    document = read_requirements("x", text)
    best = 9.0
    for _ in range(5):
        start = time.process_time()
        read_requirements("x", text)
        best = min(best, time.process_time() - start)
    assert len(document.declarations) == 400
    assert all(len(d.hashes) == 20 and d.valid for d in document.declarations)
    assert best < 0.3  # 0.03 s on an idle machine; the benchmark holds the real budget
