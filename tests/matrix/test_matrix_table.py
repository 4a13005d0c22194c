"""The table of ``torchpin matrix``: what is in it, and that it can be read."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import jsonschema
import pytest

from torchpin.catalog.store import shipped_catalog
from torchpin.cli.main import guarded
from torchpin.evidence import INFERRED, PROOF
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import NodeGroup, Python, Target
from torchpin.judge.model import BADNESS, FAILS, PARTLY, RUNS, UNKNOWN
from torchpin.judge.verdict import judge
from torchpin.matrix.judged import judged, offered, releases
from torchpin.matrix.model import Cell, Judged, Row
from torchpin.matrix.rows import families, family_rows
from torchpin.matrix.table import matrix
from torchpin.report import matrix as report
from torchpin.report.style import PLAIN, Style

SCHEMAS = Path(report.__file__).parent / "schemas"
BARE = NodeGroup("", (), (), "linux-x86_64")


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = guarded(["matrix", "--isolated", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


def cells_of(text: str, title: str) -> list[str]:
    """Return the first line of a row, as words."""
    line = next(line for line in text.splitlines() if line.startswith(title))
    return line.removeprefix(title).split()


def test_a_volta_ends_where_its_kernels_end(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--gpu", "V100", "--since", "2.13")
    assert code == 0
    assert out.splitlines()[0].split() == ["torch", "2.15.0", "2.14.1", "2.13.0"]
    assert cells_of(out, "Tesla V100 sm_70") == ["-", "+cu126", "+cu126"]


def test_a_driver_ends_what_it_cannot_run(capsys: pytest.CaptureFixture[str]) -> None:
    _, free, _ = run(capsys, "--gpu", "RTX 4090", "--since", "2.15")
    _, old, _ = run(capsys, "--gpu", "RTX 4090", "--since", "2.15", "--driver", "550.54.15")
    assert "+cu132*" in free and "+cu132*" not in old
    assert cells_of(old, "GeForce RTX 4090 sm_89") == ["?"]  # nothing proves that cu129 ended
    _, ended, _ = run(capsys, "--gpu", "T4", "--since", "2.15", "--driver", "450.80.02")
    assert cells_of(ended, "T4 sm_75") == ["-"]


def test_a_python_without_a_wheel_ends_a_release(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--gpu", "A100", "--python", "3.9", "--since", "2.8")
    cells = cells_of(out, "A100 sm_80")
    assert cells[0] == "-" and cells[-1] == "+cu128*"


def test_verdicts_are_the_judges_and_the_worst_python_counts() -> None:
    catalog = shipped_catalog()
    gpu = find_gpu("Tesla V100")
    pythons = (Python(3, 9), Python(3, 13))
    group = BARE._replace(gpus=gpu, pythons=pythons, driver="550.54.15", glibc="2.31")
    seen = set()
    for build in offered(catalog.builds("torch")):
        if build.evidence not in PROOF:
            continue
        each = [judge(build, Target(group, python)).status for python in pythons]
        worst = max(
            each, key=lambda word: (RUNS, "runs-via-ptx", UNKNOWN, PARTLY, FAILS).index(word)
        )
        assert judged(build, group).status == worst, build.title
        seen.add(worst)
    assert {RUNS, UNKNOWN, FAILS} <= seen


def test_a_build_that_may_not_be_there_is_never_said_to_run() -> None:
    catalog = shipped_catalog()
    group = BARE._replace(gpus=find_gpu("A100"))
    doubted = [b for b in offered(catalog.builds("torch")) if b.evidence not in PROOF]
    assert doubted
    for build in doubted:
        found = judged(build, group._replace(platform=build.platform))
        assert found.status in (UNKNOWN, FAILS)
        assert any(one.question == "exists" and one.evidence == INFERRED for one in found.reasons)


def test_the_families_are_those_of_the_table_and_join_where_nothing_differs() -> None:
    catalog = shipped_catalog()
    names = [gpu.arch for gpu in families()]
    assert names == list(dict.fromkeys(names))
    assert {"sm_50", "sm_70", "sm_90", "sm_121", "gfx90a", "gfx942", "gfx1201"} <= set(names)
    rows = family_rows(BARE, every=False, platform=None)
    versions = releases("torch", catalog, since="2.10")
    found = matrix(rows, versions, catalog, joined=True)
    titles = [title for line in found.lines for title in line.row.titles]
    assert titles == [row.titles[0] for row in rows]
    assert len(found.lines) < len(rows) / 1.5
    volta = next(line for line in found.lines if "sm_70 Volta" in line.row.titles)
    assert volta.row.titles == ("sm_70 Volta",)
    assert not any("Jetson" in title or title.startswith("sm_3") for title in titles)
    everything = [row.titles[0] for row in family_rows(BARE, every=True, platform=None)]
    assert "sm_87 Jetson" in everything and "sm_35 Kepler" in everything


def test_of_each_minor_the_newest_patch_is_shown_unless_all_are_asked_for() -> None:
    catalog = shipped_catalog()
    assert releases("torch", catalog, since="2.12") == ("2.12.1", "2.13.0", "2.14.1", "2.15.0")
    assert releases("torch", catalog, since="2.12", every=True)[:2] == ("2.12.0", "2.12.1")


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 400])
@pytest.mark.parametrize("package", ["torch", "torchvision"])
def test_it_fits_the_terminal(columns: int, package: str) -> None:
    catalog = shipped_catalog()
    versions = releases(package, catalog)
    rows = family_rows(BARE, every=True, platform=None)
    text = report.text(
        matrix(rows, versions, catalog, package=package, joined=True), PLAIN, columns
    )
    assert all(len(line) <= max(columns, 50) for line in text.splitlines())
    heads = [line.split()[1:] for line in text.splitlines() if line.split()[:1] == [package]]
    assert [version for head in heads for version in head] == list(versions[::-1])
    assert (len(heads) > 1) == (columns < 400)


def test_verdicts_differ_by_a_sign_and_not_by_colour_alone() -> None:
    assert len(set(report.SIGNS.values()) | {report.NOTHING}) == len(report.SIGNS) + 1
    catalog = shipped_catalog()
    rows = family_rows(BARE, every=True, platform=None)
    found = matrix(rows, releases("torch", catalog, every=True), catalog, joined=True)
    plain = report.text(found, PLAIN)
    painted = report.text(found, Style(color=True))
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain
    build = catalog.find("torch", version="2.14.1", channel="cu126", platform="linux-x86_64")[0]
    told = {
        word
        for status in BADNESS
        for word, _ in report.words(Cell("2.14.1", (Judged(build, status, ()),)))
    }
    assert told == {"+cu126", "~cu126", "!cu126", "?cu126", "-"}
    assert report.words(Cell("2.14.1", ())) == [(".", "")]


def test_a_channel_that_pypi_serves_too_is_named_once_where_both_do_the_same() -> None:
    catalog = shipped_catalog()
    pypi, channel = (
        catalog.find(
            "torch", version="2.14.1", channel="cu130", platform="linux-x86_64", home=home
        )[0]
        for home in ("pypi", "channel")
    )
    same = Cell("2.14.1", (Judged(pypi, RUNS, ()), Judged(channel, RUNS, ())))
    assert report.words(same) == [("+cu130*", RUNS)]
    other = Cell("2.14.1", (Judged(pypi, PARTLY, ()), Judged(channel, RUNS, ())))
    assert report.words(other) == [("+cu130", RUNS), ("!cu130*", PARTLY)]


def test_the_legend_explains_every_sign_and_the_catalog_has_a_date(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = run(capsys)
    legend = out.partition("\n+ runs")[2]
    for sign in ("~", "!", "?", "-", ".", "*"):
        assert f"{sign} " in legend
    assert out.endswith(f"Catalog of {shipped_catalog().date}.\n")
    assert "\x1b" not in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_colours_are_asked_for_and_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in run(capsys, "--gpu", "V100")[1]
    assert "\x1b[" not in run(capsys, "--gpu", "V100", "--no-color")[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run(capsys, "--gpu", "V100")[1]


def test_json_keeps_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads((SCHEMAS / "matrix.v1.json").read_text("utf-8"))
    for argv in (
        ("--gpu", "V100", "--driver", "550", "--python", "3.11"),
        ("--all", "--since", "2.14", "--glibc", "2.17"),
        ("--package", "torchvision", "--platform", "windows-x86_64"),
        ("--gpu", "none"),
    ):
        code, out, _ = run(capsys, "--output-format", "json", *argv)
        found = json.loads(out)
        jsonschema.validate(found, schema)
        assert code == 0
        for row in found["rows"]:
            assert [cell["release"] for cell in row["cells"]] == found["releases"]
            for cell in row["cells"]:
                for build in cell["builds"]:
                    assert (build["verdict"] == RUNS) == (not build["because"])


def test_every_failure_in_json_rests_on_proof(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--all", "--output-format", "json", "--since", "2.4")
    grounds = [
        ground["evidence"]
        for row in json.loads(out)["rows"]
        for cell in row["cells"]
        for build in cell["builds"]
        if build["verdict"] == FAILS
        for ground in build["because"]
    ]
    assert len(grounds) > 1000 and set(grounds) <= PROOF


def test_csv_has_a_line_a_build_and_markdown_a_row_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = run(capsys, "--gpu", "V100", "--since", "2.14", "--output-format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    last = [row for row in rows if row["version"] == "2.15.0" and row["index"] == "pypi"]
    assert [row["verdict"] for row in last] == [FAILS]
    assert "no PTX that it could compile [measured]" in last[0]["because"]
    _, out, _ = run(capsys, "--gpu", "V100", "--since", "2.14", "--output-format", "markdown")
    lines = out.splitlines()
    assert lines[0] == "| torch | 2.15.0 | 2.14.1 |"
    assert lines[2] == "| Tesla V100 sm&#95;70 | - | `+cu126` |"


PROFILE = """\
[fleet.old]
gpus = ["Tesla V100", "A100-SXM4-80GB"]
driver = "550.54.15"
python = "3.11"

[fleet.ci]
gpus = []
"""


def test_a_fleet_gives_a_row_a_group(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torchpin.toml").write_text(PROFILE)
    monkeypatch.chdir(tmp_path)
    assert guarded(["matrix", "--since", "2.14"]) == 0
    out = capsys.readouterr().out
    assert cells_of(out, "old") == ["-", "+cu126"]
    assert "\n  Tesla V100" in out and "\n  A100" in out and "\nci" in out
    assert guarded(["matrix", "--gpu", "B200", "--since", "2.14"]) == 0
    assert "old" not in capsys.readouterr().out
    assert guarded(["matrix", "--platform", "windows-x86_64", "--since", "2.14"]) == 0
    assert "sm_70 Volta" in capsys.readouterr().out


def test_machines_without_a_gpu_are_told_of_builds_for_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = run(capsys, "--gpu", "none", "--since", "2.14")
    table = out.partition("\n+ runs")[0]
    assert "+cpu" in table and "+cu130*" in table  # PyPI's own is one for CUDA
    assert "rocm" not in table and "cu126" not in table
    _, out, _ = run(capsys, "--platform", "macos-arm64", "--since", "2.14")
    assert cells_of(out, "macos-arm64") == ["+cpu*", "+cpu*"]
    _, out, _ = run(capsys, "--gpu", "none", "--since", "2.14", "--output-format", "csv")
    assert "cu126,channel,runs" in out


def test_titles_are_text_in_every_format() -> None:
    catalog = shipped_catalog()
    row = Row(("=a|b<i>\x1b[1m",), BARE._replace(gpus=find_gpu("A100")))
    found = matrix((row,), ("2.14.1",), catalog)
    assert "\x1b" not in report.text(found, PLAIN)
    assert "| =a&#124;b&#60;i&#62;" in report.markdown(found)
    assert all(line.startswith("'=a|b<i>") for line in report.csv(found).splitlines()[1:])


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--package", "torchvison"), "did you mean `torchvision`?"),
        (("--since", "new"), "write it like 2.4"),
        (("--since", "9.0"), "no release of torch since 9.0"),
        (("--gpu", "V1000"), "nearest names"),
        (("--html", "--package", "torchvision"), "does not go with --html"),
        (("--html", "--output-format", "json"), "does not go with --html"),
        (("--html", "--driver", "550"), "needs --gpu"),
        (("--htm",), "did you mean `--html`?"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    argv: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert said in err


def test_the_table_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "matrix.txt"
    code, out, _ = run(capsys, "--gpu", "V100", "-o", str(path))
    assert (code, out) == (0, "")
    assert path.read_text("utf-8") == run(capsys, "--gpu", "V100")[1]
