"""``matrix`` and ``upgrade`` say the same of a release on a group."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from torchpin.catalog.store import shipped_catalog
from torchpin.cli.main import guarded
from torchpin.errors import TorchpinError
from torchpin.fleet.model import NodeGroup, Target
from torchpin.fleet.profile import fleet_from_options
from torchpin.judge.model import BADNESS, FAILS, PARTLY, RUNS, RUNS_VIA_PTX, UNKNOWN
from torchpin.matrix.judged import releases
from torchpin.matrix.model import Row
from torchpin.matrix.rows import families
from torchpin.matrix.table import cell
from torchpin.report.matrix import NOTHING, SIGNS, words
from torchpin.resolve.space import Space
from torchpin.resolve.upgrade import standing

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
STATUS = {sign: status for status, sign in SIGNS.items()} | {NOTHING: FAILS, ".": FAILS}
NAMES = ("V100", "T4", "A100-SXM4-80GB", "H100", "MI300X", "RTX 4090", "GTX 1080", "none")
DRIVERS = (None, "450.80.02", "525.60.13", "550.54.15", "570.172.08", "580.65.06")
PLATFORMS = (*("linux-x86_64",) * 4, "linux-aarch64", "windows-x86_64", "macos-arm64")


def of_matrix(group: NodeGroup, version: str, space: Space) -> str:
    """Return the best sign that the matrix shows, as a status."""
    shown = words(cell(Row((group.name,), group), "torch", version, space), gpus=bool(group.gpus))
    return STATUS[shown[0][0][0]]


def of_upgrade(group: NodeGroup, version: str, space: Space) -> str:
    """Return the worst of what ``upgrade`` says of the Pythons of a group."""
    found = [standing(space, version, Target(group, one)).status for one in group.pythons]
    return max(found, key=(RUNS, RUNS_VIA_PTX, PARTLY, UNKNOWN, FAILS).index)


def random_groups(count: int, pythons: int) -> list[NodeGroup]:
    """Return groups with any GPUs, driver, Pythons, platform and glibc; the same every time."""
    chance = random.Random(2150 + pythons)
    names = [gpu.arch for gpu in families()] + list(NAMES)
    found: list[NodeGroup] = []
    while len(found) < count:
        first = chance.randint(8, 12)
        try:
            fleet = fleet_from_options(
                gpus=tuple(chance.choice(names) for _ in range(chance.choice((1, 1, 1, 2)))),
                driver=chance.choice(DRIVERS),
                python=f">=3.{first},<3.{first + pythons}",
                platform=chance.choice(PLATFORMS),
                glibc=chance.choice((None, "2.17", "2.28", "2.35")),
            )
        except TorchpinError:  # no such machine
            continue
        found += fleet.groups
    return found


def test_they_agree_on_any_machine() -> None:
    catalog = shipped_catalog()
    space = Space(catalog)
    versions = releases("torch", catalog, every=True)
    chance = random.Random(15)
    seen = set()
    for group in random_groups(600, 1):
        version = chance.choice(versions[-30:] if chance.random() < 0.7 else versions)
        shown = of_matrix(group, version, space)
        assert of_upgrade(group, version, space) == shown, (group, version)
        seen.add(shown)
    assert {RUNS, UNKNOWN, FAILS} <= seen


def test_they_agree_on_groups_of_several_pythons() -> None:
    catalog = shipped_catalog()
    space = Space(catalog)
    chance = random.Random(16)
    versions = releases("torch", catalog, every=True)[-40:]
    for group in random_groups(300, 3):
        version = chance.choice(versions)
        shown, told = of_matrix(group, version, space), of_upgrade(group, version, space)
        if told == PARTLY:  # as PyPI's build of the same kernels; the matrix asks the build alone
            assert shown in (RUNS, RUNS_VIA_PTX, PARTLY), (group, version)
        else:
            assert told == shown, (group, version)


@pytest.mark.parametrize("example", sorted(one.name for one in EXAMPLES.iterdir() if one.is_dir()))
@pytest.mark.parametrize("release", ["2.15.0", "2.14.1", "2.12.1", "2.10.0"])
def test_the_commands_agree_on_the_examples(
    example: str,
    release: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(EXAMPLES / example)
    guarded(["upgrade", "--to", release, "--output-format", "json"])
    groups = json.loads(capsys.readouterr().out)["groups"]
    guarded(["matrix", "--since", release, "--all", "--output-format", "json"])
    shown = json.loads(capsys.readouterr().out)
    assert groups
    for row in shown["rows"]:
        one = row["cells"][shown["releases"].index(release)]
        verdicts = [build["verdict"] for build in one["builds"] if build["verdict"] != FAILS]
        best = min(verdicts, key=BADNESS.index, default=FAILS if one["doubt"] is None else UNKNOWN)
        assert {each["status"] for each in groups if each["group"] == row["group"]} == {best}


def test_a_doubt_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The driver ends CUDA 13; whether a channel of CUDA 12 goes on is not known."""
    options = ("--isolated", "--gpu", "A100", "--driver", "550.54.15", "--since", "2.15")
    guarded(["matrix", *options, "--output-format", "json"])
    found = json.loads(capsys.readouterr().out)["rows"][0]["cells"][-1]
    assert found["maybe"] == ["cu129"]
    assert found["doubt"]["text"].startswith("whether cu129 holds torch 2.15.0 is not known")
    assert {build["verdict"] for build in found["builds"]} == {FAILS}
    guarded(["matrix", *options, "--output-format", "csv"])
    assert "2.15.0,cu129,channel,unknown,whether cu129 holds" in capsys.readouterr().out
    guarded(["matrix", *options, "--output-format", "markdown"])
    assert "| ? |" in capsys.readouterr().out
