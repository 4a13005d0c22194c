"""An edit that does more, or less, than was meant is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchpin.documents.base import Document, Edit, Span, apply_edits
from torchpin.documents.requirements import read_requirements
from torchpin.errors import RewriteError
from torchpin.rewrite import second
from torchpin.rewrite.verify import check_requirements_edit

CU124 = "https://download.pytorch.org/whl/cu124"
CU126 = "https://download.pytorch.org/whl/cu126"
H = "--hash=sha256:" + "a" * 64
TEXT = (
    "--extra-index-url https://download.pytorch.org/whl/cu124  # gpu\r\n"
    "torch == 2.14.0+cu124 ; sys_platform == 'linux'  # keep\r\n"
    "torchvision[x]==0.19.0+cu124\r\n"
    f"numpy==2.1 -C a=b \\\r\n    {H}\r\n"
    "foo==${V}\r\n"
    "-r other.txt\r\n"
    "broken=1\r\n"
    f"bar==1 --index-url {CU126}\r\n"
)


def document(text: str = TEXT) -> Document:
    return read_requirements("requirements.txt", text.encode())


def at(part: str, text: str = TEXT) -> Span:
    start = text.index(part)
    return Span(start, start + len(part))


def before_offset(offset: int) -> Span:
    return Span(offset, offset)


def check(*edits: Edit, before: Document | None = None) -> Document:
    known = before or document()
    return check_requirements_edit(known, apply_edits(known.text, edits), edits)


GOOD = {
    "specifier": (Edit(at("== 2.14.0+cu124"), "==2.14.0+cu126"),),
    "specifier before an extra": (Edit(at("==0.19.0+cu124"), "==0.29.0+cu126"),),
    "url": (Edit(at(CU124), CU126),),
    "a token of the url": (Edit(Span(at("/whl/cu124").end - 5, at("/whl/cu124").end), "cu126"),),
    "beside config settings": (Edit(at("==2.1"), "==2.2"),),
    "new line at the end": (Edit(Span(len(TEXT), len(TEXT)), "torchaudio==2.11.0\r\n"),),
    "new line at the start": (Edit(Span(0, 0), "--pre\r\n"),),
    "new line between": (Edit(before_offset(at("torch =").start), "-f https://a.example/x\r\n"),),
    "a hash goes": (Edit(at(f" -C a=b \\\r\n    {H}"), ""),),
    "a broken line is mended": (Edit(at("=1\r\n"), "==1\r\n"),),
    "a marker is added": (Edit(before_offset(at("==0.19.0+cu124").end), ' ; os_name == "nt"'),),
    "a misplaced index moves": (
        Edit(at(f" --index-url {CU126}"), ""),
        Edit(Span(0, 0), f"--index-url {CU126}\r\n"),
    ),
    "a line goes": (Edit(at("torchvision[x]==0.19.0+cu124\r\n"), ""),),
    "nothing": (),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_good_edits_pass(name: str) -> None:
    edits = GOOD[name]
    after = check(*edits)
    assert after.text == apply_edits(TEXT, edits)


def test_all_good_edits_of_values_at_once() -> None:
    after = check(*(GOOD["specifier"] + GOOD["url"] + GOOD["specifier before an extra"]))
    assert [d.specifier for d in after.declarations[:2]] == ["==2.14.0+cu126", "==0.29.0+cu126"]


BAD = {
    "not a specifier": Edit(at("== 2.14.0+cu124"), "=2"),
    "label after >=": Edit(at("== 2.14.0+cu124"), ">=2.14+cu126"),
    "the name grows": Edit(before_offset(at("torch =").start + 5), "vision"),
    "the name is another": Edit(before_offset(at("torch =").start), "x"),
    "a comment swallows the marker": Edit(at("== 2.14.0+cu124"), "==2 #"),
    "the line breaks": Edit(at("== 2.14.0+cu124"), "==2\r\n"),
    "an odd line break": Edit(at("== 2.14.0+cu124"), "==2\x0c"),
    "a continuation swallows the next line": Edit(at("==0.19.0+cu124"), "==0.29.0 \\"),
    "an option hides in the url": Edit(at(CU124), "https://x --pre"),
    "a quote opens": Edit(at(CU124), "'https://x"),
    "an extra goes with the edit": Edit(at("[x]==0.19.0+cu124"), "==0.29.0 ; x"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_edits_are_refused(name: str) -> None:
    with pytest.raises(RewriteError, match="fix was not applied") as caught:
        check(BAD[name])
    assert caught.value.path == "requirements.txt"


def test_text_that_is_not_the_edits() -> None:
    before = document()
    with pytest.raises(RewriteError, match="not what the edits give"):
        check_requirements_edit(before, before.text + "x", ())
    with pytest.raises(RewriteError, match="overlaps"):
        check_requirements_edit(before, "", (Edit(Span(0, 5), "a"), Edit(Span(3, 6), "b")))


def test_encoding() -> None:
    latin = read_requirements("x", b"# coding: latin-1\ntorch==2.1 # \xe9\n")
    end = len(latin.text)
    with pytest.raises(RewriteError, match="encoding"):
        check(Edit(Span(end, end), "# →\n"), before=latin)
    with pytest.raises(RewriteError, match="encoding"):
        check(Edit(Span(2, 8), "goding"), before=latin)
    utf16 = read_requirements("x", b"\xff\xfe" + "torch==2.1\n".encode("utf-16-le"))
    assert check(Edit(Span(5, 10), "==2.2"), before=utf16).declarations[0].specifier == "==2.2"


def test_a_locale_file_can_be_edited() -> None:
    before = read_requirements("x", b"torch==2.1 # \xe9\n", fallback="cp1252")
    after = check(Edit(Span(5, 10), "==2.2"), before=before)
    assert after.encode(after.text) == b"torch==2.2 # \xe9\n"


def test_the_second_opinion_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """If our reader were wrong about an edit, the other one would stop it."""
    real = second.facts_of_own

    def blind(document: Document) -> object:
        facts = real(document)
        facts[("requirement", "ghost")] += document.text.count("2.14.0+cu126")
        return facts

    monkeypatch.setattr(second, "facts_of_own", blind)
    with pytest.raises(RewriteError, match="second reading"):
        check(*GOOD["specifier"])


LINES = [
    "torch==2.1", "torch >= 2 , < 3 ; os_name == 'nt' # x", "foo --index-url https://a.example",
    f"torch==2.1 --pre {H} -i https://a.example", f"torch==2.1 {H}", f"torch==2.1 \\\n  {H}",
    "torchvision[a,b]==0.1", "torch (==2.1)", "-r x.txt", "-i https://a.example/simple", "# c", "",
    "--extra-index-url 'https://b.example'", "-e git+https://g.example/a#egg=b", "--pre",
    "https://files.example/torch-2.9.1-cp311-cp311-linux_x86_64.whl", "foo==1 -C a=b",
    "bar @ https://files.example/bar.zip",
    "torch===2.1", "broken=", "--no-index", "-f https://c.example/x.html", "foo==${X}", "-c c.txt",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n"]),
    st.data(),
)
@settings(max_examples=120, deadline=None)
def test_every_honest_edit_passes(lines: list[str], newline: str, data: st.DataObject) -> None:
    """Whatever stands around it, moving a pin or an index URL is accepted by both readers."""
    text = newline.join(lines).replace("\n", newline).replace("\r\r", "\r") + newline
    before = document(text)
    edits = [
        Edit(d.specifier_span, "==2.14.0+cu126")
        for d in before.declarations
        if d.specifier_span is not None and d.valid and not d.from_variable
    ]
    edits += [Edit(line.url_span, CU126) for line in before.indexes if line.option != "--no-index"]
    chosen = data.draw(st.lists(st.sampled_from(edits), unique=True)) if edits else []
    after = check(*chosen, before=before)
    assert check(before=after).text == after.text
