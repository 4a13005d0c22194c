"""uv workspaces: sources go to the member, indexes and constraints to the root; real uv agrees."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.clients.installs import catalog_wheels, plain_wheel  # noqa: E402
from tests.clients.runners import Where  # noqa: E402
from tests.clients.stub_server import Stub  # noqa: E402
from tests.projects.project_oracle import UvLock, values_of  # noqa: E402
from tests.projects.surroundings import uv_knows_only  # noqa: E402
from tests.projects.uv_lock_walk import installed, parse  # noqa: E402
from tools.record_golden import files_of, torchpin  # noqa: E402

pytestmark = pytest.mark.clients

CHANNELS = "https://download.pytorch.org"
V100 = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\npython = "3.11"\n'
MAC = '[fleet.mac]\ngpus = []\nplatform = "macos-arm64"\npython = "3.11"\n'
B200 = '[fleet.new]\ngpus = ["B200"]\ndriver = "580.82.07"\npython = "3.11"\n'
VOLTA, LAPTOP = Where("3.11", "linux-x86_64"), Where("3.11", "macos-arm64")
TOP = """\
[project]
name = "top"
version = "0"
requires-python = ">=3.11"
dependencies = ["one"] # the app

[tool.uv.workspace]
members = ["packages/*"]

[tool.uv.sources]
one = { workspace = true }
"""


def member(name: str, dependencies: str, rest: str = "") -> str:
    head = f'[project]\nname = "{name}"\nversion = "0"\nrequires-python = ">=3.11"\n'
    return f"{head}dependencies = [{dependencies}]\n{rest}"


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub(wheels=[*catalog_wheels(), plain_wheel("numpy", "1.0")]) as running:
        yield running


@pytest.fixture(scope="module")
def uv(stub: Stub) -> Iterator[UvLock]:
    with UvLock(stub) as running:
        yield running


def write(folder: Path, top: str, fleet: str, **members: str) -> None:
    (folder / "torchpin.toml").write_text(fleet, "utf-8")
    (folder / "pyproject.toml").write_text(top, "utf-8", newline="\n")
    for name, text in members.items():
        place = folder / "packages" / name
        place.mkdir(parents=True)
        (place / "pyproject.toml").write_text(text, "utf-8", newline="\n")


def left_in(folder: Path) -> list[dict[str, Any]]:
    done = torchpin("check", "--output-format", "json", str(folder))
    return [one for one in json.loads(done.stdout)["findings"] if one["severity"] != "info"]


def locked(
    folder: Path, uv: UvLock, stub: Stub, package: str, where: Where, *extras: str
) -> list[str]:
    """Return what real uv locks of the family for a member on a target."""
    for path in folder.rglob("pyproject.toml"):
        text = path.read_text("utf-8").replace(CHANNELS, stub.base)
        path.write_text(text, "utf-8", newline="\n")
    done = uv.run(folder, "lock")
    assert done.returncode == 0, done.stderr
    lock = parse((folder / "uv.lock").read_text("utf-8"))
    got = installed(lock, package, values_of(where), list(extras), [])
    family = ("torch", "torchvision", "torchaudio")
    return [f"{n} {got[n].picked.version} {got[n].picked.home}" for n in family if n in got]


def test_a_member_gets_sources_and_the_root_the_index(
    tmp_path: Path, stub: Stub, uv: UvLock
) -> None:
    write(tmp_path, TOP, V100 + MAC, one=member("one", '"torch>=2.11"'), two=member("two", ""))
    before = files_of(tmp_path)
    done = torchpin("fix", "--unsafe-fixes", str(tmp_path))
    assert done.returncode == 0, done.stdout
    assert left_in(tmp_path) == []
    after = files_of(tmp_path)
    assert after["packages/two/pyproject.toml"] == before["packages/two/pyproject.toml"]
    one = after["packages/one/pyproject.toml"]
    assert one.startswith(before["packages/one/pyproject.toml"])
    assert "[[tool.uv.index]]" not in one
    assert after["pyproject.toml"].startswith(before["pyproject.toml"])
    assert "[[tool.uv.index]]" in after["pyproject.toml"]
    assert torchpin("fix", "--unsafe-fixes", str(tmp_path)).returncode == 0
    assert files_of(tmp_path) == after
    assert locked(tmp_path, uv, stub, "one", VOLTA) == ["torch 2.14.1+cu126 cu126"]
    assert locked(tmp_path, uv, stub, "one", LAPTOP) == ["torch 2.15.0 pypi"]
    assert locked(tmp_path, uv, stub, "top", VOLTA) == ["torch 2.14.1+cu126 cu126"]


def test_a_member_uses_the_index_that_the_root_has(tmp_path: Path, stub: Stub, uv: UvLock) -> None:
    top = TOP + f'\n[[tool.uv.index]]\nname = "volta"\nurl = "{CHANNELS}/whl/cu126"\n'
    top += "explicit = true\n"
    write(tmp_path, top, V100, one=member("one", '"torch>=2.11", "torchvision"'))
    assert torchpin("fix", "--unsafe-fixes", str(tmp_path)).returncode == 0
    after = files_of(tmp_path)
    assert after["pyproject.toml"] == top
    assert after["packages/one/pyproject.toml"].count('index = "volta"') == 2
    assert locked(tmp_path, uv, stub, "one", VOLTA) == [
        "torch 2.14.1+cu126 cu126",
        "torchvision 0.29.1+cu126 cu126",
    ]


def test_an_index_that_others_use_is_not_pointed_elsewhere(
    tmp_path: Path, stub: Stub, uv: UvLock
) -> None:
    top = TOP + f'\n[[tool.uv.index]]\nname = "gpu"\nurl = "{CHANNELS}/whl/cu130"\n'
    top += "explicit = true\n"
    source = '[tool.uv.sources]\ntorch.index = "gpu"\n'
    write(tmp_path, top, V100, one=member("one", '"torch>=2.11,<2.15"', source))
    assert torchpin("fix", "--unsafe-fixes", str(tmp_path)).returncode == 0
    after = files_of(tmp_path)
    assert after["pyproject.toml"].startswith(top)
    assert 'torch.index = "pytorch-cu126"' in after["packages/one/pyproject.toml"]
    assert locked(tmp_path, uv, stub, "one", VOLTA) == ["torch 2.14.1+cu126 cu126"]


def test_a_split_stands_in_the_member(tmp_path: Path, stub: Stub, uv: UvLock) -> None:
    write(tmp_path, TOP, V100 + B200, one=member("one", '"torch>=2.11,<2.15"'))
    assert torchpin("fix", "--unsafe-fixes", str(tmp_path)).returncode == 0
    after = files_of(tmp_path)
    assert after["pyproject.toml"].count("[[tool.uv.index]]") == 2
    assert "conflicts" in after["packages/one/pyproject.toml"]
    assert "conflicts" not in after["pyproject.toml"]
    assert locked(tmp_path, uv, stub, "one", VOLTA, "cu126") == ["torch 2.14.1+cu126 cu126"]
    assert locked(tmp_path, uv, stub, "one", VOLTA, "cu130") == ["torch 2.14.1+cu130 cu130"]


def test_a_constraint_for_a_member_stands_in_the_root(
    tmp_path: Path, stub: Stub, uv: UvLock
) -> None:
    write(tmp_path, TOP, V100, one=member("one", '"torchvision>=0.26,<0.29.2"'))
    assert torchpin("fix", "--unsafe-fixes", str(tmp_path)).returncode == 0
    after = files_of(tmp_path)
    assert "constraint-dependencies" in after["pyproject.toml"]
    assert "constraint-dependencies" not in after["packages/one/pyproject.toml"]
    assert locked(tmp_path, uv, stub, "one", VOLTA) == [
        "torch 2.14.1+cu126 cu126",
        "torchvision 0.29.1+cu126 cu126",
    ]


def test_one_member_alone_is_mended_with_its_root(tmp_path: Path) -> None:
    write(tmp_path, TOP, V100, one=member("one", '"torch>=2.11"'))
    path = tmp_path / "packages" / "one" / "pyproject.toml"
    config = ("--config", str(tmp_path / "torchpin.toml"))
    done = torchpin("fix", "--unsafe-fixes", *config, str(path))
    assert done.returncode == 0, done.stdout
    assert "2 files" in done.stdout
    assert "pytorch-cu126" in (tmp_path / "pyproject.toml").read_text("utf-8")


def test_what_stops_the_whole_workspace_is_told_once(tmp_path: Path) -> None:
    """Two members send torch to different indexes: one lock cannot hold both."""
    top = TOP + "".join(
        f'\n[[tool.uv.index]]\nname = "{name}"\nurl = "{CHANNELS}/whl/{name}"\nexplicit = true\n'
        for name in ("cu126", "cu130")
    )
    write(
        tmp_path,
        top,
        V100,
        one=member("one", '"torch==2.14.1"', '[tool.uv.sources]\ntorch = { index = "cu126" }\n'),
        two=member("two", "", "[tool.uv]\npackage = false\n"),
        three=member("three", '"numpy"'),
    )
    assert [one["code"] for one in left_in(tmp_path)] == []
    (tmp_path / "packages/two/pyproject.toml").write_text(
        member("two", '"torch==2.14.1"', '[tool.uv.sources]\ntorch = { index = "cu130" }\n')
    )
    stops = [one for one in left_in(tmp_path) if one["code"] == "TP409"]
    assert {Path(one["path"]).parent.name for one in stops} == {"one", "two"}
    assert all("torch has two indexes" in one["message"] for one in stops)


@pytest.fixture
def only_the_stub(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv_knows_only(stub, tmp_path, monkeypatch)


@pytest.mark.usefixtures("only_the_stub")
def test_the_lock_of_the_workspace_is_made_anew(tmp_path: Path, stub: Stub, uv: UvLock) -> None:
    index = f'\n[[tool.uv.index]]\nname = "cu130"\nurl = "{stub.base}/whl/cu130"\nexplicit = true\n'
    more = f'\n[[tool.uv.index]]\nname = "cu126"\nurl = "{stub.base}/whl/cu126"\nexplicit = true\n'
    source = '[tool.uv.sources]\ntorch = { index = "cu130" }\n'
    work = tmp_path / "work"
    work.mkdir()
    write(work, TOP + index + more, V100, one=member("one", '"torch>=2.11,<2.15"', source))
    assert uv.run(work, "lock").returncode == 0
    assert "torch" in {one.get("package") for one in left_in(work)}
    told = torchpin("fix", "--unsafe-fixes", "--diff", str(work))
    assert "uv.lock" not in told.stdout
    done = torchpin("fix", "--unsafe-fixes", "--prove", "--relock", str(work))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "proved by the owners of the locks: 1 lock, 1 sync" in done.stderr
    assert "2.14.1+cu126" in (work / "uv.lock").read_text("utf-8")
    assert "+cu130" not in (work / "uv.lock").read_text("utf-8")
