"""JSON lines of ``verify``: what is written is read back, and what is none is told as that."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchpin.verify.lines import LineError, read_line, to_line
from torchpin.verify.model import (
    LIBRARIES,
    PREDICTIONS,
    REASONS,
    SUMMARY_STATUSES,
    WORK_STATUSES,
    Host,
    HostGpu,
    Kernels,
    Record,
    Summary,
    TorchBuild,
    Work,
)

_TEXT = st.text(max_size=20)
_MAYBE = st.none() | _TEXT
_TEXTS = st.lists(_TEXT, max_size=3).map(tuple)
_COUNT = st.integers(0, 10_000)
_TORCH = st.builds(
    TorchBuild,
    _TEXT,
    _MAYBE,
    _TEXTS,
    _MAYBE,
    st.lists(st.builds(Kernels, _TEXT, _TEXTS, _TEXTS), max_size=2).map(tuple),
    st.sampled_from([None, "files", "catalog"]),
)
_HOST = st.builds(
    Host,
    _TEXT,
    _MAYBE,
    _TEXT,
    _MAYBE,
    _MAYBE,
    st.lists(st.builds(HostGpu, _COUNT, _TEXT, _MAYBE, st.none() | _COUNT, _MAYBE)).map(tuple),
    st.dictionaries(_TEXT, _TEXT, max_size=3).map(lambda each: tuple(sorted(each.items()))),
    st.none() | _TORCH,
    _MAYBE,
    _TEXTS,
    _TEXTS,
)
_WORK = st.builds(
    Work,
    _TEXT,
    st.none() | _COUNT,
    st.sampled_from(LIBRARIES),
    _TEXT,
    st.sampled_from(WORK_STATUSES),
    st.none() | st.sampled_from(REASONS),
    st.none() | st.integers(),
    _MAYBE,
    st.floats(0, 1e6),
    st.none() | st.sampled_from(PREDICTIONS),
    st.none() | st.booleans(),
)
_SUMMARY = st.builds(
    Summary,
    _TEXT,
    _MAYBE,
    st.sampled_from(SUMMARY_STATUSES),
    _COUNT,
    _COUNT,
    _COUNT,
    _COUNT,
    _TEXTS,
)


@settings(deadline=None)
@given(_HOST | _WORK | _SUMMARY)
def test_a_line_is_read_as_what_was_written(record: Record) -> None:
    line = to_line(record)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert read_line(line) == record


def test_fields_of_a_later_torchpin_are_passed_over() -> None:
    value = json.loads(to_line(Summary("n01", None, "ok", 3)))
    assert read_line(json.dumps({**value, "mood": [1]})) == Summary("n01", None, "ok", 3)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "upgrade"),
        ({"version": None}, '"kind" and "version"'),
        ({"version": True}, '"kind" and "version"'),
        ({"kind": "weather"}, '"kind" and "version"'),
        ({"kind": ["work"]}, '"kind" and "version"'),
        ({"node": None}, '"node" is not a text'),
        ({"gpu": True}, '"gpu" is not a whole number'),
        ({"gpu": "0"}, '"gpu" is not a whole number'),
        ({"library": "tensorflow"}, "not one of torch, cublas"),
        ({"status": "fine"}, "not one of ok, failed"),
        ({"reason": "gremlins"}, "not one of no-kernel-image"),
        ({"seconds": "1"}, '"seconds" is not a number'),
        ({"agrees": 1}, '"agrees" is not true or false'),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, Any], told: str) -> None:
    value = json.loads(to_line(Work("n01", 0, "torch", "add", "ok")))
    with pytest.raises(LineError) as caught:
        read_line(json.dumps({**value, **change}), path="n01.jsonl", line=3)
    assert told in str(caught.value)
    assert str(caught.value).startswith("n01.jsonl:3: ")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"gpus": {}}, '"gpus" is not a list'),
        ({"gpus": [0]}, '"gpus" is not an object'),
        ({"gpus": [{"index": 0}]}, '"name" is missing'),
        ({"packages": {"torch": 2}}, '"torch" is not a text'),
        ({"differences": [1]}, '"differences" is not a list of texts'),
        ({"torch": "2.14.1"}, '"torch" is not an object'),
    ],
)
def test_a_wrong_part_of_a_host_is_named(change: dict[str, Any], told: str) -> None:
    value = json.loads(to_line(Host("n01", "3.11.7", "linux-x86_64")))
    with pytest.raises(LineError, match=told):
        read_line(json.dumps({**value, **change}))


@pytest.mark.parametrize(
    "text", ["", "srun: error: n02: task 1: Exited", "[]", "{}", "[" * 100_000, "{" + "x" * 500]
)
def test_what_is_no_line_is_told_shortly(text: str) -> None:
    with pytest.raises(LineError) as caught:
        read_line(text)
    assert "no line of `torchpin verify`" in str(caught.value)
    assert len(str(caught.value)) < 250
