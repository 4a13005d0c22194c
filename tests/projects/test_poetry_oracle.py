"""Real ``poetry lock`` locks what ``select_poetry_project`` predicts, where Poetry is at hand.

``TORCHPIN_POETRY`` names its program (else ``poetry`` on PATH); ``--oracle-cases`` scales.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import Marker
from packaging.specifiers import SpecifierSet
from tests.clients.runners import Where, clean_environment
from tests.clients.stub_facts import FAMILY
from tests.projects.project_oracle import ProjectOracle, interpreters, target_of, values_of
from tests.projects.uv_lock_walk import parse

from torchpin.documents.pyproject import read_pyproject
from torchpin.select.model import SelectedSet
from torchpin.select.projects import project_installs
from torchpin.select.selection import select

pytestmark = [pytest.mark.clients, pytest.mark.oracle]

POETRY = os.environ.get("TORCHPIN_POETRY") or shutil.which("poetry")
SEED, SAMPLE = 20261202, 16
STOPS = "stops"
PYTHONS = (">=3.10", ">=3.11", ">=3.10,<3.14", ">=3.11,<3.12", ">=3.11,<3.15", "^3.11")
SPECIFIERS = {
    "torch": ("*", "*", ">=2.10", "^2.10", "2.13.0", "<2.12", "~2.9.0"),
    "torchvision": ("*", "*", ">=0.20", "<0.27"),
    "torchaudio": ("*", "*", "<2.11"),
}


def case_of(number: int) -> str:
    """Return a project: pins, explicit and other sources, some of them by markers."""
    rng = random.Random(f"{SEED}/{number}")
    lines, used = [], ""
    source = rng.choice(["", "", "cu126", "cpu", "cu130"])
    linux, rest = "sys_platform == 'linux'", "sys_platform != 'linux'"
    for name in ("torch", *(n for n in FAMILY[1:] if rng.random() < 0.5)):
        version = rng.choice(SPECIFIERS[name])
        if not source or rng.random() > 0.85:
            lines.append(f'{name} = "{version}"')
            continue
        used = source
        one = f'version = "{version}", source = "{source}"'
        other = f'version = "{version}", source = "stub"'
        if rng.random() < 0.3:
            lines.append(
                f'{name} = [{{ {one}, markers = "{linux}" }}, {{ {other}, markers = "{rest}" }}]'
            )
        else:
            lines.append(f"{name} = {{ {one} }}")
    sources = [("stub", "$B/pypi/simple", "primary")]
    if used:
        priority = rng.choice(["explicit", "explicit", "explicit", "supplemental", "primary"])
        sources.append((used, f"$B/whl/{used}", priority))
    head = f'package-mode = false\n[tool.poetry.dependencies]\npython = "{rng.choice(PYTHONS)}"\n'
    tables = "".join(
        f'[[tool.poetry.source]]\nname = "{name}"\nurl = "{url}"\npriority = "{priority}"\n'
        for name, url, priority in sources
    )
    return "[tool.poetry]\n" + head + "\n".join(lines) + "\n" + tables


def lock(text: str, folder: Path) -> tuple[dict[str, Any] | None, str]:
    """Return the lock that Poetry makes (None if it stops) and what it says."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        (Path(name) / "pyproject.toml").write_text(text, "utf-8")
        environment = {
            **{k: v for k, v in clean_environment().items() if not k.startswith("POETRY_")},
            "POETRY_CACHE_DIR": str(folder / "cache"),
            "POETRY_CONFIG_DIR": str(folder / "config"),
            "POETRY_VIRTUALENVS_CREATE": "false",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        }
        done = subprocess.run(
            [str(POETRY), "lock", "--no-interaction"],
            cwd=name,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        path = Path(name) / "poetry.lock"
        data = parse(path.read_text("utf-8")) if done.returncode == 0 else None
        return data, done.stdout + done.stderr


def locked(data: dict[str, Any], where: Where) -> dict[str, str]:
    values = values_of(where)
    found = {}
    for package in data["package"]:
        markers = package.get("markers")
        if package["name"] in FAMILY and (not markers or Marker(markers).evaluate(values)):
            home = package.get("source", {}).get("reference", "")
            home = "pypi" if home == "stub" else home
            found[package["name"]] = f"{package['version']} {home}"
    return found


def predicted(chosen: SelectedSet) -> dict[str, str] | str:
    """Return a selection in the words of ``locked``, with the version alone for a missing wheel."""
    out = {}
    for one in chosen.selections:
        if one.status == "unknown" and chosen.conflict is None:
            return f"unknown: {one.because}"
        told = re.match(r"poetry locks \S+ (\S+) from", one.because)
        if chosen.conflict is not None or (one.miss is not None and told is None):
            return STOPS
        if one.build is not None:
            home = "pypi" if one.build.home == "pypi" else one.build.channel
            out[one.package] = f"{one.build.full_version} {home}"
        elif told is not None:
            out[one.package] = told[1]
    return out


def agree(one: dict[str, str] | str, said: dict[str, str] | str) -> bool:
    if isinstance(one, str) or isinstance(said, str):
        return one == said
    return one.keys() == said.keys() and all(
        build in (said[name], said[name].split()[0]) for name, build in one.items()
    )


@pytest.mark.skipif(POETRY is None, reason="Poetry is not at hand")
def test_prediction_is_the_lock_of_poetry(
    recorded: ProjectOracle, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = (request.config.getoption("--oracle-cases") or SAMPLE * 5) // 5
    running = interpreters()[0][0]
    texts = [case_of(n).replace("$B", recorded.stub.base) for n in range(count)]
    documents = [read_pyproject("pyproject.toml", text.encode()) for text in texts]
    kept = [
        (text, document)
        for text, document in zip(texts, documents, strict=True)
        if document.project is not None
        and SpecifierSet(document.project.requires_python or "").contains(running)
    ]
    wrong: list[str] = []
    stopped = unknown = 0
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda pair: lock(pair[0], tmp_path), kept)
        for (text, document), (data, log) in zip(kept, answers, strict=True):
            stopped += data is None
            install = project_installs(document, lock=None, client="poetry")[0]
            for platform in ("linux-x86_64", "macos-arm64", "windows-x86_64"):
                where = Where(running.rpartition(".")[0], platform)
                one = predicted(select(install, target_of(where), recorded.facts))
                said = STOPS if data is None else locked(data, where)
                if isinstance(one, str) and one.startswith("unknown"):
                    unknown += 1
                elif not agree(one, said):
                    wrong.append(f"{text}\n{platform}: {one} | {said}\n{log[-300:]}")
    print(f"\npoetry: {len(kept)} projects, {stopped} stopped, {unknown} answers not predicted")
    assert not wrong, "\n".join(wrong[:3])
