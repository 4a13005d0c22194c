"""The data that ship are renewed from indexes alone; the floors refuse what cannot be right."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.catalog.index_server import Answer
from tests.catalog.refresh_world import World, make_world
from tools._common import DATA, FloorError
from tools.refresh_shipped import falls, with_line

from tools import refresh_shipped
from torchpin.catalog.diff import compare
from torchpin.catalog.records import read_state, render
from torchpin.catalog.schema import check_folder
from torchpin.catalog.store import Catalog

CHANGES = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n## [0.1]\n\n- Old.\n"


class Yard(NamedTuple):
    """A copy of the data that ship, a changelog, and indexes that hold just what the data know."""

    data: Path
    changelog: Path
    report: Path
    world: World

    def run(self, *options: str) -> int:
        return refresh_shipped.main(
            [
                *("--data", str(self.data), "--changelog", str(self.changelog)),
                *("--report", str(self.report), "--today", "2026-12-05"),
                *self.world.server.options,
                *options,
            ]
        )

    def bytes(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.data.glob("*.json")}

    def said(self) -> str:
        return self.world.capsys.readouterr().out

    def head(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.data / "catalog.json").read_text())
        return found


@pytest.fixture
def yard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Yard]:
    world, server = make_world(tmp_path, monkeypatch, capsys)
    data = tmp_path / "data"
    shutil.copytree(world.shipped.folder, data)
    for name in ("drivers.json", "internals.json"):
        if (DATA / name).exists():
            shutil.copyfile(DATA / name, data / name)
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(CHANGES)
    with server:
        yield Yard(data, changelog, tmp_path / "body.md", world)


def test_the_data_that_ship_are_as_the_scripts_write_them() -> None:
    """Whatever wrote them last, ``build_catalog`` or ``refresh_shipped``: no hand did."""
    files = render(read_state(str(DATA)))
    assert {name: (DATA / name).read_text(encoding="utf-8") for name in files} == files
    head = json.loads(files["catalog.json"])
    assert "base" not in head
    assert len(head["facts"]) == 5  # what was gathered once stays named
    assert check_folder(str(DATA)) == []


def test_a_release_is_taken_over(yard: Yard) -> None:
    before = Catalog(str(yard.data))
    facts = yard.head()["facts"]
    yard.world.release()
    assert yard.run() == 0
    after = Catalog(str(yard.data))
    assert after.newest("torch") == "2.16.0"
    assert "cu134" in after.channels()
    assert (after.date, after.base) == ("2026-12-05", "")
    head = yard.head()
    assert head["facts"] == facts
    assert head["previous"] == before.digest
    assert "files" not in head
    assert check_folder(str(yard.data)) == []
    files = render(read_state(str(yard.data)))
    assert {name: yard.bytes()[name].decode() for name in files} == files
    assert (yard.data / "drivers.json").read_bytes() == (DATA / "drivers.json").read_bytes()


def test_the_changelog_and_the_report_say_what_is_new(yard: Yard) -> None:
    yard.world.release()
    assert yard.run() == 0
    lines = yard.changelog.read_text().splitlines()
    at = lines.index("### Changed")
    assert lines[at + 2].startswith("- Catalog of 2026-12-05: torch 2.16.0, torchvision 0.30.0")
    assert "channel cu134" in " ".join(lines[at + 2 : at + 5])
    assert "builds more" in " ".join(lines[at + 2 : at + 5])
    assert lines.index("- A thing.") < at < lines.index("## [0.1]")
    body = yard.report.read_text()
    assert body.startswith("## Catalog of ")
    assert "torch 2.16.0" in body or "2.16.0 pypi linux-x86_64" in body
    assert "| torch | build |" in body


def test_the_same_indexes_give_the_same_bytes(yard: Yard, tmp_path: Path) -> None:
    yard.world.release()
    other = tmp_path / "other"
    shutil.copytree(yard.data, other)
    assert yard.run() == 0
    again = yard._replace(data=other, changelog=tmp_path / "other.md")
    again.changelog.write_text(CHANGES)
    assert again.run() == 0
    assert yard.bytes() == again.bytes()
    assert yard.changelog.read_text() == again.changelog.read_text()


def test_nothing_new_writes_nothing(yard: Yard) -> None:
    assert yard.run() == 0
    first, log = yard.bytes(), yard.changelog.read_text()
    yard.said()
    assert yard.run() == 0
    assert "nothing changed since the catalog of 2026-12-05" in yard.said()
    assert (yard.bytes(), yard.changelog.read_text()) == (first, log)
    assert "Nothing differs." in yard.report.read_text()


def test_what_goes_needs_permission(yard: Yard) -> None:
    assert yard.run() == 0
    before, log = yard.bytes(), yard.changelog.read_text()
    yard.world.server.drop("pypi", "torch-2.14.1-")
    with pytest.raises(FloorError, match="floors do not hold"):
        yard.run()
    said = yard.said()
    assert "falls below a floor: torch on pypi:" in said
    assert "build torch 2.14.1 pypi linux-x86_64: goes" in said
    assert (yard.bytes(), yard.changelog.read_text()) == (before, log)
    assert "To look at" in yard.report.read_text()
    assert yard.run("--allow-removal") == 0
    assert not Catalog(str(yard.data)).find("torch", version="2.14.1", home="pypi")


def broken(answer: Answer) -> None:
    answer.status(401)


def test_what_cannot_be_read_is_refused(yard: Yard) -> None:
    yard.world.release()
    before = yard.bytes()
    yard.world.server.behave["/whl/cu132/torch/"] = broken
    with pytest.raises(FloorError, match="could not be read"):
        yard.run()
    assert yard.bytes() == before
    assert "not read: cu132/torch" in yard.said()
    assert yard.run("--allow-failures") == 0
    assert "### Not read" in yard.report.read_text()
    assert Catalog(str(yard.data)).newest("torch") == "2.16.0"


def test_nobody_there(yard: Yard) -> None:
    before = yard.bytes()
    yard.world.server.behave |= dict.fromkeys(
        (
            *(f"/simple/{name}/" for name in yard.world.shipped.packages()),
            "/whl/",
            *(f"/whl/{c}/" for c in ("cpu", "cu126", "cu130", "cu132")),
        ),
        broken,
    )
    with pytest.raises(FloorError):
        yard.run()
    assert yard.bytes() == before


def test_damaged_data_are_not_built_upon(yard: Yard) -> None:
    path = yard.data / "pins.json"
    path.write_text(path.read_text().replace("vllm", "wllm"))
    with pytest.raises(FloorError, match="digest"):
        yard.run()
    path.unlink()
    with pytest.raises(FloorError, match="missing"):
        yard.run()


def test_driver_tables_stay_whole(yard: Yard) -> None:
    path = yard.data / "drivers.json"
    records = [r for r in json.loads(path.read_text()) if r["kind"] != "compat"]
    path.write_text(json.dumps(records))
    with pytest.raises(FloorError, match="records of kind compat"):
        yard.run()


def shrunk(tmp_path: Path, **changes: object) -> list[str]:
    """Return the floors that do not hold if the first measured torch build changes."""
    state = read_state(str(DATA))
    torch = state.parts["torch"]
    at = next(
        n
        for n, b in enumerate(torch.builds)
        if b.kernels and b.kernels.evidence == "measured" and b.libraries
    )
    old = torch.builds[at]
    new = old._replace(**changes)  # type: ignore[arg-type]
    builds = [*torch.builds[:at], new, *torch.builds[at + 1 :]]
    parts = state.parts | {"torch": torch._replace(builds=builds)}
    for name, text in render(state._replace(parts=parts)).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    left, right = Catalog(str(DATA)), Catalog(str(tmp_path))
    return refresh_shipped.floors(left, right, compare(left, right))


def test_measured_kernels_never_vanish(tmp_path: Path) -> None:
    (told,) = shrunk(tmp_path, kernels=None)
    assert "kernels: sm_" in told
    assert told.endswith("→ nothing")
    (told,) = shrunk(tmp_path, libraries=())
    assert "kernels of libtorch_cuda_linalg.so" in told


def test_evidence_never_becomes_weaker(tmp_path: Path) -> None:
    (told,) = shrunk(tmp_path, evidence="inferred")
    assert "measured → inferred" in told


def test_what_does_not_take_away_is_let_through(tmp_path: Path) -> None:
    assert shrunk(tmp_path, yanked=True) == []
    assert shrunk(tmp_path, requires_python=">=3.8") == []


def test_falls_looks_at_grave_differences_alone(yard: Yard) -> None:
    yard.world.release()
    assert yard.run() == 0
    found = compare(yard.world.shipped, Catalog(str(yard.data)))
    assert not [entry for entry in found.entries if falls(entry)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "## [Unreleased]\n\n### Changed\n\n- One.\n- Two.\n\n### Fixed\n\n- X.\n",
            "## [Unreleased]\n\n### Changed\n\n- One.\n- Two.\n- New.\n\n### Fixed\n\n- X.\n",
        ),
        (
            "## [Unreleased]\n\n## [0.1]\n\n### Changed\n\n- Old.\n",
            "## [Unreleased]\n\n### Changed\n\n- New.\n\n## [0.1]\n\n### Changed\n\n- Old.\n",
        ),
        ("## [Unreleased]\n", "## [Unreleased]\n\n### Changed\n\n- New.\n"),
    ],
)
def test_where_the_line_goes(before: str, after: str) -> None:
    assert with_line(before, "- New.") == after


def test_a_changelog_without_the_heading_is_refused() -> None:
    with pytest.raises(FloorError, match="no heading"):
        with_line("# Changelog\n", "- New.")
