"""Code frames of several places, fixes as small diffs, links, groups by cause."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.report.report_samples import document, finding, view

from torchpin.documents.base import Document, Edit, Span, apply_edits
from torchpin.report import block, github, grouped, pages, text
from torchpin.report.fold import fold
from torchpin.report.frame import cut
from torchpin.report.model import Locator
from torchpin.report.patch import MOST, hunks
from torchpin.report.style import PLAIN, Style, width
from torchpin.report.wrap import plain, wrap
from torchpin.rules.model import Because, FileEdits, Finding, Fix, Related

LINES = "torch==2.14.0+cu124\ntorchvision\n# index\n--extra-index-url https://h.example/cu124\n"


def bare(**changes: Any) -> Finding:
    one = finding(LINES)._replace(because=(), related=(), fix=None)
    return one._replace(**changes)


def shown(one: Finding, *documents: Document, style: Style = PLAIN) -> list[str]:
    made = view(one)._replace(documents=documents)
    return text.render(made, style, closing=False).splitlines()


def test_places_of_one_file_stand_in_one_frame() -> None:
    related = (
        Related("requirements.txt", 4, "the index"),
        Related("requirements.txt", 2, "and this"),
    )
    assert shown(bare(related=related))[1:] == [
        " --> requirements.txt:1:1",
        "  |",
        "1 | torch==2.14.0+cu124",
        "  | ^^^^^^^^^^^^^^^^^^^",
        "2 | torchvision",
        "  | ----------- and this",
        "...",
        "4 | --extra-index-url https://h.example/cu124",
        "  | ----------------------------------------- the index",
    ]


def test_a_place_of_another_file_has_a_frame_of_its_own() -> None:
    other = document("\n" * 9 + '[fleet.volta]  # ours\ngpus = ["V100"]\n', "p.txt")
    lines = shown(bare(related=(Related("p.txt", 10, "declared here"),)), other)
    assert lines[1:] == [
        "  --> requirements.txt:1:1",
        "   |",
        " 1 | torch==2.14.0+cu124",
        "   | ^^^^^^^^^^^^^^^^^^^",
        "  ::: p.txt:10",
        "   |",
        "10 | [fleet.volta]  # ours",
        "   | ------------- declared here",
    ]


@pytest.mark.parametrize(
    "related",
    [
        Related("elsewhere.toml", 3, "not read"),
        Related("requirements.txt", 1, "the same line"),
        Related("requirements.txt", 99, "no such line"),
    ],
)
def test_a_place_that_cannot_be_drawn_is_named(related: Related) -> None:
    lines = shown(bare(related=(related,)))
    assert lines[-1] == f"  = see: {related.path}:{related.line}: {related.message}"
    assert len(lines) == 6


def test_many_places_are_named_not_drawn() -> None:
    body = "torch\n" + "x\n" * 20
    places = tuple(Related("requirements.txt", n, f"place {n}") for n in range(3, 13))
    one = bare(document=document(body), span=Span(0, 5), related=places)
    drawn = [line for line in shown(one) if "- place" in line]
    named = [line for line in shown(one) if "= see:" in line]
    assert (len(drawn), len(named)) == (block.MOST_FRAMES, 10 - block.MOST_FRAMES)


def fix_of(doc: Document, *edits: tuple[int, int, str], safety: str = "safe") -> Fix:
    made = tuple(Edit(Span(start, end), new) for start, end, new in edits)
    return Fix(safety, "mend it", (FileEdits(doc, made),))


def test_a_fix_is_drawn_once() -> None:
    doc = document(LINES)
    fix = fix_of(doc, (16, 19, "126"), (20, 31, "torchvision==0.29.1"))
    first = bare(document=doc, fix=fix)
    second = bare(document=doc, span=Span(20, 31), code="TP301", fix=fix)
    report = text.render(view(first, second), PLAIN, closing=False)
    assert report.count("1 + torch==2.14.0+cu126") == 1
    assert "2 - torchvision\n2 + torchvision==0.29.1\n" in report
    assert "  = fix: that of line 1 mends this too\n" in report
    again = bare(document=doc, code="TP301", fix=fix)
    assert "that above mends this too" in text.render(view(first, again), PLAIN)


def test_a_long_advice_is_given_once_and_a_short_one_each_time() -> None:
    doc = document(LINES)
    long = Fix("display", "declare another source, and " * 5)
    for advice, times in ((long, 1), (Fix("display", "pin it"), 2)):
        first = bare(document=doc, fix=advice)
        second = bare(document=doc, span=Span(20, 31), code="TP301", fix=advice)
        report = text.render(view(first, second), PLAIN, closing=False)
        assert report.count(advice.message) == times
        assert ("  = advice: that of line 1 is for this too\n" in report) is (times == 1)


def test_a_fix_in_another_file_names_it() -> None:
    other = document("[project]\n", "pyproject.toml")
    lines = shown(bare(fix=fix_of(other, (0, 9, "[tool]"))))
    assert lines[-3:] == [" ::: pyproject.toml", "1 - [project]", "1 + [tool]"]


def test_a_long_fix_is_cut_and_says_how_to_see_all() -> None:
    doc = document(LINES)
    fix = fix_of(doc, (20, 20, "".join(f"line{n}\n" for n in range(MOST + 5))))
    lines = shown(bare(document=doc, fix=fix))
    assert sum(" + line" in line for line in lines) == MOST
    assert lines[-1] == "  … 5 more lines: `torchpin fix --diff`"


def test_advice_draws_nothing() -> None:
    doc = document(LINES)
    lines = shown(bare(document=doc, fix=fix_of(doc, (0, 5, "x"), safety="display")))
    assert lines[-1] == "  = advice: mend it"
    unsafe = shown(bare(document=doc, fix=fix_of(doc, (0, 5, "x"), safety="unsafe")))
    assert "  = fix (unsafe): mend it" in unsafe


@pytest.mark.parametrize(
    ("before", "edits", "expected"),
    [
        ("a\nb\nc\n", [(2, 3, "B")], [(2, ["b"], ["B"])]),
        ("a\r\nb\r\n", [(0, 1, "A"), (3, 4, "B")], [(1, ["a"], ["A"]), (2, ["b"], ["B"])]),
        ("a\nb\n", [(2, 2, "new\n")], [(2, [], ["new"])]),
        ("a\nb", [(3, 3, "\nnew\n")], [(3, [], ["new"])]),
        ("a\nb\n", [(4, 4, "\n\nnew\n\n")], [(3, [], ["new"])]),
        ("a\nb\nc\n", [(0, 2, "")], [(1, ["a"], [])]),
        ("a\nb\n", [(2, 3, "b")], []),
        ("ab\n", [(0, 1, "x"), (1, 2, "y")], [(1, ["ab"], ["xy"])]),
        ("", [(0, 0, "new\n")], [(1, [], ["new"])]),
    ],
)
def test_hunks(
    before: str, edits: list[tuple[int, int, str]], expected: list[tuple[int, list[str], list[str]]]
) -> None:
    made = tuple(Edit(Span(start, end), new) for start, end, new in edits)
    found = hunks(document(before), made, Locator())
    assert [(one.first, list(one.old), list(one.new)) for one in found] == expected
    after = apply_edits(before, made)
    assert all(line in after for one in found for line in one.new)


WIDE = "漢字🔥é" * 30


@pytest.mark.parametrize("columns", [30, 47, 77])
@pytest.mark.parametrize(
    "line",
    [
        "torch==1" + "x" * 500,
        "x" * 500 + "torch==1",
        "x" * 250 + "torch==1" + "y" * 250,
        WIDE + "torch==1" + WIDE,
        "\t" * 40 + "torch==1",
        "torch==1  # " + WIDE,
        "-i https://user:s3cret@h.example/" + "p" * 90 + " torch==1",
    ],
)
def test_a_cut_line_fits_and_holds_what_is_meant(line: str, columns: int) -> None:
    start = line.index("torch")
    source, marks = cut(line, start, start + 8, columns)
    assert width(source) <= columns
    assert "torch==1" in source
    at = width(source[: source.index("torch")])
    assert marks == " " * at + "^" * 8
    assert "s3cret" not in source


def test_a_line_of_accents_is_cut_too() -> None:
    line = "e" + "\u0301" * 300_000 + "torch==1" + "\u0301" * 300_000
    source, _ = cut(line, line.index("torch"), line.index("torch") + 8, 60)
    assert "torch==1" in source and len(source) < 10_000


def test_a_span_longer_than_the_terminal_begins_in_sight() -> None:
    source, marks = cut("a" * 20 + "b" * 500, 20, 520, 60)
    assert width(source) <= 60 and source.endswith("b…")
    assert marks.rstrip("^").isspace() and len(marks) == 59


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_report_fits_its_terminal(columns: int) -> None:
    said = "the kernels of this build are for sm_75 sm_80 sm_86 sm_90 and no other card at all"
    url = "https://download.pytorch.org/whl/cu126/a/path/that/is/longer/than/any/terminal/is/wide"
    doc = document(LINES)
    one = bare(
        document=doc,
        message=said,
        because=(Because(f"{said} {url}", "measured", "wheel"),),
        related=(Related("requirements.txt", 4, said), Related("other.txt", 4, said)),
        fix=fix_of(doc, (16, 19, "126"))._replace(command="uv lock --upgrade-package torch"),
    )
    report = fold(text.render(view(one), Style(True, columns)), columns)
    long = [line for line in plain(report).splitlines() if width(line) > columns]
    assert {line.strip() for line in long} <= {url, "= then run: uv lock --upgrade-package torch"}
    if columns < 60:  # code is cut
        return
    unfolded = text.render(view(one), PLAIN)
    assert plain(report).replace("|", "").split() == unfolded.replace("|", "").split()


def test_a_command_is_one_word() -> None:
    lines = wrap("now run `torchpin fix --unsafe-fixes` and then `uv lock` again", 40, "  = fix: ")
    assert lines == [
        "  = fix: now run",
        "         `torchpin fix --unsafe-fixes`",
        "         and then `uv lock` again",
    ]


def test_links_change_nothing_but_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "pages", lambda: "https://docs.example/reference/rules/")
    linked = text.render(view(finding()), Style(True, 60, links=True))
    assert (
        "\x1b]8;;https://docs.example/reference/rules/TP106/\x1b\\error[TP106]\x1b]8;;\x1b\\"
        in linked
    )
    assert plain(linked) == plain(text.render(view(finding()), Style(True, 60)))
    monkeypatch.setattr(pages, "pages", lambda: "")
    assert "\x1b]8" not in text.render(view(finding()), Style(True, 60, links=True))


@pytest.mark.parametrize(
    ("urls", "url"),
    [
        (["Source, https://s.example", "Documentation, https://d.example/"], "https://d.example"),
        (["documentation,https://d.example/tp"], "https://d.example/tp"),
        (["Homepage, https://h.example"], None),
        ([], None),
    ],
)
def test_the_pages_are_those_of_the_metadata(urls: list[str], url: str | None) -> None:
    assert pages.below(urls) == (f"{url}/reference/rules/" if url else "")


def test_grouped_tells_a_cause_once() -> None:
    one = finding(path="a.txt")
    two = finding(path="b.txt", safety="unsafe")
    info = finding(path="a.txt", severity="info", safety=None, code="TP602", message="ends")
    report = grouped.render(view(info, one, two), PLAIN)
    assert report.splitlines()[:8] == [
        "error[TP106] cu124 stopped at torch 2.6.0",
        "  = because: the last release on cu124 is 2.6.0 [bounded]",
        "  --> a.txt:2:1 [*]",
        "  --> b.txt:2:1",
        "  = fix: use torch 2.14.0 from cu126",
        "  = fix (unsafe): use torch 2.14.0 from cu126",
        "",
        "info[TP602] ends",
    ]
    assert report.endswith(
        "Catalog of 2026-11-30.\n`torchpin fix` mends 1; "
        "`torchpin fix --unsafe-fixes` mends 1 more.\n"
    )


def test_files_with_findings_are_counted_among_those_read() -> None:
    two = view(finding(path="a.txt"), finding(path="a.txt"))
    assert "Found 2 errors in 1 file. " in text.summary(two, PLAIN)
    assert "Found 2 errors in 1 of 7 files. " in text.summary(two._replace(files=7), PLAIN)
    assert text.summary(view()._replace(files=0), PLAIN).startswith("Nothing to check. ")


def test_an_annotation_says_a_ground_once() -> None:
    said = finding(message="never published")._replace(
        because=(Because("never published", "measured", "index"),)
    )
    line = github.render(view(said))
    assert line.count("never published") == 1
    assert re.search(r"::never published \[measured\]%0Afix \(safe\)", line)


def test_a_line_that_several_findings_are_about_is_drawn_once() -> None:
    doc = document(f"RUN pip install torch==2.6.0 torchvision==0.20.0\n{LINES}")
    start = doc.text.index("torchvision==")
    ground = Because("it says so", "measured", "index")
    first = bare(document=doc, span=Span(16, 28))
    again = bare(document=doc._replace(), span=Span(16, 28), because=(ground,))
    beside = bare(document=doc, span=Span(start, start + 19), because=(ground,))
    below = bare(document=doc, span=Span(49, 54))
    report = text.render(view(first, again, beside, below), PLAIN, closing=False)
    assert report.split("\n\n")[1:] == [
        f"error[TP106] {first.message}\n"
        " --> requirements.txt:1:17, as above\n"
        "  = because: it says so [measured]",
        f"error[TP106] {first.message}\n"
        " --> requirements.txt:1:30, same line: `torchvision==0.20.0`\n"
        "  = because: it says so [measured]",
        f"error[TP106] {first.message}\n"
        " --> requirements.txt:2:1\n"
        "  |\n"
        "2 | torch==2.14.0+cu124\n"
        "  | ^^^^^\n",
    ]


@pytest.mark.parametrize(
    "second",
    [
        {"related": (Related("requirements.txt", 4, "the index"),)},  # it has a label of its own
        {"span": Span(0, 40)},  # more lines
        {"span": Span(5, 5)},  # an insertion point
        {"document": document("torch==2.14.0+cu124\nother\n")},  # another text
        {"document": document(LINES, "other.txt"), "path": "other.txt"},
        {"span": Span(14, 15)},  # a 1, of which the line has several
    ],
)
def test_what_the_frame_above_does_not_show_is_drawn(second: dict[str, Any]) -> None:
    report = text.render(view(bare(), bare(**second)), PLAIN, closing=False)
    assert report.count("1 | torch==2.14.0+cu124") == 2


def test_a_label_that_was_drawn_is_not_drawn_again() -> None:
    related = (Related("requirements.txt", 4, "the index"),)
    report = text.render(view(bare(related=related), bare(related=related)), PLAIN, closing=False)
    assert (report.count("the index"), report.count("as above")) == (1, 1)


@pytest.mark.parametrize("columns", [60, 80, 120, 400])
def test_the_place_on_a_line_fits_and_hides_what_the_frame_hides(columns: int) -> None:
    url = "https://user:s3cret@host.example/whl/cu124"
    doc = document(f"torch --extra-index-url {url} torchvision\n")
    start = doc.text.index("s3cret")
    first = bare(document=doc, span=Span(0, 5))
    cut_ = bare(document=doc, span=Span(start, start + 12))
    report = text.render(view(first, cut_), Style(color=False, columns=columns), closing=False)
    assert "s3cret" not in report and report.count("1 | ") == 1
    assert all(width(line) <= columns for line in report.splitlines())
    assert "same line: `" in " ".join(report.split())


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("size", range(45, 65))
def test_a_piece_that_would_not_fit_is_drawn(columns: int, size: int) -> None:
    doc = document(f"torch {'v' * size}\n")
    found = view(bare(document=doc, span=Span(0, 5)), bare(document=doc, span=Span(6, 6 + size)))
    report = text.render(found, Style(color=False, columns=columns), closing=False)
    assert max(map(width, report.splitlines())) <= columns
    assert report.count("same line:") + report.count("1 | ") == 2
