"""Properties of the readers of project files: any bytes, no byte lost, places that are right."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from torchpin.documents.base import Document, Span
from torchpin.documents.poetry_constraint import python_marker, to_pep440
from torchpin.documents.pyproject import read_pyproject, read_uv_toml
from torchpin.documents.toml_spans import scan, unquote
from torchpin.documents.toml_view import read_toml

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

# --- Generated TOML: the text is drawn, the library says what it means -----------------------

SPACE = st.sampled_from(["", " ", "  ", "\t"])
CHARS = st.text(alphabet="aé#]},=.\\ '\"[{\t😀", max_size=6)
NAMES = st.sampled_from(["a", "b", "torch", "tool", "uv", "x-1", "Ab_"])
COMMENT = st.sampled_from(["", "", "", " # c", "#]", " # 'x\" [a]"])


@st.composite
def keys(draw: st.DrawFn) -> str:
    name = draw(NAMES | CHARS)
    if name.replace("-", "").replace("_", "").isascii() and draw(st.booleans()):
        bare = "".join(c for c in name if c.isalnum() or c in "-_")
        if bare and bare.isascii():
            return bare
    if "'" not in name and draw(st.booleans()):
        return f"'{name}'"
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t") + '"'


@st.composite
def strings(draw: st.DrawFn) -> str:
    text = draw(CHARS)
    kind = draw(st.integers(0, 3))
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    if kind == 0:
        return f'"{escaped}"'
    if kind == 1 and "'" not in text:
        return f"'{text}'"
    tail = draw(st.sampled_from(["", '"', '""']))
    lines = draw(st.sampled_from(["", "\n", "\r\n", "x\n y", "x \\\n  y", '""x', '"\n']))
    if kind == 2:
        return f'"""{lines}{escaped}{tail}"""'
    if "''" in text or text.endswith("'"):
        text = "x"
    lines = lines.replace('"', "'")
    return f"'''{lines}{text}{tail.replace(chr(34), chr(39))}'''"


SCALARS = st.sampled_from(
    ["1", "-1_0", "0xff", "1.5", "1e3", "inf", "true", "false", "1979-05-27", "07:32:00",
     "1979-05-27 07:32:00", "1979-05-27T07:32:00Z"]
)  # fmt: skip


def arrays(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    gap = st.sampled_from(["", " ", "\n", "\r\n  ", " # c ]\n", "\n\n\t"])
    item = st.tuples(gap, inner, gap).map("".join)
    return st.tuples(st.lists(item, max_size=4), gap, st.booleans()).map(
        lambda parts: "[" + ",".join(parts[0]) + ("," if parts[0] and parts[2] else "")
        + parts[1] + "]"
    )  # fmt: skip


@st.composite
def inlines(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    pairs = []
    for number in range(draw(st.integers(0, 3))):
        key = f"k{number}" if draw(st.booleans()) else f"'d {number}' . {draw(keys())}"
        pairs.append(f"{draw(SPACE)}{key}{draw(SPACE)}={draw(SPACE)}{draw(inner)}{draw(SPACE)}")
    return "{" + ",".join(pairs) + (" " if not pairs else "") + "}"


VALUES = st.recursive(
    strings() | SCALARS, lambda inner: arrays(inner) | inlines(inner), max_leaves=6
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    newline = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    lines: list[str] = []
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.integers(0, 6))
        path = f"{draw(SPACE)}.{draw(SPACE)}".join(draw(st.lists(keys(), min_size=1, max_size=3)))
        if kind == 0:
            lines.append(f"{draw(SPACE)}[{draw(SPACE)}{path}{draw(SPACE)}]{draw(COMMENT)}")
        elif kind == 1:
            lines.append(f"[[{path}]]{draw(COMMENT)}")
        elif kind == 2:
            lines.append(draw(SPACE) + draw(COMMENT))
        else:
            value = draw(VALUES)
            lines.append(f"{draw(SPACE)}{path}{draw(SPACE)}={draw(SPACE)}{value}{draw(COMMENT)}")
    return newline.join(lines) + draw(st.sampled_from(["", newline]))


def values(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    if path:
        yield path, value
    below: Any = value.items() if isinstance(value, dict) else ()
    for step, inside in enumerate(value) if isinstance(value, list) else below:
        yield from values(inside, (*path, step))


@settings(max_examples=300, deadline=None)
@given(documents())
@example("a.b = 1\n[c]\nd.e = {f.g = [1,], h = ''}\n[[i]]\n[i.j]\nk = '''\nx'''''\n")
@example('a = """\\\n  """\r\nb = """""" # c')
def test_every_place_reads_back(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        read_toml(text.encode())  # a key twice, a table that is closed: whatever it is, no crash
        return
    spans = scan(text)
    expected = dict(values(data))
    assert {path for path, _ in spans.walk()} == set(expected)
    for path, node in spans.walk():
        if isinstance(path[-1], str):
            assert node.key is not None
            assert unquote(text[node.key.start : node.key.end]) == path[-1]
        if node.kind in ("table", "tables"):
            continue
        written = text[node.start : node.end]
        assert repr(tomllib.loads(f"x = {written}")["x"]) == repr(expected[path])
        if node.kind == "string":
            assert node.inner is not None
            inner = text[node.inner.start : node.inner.end].replace("\r\n", "\n")
            assert inner == expected[path] or "\\" in inner
    for span in spans.comments:
        assert text[span.start] == "#"
        # Comments and headers are outside of every value: without them the values are the same.
    bare = text
    for span in reversed(spans.comments):
        bare = bare[: span.start] + bare[span.end :]
    assert repr(tomllib.loads(bare)) == repr(data)
    ends = [header.body_end for header in spans.headers]
    assert ends == sorted(ends)
    for header in spans.headers:
        assert tomllib.loads(text[header.span.start : header.span.end])
        assert header.span.end <= header.body_end <= len(text)
        added = text[: header.body_end]
        added += (
            ("" if added.endswith("\n") else "\n") + "'new one' = 1\n" + text[header.body_end :]
        )
        tomllib.loads(added)  # an insertion there belongs to the table and breaks nothing
        again = scan(added)
        assert sum(path[-1] == "new one" for path, _ in again.walk()) == 1


# --- Project files: pieces that people write, in any order and place ----------------------------

WORDS = [
    "torch", "^2.1", "2.1 || 3", ">=2,<3", "torch==2.1+cu126 ; os_name == 'nt'", "dev", "", "x y",
    "https://download.pytorch.org/whl/cu126", "pytorch", "*", "${X}", "torch @ https://f.example/x",
    "\\u0074orch", "all", "\\n", "sys_platform == 'linux'",
]  # fmt: skip
PATHS = [
    "project", "project.dependencies", "project.name", "project.requires-python",
    "project.optional-dependencies", "project.optional-dependencies.a", "dependency-groups",
    "dependency-groups.dev", "build-system.requires", "tool", "tool.uv", "tool.uv.sources",
    "tool.uv.sources.torch", "tool.uv.index", "tool.uv.conflicts", "tool.uv.environments",
    "tool.uv.pip", "tool.uv.pip.index-url", "tool.uv.index-url", "tool.uv.find-links",
    "tool.uv.workspace.members", "tool.uv.default-groups", "tool.uv.dev-dependencies",
    "tool.uv.override-dependencies", "tool.uv.package", "tool.poetry", "tool.poetry.dependencies",
    "tool.poetry.dependencies.torch", "tool.poetry.dependencies.python", "tool.poetry.extras.a",
    "tool.poetry.source", "tool.poetry.group", "tool.poetry.group.dev.dependencies",
    "tool.poetry.group.dev.optional", "tool.poetry.dev-dependencies", "tool.pdm",
    "tool.pdm.source", "tool.pdm.dev-dependencies.a", "tool.pdm.resolution.overrides",
    "tool.hatch.envs", "tool.hatch.envs.a.dependencies", "tool.setuptools.dynamic.dependencies",
]  # fmt: skip
INNER = [
    "index", "name", "url", "marker", "extra", "group", "workspace", "git", "version", "source",
    "priority", "explicit", "default", "include-group", "torch", "python", "platform", "markers",
    "optional", "extras", "file", "include_packages", "rev", "package",
]  # fmt: skip
plain = st.sampled_from([f'"{w}"' for w in WORDS] + ["1", "true", "false", "1.5", "1979-05-27"])
shapes = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]")
        | st.dictionaries(st.sampled_from(INNER), inner, max_size=3).map(
            lambda table: "{" + ", ".join(f"{k} = {v}" for k, v in table.items()) + "}"
        )
    ),
    max_leaves=5,
)
lines = st.one_of(
    st.tuples(st.sampled_from(PATHS), shapes).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    st.sampled_from(PATHS).map("[{}]".format),
    st.sampled_from(PATHS).map("[[{}]]".format),
    st.tuples(st.sampled_from(INNER), shapes).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    st.just("# c"),
)
projects = st.lists(lines, max_size=8).map("\n".join)


def check(data: bytes) -> Document:
    start = time.process_time()
    document = read_pyproject("p", data)
    assert time.process_time() - start < 2
    read_uv_toml("u", data)
    project = document.project
    assert project is not None
    if not any(p.code in ("decode", "binary") for p in document.problems):
        assert document.encode(document.text) == data
    spans: list[Span | None] = [p.span for p in document.problems]
    for d in document.declarations:
        spans += [d.span, d.line_span, d.name_span, d.specifier_span, d.marker_span, d.url_span]
        assert d.line_span.start <= d.span.start
        if not d.from_variable and d.url_span is not None and d.url is not None:
            assert document.text[slice(*d.url_span)] in d.url
        if not d.from_variable and d.marker is not None and d.marker_span is not None:
            assert document.text[slice(*d.marker_span)] == d.marker
    for s in project.sources:
        spans += [s.span, s.value_span, s.marker_span, s.key_span]
    for i in project.indexes:
        spans += [i.span, i.url_span, i.name_span, i.explicit_span]
    spans += [c.span for c in project.conflicts] + [s.span for s in project.settings]
    spans += [table.header for table in project.tables] + list(document.comments)
    for span in spans:
        assert span is None or 0 <= span.start <= span.end <= len(document.text)
    return document


@settings(max_examples=400, deadline=None)
@given(projects)
@example("tool.uv.sources.torch = [{index = 'a'}, 3]\ntool.uv.conflicts = [[{extra = 'a'}], 1]")
@example("[tool.poetry.dependencies]\ntorch = [{}, 'x', {version = 1}]\npython = []")
def test_any_project_file_gives_a_document(text: str) -> None:
    check(text.encode())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
@example(b"\xef\xbb\xbf[project]\r\nname = 'x'\r\n")
@example(b"\xff\xfe[\x00")
def test_any_bytes_give_a_document(data: bytes) -> None:
    check(data)


SEED = b"""\
[project]
name = "demo"
dependencies = ["torch>=2.1", 'torchvision==0.26 ; sys_platform == "linux"'] # c
[tool.uv]
conflicts = [[{ extra = "cpu" }, { extra = "cu126" }]]
[[tool.uv.index]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu126"
explicit = true
[tool.uv.sources]
torch = [{ index = "pytorch", marker = "sys_platform == 'linux'" }]
[tool.poetry.dependencies]
torch = {version = "^2.1", source = "pytorch", python = "^3.10 || ^3.12"}
[[tool.poetry.source]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu126"
"""


PIECES = [
    *(b"[", b"]", b'"', b"'", b"{", b"}", b",", b"=", b"\n", b"\r\n", b"#", b".", b"\\"),
    *(b"\x00", b"\xff", b'"""', b"1", b" = 1\n"),
]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_mutated_files_give_a_document(data: st.DataObject) -> None:
    mutated = bytearray(SEED)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated)))
        kind = data.draw(st.integers(0, 2))
        if kind == 0:
            del mutated[at : at + data.draw(st.integers(1, 12))]
        elif kind == 1:
            mutated[at:at] = data.draw(st.sampled_from(PIECES))
        else:
            other = data.draw(st.integers(0, len(mutated)))
            mutated[at:at] = mutated[other : other + 20]
    check(bytes(mutated))


@settings(max_examples=400, deadline=None)
@given(st.text(alphabet="0123.^~<>=!|*x, +abdev-", max_size=14) | st.text(max_size=12))
def test_any_constraint_is_read_or_refused(text: str) -> None:
    from packaging.markers import Marker
    from packaging.specifiers import SpecifierSet

    try:
        specifier = to_pep440(text)
        marker = python_marker(text)
    except ValueError:
        return
    if specifier is not None:
        SpecifierSet(specifier)
    if marker:
        Marker(marker)
