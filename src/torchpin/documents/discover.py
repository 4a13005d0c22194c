"""Which files to read: by name in folders, always where a file is named."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence

from torchpin import seen
from torchpin.documents.ignored import ignored_below
from torchpin.documents.kinds import FILES_PATTERN, KINDS, LOCKS, LONE, PART_KINDS, kind_of
from torchpin.documents.loader import is_environment, load, plain_bytes
from torchpin.errors import TorchpinError, UsageError
from torchpin.named import NamedTuple
from torchpin.patterns import regex

__all__ = [
    "FILES_PATTERN",
    "KINDS",
    "PROFILE",
    "Candidate",
    "Found",
    "FoundFile",
    "Listing",
    "discover",
    "kind_of",
    "load",
]

PROFILE = "torchpin.toml"
"""The file that declares the fleet; named as a path it stands for its folder."""
_SKIPPED_FOLDERS = frozenset(("node_modules", "site-packages", "__pycache__", "bower_components"))
_HIDDEN_FOLDERS = frozenset(
    (
        *(".github", ".gitlab", ".circleci", ".azure-pipelines", ".azure", ".azuredevops"),
        *(".azure_pipelines", ".devcontainer", ".ci", ".docker"),
    )
)
"""Hidden folders that hold what others run."""
_REQUIREMENTS = frozenset(("requirements",))
_HINT = "requirements and constraints files are read"
_HINT_ALL = (
    "requirements and constraints files, pyproject.toml, uv.toml, uv.lock, poetry.lock, pdm.lock "
    "and pylock.toml are read, and files that install by commands: Dockerfiles, shell scripts, "
    "Makefiles, justfiles, CI files, compose files; or list it in sections: tox.ini, setup.py, "
    "noxfile.py, Pipfile, pixi.toml, environment.yml"
)
_NAMES = (
    *(b"torch", b"triton", b"xformers", b"vllm", b"accelerate", b"bitsandbytes", b"fairseq"),
    *(b"fastai", b"lightning", b"tensordict", b"timm", b"ultralytics", b"sentence-transformers"),
    *(b"sentence_transformers", b"sentence.transformers"),
)
"""What a project file that matters holds somewhere: the family, or a package that pins torch."""
_INCLUDES = (b"requirements", b"constraints")
"""What a file of commands may hold instead: the name of a list of requirements. One of another name
stands behind ``-r``."""
_LISTED = frozenset(("tox.ini", "environment.yml"))
"""Kinds of files that install a list of requirements without the word ``install``."""
_SNIFFED = frozenset(("pyproject", *LONE, *PART_KINDS))
"""Kinds that a folder holds for many other reasons: taken only if they name something known."""
_SMALL = 64 * 1024
"""Bytes; what people write by hand is seldom larger."""
_HEAD = 32 * 1024
"""Bytes of a Python file in which a block of metadata is looked for."""
_LARGEST = 1024 * 1024
"""Bytes; a larger script carries data (a self-extracting installer), not pins."""
_YAML = (".yml", "yaml")
_TOLD = 3
"""Folders that could not be listed, which are told one by one."""
_MAYBE = regex(
    r"(?:env|conda|mamba|cuda|gpu|cpu|rocm|torch|requirement|depend|install|setup|py\d)[^/]*\.ya?ml$"
    r"|(?:^|/)(?:env|environment|deps|dependencies|requirements|install|installation|setup)"
    r"/[^/]+\.ya?ml$",
    re.IGNORECASE,
)
"""Names and folders of YAML files that may be environments of conda, which their keys tell."""
_OTHER_KINDS = (".toml", ".lock", ".json", ".yaml", ".yml", ".py", ".cfg", ".whl", ".zip", ".ipynb")


class FoundFile(NamedTuple):
    """A file to read and its kind (``requirements``, ``pyproject``, ``uv.lock`` …)."""

    path: str
    kind: str


class Candidate(NamedTuple):
    """A file whose name says that it may be one to read."""

    path: str
    kind: str
    named: bool
    """Named by the user, or a project file with a lock beside it: taken unseen."""
    link: str
    """Where a link leads, ``""`` for other files."""
    by_keys: bool = False
    """Its name only hints at its kind: taken if its keys say so."""


class Listing(NamedTuple):
    """What lies in some folders, by names alone: nothing was opened."""

    candidates: tuple[Candidate, ...]
    places: tuple[tuple[str, str], ...]
    """Folders that were named, and links to folders, with where they lead."""
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def single(self) -> bool:
        """True if no file can be listed twice: no links, and one folder."""
        return len(self.places) < 2 and not any(one.link for one in self.candidates)


class Found(NamedTuple):
    """What was found; ``skipped`` are folders that could not be listed, with the reason."""

    files: tuple[FoundFile, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    def notes(self) -> list[str]:
        """Return a sentence on each of the first folders that were skipped, and one on the rest."""
        told = [f"{path} was not looked into: {why}" for path, why in self.skipped[:_TOLD]]
        left = len(self.skipped) - _TOLD
        if left > 0:
            told.append(
                f"{left} more folders were not looked into"
                if left > 1
                else "1 more folder was not looked into"
            )
        return told


def discover(paths: Sequence[str], kinds: frozenset[str] | None = None) -> Found:
    """Return the dependency files among ``paths`` and, sorted, in the folders among them.

    Each file comes once, also where links or overlapping arguments lead to it twice. What git
    ignores, hidden folders but for those of CI systems, virtual environments, ``node_modules`` and
    ``site-packages`` are passed over unless named. A file that is named is taken whatever its
    name, as a requirements file if the name does not tell; a ``torchpin.toml`` stands for its
    folder, since every file there is judged by it. ``kinds`` are those wanted
    (``KINDS``: all), None for requirements files only. A project file that a folder holds is left
    out if it names nothing that torchpin knows and no lock stands beside it.

    Raises:
        UsageError: a path does not exist, or is a file of a kind that torchpin does not read.
        TorchpinError: a path may not be looked at.
    """
    listing = listing_of(paths, kinds)
    trace = seen.current()
    files: list[FoundFile] = []
    real: set[str] = set()
    digests: dict[str, str] = {}
    single = listing.single
    for one in listing.candidates:
        sniffed = one.kind in _SNIFFED and not one.named
        if trace is not None or sniffed:
            content = content_of(one)
            if trace is not None:
                digests[one.path] = digest_of(content)
            if sniffed and not _matters(one.kind, content):
                continue
            if one.by_keys and not (isinstance(content, bytes) and is_environment(content)):
                continue
        if not single:
            place = one.link or os.path.realpath(one.path)
            if place in real:
                continue
            real.add(place)
        files.append(FoundFile(one.path, one.kind))
    if trace is not None:
        trace.found(fingerprint(listing, digests), digests)
    return Found(tuple(files), listing.skipped)


def listing_of(paths: Sequence[str], kinds: frozenset[str] | None = None) -> Listing:
    """Return what ``discover`` looks at.

    Raises:
        UsageError, TorchpinError: as ``discover``.
    """
    wanted = kinds if kinds is not None else _REQUIREMENTS
    found: list[Candidate] = []
    places: list[tuple[str, str]] = []
    skipped: list[tuple[str, str]] = []
    folders: set[tuple[int, int]] = set()
    for path in paths:
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UsageError("there is no such file or folder", path=path) from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TorchpinError(f"cannot be looked at: {reason}", path=path) from error
        profile = os.path.basename(path) == PROFILE
        if stat.S_ISDIR(status.st_mode) or profile:
            folder = (os.path.dirname(path) or ".") if profile else path
            places.append((folder, os.path.realpath(folder)))
            found += _walk(folder, wanted, folders, places, skipped)
            continue
        named = kind_of(path) or _kind_by_keys(path)
        if named not in wanted and path.lower().endswith(_OTHER_KINDS):
            raise UsageError(
                "is no kind of file that torchpin reads",
                path=path,
                hint=_HINT if wanted == _REQUIREMENTS else _HINT_ALL,
            )
        real = os.path.realpath(path)
        places.append((path, real))
        found.append(Candidate(path, named or "requirements", True, real))
    return Listing(tuple(found), tuple(places), tuple(skipped))


def fingerprint(listing: Listing, digests: Mapping[str, str]) -> str:
    """Return one digest of a listing with the digests of its files: where it is the same,
    ``discover`` finds the same."""
    lines = [
        f"{one.path}\0{one.kind}\0{one.named:d}{one.link}\0{digests[one.path]}"
        for one in listing.candidates
    ]
    lines += ["\0".join(pair) for pair in (*listing.places, ("", ""), *listing.skipped)]
    return seen.listed(lines)


def _kind_by_keys(path: str) -> str | None:
    """Return the kind of a YAML file whose name does not tell: an environment of conda."""
    if not path.lower().endswith((".yml", ".yaml")):
        return None
    from torchpin.documents.loader import read_bytes

    return "environment.yml" if is_environment(read_bytes(path, _LARGEST)) else None


def python_files(places: Sequence[str]) -> tuple[str, ...]:
    """Return the Python files among some places and in the folders among them, sorted.

    Hidden folders and virtual environments are passed over; so is what does not exist.
    """
    found: dict[str, None] = {}
    for place in places:
        if place.endswith(".py") and os.path.isfile(place):
            found[place] = None
        for folder, below, names in os.walk(place):
            below[:] = sorted(
                name
                for name in below
                if not name.startswith(".")
                and name not in _SKIPPED_FOLDERS
                and not os.path.isfile(os.path.join(folder, name, "pyvenv.cfg"))
            )
            found.update(
                (os.path.join(folder, one), None) for one in sorted(names) if one.endswith(".py")
            )
    seen.note_names(seen.SOURCES, "\0".join(places), found)
    return tuple(found)


def _walk(
    root: str,
    wanted: frozenset[str],
    folders: set[tuple[int, int]],
    places: list[tuple[str, str]],
    skipped: list[tuple[str, str]],
) -> list[Candidate]:
    """Return the files under ``root`` whose names fit, sorted; links to folders are followed
    once."""
    found: list[Candidate] = []
    stack = [root]
    top = _above(root)
    ignored = ignored_below(root or ".")
    begin = 0 if root in (".", "") else len(os.path.join(root, ""))
    while stack:
        folder = stack.pop()
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in folders:
                continue
            folders.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=_name)
        except OSError as error:
            if folder == root:
                raise TorchpinError(
                    f"cannot be listed: {error.strerror or error}", path=folder
                ) from error
            skipped.append((folder, error.strerror or str(error)))
            continue
        if folder != root and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        prefix = "" if folder in (".", "") else os.path.join(folder, "")
        below: list[str] = []
        here: list[Candidate] = []
        locked = False
        for entry in entries:
            name = entry.name
            path = prefix + name
            if ignored and path[begin:].replace(os.sep, "/") in ignored:
                continue
            try:
                if entry.is_dir():
                    if name not in _SKIPPED_FOLDERS and (
                        not name.startswith(".") or name in _HIDDEN_FOLDERS
                    ):
                        below.append(path)
                        if entry.is_symlink():
                            places.append((path, os.path.realpath(path)))
                elif entry.is_file():
                    beside = path if folder != root else os.path.join(top, name)
                    if top and folder != root and top[0] == ".":
                        beside = os.path.join(top, path[begin:])
                    kind = kind_of(beside)
                    maybe = kind is None and name[-4:] in _YAML and _MAYBE.search(beside)
                    if maybe:
                        kind = "environment.yml"
                    if kind is None or (name.startswith(".") and kind not in PART_KINDS):
                        continue
                    locked = locked or (kind in LOCKS and not name.endswith(".py.lock"))
                    if kind in wanted:
                        link = os.path.realpath(path) if entry.is_symlink() else ""
                        here.append(Candidate(path, kind, False, link, bool(maybe)))
            except OSError as error:  # a link that leads to itself
                skipped.append((path, error.strerror or str(error)))
        if locked:
            here = [one._replace(named=one.kind == "pyproject") for one in here]
        found += here
        stack += reversed(below)
    return sorted(found)


def _above(root: str) -> str:
    """Return the folders of a root that tell what its files are: ``.github/workflows``; else its
    own name."""
    names = os.path.abspath(root).split(os.sep)
    hidden = [at for at, name in enumerate(names) if name in _HIDDEN_FOLDERS]
    return os.sep.join(names[hidden[-1] :] if hidden else names[-1:])


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def content_of(one: Candidate) -> bytes | TorchpinError:
    """Return what of a file tells whether it matters: all of it, of a Python file the head (for a
    block of metadata); or why it cannot be read."""
    try:
        if one.kind == "script" and not one.named:
            return _head(one.path)
        small = None if one.named else _peek(one.path)
        if small is not None:
            return small
        script = one.kind in PART_KINDS and one.kind != "pixi.lock" and not one.named
        return plain_bytes(one.path, _LARGEST) if script else plain_bytes(one.path)
    except TorchpinError as error:
        return error


def digest_of(content: bytes | TorchpinError) -> str:
    """Return by what the content of a file is told from others, or the failure to read it."""
    return seen.digest(content) if isinstance(content, bytes) else f"!{content.message}"


def _matters(kind: str, content: bytes | TorchpinError) -> bool:
    """Tell whether a file holds a name that torchpin knows; unreadable project files do.

    Of a Python file only the head is looked at, for a block of metadata.
    """
    parts = kind in PART_KINDS
    if not isinstance(content, bytes):
        return not parts and kind != "script"  # to be told by who reads it
    if kind == "script" and b"# /// script" not in content:
        return False
    if parts and b"\0" in content[:8192]:
        return False
    # Plain searches of the text in lower case take a tenth of the time of one regular expression.
    lower = content.lower()
    if parts and (b"install" in content or kind in _LISTED):
        for name in _INCLUDES:
            if name in lower:
                return True
        if b".txt" in lower and (b"-r " in content or b"--requirement" in content):
            return True
    if kind == "compose":  # its Dockerfiles may leave the GPU idle, or do what arguments say
        for name in (b"gpu", b"nvidia", b"args"):
            if name in content:
                return True
    for name in _NAMES:  # noqa: SIM110 (this loop runs a thousand times; any() doubles it)
        if name in lower:
            return True
    return False


def _peek(path: str) -> bytes | None:
    """Return a small file in two calls of the system; None for one that is not small, or odd."""
    try:
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        try:
            data = os.read(handle, _SMALL)
        finally:
            os.close(handle)
    except (OSError, ValueError):
        return None
    return data if len(data) < _SMALL else None


def _head(path: str) -> bytes:
    """Return the first bytes of a Python file.

    Raises:
        TorchpinError: it cannot be read: no file of dependencies, as far as one can see.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(_HEAD)
    except OSError as error:
        raise TorchpinError(error.strerror or str(error), path=path) from error
