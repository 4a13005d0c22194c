"""The ``[tool.poetry]`` part of a project file.

A constraint that PEP 440 cannot say (``1.0 || 3.0``) gives a declaration that is not valid, has
no specifier and carries the option ``poetry-union`` with the text: what it selects is unknown,
and Poetry does not refuse it, so that no problem is listed. Source: Poetry's pages on the
``pyproject.toml`` file, on dependency specification and on repositories.
"""

from __future__ import annotations

import re

from torchpin.documents.base import OptionText, Span
from torchpin.documents.manifest import Asked, Manifest
from torchpin.documents.poetry_constraint import python_marker, to_pep440
from torchpin.documents.project import Enriched, ProjectIndex, Source
from torchpin.documents.requirement import canonical
from torchpin.documents.toml_view import View
from torchpin.documents.uv_manifest import table_span

UNION = "poetry-union"
OPTIONAL = "optional"
"""Scope of an optional dependency that no extra names: it is never installed."""


def read_poetry(manifest: Manifest, poetry: View, project: View | None) -> None:
    """Take in ``[tool.poetry]``; what ``[project]`` declares already is only routed by it."""
    name = poetry.string("name")
    if name is not None and not manifest.name:
        manifest.name = name.value
    mode = poetry.get("package-mode")
    if mode is not None:
        manifest.package = poetry.flag("package-mode")
        manifest.setting("poetry.package-mode", mode)
    _read_indexes(manifest, poetry)
    own = project is None or not (
        "dependencies" in project.value or "optional-dependencies" in project.value
    )
    extras = _extras(manifest, poetry) if own else {}
    for key, view in poetry.entries("dependencies"):
        if key.lower() == "python":
            _read_python(manifest, view)
        else:
            _read_dependency(manifest, key, view, "", extras, declare=own)
    taken = set(manifest.groups)
    optional: set[str] = set()
    for key, view in poetry.entries("dev-dependencies"):
        manifest.group("dev")
        _read_dependency(manifest, key, view, "group:dev", {}, declare="dev" not in taken)
    for group, view in poetry.entries("group"):
        if not view.is_table("a table"):
            continue
        manifest.group(group)
        if view.flag("optional"):
            optional.add(group)
        includes = tuple(item.value for item in view.strings("include-groups"))
        if includes:
            manifest.group_includes.append((group, includes))
        for key, below in view.entries("dependencies"):
            _read_dependency(manifest, key, below, f"group:{group}", {}, group not in taken)
    if manifest.default_groups is None:
        manifest.default_groups = tuple(g for g in manifest.groups if g not in optional)


def _read_python(manifest: Manifest, view: View) -> None:
    if not isinstance(view.value, str):
        view.wrong("a string")
        return
    if manifest.requires_python is not None:
        return
    try:
        specifier = to_pep440(view.value)
    except ValueError as error:
        manifest.problem(
            f"the Python constraint is not understood: {error}", view.span, "specifier"
        )
        return
    if specifier:  # a union that PEP 440 cannot say bounds nothing that is known
        manifest.requires_python = specifier
        manifest.requires_python_span = view.span


def _extras(manifest: Manifest, poetry: View) -> dict[str, list[str]]:
    """Return the extras that an optional dependency belongs to, by its name."""
    found: dict[str, list[str]] = {}
    for extra, view in poetry.entries("extras"):
        manifest.extra(extra)
        for item in view.items():
            if isinstance(item.value, str):
                name = re.split(r"[\s\[<>=!~;(]", item.value.strip(), maxsplit=1)[0]
                found.setdefault(canonical(name), []).append(extra)
            else:
                item.wrong("the name of a dependency")
    return found


def _read_dependency(
    manifest: Manifest,
    name: str,
    view: View,
    scope: str,
    extras: dict[str, list[str]],
    declare: bool,
) -> None:
    key = view.key
    if isinstance(view.value, list):
        for item in view.items():
            if item.is_table() or isinstance(item.value, str):
                _read_one(manifest, name, item, key, scope, extras, declare, listed=True)
            else:
                item.wrong("a constraint or a table")
    elif view.is_table() or isinstance(view.value, str):
        _read_one(manifest, name, view, key, scope, extras, declare, listed=False)
    else:
        view.wrong("a constraint, a table or an array of tables")


def _read_one(
    manifest: Manifest,
    name: str,
    view: View,
    key: Span,
    scope: str,
    extras: dict[str, list[str]],
    declare: bool,
    listed: bool,
) -> None:
    table = view.is_table()
    marker, marker_span = _marker(manifest, view) if table else (None, None)
    source = view.string("source") if table else None
    if source is not None:
        manifest.sources.append(
            Source(
                package=canonical(name),
                kind="index",
                value=source.value,
                marker=marker,
                extra=None,
                group=scope.removeprefix("group:") if scope else None,
                span=table_span(manifest, view),
                value_span=source.span,
                marker_span=marker_span,
                key_span=key,
                listed=listed,
            )
        )
    asked = Asked(name, "", marker=marker, marker_span=marker_span, name_span=key)
    version = view.string("version") if table else view
    options: list[OptionText] = []
    if version is not None:
        asked = _constrain(manifest, asked, version)
        options += asked.options
    if not declare:
        manifest.enriched.append(
            Enriched(
                package=canonical(name),
                group=scope.removeprefix("group:") if scope else None,
                specifier=asked.specifier if asked.valid else "",
                understood=asked.valid,
                marker=marker,
                source=source.value if source is not None else None,
            )
        )
        return
    if table:
        asked = asked._replace(extras=tuple(canonical(v.value) for v in view.strings("extras")))
        for place in ("url", "git", "path", "file"):
            where = view.string(place)
            if where is not None:
                url = where.value
                if place == "git" and not url.startswith("git+"):
                    url = "git+" + url
                for part in ("rev", "tag", "branch"):
                    at = view.string(part)
                    if at is not None and place == "git":
                        url += f"@{at.value}"
                        break
                asked = asked._replace(url=url, url_span=where.span)
                break
        if view.flag("allow-prereleases"):
            flag = view.get("allow-prereleases")
            assert flag is not None
            options.append(OptionText("--pre", None, flag.entry, None))
    asked = asked._replace(options=tuple(options))
    if listed or view.node.kind == "table":
        span = table_span(manifest, view)
    else:
        span = Span(key.start, view.node.end)
    if scope or not (table and view.flag("optional")):
        manifest.ask(asked, span, scope)
        return
    for extra in extras.get(canonical(name), ()):
        manifest.ask(asked, span, f"extra:{extra}")
    if canonical(name) not in extras:
        manifest.ask(asked, span, OPTIONAL)


def _constrain(manifest: Manifest, asked: Asked, version: View) -> Asked:
    span = version.span
    asked = asked._replace(specifier_span=span, fixed=not version.plain)
    try:
        specifier = to_pep440(version.value)
    except ValueError as error:
        manifest.problem(f"{version.value[:60]!r} is no constraint: {error}", span, "specifier")
        return asked._replace(specifier=version.value, valid=False)
    if specifier is None:
        option = OptionText(UNION, version.value, span, span)
        return asked._replace(options=(option,), valid=False, fixed=True)
    return asked._replace(specifier=specifier)


def _marker(manifest: Manifest, view: View) -> tuple[str | None, Span | None]:
    """Return the marker of an entry, its ``python`` and ``platform`` included, and the place of
    ``markers`` if nothing else made it."""
    texts: list[str] = []
    place: Span | None = None
    markers = view.string("markers")
    if markers is not None and markers.value.strip():
        texts.append(markers.value)
        place = markers.span if markers.plain else None
    python = view.string("python")
    if python is not None:
        try:
            text = python_marker(python.value)
        except ValueError as error:
            message = f"the Python constraint is not understood: {error}"
            manifest.problem(message, python.span, "specifier")
        else:
            if text:
                texts.append(text)
    platform = view.string("platform")
    if platform is not None:
        names = [name.strip() for name in re.split(r"\|\|?", platform.value)]
        tests = []
        for name in names:
            exclude = name.startswith("!=")
            bare = name.lstrip("!= ").strip("'\"")
            tests.append(f'sys_platform {"!=" if exclude else "=="} "{bare}"')
        texts.append(" or ".join(tests))
    if not texts:
        return None, None
    if len(texts) == 1:
        return texts[0], place
    return " and ".join(f"({t})" if " or " in t else t for t in texts), None


_PRIORITIES = ("default", "primary", "supplemental", "secondary", "explicit")


def _read_indexes(manifest: Manifest, poetry: View) -> None:
    """Take in ``[[tool.poetry.source]]``: primary ones in order, PyPI itself where it is not
    named being left out, then supplemental ones, then explicit ones."""
    ranked: list[tuple[int, ProjectIndex]] = []
    for item in poetry.items("source", expected="an array of tables"):
        if not item.is_table("a table"):
            continue
        name, url, given = item.string("name"), item.string("url"), item.string("priority")
        if name is None:
            if "name" not in item.value:
                item.wrong("a table with a name")
            continue
        if url is None and name.value.lower() != "pypi":
            if "url" not in item.value:
                item.wrong("a table with a url")
            continue
        priority = given.value.lower() if given is not None else "primary"
        if given is None and item.flag("secondary"):
            priority = "secondary"
        elif given is None and item.flag("default"):
            priority = "default"
        if priority not in _PRIORITIES:
            assert given is not None
            given.wrong("one of " + ", ".join(_PRIORITIES))
            priority = "primary"
        default = priority in ("primary", "default")
        ranked.append(
            (
                _PRIORITIES.index(priority),
                ProjectIndex(
                    tool="poetry",
                    name=name.value,
                    url=url.value if url is not None else "",
                    explicit=priority == "explicit",
                    default=default,
                    option="--index-url" if default else "--extra-index-url",
                    span=table_span(manifest, item),
                    url_span=url.span if url is not None else name.span,
                    name_span=name.span,
                    explicit_span=given.span if given is not None else None,
                    priority=priority,
                ),
            )
        )
    manifest.indexes += [index for _, index in sorted(ranked, key=lambda pair: pair[0])]
