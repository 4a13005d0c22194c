"""``fix --prove`` on projects: the owner of the lock makes it from the mended manifests, in a copy.

uv: ``uv lock`` (free to move what the fix changes), then ``uv sync --dry-run --locked`` for each
target and each way in that it names; a group that names no extra needs one way in that syncs.
Poetry and PDM lock. Nothing is written beside the user's files before all of it has succeeded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence

from torchpin.cli.prove_words import told_of, uv_platform
from torchpin.documents.base import Document
from torchpin.documents.loader import read_as
from torchpin.errors import RewriteError, UsageError
from torchpin.fleet.model import Target
from torchpin.named import NamedTuple
from torchpin.rewrite.relock import command_of, executable
from torchpin.select.projects import client_of, project_installs

TIMEOUT = 1800
"""Seconds for one run of a tool: Poetry may fetch METADATA of every wheel."""
MAX_COPY = 64 * 1024 * 1024
"""Bytes of sources that are copied where a build backend has to read them."""
_BESIDE = (".python-version", "poetry.toml", "pdm.toml", "uv.toml", "setup.py", "setup.cfg")
_LEFT_OUT = frozenset(
    ("node_modules", "__pycache__", "build", "dist", "site-packages", "venv", "env")
)
_LOCK = {"uv": "uv.lock", "poetry": "poetry.lock", "pdm": "pdm.lock"}


class Workspace(NamedTuple):
    """What is locked together."""

    folder: str
    """Absolute path of the folder of the lock."""
    tool: str
    manifests: tuple[Document, ...]
    """As they are after the fix, the root first."""
    lock: Document | None


class Proved(NamedTuple):
    """How much was asked."""

    locks: int
    syncs: int
    notes: tuple[str, ...]


def prove_projects(
    changes: Sequence[tuple[Document, bytes]],
    documents: Sequence[Document],
    targets: Sequence[Target],
    client: str | None,
) -> Proved:
    """Let the tools lock every mended project, and uv sync it for every target.

    Args:
        changes: the mended manifests with their new bytes.
        documents: everything that was read.
        targets: of the fleet.
        client: as the command line says.

    Raises:
        UsageError: a tool is not installed, or the sources of a project are too large to copy.
        RewriteError: a tool refuses, with its message.
    """
    syncs, notes = 0, dict[str, None]()
    places = list(workspaces(changes, documents, client))
    for place in places:
        program = executable(place.tool, "--prove")
        with tempfile.TemporaryDirectory(prefix="torchpin-prove-") as temp:
            folder = lay_out(place, changes, temp)
            names = [one.name for each in place.manifests for one in each.declarations]
            command = lock_command(place, names)
            _run((program, *command[1:]), command, folder, place.manifests[0].path)
            if place.tool != "uv":
                continue
            for target in targets:
                syncs += 1
                notes.update(dict.fromkeys(_sync(place, target, program, folder)))
    return Proved(len(places), syncs, tuple(notes))


def workspaces(
    changes: Sequence[tuple[Document, bytes]], documents: Sequence[Document], client: str | None
) -> Iterator[Workspace]:
    """Yield what has to be locked: one a root, with the members of its workspace."""
    from torchpin.documents.loader import siblings_of, workspace_root

    new = {
        os.path.abspath(document.path): read_as(document.kind, document.path, data)
        for document, data in changes
        if document.kind == "pyproject"
    }
    done: set[str] = set()
    for path in new:
        root = os.path.abspath(workspace_root(path, {}) or path)
        if root in done:
            continue
        done.add(root)
        manifests = []
        for one in (root, *map(os.path.abspath, siblings_of(root, {}))):
            manifests.append(new[one] if one in new else _read(one))
        folder = os.path.dirname(root)
        lock = next(
            (
                one
                for one in documents
                if one.lock is not None
                and one.lock.tool in _LOCK
                and os.path.dirname(os.path.abspath(one.path)) == folder
                and not one.path.endswith(".py.lock")
            ),
            None,
        )
        project = manifests[0].project
        assert project is not None
        tool = client or ("uv" if len(manifests) > 1 else client_of(project, lock))
        if tool in _LOCK:
            yield Workspace(folder, tool, tuple(manifests), lock)


def _read(path: str) -> Document:
    with open(path, "rb") as file:
        return read_as("pyproject", path, file.read())


def lock_command(place: Workspace, names: Iterable[str]) -> tuple[str, ...]:
    """Return the command that makes the lock, as the user would type it."""
    if place.lock is not None:
        return command_of(place.lock, names)
    return {
        "uv": ("uv", "lock"),
        "poetry": ("poetry", "lock"),
        "pdm": ("pdm", "lock"),
    }[place.tool]


def lay_out(place: Workspace, changes: Sequence[tuple[Document, bytes]], temp: str) -> str:
    """Copy what the tool reads to ``temp``, mended; return the copy of the lock's folder.

    Raises:
        UsageError: sources that a build backend has to read are too large to copy.
    """
    mended = {os.path.abspath(document.path): data for document, data in changes}
    paths = [os.path.abspath(one.path) for one in place.manifests]
    outside = list(_path_sources(place))
    folders = [*(os.path.dirname(path) for path in paths), *outside]
    base = os.path.commonpath(folders)
    budget = [MAX_COPY]
    for folder in outside:
        _copy_tree(folder, base, temp, budget)
    for document, path in zip(place.manifests, paths, strict=True):
        folder = os.path.dirname(path)
        if _is_dynamic(document):
            _copy_tree(folder, base, temp, budget)
        for name in _beside(folder):
            _copy(os.path.join(folder, name), base, temp)
        _copy(path, base, temp)
        if path in mended:
            with open(_place(path, base, temp), "wb") as file:
                file.write(mended[path])
    if place.lock is not None:
        _copy(os.path.abspath(place.lock.path), base, temp)
    return os.path.dirname(_place(os.path.join(place.folder, "x"), base, temp))


def _place(path: str, base: str, temp: str) -> str:
    return os.path.join(temp, os.path.relpath(path, base))


def _copy(path: str, base: str, temp: str) -> None:
    to = _place(path, base, temp)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    if os.path.isfile(path):
        shutil.copyfile(path, to)


def _beside(folder: str) -> Iterator[str]:
    """Yield the files beside a manifest that tools may read: settings, README, licence."""
    for name in os.listdir(folder):
        if name in _BESIDE or name.upper().startswith(("README", "LICEN", "COPYING")):
            yield name


def _is_dynamic(document: Document) -> bool:
    """True if a build backend makes the metadata of the project, so that it needs the sources."""
    from torchpin.documents.toml_view import read_toml

    project = read_toml(document.text.encode("utf-8")).data.get("project")
    return not isinstance(project, dict) or bool(project.get("dynamic"))


def _path_sources(place: Workspace) -> Iterator[str]:
    """Yield the folders and files that sources name by path."""
    for document in place.manifests:
        folder = os.path.dirname(os.path.abspath(document.path))
        for source in document.project.sources if document.project is not None else ():
            if source.kind == "path":
                path = os.path.normpath(os.path.join(folder, source.value))
                if os.path.exists(path):
                    yield path


def _copy_tree(folder: str, base: str, temp: str, budget: list[int]) -> None:
    """Copy a folder without hidden folders and what was built, or one file."""
    if os.path.isfile(folder):
        _copy(folder, base, temp)
        return
    for here, folders, names in os.walk(folder):
        folders[:] = [
            name for name in folders if name not in _LEFT_OUT and not name.startswith(".")
        ]
        for name in names:
            path = os.path.join(here, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            budget[0] -= os.path.getsize(path)
            if budget[0] < 0:
                raise UsageError(
                    f"--prove copies the sources of {folder}, which are over "
                    f"{MAX_COPY // 1048576} MiB",
                    hint="run torchpin fix without --prove, and lock by hand",
                )
            _copy(path, base, temp)


def _sync(place: Workspace, target: Target, program: str, folder: str) -> Iterator[str]:
    """Ask uv whether a target can be synced; yield what could not be asked.

    Raises:
        RewriteError: every way in that the target may take is refused.
    """
    platform = uv_platform(target.group)
    refused: tuple[tuple[str, ...], str] | None = None
    for words in ways(place, target):
        shown = ("uv", "sync", "--dry-run", "--locked", *words, "--python-platform", platform)
        python = (
            ("--python", f"{target.python.major}.{target.python.minor}") if target.python else ()
        )
        done = _call((program, *shown[1:], *python), folder, place.manifests[0].path, shown)
        if done.returncode != 0 and python and "interpreter" in done.stderr:
            yield f"Python {target.python} is not here: synced with another for {target.text}"
            done = _call((program, *shown[1:]), folder, place.manifests[0].path, shown)
        if done.returncode == 0:
            return
        refused = refused or (shown, done.stderr or done.stdout)
    if refused is not None:
        what, hint = told_of("uv", refused[1], f"cannot sync the mended project on {target.text}")
        raise RewriteError(
            f"{what} (`{' '.join(refused[0])}`); nothing was written",
            path=place.manifests[0].path,
            hint=hint,
        )


def ways(place: Workspace, target: Target) -> Iterator[tuple[str, ...]]:
    """Yield the options of the ways in that a target may take, each of which would do."""
    group = target.group
    extras = [word for name in group.extras for word in ("--extra", name)]
    groups = [word for name in group.dependency_groups for word in ("--group", name)]
    asking = [one for one in place.manifests if _asks(one)] or list(place.manifests[:1])
    for document in asking:
        project = document.project
        assert project is not None
        alone = len(place.manifests) > 1 and document is not place.manifests[0]
        package = ("--package", project.name) if alone else ()
        if extras or groups:
            yield (*package, *extras, *groups)
            continue
        for install in project_installs(document, lock=None, client="uv"):
            kind, _, name = (install.name or "").partition(":")
            yield (*package, *((f"--{kind}", name) if kind else ()))


def _asks(document: Document) -> bool:
    from torchpin.catalog.model import FAMILY

    return any(one.name in FAMILY and one.scope != "build" for one in document.declarations)


def _run(command: tuple[str, ...], shown: tuple[str, ...], folder: str, path: str) -> None:
    done = _call(command, folder, path, shown)
    if done.returncode != 0:
        what, hint = told_of(
            shown[0], done.stderr.strip() or done.stdout, "refuses the mended project"
        )
        raise RewriteError(
            f"{what} (`{' '.join(shown)}`); nothing was written", path=path, hint=hint
        )


def _call(
    command: tuple[str, ...], folder: str, path: str, shown: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    """Run a tool.

    Raises:
        RewriteError: it cannot be run, or does not end.
    """
    environment = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    environment |= {"NO_COLOR": "1", "POETRY_VIRTUALENVS_CREATE": "false"}
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise RewriteError(
            f"`{' '.join(shown)}` gave no answer in {TIMEOUT} s; nothing was written", path=path
        ) from None
    except OSError as error:
        raise RewriteError(
            f"{shown[0]} cannot be run: {error.strerror or error}; nothing was written", path=path
        ) from error
