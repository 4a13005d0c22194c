"""The tables of a profile, read: settings and node groups.

Every problem of a profile is reported at once, each with file and line.
"""

from __future__ import annotations

import os
import re
from typing import Any

from torchpin.errors import ConfigError
from torchpin.fleet.checks import contradictions, default_platform
from torchpin.fleet.gpus import find_gpu
from torchpin.fleet.model import Fleet, Gpu, NodeGroup, Setting, Settings
from torchpin.fleet.toml_text import Path, Values, joined, nearest
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

_PLACED = ("gpus", "files")
"""Arrays of which each entry's line is told."""


class Reader(Values):
    """Reads the parsed profile."""

    def __init__(self, path: str, lines: dict[Path, int], prefix: Path) -> None:
        super().__init__(path, lines, prefix, GROUP_KEYS)

    def fleet(self, data: Any) -> Fleet:
        """Return the fleet with its settings.

        Raises:
            ConfigError: something is wrong; it tells all that is.
        """
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
            raise joined(self.errors)
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

    def codes(self, value: Any, at: Path) -> tuple[str, ...]:
        """Return codes of rules, or their beginnings."""
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
        """Return (pattern of file names, codes) of ``per-file-ignores``."""
        at: Path = ("per-file-ignores",)
        if not self.table(value, "per-file-ignores", at):
            return ()
        return tuple((glob, self.codes(codes, (*at, glob))) for glob, codes in value.items())

    def indexes(self, value: Any) -> tuple[tuple[str, str], ...]:
        """Return (URL, what it holds) of ``indexes``."""
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
        """Return a node group; None if its table is none."""
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
        """Return the lines of the keys of a group, and of the entries of some arrays."""
        found: list[Setting] = []
        for key, value in table.items():
            found.append(Setting(key, self.line((*at, key))))
            if key in _PLACED and isinstance(value, list):
                found += (
                    Setting(f"{key}[{number}]", self.line((*at, key, number)))
                    for number in range(len(value))
                )
        return tuple(found)

    def gpus(self, name: str, table: dict[str, Any], at: Path) -> tuple[Gpu, ...]:
        """Return the GPUs of a group."""
        if "gpus" not in table:
            if any(nearest(key, ("gpus",)) for key in table if key not in GROUP_KEYS):
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


def _cuda(text: str, *, path: str | None, line: int | None) -> str:
    return parse_release(text, "CUDA", 10, path=path, line=line)


def _rocm(text: str, *, path: str | None, line: int | None) -> str:
    return parse_release(text, "ROCm", 3, path=path, line=line)


def _jetpack(text: str, *, path: str | None, line: int | None) -> str:
    return parse_release(text, "JetPack", 4, path=path, line=line)
