"""A folder whose files change at random, and checks of it as a user runs them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from torchpin.cache import VARIABLE, Cache
from torchpin.cli.main import guarded

FLEET = '[fleet.a]\ngpus = ["{gpu}"]\ndriver = "{driver}"\npython = "{python}"\n'
WORKFLOW = """\
on: [push]
jobs:
  unit:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/setup-python@v6
        with: {{python-version: "3.12"}}
      - run: pip install torch=={v}
      - run: pip install -r requirements.txt
"""
CALLED = """\
on:
  workflow_call:
    inputs:
      torch: {{type: string, default: "{v}"}}
jobs:
  a:
    runs-on: ubuntu-24.04
    steps:
      - run: pip install torch==${{{{ inputs.torch }}}}
"""
PROJECT = """\
[project]
name = "{name}"
version = "0"
requires-python = "==3.11.*"
dependencies = ["torch=={v}"]
"""
LOCK = """\
version = 1
revision = 3
requires-python = "==3.11.*"

[[package]]
name = "app"
version = "0"
source = {{ virtual = "." }}
dependencies = [{{ name = "torch" }}]

[[package]]
name = "torch"
version = "{v}"
source = {{ registry = "https://pypi.example/simple" }}
"""
TEXTS: dict[str, tuple[str, ...]] = {
    "repo/requirements.txt": (
        "torch=={v}\n",
        "torch=={v}+cu126\n",
        "-r base.in\n",
        "-r ../common.txt\n",
        "-c constraints.txt\ntorch\n",
        "numpy\n",
        "torch=={v}  # torchpin: ignore[TP201] old\n",
        "--extra-index-url https://me:secret@wheels.example/cu126\ntorch=={v}\n",
    ),
    "repo/base.in": ("torch=={v}\n", "-r requirements-gpu.txt\n", "numpy\n"),
    "repo/constraints.txt": ("torch<{v}\n", "torchvision==0.19.0\n"),
    "repo/requirements-gpu.txt": (
        "torch=={v}\n--index-url https://download.pytorch.org/whl/cu126\n",
    ),
    "common.txt": ("torch=={v}\n", "numpy\n"),
    "repo/sub/requirements.txt": ("torch=={v}\n", "-r ../base.in\n", "-r ../requirements.txt\n"),
    "repo/pyproject.toml": (
        PROJECT.replace("{name}", "app"),
        PROJECT.replace("{name}", "app") + "[tool.uv]\npackage = false\n",
        PROJECT.replace("{name}", "app") + '[tool.uv.workspace]\nmembers = ["members/*"]\n',
        '[tool.torchpin.fleet.b]\ngpus = ["V100"]\ndriver = "550.54.15"\npython = "3.11"\n',
        "[tool.black]\n",
    ),
    "repo/members/one/pyproject.toml": (PROJECT.replace("{name}", "one"),),
    "repo/members/two/pyproject.toml": (PROJECT.replace("{name}", "two"), "[tool.black]\n"),
    "repo/uv.lock": (LOCK,),
    "repo/pylock.toml": (
        'lock-version = "1.0"\ncreated-by = "x"\n[[packages]]\nname = "torch"\nversion = "{v}"\n',
    ),
    "repo/uv.toml": ('[[index]]\nname = "p"\nurl = "https://download.pytorch.org/whl/cu126"\n',),
    "uv.toml": ('[[index]]\nname = "p"\nurl = "https://download.pytorch.org/whl/cpu"\n',),
    "pyproject.toml": ('[tool.uv.workspace]\nmembers = ["repo"]\n', "[project]\n"),
    "repo/Dockerfile": (
        "FROM python:3.11\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n",
        "FROM nvidia/cuda:12.6.0-base-ubuntu22.04\nRUN pip install torch=={v}\n",
        "FROM scratch\n",
    ),
    "repo/sub/Dockerfile": ("FROM python:3.11\nRUN pip install -r requirements.txt\n",),
    "repo/compose.yml": (
        "services:\n  a:\n    build:\n      context: .\n      args: {{TORCH: '{v}'}}\n",
        "services:\n  a:\n    image: python:3.11\n    command: pip install torch=={v}\n",
    ),
    "repo/train.sh": (
        "#!/bin/sh\nuv pip install torch=={v}\n",
        "#!/bin/sh\npip install -r requirements.txt\n",
        "echo\n",
    ),
    "repo/.github/workflows/ci.yml": (
        WORKFLOW,
        "on: [push]\njobs:\n  a:\n    uses: ./.github/workflows/called.yml\n"
        "    with: {{torch: '{v}'}}\n",
    ),
    "repo/.github/workflows/called.yml": (CALLED,),
    "repo/Makefile": (
        "include versions.mk\nall:\n\tpip install torch==$(TORCH)\n",
        "all:\n\tuv pip install -r requirements.txt torch=={v}\n",
    ),
    "repo/versions.mk": ("TORCH := {v}\n",),
    "repo/setup.py": ("from setuptools import setup\nsetup(install_requires=['torch=={v}'])\n",),
    "repo/tool.py": (
        "# /// script\n# dependencies = ['torch=={v}']\n# ///\n",
        "import torch\ntorch.cholesky(a)\n",
    ),
    "repo/tool.py.lock": (LOCK,),
    "repo/tox.ini": ("[testenv]\ndeps =\n  torch=={v}\n  -r requirements.txt\n",),
    "repo/Pipfile": ('[packages]\ntorch = "=={v}"\n',),
    "repo/Pipfile.lock": ('{{"default": {{"torch": {{"version": "=={v}"}}}}, "develop": {{}}}}\n',),
    "repo/environment.yml": ("dependencies:\n  - pip:\n    - torch=={v}\n",),
    "repo/torchpin.toml": (
        FLEET,
        FLEET + 'files = ["requirements.txt"]\n',
        FLEET.replace("python =", "nothing ="),
        'sources = ["tool.py", "sub"]\n' + FLEET,
        'ignore = ["TP5"]\n' + FLEET,
        '[indexes]\n"https://wheels.example/cu126" = "cu126"\n' + FLEET,
    ),
    "torchpin.toml": (FLEET,),
    "repo/.gitignore": ("sub/\n", "requirements-gpu.txt\n", "*.sh\n", "\n"),
    "repo/sub/pyvenv.cfg": ("home = x\n",),
    "repo/node_modules/requirements.txt": ("torch=={v}\n",),
}
"""Files and what they may hold."""
VERSIONS = ("2.14.1", "2.13.0", "2.4.0", "1.13.1", "9.9.9")
GPUS = ("V100", "A100", "B200", "H100")
ARGUMENTS: tuple[tuple[str, ...], ...] = (
    (".",),
    (),
    ("sub", "."),
    ("../repo",),
    ("torchpin.toml",),
    ("requirements.txt", "sub"),
    (".", "--select", "TP1,TP2"),
    (".", "--ignore", "TP5"),
    (".", "--gpu", "V100", "--driver", "550.54.15", "--python", "3.11"),
    (".", "--isolated"),
    (".", "--client", "uv"),
    (".", "--policy", "newest"),
    (".", "--per-file-ignores", "sub/*:TP"),
    (".", "--unsafe-fixes"),
    (".", "--severity", "info"),
    (".", "--evidence", "measured"),
    (".", "--jobs", "2"),
    (".", "--quiet"),
)
FORMATS = ("text", "text", "json", "concise", "sarif", "github", "markdown", "gitlab")


class Seen(NamedTuple):
    """What a user sees of a run."""

    code: int
    out: str
    err: str


class World:
    """The folder, a source of chance, and what was recalled so far."""

    def __init__(
        self, root: Path, seed: int, monkeypatch: pytest.MonkeyPatch, *, git: bool
    ) -> None:
        self.root = root
        self.chance = random.Random(seed)
        self.hits = 0
        (root / "repo" / "sub").mkdir(parents=True)
        if git:
            subprocess.run(["git", "init", "-q", str(root / "repo")], check=True)
        monkeypatch.chdir(root / "repo")
        monkeypatch.delenv(VARIABLE, raising=False)
        monkeypatch.setenv("TORCHPIN_CACHE_DIR", str(root / "cache"))
        recall = Cache.recall

        def counted(cache: Cache) -> object:
            found = recall(cache)
            self.hits += found is not None
            return found

        monkeypatch.setattr(Cache, "recall", counted)

    def text(self, name: str) -> str:
        """Return a text that the file may hold."""
        return self.chance.choice(TEXTS[name]).format(
            v=self.chance.choice(VERSIONS),
            gpu=self.chance.choice(GPUS),
            driver=self.chance.choice(("550.54.15", "580.65.06")),
            python=self.chance.choice(("3.11", "3.12")),
        )

    def change(self) -> str:
        """Change something, and return what."""
        name = self.chance.choice(list(TEXTS))
        path = self.root / name
        what = self.chance.choice(("write",) * 6 + ("delete",) * 3 + ("rename", "link", "times"))
        path.parent.mkdir(parents=True, exist_ok=True)
        if what == "write":
            self.write(path, self.text(name).encode())
        elif what == "delete":
            self.remove(path)
        elif what == "rename":
            other = self.root / self.chance.choice(list(TEXTS))
            if path.is_file() and other.parent.is_dir() and other != path:
                self.remove(other)
                path.replace(other)
        elif what == "link":
            other = self.root / self.chance.choice(list(TEXTS))
            if other != path:
                self.remove(path)
                path.symlink_to(os.path.relpath(other, path.parent))
        elif path.is_file():
            os.utime(path, (1, 1))
        return f"{what} {name}"

    def write(self, path: Path, data: bytes) -> None:
        """Write a file, often without a trace in its size and times."""
        before = path.stat() if path.is_file() else None
        if path.is_symlink():
            path.unlink()
        path.write_bytes(data)
        if before is not None:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def remove(self, path: Path) -> None:
        """Remove a file or a link, if it is there."""
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)


def run(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> Seen:
    """Run ``check`` in this process, as from the console."""
    code = guarded(["check", *arguments])
    captured = capsys.readouterr()
    return Seen(code, captured.out, captured.err)
