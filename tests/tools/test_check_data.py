"""All data that ship have their shape; what has another is told with its place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tools._common import DATA
from tools.check_data import FLEET, check_fleet, main


def test_all_data_that_ship_have_their_shape(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == ""


def test_problems_are_printed_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "catalog"
    shutil.copytree(DATA, folder)
    records = json.loads((folder / "drivers.json").read_text())
    records[3]["evidence"] = "rumour"
    (folder / "drivers.json").write_text(json.dumps(records))
    assert main(["--catalog", str(folder)]) == 1
    assert "drivers.json: [3].evidence: 'rumour' is not one of" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("gpus", lambda d: d.update(as_of="today"), "gpus.json: as_of: 'today' is not a date"),
        ("gpus", lambda d: d["gpus"][90].update(capability="sm_80"), "gpus[90].capability"),
        ("gpus", lambda d: d["gpus"][0].update(vendor="AMD"), "gpus[0].vendor"),
        ("gpus", lambda d: d["gpus"][0].update(keys=[]), "gpus[0].keys: 0 entries"),
        ("gpus", lambda d: d["gpus"][0].update(source=[999]), "gpus[0].source[0]"),
        ("gpus", lambda d: d["gpus"][0].update(capability="8.0"), "NVIDIA alone"),
        ("gpus", lambda d: d["gpus"].append(d["gpus"][0]), "is gpus[0] again"),
        ("gpus", lambda d: d.update(gpus=d["gpus"][:99]), "99 entries, at least 400 expected"),
        ("gpus", lambda d: d.pop("sources"), "the key 'sources' is missing"),
        ("instances", lambda d: d["instances"][0].update(gpus=["T5"]), "no GPU is called 'T5'"),
        ("instances", lambda d: d["instances"][0].update(host="arm"), "instances[0].host"),
        ("architectures", lambda d: d["architectures"][0].pop("source"), "'source' is missing"),
        ("architectures", lambda d: d["jetpacks"][0].update(capabilities=[]), "jetpacks[0].cap"),
        ("architectures", lambda d: d["jetpacks"].clear(), "0 entries, at least 8"),
    ],
)
def test_a_wrong_fleet_table(tmp_path: Path, name: str, change: Any, words: str) -> None:
    folder = tmp_path / "fleet"
    shutil.copytree(FLEET, folder)
    path = folder / f"{name}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    assert any(words in str(problem) for problem in check_fleet(folder))


def test_a_fleet_table_that_is_missing_or_broken(tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    shutil.copytree(FLEET, folder)
    (folder / "gpus.json").unlink()
    (folder / "instances.json").write_text("[]")
    problems = {problem.file: problem.message for problem in check_fleet(folder)}
    assert "cannot be read" in problems["gpus.json"]
    assert "is not an object" in problems["instances.json"]
