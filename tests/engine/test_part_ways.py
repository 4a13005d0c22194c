"""Commands and sections on the targets that they run on, one after the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchpin.documents.base import Span
from torchpin.documents.parts import Image, Part
from torchpin.documents.scripts import read_shell
from torchpin.fleet.model import Fleet, NodeGroup, Python, Settings, Target
from torchpin.part_ways import part_targets, python_of
from torchpin.rules.environments import is_foreign

GROUP = NodeGroup("g", (), (), "linux-x86_64", glibc="2.35")
MAC = NodeGroup("m", (), (), "macos-arm64")


def part(**fields: Any) -> Part:
    document = read_shell("x.sh", b"pip install torch\n")
    return document.parts[0]._replace(**fields)


def test_the_file_s_own_python_replaces_the_fleet_s() -> None:
    targets = [Target(GROUP, Python(3, 10)), Target(GROUP, Python(3, 11))]
    assert part_targets(part(), targets) == tuple(targets)
    assert part_targets(part(python="3.12"), targets) == (Target(GROUP, Python(3, 12)),)
    assert part_targets(part(python=">=3.11"), targets) == (targets[1],)
    assert part_targets(part(python=">=3.13"), targets) == (Target(GROUP, Python(3, 13)),)
    assert part_targets(part(python="nonsense"), targets) == tuple(targets)


def test_environments_take_the_machines_that_have_their_pythons() -> None:
    first, second = (
        GROUP._replace(name=name, pythons=(python,))
        for name, python in (("a", Python(3, 11)), ("b", Python(3, 12)))
    )
    fleet = Fleet((first, second), Settings(), None)
    targets = fleet.targets()
    both = part(python=">=3.11,<3.13", pythons=("3.11", "3.12"))
    assert part_targets(both, targets, fleet) == targets
    assert part_targets(part(pythons=("3.12",)), targets, fleet) == targets[1:]
    # Those of another client are asked elsewhere.
    assert part_targets(part(pythons=("3.12",)), targets[:1], fleet) == ()
    moved = part_targets(part(pythons=("3.12", "3.14t")), targets, fleet)
    assert [(one.group.name, str(one.python)) for one in moved] == [
        ("b", "3.12"),
        ("a", "3.14t"),
        ("b", "3.14t"),
    ]
    assert part_targets(part(pythons=("3.12", "")), targets, fleet) == (targets[1], targets[0])


def test_a_python_is_foreign_only_where_every_group_names_its_own() -> None:
    tests = part(pythons=("3.9", "3.12"))
    named = GROUP._replace(pythons=(Python(3, 11), Python(3, 12)))
    fleet = Fleet((named,), Settings(), None)
    assert is_foreign("3.9", tests, fleet)
    assert not is_foreign("3.12", tests, fleet)
    assert not is_foreign("3.9", part(python="3.9"), fleet)
    assert not is_foreign("3.9", tests, Fleet((named, GROUP), Settings(), None))


def test_a_container_runs_on_linux() -> None:
    targets = [Target(GROUP, None), Target(MAC, None)]
    image = Image("ubuntu:18.04", Span(0, 0))
    (only,) = part_targets(part(image=image), targets)
    assert (only.group.name, only.group.glibc) == ("g", "2.27")
    (moved,) = part_targets(part(platform="linux-aarch64"), [Target(MAC, None)])
    assert moved.group.platform == "linux-aarch64"


def test_musl_comes_with_the_image() -> None:
    image = Image("python:3.11-alpine", Span(0, 0))
    (only,) = part_targets(part(image=image), [Target(GROUP, None)])
    assert only.group.musl
    assert only.python == Python(3, 11)


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("3.11", Python(3, 11)),
        ("3.11.4", Python(3, 11)),
        ("3.14t", Python(3, 14, True)),
        ("3", None),
        (">=3.11", None),
        ("", None),
        ("3.x", None),
        ("9999999.1", None),
    ],
)
def test_plain_versions(text: str, python: Python | None) -> None:
    assert python_of(text) == python


def codes(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    from torchpin.cli.main import guarded

    guarded(["check", "--output-format", "json", "--isolated", *arguments, str(folder)])
    found = json.loads(capsys.readouterr().out)["findings"]
    return [
        f"{one['code']} {Path(one['path']).name}:{one['line']} {one['severity']}" for one in found
    ]


def test_a_file_whose_index_stands_in_a_command_is_judged_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.9.1+cu126\n")
    alone = codes(tmp_path, capsys)
    assert alone == ["TP105 requirements.txt:1 warning"]
    (tmp_path / "install.sh").write_text(
        "pip install -r requirements.txt --extra-index-url https://download.pytorch.org/whl/cu126\n"
    )
    assert not any(one.startswith("TP105") for one in codes(tmp_path, capsys))


def test_what_may_not_run_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "install.sh").write_text(
        "pip install torch==2.99.0+cu12\nif x; then pip install torch==2.4.0+cu118 "
        "--index-url https://download.pytorch.org/whl/cu124; fi\n"
    )
    found = codes(tmp_path, capsys)
    assert any(one.endswith("install.sh:2 warning") for one in found)
    assert not any(one.endswith("install.sh:2 error") for one in found)


def test_a_comment_silences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "# torchpin: ignore[TP101] wanted\npip install \\\n  torch==2.4.7\n"
    (tmp_path / "install.sh").write_text(script)
    assert codes(tmp_path, capsys) == []
    (tmp_path / "install.sh").write_text(script.replace("ignore", "no"))
    assert [one.split()[0] for one in codes(tmp_path, capsys)] == ["TP101"]
