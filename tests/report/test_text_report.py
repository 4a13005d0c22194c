from __future__ import annotations

import pytest
from tests.report.report_samples import TEXT, build, document, finding, target, view

from torchpin.documents.base import Span
from torchpin.report import concise, diff, statistics, text
from torchpin.report.frame import MAX_COLUMNS, MAX_LINES, frame
from torchpin.report.model import Locator, count, ordered
from torchpin.report.style import PLAIN, Style, clean, redact, visible
from torchpin.rules.model import Because


def test_a_finding_shows_place_frame_grounds_and_fix() -> None:
    assert text.render(view(finding()), PLAIN) == (
        "error[TP106] cu124 stopped at torch 2.6.0\n"
        " --> requirements.txt:2:1\n"
        "  |\n"
        "2 | torch==2.14.0+cu124  # pinned\n"
        "  | ^^^^^^^^^^^^^^^^^^^\n"
        "  = because: the last release on cu124 is 2.6.0 [bounded]\n"
        "  = see: torchpin.toml:3: declared here\n"
        "  = fix: use torch 2.14.0 from cu126\n"
        "2 - torch==2.14.0+cu124  # pinned\n"
        "2 + torch==2.14.0+cu126  # pinned\n"
        "\n"
        "Found 1 error in 1 file. Catalog of 2026-11-30.\n"
        "`torchpin fix` mends 1.\n"
    )


def test_a_ground_that_repeats_the_message_lends_it_its_evidence() -> None:
    said = finding(message="never published")._replace(
        because=(Because("never published", "measured", "index"),)
    )
    report = text.render(view(said), PLAIN)
    assert "error[TP106] never published [measured]\n" in report
    assert "because" not in report


@pytest.mark.parametrize(
    ("safety", "unsafe", "words"),
    [
        ("safe", False, "`torchpin fix` mends 1."),
        ("unsafe", False, "`torchpin fix --unsafe-fixes` mends 1."),
        ("unsafe", True, "`torchpin fix --unsafe-fixes` mends 1."),
        ("display", True, "in 1 file. Catalog"),
        (None, True, "in 1 file. Catalog"),
    ],
)
def test_the_last_line_counts_what_fix_mends(safety: str | None, unsafe: bool, words: str) -> None:
    assert words in text.summary(view(finding(safety=safety), unsafe=unsafe), PLAIN)


def test_safe_and_unsafe_are_counted_apart() -> None:
    found = (finding(), finding(safety="unsafe"), finding(safety="display", severity="info"))
    assert count(found, unsafe=False)._asdict() == {
        "errors": 2,
        "warnings": 0,
        "infos": 1,
        "fixable": 1,
        "hidden": 1,
    }
    assert count(found, unsafe=True).fixable == 2
    assert "`torchpin fix` mends 1; `torchpin fix --unsafe-fixes` mends 1 more.\n" in text.summary(
        view(*found), PLAIN
    )


def test_no_findings() -> None:
    assert text.render(view(), PLAIN) == "No findings in 1 file. Catalog of 2026-11-30.\n"
    assert text.render(view(), PLAIN, closing=False) == ""


def test_colour_changes_nothing_but_escapes() -> None:
    import re

    painted = text.render(view(finding()), Style(color=True))
    assert painted != text.render(view(finding()), PLAIN)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == text.render(view(finding()), PLAIN)


def test_concise_is_one_line_a_finding() -> None:
    assert concise.render(view(finding(), finding(safety="unsafe")), PLAIN).splitlines()[:2] == [
        "requirements.txt:2:1: error[TP106] [*] cu124 stopped at torch 2.6.0",
        "requirements.txt:2:1: error[TP106] cu124 stopped at torch 2.6.0",
    ]


def test_statistics_count_by_rule() -> None:
    found = (finding(), finding(safety=None), finding(code="TP101", safety=None))
    assert statistics.render(found, PLAIN) == (
        "2  TP106  [-]  discontinued-channel\n1  TP101  [ ]  discontinued-channel\n"
    )


def test_a_credential_is_never_shown() -> None:
    shown = finding(needle="--extra-index-url https://user:s3cret@host.example/whl/cu124")
    shown = shown._replace(message="bad index https://user:s3cret@host.example/whl/cu124")
    report = text.render(view(shown), PLAIN)
    assert "s3cret" not in report
    assert "3 | --extra-index-url https://****@host.example/whl/cu124\n" in report
    # The underline is as long as what is shown.
    assert f"  | {'^' * len('--extra-index-url https://****@host.example/whl/cu124')}\n" in report


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:pw@h.example/x", "https://****@h.example/x"),
        ("https://token@h.example/x", "https://****@h.example/x"),
        ("https://u:p@ss@h.example/x", "https://****@h.example/x"),
        ("git+ssh://git@h.example/x", "git+ssh://****@h.example/x"),
        ("https://${USER}:${PASSWORD}@h.example", "https://${USER}:${PASSWORD}@h.example"),
        ("https://h.example/x?token=abc", "https://h.example/x?****"),
        ("https://h.example/x#sha256=ab", "https://h.example/x#sha256=ab"),
        ("mail me@h.example", "mail me@h.example"),
    ],
)
def test_redact(url: str, shown: str) -> None:
    assert redact(f"index '{url}' and more") == f"index '{shown}' and more"


def test_two_secrets_in_one_line() -> None:
    line = "https://a:b@x.example https://c:d@y.example?k=v"
    assert redact(line) == "https://****@x.example https://****@y.example?****"


def test_control_characters_are_escaped() -> None:
    evil = "torch==1\x1b]0;owned\x07\u202e"
    assert visible(evil) == "torch==1\\x1b]0;owned\\x07\\u202e"
    assert visible("a\u061cb\u00adc\ufeffd\U000e0041e") == "a\\u061cb\\xadc\\ufeffd\\U000e0041e"
    doc = document(f"{evil}\n")
    _, lines = frame(doc, Span(0, len(evil)), Locator(), PLAIN, "error")
    assert "\x1b" not in "".join(lines)
    assert len(lines[1]) == len(lines[2])
    assert clean("two\r\nlines\x00") == "two lines\\x00"


def test_tabs_and_wide_characters_keep_the_underline_in_place() -> None:
    doc = document("\t漢 torch==1\n")
    start = doc.text.index("torch")
    _, lines = frame(doc, Span(start, start + 5), Locator(), PLAIN, "error")
    assert lines[1] == "1 |     漢 torch==1"
    assert lines[2] == "  |        ^^^^^"


def test_a_long_line_is_cut_around_the_span() -> None:
    doc = document("x" * 5000 + "torch==1" + "y" * 5000)
    _, lines = frame(doc, Span(5000, 5008), Locator(), PLAIN, "error")
    assert len(lines[1]) < MAX_COLUMNS + 10
    at = lines[1].index("torch==1")
    assert lines[2][at:] == "^" * 8


def test_a_long_span_is_cut() -> None:
    doc = document("torch==1 \\\n" + "  --hash=sha256:ab \\\n" * 20 + "  --hash=sha256:cd\n")
    _, lines = frame(doc, Span(0, len(doc.text) - 1), Locator(), PLAIN, "error")
    assert len(lines) == 2 + 2 * MAX_LINES
    assert lines[-1].endswith("… 18 more lines")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends_are_no_part_of_the_frame(newline: str) -> None:
    doc = document(f"a{newline}torch==1{newline}")
    start = doc.text.index("torch")
    _, lines = frame(doc, Span(start, start + 8), Locator(), PLAIN, "error")
    assert lines[1:] == ["2 | torch==1", "  | ^^^^^^^^"]


def test_an_insertion_point_at_the_end_is_marked() -> None:
    doc = document("torch")
    _, lines = frame(doc, Span(5, 5), Locator(), PLAIN, "error")
    assert lines[2] == "  |      ^"


def test_a_finding_without_a_document() -> None:
    lost = finding()._replace(document=None, path="bad.txt", fix=None, because=(), related=())
    assert text.render(view(lost), PLAIN, closing=False) == (
        "error[TP106] cu124 stopped at torch 2.6.0\n --> bad.txt\n"
    )
    assert concise.render(view(lost), PLAIN, closing=False).startswith("bad.txt:1:1: ")


def test_findings_come_in_reading_order() -> None:
    first, second = finding(needle="numpy"), finding()
    other = finding(path="a.txt")
    assert ordered((second, first, other)) == (other, first, second)


def test_a_diff_keeps_line_ends_and_says_where_the_last_one_is_missing() -> None:
    assert diff.render("./r.txt", "a\r\ntorch==1\x0cx", "a\r\ntorch==2\x0cx", PLAIN) == (
        "--- a/r.txt\n+++ b/r.txt\n@@ -1,2 +1,2 @@\n a\r\n"
        "-torch==1\x0cx\n\\ No newline at end of file\n"
        "+torch==2\x0cx\n\\ No newline at end of file\n"
    )
    assert diff.render("r.txt", TEXT, TEXT, PLAIN) == ""
    assert "s3cret" not in diff.render("r.txt", TEXT, TEXT.replace("numpy", "scipy"), PLAIN)


def test_show_says_a_reason_once() -> None:
    """Two GPUs of a group have one driver: what it is too old for is told once."""
    from torchpin.judge.model import Reason, Verdict
    from torchpin.report import tables
    from torchpin.select.model import Selection

    old = Reason("driver", "fails", "driver 550 is too old", "published", "NVIDIA")
    gpus = [
        Reason("kernels", "runs", f"{name} runs its kernels", "measured", "wheel")
        for name in ("Tesla V100", "A100")
    ]
    verdict = Verdict("fails", (gpus[0], old, gpus[1], old), ("torch kernels",))
    chosen = Selection("torch", None, None, target(), "selected", build(), None, None, "why")
    shown = tables.show(((chosen, verdict),), PLAIN)
    assert shown.count("driver 550 is too old") == 1
    assert all(reason.text in shown for reason in gpus)
