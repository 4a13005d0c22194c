"""Poetry's constraints in the words of PEP 440, by the tables of Poetry's documentation."""

from __future__ import annotations

import pytest
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet

from torchpin.documents.poetry_constraint import python_marker, to_pep440

# The examples of Poetry's page "Dependency specification", then what people write.
TABLE = {
    "^1.2.3": ">=1.2.3,<2.0.0", "^1.2": ">=1.2,<2.0", "^1": ">=1,<2", "^0.2.3": ">=0.2.3,<0.3.0",
    "^0.0.3": ">=0.0.3,<0.0.4", "^0.0": ">=0.0,<0.1", "^0": ">=0,<1",
    "~1.2.3": ">=1.2.3,<1.3.0", "~1.2": ">=1.2,<1.3", "~1": ">=1,<2",
    "*": "", "1.*": "==1.*", "1.2.*": "==1.2.*", "1.2.x": "==1.2.*",
    ">= 1.2.0": ">=1.2.0", "> 1": ">1", "< 2": "<2", "!= 1.2.3": "!=1.2.3",
    ">= 1.2, < 1.5": ">=1.2,<1.5", ">=1.2 <1.5": ">=1.2,<1.5", ">=1.2,<1.5,": ">=1.2,<1.5",
    "==1.2.3": "==1.2.3", "1.2.3": "==1.2.3", "=1.2.3": "==1.2.3", "<>1.2": "!=1.2",
    "~=1.2.3": "~=1.2.3", "!=2.1.*": "!=2.1.*", "===2.1": "===2.1",
    "2.1.0+cu121": "==2.1.0+cu121", "^2.1.0a1": ">=2.1.0a1,<3.0.0", "^1!2.1": ">=1!2.1,<1!3.0",
    "^2.1,!=2.2.0": ">=2.1,<3.0,!=2.2.0", "^2.1.0.1": ">=2.1.0.1,<3.0.0.0",
    "^0.0.0": ">=0.0.0,<0.0.1", "v2.1": "==v2.1",
    # Unions that PEP 440 can say.
    "^1.13 || ^2.1": "<3.0,>=1.13,!=2.0.*", "^1.13 | ^2.2.0": "<3.0.0,>=1.13,!=2.0.*,!=2.1.*",
    "<2.1 || >2.1": "!=2.1", "<2 || >=2": "", "* || ^2": "", "^1 || ^2": "<3,>=1",
    "^2 || ^1": "<3,>=1", "1.* || 2.*": "<3,>=1",
}  # fmt: skip


@pytest.mark.parametrize("constraint", TABLE)
def test_table(constraint: str) -> None:
    found = to_pep440(constraint)
    assert found is not None
    assert SpecifierSet(found) == SpecifierSet(TABLE[constraint])


# From 2.1.4 on there is no end of patches below 2.2.
UNSAYABLE = ["1.0 || 3.0", "<2.1.4||>=2.2", "~1.13.1 || ^2.0", "==1.0+cpu || ==2.0", "!=1 || !=2"]
# Bounds with a label, as poetry-core takes them.
UNSAYABLE += ["^2.1.0+cpu", ">=2.1.0+cpu", "~2.1+cpu", "~=2.1.0+cpu", ">=2.1.0+cpu,<3"]


@pytest.mark.parametrize("constraint", UNSAYABLE)
def test_unions_that_pep_440_cannot_say(constraint: str) -> None:
    assert to_pep440(constraint) is None


VERSIONS = [f"{a}.{b}.{c}" for a in range(4) for b in range(4) for c in range(3)] + ["2.0", "3.0"]


UNIONS = [
    *("^1.1 || ^2.1", "~1.1 || ^2.0.1", "<1.1 || >=2", "1.* || 3.*", "^1 || ^3.0.1"),
    *(">1,<2 || >=2.1", "<=1.2 || >2", "^1.5 || ^3.0.1"),
]


@pytest.mark.parametrize("constraint", UNIONS)
def test_unions_hold_where_one_part_holds(constraint: str) -> None:
    parts = [to_pep440(part) for part in constraint.split("||")]
    whole = to_pep440(constraint)
    for version in VERSIONS:
        either = any(SpecifierSet(part or "").contains(version) for part in parts)
        if whole is not None:
            assert SpecifierSet(whole).contains(version) == either, version


REFUSED = [
    *("", "^", "^^1", "abc", "1.2.*.*x", "2.1 |||", ">=1,,<2 ||", "git", "1 - 2", "=>1"),
    *(">=2+", "~", "^*1", "x" * 500),
]


@pytest.mark.parametrize("constraint", REFUSED)
def test_what_poetry_refuses(constraint: str) -> None:
    with pytest.raises(ValueError):
        to_pep440(constraint)


@pytest.mark.parametrize(
    ("constraint", "holds", "fails"),
    [
        ("^3.10", ["3.10.0", "3.14.1"], ["3.9.18", "4.0.0"]),
        (">=3.9,<3.12", ["3.9.0", "3.11.9"], ["3.8.1", "3.12.0"]),
        ("3.11.*", ["3.11.0", "3.11.9"], ["3.12.0"]),
        ("~3.10", ["3.10.4"], ["3.11.0"]),
        (">3.9", ["3.9.1", "3.10.0"], ["3.9.0", "3.8.9"]),
        ("<=3.11", ["3.11.0", "3.10.9"], ["3.11.1"]),
        (">=3.9,!=3.10.*,!=3.11.3", ["3.9.0", "3.11.4"], ["3.10.1", "3.11.3"]),
        ("~3.9 || ^3.11", ["3.9.1", "3.12.0"], ["3.10.0"]),
        (">=3.9.1,<3.12.0", ["3.9.1", "3.11.9"], ["3.9.0", "3.12.0"]),
        ("3.*", ["3.9.1", "3.14.0"], ["4.0.0"]),
    ],
)
def test_python_markers(constraint: str, holds: list[str], fails: list[str]) -> None:
    marker = Marker(python_marker(constraint))
    for full in holds + fails:
        environment = {
            "python_full_version": full,
            "python_version": ".".join(full.split(".")[:2]),
        }
        assert marker.evaluate(environment) is (full in holds), full


def test_any_python() -> None:
    assert python_marker("*") == ""
