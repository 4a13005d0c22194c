"""The ``[tool.uv]`` part of a project file, which is also the whole of a ``uv.toml``.

Source: uv's reference of settings and its pages on indexes, dependencies and workspaces.
"""

from __future__ import annotations

import re

from torchpin.documents.base import Span
from torchpin.documents.manifest import Manifest
from torchpin.documents.project import ConflictItem, ConflictSet, ProjectIndex, Source
from torchpin.documents.requirement import canonical
from torchpin.documents.toml_view import View
from torchpin.documents.uv_keys import SOURCE_KNOWN, read_settings

PIP_SETTINGS = (
    "torch-backend", "index-strategy", "fork-strategy", "prerelease", "resolution", "no-sources",
    "no-index", "exclude-newer", "python-platform", "python-version", "python", "extra", "group",
    "all-extras", "universal",
)  # fmt: skip
_PASSED_OVER = "uv warns and passes over the settings of this file"
"""What uv does where a setting has a wrong shape: it stops only at what belongs to the project
(sources, indexes, conflicts, workspace, lists of requirements). Measured with uv 0.13.9."""
_SCOPES = (
    ("constraint-dependencies", "constraint"),
    ("override-dependencies", "override"),
    ("dev-dependencies", "group:dev"),
)


def read_uv(manifest: Manifest, uv: View) -> None:
    """Take in ``[tool.uv]``."""
    manifest.uv_table = True
    for key, scope in _SCOPES:
        if key == "dev-dependencies" and uv.get(key) is not None:
            manifest.group("dev")
        for item in uv.items(key, expected="an array of requirements"):
            if isinstance(item.value, str):
                manifest.requirement(item, scope)
            elif not (key == "override-dependencies" and item.is_table()):
                item.wrong("a string")
    _read_sources(manifest, uv)
    indexes = _indexes(manifest, uv, "")
    _read_conflicts(manifest, uv)
    manifest.environments = tuple(view.value for view in uv.strings("environments", single=True))
    manifest.required_environments = tuple(
        view.value for view in uv.strings("required-environments", single=True)
    )
    default = uv.get("default-groups")
    if default is not None:
        if default.value == "all":
            manifest.default_groups = ("*",)
        else:
            manifest.default_groups = tuple(v.value for v in uv.strings("default-groups"))
    read_settings(manifest, uv)
    package = uv.get("package")
    if package is not None:
        manifest.package = uv.flag("package")
    manifest.workspace_members = tuple(v.value for v in uv.strings("workspace", "members"))
    manifest.workspace_exclude = tuple(v.value for v in uv.strings("workspace", "exclude"))
    since = len(manifest.problems)
    pip = uv.get("pip")
    if pip is not None and pip.is_table("a table"):
        indexes += _indexes(manifest, pip, "pip")
        for key in PIP_SETTINGS:
            view = pip.get(key)
            if view is not None:
                manifest.setting(f"uv.pip.{key}", view)
    if uv.path:
        _pass_over(manifest, since)
    manifest.indexes += indexes


def _pass_over(manifest: Manifest, since: int) -> None:
    """Mark the problems from number ``since`` on as such that uv only warns of."""
    for one in manifest.problems[since:]:
        manifest.ignored = manifest.ignored or one.message
    manifest.harmless(since, _PASSED_OVER)


def _read_sources(manifest: Manifest, uv: View) -> None:
    for name, view in uv.entries("sources"):
        if isinstance(view.value, list):
            for item in view.items():
                if item.is_table('a table such as { index = "NAME" }'):
                    _read_source(manifest, name, item, view.key, listed=True)
        elif view.is_table('a table such as { index = "NAME" }, or an array of such tables'):
            _read_source(manifest, name, view, view.key, listed=False)


def _read_source(manifest: Manifest, name: str, view: View, key: Span, listed: bool) -> None:
    kind = value = ""
    value_span = None
    for one in view.value:
        if one not in SOURCE_KNOWN:
            manifest.problem(f"uv stops: a source has no key {str(one)[:60]!r}", view.span)
    for one in ("index", "git", "url", "path"):
        found = view.string(one)
        if found is not None:
            kind, value, value_span = one, found.value, found.span
            break
    if not kind and view.flag("workspace"):
        kind = "workspace"
    if not kind:
        if not any(one in view.value for one in ("index", "git", "url", "path")):
            view.wrong("a table with one of index, git, url, path, workspace")
        return
    marker, extra, group = view.string("marker"), view.string("extra"), view.string("group")
    manifest.sources.append(
        Source(
            package=canonical(name),
            kind=kind,
            value=value,
            marker=marker.value if marker else None,
            extra=extra.value if extra else None,
            group=group.value if group else None,
            span=table_span(manifest, view),
            value_span=value_span,
            marker_span=marker.span if marker else None,
            key_span=key,
            listed=listed,
        )
    )


def table_span(manifest: Manifest, view: View) -> Span:
    """Return the whole of a table: in braces, or from its header to the end of its last line.

    A table that dotted keys make is taken from the first to the last of these.
    """
    node = view.node
    if node.kind != "table":
        return Span(max(node.start, 0), max(node.end, 0))
    start, end = node.start, node.end
    stack = [node]
    while stack:
        for child in (stack.pop().entries or {}).values():
            if child.entry is not None:
                start = child.entry.start if start < 0 else min(start, child.entry.start)
                end = max(end, child.entry.end)
            elif child.kind == "table":
                stack.append(child)
    if start < 0:
        return Span(0, 0)
    return Span(start, manifest.line_span(Span(start, end)).end)


def _check_index(manifest: Manifest, index: ProjectIndex, others: list[ProjectIndex]) -> None:
    """Note what uv (0.13.9) refuses of an index, beside the ``others`` before it."""
    place = index.name_span or index.url_span
    if index.name is not None and not re.fullmatch(r"[A-Za-z0-9_.-]+", index.name):
        manifest.problem("the name of an index is made of letters, digits, -, _ and .", place)
    elif index.name is not None and any(one.name == index.name for one in others):
        manifest.problem(f"there are two indexes of the name {index.name}", place)
    if index.explicit and index.name is None:
        manifest.problem("an explicit index needs a name", place)
    if index.default and any(one.default for one in others):
        manifest.problem("there is another index with default = true", place)


def _indexes(manifest: Manifest, table: View, scope: str) -> list[ProjectIndex]:
    """Return the indexes of ``[tool.uv]`` or ``[tool.uv.pip]`` in uv's order of priority:
    named ones, extra ones, the default one, link pages."""
    named: list[ProjectIndex] = []
    default: list[ProjectIndex] = []
    extra: list[ProjectIndex] = []
    links: list[ProjectIndex] = []
    for item in table.items("index", expected="an array of tables"):
        if not item.is_table("a table"):
            continue
        url = item.string("url")
        if url is None:
            if "url" not in item.value:
                item.wrong("a table with a url")
            continue
        name = item.string("name")
        explicit = item.get("explicit")
        is_default = item.flag("default")
        flat = item.string("format")
        is_flat = flat is not None and flat.value == "flat"
        option = "--index-url" if is_default else "--extra-index-url"
        index = ProjectIndex(
            tool="uv",
            name=name.value if name else None,
            url=url.value,
            explicit=item.flag("explicit"),
            default=is_default,
            option="--find-links" if is_flat else option,
            span=_whole(item),
            url_span=url.span,
            name_span=name.span if name else None,
            explicit_span=explicit.span if explicit else None,
            scope=scope,
        )
        _check_index(manifest, index, [*named, *default])
        (default if is_default else named).append(index)
    since = len(manifest.problems)
    for key, option, found in (
        ("extra-index-url", "--extra-index-url", extra),
        ("index-url", "--index-url", default),
        ("find-links", "--find-links", links),
    ):
        whole = table.get(key)
        if whole is None:
            continue
        only = table.string(key) if key == "index-url" else None
        views = table.strings(key) if key != "index-url" else [only] if only else []
        for view in views:
            found.append(
                ProjectIndex(
                    tool="uv-url",
                    name=None,
                    url=view.value,
                    explicit=False,
                    default=key == "index-url",
                    option=option,
                    span=whole.entry,
                    url_span=view.span,
                    name_span=None,
                    explicit_span=None,
                    scope=scope,
                )
            )
    if table.path == "tool.uv":
        _pass_over(manifest, since)
    return [*named, *extra, *default, *links]


def _whole(item: View) -> Span:
    node = item.node
    if node.kind != "table":
        return node.span
    end = node.end
    for child in (node.entries or {}).values():
        if child.entry is not None:
            end = max(end, child.entry.end)
    line_end = item.text.find("\n", end)
    if line_end < 0:
        line_end = len(item.text)
    elif item.text[line_end - 1] == "\r":
        line_end -= 1
    return Span(node.start, line_end)


def _read_conflicts(manifest: Manifest, uv: View) -> None:
    for view in uv.items("conflicts", expected="an array of arrays of tables"):
        items: list[ConflictItem] = []
        for item in view.items(expected="an array of tables"):
            if not item.is_table('a table such as { extra = "NAME" }'):
                continue
            package, extra = item.string("package"), item.string("extra")
            group = item.string("group")
            if package is None and extra is None and group is None:
                item.wrong('a table such as { extra = "NAME" }')
                continue
            items.append(
                ConflictItem(
                    canonical(package.value) if package else None,
                    extra.value if extra else None,
                    group.value if group else None,
                )
            )
        if isinstance(view.value, list) and len(items) == len(view.value) == 1:
            view.wrong("an array of two extras or groups at least")
        if items:
            manifest.conflicts.append(ConflictSet(tuple(items), view.node.span))
