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


Part = tuple[str, str, str]
"""Project, ``extra`` or ``group``, name."""


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
    """Return every package of an index that ``uv sync`` installs from a lock."""
    return walked(lock, project, environment, extras, groups)[0]


def walked(
    lock: Mapping[str, Any],
    project: str,
    environment: Mapping[str, str],
    extras: Sequence[str],
    groups: Sequence[str],
) -> tuple[dict[str, Placed], set[Part]]:
    """Return every package of an index that ``uv sync`` installs from a lock, and the extras and
    groups that it switches on: those asked for, and those that members and groups ask for."""
    parts = {(project, "extra", one) for one in extras} | {(project, "group", g) for g in groups}
    while True:
        found, reached, twice = _walk(lock, project, environment, parts, groups)
        if reached <= parts:
            assert not twice or clashing(lock, parts), f"two builds of {twice}"
            return found, parts
        parts |= reached


def clashing(lock: Mapping[str, Any], parts: set[Part]) -> bool:
    """Return whether ``uv sync`` refuses to install these parts together."""
    for members in lock.get("conflicts", []):
        items = {(m["package"], k, m[k]) for m in members for k in ("extra", "group") if k in m}
        if len(items & parts) > 1:
            return True
    return False


def _walk(
    lock: Mapping[str, Any],
    project: str,
    environment: Mapping[str, str],
    parts: set[Part],
    groups: Sequence[str],
) -> tuple[dict[str, Placed], set[Part], set[str]]:
    packages: list[dict[str, Any]] = lock["package"]
    enabled = frozenset(encoded(name, kind, part) for name, kind, part in parts)
    root = next(p for p in packages if p["name"] == project)
    edges: list[dict[str, Any]] = list(root.get("dependencies", []))
    for group in groups:
        edges += root.get("dev-dependencies", {}).get(group, [])
    for name, kind, part in sorted(parts):
        if name == project and kind == "extra":
            edges += root.get("optional-dependencies", {}).get(part, [])
    found: dict[str, Placed] = {}
    reached: set[Part] = set()
    twice: set[str] = set()
    seen: set[tuple[str, str, tuple[str, ...]]] = set()
    while edges:
        edge = edges.pop()
        # uv asks whether the edge holds with the extras that it switches on itself.
        own = {encoded(edge["name"], "extra", extra) for extra in edge.get("extra", ())}
        if not holds(edge.get("marker"), environment, enabled | own):
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
        wanted = tuple(edge.get("extra", ()))
        key = (package["name"], package.get("version", ""), wanted)
        if key in seen:
            continue
        seen.add(key)
        edges += package.get("dependencies", []) if package is not root else []
        for extra in wanted:
            edges += package.get("optional-dependencies", {}).get(extra, [])
        if "registry" not in package["source"]:
            reached |= {(package["name"], "extra", extra) for extra in wanted}
            continue
        place = Picked(package["version"], home_of(package["source"]["registry"]))
        wheels = tuple(w["url"].rsplit("/", 1)[1] for w in package.get("wheels", []))
        placed = Placed(place, wheels)
        if found.get(package["name"], placed) != placed:
            twice.add(package["name"])
        found[package["name"]] = placed
    return found, reached, twice
