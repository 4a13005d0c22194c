from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpin.documents.yaml_spans import MAX_DEPTH, MAX_YAML, Node, Yaml, scan_yaml

TEXT = """\
# top
name: demo  # name
channels: [pytorch, "nvidia"]
dependencies:
  - python=3.11
  - 'pytorch::pytorch=2.4'   # "quoted" comment
  - pip:
      - --extra-index-url https://download.pytorch.org/whl/cu121
      - "torch==2.1 # no comment"
      - é😀
  # end

script: |
  # not a comment
  pip install torch
tail: &anchor v
"""


def read(text: str) -> Node:
    found = scan_yaml(text)
    assert found.problem is None and found.root is not None
    return found.root


def written(text: str, node: Node | None) -> str:
    assert node is not None
    return text[node.inner.start : node.inner.end]


def test_every_scalar_stands_where_it_says() -> None:
    root = read(TEXT)
    items = root.get("dependencies")
    assert items is not None
    assert [written(TEXT, one) for one in items.items[:2]] == [
        "python=3.11",
        "pytorch::pytorch=2.4",
    ]
    pip = items.items[2].get("pip")
    assert pip is not None
    assert [one.value for one in pip.scalars()] == [
        "--extra-index-url https://download.pytorch.org/whl/cu121",
        "torch==2.1 # no comment",
        "é😀",
    ]
    assert [written(TEXT, one) for one in pip.items] == [one.value for one in pip.items]
    assert TEXT[pip.end - 2 : pip.end] == "é😀"
    assert written(TEXT, root.get("tail")) == "v"
    assert written(TEXT, root.get("script")) == "  # not a comment\n  pip install torch\n"


def test_comments_are_told_from_text() -> None:
    found = scan_yaml(TEXT)
    assert [TEXT[a:b] for a, b in found.comments] == [
        "# top",
        "# name",
        '# "quoted" comment',
        "# end",
    ]


def test_the_last_of_a_key_wins_and_keys_may_be_missing() -> None:
    root = read("a: 1\na: 2\nb: [x]\n? [k]\n: v\n")
    assert written("a: 1\na: 2\n", root.get("a")) == "2"
    assert root.get("a", "b") is None
    assert root.get("missing", "b") is None
    assert [key for key, _, _ in root.pairs()] == ["a", "a", "b"]


def test_numbers_keep_their_text() -> None:
    root = read("python: 3.10\non: yes\n")
    assert [(key, value.value) for key, _, value in root.pairs()] == [
        ("python", "3.10"),
        ("on", "yes"),
    ]


def test_aliases_give_the_node_of_the_anchor() -> None:
    root = read("a: &x [torch]\nb: *x\nc: !tag &y value\n")
    assert root.get("a") is root.get("b")
    assert written("a: &x [torch]\nb: *x\nc: !tag &y value\n", root.get("c")) == "value"


def test_aliases_of_aliases_do_not_unfold() -> None:
    text = "a0: &a0 [x, x]\n" + "".join(
        f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60)
    )
    assert scan_yaml(text).problem is None


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a: [b", "is not valid YAML"),
        ("a: \t- b", "is not valid YAML"),
        ("a: \x01", "is not valid YAML"),
        ("[" * 90000, ""),
        ("{a: " * 400, "nested more than"),
        ("- " * (MAX_DEPTH + 1) + "x", "nested more than"),
        ("x" * (MAX_YAML + 1), "too large"),
    ],
)
def test_what_is_no_yaml_is_a_problem(text: str, part: str) -> None:
    found = scan_yaml(text)
    assert found.roots == ()
    assert found.problem is not None and found.problem.code == "yaml"
    assert part in found.problem.message
    assert 0 <= found.problem.span.start <= len(text)


def test_several_documents() -> None:
    found = scan_yaml("---\na: 1\n---\n- b\n...\n")
    assert [root.kind for root in found.roots] == ["mapping", "sequence"]
    assert scan_yaml("").root is None


@given(st.text(alphabet=st.sampled_from(" \n\t-:#'\"[]{}&*!|>?ab1é\r\\"), max_size=80))
def test_no_text_crashes(text: str) -> None:
    found: Yaml = scan_yaml(text)
    stack = list(found.roots)
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        assert 0 <= node.start <= node.end <= len(text)
        assert node.start <= node.inner.start <= node.inner.end <= node.end
        stack += node.items
        for key, value in node.entries:
            stack += (key, value)
    assert all(text[start] == "#" for start, _ in found.comments)
