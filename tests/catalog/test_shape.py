"""Data of a wrong shape are refused, with file and place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.small_catalog import state, torch_build, write

from torchpin.catalog import shape
from torchpin.catalog.schema import check_file, check_files, check_folder, digest_of
from torchpin.catalog.store import FOLDER
from torchpin.errors import CatalogError


def read(name: str) -> Any:
    return json.loads((Path(FOLDER) / name).read_text(encoding="utf-8"))


def test_the_shipped_catalog_has_its_shape() -> None:
    assert check_folder(FOLDER) == []


def test_every_shipped_file_is_checked() -> None:
    for path in Path(FOLDER).glob("*.json"):
        assert check_file(path.name, []), path.name


def test_a_small_catalog_has_its_shape(tmp_path: Path) -> None:
    assert check_folder(str(write(tmp_path, state(torch_build())))) == []


BUILD = {
    "version": 0,
    "label": 1,
    "channel": 2,
    "home": 3,
    "platform": 4,
    "pythons": 5,
    "kernels": 7,
    "libraries": 8,
    "cuda": 9,
    "glibc": 10,
    "macos": 11,
    "requires_torch": 12,
    "requires_python": 13,
    "yanked": 14,
    "released": 15,
    "evidence": 16,
    "source": 17,
}


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("version", "two", "'two' is not a version"),
        ("version", 2.15, "2.15 is not a version"),
        ("channel", "cuda12", "not a channel"),
        ("home", "PyPI", "not one of 'pypi', 'channel'"),
        ("platform", "linux", "not one of"),
        ("pythons", ["cp312"], "not text"),
        ("pythons", "cp312 cp312", "twice"),
        ("pythons", "cp312  cp313", "not a Python tag"),
        ("pythons", "3.12", "not a Python tag"),
        ("kernels", 10_000, "not a number below"),
        ("kernels", -1, "not a number below"),
        ("kernels", True, "not a number below"),
        ("libraries", {}, "not a list"),
        ("libraries", [["x.so", None]], "not a number below"),
        ("cuda", 13.2, "not a CUDA version"),
        ("glibc", "2.28.1", "not a version of two numbers"),
        ("requires_torch", "=2", "not a version specifier"),
        ("requires_python", 3, "not a version specifier"),
        ("yanked", False, "not one of 0, 1"),
        ("released", "2026-13-01", "not a date"),
        ("evidence", "rumour", "not one of 'measured'"),
        ("source", "here", "not a number below"),
    ],
)
def test_a_wrong_column_is_named(column: str, value: object, words: str) -> None:
    data = read("builds-torch.json")
    data["builds"][17][BUILD[column]] = value
    problems = check_file("builds-torch.json", data)
    assert problems, column
    assert problems[0].place.startswith(f"builds[17].{column}")
    assert words in problems[0].message
    assert str(problems[0]).startswith(f"builds-torch.json: builds[17].{column}")


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        (lambda d: d["builds"][3].pop(), "builds[3]", "17 columns, 18 expected"),
        (lambda d: d["builds"].append({}), "builds[", "is not a list"),
        (lambda d: d.pop("sources"), "", "'sources' is missing"),
        (lambda d: d.update(package="torch2_"), "package", "not the canonical name"),
        (lambda d: d.update(package="torchvision"), "package", "is not 'torch'"),
        (lambda d: d["builds"].append(d["builds"][-1]), "builds[", "again"),
        (lambda d: d["builds"].reverse(), "builds[", "ascending"),
        (lambda d: d["pypi"].remove("2.15.0"), "builds[", "not in the list of PyPI"),
        (lambda d: d["kernels"][0].__setitem__(0, "sm_70"), "kernels[0].sass", "compute capab"),
        (lambda d: d["spans"][0].__setitem__(1, "99.0"), "spans[0]", "ends before"),
        (lambda d: d["rows"][0].__setitem__(3, True), "rows[0].exists", "False, None"),
        (lambda d: d["rows"][0].__setitem__(3, 0), "rows[0].exists", "False, None"),
        (lambda d: d["sources"].__setitem__(0, "a\nb"), "sources[0]", "line of text"),
    ],
)
def test_a_wrong_package_file(change: Any, place: str, words: str) -> None:
    data = read("builds-torch.json")
    change(data)
    problems = check_file("builds-torch.json", data)
    assert any(p.place.startswith(place) and words in p.message for p in problems), problems[:3]


@pytest.mark.parametrize(
    ("name", "change", "place"),
    [
        ("hashes-torch.json", lambda d: d["files"][5].__setitem__(4, "A" * 64), "files[5].sha256"),
        ("hashes-torch.json", lambda d: d["files"][5].__setitem__(3, "a/b.whl"), "files[5].file"),
        ("partners.json", lambda d: d["2.0.0"].update(torchvision=[["0.15"]]), "2.0.0.torchvision"),
        ("partners.json", lambda d: d.update(two={}), "'two'"),
        ("partners.json", lambda d: [d.pop(k) for k in list(d)[10:]], ""),
        ("pins.json", lambda d: d["pins"][0].__setitem__(2, "torch"), "pins[0].specifier"),
        ("health.json", lambda d: d["health"][0].__setitem__(7, ""), "health[0].source"),
        ("health.json", lambda d: d["stale"].append("Not Canonical"), "stale["),
        ("catalog.json", lambda d: d.update(date="yesterday"), "date"),
        ("catalog.json", lambda d: d.update(format=2), "format"),
        ("catalog.json", lambda d: d["builds"].update(torch="many"), "builds.torch"),
        ("drivers.json", lambda d: d[1].update(kind="rumour"), "[1].kind"),
        ("drivers.json", lambda d: d[1].update(evidence="rumour"), "[1].evidence"),
        ("drivers.json", lambda d: d[1].update(sources=[]), "[1].sources"),
        ("drivers.json", lambda d: [d.remove(r) for r in list(d) if r["kind"] == "compat"], ""),
    ],
)
def test_the_other_files(name: str, change: Any, place: str) -> None:
    data = read(name)
    change(data)
    problems = check_file(name, data)
    assert problems, name
    assert problems[0].file == name
    assert problems[0].place.startswith(place)


def shipped() -> dict[str, bytes]:
    folder = Path(FOLDER)
    return {path.name: path.read_bytes() for path in folder.glob("*.json")}


def changed(name: str, change: Any, *, digest: bool = True) -> list[shape.Problem]:
    files = shipped()
    data = json.loads(files[name])
    change(data)
    files[name] = json.dumps(data).encode()
    if digest:
        head = json.loads(files["catalog.json"])
        head["digest"] = digest_of(files)
        files["catalog.json"] = json.dumps(head).encode()
    return check_files(files)


def test_the_digest_must_be_that_of_the_files() -> None:
    def change(data: Any) -> None:
        data["pins"].pop()

    (problem,) = changed("pins.json", change, digest=False)
    assert (problem.file, problem.place) == ("catalog.json", "digest")
    assert changed("pins.json", change) == []


def test_counts_and_newest_must_be_those_of_the_files() -> None:
    problems = changed("catalog.json", lambda d: d["builds"].update(torch=3), digest=False)
    assert any("3 builds" in p.message for p in problems)
    problems = changed("catalog.json", lambda d: d["newest"].update(torch="9.9"), digest=False)
    assert any(p.place == "newest.torch" for p in problems)
    problems = changed("catalog.json", lambda d: d["builds"].pop("torch"), digest=False)
    assert any("does not name torch" in p.message for p in problems)


def test_a_digest_without_a_build_is_told() -> None:
    def change(data: Any) -> None:
        data["files"][0][0] = "0.0.1"

    problems = changed("hashes-torch.json", change)
    assert [p.file for p in problems] == ["hashes-torch.json"]
    assert "0.0.1" in problems[0].message


def test_missing_and_broken_files(tmp_path: Path) -> None:
    folder = tmp_path / "catalog"
    shutil.copytree(FOLDER, folder)
    (folder / "partners.json").unlink()
    (folder / "builds-torch.json").write_text("{")
    problems = check_folder(str(folder))
    assert {(p.file, p.message.partition(":")[0]) for p in problems} == {
        ("partners.json", "is missing"),
        ("builds-torch.json", "is not JSON"),
    }
    with pytest.raises(CatalogError):
        check_folder(str(tmp_path / "nowhere"))


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(shipped())), ANYTHING)
def test_any_json_ends_in_problems_not_in_a_crash(name: str, data: Any) -> None:
    assert check_file(name, data)


@given(
    st.sampled_from(["builds-torch.json", "drivers.json", "pins.json", "catalog.json"]),
    ANYTHING,
    st.data(),
)
def test_any_value_anywhere_ends_in_words(name: str, value: Any, data: Any) -> None:
    tree: Any = read(name) if name != "builds-torch.json" else small_torch()
    node: Any = {"": tree}
    key: Any = ""
    for _ in range(data.draw(st.integers(1, 3))):
        inner = node[key]
        if not isinstance(inner, (list, dict)) or not inner:
            break
        node = inner
        keys = list(range(len(node))) if isinstance(node, list) else list(node)
        key = data.draw(st.sampled_from(keys))
    node[key] = value
    for problem in check_file(name, tree):
        assert problem.file == name
        assert "\n" not in str(problem)


def small_torch() -> Any:
    data = read("builds-torch.json")
    data["builds"] = data["builds"][:3]
    data["rows"] = data["rows"][:2]
    return data
