"""The ways in of a project: what each command would install of it.

A project is installed plain (its dependencies and the default groups), with one of its extras, or
with one of its other groups; several extras at once are the user's own combination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchpin.documents.base import Document
from torchpin.documents.project import Project, ProjectIndex
from torchpin.documents.pyproject import expand_groups
from torchpin.select.channels import index_kind
from torchpin.select.model import Install, Placed, PlacedIndex
from torchpin.select.uv_settings import governing, lead_of

_CLIENTS = ("uv", "poetry", "pdm")


def project_installs(
    root: Document,
    *,
    lock: Document | None,
    siblings: tuple[Document, ...] = (),
    client: str | None,
    private: Mapping[str, str] | None = None,
    extra_indexes: Sequence[str] = (),
    settings: Document | None = None,
) -> tuple[Install, ...]:
    """Return the installs of a project: plain, one for each extra, one for each other group.

    Args:
        root: the ``pyproject.toml``.
        lock: the lock that its owner installs from, if there is one.
        siblings: the other manifests of its workspace.
        client: ``uv``, ``pip``, ``poetry`` or ``pdm``; None: by the project and its lock.
        private: what the profile says about URLs (see ``channels.index_kind``).
        extra_indexes: indexes of the command line, in order; an entry may begin with its option.
        settings: a ``uv.toml`` beside the project or above it, or a ``pyproject.toml`` above it
            (see ``documents.uv_beside``).

    Their names are None, ``extra:NAME`` and ``group:NAME``.
    """
    project = root.project
    if project is None:
        return ()
    who = client or client_of(project, lock)
    default = expand_groups(project, project.default_groups) if who in _CLIENTS else ()
    ways: list[tuple[str | None, tuple[str, ...], tuple[str, ...]]] = [(None, (), default)]
    for extra in project.extras:
        ways.append((f"extra:{extra}", (extra,), _beside(project, default, extra=extra)))
    for group in project.groups:
        if group not in default:
            own = expand_groups(project, (group,))
            beside = default
            for one in own:
                beside = _beside(project, beside, group=one)
            ways.append((f"group:{group}", (), _joined(beside, own)))
    lead = lead_of(root, siblings) if who == "uv" else root
    chosen = governing(settings, lead) if who == "uv" else None
    indexes = project_indexes(lead, who, private or {}, extra_indexes, chosen)
    return tuple(
        _install(root, name, who, extras, groups, indexes, lock, siblings, private or {})._replace(
            settings=chosen
        )
        for name, extras, groups in ways
    )


def client_of(project: Project, lock: Document | None) -> str:
    """Return who installs a project: the owner of its lock, else the tool of its file, else pip."""
    if lock is not None and lock.lock is not None and lock.lock.tool in _CLIENTS:
        return lock.lock.tool
    return project.tool if project.tool in _CLIENTS else "pip"


def locked_too(install: Install) -> tuple[Placed, ...]:
    """Return what else of its file is locked together with an install, which does not ask for it.

    uv, Poetry and PDM lock all extras and groups at once. Left out: what is said to conflict, and
    what a marker keeps for some environments (the lock may hold another version there).
    """
    project = install.root.project
    if project is None or install.client not in _CLIENTS:
        return ()
    apart = {
        f"{kind}:{name}"
        for one in project.conflicts
        for item in one.items
        for kind, name in (("extra", item.extra), ("group", item.group))
        if name
    }
    own = {placed.declaration.span for placed in install.requirements}
    return tuple(
        Placed(install.root, one)
        for one in install.root.declarations
        if one.scope.startswith(("extra:", "group:"))
        and one.scope not in apart
        and one.span not in own
        and one.marker is None
        and one.valid
        and one.url is None
    )


def _beside(
    project: Project, default: tuple[str, ...], *, extra: str = "", group: str = ""
) -> tuple[str, ...]:
    """Return the default groups that may be installed beside an extra or group: who asks for one
    that conflicts with a default group switches that off (``--no-group``)."""
    excluded = {
        item.group
        for one in project.conflicts
        if any((extra and item.extra == extra) or (group and item.group == group)
               for item in one.items)
        for item in one.items
        if item.group and item.group != group
    }  # fmt: skip
    return tuple(name for name in default if name not in excluded)


def _joined(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _install(
    root: Document,
    name: str | None,
    client: str,
    extras: tuple[str, ...],
    groups: tuple[str, ...],
    indexes: tuple[PlacedIndex, ...],
    lock: Document | None,
    siblings: tuple[Document, ...],
    private: Mapping[str, str],
) -> Install:
    scopes = {"", *(f"extra:{e}" for e in extras), *(f"group:{g}" for g in groups)}
    own = "pip" if client == "pip" else client
    return Install(
        root=root,
        name=name,
        client=own,
        documents=(root, *siblings),
        requirements=tuple(Placed(root, d) for d in root.declarations if d.scope in scopes),
        constraints=()
        if client == "pip"
        else tuple(Placed(root, d) for d in root.declarations if d.scope == "constraint"),
        indexes=indexes,
        discarded=(),
        lock=lock,
        extras=extras,
        groups=groups,
        siblings=siblings,
        private=tuple(private.items()),
    )


def project_indexes(
    root: Document,
    client: str,
    private: Mapping[str, str],
    extra_indexes: Sequence[str] = (),
    settings: Document | None = None,
) -> tuple[PlacedIndex, ...]:
    """Return the indexes that every package may come from, in the client's order of priority.

    Those that only named packages may use (``explicit``) are left out; PyPI comes last unless it is
    replaced, which an explicit one does as well. pip reads none of the file's.
    """
    given = [_given(entry, private) for entry in extra_indexes]
    extras = [g for g in given if g.option == "--extra-index-url"]
    links = [g for g in given if g.option == "--find-links"]
    mains = [g for g in given if g.option == "--index-url"]
    file = settings if client == "uv" and settings is not None else root
    project = file.project
    passed_over = project is None or (client == "uv" and bool(project.ignored))
    own = () if client == "pip" or project is None or passed_over else project.indexes
    tools = {"uv": ("uv", "uv-url"), "poetry": ("poetry",), "pdm": ("pdm",)}.get(client, ())
    nothing = False
    for index in own:
        if index.tool not in tools or index.scope or index.explicit:
            # A default index that only named packages may use leaves none for the others.
            nothing = nothing or (
                index.tool == "uv" and client == "uv" and index.default and index.explicit
            )
            continue
        placed = _placed(file, index, private)
        if index.option == "--find-links":
            links.append(placed)
        elif index.default and client == "uv":
            mains.append(placed)
        else:
            extras.append(placed)
    main = mains[0] if mains else PlacedIndex(None, None, "", "", index_kind("", private))
    if nothing and not mains:
        return (*extras, *links)
    return (*extras, main, *links) if client != "pip" else (main, *extras, *links)


def _placed(root: Document, index: ProjectIndex, private: Mapping[str, str]) -> PlacedIndex:
    from torchpin.documents.manifest import index_line

    kind = index_kind(index.url, private, option=index.option)
    return PlacedIndex(root, index_line(root.text, index), index.option, index.url, kind)


def _given(entry: str, private: Mapping[str, str]) -> PlacedIndex:
    option, url = "--extra-index-url", entry.strip()
    if url.startswith("-"):
        head = url.replace("=", " ", 1).split(None, 1)
        names = {"-i": "--index-url", "--default-index": "--index-url", "-f": "--find-links"}
        option = names.get(head[0], head[0])
        option = "--extra-index-url" if option == "--index" else option
        url = head[1].strip() if len(head) > 1 else ""
    return PlacedIndex(None, None, option, url, index_kind(url, private, option=option))
