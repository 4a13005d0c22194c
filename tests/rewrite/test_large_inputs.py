"""Long files and large fleets: what is alike is looked at once, what no edit touches not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.record_golden import torchpin  # noqa: E402

from torchpin.documents.base import Document, Edit, Span, apply_edits  # noqa: E402
from torchpin.documents.requirements import read_requirements  # noqa: E402
from torchpin.errors import RewriteError  # noqa: E402
from torchpin.fleet.alike import NAME, likeness  # noqa: E402
from torchpin.fleet.profile import load_profile  # noqa: E402
from torchpin.rewrite import second  # noqa: E402
from torchpin.rewrite.verify import check_requirements_edit  # noqa: E402
from torchpin.select import alike  # noqa: E402

FILLER = "".join(f"package-{number}==1.{number}  # pinned\n" for number in range(1000))
CONTINUED = "".join(f"package-{n}==1.{n} \\\n    --hash=sha256:{'a' * 64}\n" for n in range(1000))


def read_by_second(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of how many characters the second reader gets, filled as it runs."""
    sizes: list[int] = []
    real = second.facts_of

    def counting(document: Document) -> object:
        sizes.append(len(document.text))
        return real(document)

    monkeypatch.setattr(second, "facts_of", counting)
    return sizes


def edit_of(text: str, old: str, new: str) -> Edit:
    at = text.index(old)
    return Edit(Span(at, at + len(old)), new)


@pytest.mark.parametrize("filler", [FILLER, CONTINUED], ids=["pins", "hashes"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_second_reader_is_spared_what_no_edit_touches(
    filler: str, newline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = read_by_second(monkeypatch)
    text = f"# one\n# two\n{filler}torch==2.13.0\n{filler}torchvision==0.28.0\n{filler}"
    text = text.replace("\n", newline)
    document = read_requirements("requirements.txt", text.encode())
    edits = (
        edit_of(text, "==2.13.0", "==2.13.0+cu126"),
        edit_of(text, "==0.28.0", "==0.28.0+cu126"),
        Edit(Span(0, 0), f"--extra-index-url https://a.example/whl/cu126{newline}"),
    )
    after = check_requirements_edit(document, apply_edits(text, edits), edits)
    assert len(after.declarations) == len(document.declarations)
    assert len(sizes) == 2
    assert max(sizes) < 2_000


def test_a_continued_line_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only safe place is far away: the second reader sees the whole of the endless line."""
    sizes = read_by_second(monkeypatch)
    text = "a==1\nb==1\ntorch==2.13.0 \\\n" + "    \\\n" * 2000 + "    --hash=sha256:" + "a" * 64
    document = read_requirements("requirements.txt", (text + "\n" + FILLER).encode())
    edit = edit_of(document.text, "==2.13.0", "==2.14.0")
    check_requirements_edit(document, apply_edits(document.text, (edit,)), (edit,))
    assert min(sizes) > 2000 * 6


def test_an_edit_in_a_long_file_that_breaks_a_neighbour_is_refused() -> None:
    text = f"{FILLER}torch==2.13.0\n{FILLER}"
    document = read_requirements("requirements.txt", text.encode())
    edit = edit_of(text, "==2.13.0\n", "==2.14.0 \\\n")
    with pytest.raises(RewriteError):
        check_requirements_edit(document, apply_edits(text, (edit,)), (edit,))


def groups(count: int) -> str:
    kinds = ("Tesla V100", "B200")
    return "".join(
        f'[fleet.g{n}]\ngpus = ["{kinds[n % 2]}"]\ndriver = "580.82.07"\npython = "3.11"\n'
        for n in range(count)
    )


@pytest.mark.parametrize("name", ["requirements.txt", "pyproject.toml"])
def test_groups_that_are_alike_are_selected_for_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    real = getattr(alike, "select")  # noqa: B009

    def counting(install: object, target: object, facts: object) -> object:
        calls.append(str(target))
        return real(install, target, facts)

    monkeypatch.setattr(alike, "select", counting)
    texts = {
        "requirements.txt": "torch==2.13.0\n",
        "pyproject.toml": '[project]\nname = "a"\nversion = "0"\nrequires-python = ">=3.11"\n'
        'dependencies = ["torch>=2.11"]\n[tool.uv]\npackage = false\n',
    }
    (tmp_path / name).write_text(texts[name], "utf-8")
    counts, outputs = [], []
    for number in (2, 60):
        (tmp_path / "torchpin.toml").write_text(groups(number), "utf-8")
        calls.clear()
        done = torchpin("fix", "--diff", "--unsafe-fixes", str(tmp_path / name))
        assert done.returncode == 1, done.stderr
        counts.append(len(calls))
        outputs.append(done.stdout)
    assert counts[0] == counts[1]
    assert outputs[0] == outputs[1] != ""


def test_every_group_is_named_in_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_text(groups(4), "utf-8")
    (tmp_path / "requirements.txt").write_text("torch==2.13.0 ; sys_platform == 'win32'\n", "utf-8")
    shown = torchpin("show", str(tmp_path)).stdout
    for number in range(4):
        assert f"no declaration of torch applies to g{number}, Python 3.11" in shown
    assert NAME not in shown


def test_only_what_nobody_looks_at_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "torchpin.toml"
    path.write_text(groups(3).replace("580.82.07", "580.65.06", 1), "utf-8")
    one, other, third = load_profile(str(path)).targets()
    assert likeness(one) != likeness(third)  # another driver
    assert likeness(one) != likeness(other)  # another GPU
    path.write_text(groups(3), "utf-8")
    one, _, third = load_profile(str(path)).targets()
    assert likeness(one) == likeness(third)
