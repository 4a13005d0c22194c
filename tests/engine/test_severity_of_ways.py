"""How grave it is that a file does not work on a group, given the other files of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin import engine
from torchpin.engine import Options, Report
from torchpin.fleet.profile import load_profile

CHANNELS = "https://download.pytorch.org/whl"
VOLTA = 'gpus = ["Tesla V100"]\npython = "3.11"\n'
HOPPER = 'gpus = ["H100"]\npython = "3.11"\n'
CPU = 'gpus = []\npython = "3.11"\n'
CU130 = f"--extra-index-url {CHANNELS}/cu130\ntorch==2.11.0+cu130\n"
"""Runs on Hopper, not on Volta."""
CU126 = f"--extra-index-url {CHANNELS}/cu126\ntorch==2.11.0+cu126\n"
"""Runs on both."""
ONLY_CPU = f"--index-url {CHANNELS}/cpu\ntorch==2.11.0\n"


def report(folder: Path, files: dict[str, str], groups: dict[str, str]) -> Report:
    """Check a project of some files and groups."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    profile = folder / "torchpin.toml"
    profile.write_text(
        "".join(f"[fleet.{name}]\n{text}\n" for name, text in groups.items()), "utf-8"
    )
    fleet = load_profile(str(profile))
    return engine.check(Options((str(folder),)), fleet)


def told(found: Report, *families: str) -> set[tuple[str, str, str, str | None]]:
    """Return file, code, severity and groups of the findings of some families."""
    return {
        (Path(one.path).name, one.code, one.severity, one.group)
        for one in found.findings
        if one.code.startswith(families)
    }


def test_a_lone_file_must_serve_every_group(tmp_path: Path) -> None:
    found = report(tmp_path, {"requirements.txt": CU130}, {"volta": VOLTA, "hopper": HOPPER})
    assert told(found, "TP2") == {("requirements.txt", "TP201", "error", "volta")}


def test_a_file_for_other_hardware_is_only_told_of(tmp_path: Path) -> None:
    files = {"requirements-new.txt": CU130, "requirements-old.txt": CU126}
    found = report(tmp_path, files, {"volta": VOLTA, "hopper": HOPPER})
    assert told(found, "TP2") == {("requirements-new.txt", "TP201", "info", "volta")}


def test_a_group_that_no_file_serves_is_an_error(tmp_path: Path) -> None:
    files = {"requirements-a.txt": CU130, "requirements-b.txt": CU130}
    found = report(tmp_path, files, {"volta": VOLTA, "hopper": HOPPER})
    assert told(found, "TP2") == {
        ("requirements-a.txt", "TP201", "error", "volta"),
        ("requirements-b.txt", "TP201", "error", "volta"),
    }


def test_a_file_that_serves_nobody_is_an_error(tmp_path: Path) -> None:
    files = {"requirements-a.txt": CU130, "requirements-b.txt": CU126}
    found = report(tmp_path, files, {"volta": VOLTA})
    assert told(found, "TP2") == {("requirements-a.txt", "TP201", "error", "volta")}


def test_a_bound_file_must_work_whatever_else_does(tmp_path: Path) -> None:
    files = {"requirements-new.txt": CU130, "requirements-old.txt": CU126}
    groups = {"volta": VOLTA + 'files = ["requirements-new.txt"]\n', "hopper": HOPPER}
    found = report(tmp_path, files, groups)
    assert told(found, "TP2") == {("requirements-new.txt", "TP201", "error", "volta")}


def test_a_group_is_judged_on_its_own_files_only(tmp_path: Path) -> None:
    files = {"requirements-new.txt": CU130, "requirements-old.txt": CU126}
    groups = {"volta": VOLTA + 'files = ["requirements-old.txt"]\n', "hopper": HOPPER}
    assert told(report(tmp_path, files, groups), "TP2") == set()


def test_files_of_another_folder_are_no_rivals(tmp_path: Path) -> None:
    files = {"one/requirements.txt": CU130, "two/requirements.txt": CU126}
    found = report(tmp_path, files, {"volta": VOLTA, "hopper": HOPPER})
    assert told(found, "TP2") == {("requirements.txt", "TP201", "error", "volta")}


def test_a_folder_named_requirements_is_part_of_its_project(tmp_path: Path) -> None:
    files = {"requirements/new.txt": CU130, "requirements.txt": CU126}
    found = report(tmp_path, files, {"volta": VOLTA, "hopper": HOPPER})
    assert told(found, "TP2") == {("new.txt", "TP201", "info", "volta")}


def test_a_file_without_torch_is_no_rival(tmp_path: Path) -> None:
    files = {"requirements.txt": CU130, "requirements-docs.txt": "mkdocs\n"}
    found = report(tmp_path, files, {"volta": VOLTA, "hopper": HOPPER})
    assert told(found, "TP2") == {("requirements.txt", "TP201", "error", "volta")}


@pytest.mark.parametrize("name", ["requirements-cpu.txt", "cpu_requirements.txt"])
def test_a_file_for_cpus_beside_one_for_gpus(tmp_path: Path, name: str) -> None:
    files = {name: ONLY_CPU, "requirements.txt": CU126}
    found = report(tmp_path, files, {"volta": VOLTA})
    assert told(found, "TP2") == {(name, "TP205", "info", "volta")}


def test_a_lone_file_for_cpus_on_gpus_is_an_error(tmp_path: Path) -> None:
    found = report(tmp_path, {"requirements-cpu.txt": ONLY_CPU}, {"volta": VOLTA})
    assert told(found, "TP2") == {("requirements-cpu.txt", "TP205", "error", "volta")}


def test_a_cpu_group_is_served_by_either(tmp_path: Path) -> None:
    files = {"requirements-cpu.txt": ONLY_CPU, "requirements.txt": CU126}
    found = report(tmp_path, files, {"volta": VOLTA, "ci": CPU})
    assert told(found, "TP2") == {
        ("requirements-cpu.txt", "TP205", "info", "volta"),
        ("requirements.txt", "TP206", "info", "ci"),
    }


def test_one_finding_names_all_groups_and_pythons(tmp_path: Path) -> None:
    groups = {
        "a": 'gpus = ["V100"]\npython = ["3.11", "3.12"]\n',
        "b": 'gpus = ["V100"]\npython = "3.13"\n',
    }
    found = report(tmp_path, {"requirements.txt": CU130}, groups)
    (one,) = [finding for finding in found.findings if finding.code == "TP201"]
    assert (one.group, one.python) == ("a, b", "3.11, 3.12, 3.13")


def test_an_included_file_is_no_way_in_of_its_own(tmp_path: Path) -> None:
    files = {"requirements.txt": "-r base.txt\n", "base.txt": CU130}
    found = report(tmp_path, files, {"volta": VOLTA})
    assert told(found, "TP2") == {("base.txt", "TP201", "error", "volta")}
