"""Installs the stand-ins for torch and its companions, with a Python that has them."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("fake_torch")
V100 = ("Tesla V100-SXM2-32GB", (7, 0), 32768)
BUILD = "2.14.1+cu126"
BEFORE = ""
"""Folders before that of the stand-ins, each with a colon."""


def install(folder: Path, plan: dict[str, Any] | None, **companions: str) -> str:
    """Return a Python that has the stand-ins; ``plan`` None: no torch.

    Args:
        folder: where it is made.
        plan: see ``fake_torch``; ``version`` and ``cuda`` are those of a usual build if left out.
        companions: package → version.
    """
    site = folder / "site"
    site.mkdir(parents=True)
    if plan is not None:
        full = {"version": BUILD, "cuda": "12.6", **plan}
        shutil.copytree(SOURCE / "torch", site / "torch")
        (site / "torch" / "plan.json").write_text(json.dumps(full))
        text = f"__version__ = {full['version']!r}\ncuda = {full['cuda']!r}\n"
        (site / "torch" / "version.py").write_text(text)
        _info(site, "torch", full["version"])
    for name, version in companions.items():
        shutil.copytree(SOURCE / name, site / name)
        (site / name / "version.py").write_text(f"__version__ = {version!r}\n")
        _info(site, name, version)
    python = folder / "python"
    # Without its own site-packages, where a real torch may be.
    words = f"PYTHONPATH={shlex.quote(f'{BEFORE}{site}')} exec {shlex.quote(sys.executable)} -S"
    python.write_text(f'#!/bin/sh\n{words} "$@"\n')
    python.chmod(0o755)
    return str(python)


def _info(site: Path, name: str, version: str) -> None:
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    requires = "" if name == "torch" else f"Requires-Dist: torch=={BUILD.partition('+')[0]}\n"
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}\n"
    (folder / "METADATA").write_text(text)
