"""Splices of TOML: the meaning is the intended one, every other byte stays, or the edit refuses."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from torchpin.documents.project import Source
from torchpin.documents.pyproject import read_pyproject
from torchpin.rewrite import uv_edit
from torchpin.rewrite.toml_edit import ShapeError, TomlText, inline, quoted, text_of

tomllib: Any = __import__("tomllib" if sys.version_info >= (3, 11) else "tomli")

CU130 = "https://download.pytorch.org/whl/cu130"
CU126 = "https://download.pytorch.org/whl/cu126"
Edit = Callable[[TomlText], None]


def load(text: str) -> dict[str, Any]:
    value: dict[str, Any] = tomllib.loads(text.replace("\r\n", "\n"))
    return value


def inserted(old: str, new: str) -> bool:
    """True if ``new`` is ``old`` with one piece put in."""
    start = 0
    while start < len(old) and start < len(new) and old[start] == new[start]:
        start += 1
    end = 0
    while end < len(old) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start + end == len(old)


def check(old: str, new: str, expected: dict[str, Any]) -> None:
    """Assert what must hold of an insertion."""
    assert load(new) == expected, new
    assert inserted(old, new), new
    if "\r\n" in old:
        assert "\n" not in new.replace("\r\n", ""), new


# -- layouts of one project

HEAD = '[project]\nname = "app"\nversion = "0"\ndependencies = ["torch>=2.11"]\n'
SOURCE = f'torch = {{ index = "pytorch-cu130" }}'  # noqa: F541
PLAIN = {"torch": {"index": "pytorch-cu130"}}
INDEX = [{"name": "pytorch-cu130", "url": CU130, "explicit": True}]

SOURCES = {
    "table": "[tool.uv.sources]\n" + SOURCE + "\n",
    "table with comments": "[tool.uv.sources] # where\n# torch\n" + SOURCE + "  # gpu\n# end\n",
    "sub-table": '[tool.uv.sources.torch]\nindex = "pytorch-cu130" # gpu\n',
    "single quotes": "[tool.uv.sources]\n'torch' = { index = 'pytorch-cu130' }\n",
    "quoted header": '["tool".uv."sources"]\n"torch" = {index="pytorch-cu130"}\n',
    "list": '[tool.uv.sources]\ntorch = [\n  { index = "pytorch-cu130" } # only one\n]\n',
    "none": "",
}
SOURCES_INSIDE = {
    "dotted": 'sources.torch = { index = "pytorch-cu130" }\n',
    "dotted deeper": 'sources.torch.index = "pytorch-cu130"\n',
    "inline": 'sources = { torch = { index = "pytorch-cu130" } }\n',
    "none": "",
}
INDEXES = {
    "tables": f'[[tool.uv.index]]\nname = "pytorch-cu130"\nurl = "{CU130}"\nexplicit = true\n',
    "spread": f"[[ tool.uv.index ]] # PyTorch\n\nname = 'pytorch-cu130'\n# where\n"
    f"url = '{CU130}'\nexplicit = true # yes\n",
    "none": "",
}
INDEXES_INSIDE = {
    "array": f'index = [{{ name = "pytorch-cu130", url = "{CU130}", explicit = true }}]\n',
    "long array": f'index = [\n    # PyTorch\n    {{ name = "pytorch-cu130", url = "{CU130}", '
    "explicit = true } # no comma\n    # end\n]\n",
    "comma": f'index = [\n  {{ name = "pytorch-cu130", url = "{CU130}", explicit = true }},\n]\n',
    "none": "",
}
UV = {
    "header": "[tool.uv]\n{inside}",
    "with others": "[tool.uv] # uv\npackage = false\n\n# more\n{inside}dev-dependencies = []\n",
    "dotted": "[tool]\n{dotted}",
    "absent": "",
}
OTHERS = (
    "[tool.ruff]\nline-length = 100 # wide\n",
    '# about the tests\n\n[tool.pytest.ini_options]\naddopts = "-q"\n',
    "[dependency-groups]\ndev = [\n    'pytest', # tests\n    'ruff'\n]\n",
    '[build-system]\nrequires = ["hatchling"]\n',
)


@st.composite
def layouts(draw: st.DrawFn) -> str:
    """Return the text of one project in some layout."""
    uv = draw(st.sampled_from(sorted(UV)))
    source_inside = index_inside = "none"
    if uv != "absent":
        source_inside = draw(st.sampled_from(sorted(SOURCES_INSIDE)))
        index_inside = draw(st.sampled_from(sorted(INDEXES_INSIDE)))
    source = draw(st.sampled_from(sorted(SOURCES))) if source_inside == "none" else "none"
    index = draw(st.sampled_from(sorted(INDEXES))) if index_inside == "none" else "none"
    inside = SOURCES_INSIDE[source_inside] + INDEXES_INSIDE[index_inside]
    dotted = "".join(
        f"uv.{line}" if line and not line[0].isspace() and line[0] not in "]#" else line
        for line in (inside or "package = false\n").splitlines(keepends=True)
    )
    parts = [HEAD, UV[uv].replace("{inside}", inside).replace("{dotted}", dotted)]
    parts += [SOURCES[source], INDEXES[index], *draw(st.sets(st.sampled_from(OTHERS)))]
    parts = draw(st.permutations([part for part in parts if part]))
    text = draw(st.sampled_from(["", "\n", "\n\n"])).join(parts)
    if draw(st.booleans()):
        text = text.rstrip("\n")
    try:
        load(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def toml_of(text: str) -> TomlText:
    return TomlText(text, "\r\n" if "\r\n" in text else "\n")


def uv_of(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = value.setdefault("tool", {}).setdefault("uv", {})
    return found


REFUSALS: dict[str, int] = {}


def tried(name: str, edit: Callable[[], object]) -> bool:
    """Return whether an edit was made; one that its shape forbids is counted."""
    try:
        edit()
    except ShapeError:
        REFUSALS[name] = REFUSALS.get(name, 0) + 1
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(layouts())
def test_a_new_source(text: str) -> None:
    toml = toml_of(text)
    expected = copy.deepcopy(load(text))
    entry = uv_edit.source_text("pytorch-cu130", marker=uv_edit.LINUX)
    if not tried("source", lambda: uv_edit.set_source(toml, "torchvision", [entry])):
        assert toml.text == text
        return
    sources = uv_of(expected).setdefault("sources", {})
    sources["torchvision"] = {"index": "pytorch-cu130", "marker": uv_edit.LINUX}
    check(text, toml.text, expected)


@settings(max_examples=300, deadline=None)
@given(layouts())
def test_a_new_index(text: str) -> None:
    toml = toml_of(text)
    project = read_pyproject("pyproject.toml", text.encode()).project
    assert project is not None
    expected = copy.deepcopy(load(text))
    if not tried("index", lambda: uv_edit.ensure_index(toml, project, "cu126")):
        assert toml.text == text
        return
    new = {"name": "pytorch-cu126", "url": CU126, "explicit": True}
    uv_of(expected).setdefault("index", []).append(new)
    assert load(toml.text) == expected, toml.text
    if "\r\n" in text:
        assert "\n" not in toml.text.replace("\r\n", "")
    touched = ("index = [", "explicit = true }")
    for line in text.splitlines():
        assert line in toml.text.splitlines() or any(word in line for word in touched)


@settings(max_examples=300, deadline=None)
@given(layouts(), st.sampled_from(["extra", "constraint", "conflicts"]))
def test_new_keys(text: str, what: str) -> None:
    toml = toml_of(text)
    project = read_pyproject("pyproject.toml", text.encode()).project
    assert project is not None
    expected = copy.deepcopy(load(text))
    if what == "extra":
        done = tried(what, lambda: uv_edit.add_extra(toml, "cu126", ["torch>=2.11"]))
        expected["project"]["optional-dependencies"] = {"cu126": ["torch>=2.11"]}
    elif what == "constraint":
        done = tried(what, lambda: uv_edit.add_constraint(toml, "torch>=2"))
        uv_of(expected)["constraint-dependencies"] = ["torch>=2"]
    else:
        done = tried(what, lambda: uv_edit.add_conflicts(toml, project, ["a", "b"]))
        uv_of(expected)["conflicts"] = [[{"extra": "a"}, {"extra": "b"}]]
    if done:
        check(text, toml.text, expected)
    else:
        assert toml.text == text


@settings(max_examples=300, deadline=None)
@given(layouts())
def test_the_source_that_is_there(text: str) -> None:
    """A marker is added, the channel swapped with the index's name: only these words change."""
    document = read_pyproject("pyproject.toml", text.encode())
    project = document.project
    assert project is not None
    old = load(text)
    toml = toml_of(text)
    expected = copy.deepcopy(old)
    for source in project.sources:

        def edit(one: Source = source) -> None:
            toml.apply([uv_edit.add_marker(toml, one, uv_edit.LINUX)])

        if tried("marker", edit):
            value = expected["tool"]["uv"]["sources"]["torch"]
            (value[0] if isinstance(value, list) else value)["marker"] = uv_edit.LINUX
            check(text, toml.text, expected)
        else:
            assert toml.text == text
    toml = toml_of(text)
    for index in project.indexes:
        edits, name = uv_edit.swap_index_channel(document, project, index, "cu126", rename=True)
        toml.apply(edits)
        assert name == "pytorch-cu126"
        assert toml.text == text.replace("cu130", "cu126")


def test_few_layouts_are_refused() -> None:
    """Dotted inline shapes may refuse; the usual ones do not."""
    for uv in ("header", "with others"):
        for source in SOURCES.values():
            for index in INDEXES.values():
                text = HEAD + UV[uv].replace("{inside}", "") + source + index
                toml = toml_of(text)
                entry = inline(index="pytorch-cu130")
                uv_edit.set_source(toml, "torchvision", [entry])
                project = read_pyproject("pyproject.toml", toml.text.encode()).project
                assert project is not None
                uv_edit.ensure_index(toml, project, "cu126")
                uv_edit.add_conflicts(toml, project, ["a", "b"])
                uv_edit.add_extra(toml, "a", ["torch"])
                assert len(load(toml.text)["tool"]["uv"]["conflicts"]) == 1


# -- arrays

ARRAYS = (
    ("a = []\n", 'a = ["x"]\n'),
    ("a = [ ]\n", None),
    ('a = ["1"]\n', 'a = ["1", "x"]\n'),
    ("a = ['1',]\n", None),
    ('a = ["1", "2"] # end\n', 'a = ["1", "2", "x"] # end\n'),
    ('a = [\n  "1",\n  "2",\n]\n', 'a = [\n  "1",\n  "2",\n  "x",\n]\n'),
    ('a = [\n  "1", # one\n  "2" # two\n]\n', 'a = [\n  "1", # one\n  "2", # two\n  "x",\n]\n'),
    ('a = [\n  "1",\n  # last\n]\n', None),
    ('a = [\n  "1"\n  # comma next\n  ,\n]\n', None),
    ('a = ["1",\n     "2"]\n', None),
    ('a = [ # numbers\n  "1",\n]', None),
    ('a = [[\n "1"\n]]\n', None),
    ('a = ["1" # one\n]\n', None),
    ("a = [\n]\n", None),
    ("a = [\n  # nothing yet\n]\n", None),
    ("a = [ # nothing yet\n]\n", None),
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("text", "after"), ARRAYS)
def test_append_to_arrays(text: str, after: str | None, newline: str) -> None:
    old = text.replace("\n", newline)
    toml = TomlText(old, newline)
    toml.append_item(("a",), '"x"')
    assert load(toml.text) == {"a": [*load(old)["a"], "x"]}
    for line in old.split(newline):
        if line.strip().startswith("#"):
            assert line in toml.text.split(newline)
    assert [c for c in old if c == "#"] == [c for c in toml.text if c == "#"]
    if newline == "\r\n":
        assert "\n" not in toml.text.replace("\r\n", "")
    if after is not None:
        assert toml.text == after.replace("\n", newline)


def test_what_is_no_array_or_no_table() -> None:
    toml = TomlText("a = 1\n[b]\nc = 1\n[[d]]\n", "\n")
    with pytest.raises(ShapeError):
        toml.append_item(("a",), "2")
    with pytest.raises(ShapeError):
        toml.append_item(("no",), "2")
    with pytest.raises(ShapeError):
        toml.set_key(("d",), "x", "1")
    with pytest.raises(ShapeError):
        toml.set_key((), "b", "1")
    assert toml.text == "a = 1\n[b]\nc = 1\n[[d]]\n"


def test_a_key_with_points_is_quoted() -> None:
    assert quoted("a.b") == '"a.b"'
    assert quoted("cu126") == "cu126"
    assert text_of('a"b\\') == '"a\\"b\\\\"'
    with pytest.raises(ShapeError):
        text_of("a\nb")


def test_toml_1_1_inline_table_over_lines() -> None:
    text = "a = {\n  b = 1, # one\n}\n[c]\n"
    toml = TomlText(text, "\n")
    toml.set_key(("a",), "x", "1")
    assert toml.text == "a = {\n  b = 1, # one\n  x = 1,\n}\n[c]\n"
    toml.set_key(("c",), "x", "1")
    assert toml.text == "a = {\n  b = 1, # one\n  x = 1,\n}\n[c]\nx = 1\n"
