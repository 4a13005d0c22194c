"""Real pip and uv install exactly what the fixed file of every golden folder promises."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.clients.harness import assert_installs
from tools.record_golden import GOLDEN, files_of

from torchpin.fleet.profile import load_profile

pytestmark = pytest.mark.clients

FOLDERS = sorted(path.parent for path in GOLDEN.glob("*/options.json"))
BROKEN = re.compile(r" error | TP407 ")
"""Findings that a fixed file may keep and at which a client may stop."""


def clients_of(folder: Path) -> list[str]:
    """Return the client that the folder is about."""
    arguments = json.loads((folder / "options.json").read_text("utf-8"))["arguments"]
    return [arguments[arguments.index("--client") + 1] if "--client" in arguments else "pip"]


def promised(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return (group, Python) → package → version that the fixed files install."""
    known = json.loads((folder / "expected.json").read_text("utf-8"))
    if any(BROKEN.search(line) for line in known["findings_after"]):
        return {}
    found: dict[tuple[str, str], dict[str, str]] = {}
    for key, packages in known["installs"].items():
        name, group, python = f"{key} ".split(" ")[:3]
        if name == "requirements.txt" and all(" (" in text for text in packages.values()):
            found[group, python] = {
                package: text.split(" (")[0] for package, text in packages.items()
            }
    return found


CASES = [
    pytest.param(folder, client, id=f"{folder.name}-{client}")
    for folder in FOLDERS
    if promised(folder)
    for client in clients_of(folder)
]


def test_most_golden_folders_are_proved() -> None:
    assert len(CASES) >= 50


@pytest.mark.parametrize(("folder", "client"), CASES)
def test_fixed_file_installs_what_it_promises(folder: Path, client: str) -> None:
    files = {**files_of(folder / "input")}
    if (folder / "fixed").exists():
        files |= files_of(folder / "fixed")
    fleet = load_profile(str(folder / "input" / "torchpin.toml"))
    targets = {(target.group.name, str(target.python or "")): target for target in fleet.targets()}
    for (group, python), packages in promised(folder).items():
        assert_installs(files, targets[group, python], packages, client)
