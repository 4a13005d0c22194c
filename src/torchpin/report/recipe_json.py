"""JSON report of ``recipe``: ``schemas/recipe.v1.json``."""

from __future__ import annotations

from typing import Any

from torchpin.catalog.model import Build
from torchpin.report.json_ import VERSION, Known, catalog_of, dump, ground
from torchpin.report.recipe import install_command, steps
from torchpin.resolve.source_model import BUILD, WHEEL, SourceBuild


def render(recipes: tuple[SourceBuild, ...], known: Known) -> str:
    """Return the recipes as JSON."""
    return dump(
        {
            "version": VERSION,
            "catalog": catalog_of(*known),
            "recipes": [_recipe(one) for one in recipes],
        }
    )


def build_of(build: Build | None) -> dict[str, Any] | None:
    """Return a build by its version and its place."""
    if build is None:
        return None
    return {"version": build.full_version, "channel": build.channel, "index": build.home}


def _recipe(found: SourceBuild) -> dict[str, Any]:
    asked = found.asked
    return {
        "group": asked.group,
        "gpus": [{"name": gpu.name, "arch": gpu.arch} for gpu in asked.gpus],
        "torch": asked.torch,
        "python": None if asked.python is None else str(asked.python),
        "platform": asked.platform,
        "driver": asked.driver,
        "status": found.status,
        "wheel": build_of(found.wheel),
        "command": install_command(found) if found.status == WHEEL else None,
        "beside": list(found.beside),
        "last": build_of(found.last),
        "alone": [{"gpu": gpu.name, "build": build_of(build)} for gpu, build in found.alone],
        "toolkit": found.toolkit,
        "arch": found.arch or None,
        "cudnn": None
        if found.cudnn is None
        else {"package": found.cudnn[0], "version": found.cudnn[1]},
        "companions": [one._asdict() for one in found.companions],
        "steps": [{"why": step.why, "commands": list(step.commands)} for step in steps(found)]
        if found.status == BUILD
        else [],
        "because": [ground(*note) for note in found.because],
        "notes": [ground(*note) for note in found.notes],
        "newest": found.newest or None,
    }
