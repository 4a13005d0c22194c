"""Read ``pyproject.toml`` and ``uv.toml``: declarations, and what the tools say beyond them.

Whatever a user wrote gives a document: a wrong shape is a problem with the code ``shape``, and
the rest of the file is read. Sources: PEP 518, 621, 735, and each tool's own pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchpin.documents.base import Document, Include, Problem, Span
from torchpin.documents.manifest import Manifest
from torchpin.documents.project import Project, Table
from torchpin.documents.toml_view import Read, View, read_toml
from torchpin.documents.uv_keys import PROJECT_ONLY
from torchpin.documents.uv_manifest import read_uv

if TYPE_CHECKING:
    from torchpin.documents.parts import Part


def read_pyproject(path: str, data: bytes) -> Document:
    """Return the document in the bytes of a ``pyproject.toml``; never raises.

    Text that is no TOML gives a document with a problem of the code ``toml``, ``decode`` or
    ``binary``.
    """
    read = read_toml(data)
    manifest = Manifest(read.text)
    root = View(read.data, read.spans.root, "", read.text, manifest.problems)
    if read.problem is not None:
        manifest.problems.append(read.problem)
    project = root.get("project")
    if project is not None and not project.is_table("a table"):
        project = None
    _read_build(manifest, root)
    if project is not None:
        _read_project(manifest, project)
    _read_groups(manifest, root)
    tool = root.get("tool")
    parts = dict(tool.entries()) if tool is not None else {}
    tables = {name: view for name, view in parts.items() if view.is_table(_A_TABLE.get(name, ""))}
    owner = _owner(root, tables)
    if "uv" in tables:
        read_uv(manifest, tables["uv"])
        if owner == "uv" and manifest.default_groups is None and "dev" in manifest.groups:
            manifest.default_groups = ("dev",)
    if "poetry" in tables and (owner == "poetry" or _backend(root).startswith("poetry")):
        from torchpin.documents.poetry_manifest import read_poetry

        read_poetry(manifest, tables["poetry"], project)
    if "pdm" in tables and owner == "pdm":
        from torchpin.documents.pdm_manifest import read_pdm

        read_pdm(manifest, tables["pdm"])
    if owner == "pdm" and manifest.default_groups is None and manifest.groups:
        manifest.default_groups = ("*",)
    if "hatch" in tables:
        _read_hatch(manifest, tables["hatch"])
    if "setuptools" in tables:
        _read_setuptools(manifest, tables["setuptools"])
    document = _document(path, "pyproject", read, manifest, owner, _published(root, manifest))
    return _with_parts(document, tables) if {"tox", "pixi"} & set(tables) else document


_A_TABLE = dict.fromkeys(("uv", "poetry", "pdm", "hatch"), "a table")


def _with_parts(document: Document, tables: dict[str, View]) -> Document:
    """Return a project file with what the environments of tox and Pixi in it install."""
    file = document._replace(
        declarations=(), indexes=(), includes=(), options=(), problems=(), project=None
    )
    parts: list[Part] = []
    conda = None
    if "pixi" in tables:
        from torchpin.documents.pixi_toml import with_pixi

        found = with_pixi(file, tables["pixi"])
        parts += found.parts
        conda = found.conda
    if "tox" in tables:
        from torchpin.documents.tox_ini import in_toml
        from torchpin.documents.tox_toml import parts_of

        legacy = tables["tox"].string("legacy_tox_ini")
        parts += parts_of(file, tables["tox"]) if legacy is None else in_toml(file, legacy)
    return document._replace(parts=tuple(parts), conda=conda)


def read_uv_toml(path: str, data: bytes) -> Document:
    """Return the document in the bytes of a ``uv.toml``; never raises."""
    read = read_toml(data)
    manifest = Manifest(read.text)
    if read.problem is not None:
        manifest.problems.append(read.problem)
    root = View(read.data, read.spans.root, "", read.text, manifest.problems)
    read_uv(manifest, root)
    for key in PROJECT_ONLY:
        view = root.get(key)
        if view is not None:
            message = f"uv refuses {key} in a uv.toml: it belongs in a pyproject.toml"
            manifest.problem(message, view.key, "option")
    return _document(path, "uv.toml", read, manifest, "uv", False)


def expand_groups(project: Project, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups and all that they include, each once, in order; ``*`` is every group.

    Groups that are not declared are left out. Names are compared in their canonical form.
    """
    from torchpin.documents.requirement import canonical

    declared = {canonical(name): name for name in project.groups}
    includes: dict[str, tuple[str, ...]] = {}
    for name, below in project.group_includes:
        includes[canonical(name)] = includes.get(canonical(name), ()) + below
    found: dict[str, str] = {}
    stack = list(reversed(project.groups if "*" in names else names))
    while stack:
        key = canonical(stack.pop())
        if key in found or key not in declared:
            continue
        found[key] = declared[key]
        stack += reversed(includes.get(key, ()))
    return tuple(found.values())


def _read_project(manifest: Manifest, project: View) -> None:
    name = project.string("name")
    if name is not None:
        manifest.name = name.value
    python = project.string("requires-python")
    if python is not None:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            SpecifierSet(python.value)
        except InvalidSpecifier:
            message = f"{python.value[:60]!r} is no valid version specifier"
            manifest.problem(message, python.span, "specifier")
        else:
            manifest.requires_python = python.value
            manifest.requires_python_span = python.span
    for item in project.strings("dependencies"):
        manifest.requirement(item, "")
    for extra, view in project.entries("optional-dependencies"):
        manifest.extra(extra)
        for item in view.strings():
            manifest.requirement(item, f"extra:{extra}")
    dynamic = project.get("dynamic")
    if dynamic is not None:
        manifest.setting("project.dynamic", dynamic)


def _read_build(manifest: Manifest, root: View) -> None:
    for item in root.strings("build-system", "requires"):
        manifest.requirement(item, "build")
    backend = root.string("build-system", "build-backend")
    if backend is not None:
        manifest.setting("build-system.build-backend", backend)


def _read_groups(manifest: Manifest, root: View) -> None:
    for group, view in root.entries("dependency-groups"):
        manifest.group(group)
        includes: list[str] = []
        for item in view.items(expected="an array of requirements"):
            if isinstance(item.value, str):
                manifest.requirement(item, f"group:{group}")
                continue
            if not item.is_table("a requirement or a table with include-group"):
                continue
            below = item.string("include-group")
            if below is not None:
                includes.append(below.value)
            elif "include-group" not in item.value:
                item.wrong("a requirement or a table with include-group")
        if includes:
            manifest.group_includes.append((group, tuple(includes)))


def _read_hatch(manifest: Manifest, hatch: View) -> None:
    since = len(manifest.problems)
    for name, env in hatch.entries("envs"):
        if not env.is_table("a table"):
            continue
        for key in ("dependencies", "extra-dependencies"):
            for item in env.strings(key):  # may hold fields such as {env:NAME}
                manifest.requirement(item, f"env:{name}", lenient=True)
        for key in ("features", "dependency-groups", "installer", "python", "skip-install"):
            view = env.get(key)
            if view is not None:
                manifest.setting(f"hatch.envs.{name}.{key}", view)
    direct = hatch.get("metadata", "allow-direct-references")
    if direct is not None:
        manifest.setting("hatch.metadata.allow-direct-references", direct)
    manifest.harmless(since, "pip and uv do not look at it, Hatch stops")


def _read_setuptools(manifest: Manifest, setuptools: View) -> None:
    """Take in the requirements files that setuptools reads the dependencies from."""
    dynamic = setuptools.get("dynamic")
    if dynamic is None or not dynamic.is_table():
        return
    table = dynamic.get("dependencies")
    if table is None or not table.is_table():
        return
    for view in table.strings("file", single=True):
        manifest.includes.append(Include(view.value, False, view.span, view.span.start))


_POETRY_ASKS = ("dependencies", "group", "dev-dependencies", "source", "package-mode")
"""Keys of ``[tool.poetry]`` that say what is installed, and from where: with ``package-mode =
false`` all that may be asked for stands in ``[project]``, and no build backend is named."""


def _owner(root: View, tables: dict[str, View]) -> str:
    """Return the tool that owns the project, as far as this file tells."""
    backend = _backend(root)
    poetry = tables.get("poetry")
    asks = poetry is not None and any(key in poetry.value for key in _POETRY_ASKS)
    if "uv" in tables and ("project" in root.value or not asks):
        return "uv"  # without [project] uv manages nothing
    if asks or backend.startswith("poetry."):
        return "poetry"
    if "pdm" in tables or backend.startswith("pdm."):
        return "pdm"
    hatch = tables.get("hatch")
    if hatch is not None and "envs" in hatch.value:
        return "hatch"
    return "pip"


def _backend(root: View) -> str:
    build = root.value.get("build-system")
    backend = build.get("build-backend") if isinstance(build, dict) else None
    return backend if isinstance(backend, str) else ""


def _published(root: View, manifest: Manifest) -> bool:
    """Tell whether the file looks like the metadata of a library that others install."""
    if not manifest.name or not manifest.package or "build-system" not in root.value:
        return False
    project = root.value.get("project")
    classifiers = project.get("classifiers") if isinstance(project, dict) else None
    return not (
        isinstance(classifiers, list)
        and any(isinstance(one, str) and one.startswith("Private ::") for one in classifiers)
    )


def _document(
    path: str, kind: str, read: Read, manifest: Manifest, owner: str, published: bool
) -> Document:
    text = read.text
    crlf = text.count("\r\n")
    project = Project(
        tool=owner,
        name=manifest.name,
        requires_python=manifest.requires_python,
        requires_python_span=manifest.requires_python_span,
        extras=tuple(manifest.extras),
        groups=tuple(manifest.groups),
        default_groups=manifest.default_groups or (),
        sources=tuple(manifest.sources),
        indexes=tuple(manifest.indexes),
        conflicts=tuple(manifest.conflicts),
        environments=manifest.environments,
        required_environments=manifest.required_environments,
        settings=tuple(manifest.settings),
        workspace_members=manifest.workspace_members,
        workspace_exclude=manifest.workspace_exclude,
        tables=tuple(Table(h.path, h.array, h.span, h.body_end) for h in read.spans.headers),
        package=manifest.package,
        published=published,
        group_includes=tuple(manifest.group_includes),
        enriched=tuple(manifest.enriched),
        ignored=manifest.ignored,
        uv_table=manifest.uv_table,
    )
    return Document(
        path=path,
        kind=kind,
        text=text,
        encoding="utf-8",
        bom=read.bom,
        newline="\r\n" if crlf * 2 > text.count("\n") else "\n",
        declarations=tuple(manifest.declarations),
        indexes=(),
        includes=tuple(manifest.includes),
        options=(),
        problems=_in_order(manifest.problems),
        comments=read.spans.comments,
        project=project,
    )


def _in_order(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: Span(*problem.span)))
