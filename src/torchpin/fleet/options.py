"""A one-group fleet out of command line options."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from torchpin.errors import ConfigError, UsageError
from torchpin.fleet.checks import contradictions, default_platform
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import Fleet, Gpu, NodeGroup, Settings
from torchpin.fleet.values import parse_driver, parse_glibc, parse_platform, parse_pythons

_T = TypeVar("_T")
_V = TypeVar("_V")
NO_GPU = ("none", "cpu")
"""What ``--gpu`` takes for machines without a GPU."""


UNNAMED = "command-line"
"""What the group of options is called, where a name is needed."""


def fleet_from_options(
    *,
    gpus: Sequence[str],
    driver: str | None = None,
    python: str | Sequence[str] | None = None,
    platform: str | None = None,
    glibc: str | None = None,
    name: str = UNNAMED,
) -> Fleet:
    """Return the fleet of ``--gpu --driver --python --platform --glibc``.

    Args:
        gpus: values of ``--gpu``, each a name or a comma-separated list of names; ``none`` or
            ``cpu`` for machines without a GPU.
        driver: NVIDIA driver version.
        python: a version, a specifier, or several; a comma separates versions.
        platform: a platform in any common spelling.
        glibc: glibc version.
        name: name of the group.

    Raises:
        UsageError: no ``--gpu`` at all, or ``none`` beside a GPU.
        ConfigError: a value is unknown or impossible, or two contradict each other.
    """
    texts = [part.strip() for value in gpus for part in value.split(",") if part.strip()]
    if not texts:
        raise UsageError(
            "a fleet on the command line needs --gpu",
            hint='write --gpu "Tesla V100", or --gpu none for machines without a GPU',
        )
    found: list[Gpu] = []
    none = [text for text in texts if text.lower() in NO_GPU]
    if none and len(none) < len(texts):
        raise UsageError(f"--gpu {none[0]} beside another --gpu")
    if not none:
        for text in texts:
            found += _option("--gpu", find_gpu, text)
    group = NodeGroup(
        name,
        tuple(found),
        _option("--python", parse_pythons, versions(python)) if python else (),
        _option("--platform", parse_platform, platform) if platform else default_platform(found),
        _option("--driver", parse_driver, driver) if driver else None,
        _option("--glibc", parse_glibc, glibc) if glibc else None,
    )
    problems = contradictions(group, lambda key: None)
    if problems:
        raise ConfigError("\n".join(as_option(one, name) for one in problems))
    return Fleet((group,), Settings(), None)


def as_option(problem: ConfigError, name: str) -> str:
    """Return what a contradiction of a profile is called where options declare the fleet."""
    message = problem.message.removeprefix(f"fleet {UNNAMED}: ") if name == UNNAMED else ""
    hint = problem.hint.replace("gpus = []", "--gpu none")
    hint = re.sub(r'platform = "([\w-]+)"', r"--platform \1", hint)
    if hint.startswith("for AMD"):
        hint = "leave --driver out: it is for NVIDIA GPUs"
    return str(ConfigError(message or problem.message, hint=hint.replace("declare --", "write --")))


def versions(python: str | Sequence[str]) -> list[str]:
    """Return a list of versions; in a specifier the comma belongs to the text."""
    texts = [python] if isinstance(python, str) else list(python)
    parts: list[str] = []
    for text in texts:
        parts += [text] if any(c in text for c in "<>=!~") else text.split(",")
    return [part.strip() for part in parts if part.strip()]


def _option(option: str, parse: Callable[[_V], _T], value: _V) -> _T:
    try:
        return parse(value)
    except ConfigError as error:
        raise ConfigError(f"{option}: {error.message}", hint=error.hint) from error
