"""The driver tables: what ships is what the script makes, and every look-up."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from torchpin.catalog import drivers as module
from torchpin.catalog.drivers import Drivers, at_least, load_drivers, version_key
from torchpin.errors import CatalogError

ROOT = Path(__file__).parent.parent.parent
FACTS = Path(os.environ.get("TORCHPIN_FACTS", ROOT.parent / "shared" / "facts"))


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_drivers", ROOT / "tools/build_drivers.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def tables() -> Drivers:
    return load_drivers()


@pytest.mark.skipif(not (FACTS / "cuda_drivers.json").is_file(), reason="no gathered facts here")
def test_shipped_is_what_the_script_makes() -> None:
    assert script().build(FACTS) == Path(module.DATA).read_text(encoding="utf-8")


@pytest.mark.skipif(not (FACTS / "cuda_drivers.json").is_file(), reason="no gathered facts here")
def test_the_script_refuses_a_thin_input(tmp_path: Path) -> None:
    facts = json.loads((FACTS / "cuda_drivers.json").read_text(encoding="utf-8"))
    facts["toolkits"] = facts["toolkits"][:3]
    (tmp_path / "cuda_drivers.json").write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(SystemExit, match="toolkit"):
        script().build(tmp_path)


def test_one_record_a_line_sorted_with_sources() -> None:
    lines = Path(module.DATA).read_text(encoding="utf-8").splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    records = [json.loads(line.rstrip(",")) for line in lines[2:-1]]
    assert lines[2:-1] == sorted(lines[2:-1], key=lambda line: line.rstrip(","))
    assert all(record["sources"] and record["evidence"] for record in records)


@pytest.mark.parametrize(
    ("version", "floor", "expected"),
    [
        ("550.54.15", "550.54.14", True),
        ("550.54.14", "550.54.15", False),
        ("580", "580.65.06", True),
        ("579", "580.65.06", False),
        ("572.83", "570", True),
        ("570.26", "570.124.06", False),
        ("1000.1", "999.9", True),
        ("580.065", "580.65.06", True),
        ("x", "580", False),
    ],
)
def test_versions_compare_number_by_number(version: str, floor: str, expected: bool) -> None:
    assert at_least(version, floor) is expected


def test_version_key() -> None:
    assert version_key("550.54.15") == (550, 54, 15)
    assert version_key("580") == (580,)
    assert version_key("550.54.15-grid") is None
    assert version_key("") is None


@pytest.mark.parametrize(
    ("driver", "branch"),
    [
        ("550.54.15", "550"),
        ("572.83", "570"),
        ("576.02", "575"),
        ("581.15", "580"),
        ("528.33", "525"),
        ("456.38", "455"),
        ("580", "580"),
        ("640.10", "640"),
        ("390.157", None),
        ("latest", None),
    ],
)
def test_branch_of(tables: Drivers, driver: str, branch: str | None) -> None:
    assert tables.branch_of(driver) == branch


@pytest.mark.parametrize(
    ("cuda", "platform", "driver"),
    [
        ("11", "linux-x86_64", "450.80.02"),
        ("11.8", "linux-x86_64", "450.80.02"),
        ("11.0", "linux-x86_64", "450.36.06"),
        ("12", "linux-aarch64", "525.60.13"),
        ("12.6", "windows-x86_64", "528.33"),
        ("13.2", "linux-x86_64", "580.65.06"),
        ("13", "windows-x86_64", "580"),
    ],
)
def test_family_floor(tables: Drivers, cuda: str, platform: str, driver: str) -> None:
    fact = tables.family_floor(cuda, platform)
    assert fact is not None
    assert (fact.value, fact.evidence) == (driver, "published")
    assert fact.source


def test_silent_tables(tables: Drivers) -> None:
    assert tables.family_floor("10.2", "linux-x86_64") is None
    assert tables.toolkit_driver("10.2", "linux-x86_64") is None
    assert tables.branch_cuda("999") is None
    assert tables.gpu_last_branch((7, 5)) is None
    assert tables.gpu_first_branch((8, 7)) is None
    assert tables.cuda_compat_allows("13.0", "550.54.15") is None
    assert tables.jetpack("9.0") is None


def test_toolkits(tables: Drivers) -> None:
    first = tables.toolkit_driver("12.8", "linux-x86_64")
    assert first is not None
    assert first.value == "570.26"
    windows = tables.toolkit_driver("13.2", "windows-x86_64")
    assert windows is not None
    assert (windows.value, windows.evidence) == ("595", "inferred")


@pytest.mark.parametrize(
    ("capability", "first", "last"),
    [
        ((3, 7), None, "470"),
        ((5, 2), None, "580"),
        ((6, 1), None, "580"),
        ((7, 0), None, "580"),
        ((7, 2), None, None),
        ((8, 6), "455", None),
        ((10, 0), "570", None),
        ((12, 0), "570", None),
        ((12, 1), "575", None),
        ((10, 7), "615", None),
    ],
)
def test_gpu_branches(
    tables: Drivers, capability: tuple[int, int], first: str | None, last: str | None
) -> None:
    begin, end = tables.gpu_first_branch(capability), tables.gpu_last_branch(capability)
    assert (begin.value if begin else None) == first
    assert (end.value if end else None) == last


def test_evidence_of_first_branches(tables: Drivers) -> None:
    stated, derived = tables.gpu_first_branch((12, 0)), tables.gpu_first_branch((12, 1))
    assert stated is not None
    assert derived is not None
    assert (stated.evidence, derived.evidence) == ("published", "inferred")


def test_branch_cuda(tables: Drivers) -> None:
    known = tables.branch_cuda("580")
    assert known is not None
    assert known.value == "13.0"
    guessed = tables.branch_cuda("565")
    assert guessed is not None
    assert guessed.evidence == "inferred"


@pytest.mark.parametrize(
    ("package", "driver", "says"),
    [
        ("13.0", "535.183.01", "compatible"),
        ("13.0", "580.65.06", "same branch, not needed"),
        ("12.8", "580.65.06", "not provided"),
        ("13.4", "610.43.02", "compatible"),
    ],
)
def test_cuda_compat(tables: Drivers, package: str, driver: str, says: str) -> None:
    fact = tables.cuda_compat_allows(package, driver)
    assert fact is not None
    assert fact.value == says


def test_jetpack(tables: Drivers) -> None:
    six, five = tables.jetpack("6.2.1"), tables.jetpack("5.1.3")
    assert six is not None
    assert five is not None
    assert (six.cuda, six.evidence) == ("12.6", "published")
    assert (five.cuda, five.evidence) == ("11.4", "inferred")


def test_a_broken_file_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "drivers.json"
    broken.write_text("[{", encoding="utf-8")
    monkeypatch.setattr(module, "DATA", str(broken))
    monkeypatch.setattr(module, "_loaded", None)
    with pytest.raises(CatalogError, match="driver tables"):
        load_drivers()
