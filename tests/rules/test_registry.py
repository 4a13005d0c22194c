"""The register of rules, and how findings are united."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchpin.documents.base import Document, Span
from torchpin.documents.requirements import read_requirements
from torchpin.evidence import BOUNDED, INFERRED, LOCKFILE, MEASURED, PUBLISHED
from torchpin.rules.model import ERROR, INFO, SEVERITIES, WARNING, Because, Finding, Fix, Related
from torchpin.rules.registry import Rule, all_rules, grounds_once, merge

ISSUED = {
    *("TP001", "TP003"),
    *(f"TP10{last}" for last in range(1, 9)),
    *(f"TP20{last}" for last in range(1, 9)),
    *(f"TP30{last}" for last in range(1, 7)),
    *("TP401", "TP402", "TP403", "TP404", "TP407", "TP412", "TP414"),
    *("TP501", "TP502", "TP506", "TP507", "TP508", "TP601", "TP602", "TP603"),
}
TORCH = Span(0, 5)
DOCUMENT: Document = read_requirements("requirements.txt", b"torch==2.9.1\ntorchvision\n")


def finding(
    *,
    code: str = "TP201",
    severity: str = ERROR,
    path: str = "requirements.txt",
    span: Span = TORCH,
    message: str = "holds no kernels",
    group: str | None = None,
    python: str | None = None,
    because: tuple[Because, ...] = (),
    related: tuple[Related, ...] = (),
    fix: Fix | None = None,
) -> Finding:
    return Finding(
        code,
        "a-name",
        severity,
        DOCUMENT,
        path,
        span,
        message,
        "torch",
        group,
        python,
        because,
        related,
        fix,
    )


def test_codes_are_those_that_are_documented() -> None:
    codes = [rule.code for rule in all_rules()]
    assert codes == sorted(set(codes))
    assert set(codes) >= ISSUED


def test_names_are_unique() -> None:
    names = [rule.name for rule in all_rules()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_rules_are_documented(rule: Rule) -> None:
    assert re.fullmatch(r"TP\d{3}", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", rule.name)
    assert rule.severity in SEVERITIES
    text = type(rule).__doc__ or ""
    heads = re.findall(
        r"^ *(What it does|Why it is bad|Why it matters|Example|Fix|Evidence):", text, re.M
    )
    assert [head.split(" ")[0] for head in heads] == ["What", "Why", "Example", "Fix", "Evidence"]
    assert len(rule.summary()) <= 100
    assert rule.summary().endswith(".")


def test_same_words_of_the_same_place_are_one_finding() -> None:
    one = finding(
        group="a",
        python="3.11",
        severity=WARNING,
        because=(Because("x", MEASURED, "wheel a"),),
        related=(Related("torchpin.toml", 1, "group a"),),
    )
    other = finding(
        group="b",
        python="3.12",
        because=(Because("x", MEASURED, "wheel b"), Because("y", PUBLISHED, "docs")),
        related=(Related("torchpin.toml", 5, "group b"),),
        fix=Fix("safe", "pin it"),
    )
    (united,) = merge([one, other])
    assert united.group == "a, b"
    assert united.python == "3.11, 3.12"
    assert united.severity == ERROR
    assert [ground.text for ground in united.because] == ["x", "y"]
    assert [place.line for place in united.related] == [1, 5]
    assert united.fix == Fix("safe", "pin it")


@pytest.mark.parametrize(
    "other",
    [
        finding(code="TP203"),
        finding(path="other.txt"),
        finding(span=Span(0, 12)),
        finding(message="something else"),
    ],
)
def test_other_findings_stay_apart(other: Finding) -> None:
    assert len(merge([finding(), other])) == 2


def test_findings_come_in_the_order_of_the_file() -> None:
    spans = [Span(13, 24), Span(0, 5), Span(0, 12)]
    assert [one.span for one in merge(finding(span=span) for span in spans)] == sorted(spans)


FINDINGS = st.builds(
    finding,
    code=st.sampled_from(["TP201", "TP203"]),
    severity=st.sampled_from(SEVERITIES),
    message=st.sampled_from(["a", "b"]),
    group=st.sampled_from([None, "x", "y", "x, y"]),
    because=st.lists(
        st.builds(
            Because,
            st.sampled_from(["p", "q"]),
            st.sampled_from([MEASURED, INFERRED]),
            st.just("s"),
        ),
        max_size=2,
    ).map(tuple),
)


@given(st.lists(FINDINGS, max_size=6))
def test_merging_loses_nothing_and_is_done_once(findings: list[Finding]) -> None:
    merged = merge(findings)
    assert merge(merged) == merged
    assert {(one.code, one.message) for one in merged} == {
        (one.code, one.message) for one in findings
    }
    for one in merged:
        mine = [same for same in findings if (same.code, same.message) == (one.code, one.message)]
        assert one.severity == max((same.severity for same in mine), key=SEVERITIES.index)
        assert {ground.text for ground in one.because} == {
            ground.text for same in mine for ground in same.because
        }
        groups = {name for same in mine if same.group for name in same.group.split(", ")}
        assert set((one.group or "").split(", ")) - {""} == groups


def test_a_ground_is_as_well_known_as_its_best_source() -> None:
    grounds = grounds_once(
        [
            Because("x", INFERRED, "pattern"),
            Because("y", BOUNDED, "span"),
            Because("x", LOCKFILE, "a lock"),
            Because("x", PUBLISHED, "docs"),
        ]
    )
    assert grounds == (Because("x", LOCKFILE, "a lock"), Because("y", BOUNDED, "span"))


def test_severities_are_ordered() -> None:
    assert SEVERITIES == (INFO, WARNING, ERROR)
