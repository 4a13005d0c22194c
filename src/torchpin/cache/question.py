"""What a result answers: all that it rests on besides the user's files."""

from __future__ import annotations

import os
import sys
import time

from torchpin import __version__, seen
from torchpin.catalog.location import cache_dir, user_catalog

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchpin.cli.arguments import Arguments

FORMAT = 1
"""The form of the entries."""
_SHOWN = frozenset(
    (
        *("baseline", "changed_since", "evidence", "no_baseline"),
        *(
            "exit_zero",
            "jobs",
            "no_cache",
            "no_color",
            "output_format",
            "quiet",
            "severity",
            "statistics",
        ),
    )
)
"""Arguments that decide how findings are shown, not which there are."""
_ENVIRONMENT = (
    *("TORCHPIN_CATALOG", "TORCHPIN_TODAY"),
    # the encoding of the locale: pip reads files by it that are not UTF-8
    *("LC_ALL", "LC_CTYPE", "LANG", "PYTHONUTF8", "PYTHONCOERCECLOCALE"),
)
_DATA = (".py", ".json", ".toml", ".txt")


def question(args: Arguments, paths: tuple[str, ...]) -> str | None:
    """Return a digest of the arguments and of what reads files by them: torchpin with its data, its
    libraries, Python, the catalog, the day; None if that cannot be told."""
    try:
        parts = (
            FORMAT,
            __version__,
            _program(),
            sys.version,
            sys.platform,
            sys.flags.utf8_mode,
            _libraries(),
            os.getcwd(),
            paths,
            sorted((key, value) for key, value in vars(args).items() if key not in _SHOWN),
            [os.environ.get(name) for name in _ENVIRONMENT],
            time.strftime("%Y-%m-%d", time.gmtime()),
            _catalog(args),
        )
    except (OSError, ValueError):  # the folder is gone, or torchpin lies in an archive
        return None
    return seen.digest(repr(parts).encode("utf-8", "backslashreplace"))


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of change of what lies below a folder of torchpin's own."""
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(_DATA):
            status = entry.stat()
            yield entry.name, status.st_size, status.st_mtime_ns
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _files(entry.path)


def _program() -> list[tuple[str, int, int]]:
    """Return what tells this torchpin from another with the same version: its files and data."""
    return list(_files(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def _libraries() -> list[list[str]]:
    """Return what is installed beside torchpin, with versions: the names of metadata folders."""
    found = []
    for folder in sys.path:
        if os.path.basename(folder) in ("site-packages", "dist-packages") and os.path.isdir(folder):
            names = os.listdir(folder)
            found.append(sorted(one for one in names if one.endswith(("-info", ".egg-link"))))
    return found


def _catalog(args: Arguments) -> list[object]:
    """Return what tells the catalog in use, apart from the one in torchpin itself."""
    named = args.catalog or (None if args.isolated else os.environ.get("TORCHPIN_CATALOG"))
    if named:
        return [] if named == "shipped" else [os.path.abspath(named), *_changed(named)]
    own = None if args.isolated else user_catalog()
    if own is None:
        return []
    return [own, *(_changed(own) if os.path.isdir(own) else ()), cache_dir()]


def _changed(folder: str) -> Iterator[tuple[str, int, int, int]]:
    """Yield what ``_files`` does, and when the system wrote to it last: a copy of another catalog
    may bring along its times, and have files of the same sizes."""
    for name, size, modified in _files(folder):
        path = os.path.join(folder, name)
        yield name, size, modified, os.stat(path).st_ctime_ns if os.path.exists(path) else 0
