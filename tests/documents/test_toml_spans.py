"""Places in TOML texts, read back by the TOML library alone."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

import pytest

from torchpin.documents.base import Span
from torchpin.documents.toml_spans import ExcessError, Path, Spans, scan, unquote
from torchpin.documents.toml_view import read_toml

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

ODD = '''\
# a comment
top = 1 # behind
"quoted key" = 'literal # no comment'
a.b . "c.d" = 1979-05-27 07:32:00
esc = "a\\"b \\u00e9 # no"
empty = ""
long = """
one "two" ""three \\
   four"""
tail = """x"""""
lit = \'\'\'
C:\\dir 'x' ''\'\'\'
littail = \'\'\'x\'\'\'\'\'
arr = [ 1, # one
  [2, [3,]], "]", {x = 1, y.z = [ "}" ] } , # ]
]
inf = [ -inf, +nan, 0xff, 1_000, 1e-3 ]
float = 3.14
none = []
nothing = {}
[ table . 'sub' ]   # header comment
key="v"

# belongs to nothing
[[aot]]
n = 1
[aot.inner]
m = 1
[[aot]]
[[aot.more]]
k = true
[[aot.more]]
[a.d]
x = 1'''


def leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """Every array, inline table and scalar of a parsed value, with its path."""
    found: list[tuple[Path, Any]] = []
    if path:
        found.append((path, value))
    if isinstance(value, dict):
        for key, below in value.items():
            found += leaves(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            found += leaves(below, (*path, index))
    return found


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)  # nan


def check_places(text: str, spans: Spans, data: Any) -> int:
    """Assert that every value is found at its place; return how many there are."""
    count = 0
    found = leaves(data)
    assert {path for path, _ in spans.walk()} == {path for path, _ in found}
    for path, value in found:
        node = spans.find(*path)
        assert node is not None
        if node.kind in ("table", "tables"):
            assert isinstance(value, dict if node.kind == "table" else list)
            continue
        count += 1
        written = text[node.start : node.end]
        assert same(tomllib.loads(f"x = {written}")["x"], value), path
        if node.kind == "string":
            assert node.inner is not None
            quote = written[: node.inner.start - node.start].rstrip("\r\n")
            assert quote in ('"', "'", '"""', "'''")
            assert written.endswith(quote)
            assert len(written) == (node.inner.end - node.start) + len(quote)
            inner = text[node.inner.start : node.inner.end].replace("\r\n", "\n")
            assert "\\" in inner or inner == value
        if isinstance(path[-1], str):
            assert node.key is not None and node.entry is not None
            assert unquote(text[node.key.start : node.key.end]) == path[-1]
            entry = text[node.entry.start : node.entry.end]
            below: Any = tomllib.loads(entry)
            while isinstance(below, dict) and next(iter(below)) != path[-1]:
                below = next(iter(below.values()))
            assert path[-1] in below
            assert node.entry.end == node.end
    return count


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_odd_text(newline: str) -> None:
    text = ODD.replace("\n", newline)
    spans = scan(text)
    assert check_places(text, spans, tomllib.loads(text)) == 34
    assert [text[slice(*comment)] for comment in spans.comments] == [
        *("# a comment", "# behind", "# one", "# ]", "# header comment", "# belongs to nothing")
    ]
    assert [(".".join(h.path), h.array) for h in spans.headers] == [
        ("table.sub", False), ("aot", True), ("aot.inner", False), ("aot", True),
        ("aot.more", True), ("aot.more", True), ("a.d", False),
    ]  # fmt: skip
    assert text[slice(*spans.headers[0].span)] == "[ table . 'sub' ]"
    bodies = [text[h.span.end : h.body_end].strip() for h in spans.headers]
    assert bodies == ['# header comment' + newline + 'key="v"', *("n = 1", "m = 1", ""), "k = true",
                      "", "x = 1"]  # fmt: skip
    assert text[: spans.top_end].endswith("nothing = {}" + newline)
    assert spans.headers[-1].body_end == len(text)


def test_entry_of_a_dotted_key() -> None:
    text = 'uv.sources . "torch" = {index = "a"}\n'
    node = scan(text).find("uv", "sources", "torch")
    assert node is not None and node.key is not None and node.entry is not None
    assert text[slice(*node.key)] == '"torch"'
    assert text[slice(*node.entry)] == text.strip()
    assert node.inner is not None and text[slice(*node.inner)] == 'index = "a"'
    above = scan(text).find("uv", "sources")
    assert above is not None and (above.start, above.end) == (-1, -1)


def test_a_table_opened_by_its_child_first() -> None:
    text = "[a.b]\nx = 1\n[a]\ny = 2\n"
    spans = scan(text)
    node = spans.find("a")
    assert node is not None and text[slice(*node.span)] == "[a]"
    assert spans.find("a", "b", "x") is not None
    assert spans.find("a", 0) is None
    assert spans.find("a", "b", "x", "deeper") is None


TOML_1_1 = """\
[tool.uv.sources]
torch = {
  index = "pytorch-cu126", # why
  marker = "sys_platform == 'linux'",
}
[project]
description = "\\e[0m \\x41"
"""


def test_toml_1_1_is_read() -> None:
    text = TOML_1_1
    read = read_toml(text.encode())
    assert read.problem is None
    assert read.data["project"]["description"] == "\x1b[0m A"
    marker = read.spans.find("tool", "uv", "sources", "torch", "marker")
    assert marker is not None and marker.inner is not None
    assert text[slice(*marker.inner)] == "sys_platform == 'linux'"
    assert [text[slice(*span)] for span in read.spans.comments] == ["# why"]


def test_byte_order_mark_and_line_ends_stay() -> None:
    data = b"\xef\xbb\xbfa = 1\r\nb = 2\n"
    read = read_toml(data)
    assert read.bom + read.text.encode() == data
    assert read.data == {"a": 1, "b": 2}
    assert read.problem is None


BAD = {
    "a = ": (4, "toml"),
    "a = 1\nb = [1,\n": (13, "toml"),
    "a = 1\na = 2\n": (11, "toml"),
    'x = """\n': (8, "toml"),
    "[a\n": (2, "toml"),
    "a.b = 1\n[a]\n[a]\n": (10, "toml"),
    "x = '\x00'\n": (5, "toml"),
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_toml(text: str) -> None:
    read = read_toml(text.encode())
    assert read.problem is not None
    at, code = BAD[text]
    assert read.problem.code == code
    assert abs(read.problem.span.start - at) <= 4
    assert read.data == {} and read.spans.root.entries == {}
    assert read.text == text


def test_what_is_no_text() -> None:
    for data, code in ((b"a = '\xff'\n", "decode"), (b"\x7fELF\0\0\xff", "binary")):
        problem = read_toml(data).problem
        assert problem is not None and problem.code == code
    big = read_toml(b"a = 1\n" * 400_000).problem
    assert big is not None and big.code == "toml" and "too large" in big.message


ENDLESS = {
    "key": "a." * 50_000 + "a = 1\n",
    "header": "[" + "a." * 50_000 + "a]\n",
    "array": "a = " + "[" * 100_000,
    "closed": "a = " + "[" * 10_000 + "]" * 10_000,
    "inline": "a = " + "{a=" * 50_000,
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_endless_texts_end_soon(kind: str) -> None:
    start = time.process_time()
    problem = read_toml(ENDLESS[kind].encode()).problem
    assert problem is not None and problem.code == "toml"
    assert time.process_time() - start < 1
    with pytest.raises(ExcessError):
        scan(ENDLESS[kind])


@pytest.mark.parametrize(
    "text",
    ['a = """' + '"' * 100_000, "a = '''" + "''x" * 40_000, "#" * 200_000, "a = [" + " " * 200_000,
     "a = " + "1 " * 100_000, 'a = "' + "\\" * 100_000, "[[a]]\n" * 30_000],
    ids=lambda text: text[:8],
)  # fmt: skip
def test_long_texts_take_linear_time(text: str) -> None:
    start = time.process_time()
    read_toml(text.encode())
    assert time.process_time() - start < 2


def test_unquote() -> None:
    assert unquote('"a\\u00e9\\t\\\\"') == "aé\t\\"
    assert unquote("'a\\n'") == "a\\n"
    assert unquote("bare") == "bare"


def test_spans_are_fast() -> None:
    text = (
        "[project]\ndependencies = [\n"
        + "  \"package-name>=1.2,<2 ; sys_platform == 'linux'\",\n" * 500
    )
    text += "]\n[tool.uv.sources]\n" + "".join(
        f'p{n} = {{ index = "pytorch-cu126", marker = "sys_platform" }}\n' for n in range(100)
    )
    mine = min(_time(scan, text) for _ in range(5))
    theirs = min(_time(tomllib.loads, text) for _ in range(5))
    assert mine < 2 * theirs


def _time(function: Any, text: str) -> float:
    start = time.process_time()
    function(text)
    return time.process_time() - start


def test_span_type() -> None:
    node = scan("a = 1").find("a")
    assert node is not None and node.span == Span(4, 5)
