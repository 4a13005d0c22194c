"""A pattern of ``regex`` does what the one of ``re.compile`` does, from its first use on."""

from __future__ import annotations

import copy
import re

import pytest

from torchpin.patterns import regex


def test_a_pattern_is_compiled_at_its_first_use_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compile_now = re.compile

    def watched(pattern: str, flags: int = 0) -> re.Pattern[str]:
        made.append(pattern)
        return compile_now(pattern, flags)

    monkeypatch.setattr(re, "compile", watched)
    pattern = regex(r"(?P<name>[a-z]+)-\d")
    assert pattern.pattern == r"(?P<name>[a-z]+)-\d" and made == []
    for _ in range(2):
        assert pattern.match("ab-1") is not None
    assert pattern.fullmatch("ab-1x") is None
    assert made == [pattern.pattern]


def test_all_that_a_pattern_offers_is_that_of_re() -> None:
    text = "A-1 b-2 c"
    ours, theirs = regex(r"([a-z])-(\d)", re.IGNORECASE), re.compile(r"([a-z])-(\d)", re.IGNORECASE)
    assert (ours.flags, ours.groups, ours.pattern) == (theirs.flags, theirs.groups, theirs.pattern)
    assert ours.findall(text) == theirs.findall(text) == [("A", "1"), ("b", "2")]
    assert ours.sub("x", text) == theirs.sub("x", text)
    assert ours.split(text) == theirs.split(text)
    found = ours.search(text, 2)
    assert found is not None and found.span() == (4, 7) and found.re == theirs
    assert regex(rb"\d+").findall(b"1 22") == [b"1", b"22"]
    assert copy.deepcopy(ours).findall(text) == theirs.findall(text)


def test_a_wrong_pattern_is_told_at_the_first_use() -> None:
    wrong = regex("(")
    for _ in range(2):
        with pytest.raises(re.error):
            wrong.match("")


def test_a_wrong_name_is_told() -> None:
    with pytest.raises(AttributeError, match="no_such"):
        regex("a").no_such  # type: ignore[attr-defined]  # noqa: B018
