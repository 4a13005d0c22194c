"""Read the fleet profile: ``[tool.torchpin]`` of ``pyproject.toml``, or ``torchpin.toml``.

Every problem of a profile is reported at once, each with file and line. The machine that runs
torchpin is never looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from torchpin import seen
from torchpin.errors import ConfigError
from torchpin.fleet.checks import contradictions, default_platform
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import Fleet, Gpu, NodeGroup, Setting, Settings
from torchpin.fleet.options import fleet_from_options
from torchpin.fleet.toml_text import Path, decode, find_lines, loads
from torchpin.fleet.values import (
    kind,
    parse_driver,
    parse_glibc,
    parse_macos,
    parse_platform,
    parse_pythons,
    parse_release,
    quote,
)
from torchpin.patterns import regex

__all__ = [
    "GROUP_KEYS",
    "TOP_KEYS",
    "find_profile",
    "fleet_from_options",
    "fleet_schema_path",
    "load_profile",
    "parse_pythons",
    "read_profile",
]

TOP_KEYS = (
    "policy",
    "indexes",
    "select",
    "ignore",
    "per-file-ignores",
    "catalog-max-age",
    "sources",
    "require-reasons",
    "baseline",
    "fleet",
)
GROUP_KEYS = (
    "gpus",
    "driver",
    "python",
    "platform",
    "glibc",
    "libc",
    "cuda-compat",
    "macos",
    "wsl",
    "jetpack",
    "rocm",
    "files",
    "extras",
    "groups",
    "client",
    "indexes",
)
_POLICIES = ("nearest", "newest")
_CLIENTS = ("pip", "uv")
_MOST_DAYS = 99_999
_LIBCS = ("glibc", "musl")
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_CHANNEL = regex(r"cpu|xpu|cu[0-9]{2,3}|rocm[0-9]+(?:\.[0-9]+)*|pypi|private")
_CODE = regex(r"ALL|TP[0-9]{0,3}")
_HEADER = rb"(?m)^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*[\"']?torchpin\b"
_OTHER_TOOL = regex(rb"(?m)^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*[\"']?(t[\w-]{5,9})\b", re.I)
"""Tables of tools whose names may be a slip of ``torchpin``."""
_T = TypeVar("_T")


def fleet_schema_path() -> str:
    """Return the path of the JSON Schema of a profile that ships with torchpin."""
    return os.path.join(os.path.dirname(__file__), "schema.json")


def find_profile(start: str, overlay: Mapping[str, bytes] = {}) -> str | None:
    """Return the nearest profile at or above ``start`` (a file or folder), or None.

    ``torchpin.toml`` beats ``pyproject.toml`` in the same folder; a ``pyproject.toml`` counts only
    if it has a ``tool.torchpin`` table. The search ends at a folder that holds ``.git``.
    ``overlay``: bytes that stand in for files on disk, by absolute path.

    Raises:
        ConfigError: a candidate cannot be read.
    """
    folder = os.path.abspath(start)
    if not seen.is_folder(folder):
        folder = os.path.dirname(folder)
    while True:
        own = os.path.join(folder, "torchpin.toml")
        if own in overlay or seen.is_file(own):
            return own
        project = os.path.join(folder, "pyproject.toml")
        held = overlay.get(project)
        if (held is not None or seen.is_file(project)) and _has_table(project, held):
            return project
        parent = os.path.dirname(folder)
        if parent == folder or seen.exists(os.path.join(folder, ".git")):
            return None
        folder = parent


def _has_table(path: str, held: bytes | None) -> bool:
    data = _read(path) if held is None else held
    if b"torchpin" not in data:
        _check_spelling(data, path)
        return False
    try:
        tool = loads(decode(data, path), path).get("tool")
    except ConfigError:  # load_profile reports it, if it is ours at all
        return re.search(_HEADER, data) is not None
    found = isinstance(tool, dict) and "torchpin" in tool
    if not found:
        _check_spelling(data, path)
    return found


def _check_spelling(data: bytes, path: str) -> None:
    """Raise for a table whose name is all but ``tool.torchpin``: it would be passed over unseen.

    Raises:
        ConfigError: ``[tool.torchpn]`` and its like.
    """
    for match in _OTHER_TOOL.finditer(data):
        name = match[1].decode()
        import difflib

        if difflib.SequenceMatcher(None, name.lower(), "torchpin").ratio() > 0.86:
            raise ConfigError(
                f"[tool.{name}] is not a table of torchpin",
                path=path,
                line=data.count(b"\n", 0, match.start(1)) + 1,
                hint="did you mean [tool.torchpin]?",
            )


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", path=path) from error
    seen.note_bytes(path, data)
    return data


def load_profile(path: str) -> Fleet:
    """Return the fleet that a ``pyproject.toml`` or ``torchpin.toml`` declares.

    Raises:
        ConfigError: the file cannot be read, is not TOML, has no ``tool.torchpin`` table, or
            declares what is unknown, impossible or contradictory. Several problems come in one
            error: its place is that of the first, the others follow in its message.
    """
    return read_profile(decode(_read(path), path), path)


def read_profile(text: str, path: str) -> Fleet:
    """Return the fleet that the text of a profile declares; ``path`` names it and tells its kind.

    Raises:
        ConfigError: as ``load_profile``.
    """
    data: Any = loads(text, path)
    prefix: Path = ()
    if os.path.basename(path) == "pyproject.toml":
        tool = data.get("tool")
        if not isinstance(tool, dict) or "torchpin" not in tool:
            raise ConfigError(
                "has no [tool.torchpin] table",
                path=path,
                hint="declare node groups in [tool.torchpin.fleet.NAME]",
            )
        data, prefix = tool["torchpin"], ("tool", "torchpin")
    return _Reader(path, find_lines(text), prefix).fleet(data)


class _Reader:
    """Reads the parsed profile and collects the errors."""

    def __init__(self, path: str, lines: dict[Path, int], prefix: Path) -> None:
        self.path = path
        self.lines = lines
        self.prefix = prefix
        self.errors: list[ConfigError] = []

    def line(self, at: Path) -> int:
        """Return the line of a key, or of the nearest key above it."""
        full = (*self.prefix, *at)
        while full and full not in self.lines:
            full = full[:-1]
        return self.lines.get(full, 1)

    def error(self, message: str, at: Path, hint: str = "") -> None:
        self.errors.append(ConfigError(message, path=self.path, line=self.line(at), hint=hint))

    def fleet(self, data: Any) -> Fleet:
        groups: list[NodeGroup] = []
        settings = Settings()
        if self.table(data, "tool.torchpin", ()):
            self.unknown(data, TOP_KEYS, ())
            settings = Settings(
                self.choice(data, "policy", _POLICIES, (), "nearest") or "nearest",
                self.indexes(data.get("indexes", {})),
                self.codes(data.get("select", []), ("select",)),
                self.codes(data.get("ignore", []), ("ignore",)),
                self.per_file(data.get("per-file-ignores", {})),
                self.days(data, "catalog-max-age", Settings().catalog_max_age),
                tuple(
                    one for _, one in self.strings(data.get("sources", []), "sources", ("sources",))
                ),
                self.beside(data, "baseline"),
                self.flag(data, "require-reasons", ()),
            )
            fleet = data.get("fleet", {})
            if self.table(fleet, "fleet", ("fleet",)):
                for name, value in self.named(fleet).items():
                    group = self.group(name, value)
                    if group is not None:
                        groups.append(group)
        if self.errors:
            raise _joined(self.errors)
        return Fleet(tuple(groups), settings, self.path)

    def named(self, fleet: dict[str, Any]) -> dict[str, Any]:
        """Return the groups of a fleet; the keys of a group without a name are one error."""
        loose = [key for key in fleet if key in GROUP_KEYS and not isinstance(fleet[key], dict)]
        if loose:
            title = ".".join((*map(str, self.prefix), "fleet"))
            self.error(
                f"{loose[0]} belongs to a node group, and a node group has a name",
                ("fleet", loose[0]),
                f"write [{title}.main], or any other name, in place of [{title}]",
            )
        return {name: value for name, value in fleet.items() if name not in loose}

    def table(self, value: Any, name: str, at: Path) -> bool:
        if isinstance(value, dict):
            return True
        self.error(f"{name} must be a table, not {kind(value)}", at)
        return False

    def unknown(self, table: dict[str, Any], known: Sequence[str], at: Path) -> None:
        for key in table:
            if key in known:
                continue
            hint = f"known keys: {', '.join(known)}"
            near = _nearest(key, known)
            if near:
                hint = f"did you mean {near!r}? {hint}"
            elif not at and not self.prefix and key == "tool":
                hint = "torchpin.toml needs no tool.torchpin prefix: write [fleet.NAME]"
            elif not at and key in GROUP_KEYS:
                hint = f"{key} belongs to a node group: [fleet.NAME]"
            self.error(f"unknown key {quote(key)}", (*at, key), hint)

    def choice(
        self, table: dict[str, Any], key: str, words: Sequence[str], at: Path, default: str | None
    ) -> str | None:
        value = table.get(key, default)
        if value is None or value in words:
            return value
        shown = quote(value) if isinstance(value, str) else kind(value)
        self.error(f"{key} must be {' or '.join(map(quote, words))}, not {shown}", (*at, key))
        return default

    def days(self, table: dict[str, Any], key: str, default: int) -> int:
        """Return a number of days, as ``"90d"``, 90, 0 or false write it."""
        value = table.get(key, default)
        if value is False:
            return 0
        if isinstance(value, int) and value is not True and 0 <= value <= _MOST_DAYS:
            return value
        if isinstance(value, str) and (match := re.fullmatch(r"([0-9]{1,5})d", value)):
            return int(match[1])
        shown = quote(value) if isinstance(value, str) else kind(value)
        if isinstance(value, int) and not isinstance(value, bool):
            shown = str(value) if abs(value) < 10**9 else "a number without end"
        self.error(
            f"{key} must be a number of days, not {shown}",
            (key,),
            f'write {key} = "90d"; 0 or false: the age does not matter',
        )
        return default

    def strings(self, value: Any, key: str, at: Path) -> tuple[tuple[int, str], ...]:
        if not isinstance(value, list):
            hint = f'write {key} = ["{value}"]' if isinstance(value, str) else ""
            self.error(f"{key} must be an array of strings, not {kind(value)}", at, hint)
            return ()
        good: list[tuple[int, str]] = []
        for number, item in enumerate(value):
            if not isinstance(item, str):
                self.error(f"{key} must hold strings, not {kind(item)}", (*at, number))
            elif not item.strip():
                self.error(f"{key} holds an empty string", (*at, number))
            else:
                good.append((number, item))
        return tuple(good)

    def codes(self, value: Any, at: Path) -> tuple[str, ...]:
        found: list[str] = []
        for number, code in self.strings(value, str(at[-1]), at):
            if _CODE.fullmatch(code):
                found.append(code)
            else:
                hint = 'write "TP201", or "TP2" for a family, or "ALL"'
                self.error(f"{quote(code)} is no rule code", (*at, number), hint)
        return tuple(found)

    def beside(self, data: Any, key: str) -> str:
        """Return the path that a key names, from the folder of the profile; ``""`` without it."""
        value = data.get(key, "")
        if not isinstance(value, str) or (key in data and not value.strip()):
            self.error(f"{key} is not a path", (key,))
            return ""
        return os.path.normpath(os.path.join(os.path.dirname(self.path), value)) if value else ""

    def per_file(self, value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
        at: Path = ("per-file-ignores",)
        if not self.table(value, "per-file-ignores", at):
            return ()
        return tuple((glob, self.codes(codes, (*at, glob))) for glob, codes in value.items())

    def indexes(self, value: Any) -> tuple[tuple[str, str], ...]:
        if not self.table(value, "indexes", ("indexes",)):
            return ()
        found: list[tuple[str, str]] = []
        for url, word in value.items():
            if isinstance(word, str) and _CHANNEL.fullmatch(word):
                found.append((url, word))
                continue
            shown = quote(word) if isinstance(word, str) else kind(word)
            self.error(
                f"{shown} does not say what an index holds",
                ("indexes", url),
                'write a channel ("cu126", "cpu", "rocm7.2", "xpu"), "pypi" or "private"',
            )
        return tuple(found)

    def group(self, name: str, table: Any) -> NodeGroup | None:
        at: Path = ("fleet", name)
        if not _NAME.fullmatch(name):
            self.error(
                f"{quote(name)} is no name for a node group",
                at,
                "use letters, digits, dots, dashes and underscores",
            )
        if not self.table(table, f"fleet.{name}", at):
            return None
        before = len(self.errors)
        self.unknown(table, GROUP_KEYS, at)
        gpus = self.gpus(name, table, at)
        line = self.line(at)
        platform = self.text(table, "platform", at, parse_platform)
        group = NodeGroup(
            name,
            gpus,
            self.value(table, "python", at, parse_pythons) or (),
            platform or default_platform(gpus),
            self.text(table, "driver", at, parse_driver),
            self.text(table, "glibc", at, parse_glibc),
            self.choice(table, "libc", _LIBCS, at, None) == "musl",
            self.text(table, "cuda-compat", at, _cuda),
            self.text(table, "macos", at, parse_macos),
            self.flag(table, "wsl", at),
            self.text(table, "jetpack", at, _jetpack),
            self.text(table, "rocm", at, _rocm),
            self.names(table, "files", at),
            self.names(table, "extras", at),
            self.names(table, "groups", at),
            self.choice(table, "client", _CLIENTS, at, None),
            self.names(table, "indexes", at),
            self.path,
            line,
            self.settings(table, at),
        )
        if len(self.errors) == before:
            lines = {setting.key: setting.line for setting in group.settings}
            self.errors += contradictions(
                group, lambda key: lines.get(key, lines.get(key.partition("[")[0], line)), self.path
            )
        return group

    def settings(self, table: dict[str, Any], at: Path) -> tuple[Setting, ...]:
        found: list[Setting] = []
        for key, value in table.items():
            found.append(Setting(key, self.line((*at, key))))
            if key == "gpus" and isinstance(value, list):
                found += (
                    Setting(f"gpus[{number}]", self.line((*at, key, number)))
                    for number in range(len(value))
                )
        return tuple(found)

    def gpus(self, name: str, table: dict[str, Any], at: Path) -> tuple[Gpu, ...]:
        if "gpus" not in table:
            if any(_nearest(key, ("gpus",)) for key in table if key not in GROUP_KEYS):
                return ()  # the unknown key is told, with what is meant
            self.error(
                f"fleet {name}: gpus is missing",
                at,
                'write gpus = ["Tesla V100"], or gpus = [] for machines without a GPU',
            )
            return ()
        value = table["gpus"]
        single = isinstance(value, str)
        if not isinstance(value, (str, list)):
            hint = f'write gpus = ["{value}"]' if isinstance(value, float) else ""
            self.error(f"gpus must be an array of strings, not {kind(value)}", (*at, "gpus"), hint)
            return ()
        found: list[Gpu] = []
        for number, item in enumerate([value] if single else value):
            place: Path = (*at, "gpus") if single else (*at, "gpus", number)
            if not isinstance(item, str):
                hint = f'write "{item}"' if isinstance(item, float) else ""
                self.error(f"gpus must hold strings, not {kind(item)}", place, hint)
                continue
            try:
                found += find_gpu(item, path=self.path, line=self.line(place))
            except ConfigError as error:
                self.errors.append(error)
        return tuple(found)

    def names(self, table: dict[str, Any], key: str, at: Path) -> tuple[str, ...]:
        if key not in table:
            return ()
        return tuple(text for _, text in self.strings(table[key], key, (*at, key)))

    def flag(self, table: dict[str, Any], key: str, at: Path) -> bool:
        value = table.get(key, False)
        if isinstance(value, bool):
            return value
        self.error(f"{key} must be true or false, not {kind(value)}", (*at, key))
        return False

    def text(
        self, table: dict[str, Any], key: str, at: Path, parse: Callable[..., str]
    ) -> str | None:
        value = table.get(key)
        if value is not None and not isinstance(value, str):
            hint = f'write {key} = "{value}"' if isinstance(value, (int, float)) else ""
            self.error(f"{key} must be a string, not {kind(value)}", (*at, key), hint)
            return None
        return self.value(table, key, at, parse)

    def value(
        self, table: dict[str, Any], key: str, at: Path, parse: Callable[..., _T]
    ) -> _T | None:
        if key not in table:
            return None
        try:
            return parse(table[key], path=self.path, line=self.line((*at, key)))
        except ConfigError as error:
            self.errors.append(error)
            return None


def _cuda(text: str, *, path: str | None, line: int | None) -> str:
    return parse_release(text, "CUDA", 10, path=path, line=line)


def _rocm(text: str, *, path: str | None, line: int | None) -> str:
    return parse_release(text, "ROCm", 3, path=path, line=line)


def _jetpack(text: str, *, path: str | None, line: int | None) -> str:
    return parse_release(text, "JetPack", 4, path=path, line=line)


def _nearest(key: str, known: Sequence[str]) -> str | None:
    import difflib

    low = key.lower().replace("_", "-")
    for form in (low, f"{low}s", low.removesuffix("s")):
        if form in known:
            return form
    near = difflib.get_close_matches(low, known, n=1, cutoff=0.7)
    return near[0] if near else None


def _joined(errors: list[ConfigError]) -> ConfigError:
    """Return one error that says all: the first by line with its place, then the others."""
    ordered = sorted(errors, key=lambda error: error.line or 0)
    first, *others = ordered
    if not others:
        return first
    parts = [f"{first.message}\n  {first.hint}" if first.hint else first.message]
    parts += (str(error) for error in others)
    return ConfigError("\n".join(parts), path=first.path, line=first.line)
