"""The commands of the web page, run by the real clients against an index on loopback.

``nox -s browser``. Chromium shows the commands; only the addresses of PyPI and of PyTorch's
channels are others. Each client must take the very builds that the page names.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from tests.clients.installs import catalog_wheels
from tests.clients.runners import uv_binary
from tests.clients.stub_server import Stub
from tests.matrix.chromium import chromium
from tests.projects.lock_tools import program, tool_environment, why_not

from torchpin.cli.main import guarded

tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
CHANNELS = "https://download.pytorch.org/whl"
TOOLS = ("pip", "uv", "Poetry", "PDM")
CHOICES = {
    "channel": {"gpu": "Tesla V100", "driver": "550.54.15"},
    "pypi": {"gpu": "GeForce RTX 5090", "driver": "610.0"},
    "whole-channel": {"gpu": "MI300X"},
    "old": {"gpu": "GeForce GTX 1080", "driver": "470.82.01"},
    "no-gpu": {"gpu": "none"},
}
"""PyTorch's channel, PyPI itself, one that holds what torch requires (triton for ROCm), an old
release, CPU builds."""
PROJECT = '[project]\nname = "app"\nversion = "0"\nrequires-python = "=={python}.*"\n'

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.uname().machine != "x86_64",
    reason="the commands are those for Linux on x86-64",
)


class Told(NamedTuple):
    """What the page says for one tool: text before a snippet, and the snippet."""

    parts: list[tuple[str, str]]

    def settings(self) -> str:
        """Return what is to be written into ``pyproject.toml``."""
        return "".join(code for say, code in self.parts if say.startswith("In pyproject.toml"))

    def commands(self) -> list[list[str]]:
        """Return the words of the commands."""
        codes = [code for say, code in self.parts if not say.startswith("In pyproject.toml")]
        return [shlex.split(line) for code in codes for line in code.splitlines()]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Told]:
    """What the page shows, by choice and tool."""
    path = tmp_path_factory.mktemp("page") / "matrix.html"
    out = {}
    with chromium() as browser:
        assert guarded(["matrix", "--html", "--isolated", "-q", "-o", str(path)]) == 0
        page = browser.new_page()
        for name, choice in CHOICES.items():
            for tool in TOOLS:
                page.goto("about:blank")
                link = {"python": PYTHON, "platform": "linux-x86_64", "tool": tool.lower()}
                page.goto(f"{path.as_uri()}#{urlencode({**choice, **link})}")
                parts = page.evaluate(
                    "[...document.querySelectorAll('#answer-panel .snippet')].map((one) => ["
                    "one.previousElementSibling?.matches('.help')"
                    " ? one.previousElementSibling.textContent : '',"
                    "one.querySelector('code').textContent])"
                )
                out[name, tool] = Told([tuple(one) for one in parts])
    return out


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub(wheels=catalog_wheels()) as running:
        yield running


def pins(commands: list[list[str]]) -> dict[str, str]:
    """Return what the commands pin: package → version."""
    words = (word.partition("==") for command in commands for word in command)
    return {name: version for name, sign, version in words if sign}


def run(words: list[str], folder: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(
        words,
        cwd=folder,
        env={**tool_environment(folder), **environ},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"


def locked(path: Path) -> dict[str, str]:
    """Return the versions in a lock of uv, Poetry or PDM."""
    packages = tomllib.loads(path.read_text("utf-8"))["package"]
    return {one["name"]: one["version"] for one in packages}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("choice", CHOICES)
def test_a_client_takes_what_the_page_names(
    told: dict[tuple[str, str], Told], stub: Stub, tmp_path: Path, choice: str, tool: str
) -> None:
    if tool in ("Poetry", "PDM") and why_not(tool.lower()):
        pytest.skip(why_not(tool.lower()))
    said = told[choice, tool]
    if choice != "no-gpu":  # whether the channel for CPUs has the newest is for the catalog to say
        assert (CHANNELS in str(said.parts)) == (choice != "pypi")
    pypi = f"{stub.base}/pypi/simple"
    commands = [[one.replace(CHANNELS, f"{stub.base}/whl") for one in c] for c in said.commands()]
    wanted = pins(commands)
    assert {"torch", "torchvision"} <= wanted.keys()
    project = PROJECT.format(python=PYTHON)
    if tool == "Poetry":  # it knows PyPI by its host alone
        project += f'[[tool.poetry.source]]\nname = "index"\nurl = "{pypi}"\npriority = "primary"\n'
    settings = said.settings().replace(CHANNELS, f"{stub.base}/whl")
    (tmp_path / "pyproject.toml").write_text(f"{project}\n{settings}\n", "utf-8")
    if tool == "pip":
        ((pip, *words),) = commands
        assert pip == "pip"
        report = tmp_path / "report.json"
        more = ["--dry-run", "--ignore-installed", "--quiet", "--report", str(report)]
        run([sys.executable, "-m", "pip", *words, *more], tmp_path, {"PIP_INDEX_URL": pypi})
        installed = json.loads(report.read_text("utf-8"))["install"]
        found = {one["metadata"]["name"]: one["metadata"]["version"] for one in installed}
    elif tool == "uv":
        binary = uv_binary()
        if binary is None:
            pytest.skip("uv is not at hand")
        ((uv, *words),) = commands
        assert uv == "uv"
        interpreter = ("--python", sys.executable)
        environ = {"UV_DEFAULT_INDEX": pypi, "UV_CACHE_DIR": str(tmp_path / "uv-cache")}
        run([binary, *words, "--no-sync", *interpreter], tmp_path, environ)
        found = locked(tmp_path / "uv.lock")
    else:
        last = "--lock" if tool == "Poetry" else "--no-sync"
        for name, *words in commands:
            assert name == tool.lower()
            more = [last] if words[0] == "add" else []
            run([str(program(name)), *words, *more], tmp_path, {"PDM_PYPI_URL": pypi})
        found = locked(tmp_path / f"{tool.lower()}.lock")
    assert {name: found.get(name) for name in wanted} == wanted
