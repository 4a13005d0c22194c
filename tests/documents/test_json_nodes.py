"""JSON inside of YAML: values and the places where they are written."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from torchpin.documents.atoms import Atom
from torchpin.documents.github_workflow import read_github_workflow
from torchpin.documents.json_nodes import json_node
from torchpin.documents.yaml_spans import Node

LEAVES = st.none() | st.booleans() | st.integers(-9, 999) | st.text(max_size=5)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def plain(node: Node) -> Any:
    if node.kind == "sequence":
        return [plain(one) for one in node.items]
    if node.kind == "mapping":
        return {key.value: plain(value) for key, value in node.entries}
    return node.value


def words(value: Any) -> Any:
    """Return a value with its scalars as nodes have them."""
    if isinstance(value, list):
        return [words(one) for one in value]
    if isinstance(value, dict):
        return {key: words(one) for key, one in value.items()}
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


@given(VALUES, st.integers(0, 9), st.sampled_from([None, 1]), st.booleans())
def test_values_and_places(value: Any, before: int, indent: int | None, ascii_: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_)
    file = "x" * before + text
    node = json_node((Atom(text, before, len(file), True),))
    assert node is not None and plain(node) == words(value)

    def check(one: Node) -> None:
        written = file[one.start : one.end]
        assert words(json.loads(written)) == plain(one)
        if one.kind == "scalar" and one.style and "\\" not in written:
            assert file[slice(*one.inner)] == one.value
        for below in (*one.items, *(value for _, value in one.entries)):
            check(below)

    check(node)


@given(st.text('[]{}",:1a\\ ', max_size=12))
def test_what_is_no_json_is_none(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        assert json_node((Atom(text, 0, len(text), True),)) is None
    else:
        assert json_node((Atom(text, 0, len(text), True),)) is not None


def test_a_matrix_of_an_input_and_one_that_only_a_run_knows() -> None:
    text = (
        'on: {workflow_dispatch: {inputs: {torch: {default: \'["2.6.0", "2.7.0"]\'}}}}\n'
        "jobs:\n  a:\n    strategy: {matrix: {torch: '${{ fromJSON(inputs.torch) }}'}}\n"
        "    steps: [{run: 'pip install torch==${{ matrix.torch }}'}]\n"
        "  b:\n    strategy: {matrix: '${{ fromJSON(needs.a.outputs.x) }}'}\n"
        "    steps: [{run: 'pip install torch==${{ matrix.torch }}'}]\n"
    )
    document = read_github_workflow(".github/workflows/x.yml", text.encode())
    asked = [one.specifier for part in document.parts for one in part.document.declarations]
    assert asked[:2] == ["==2.6.0", "==2.7.0"] and "$" in asked[2] and len(asked) == 3
