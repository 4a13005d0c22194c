"""How two catalogs differ, and how that is told."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.catalog.small_catalog import NAME, catalog, state, torch_build, write

import torchpin.report
from torchpin.catalog.diff import Diff, Entry, compare
from torchpin.catalog.model import Kernels
from torchpin.catalog.records import read_state, render, write_folder
from torchpin.catalog.store import FOLDER, Catalog
from torchpin.cli.main import guarded
from torchpin.report import catalog_diff as report
from torchpin.report.style import Style

PLAIN = Style(color=False)
OTHER = torch_build(version="2.14.1", channel="cu130", cuda="13.0")


def kernels(*sass: str, evidence: str = "measured") -> Kernels:
    return Kernels(sass, (), (), evidence, "somewhere")


def entries(tmp_path: Path, old: Any, new: Any, /, **hashes: Any) -> tuple[Entry, ...]:
    left = catalog(tmp_path / "old", *old, hashes=hashes.get("old", ()))
    right = catalog(tmp_path / "new", *new, hashes=hashes.get("new", ()))
    return compare(left, right).entries


def brief(found: tuple[Entry, ...]) -> list[tuple[str, str, str, bool]]:
    return [(e.kind, e.subject, e.name + (f": {e.fact}" if e.fact else ""), e.grave) for e in found]


def test_equal_catalogs_do_not_differ(tmp_path: Path) -> None:
    assert entries(tmp_path, [torch_build()], [torch_build()]) == ()


def test_the_day_of_a_source_is_no_difference(tmp_path: Path) -> None:
    later = torch_build(source="PyPI file list of 2027-01-01")
    assert entries(tmp_path, [torch_build()], [later]) == ()


def test_builds_that_come_and_go(tmp_path: Path) -> None:
    found = entries(tmp_path, [OTHER, torch_build()], [torch_build()])
    assert brief(found) == [
        ("removed", "build", "2.14.1 pypi linux-x86_64", True),
        ("removed", "version", "2.14.1", True),
    ]
    assert found[0].before == "cu130 · cp312 · sm_80 sm_90 [measured] · [measured]"
    added = entries(tmp_path / "2", [torch_build()], [OTHER, torch_build()])
    assert [(e.kind, e.grave) for e in added] == [("added", False)] * 2


def test_a_new_newest_release(tmp_path: Path) -> None:
    found = entries(tmp_path, [OTHER], [OTHER, torch_build()])
    (newest,) = [e for e in found if e.subject == "newest"]
    assert (newest.before, newest.after, newest.grave) == ("2.14.1", "2.15.0", False)
    (older,) = [
        e for e in entries(tmp_path / "2", [OTHER, torch_build()], [OTHER]) if e.subject == "newest"
    ]
    assert older.grave


@pytest.mark.parametrize(
    ("change", "fact", "before", "after", "grave"),
    [
        ({"evidence": "inferred"}, "evidence", "measured", "inferred", True),
        ({"kernels": None}, "kernels", "sm_80 sm_90 [measured]", "", True),
        (
            {"kernels": kernels("80", evidence="published")},
            "kernels",
            "sm_80 sm_90 [measured]",
            "sm_80 [published]",
            True,
        ),
        (
            {"libraries": ()},
            "kernels of libtorch_cuda_linalg.so",
            "sm_80 sm_90 [measured]",
            "",
            True,
        ),
        ({"channel": "cu130"}, "channel", "cu132", "cu130", True),
        ({"pythons": ("cp312", "cp313")}, "pythons", "cp312", "cp312 cp313", False),
        ({"pythons": ("cp313",)}, "pythons", "cp312", "cp313", True),
        ({"cuda": None}, "cuda", "13.2", "", True),
        ({"glibc": "2.34"}, "glibc", "2.28", "2.34", True),
        ({"requires_python": ">=3.10"}, "requires python", ">=3.11", ">=3.10", True),
        ({"requires_torch": ""}, "requires torch", "", "no torch", False),
        ({"yanked": True}, "yanked", "no", "yes", False),
        ({"released": "2026-10-29"}, "released", "2026-10-28", "2026-10-29", True),
    ],
)
def test_a_changed_fact(
    tmp_path: Path, change: Any, fact: str, before: str, after: str, grave: bool
) -> None:
    (found,) = entries(tmp_path, [torch_build()], [torch_build(**change)])
    assert (found.kind, found.subject, found.name) == (
        "changed",
        "build",
        "2.15.0 pypi linux-x86_64",
    )
    assert (found.fact, found.before, found.after, found.grave) == (fact, before, after, grave)


def test_stronger_evidence_is_not_grave(tmp_path: Path) -> None:
    (found,) = entries(tmp_path, [torch_build(evidence="published")], [torch_build()])
    assert (found.before, found.after, found.grave) == ("published", "measured", False)


def row(digest: str) -> list[str]:
    return ["2.15.0", "linux-x86_64", "pypi", NAME, digest * 64]


def test_digests(tmp_path: Path) -> None:
    build = [torch_build()]
    (found,) = entries(tmp_path / "1", build, build, old=[row("a")], new=[row("b")])
    assert (found.subject, found.fact, found.grave) == ("digest", "sha256", True)
    assert (found.before, found.after) == ("a" * 64, "b" * 64)
    (found,) = entries(tmp_path / "2", build, build, old=[], new=[row("b")])
    assert (found.kind, found.grave) == ("added", False)
    (found,) = entries(tmp_path / "3", build, build, old=[row("a")], new=[])
    assert (found.kind, found.grave) == ("removed", True)


def test_channels_absences_pins_partners_and_health(tmp_path: Path) -> None:
    old = read_state(FOLDER)
    torch = old.parts["torch"]
    spans = [[*s[:2], "2.14.0", *s[3:]] if s[0] == "cu126" else s for s in torch.spans]
    rows = [[*torch.rows[0][:3], None, *torch.rows[0][4:]], *torch.rows[1:-1]]
    new = old._replace(
        parts=old.parts | {"torch": torch._replace(spans=spans, rows=rows)},
        pins=old.pins[1:],
        partners=old.partners | {"2.0.0": old.partners["2.0.0"] | {"torchaudio": []}},
        health=old.health | {"stale": old.health["stale"][1:]},
    )
    write_folder(str(tmp_path), render(new))
    found = compare(Catalog(FOLDER), Catalog(str(tmp_path))).entries
    assert {(e.kind, e.subject, e.package, e.grave) for e in found} == {
        ("changed", "channel", "torch", True),
        ("changed", "absence", "torch", False),
        ("removed", "absence", "torch", False),
        ("removed", "pin", old.pins[0][0], False),
        ("removed", "partner", "torchaudio", True),
        ("removed", "health", "", False),
    }


def test_drivers(tmp_path: Path) -> None:
    folder = tmp_path / "catalog"
    shutil.copytree(FOLDER, folder)
    path = folder / "drivers.json"
    records = json.loads(path.read_text(encoding="utf-8"))
    lost = next(r for r in records if r["kind"] == "branch")
    moved = next(r for r in records if r["kind"] == "floor")
    records.remove(lost)
    moved["driver"] = "999.1"
    path.write_text(json.dumps(records), encoding="utf-8")
    found = compare(Catalog(FOLDER), Catalog(str(folder))).entries
    assert [(e.kind, e.name.partition(" ")[0], e.grave) for e in found] == [
        ("removed", "branch", True),
        ("changed", "floor", False),
    ]
    path.unlink()  # a catalog of one's own has none
    assert compare(Catalog(FOLDER), Catalog(str(folder))).entries == ()


def big(tmp_path: Path) -> Diff:
    """Return what differs if half of torch and of torchvision goes."""
    old = read_state(FOLDER)
    parts = {
        name: part._replace(builds=part.builds[::2]) if name.startswith("torch") else part
        for name, part in old.parts.items()
    }
    write_folder(str(tmp_path), render(old._replace(parts=parts)))
    return compare(Catalog(str(tmp_path)), Catalog(FOLDER))


def test_the_same_input_gives_the_same_report(tmp_path: Path) -> None:
    first = big(tmp_path / "a")
    second = big(tmp_path / "b")
    assert first.entries == second.entries
    assert report.markdown(first) == report.markdown(second)


def test_text_fits_80_columns_but_for_names(tmp_path: Path) -> None:
    lines = report.text(big(tmp_path), PLAIN).splitlines()
    assert max(len(line) for line in lines if "sha256" not in line and ".whl" not in line) <= 80
    assert any(line.startswith("  + ") for line in lines)


def test_markdown_fits_a_pull_request(tmp_path: Path) -> None:
    body = report.markdown(big(tmp_path))
    assert len(body) <= 65_536
    assert body.count("<details>") == body.count("</details>")
    assert "lines more" in body
    assert body.startswith("## Catalog of ")
    assert "| torch | build |" in body


def test_markdown_names_what_is_grave_first(tmp_path: Path) -> None:
    left = catalog(tmp_path / "old", OTHER, torch_build())
    right = catalog(tmp_path / "new", torch_build())
    body = report.markdown(compare(left, right))
    grave = body.index("### To look at: 2")
    assert grave < body.index("build torch 2.14.1 pypi linux-x86_64: removed") < body.index("<det")


def test_no_markup_from_data(tmp_path: Path) -> None:
    evil = torch_build(requires_torch="==1`<img src=x>")
    left = catalog(tmp_path / "old", torch_build(requires_torch=""))
    right = catalog(tmp_path / "new", evil)
    body = report.markdown(compare(left, right))
    lines = [line for line in body.splitlines() if "<img" in line]
    assert lines
    assert all(line.count("`") == 2 and line.index("`") < line.index("<img") for line in lines)


def run(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, str, str]:
    code = guarded(["catalog", "diff", *map(str, argv)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_json_has_the_shape_of_its_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write(tmp_path / "old", state(OTHER, torch_build()))
    new = write(tmp_path / "new", state(torch_build(yanked=True)))
    code, said, _ = run(capsys, old, new, "--output-format", "json")
    value = json.loads(said)
    schema = Path(torchpin.report.__file__).parent / "schemas" / "catalog-diff.v1.json"
    jsonschema.validate(value, json.loads(schema.read_text("utf-8")))
    assert code == 1
    assert value["summary"] == {"added": 0, "removed": 2, "changed": 1}
    assert value["old"]["name"] == "old"


def test_equal_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, said, _ = run(capsys, "shipped", FOLDER)
    assert code == 0
    assert "Nothing differs." in said
    code, said, _ = run(capsys, "shipped", FOLDER, "--markdown")
    assert code == 0
    assert "Nothing differs." in said


def test_a_wheel_of_torchpin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = write(tmp_path / "old", state(torch_build()))
    wheel = tmp_path / "torchpin-0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted(old.glob("*.json")):
            archive.write(path, f"torchpin/catalog/data/{path.name}")
        archive.writestr("torchpin/catalog/data/../../evil.json", "{}")
    assert run(capsys, wheel, old)[0] == 0
    new = write(tmp_path / "new", state(torch_build(), OTHER))
    code, said, _ = run(capsys, wheel, new)
    assert (code, "2.14.1" in said) == (1, True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "no such folder or wheel"),
        ("empty", "no catalog lies in"),
        ("user", "no catalog of your own"),
        ("text.whl", "cannot be read as a wheel"),
        ("other.whl", "is no wheel of torchpin"),
    ],
)
def test_what_is_no_catalog(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    words: str,
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.whl").write_text("text")
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("other/__init__.py", "")
    monkeypatch.chdir(tmp_path)
    code, _, said = run(capsys, name, "shipped")
    assert code == 2
    assert words in said
