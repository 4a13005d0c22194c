"""Wheels of the stable ABI serve later Pythons, but no free-threaded ones."""

from __future__ import annotations

from typing import Any, cast

import pytest

from torchpin.catalog.store import load_catalog
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.report.json_ import wheel_tag
from torchpin.select.misses import _serves


@pytest.mark.parametrize(
    ("tag", "python", "serves"),
    [
        ("cp39-abi3", Python(3, 12), True),
        ("cp39-abi3", Python(3, 9), True),
        ("cp310-abi3", Python(3, 9), False),
        ("cp39-abi3", Python(3, 13, True), False),
        ("cp312", Python(3, 12), True),
        ("cp311", Python(3, 12), False),
        ("py3", Python(3, 12), False),
    ],
)
def test_the_python_of_a_tag(tag: str, python: Python, serves: bool) -> None:
    assert _serves(tag, python) is serves


@pytest.mark.parametrize(
    ("python", "tag"), [(Python(3, 12), "cp39-abi3"), (Python(3, 13, True), None), (None, None)]
)
def test_the_tag_that_is_shown(python: Python | None, tag: str | None) -> None:
    class One:
        build = load_catalog().find("xformers", version="0.0.33", home="pypi")[0]
        target = Target(NodeGroup("a", (), (), "linux-x86_64"), python)

    assert wheel_tag(cast("Any", One())) == tag
