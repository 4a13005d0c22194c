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
    assert split([after], known, str(tmp_path)) == ((), (after,), {})


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
    assert split([one], known, str(tmp_path)).gone == {entry_of(one, str(tmp_path)): 1}


def test_a_count_costs_nothing(tmp_path: Path) -> None:
    """Whoever writes the file decides the number; it must not decide how much is held."""
    many = {Entry("a", "TP201", "", "", "", ""): 10**15}
    assert load(dump(many), "b") == many
    assert split([], many, str(tmp_path)).gone == many


def test_of_a_long_line_the_beginning_and_a_digest_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    long = f"torch==2.11.0  # {'x' * 1_000_000}"
    entry = entry_of(finding(document(path, long)), str(tmp_path))
    assert len(entry.text) < 300 and entry.text.startswith("torch==2.11.0  # xxx")
    assert entry == entry_of(finding(document(path, long)), str(tmp_path))
    assert entry != entry_of(finding(document(path, f"{long}y")), str(tmp_path))


def test_text_is_read_back_and_short_in_diffs(tmp_path: Path) -> None:
    where = document(tmp_path / "requirements.txt")
    entries = [
        entry_of(finding(where, code), str(tmp_path)) for code in ("TP203", "TP201", "TP201")
    ]
    text = dump(counted(entries))
    assert load(text, "b") == counted(entries)
    assert len(text.splitlines()) == 4
    assert text == dump(counted(reversed(entries)))
    assert load(dump({}), "b") == {}


def test_credentials_are_not_kept(tmp_path: Path) -> None:
    where = document(
        tmp_path / "requirements.txt",
        "--index-url https://bob:hunter2@pypi.example/simple\n",
    )
    one = finding(document(tmp_path / "x"))._replace(document=where, span=Span(0, 5))
    assert "hunter2" not in dump(counted([entry_of(one, str(tmp_path))]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 1}',
        '{"version": 2, "findings": []}',
        '{"version": true, "findings": []}',
        pytest.param("[" * 200_000, id="deep"),
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
