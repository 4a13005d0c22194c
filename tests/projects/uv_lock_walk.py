"""Reads a real ``uv.lock``: which build of the family an environment gets with some extras.

An own, slow reader on tomllib, so that the comparison does not rest on torchpin's reader of locks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from packaging.markers import Marker
from tests.clients.runners import Picked, home_of

tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_EXTRA = re.compile(r"extra\s*(==|!=)\s*'([^']*)'")
_TRUE, _FALSE = "python_version >= '0'", "python_version < '0'"


class Placed(NamedTuple):
    """A build in a lock."""

    picked: Picked
    wheels: tuple[str, ...]
    """File names."""


def holds(marker: str | None, environment: Mapping[str, str], enabled: frozenset[str]) -> bool:
    """Return whether a marker of a lock holds; ``enabled`` are uv's encoded extras and groups."""
    if not marker:
        return True

    def decided(match: re.Match[str]) -> str:
        return _TRUE if (match[2] in enabled) == (match[1] == "==") else _FALSE

    return _marker(_EXTRA.sub(decided, marker)).evaluate(dict(environment))


@lru_cache(4096)
def _marker(text: str) -> Marker:
    return Marker(text)


def encoded(project: str, kind: str, name: str) -> str:
    """Return how uv writes an extra or group in markers: ``extra-4-demo-cu126``."""
    return f"{kind}-{len(project)}-{project}-{name}"


def parse(text: str) -> dict[str, Any]:
    """Return a lock as TOML."""
    data: dict[str, Any] = tomllib.loads(text)
    return data


def installed(
    lock: Mapping[str, Any],
    project: str,
    environment: Mapping[str, str],
    extras: Sequence[str],
    groups: Sequence[str],
) -> dict[str, Placed]:
    """Return every package but the project that ``uv sync`` installs from a lock."""
    packages: list[dict[str, Any]] = lock["package"]
    enabled = frozenset(
        [encoded(project, "extra", extra) for extra in extras]
        + [encoded(project, "group", group) for group in groups]
    )
    root = next(p for p in packages if p["name"] == project)
    edges: list[dict[str, Any]] = list(root.get("dependencies", []))
    for extra in extras:
        edges += root.get("optional-dependencies", {}).get(extra, [])
    for group in groups:
        edges += root.get("dev-dependencies", {}).get(group, [])
    found: dict[str, Placed] = {}
    seen: set[tuple[str, str]] = set()
    while edges:
        edge = edges.pop()
        if not holds(edge.get("marker"), environment, enabled) or edge["name"] == project:
            continue
        matching = [
            p
            for p in packages
            if p["name"] == edge["name"]
            and edge.get("version", p.get("version")) == p.get("version")
            and edge.get("source", p["source"]) == p["source"]
        ]
        if len(matching) > 1:
            matching = [
                p
                for p in matching
                if any(holds(m, environment, enabled) for m in p.get("resolution-markers", []))
            ]
        assert len(matching) == 1, (edge, matching)
        package = matching[0]
        key = (package["name"], package["version"])
        if key in seen:
            continue
        seen.add(key)
        home = home_of(package["source"].get("registry", ""))
        wheels = tuple(w["url"].rsplit("/", 1)[1] for w in package.get("wheels", []))
        assert package["name"] not in found, f"two builds of {package['name']}"
        found[package["name"]] = Placed(Picked(package["version"], home), wheels)
        edges += package.get("dependencies", [])
    return found
