"""TP503 is told only where ``uv lock --check`` stops, and of most changes that stop it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from tests.projects.generate_projects import ProjectCase, case_of
from tests.projects.project_oracle import ProjectOracle, possible_pythons

from torchpin import engine

pytestmark = [pytest.mark.clients, pytest.mark.oracle]

SEED, SAMPLE = 20261204, 60
MARKERS = ("sys_platform == 'linux'", "sys_platform == 'darwin'", "python_version >= '3.12'")
REQUIREMENT = re.compile(r'"(torchvision|torchaudio|torch)([^"\[;]*)( ; [^"]*)?"')


def changed(text: str, rng: random.Random) -> str:
    """Return a project with the marker, extra or version of one requirement changed."""
    found = list(REQUIREMENT.finditer(text))
    if not found:
        return text
    at = rng.choice(found)
    name, specifier, marker = at[1], at[2].rstrip(), at[3] or ""
    kind = rng.choice(("marker", "extra", "specifier"))
    if kind == "marker":
        marker = "" if marker and rng.random() < 0.5 else f" ; {rng.choice(MARKERS)}"
    elif kind == "extra":
        name += "[more]"
    else:
        specifier += (", " if specifier else "") + "!=2.0.0"
    return text[: at.start()] + f'"{name}{specifier}{marker}"' + text[at.end() :]


def told(folder: Path) -> dict[str, str]:
    options = engine.Options((str(folder),), isolated=True)
    return {one.code: one.message for one in engine.check(options, None).findings}


def test_stale_locks_are_told_as_uv_tells_them(recorded: ProjectOracle, tmp_path: Path) -> None:
    rng = random.Random(SEED)
    pythons = possible_pythons()
    fresh = stale = same = noticed = 0
    for number in range(SAMPLE):
        case: ProjectCase = case_of(SEED, number, pythons)
        lock, _ = recorded.lock(case)
        if lock is None:
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        text = case.text.replace("$B", recorded.stub.base)
        manifest = folder / "pyproject.toml"
        manifest.write_text(text, "utf-8")
        (folder / "uv.lock").write_text(lock, "utf-8")
        found = told(folder)
        assert "TP503" not in found, f"{found}\n{text}\n{lock}"
        fresh += 1
        other = changed(text, rng)
        manifest.write_text(other, "utf-8")
        done = recorded.uv.run(folder, "lock", "--check")
        (folder / "uv.lock").write_text(lock, "utf-8")
        stopped = done.returncode != 0
        found = told(folder)
        assert stopped or "TP503" not in found, f"{found}\n{text}\n{other}\n{lock}"
        noticed += "TP503" in found
        stale += stopped
        same += not stopped
    print(
        f"\nuv, seed {SEED}: {fresh} fresh locks; after a change {stale} stale "
        f"({noticed} told), {same} not"
    )
    assert fresh > SAMPLE // 3
    assert stale > SAMPLE // 6
    assert noticed > 0.8 * stale
