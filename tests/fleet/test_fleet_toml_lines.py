"""The line finder: every key and array item, in every way to write TOML."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchpin.errors import ConfigError
from torchpin.fleet.toml_text import decode, find_lines, loads

TEXT = '''\
# comment with = and [brackets]
title = "a # b"
multi = """
[not.a.table]
x = 1 \\""" still
"""
lit = \'\'\'
y = 2
\'\'\'
date = 1979-05-27 07:32:00
[tool.torchpin.fleet."big.box"] # header
gpus = [ # first
  "a", 'b,]', # "x"

  ["nested"], {k = [1,
    2]},
]
"quoted key" = 1
dotted . name = true
inline = { a = 1, b.c = "}", d = [ { e = 1 } ] }
[[files]]
name = "one"
[[files]]
name = "two"
[files.sub]
z = 0
[[files.deep]]
q = 1
'''
BOX = ("tool", "torchpin", "fleet", "big.box")
LINES: list[tuple[tuple[str | int, ...], int]] = [
    (("title",), 2),
    (("multi",), 3),
    (("lit",), 7),
    (("date",), 10),
    (BOX, 11),
    ((*BOX, "gpus"), 12),
    ((*BOX, "gpus", 0), 13),
    ((*BOX, "gpus", 1), 13),
    ((*BOX, "gpus", 2), 15),
    ((*BOX, "gpus", 2, 0), 15),
    ((*BOX, "gpus", 3, "k", 1), 16),
    ((*BOX, "quoted key"), 18),
    ((*BOX, "dotted", "name"), 19),
    ((*BOX, "inline", "b", "c"), 20),
    ((*BOX, "inline", "d", 0, "e"), 20),
    (("files",), 21),
    (("files", 0, "name"), 22),
    (("files", 1), 23),
    (("files", 1, "name"), 24),
    (("files", 1, "sub"), 25),
    (("files", 1, "sub", "z"), 26),
    (("files", 1, "deep", 0, "q"), 28),
]


@pytest.mark.parametrize(("path", "line"), LINES, ids=[str(p) for p, _ in LINES])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line(path: tuple[str | int, ...], line: int, newline: str) -> None:
    assert find_lines(TEXT.replace("\n", newline))[path] == line


def paths(value: Any, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    found: set[tuple[str | int, ...]] = {path} if path else set()
    if isinstance(value, dict):
        for key, item in value.items():
            found |= paths(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found |= paths(item, (*path, number))
    return found


def test_every_path_of_the_parsed_text_has_a_line() -> None:
    assert paths(loads(TEXT, "x")) <= set(find_lines(TEXT))


def test_bom_counts_for_nothing() -> None:
    text = decode(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n", "x")
    assert find_lines(text) == {("a",): 1, ("b",): 2}


def test_undecodable_bytes_name_their_line() -> None:
    with pytest.raises(ConfigError, match="UTF-8") as caught:
        decode(b"a = 1\nb = '\xff'\n", "x.toml")
    assert caught.value.line == 2


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\na = 2\n", 2), ("a = [\n", 1), ("[a]\n[a]\n", 2), ("a = 1979-99-99", 1)],
)
def test_toml_errors_name_their_line(text: str, line: int) -> None:
    with pytest.raises(ConfigError, match="not valid TOML") as caught:
        loads(text, "x.toml")
    assert caught.value.line == line


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=6)
VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


def basic(text: str) -> str:
    plain = (c if c.isalnum() and c.isascii() else f"\\U{ord(c):08x}" for c in text)
    return '"' + "".join(plain) + '"'


def write(value: Any, breaks: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return basic(value)
    if isinstance(value, list):
        return "[" + breaks + ("," + breaks).join(write(v, breaks) for v in value) + breaks + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{basic(k)} = {write(v, breaks)}" for k, v in value.items()) + " }"
    return str(value)


@given(
    st.dictionaries(WORDS, VALUES, max_size=4),
    st.sampled_from(["", "\n", " # it's ]\n", "\r\n"]),
)
@settings(max_examples=100, deadline=None)
def test_finds_every_path_of_any_document(data: dict[str, Any], breaks: str) -> None:
    starts: list[int] = []
    text = ""
    for key, value in data.items():
        starts.append(text.count("\n") + 1)
        text += f"{basic(key)} = {write(value, breaks)}\n"
    lines = find_lines(text)
    assert loads(text, "x") == data
    assert paths(data) <= set(lines)
    assert [lines[(key,)] for key in data] == starts


@given(st.text(alphabet="ab=[]{}\"'.,#\n\r\\ 1", max_size=60))
@settings(max_examples=200, deadline=None)
def test_ends_on_any_text(text: str) -> None:
    try:
        lines = find_lines(text)
    except ConfigError:  # an escape that TOML does not know in a quoted key
        assert "\\" in text
    else:
        assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
