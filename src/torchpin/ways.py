"""From documents to the ways in: what is installed from where, and on which targets.

Part of floor 5: it joins documents, fleet and select for the engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchpin import seen
from torchpin.catalog.model import FAMILY, WATCHED
from torchpin.documents.base import Document
from torchpin.documents.kinds import LONE, PART_KINDS
from torchpin.errors import ConfigError, TorchpinError
from torchpin.fleet.model import Fleet, NodeGroup, Target
from torchpin.named import NamedTuple
from torchpin.rules.context import Way
from torchpin.select.installs import install_of
from torchpin.select.model import Install

if TYPE_CHECKING:
    from torchpin.documents.header import Header
    from torchpin.documents.parts import Part
    from torchpin.select.parts import Installed

Load = Callable[[str], Document]


class Entry(NamedTuple):
    """One way in before anything is selected."""

    install: Install
    targets: tuple[Target, ...]
    bound: frozenset[str]
    """Groups whose profile names this way: for them it must run."""
    indexes: tuple[str, ...]
    """Index URLs of the groups' command line."""
    documents: tuple[Document, ...]
    part: Part | None = None
    """The command or section that installs, where the root is part of a file."""
    before: Mapping[str, Installed] = {}
    """What is installed before the part runs."""


def entries(
    documents: Sequence[Document], client: str | None, fleet: Fleet, load: Load
) -> Iterator[Entry]:
    """Yield the ways in of some documents: requirements files, and the installs of projects."""
    plain = [document for document in documents if document.kind == "requirements"]
    files = [document for document in documents if document.parts]
    if any(document.reserved for document in documents):
        from torchpin.part_ways import for_services

        files = for_services(files, documents)
    sources = any(document.path.endswith(".in") for document in plain)
    locks = [document for document in documents if document.kind == "pylock"]
    compiled = compiled_lists(plain, (*plain, *locks)) if sources else {}
    for root in roots_of(plain, fleet, files):
        lists = compiled.get(os.path.realpath(root.path), [])
        yield from requirement_entries(root, client, fleet, load, lists)
    if files:
        from torchpin.part_ways import part_entries

        for file in files:
            yield from part_entries(file, client, fleet, load)
    done: set[str] = set()
    for document in documents:
        if document.kind == "requirements" or document.kind in PART_KINDS:
            continue
        root, lock = project_files(document, load)
        key = os.path.realpath(root.path)
        if key not in done:
            done.add(key)
            yield from project_entries(root, lock, client, fleet, load)


def requirement_entries(
    root: Document,
    client: str | None,
    fleet: Fleet,
    load: Load,
    compiled: Sequence[tuple[Document, Header]] = (),
) -> Iterator[Entry]:
    """Yield the ways in of one requirements file: one a client and command line.

    ``compiled`` are the lists that were made from it: where their commands, or lines of their own,
    name indexes, these count for it too. Where they name several, each list is judged alone.
    """
    made = {indexes_of(document, header, root): header for document, header in compiled}
    given, header = next(iter(made.items()), ((), None))
    if len(made) > 1 and not bound_groups(fleet, root.path):
        if all(made):
            return
        given, header = (), None
    bound = bound_groups(fleet, root.path)
    by_client: dict[tuple[str, tuple[str, ...]], list[Target]] = {}
    meant = targets_of(fleet, root.path)
    for target in meant if bound else compiled_for(root, meant):
        by = client_of(client, target.group)
        if client is None and target.group.client is None and given and header is not None:
            by = "uv" if header.tool == "uv" and not header.best_match else "pip"
        key = (by, (*target.group.indexes, *given))
        by_client.setdefault(key, []).append(target)
    private = dict(fleet.settings.indexes)
    for (name, indexes), targets in by_client.items():
        install = install_of(root, load, client=name, private=private, extra_indexes=indexes)
        yield Entry(install, tuple(targets), bound, indexes, install.documents)


def compiled_lists(
    plain: Sequence[Document], lists: Sequence[Document]
) -> dict[str, list[tuple[Document, Header]]]:
    """Return the lists and locks that a tool has made from each requirements file, by its real
    path."""
    from torchpin.documents.header import header_of, places_of

    real = {os.path.realpath(document.path): document for document in plain}
    found: dict[str, list[tuple[Document, Header]]] = {}
    for document in lists:
        header = header_of(document)
        for name in header.inputs if header is not None else ():
            assert header is not None
            places = map(os.path.realpath, places_of(document.path, header, name))
            place = next((one for one in places if one in real), None)
            if place is not None and real[place] is not document:
                found.setdefault(place, []).append((document, header))
    return found


def indexes_of(compiled: Document, header: Header, source: Document) -> tuple[str, ...]:
    """Return the indexes that a source is compiled with, beside its own, as options."""
    from torchpin.select.channels import channel_url

    own = {line.url.rstrip("/") for line in source.indexes}
    named = list(header.indexes)
    backend = header.torch_backend
    if backend and backend != "auto":
        named.append(f"--extra-index-url {channel_url(backend)}")
    named += [f"{line.option} {line.url}" for line in compiled.indexes if not line.misplaced]
    return tuple(
        dict.fromkeys(one for one in named if one.partition(" ")[2].rstrip("/") not in own)
    )


def compiled_for(root: Document, targets: Sequence[Target]) -> Sequence[Target]:
    """Return the targets that a compiled list was made for, as ``--python-platform`` of the command
    in its header tells; all of them if it tells none."""
    if "--python-platform" not in root.text[:4000]:
        return targets
    from torchpin.documents.command_words import platform_in
    from torchpin.documents.header import header_of

    header = header_of(root)
    words = header.command.replace("=", " ").split() if header is not None else []
    at = words.index("--python-platform") + 1 if "--python-platform" in words else len(words)
    named = words[at] if at < len(words) else ""
    platform = platform_in(named)
    if platform is None:
        return targets
    if "-" not in named and "_" not in named:  # a system, on any machine
        platform = platform.split("-")[0]
    return [one for one in targets if one.group.platform.startswith(platform)]


def project_files(document: Document, load: Load) -> tuple[Document, Document | None]:
    """Return the project file and the lock that belong to a document (one of them, or uv.toml).

    A lock without a project file is its own root.
    """
    from torchpin.documents.loader import locks_beside, workspace_root

    folder = os.path.dirname(document.path)
    if document.kind == "script":
        beside = f"{document.path}.lock"
        return document, quiet(load, beside) if seen.is_file(beside) else None
    if document.kind in LONE:
        return document, None
    if document.path.endswith(".py.lock"):
        script = document.path.removesuffix(".lock")
        return (load(script) if seen.is_file(script) else document), document
    manifest = os.path.join(folder, "pyproject.toml")
    root = document
    if document.kind != "pyproject" and seen.is_file(manifest):
        root = load(manifest)
    if root.kind != "pyproject":
        return root, root if root.lock is not None else None
    lock: Document | None = None
    above = workspace_root(root.path, {root.path: root}) if seen.exists(root.path) else None
    for path in (root.path, *((above,) if above else ())):
        for place in locks_beside(path):
            if lock is None and not os.path.basename(place).startswith("pylock"):
                lock = quiet(load, place)
    return root, lock


def quiet(load: Load, path: str) -> Document | None:
    """Return a document beside another one; None if it cannot be read (its own check says so)."""
    try:
        return load(path)
    except TorchpinError:
        return None


def project_entries(
    root: Document, lock: Document | None, client: str | None, fleet: Fleet, load: Load
) -> Iterator[Entry]:
    """Yield the ways in of a project: plain, its extras and groups, or those that a group names."""
    from torchpin.select.projects import project_installs

    if root.project is None:
        if lock is not None:
            yield from lone_lock(root, fleet)
        return
    siblings, lead = workspace_of(root, load)
    if not any(map(mentions_family, (root, *(siblings if lead is root else ())))) and (
        lock is None or not mentions_family(lock)
    ):
        return
    client = client or ("uv" if lead is not root else None)
    own = "uv" if is_uv(lead, lock) else None
    settings = uv_settings(lead, client or own, load)
    named = bound_groups(fleet, root.path)
    private = dict(fleet.settings.indexes)
    by_client: dict[tuple[str | None, tuple[str, ...]], list[Target]] = {}
    for target in targets_of(fleet, root.path):
        key = (client or target.group.client or own, target.group.indexes)
        by_client.setdefault(key, []).append(target)
    for (name, indexes), targets in by_client.items():
        installs = project_installs(
            root,
            lock=lock,
            siblings=siblings,
            client=name,
            private=private,
            extra_indexes=indexes,
            settings=settings,
        )
        for install, some, bound in ways_for(installs, targets):
            documents = (*install.documents, *((lock,) if lock is not None else ()))
            if install.settings is not None and install.settings.kind == "uv.toml":
                documents = (*documents, install.settings)
            yield Entry(install, some, bound | named, indexes, documents)


def is_uv(root: Document, lock: Document | None) -> bool:
    """True if a lock of uv or a ``uv.toml`` says that a project of no tool's is uv's."""
    if root.project is None or root.project.tool not in ("pip", "hatch", "uv"):
        return False
    if lock is not None and lock.lock is not None:
        return lock.lock.tool == "uv"
    return root.kind == "pyproject" and seen.is_file(
        os.path.join(os.path.dirname(root.path), "uv.toml")
    )


def workspace_of(root: Document, load: Load) -> tuple[tuple[Document, ...], Document]:
    """Return the other manifests that uv locks together with one, and the one that leads them.

    Of a member these are the root of the workspace and its other members.
    """
    from torchpin.documents.loader import siblings_of, workspace_root

    above = workspace_root(root.path, {root.path: root}) if seen.exists(root.path) else None
    if above is None:
        return tuple(load(path) for path in siblings_of(root.path, {root.path: root})), root
    own = os.path.realpath(root.path)
    lead = load(above)
    others = [path for path in siblings_of(above, {above: lead}) if os.path.realpath(path) != own]
    return (lead, *(load(path) for path in others)), lead


def uv_settings(root: Document, client: str | None, load: Load) -> Document | None:
    """Return the file whose settings uv takes for a project in place of the project's own."""
    if root.project is None or root.kind != "pyproject":
        return None
    if client != "uv" and root.project.tool != "uv":
        return None
    from torchpin.documents.uv_beside import settings_beside

    return settings_beside(root.path, load)


def lone_lock(lock: Document, fleet: Fleet) -> Iterator[Entry]:
    """Yield the way in of a lock without its project file (``pylock.toml``, a stray lock)."""
    client = lock.lock.tool if lock.lock is not None else "pip"
    install = Install(
        root=lock,
        name=None,
        client=client,
        documents=(lock,),
        requirements=(),
        constraints=(),
        indexes=(),
        discarded=(),
        lock=lock,
    )
    bound = bound_groups(fleet, lock.path)
    yield Entry(install, targets_of(fleet, lock.path), bound, (), (lock,))


def ways_for(
    installs: Sequence[Install], targets: Sequence[Target]
) -> Iterator[tuple[Install, tuple[Target, ...], frozenset[str]]]:
    """Yield which install serves which targets.

    A group that names extras or dependency groups is served by exactly these, together.
    """
    free = tuple(one for one in targets if not chooses(one.group))
    if free:
        for install in installs:
            yield install, free, frozenset()
    combined: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Target]] = {}
    for target in targets:
        if chooses(target.group):
            key = (target.group.extras, target.group.dependency_groups)
            combined.setdefault(key, []).append(target)
    for (extras, groups), some in combined.items():
        joined = together(installs, extras, groups)
        if joined is not None:
            yield joined, tuple(some), frozenset(one.group.name for one in some)


def chooses(group: NodeGroup) -> bool:
    """True if the profile says what of a project the group installs."""
    return bool(group.extras or group.dependency_groups)


def together(
    installs: Sequence[Install], extras: tuple[str, ...], groups: tuple[str, ...]
) -> Install | None:
    """Return the install with several extras and groups at once; None if none of them exists."""
    names = {*(f"extra:{name}" for name in extras), *(f"group:{name}" for name in groups)}
    chosen = [install for install in installs if install.name in names]
    if not chosen:
        return None
    if len(chosen) == 1:
        return chosen[0]
    return chosen[0]._replace(
        name=", ".join(install.name or "" for install in chosen),
        requirements=tuple(dict.fromkeys(one for some in chosen for one in some.requirements)),
        extras=tuple(dict.fromkeys(one for some in chosen for one in some.extras)),
        groups=tuple(dict.fromkeys(one for some in chosen for one in some.groups)),
    )


def mentions_family(document: Document) -> bool:
    """True if a project file or a lock names a watched package."""
    if any(declaration.name in WATCHED for declaration in document.declarations):
        return True
    if document.project is not None and any(
        source.package in WATCHED for source in document.project.sources
    ):
        return True
    return document.lock is not None and any(
        package.name in WATCHED for package in document.lock.packages
    )


def without_echoes(ways: Sequence[Way]) -> list[Way]:
    """Return the ways without those extras that install the same of the family as the plain way,
    and without images whose torch is replaced."""

    if any(way.part is not None and way.part.syntax == "image" for way in ways):
        from torchpin.part_ways import without_replaced

        ways = without_replaced(ways)

    def chosen(way: Way) -> list[tuple[object, ...]]:
        return [
            (
                judged_set.target,
                judged_set.chosen.conflict,
                tuple(
                    (one.selection.package, one.selection.status, one.selection.build)
                    for one in judged_set.judged
                    if one.selection.package in FAMILY
                ),
            )
            for judged_set in way.sets
        ]

    plain = {
        os.path.realpath(way.install.root.path): chosen(way)
        for way in ways
        if way.install.name is None and way.install.root.kind != "requirements"
    }
    return [
        way
        for way in ways
        if way.install.name is None
        or way.install.root.kind == "part"
        or way.bound
        or chosen(way) != plain.get(os.path.realpath(way.install.root.path))
    ]


def project_of(root: Document) -> str:
    """Return the folder whose files stand in for one another: ``requirements/`` is no project.

    A script with a block of its own is a project of its own.
    """
    if root.kind == "script":
        return os.path.normpath(root.path)
    return project_folder(root.path)


def project_folder(path: str) -> str:
    """Return the folder of the project that a file other than a script belongs to."""
    folder = os.path.dirname(path)
    if os.path.basename(folder).lower() in ("requirements", "deps", "dependencies", "reqs"):
        folder = os.path.dirname(folder)
    return os.path.normpath(folder or ".")


def client_of(told: str | None, group: NodeGroup | None) -> str:
    """Return which client installs a requirements file: as told, else as the group says, else pip.

    ``[tool.uv]`` in a project speaks of projects, not of requirements files.
    """
    if told is not None:
        return told
    if group is not None and group.client is not None:
        return group.client
    return "pip"


def bound_groups(fleet: Fleet, path: str) -> frozenset[str]:
    """Return the groups whose profile names the file at ``path``."""
    if not any(group.files for group in fleet.groups):
        return frozenset()
    base = os.path.dirname(os.path.abspath(fleet.path)) if fleet.path else os.getcwd()
    real = os.path.realpath(path)
    return frozenset(
        group.name
        for group in fleet.groups
        if any(os.path.realpath(os.path.join(base, name)) == real for name in group.files)
    )


def files_of_groups(fleet: Fleet, asked: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the files that node groups name, as far as they lie in a folder that was asked for.

    Raises:
        ConfigError: there is no such file.
    """
    base = os.path.dirname(os.path.abspath(fleet.path)) if fleet.path else os.getcwd()
    found: dict[str, None] = {}
    for group in fleet.groups:
        for name in group.files:
            path = os.path.normpath(os.path.join(base, name))
            for new in within(asked, [path], known):
                if not seen.is_file(path):
                    raise ConfigError(
                        f"group {group.name} installs {name}: there is no such file",
                        path=group.path,
                        line=line_of_file(group, name),
                        hint="files are named from the folder of the profile",
                    )
                found[new] = None
    return list(found)


def line_of_file(group: NodeGroup, name: str) -> int:
    """Return the line on which a node group names a file."""
    keys = (f"files[{group.files.index(name)}]", "files")
    lines = {setting.key: setting.line for setting in group.settings}
    return next((lines[key] for key in keys if key in lines), group.line)


def within(asked: Sequence[str], paths: Sequence[str], known: Sequence[str]) -> list[str]:
    """Return the paths that lie in a folder that was asked for, without those that are known; named
    as other files are: from that folder."""
    folders = {os.path.realpath(one): one for one in asked if seen.is_folder(one)} if paths else {}
    have = {os.path.realpath(path) for path in known} if folders else set()
    named: list[str] = []
    for path in paths:
        real = os.path.realpath(path)
        above = next((one for one in folders if real.startswith(os.path.join(one, ""))), None)
        if above is not None and real not in have:
            inside = os.path.relpath(real, above)
            named.append(os.path.normpath(os.path.join(folders[above], inside)))
    return named


def installed_by_none(
    documents: Sequence[Document], ways: Sequence[Way], fleet: Fleet
) -> tuple[str, ...]:
    """Return a note for each file that asks for the family and that no node group installs: every
    group names files of its own."""
    if not fleet.groups or not all(group.files for group in fleet.groups):
        return ()
    installed = {path for way in ways for path in way.paths}
    return tuple(
        f"{document.path} is not judged: each node group names the files that it installs, "
        "and none names this one"
        for document in documents
        if document.path not in installed and mentions_family(document)
    )


def targets_of(fleet: Fleet, path: str) -> tuple[Target, ...]:
    """Return the targets that the file at ``path`` is a way in for.

    A group that names files is served by these alone; every other group by any file.
    """
    bound = bound_groups(fleet, path)
    return tuple(
        target for target in fleet.targets() if target.group.name in bound or not target.group.files
    )


def roots_of(
    documents: Sequence[Document], fleet: Fleet, files: Sequence[Document] = ()
) -> list[Document]:
    """Return the ways in: documents that no other includes, and those that the profile names.

    ``files`` are those of other kinds. What their commands install with indexes of their own, or
    where a torch is installed already, is judged there alone: without it, it would be another
    install.
    """
    included: set[str] = set()
    surely: list[Document] = []
    if files:
        from torchpin.part_ways import judged_there

        surely = [document for file in files for document in judged_there(file)]
    for document in (*documents, *surely):
        folder = os.path.dirname(document.path)
        for include in document.includes:
            if "://" in include.path:
                continue
            real = os.path.realpath(os.path.join(folder, include.path))
            if real != os.path.realpath(document.path):
                included.add(real)
    roots = [
        document
        for document in documents
        if os.path.realpath(document.path) not in included or bound_groups(fleet, document.path)
    ]
    return roots or ([] if surely else list(documents))
