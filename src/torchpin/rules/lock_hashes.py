"""The digests of a manifest that locks of Poetry and PDM carry."""

from __future__ import annotations

from typing import Any

from torchpin.documents.requirement import canonical


def poetry_hashes(text: str) -> tuple[str, ...]:
    """Return the digests that releases of Poetry give a ``pyproject.toml``; empty if unknown.

    SHA-256 over the JSON of ``[project]``'s Python, dependencies and extras, the dependency groups
    (since Poetry 2.3), and the dependencies, sources, extras and groups of ``[tool.poetry]``; where
    the first two are empty the last stands alone, with null for missing keys.
    Source: ``poetry/packages/locker.py``, compared with the lock of Poetry 2.5.
    """
    from torchpin.documents.toml_view import read_toml

    read = read_toml(text.encode("utf-8"))
    if read.problem is not None:
        return ()
    data = read.data
    project = data.get("project", {})
    poetry = data.get("tool", {}).get("poetry", {})
    keys = ("requires-python", "dependencies", "optional-dependencies")
    standard = {key: project[key] for key in keys if project.get(key) is not None}
    groups = data.get("dependency-groups", {})
    found = [_digest(standard, groups, poetry), _digest(standard, {}, poetry)]
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _digest(
    standard: dict[str, object], groups: dict[str, object], poetry: dict[str, object]
) -> str | None:
    own: dict[str, object] = {}
    for key in ("dependencies", "source", "extras", "dev-dependencies", "group"):
        if poetry.get(key) is not None or (key != "group" and not standard and not groups):
            own[key] = poetry.get(key)
    content: dict[str, object] = {}
    if standard:
        content["project"] = standard
    if groups:
        content["dependency-groups"] = groups
    content = {**content, "tool": {"poetry": own}} if content else own
    return _json_digest(content)


def pdm_hashes(text: str) -> tuple[str, ...]:
    """Return the digests that releases of PDM since 2.17 give a ``pyproject.toml``; empty if
    unknown.

    SHA-256 over the JSON of the sources, ``[project]``'s dependencies, extras and Python, the
    development groups and ``[tool.pdm.resolution]``. Releases differ in which groups they count and
    whether their names are normalized. Unknown for a workspace, whose members count as well.
    Source: ``pdm/project/project_file.py``, compared with the locks of PDM 2.29.
    """
    from torchpin.documents.toml_view import read_toml

    read = read_toml(text.encode("utf-8"))
    if read.problem is not None:
        return ()
    project = read.data.get("project")
    pdm = read.data.get("tool", {}).get("pdm", {})
    if not isinstance(project, dict) or not isinstance(pdm, dict) or "workspace" in pdm:
        return ()
    legacy = pdm.get("dev-dependencies", {})
    groups = read.data.get("dependency-groups", {})
    found = []
    for dev in (_merged(groups, legacy, True), _merged(groups, legacy, False), legacy):
        content = {
            "sources": pdm.get("source", []),
            "dependencies": project.get("dependencies", []),
            "dev-dependencies": dev,
            "optional-dependencies": project.get("optional-dependencies", {}),
            "requires-python": project.get("requires-python", ""),
            "resolution": pdm.get("resolution", {}),
        }
        found.append(_json_digest(content))
    return tuple(dict.fromkeys(one for one in found if one is not None))


def _merged(groups: object, legacy: object, normal: bool) -> dict[str, Any]:
    """Return the development groups of both tables."""
    found: dict[str, Any] = {}
    for table in (groups, legacy):
        for name, items in table.items() if isinstance(table, dict) else ():
            key = canonical(name) if normal else name
            found[key] = [*found.get(key, []), *(items if isinstance(items, list) else [])]
    return found


def _json_digest(content: object) -> str | None:
    import hashlib
    import json

    try:
        text = json.dumps(content, sort_keys=True)
    except TypeError:  # a date: the tools stop at it
        return None
    return hashlib.sha256(text.encode()).hexdigest()
