"""Comments that silence findings."""

from __future__ import annotations

import pytest

from torchpin.documents.requirements import read_requirements
from torchpin.documents.suppressions import Suppression, suppressions


def read(text: str) -> tuple[Suppression, ...]:
    return suppressions(read_requirements("x", text.encode()))


def covered(text: str, code: str) -> list[int]:
    found = read(text)
    return [line for line in range(1, 20) if any(s.covers(code, line) for s in found)]


def test_same_line() -> None:
    text = "torch==2.1 # torchpin: ignore[TP201, tp3] old cluster\ntorchvision\n"
    (found,) = read(text)
    assert found.codes == ("TP201", "TP3")
    assert found.reason == "old cluster"
    assert text[found.span.start : found.span.end].startswith("# torchpin")
    assert covered(text, "TP201") == [1]
    assert covered(text, "TP301") == [1]
    assert covered(text, "TP202") == []


def test_line_above() -> None:
    text = "# torchpin: ignore[TP2]\n# why\ntorch==2.1 \\\n  --hash=sha256:aa\ntorchvision\n"
    assert covered(text, "TP203") == [3, 4]


def test_line_above_with_a_gap_covers_nothing() -> None:
    assert covered("# torchpin: ignore[TP2]\n\ntorch\n", "TP203") == []
    assert covered("# torchpin: ignore[TP2]", "TP203") == []


def test_whole_file_and_every_code() -> None:
    assert covered("torch\n# torchpin: ignore-file[TP4]\n", "TP401") == list(range(1, 20))
    assert covered("torch # torchpin: ignore\n", "TP999") == [1]
    assert covered("torch # torchpin:ignore - because\n", "TP999") == [1]


def test_what_is_no_suppression() -> None:
    assert read("torch # torchpin: ignored\n") == ()
    assert read("torch # torchpin: ignore[]\n") == ()
    assert read("torch # see torchpin: ignore[TP1]\n") == ()
    assert read("torch#torchpin: ignore[TP1]\n") == ()
    assert read("torch\n") == ()


def test_crlf_and_odd_line_breaks() -> None:
    assert covered("a\r\n# torchpin: ignore[TP1]\r\ntorch\r\n", "TP101") == [3]


@pytest.mark.parametrize(
    ("comment", "codes", "reason"),
    [
        ("ignore TP201", ("TP201",), ""),
        ("ignore TP201 old cluster", ("TP201",), "old cluster"),
        ("ignore: tp201, TP3", ("TP201", "TP3"), ""),
        ("ignore TP201 TP203: we know", ("TP201", "TP203"), ": we know"),
        ("ignore-file TP4", ("TP4",), ""),
        ("ignore[TP201] TP203 is another matter", ("TP201",), "TP203 is another matter"),
        ("ignore because of TP201", (), "because of TP201"),
        ("ignore TP2010", (), "TP2010"),
        ("ignore[TP201", ("TP201",), ""),
        ("ignore-file[TP201, TP3", ("TP201", "TP3"), ""),
    ],
)
def test_codes_without_brackets_are_meant(
    comment: str, codes: tuple[str, ...], reason: str
) -> None:
    """Not every code: who names one does not want to silence the others."""
    (one,) = read(f"torch # torchpin: {comment}\n")
    assert (one.codes, one.reason) == (codes, reason)
