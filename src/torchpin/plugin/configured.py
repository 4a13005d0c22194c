"""What the configuration of pip and uv adds to a command, beside its own words.

pip is asked: ``pip config list`` tells what its files and its environment come to, for the pip that
runs. uv has no such command. It reads the ``uv.toml`` or ``[tool.uv]`` of the project (not for
``uv tool``), the ``uv.toml`` of the user and that of the machine, or only the file that
``--config-file`` names; lists are joined in this order, of single values the first holds. Measured
with pip 26.3 and uv 0.13.9, which is also where it is known from which settings a command takes:
constraints and overrides are for ``uv pip`` alone, ``torch-backend`` is for all but ``uv add``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping

from torchpin.documents.base import Document
from torchpin.errors import TorchpinError
from torchpin.named import NamedTuple
from torchpin.select.model import Placed

_ONE = {
    "index-url": "--index-url",
    "pypi-url": "--index-url",
    **{name: f"--{name}" for name in ("target", "prefix", "root")},
}
_MANY = {
    name: f"--{name}" for name in ("extra-index-url", "find-links", "constraint", "requirement")
}
_FLAGS = ("no-index", "pre", "upgrade", "force-reinstall", "ignore-installed")
_TRUE = ("y", "yes", "t", "true", "on", "1")
_SECTIONS = ("global", "install", ":env:")
"""Of pip's configuration, the last one wins."""
_SHOWN = ("--index-url", "--extra-index-url", "--find-links", "--no-index", "--torch-backend")
"""What says where files come from."""


class Setting(NamedTuple):
    """One setting, as an option would say it."""

    option: str
    value: str
    """A URL as it is; ``""`` of a flag."""
    place: str
    """What says so."""


class Configured(NamedTuple):
    """What counts besides the words of a command."""

    words: tuple[str, ...] = ()
    """Of pip: options that stand before those of the command."""
    told: bool = False
    """pip itself told: what its variables say is in ``words``."""
    settings: tuple[tuple[str, str], ...] = ()
    """Of uv: options and URLs of indexes, behind those of the command."""
    backend: str | None = None
    no_index: bool = False
    constraints: tuple[Placed, ...] = ()
    overrides: tuple[Placed, ...] = ()
    shown: tuple[Setting, ...] = ()
    """What says where files come from."""
    known: frozenset[str] = frozenset()
    """URLs of all indexes in uv's settings files, those for single packages too."""


def pip_configured(listed: str) -> Configured:
    """Return what ``pip config list`` tells.

    Args:
        listed: its output, ``section.key='value'`` a line.
    """
    values: dict[str, dict[str, str]] = {}
    for line in listed.splitlines():
        name, equals, text = line.partition("=")
        section, _, key = name.rpartition(".")
        if equals and section in _SECTIONS:
            values.setdefault(section, {})[key] = _text(text)
    chosen: dict[str, str] = {}
    for section in _SECTIONS:
        chosen.update({key: value for key, value in values.get(section, {}).items() if value})
    words: list[str] = []
    shown: list[Setting] = []
    for key, value in chosen.items():
        added: list[str] = []
        if key in _ONE:
            added = [_ONE[key], value]
        elif key in _MANY:
            added = [word for one in value.split() for word in (_MANY[key], one)]
        elif key in _FLAGS and value.lower() in _TRUE:
            added = [f"--{key}"]
        words += added
        if added and added[0] in _SHOWN:
            values_of = added[1::2] or [""]
            shown += (Setting(added[0], one, "pip config list") for one in values_of)
    return Configured(tuple(words), told=True, shown=tuple(shown))


def _text(written: str) -> str:
    import ast

    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return written
    return value if isinstance(value, str) else written


class UvPlaces(NamedTuple):
    """Where uv looks for its settings."""

    config: Document | None = None
    """The only file, which ``--config-file`` names."""
    none: bool = False
    """``--no-config``, or a file of ``--config-file`` that cannot be read: uv tells."""
    folder: str = ""
    """Of the project: the working folder, or what ``--directory`` and ``--project`` say."""


def uv_configured(
    action: tuple[str, ...],
    places: UvPlaces,
    environ: Mapping[str, str],
    load: Callable[[str], Document],
) -> Configured:
    """Return what uv's settings files add to a command.

    Args:
        action: the command, ``("pip", "install")``.
        places: what the command and the environment say about settings files.
        environ: of the process; where the files of the user and of the machine lie.
        load: reads a ``uv.toml`` or a ``pyproject.toml``.
    """
    files = [] if places.none else _files(action, places, environ, load)
    read = [
        (file.path, file.project)
        for file in files
        if file.project is not None and not file.project.ignored
    ]
    pip = action[:1] == ("pip",)
    indexes: tuple[tuple[str, str], ...] = ()
    if read:
        from torchpin.select.uv_pip_settings import configured_indexes

        indexes = configured_indexes([project for _, project in read], pip=pip)
    constraints: list[Placed] = []
    overrides: list[Placed] = []
    for file in files if pip else []:
        for one in file.declarations:
            if one.scope in ("constraint", "override"):
                known = constraints if one.scope == "constraint" else overrides
                known.append(Placed(file, one))

    def value(name: str) -> tuple[str | None, str]:
        for key in ((f"uv.pip.{name}",) if pip else ()) + (f"uv.{name}",):
            for path, project in read:
                found = [one.value for one in project.settings if one.key == key]
                if found:
                    return found[-1], path
        return None, ""

    shown: list[Setting] = []
    for option, url in indexes:
        place = next(path for path, project in read if url in {i.url for i in project.indexes})
        shown.append(Setting(option, url, place))
    backend, place = value("torch-backend") if action != ("add",) else (None, "")
    if backend is not None:
        shown.append(Setting("--torch-backend", backend, place))
    no_index, place = value("no-index")
    if no_index == "true":
        shown.append(Setting("--no-index", "", place))
    return Configured(
        settings=indexes,
        backend=backend,
        no_index=no_index == "true",
        constraints=tuple(constraints),
        overrides=tuple(overrides),
        shown=tuple(shown),
        known=frozenset(one.url.rstrip("/") for _, project in read for one in project.indexes),
    )


def _files(
    action: tuple[str, ...],
    places: UvPlaces,
    environ: Mapping[str, str],
    load: Callable[[str], Document],
) -> list[Document]:
    """Return uv's settings files, the nearest first; uv itself tells of one it cannot read."""
    from torchpin.documents.uv_beside import settings_beside

    found: list[Document] = []

    def take(path: str) -> bool:
        try:
            found.append(load(path))
        except TorchpinError:
            return False
        return True

    if places.config is not None:
        return [places.config]
    if action[:1] != ("tool",):
        manifest = os.path.join(places.folder, "pyproject.toml")
        beside = settings_beside(manifest, load)
        if beside is not None:
            found.append(beside)
        elif os.path.isfile(manifest):
            take(manifest)
    for path in _user_files(environ):
        if os.path.isfile(path) and take(path):
            break
    for path in _machine_files(environ):
        if os.path.isfile(path) and take(path):
            break
    return found


def _user_files(environ: Mapping[str, str]) -> Collection[str]:
    if os.name == "nt":
        folder = environ.get("APPDATA", "")
    else:
        folder = environ.get("XDG_CONFIG_HOME", "")
        if not os.path.isabs(folder):
            folder = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    return [os.path.join(folder, "uv", "uv.toml")] if folder else []


def _machine_files(environ: Mapping[str, str]) -> Collection[str]:
    if os.name == "nt":
        folder = environ.get("PROGRAMDATA", "")
        return [os.path.join(folder, "uv", "uv.toml")] if folder else []
    folders = [one for one in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if one]
    return [*(os.path.join(one, "uv", "uv.toml") for one in folders), "/etc/uv/uv.toml"]
