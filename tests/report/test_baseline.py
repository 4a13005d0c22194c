"""Baselines: what makes a finding the same, and the text of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchpin.documents.base import Document, Span
from torchpin.documents.requirements import read_requirements
from torchpin.errors import ConfigError
from torchpin.report.baseline import Entry, counted, dump, entry_of, load, split
from torchpin.rules.model import Finding

TEXT = "numpy\ntorch==2.11.0  # V100\n"


def document(path: Path, text: str = TEXT) -> Document:
    return read_requirements(str(path), text.encode())


def finding(where: Document, code: str = "TP201", **values: str) -> Finding:
    at = where.text.index("torch")
    return Finding(
        code,
        "name",
        "error",
        where,
        where.path,
        Span(at, at + 5),
        values.pop("message", "holds no kernels"),
        "torch",
        values.get("group"),
        values.get("python"),
    )


def test_entry_is_relative_to_the_baseline(tmp_path: Path) -> None:
    one = finding(document(tmp_path / "a" / "requirements.txt"), group="volta")
    assert entry_of(one, str(tmp_path)) == Entry(
        "a/requirements.txt", "TP201", "torch==2.11.0  # V100", "torch", "volta", ""
    )
    assert entry_of(one, str(tmp_path / "b")).path == "../a/requirements.txt"


def test_lines_above_and_messages_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    before = finding(document(path))
    after = finding(document(path, f"scipy\n\n{TEXT}"), message="another sentence")
    known = counted([entry_of(before, str(tmp_path))])
    assert split([after], known, str(tmp_path)) == ((), 1, ())


@pytest.mark.parametrize(
    ("code", "value", "same"),
    [
        ("TP201", {"group": "turing"}, False),
        ("TP106", {"group": "turing"}, True),
        ("TP102", {"python": "3.14"}, False),
        ("TP201", {"python": "3.14"}, True),
    ],
)
def test_groups_count_where_hardware_decides(
    tmp_path: Path, code: str, value: dict[str, str], same: bool
) -> None:
    where = document(tmp_path / "requirements.txt")
    known = counted([entry_of(finding(where, code), str(tmp_path))])
    assert (not split([finding(where, code, **value)], known, str(tmp_path)).new) == same


def test_alike_findings_are_counted(tmp_path: Path) -> None:
    one = finding(document(tmp_path / "requirements.txt"))
    known = counted([entry_of(one, str(tmp_path))] * 2)
    assert len(split([one] * 3, known, str(tmp_path)).new) == 1
    assert len(split([one], known, str(tmp_path)).gone) == 1


def test_text_is_read_back_and_short_in_diffs(tmp_path: Path) -> None:
    where = document(tmp_path / "requirements.txt")
    entries = [
        entry_of(finding(where, code), str(tmp_path)) for code in ("TP203", "TP201", "TP201")
    ]
    text = dump(entries)
    assert load(text, "b") == counted(entries)
    assert len(text.splitlines()) == 4
    assert text == dump(reversed(entries))
    assert load(dump(()), "b") == {}


def test_credentials_are_not_kept(tmp_path: Path) -> None:
    where = document(
        tmp_path / "requirements.txt",
        "--index-url https://bob:hunter2@pypi.example/simple\n",
    )
    one = finding(document(tmp_path / "x"))._replace(document=where, span=Span(0, 5))
    assert "hunter2" not in dump([entry_of(one, str(tmp_path))])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 1}',
        '{"version": 2, "findings": []}',
        '{"version": 1, "findings": [3]}',
        '{"version": 1, "findings": [{"path": "a"}]}',
        '{"version": 1, "findings": [{"path": "a", "code": "TP201", "count": 0}]}',
        '{"version": 1, "findings": [{"path": "a", "code": "TP201", "count": true}]}',
        '{"version": 1, "findings": [{"path": "a", "code": 201}]}',
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="baseline"):
        load(text, "torchpin-baseline.json")


def test_unknown_keys_do_not_matter() -> None:
    text = json.dumps({"version": 1, "findings": [{"path": "a", "code": "TP201", "note": "later"}]})
    assert load(text, "b") == {Entry("a", "TP201", "", "", "", ""): 1}
