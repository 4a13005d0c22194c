"""Finding a profile, reading its places, showing it, and the data files behind it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchpin.errors import ConfigError
from torchpin.fleet.checks import first_branch
from torchpin.fleet.describe import describe, describe_json
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.profile import find_profile, load_profile
from torchpin.fleet.profile_reader import GROUP_KEYS, TOP_KEYS

ROOT = Path(__file__).parents[2]
OURS = '[tool.torchpin]\npolicy = "newest"\n'
FACTS = Path(os.environ.get("TORCHPIN_FACTS") or ROOT.parent / "shared" / "facts")


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return str(path)


def test_nearest_profile_wins(tmp_path: Path) -> None:
    outer = write(tmp_path / "torchpin.toml", "")
    inner = write(tmp_path / "a" / "pyproject.toml", OURS)
    write(tmp_path / "a" / "b" / "pyproject.toml", "[project]\nname = 'x'\n")
    file = write(tmp_path / "a" / "b" / "requirements.txt", "torch\n")
    assert find_profile(str(tmp_path / "a" / "b")) == inner
    assert find_profile(file) == inner
    assert find_profile(str(tmp_path)) == outer


def test_own_file_beats_pyproject(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", OURS)
    own = write(tmp_path / "torchpin.toml", "")
    assert find_profile(str(tmp_path)) == own


def test_search_ends_at_the_repository(tmp_path: Path) -> None:
    write(tmp_path / "torchpin.toml", "")
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    assert find_profile(str(tmp_path / "repo" / "src")) is None
    own = write(tmp_path / "repo" / "torchpin.toml", "")
    assert find_profile(str(tmp_path / "repo" / "src")) == own


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("[tool]\ntorchpin = {}\n", True),
        ("tool.torchpin.policy = 'newest'\n", True),
        ("[project]\ndependencies = ['torchpin']\n", False),
        ("[tool.torchpin]\nbroken\n", True),  # so that the error is seen
        ("broken torchpin\n", False),
    ],
)
def test_which_pyproject_counts(tmp_path: Path, text: str, counts: bool) -> None:
    (tmp_path / ".git").mkdir()
    path = write(tmp_path / "pyproject.toml", text)
    assert find_profile(str(tmp_path)) == (path if counts else None)


@pytest.mark.parametrize("name", ["torchpin.toml", "pyproject.toml"])
def test_unreadable_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_profile(str(tmp_path / name))
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_profile(str(tmp_path / name))


def test_binary_file(tmp_path: Path) -> None:
    (tmp_path / "torchpin.toml").write_bytes(b"\x00\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_profile(str(tmp_path / "torchpin.toml"))


@pytest.mark.parametrize("start", ["", "﻿"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_places(tmp_path: Path, start: str, newline: str) -> None:
    text = f'{start}# x\n[fleet.a]\ngpus = [\n  "V100",\n  "T4"]\ndriver = "550"\n'
    path = write(tmp_path / "torchpin.toml", text.replace("\n", newline))
    (group,) = load_profile(path).groups
    assert (group.path, group.line) == (path, 2)
    assert {setting.key: setting.line for setting in group.settings} == {
        "gpus": 3,
        "gpus[0]": 4,
        "gpus[1]": 5,
        "driver": 6,
    }


def test_all_errors_come_together_and_the_first_leads(tmp_path: Path) -> None:
    path = write(
        tmp_path / "torchpin.toml",
        '[fleet.b]\ngpus = ["RTX 5090"]\ndriver = "535"\n[fleet.a]\ngpus = ["x y z"]\nwsl = 1\n',
    )
    with pytest.raises(ConfigError) as caught:
        load_profile(path)
    lines = [line for line in str(caught.value).splitlines() if line.startswith(path)]
    assert [line.removeprefix(path).split(": ")[0] for line in lines] == [":3", ":5", ":6"]
    assert caught.value.line == 3


def test_describe() -> None:
    path = ROOT / "fixtures" / "profiles" / "valid" / "design" / "pyproject.toml"
    fleet = load_profile(str(path))
    machine = ("550.54.15", "linux-x86_64", "2.31", "3.10, 3.11, 3.12")
    assert [tuple(row) for row in describe(fleet)] == [
        ("training", "Tesla V100", "Tesla V100", "sm_70", *machine, 19),
        ("training", "A100", "A100-SXM4-80GB", "sm_80", *machine, 19),
        ("ci", "CPU only", "", "", "", "linux-x86_64", "", "", 30),
    ]
    data = json.loads(json.dumps(describe_json(fleet)))
    assert data["version"] == 1
    assert [group["name"] for group in data["groups"]] == ["training", "ci"]
    training = data["groups"][0]
    assert training["python"] == ["3.10", "3.11", "3.12"]
    assert training["groups"] == ["dev"]
    assert training["gpus"][0]["capability"] == "7.0"
    assert data["groups"][1]["gpus"] == []


@pytest.mark.parametrize(
    ("gpu", "branch"),
    [
        ("RTX 5090", 570),
        ("B200", 570),
        ("GB10", 570),
        ("RTX 4090", 515),  # the branch before the one of the first toolkit with 8.9
        ("Rubin", 615),
        ("V100", None),
        ("Jetson Thor", None),  # L4T has its own driver numbers
        ("MI300X", None),
    ],
)
def test_first_branch(gpu: str, branch: int | None) -> None:
    assert first_branch(find_gpu(gpu)[0]) == branch


def run_tool(name: str, *arguments: str) -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "tools" / name), *arguments],
        check=True,
        capture_output=True,
    )


def test_schema_is_the_generated_one(tmp_path: Path) -> None:
    run_tool("build_fleet_schema.py", str(tmp_path / "schema.json"))
    shipped = ROOT / "src" / "torchpin" / "fleet" / "schema.json"
    assert (tmp_path / "schema.json").read_bytes() == shipped.read_bytes()


@pytest.mark.skipif(not FACTS.is_dir(), reason="needs the gathered facts (TORCHPIN_FACTS)")
def test_shipped_data_is_the_generated_data(tmp_path: Path) -> None:
    run_tool("build_fleet_data.py", str(FACTS), str(tmp_path))
    shipped = ROOT / "src" / "torchpin" / "fleet" / "data"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["architectures.json", "gpus.json", "instances.json"]
    for name in names:
        assert (tmp_path / name).read_bytes() == (shipped / name).read_bytes()


@pytest.mark.skipif(not FACTS.is_dir(), reason="needs the gathered facts (TORCHPIN_FACTS)")
def test_every_name_of_the_facts_gives_its_own_hardware() -> None:
    for row in json.loads((FACTS / "gpus.json").read_text(encoding="utf-8")):
        for name in (row["name"], *row["aliases"]):
            (gpu,) = find_gpu(name)
            assert gpu.capability is not None
            assert f"{gpu.capability[0]}.{gpu.capability[1]}" == row["compute_capability"], name
    for row in json.loads((FACTS / "amd_gpus.json").read_text(encoding="utf-8")):
        for name in (row["name"], *row["aliases"]):
            assert find_gpu(name)[0].gfx == row["gfx"], name
    for row in json.loads((FACTS / "cloud_instances.json").read_text(encoding="utf-8")):
        for name in (row["instance"], row.get("accelerator_type", row["instance"])):
            assert find_gpu(name)[0].name == row["gpu"], name


@pytest.mark.skipif(not FACTS.is_dir(), reason="needs the gathered facts (TORCHPIN_FACTS)")
def test_damaged_facts_are_refused(tmp_path: Path) -> None:
    for name in ("gpu_ambiguous_names", "amd_gpus", "cloud_instances", "cuda_drivers"):
        (tmp_path / f"{name}.json").write_bytes((FACTS / f"{name}.json").read_bytes())
    (tmp_path / "gpus.json").write_text("[]", encoding="utf-8")
    out = tmp_path / "out"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_tool("build_fleet_data.py", str(tmp_path), str(out))
    assert b"only 0 nvidia" in caught.value.stderr
    assert list(out.iterdir()) == []


def test_reference_page_has_every_key() -> None:
    page = (ROOT / "docs" / "reference" / "fleet.md").read_text(encoding="utf-8")
    for key in (*TOP_KEYS, *GROUP_KEYS):
        assert f"\n| `{key}` | " in page


def test_every_spelling_of_the_reference_page_is_accepted() -> None:
    page = (ROOT / "docs" / "reference" / "fleet.md").read_text(encoding="utf-8")
    table = page.split("### `gpus`")[1].split("Capital letters")[0]
    cells = [row.split("|")[2] for row in table.splitlines() if row.startswith("| a")]
    spellings = [text for cell in cells for text in re.findall("`([^`]+)`", cell)]
    assert len(spellings) > 30
    for text in spellings:
        assert find_gpu(text)


@pytest.mark.parametrize("name", ["torchpn", "torchpins", "Torchpin", "torch-pin", "trochpin"])
def test_a_slip_in_the_name_of_the_table_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "x"\n\n[tool.{name}.fleet.a]\n')
    with pytest.raises(ConfigError, match=r"did you mean \[tool\.torchpin\]") as caught:
        find_profile(str(tmp_path))
    assert caught.value.line == 4


@pytest.mark.parametrize("name", ["torchx", "torch", "tox", "towncrier", "pytorch", "torchrun"])
def test_tables_of_other_tools_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.{name}]\na = 1\n")
    assert find_profile(str(tmp_path)) is None
