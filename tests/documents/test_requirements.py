"""What the reader keeps beyond what pip reads: places, and what pip refuses or ignores."""

from __future__ import annotations

import re

import pytest

from torchpin.documents.base import Declaration, Document, Span
from torchpin.documents.requirement import wheel_parts
from torchpin.documents.requirements import read_requirements


def read(text: str) -> Document:
    return read_requirements("requirements.txt", text.encode())


def one(text: str) -> Declaration:
    (declaration,) = read(text).declarations
    return declaration


def cut(text: str, span: Span | None) -> str | None:
    return None if span is None else text[span.start : span.end]


def test_places() -> None:
    text = "# top\n  Torch_Vision[a] >= 0.19 , <1 ; sys_platform == 'linux'  # why\n"
    d = one(text)
    assert d.name == "torch-vision"
    assert cut(text, d.name_span) == "Torch_Vision"
    assert cut(text, d.specifier_span) == ">= 0.19 , <1" == d.specifier
    assert cut(text, d.marker_span) == "sys_platform == 'linux'" == d.marker
    assert cut(text, d.span) == "Torch_Vision[a] >= 0.19 , <1 ; sys_platform == 'linux'"
    assert cut(text, d.line_span) == text.splitlines()[1]
    assert [cut(text, c) for c in read(text).comments] == ["# top", "# why"]


def test_places_across_continuations() -> None:
    text = (
        f"torch==2.1 \\\r\n    --hash=sha256:{'a' * 64} \\\r\n    --hash sha256:{'b' * 64}\r\nx\r\n"
    )
    document = read(text)
    d = document.declarations[0]
    assert [cut(text, h.span) for h in d.hashes] == [
        f"--hash=sha256:{'a' * 64}",
        f"--hash sha256:{'b' * 64}",
    ]
    assert d.hashes[1].digest == "b" * 64
    assert d.line_span == Span(0, text.index("\r\nx"))
    assert document.newline == "\r\n"


def test_parentheses_are_outside_the_specifier() -> None:
    text = "torch ( ==2.1 )"
    assert cut(text, one(text).specifier_span) == "==2.1"


@pytest.mark.parametrize(
    ("text", "option", "url"),
    [
        ("-i https://a.example", "--index-url", "https://a.example"),
        ("--extra-index-url  'https://a.example' # c", "--extra-index-url", "https://a.example"),
        ("-fhttps://a.example", "--find-links", "https://a.example"),
        ('--index-url="https://a.example"', "--index-url", "https://a.example"),
        ("--index-url \\\n  https://a.example", "--index-url", "https://a.example"),
    ],
)
def test_index_lines(text: str, option: str, url: str) -> None:
    (line,) = read(text).indexes
    assert (line.option, line.url, line.misplaced) == (option, url, False)
    assert cut(text, line.url_span) == url


def test_an_option_behind_a_requirement() -> None:
    text = "torch==2.1 --index-url https://a.example"
    document = read(text)
    assert document.declarations[0].valid
    assert document.indexes[0].misplaced
    assert cut(text, document.indexes[0].span) == "--index-url https://a.example"
    assert [p.code for p in document.problems] == ["misplaced"]


def test_a_requirement_behind_an_option() -> None:
    document = read("--pre torch==2.1\n")
    assert [(d.name, d.specifier, d.valid) for d in document.declarations] == [
        ("torch", "==2.1", False)
    ]
    assert [p.code for p in document.problems] == ["misplaced"]
    assert [o.name for o in document.options] == ["--pre"]


def test_two_requirements_on_a_line() -> None:
    text = "torch==2.1 torchvision==0.16   torchaudio>=2"
    document = read(text)
    assert [(d.name, d.specifier, d.valid) for d in document.declarations] == [
        ("torch", "==2.1", False),
        ("torchvision", "==0.16", False),
        ("torchaudio", ">=2", False),
    ]
    assert [cut(text, d.span) for d in document.declarations] == text.split()


@pytest.mark.parametrize(
    ("text", "specifier", "code", "word"),
    [
        ("torch=2.1", "=2.1", "specifier", "'=='"),
        ("torch>=2.4+cu121", ">=2.4+cu121", "specifier", "local label"),
        ("torch>=2.*", ">=2.*", "specifier", "no valid version"),
        ("torch==2.1#x", "==2.1#x", "syntax", "space before"),
        ("torch＝＝2.1", "＝＝2.1", "syntax", "ASCII"),
        ("torch==2.1，<3", "==2.1，<3", "syntax", "ASCII"),
        ("'torch==2.1'", "==2.1", "syntax", "quotes"),
        ("torch==" + "1" * 5000, "", "specifier", "no valid version"),
        ("torch" + ",".join(["!=2.1"] * 5000), "", "specifier", "too long"),
    ],
)
def test_what_pip_refuses_is_kept(text: str, specifier: str, code: str, word: str) -> None:
    document = read(text)
    (d,) = document.declarations
    assert (d.name, d.specifier, d.valid) == ("torch", specifier, False)
    assert [p.code for p in document.problems] == [code]
    assert word in document.problems[0].message


def test_a_wheel_behind_a_url() -> None:
    url = "https://download.pytorch.org/whl/cu128/torch-2.9.1%2Bcu128-cp311-cp311-linux_x86_64.whl"
    d = one(url)
    assert (d.name, d.url, d.specifier) == ("torch", url, "")
    assert cut(url, d.name_span) == "torch"
    assert wheel_parts(url) == ("torch", "2.9.1+cu128")
    assert wheel_parts(url + "#sha256=abc") == ("torch", "2.9.1+cu128")
    assert wheel_parts("https://files.example/torch-2.9.1.tar.gz") is None
    assert one(f"torch @ {url} ; os_name == 'nt'").marker == "os_name == 'nt'"


def test_unknown_variables_stay() -> None:
    text = "torch==${TV}\n--index-url https://${T}@a.example/simple\n-r ${X}.txt\ntorchaudio==2.1\n"
    document = read(text)
    assert document.problems == ()
    assert [(d.specifier, d.from_variable) for d in document.declarations] == [
        ("==${TV}", True),
        ("==2.1", False),
    ]
    assert document.indexes[0].from_variable
    known = read_requirements("x", text.encode(), {"TV": "2.1.0+cu118"})
    assert known.declarations[0].specifier == "==2.1.0+cu118"
    assert cut(text, known.declarations[0].specifier_span) == "==${TV}"


def test_plain_lines_cost_no_marker_import() -> None:
    import subprocess
    import sys

    program = (
        "import sys; from torchpin.documents.requirements import read_requirements as r;"
        "d = r('x', b\"torch==2.1+cu118 ; sys_platform == 'linux' and (python_version < '3')\\n\");"
        "assert not d.problems and d.declarations[0].marker;"
        "print(sorted(m for m in sys.modules if m.startswith('packaging')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "text", ["", "a", "\n", "a\r\nb\rc\nd", "\r\r\n\n\r", "a\n" * 50, "a\r" * 50]
)
def test_line_starts(text: str) -> None:
    from torchpin.documents.base import line_starts

    expected = [0]
    for match in re.finditer(r"\r\n|\r|\n", text):
        expected.append(match.end())
    assert line_starts(text) == expected
    assert line_starts(text) == expected
