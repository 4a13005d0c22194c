"""The data files of a catalog as values, and values as data files (pure but for the two ends).

``render`` of what ``read_state`` read gives the same bytes: strings and kernel lists that records
point to by number are numbered in the order in which builds, rows and spans name them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from packaging.version import Version

from torchpin.catalog.model import PLATFORMS, Build, Kernels
from torchpin.catalog.package import Package
from torchpin.catalog.whole import HEAD, sums
from torchpin.errors import CatalogError
from torchpin.named import NamedTuple


class Part(NamedTuple):
    """All that is known of one package."""

    package: str
    pypi: list[str]
    elsewhere: list[str]
    sdists: list[str]
    spans: list[list[Any]]
    """[channel, first, last, evidence, source text, closed, source text of the begin or None]"""
    builds: list[Build]
    rows: list[list[Any]]
    """[version, channel, platform, exists (False or None), evidence, source text]"""
    pages: list[list[str]]
    """[channel or ``pypi``, date, newest version known then]"""
    hashes: list[list[str]] | None
    """[full version, platform, channel, file name, SHA-256]; None: not kept for this package"""


class State(NamedTuple):
    """A whole catalog."""

    head: dict[str, Any]
    parts: dict[str, Part]
    partners: dict[str, Any]
    pins: list[list[str]]
    health: dict[str, Any]


def order(build: Build) -> tuple[Any, ...]:
    """Return the key by which the builds of a package are sorted."""
    return (
        Version(build.version),
        build.home != "pypi",
        build.channel,
        PLATFORMS.index(build.platform),
        build.label,
    )


def read_state(folder: str) -> State:
    """Return the catalog in a folder.

    Raises:
        CatalogError: it cannot be read.
    """
    head = _load(folder, HEAD)
    try:
        parts = {name: _part(folder, name) for name in sorted(head["builds"])}
        return State(
            head,
            parts,
            _load(folder, "partners.json"),
            _load(folder, "pins.json")["pins"],
            _load(folder, "health.json"),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise CatalogError("catalog data do not have their shape", path=folder) from error


def _load(folder: str, name: str) -> Any:
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise CatalogError(f"catalog data cannot be read: {error}", path=path) from error


def _part(folder: str, name: str) -> Part:
    raw = _load(folder, f"builds-{name}.json")
    texts = raw["sources"]
    hashes = None
    if os.path.exists(os.path.join(folder, f"hashes-{name}.json")):
        hashes = _load(folder, f"hashes-{name}.json")["files"]
    return Part(
        name,
        raw["pypi"],
        raw["elsewhere"],
        raw.get("sdists", []),
        [[*s[:4], texts[s[4]], s[5], None if s[6] is None else texts[s[6]]] for s in raw["spans"]],
        list(Package(raw).all()),
        [[*r[:5], texts[r[5]]] for r in raw["rows"]],
        raw.get("pages", []),
        hashes,
    )


def compact(value: object) -> str:
    """Return ``value`` as JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def table(columns: Mapping[str, object]) -> str:
    """Return a JSON object with one key a line, and lists and objects with one record a line."""
    parts = []
    for key, value in columns.items():
        if isinstance(value, list) and value:
            body = "[\n" + ",\n".join(compact(item) for item in value) + "\n]"
        elif isinstance(value, dict) and value:
            body = (
                "{\n" + ",\n".join(f"{compact(k)}:{compact(v)}" for k, v in value.items()) + "\n}"
            )
        else:
            body = compact(value)
        parts.append(f"{compact(key)}:{body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


class Interned:
    """A table of strings or lists that records point into by number."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._at: dict[str, int] = {}

    def at(self, item: Any) -> int:
        """Return the number of an item."""
        key = json.dumps(item)
        if key not in self._at:
            self._at[key] = len(self.items)
            self.items.append(item)
        return self._at[key]


def package_text(part: Part) -> str:
    """Return ``builds-PACKAGE.json``; its columns are told in ``torchpin.catalog.package``."""
    texts, lists = Interned(), Interned()

    def kernel(item: Kernels | None) -> int | None:
        if item is None:
            return None
        return lists.at([*(" ".join(k) for k in item[:3]), item.evidence, texts.at(item.source)])

    builds = [
        [
            *(b.version, b.label, b.channel, b.home, b.platform),
            *(" ".join(b.pythons), " ".join(b.pythons_inferred)),
            *(kernel(b.kernels), [[name, kernel(k)] for name, k in b.libraries]),
            *(b.cuda, b.glibc, b.macos, b.requires_torch, b.requires_python),
            *(int(b.yanked), b.released, b.evidence, texts.at(b.source)),
        ]
        for b in part.builds
    ]
    rows = [[*row[:5], texts.at(row[5])] for row in part.rows]
    spans = [
        [*s[:4], texts.at(s[4]), int(s[5]), None if s[6] is None else texts.at(s[6])]
        for s in part.spans
    ]
    columns: dict[str, object] = {
        "package": part.package,
        "pypi": part.pypi,
        "elsewhere": part.elsewhere,
        "sdists": part.sdists,
        "spans": spans,
        "kernels": lists.items,
        "builds": builds,
        "rows": rows,
    }
    if part.pages:
        columns["pages"] = part.pages
    return table({**columns, "sources": texts.items})


def render(state: State) -> dict[str, str]:
    """Return file name → text of all data files, ``catalog.json`` with a new digest."""
    import hashlib

    files = {f"builds-{name}.json": package_text(part) for name, part in state.parts.items()}
    files |= {
        f"hashes-{name}.json": table({"package": name, "files": part.hashes})
        for name, part in state.parts.items()
        if part.hashes is not None
    }
    files["partners.json"] = table(state.partners)
    files["pins.json"] = table({"pins": state.pins})
    files["health.json"] = table(state.health)
    head = dict(state.head)
    data = {name: files[name].encode() for name in sorted(files)}
    head["digest"] = hashlib.sha256(b"".join(data.values())).hexdigest()
    head["builds"] = {name: len(part.builds) for name, part in state.parts.items()}
    if "base" in head:  # a refreshed catalog, which a loader checks
        head["files"] = sums(data)
    files[HEAD] = table(head)
    return files


def write_folder(folder: str, files: Mapping[str, str]) -> None:
    """Write all files of a catalog: all are staged beside their places before the first rename.

    Other files in the folder stay. The head comes last, so that a folder whose writing was
    cut short is seen to be broken.

    Raises:
        CatalogError: it cannot be written; the old files stay.
    """
    names = sorted(files, key=lambda name: (name == HEAD, name))
    parts: list[str] = []
    try:
        os.makedirs(folder, exist_ok=True)
        for name in names:
            path = os.path.join(folder, f".{name}.{os.getpid()}.part")
            parts.append(path)
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(files[name])
                file.flush()
                os.fsync(file.fileno())
        for name, path in zip(names, parts, strict=True):
            os.replace(path, os.path.join(folder, name))
    except OSError as error:
        for path in parts:
            if os.path.exists(path):
                os.unlink(path)
        raise CatalogError(f"cannot be written: {error.strerror}", path=folder) from error
