"""From a path to a document: the only place of this package that opens files."""

from __future__ import annotations

import os
import re
import stat

from torchpin import seen
from torchpin.documents.base import Document
from torchpin.documents.kinds import LONE, PART_KINDS, kind_of, reader_of
from torchpin.errors import TorchpinError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from torchpin.documents.parts import Part
    from torchpin.documents.project import Project

MAX_SIZE = 32 * 1024 * 1024
"""Bytes; a dependency file that is larger is a mistake."""
_HIGHEST = 4
"""Folders in which an included file is looked for: that of the file, and those above."""


def read_bytes(path: str, limit: int = MAX_SIZE) -> bytes:
    """Return the bytes of a regular file of at most ``limit`` bytes.

    Raises:
        TorchpinError: there is no such file, it is no regular file (a pipe would block), it is
            too large, or it may not be read.
    """
    try:
        data = plain_bytes(path, limit)
    except TorchpinError as error:
        seen.note_failure(path, error.message)
        raise
    seen.note_bytes(path, data)
    return data


def plain_bytes(path: str, limit: int = MAX_SIZE) -> bytes:
    """Return what ``read_bytes`` does, for readings that rest on nothing (no trace is kept).

    Raises:
        TorchpinError: as ``read_bytes``.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # before opening: a device may act on it
            raise _not_regular(path)
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with open(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _not_regular(path)
            data = b"" if status.st_size > limit else file.read(limit + 1)
            size = max(status.st_size, len(data))
    except OSError as error:
        raise _os_error(path, error) from error
    except ValueError as error:  # a NUL in the path
        raise TorchpinError("is no path that can be opened", path=ascii(path)) from error
    if size > limit:
        raise TorchpinError(
            f"is too large: more than {limit // 1048576} MiB, which no dependency file needs",
            path=path,
            hint="name the dependency files instead of the folder, or exclude this file",
        )
    return data


def load(
    path: str, cache: dict[str, Document], read: Callable[[str], bytes] = read_bytes
) -> Document:
    """Return the document at ``path``, from ``cache`` if it was read before.

    ``read`` gives the bytes of files that its reader needs besides.

    Text that cannot be decoded gives a document with a problem; ``${VARIABLES}`` stay unknown (the
    environment of the machine that runs the check says nothing about the one that installs).

    Raises:
        TorchpinError: the file is missing, unreadable, no regular file, too large or binary.
    """
    known = cache.get(path)
    if known is not None:
        return known
    data = read_bytes(path)
    kind = kind_of(path) or kind_by_text(data)
    document = read_as(kind, path, data, read)
    if kind == "requirements" and any(p.code == "decode" for p in document.problems):
        from torchpin.documents.requirements import read_requirements

        fallback = _locale_encoding()
        if fallback is not None:
            document = read_requirements(path, data, fallback=fallback)
    for problem in document.problems:
        if problem.code == "binary":
            raise TorchpinError(
                problem.message, path=path, hint="torchpin reads dependency files only"
            )
    cache[path] = document
    return document


def kind_by_text(data: bytes) -> str:
    """Return the kind of a file whose name does not tell: a script by its first line, a Dockerfile
    by its first instruction, an environment of conda by its keys, else a requirements file."""
    if is_environment(data):
        return "environment.yml"
    head = data[:80].partition(b"\n")[0]
    if head.startswith(b"#!") and head.split()[-1].endswith((b"sh", b"-e", b"-x")):
        return "shell"
    if data[:1] in (b"F", b"A", b"#") and re.match(
        rb"(?:#[^\n]*\n|\s*\n|ARG [^\n]*\n)*FROM [^\s=]+(?:\s+[Aa][Ss] \S+)?\s*\n", data
    ):
        return "dockerfile"
    return "requirements"


def is_environment(data: bytes) -> bool:
    """True if a YAML file holds ``dependencies`` and ``channels``, or a list for pip among the
    dependencies, as those of conda do."""
    text = b"\n" + data
    if b"\ndependencies:" not in text:
        return False
    return b"\nchannels:" in text or re.search(rb"\n[ \t]*- pip:[ \t]*\r?\n", text) is not None


def read_as(
    kind: str, path: str, data: bytes, read: Callable[[str], bytes] = read_bytes
) -> Document:
    """Return the document in ``data`` as the reader of its kind (see ``kinds.KINDS``) gives it.

    ``read`` gives the bytes of files that are read besides: of what a compose file builds.
    """
    if kind in PART_KINDS:
        return read_parts(kind, path, data, read)
    if kind in LONE:
        return read_lone(kind, path, data)
    if kind == "pyproject":
        from torchpin.documents.pyproject import read_pyproject

        return read_pyproject(path, data)
    if kind == "uv.toml":
        from torchpin.documents.pyproject import read_uv_toml

        return read_uv_toml(path, data)
    if kind == "uv.lock":
        from torchpin.documents.uv_lock import read_uv_lock

        return read_uv_lock(path, data)
    if kind == "poetry.lock":
        from torchpin.documents.poetry_lock import read_poetry_lock

        return read_poetry_lock(path, data)
    if kind == "pdm.lock":
        from torchpin.documents.pdm_lock import read_pdm_lock

        return read_pdm_lock(path, data)
    if kind == "pylock":
        from torchpin.documents.pylock import read_pylock

        return read_pylock(path, data)
    from torchpin.documents.requirements import read_requirements

    return read_requirements(path, data)


def read_lone(kind: str, path: str, data: bytes) -> Document:
    """Return the document of a file that declares for itself what a project does."""
    if kind == "setup.cfg":
        from torchpin.documents.setup_cfg import read_setup_cfg

        return read_setup_cfg(path, data)
    if kind == "setup.py":
        from torchpin.documents.setup_py import read_setup_py

        return read_setup_py(path, data)
    from torchpin.documents.script_block import read_script

    return read_script(path, data)


def read_parts(kind: str, path: str, data: bytes, read: Callable[[str], bytes]) -> Document:
    """Return the document of a file whose commands or sections install (``kinds.FORMS``).

    Files that its parts include are looked for beside it and, as a build context or a working
    folder may be above it, in the folders above, up to the one with a ``.git``. One that is
    nowhere (made by an earlier command, or in the image) stays as it is written.
    """
    from importlib import import_module

    called: dict[str, bytes] = {}

    def noted(name: str) -> bytes:
        called[name] = read(name)
        return called[name]

    module, _, function = (reader_of(kind) or "").partition(":")
    reader: Callable[[str, bytes], Document]
    reader = getattr(import_module(f"torchpin.documents.{module}"), function)
    if kind == "makefile":
        from torchpin.documents.makefile import read_makefile

        document = read_makefile(path, data, noted)
    elif kind == "github-workflow":
        from torchpin.documents.github_workflow import read_github_workflow

        document = read_github_workflow(path, data, noted)
    elif kind == "compose":
        from torchpin.documents.compose import read_compose

        document = read_compose(path, data, noted)
    else:
        document = reader(path, data)
    others = tuple(called.items())
    parts = tuple(_with_places(part, path, others) for part in document.parts)
    return document._replace(parts=parts, called=others)


def _with_places(part: Part, path: str, called: tuple[tuple[str, bytes], ...]) -> Part:
    if called:
        part = part._replace(document=part.document._replace(called=called))
    includes = part.document.includes
    if not includes:
        return part
    placed = tuple(
        one if "://" in one.path else one._replace(path=_place_of(one.path, path))
        for one in includes
    )
    return part._replace(document=part.document._replace(includes=placed))


def _place_of(name: str, path: str) -> str:
    """Return the path of an included file, relative to the folder of ``path``."""
    if os.path.isabs(name):
        return name
    folder = os.path.dirname(path)
    up = ""
    for _ in range(_HIGHEST):
        if seen.is_file(os.path.join(folder, up, name)):
            return os.path.join(up, name)
        if seen.exists(os.path.join(folder, up, ".git")):
            break
        up = os.path.join(up, os.pardir)
    return name


def locks_beside(path: str) -> tuple[str, ...]:
    """Return the lock files that stand in the folder of a project file: ``uv.lock`` first, then
    ``poetry.lock``, ``pdm.lock``, ``pylock*.toml`` in the order of their names."""
    found = _locks(os.path.dirname(path))
    seen.note_names(seen.LOCKS, path, found)
    return found


def _locks(folder: str) -> tuple[str, ...]:
    from torchpin.documents.kinds import LOCKS

    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:  # who reads the project file tells
        return ()
    mine = [name for name in names if not name.endswith(".py.lock")]  # those are of scripts
    found = [(kind_of(name), os.path.join(folder, name)) for name in mine]
    ranked = [(LOCKS.index(kind), place) for kind, place in found if kind in LOCKS]
    return tuple(place for _, place in sorted(ranked) if os.path.isfile(place))


def siblings_of(root_path: str, cache: dict[str, Document]) -> tuple[str, ...]:
    """Return the project files of the members of the uv workspace that ``root_path`` is the root
    of, sorted, the root left out; empty if it is no root.

    Members that are not there are left out, and those that say ``managed = false``.

    Raises:
        TorchpinError: the root cannot be read.
    """
    from torchpin.documents.workspace import members

    project = load(root_path, cache).project
    if project is None or not project.workspace_members:
        return ()
    base = os.path.dirname(root_path)
    found: list[str] = []
    for member in members(
        project.workspace_members,
        project.workspace_exclude,
        lambda below: folders_in(os.path.join(base, below)),
    ):
        path = os.path.join(base, member, "pyproject.toml")
        if seen.is_file(path) and _managed(path, cache):
            found.append(path)
    return tuple(found)


def workspace_root(path: str, cache: dict[str, Document]) -> str | None:
    """Return the project file of the root of the workspace that the project file at ``path`` is a
    member of; None if it is a root itself, or in no workspace. The nearest root above decides."""
    from torchpin.documents.workspace import is_member

    folder = os.path.dirname(os.path.abspath(path))
    own = load(path, cache).project
    if own is not None and own.workspace_members:
        return None
    above = os.path.dirname(folder)
    while above != os.path.dirname(above):
        candidate = os.path.join(above, "pyproject.toml")
        if seen.is_file(candidate):
            project = _project_or_none(candidate, cache)
            if project is not None and project.workspace_members:
                relative = os.path.relpath(folder, above).replace(os.sep, "/")
                held = is_member(relative, project.workspace_members, project.workspace_exclude)
                return _as_given(candidate, path) if held else None
        above = os.path.dirname(above)
    return None


def _as_given(found: str, path: str) -> str:
    """Return an absolute path as a relative one where ``path`` is relative."""
    return found if os.path.isabs(path) else os.path.relpath(found)


def _project_or_none(path: str, cache: dict[str, Document]) -> Project | None:
    try:
        return load(path, cache).project
    except TorchpinError:  # told where this file itself is read
        return None


def _managed(path: str, cache: dict[str, Document]) -> bool:
    project = _project_or_none(path, cache)
    return project is None or not any(
        setting.key == "uv.managed" and setting.value == "false" for setting in project.settings
    )


def folders_in(path: str) -> list[str]:
    """Return the names of the folders in a folder, sorted, where members may lie; empty if it
    cannot be listed."""
    found = _folders(path)
    seen.note_names(seen.FOLDERS, path, found)
    return found


def _folders(path: str) -> list[str]:
    try:
        with os.scandir(path or ".") as listing:
            return sorted(
                entry.name
                for entry in listing
                if entry.name not in ("node_modules", "__pycache__", ".git", ".venv")
                and entry.is_dir(follow_symlinks=False)
            )
    except OSError:  # a member that cannot be listed is no member
        return []


def _locale_encoding() -> str | None:
    """Return the encoding of the locale, as pip asks for it where a file is not UTF-8."""
    import locale

    return locale.getpreferredencoding(False) or None


def _not_regular(path: str) -> TorchpinError:
    if os.path.isdir(path):
        return TorchpinError("is a folder, not a file", path=path)
    return TorchpinError(
        "is no regular file (a pipe, socket or device)",
        path=path,
        hint="pass the text on standard input with '-'",
    )


def _os_error(path: str, error: OSError) -> TorchpinError:
    if isinstance(error, FileNotFoundError):
        return TorchpinError("does not exist", path=path)
    if isinstance(error, PermissionError):
        return TorchpinError(
            "may not be read: permission denied", path=path, hint="check the mode and the owner"
        )
    return TorchpinError(f"cannot be read: {error.strerror or error}", path=path)
