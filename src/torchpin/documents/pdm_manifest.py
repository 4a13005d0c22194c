"""The ``[tool.pdm]`` part of a project file. Source: PDM's pages on configuration and usage."""

from __future__ import annotations

from torchpin.documents.base import Span
from torchpin.documents.manifest import Asked, Manifest
from torchpin.documents.project import ProjectIndex, Source
from torchpin.documents.requirement import canonical
from torchpin.documents.toml_view import View
from torchpin.documents.uv_manifest import table_span

SETTINGS = (
    ("distribution",),
    ("resolution", "respect-source-order"),
    ("resolution", "excludes"),
    ("resolution", "allow-prereleases"),
    ("options", "install"),
    ("options", "lock"),
)


def read_pdm(manifest: Manifest, pdm: View) -> None:
    """Take in ``[tool.pdm]``; ``pdm install`` takes every dependency group if not told."""
    for item in pdm.items("source", expected="an array of tables"):
        if item.is_table("a table"):
            _read_index(manifest, item)
    for group, view in pdm.entries("dev-dependencies"):
        manifest.group(group)
        for item in view.items(expected="an array of requirements"):
            if not isinstance(item.value, str):
                item.wrong("a string")
            else:  # paths and ``-e`` are taken as well
                manifest.requirement(item, f"group:{group}", lenient=True)
    for name, view in pdm.entries("resolution", "overrides"):
        _read_override(manifest, name, view)
    for path in SETTINGS:
        found = pdm.get(*path)
        if found is not None:
            manifest.setting("pdm." + ".".join(path), found)
    if pdm.get("distribution") is not None:
        manifest.package = pdm.flag("distribution")
    if manifest.default_groups is None and manifest.groups:
        manifest.default_groups = ("*",)


def _read_override(manifest: Manifest, name: str, view: View) -> None:
    if not isinstance(view.value, str):
        return
    asked = Asked(name, "", name_span=view.key, fixed=not view.plain)
    written = view.value.strip()
    if "://" in written:
        asked = asked._replace(url=written, url_span=view.span)
    else:
        bare = written[:1].isdigit() or written == "*"  # PDM stops at "torch==*"
        asked = asked._replace(
            specifier=f"=={written}" if bare else written,
            specifier_span=view.span,
            valid=written != "*",
        )
    manifest.ask(asked, Span(view.key.start, view.span.end), "override")


def _read_index(manifest: Manifest, item: View) -> None:
    name, url, kind = item.string("name"), item.string("url"), item.string("type")
    if url is None:  # refines a source of the user's own settings
        return
    include = item.strings("include_packages")
    exclude = tuple(view.value for view in item.strings("exclude_packages"))
    default = name is not None and name.value == "pypi"
    if kind is not None and kind.value == "find_links":
        option = "--find-links"
    else:
        option = "--index-url" if default else "--extra-index-url"
    manifest.indexes.append(
        ProjectIndex(
            tool="pdm",
            name=name.value if name else None,
            url=url.value,
            explicit="*" in exclude,
            default=default,
            option=option,
            span=table_span(manifest, item),
            url_span=url.span,
            name_span=name.span if name else None,
            explicit_span=None,
            include=tuple(view.value for view in include),
            exclude=exclude,
        )
    )
    if name is None:
        return
    for view in include:
        manifest.sources.append(
            Source(
                package=view.value
                if any(c in view.value for c in "*?[")
                else canonical(view.value),
                kind="index",
                value=name.value,
                marker=None,
                extra=None,
                group=None,
                span=table_span(manifest, item),
                value_span=name.span,
                marker_span=None,
                key_span=view.span,
                listed=True,
            )
        )
