"""The shape of the catalog's data files, and what must hold between them.

``check_folder`` is asked by the scripts that make the shipped data, by a refresh before it replaces
anything, and by the tests. The meaning of the columns is told in ``torchpin.catalog.package``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from packaging.version import Version

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import PLATFORMS
from torchpin.catalog.shape import (
    COUNT,
    DATE,
    DOTTED,
    FLAG,
    NAME,
    NOTHING,
    SHA256,
    SOME,
    SPECIFIER,
    TEXT,
    VERSION,
    Problem,
    Shape,
    columns,
    either,
    faults,
    mapping,
    numbers,
    one_of,
    rows,
    sequence_problems,
    simple,
    table,
    text,
    words,
)
from torchpin.catalog.store import FORMAT
from torchpin.errors import CatalogError
from torchpin.evidence import ORDER

UNHASHED = ("catalog.json", "drivers.json", "internals.json")
"""Files that the digest of ``catalog.json`` does not cover."""

EVIDENCE = one_of(*ORDER)
PLATFORM = one_of(*PLATFORMS)
SASS = text(r"\d{2,3}[af]?", "a compute capability (75, 90a)")
GFX = text(r"gfx[0-9a-f]{3,5}\S*", "an AMD target")
PYTHON = text(r"(cp\d{2,3}t?|cp\d{2,3}-abi3|py\d{1,3}|pp\d+)", "a Python tag")
CHANNEL = simple(
    "a channel",
    lambda value: (
        isinstance(value, str) and (value in ("", "root") or kind_of_label(value) is not None)
    ),
)
DRIVER = text(r"\d+(\.\d+){0,3}", "a driver version")
CAPABILITY = text(r"\d+\.\d", "a compute capability (7.5)")


def or_null(shape: Shape) -> Shape:
    """Return the shape of a value that may be null."""
    return either(NOTHING, shape)


def builds_shape(sources: int, kernels: int) -> Shape:
    """Return the shape of ``builds-PACKAGE.json`` with so many sources and kernel lists."""
    source = numbers(sources)
    lists = numbers(kernels)
    return table(
        {
            "package": NAME,
            "pypi": rows(VERSION),
            "elsewhere": rows(VERSION),
            "spans": rows(
                columns(
                    {
                        "channel": CHANNEL,
                        "first": VERSION,
                        "last": VERSION,
                        "evidence": EVIDENCE,
                        "source": source,
                        "closed": FLAG,
                        "start": or_null(source),
                    }
                )
            ),
            "kernels": rows(
                columns(
                    {
                        "sass": words(SASS),
                        "ptx": words(SASS),
                        "gfx": words(GFX),
                        "evidence": EVIDENCE,
                        "source": source,
                    }
                )
            ),
            "builds": rows(
                columns(
                    {
                        "version": VERSION,
                        "label": TEXT,
                        "channel": CHANNEL,
                        "home": one_of("pypi", "channel"),
                        "platform": PLATFORM,
                        "pythons": words(PYTHON),
                        "pythons_inferred": words(PYTHON),
                        "kernels": or_null(lists),
                        "libraries": rows(columns({"name": SOME, "kernels": lists})),
                        "cuda": or_null(text(r"\d+(\.\d+)?", "a CUDA version")),
                        "glibc": or_null(DOTTED),
                        "macos": or_null(DOTTED),
                        "requires_torch": or_null(SPECIFIER),
                        "requires_python": or_null(SPECIFIER),
                        "yanked": FLAG,
                        "released": or_null(DATE),
                        "evidence": EVIDENCE,
                        "source": source,
                    }
                )
            ),
            "rows": rows(
                columns(
                    {
                        "version": VERSION,
                        "channel": either(one_of("*", "pypi"), CHANNEL),
                        "platform": either(one_of("*"), PLATFORM),
                        "exists": one_of(False, None),
                        "evidence": EVIDENCE,
                        "source": source,
                    }
                )
            ),
            "sources": rows(SOME),
        },
        {
            "sdists": rows(VERSION),
            "pages": rows(
                columns(
                    {
                        "channel": either(one_of("pypi"), CHANNEL),
                        "date": DATE,
                        "newest": either(one_of(""), VERSION),
                    }
                )
            ),
        },
    )


HASHES = table(
    {
        "package": NAME,
        "files": rows(
            columns(
                {
                    "version": VERSION,
                    "platform": PLATFORM,
                    "channel": either(one_of("pypi"), CHANNEL),
                    "file": text(r"[A-Za-z0-9_.+!-]+\.whl", "the name of a wheel"),
                    "sha256": SHA256,
                }
            )
        ),
    }
)
PARTNERS = mapping(
    VERSION,
    mapping(
        NAME,
        rows(columns({"version": VERSION, "specifier": or_null(SPECIFIER), "made": FLAG})),
    ),
    least=30,
)
PINS = table(
    {
        "pins": rows(
            columns({"package": NAME, "version": VERSION, "specifier": SPECIFIER, "sha256": SHA256})
        )
    }
)
INTERNALS = table(
    {
        "torch": rows(
            columns(
                {
                    "version": VERSION,
                    "platform": PLATFORM,
                    "channel": CHANNEL,
                    "brings": COUNT,
                    "evidence": EVIDENCE,
                    "source": COUNT,
                }
            )
        ),
        "brings": rows(columns({"specifiers": TEXT, "versions": mapping(NAME, VERSION)})),
        "wheels": rows(
            columns(
                {
                    "package": NAME,
                    "version": VERSION,
                    "platform": PLATFORM,
                    "libraries": rows(columns({"name": SOME, "list": COUNT})),
                    "source": COUNT,
                }
            )
        ),
        "lists": rows(columns({"sass": words(SASS), "ptx": words(SASS)})),
        "sources": rows(SOME),
    }
)
HEALTH = table(
    {
        "health": rows(
            columns(
                {
                    "channel": SOME,
                    "kind": SOME,
                    "problem": SOME,
                    "since": TEXT,
                    "status": TEXT,
                    "affects": TEXT,
                    "workaround": TEXT,
                    "source": SOME,
                }
            )
        ),
        "stale": rows(NAME),
        "mirrored": rows(NAME),
    }
)
HEAD = table(
    {
        "format": one_of(FORMAT),
        "date": DATE,
        "digest": SHA256,
        "facts": mapping(SOME, SHA256),
        "newest": mapping(NAME, either(one_of(""), VERSION), least=1),
        "builds": mapping(NAME, COUNT, least=1),
    },
    {
        "measured": mapping(SOME, DATE),
        "measured_sha256": SHA256,
        "pinned": rows(NAME),
        "base": either(one_of(""), SHA256),
        "refreshed": DATE,
        "tool": SOME,
        "previous": SHA256,
    },
)
_SOURCES = {"evidence": EVIDENCE, "sources": rows(SOME, least=1)}
DRIVERS: Mapping[str, Shape] = {
    "date": table({"date": DATE}),
    "branch": table({"branch": DRIVER, "cuda": DOTTED, **_SOURCES}),
    "compat": table({"package": DOTTED, "base": mapping(DRIVER, SOME, least=1), **_SOURCES}),
    "floor": table(
        {
            "cuda": DRIVER,
            "os": one_of("linux", "windows"),
            "driver": DRIVER,
            **_SOURCES,
        }
    ),
    "gpu": table(
        {
            "capability": CAPABILITY,
            "architecture": SOME,
            "first": or_null(DRIVER),
            "last": or_null(DRIVER),
            **_SOURCES,
        }
    ),
    "jetpack": table(
        {
            "jetpack": SOME,
            "l4t": SOME,
            "cuda": or_null(DOTTED),
            "capabilities": rows(CAPABILITY, least=1),
            **_SOURCES,
        }
    ),
    "toolkit": table(
        {
            "cuda": DOTTED,
            "platform": PLATFORM,
            "driver": DRIVER,
            "branch": DRIVER,
            **_SOURCES,
        }
    ),
}
"""Record of ``drivers.json`` by its kind."""
LEAST_DRIVERS = {
    "date": 1,
    "branch": 24,
    "compat": 12,
    "floor": 7,
    "gpu": 18,
    "jetpack": 7,
    "toolkit": 40,
}
"""Fewest records of each kind; fewer means that a table lost something."""


def check_file(name: str, data: Any) -> list[Problem]:
    """Return what is wrong with the parsed content of one data file; nothing: ``[]``."""
    if name.startswith("builds-"):
        return _check_builds(name, data)
    if name == "drivers.json":
        return _check_drivers(name, data)
    shapes = {
        "catalog.json": HEAD,
        "partners.json": PARTNERS,
        "pins.json": PINS,
        "internals.json": INTERNALS,
        "health.json": HEALTH,
    }
    shape = HASHES if name.startswith("hashes-") else shapes.get(name)
    return faults(name, data, shape) if shape is not None else []


def _check_builds(name: str, data: Any) -> list[Problem]:
    sizes = [0, 0]
    if isinstance(data, dict):
        for at, key in enumerate(("sources", "kernels")):
            found = data.get(key)
            sizes[at] = len(found) if isinstance(found, list) else 0
    out = faults(name, data, builds_shape(*sizes))
    if out:
        return out
    package = name.removeprefix("builds-").removesuffix(".json")
    if data["package"] != package:
        out.append(Problem(name, "package", f"{data['package']!r} is not {package!r}"))
    builds = data["builds"]
    out += sequence_problems(name, "builds", [tuple(record[:5]) for record in builds])
    for at in range(1, len(builds)):
        if Version(builds[at - 1][0]) > Version(builds[at][0]):
            out.append(Problem(name, f"builds[{at}].version", "is not in ascending order"))
    for at, record in enumerate(builds):
        if record[3] == "channel" and not record[2]:
            out.append(Problem(name, f"builds[{at}].channel", "is empty"))
        if record[3] == "pypi" and record[0] not in data["pypi"]:
            out.append(Problem(name, f"builds[{at}].version", "is not in the list of PyPI"))
        if record[4].startswith("macos") and record[10] is not None:
            out.append(Problem(name, f"builds[{at}].glibc", "a macOS build has none"))
    for at, record in enumerate(data["spans"]):
        if Version(record[1]) > Version(record[2]):
            out.append(Problem(name, f"spans[{at}]", "ends before it begins"))
    return out


def _check_drivers(name: str, data: Any) -> list[Problem]:
    if not isinstance(data, list):
        return [Problem(name, "", "is not a list")]
    out: list[Problem] = []
    counts = dict.fromkeys(LEAST_DRIVERS, 0)
    for at, record in enumerate(data):
        kind = record.get("kind") if isinstance(record, dict) else None
        if not isinstance(kind, str) or kind not in DRIVERS:
            out.append(Problem(name, f"[{at}].kind", f"{kind!r} is none of {', '.join(DRIVERS)}"))
            continue
        counts[kind] += 1
        out += [
            Problem(name, f"[{at}]{place}", message) for place, message in DRIVERS[kind](record)
        ]
    out += [
        Problem(name, "", f"{counts[kind]} records of kind {kind}, at least {least} expected")
        for kind, least in LEAST_DRIVERS.items()
        if counts[kind] < least
    ]
    return out


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the digest that ``catalog.json`` must state for these files (name → bytes)."""
    import hashlib

    covered = sorted(name for name in files if name not in UNHASHED)
    return hashlib.sha256(b"".join(files[name] for name in covered)).hexdigest()


def check_files(files: Mapping[str, bytes]) -> list[Problem]:
    """Return what is wrong with a catalog of these files (name → bytes), within and between."""
    out: list[Problem] = []
    parsed: dict[str, Any] = {}
    for name in sorted(files):
        try:
            parsed[name] = json.loads(files[name])
        except ValueError as error:
            out.append(Problem(name, "", f"is not JSON: {error}"))
            continue
        out += check_file(name, parsed[name])
    needed = ("catalog.json", "partners.json", "pins.json", "health.json")
    out += [Problem(name, "", "is missing") for name in needed if name not in files]
    if not out:
        out += _check_between(files, parsed)
    return out


def _check_between(files: Mapping[str, bytes], parsed: Mapping[str, Any]) -> Iterable[Problem]:
    head = parsed["catalog.json"]
    if head["digest"] != digest_of(files):
        yield Problem("catalog.json", "digest", "is not the digest of the other files")
    for package, count in head["builds"].items():
        name = f"builds-{package}.json"
        if name not in parsed:
            yield Problem(name, "", "is missing")
            continue
        held = len(parsed[name]["builds"])
        if held != count:
            yield Problem("catalog.json", f"builds.{package}", f"{count} builds, {held} are held")
        newest = head["newest"].get(package, "")
        if newest and newest not in parsed[name]["pypi"]:
            yield Problem("catalog.json", f"newest.{package}", f"{newest} is not on PyPI")
    for name in parsed:
        package = name.partition("-")[2].removesuffix(".json")
        if name.startswith("builds-") and package not in head["builds"]:
            yield Problem("catalog.json", "builds", f"does not name {package}")
        if not name.startswith("hashes-") or f"builds-{package}.json" not in parsed:
            continue
        known = {
            (f"{b[0]}+{b[1]}" if b[1] else b[0], b[4])
            for b in parsed[f"builds-{package}.json"]["builds"]
        }
        for at, record in enumerate(parsed[name]["files"]):
            if (record[0], record[1]) not in known:
                yield Problem(name, f"files[{at}]", f"no build is {record[0]} for {record[1]}")


def check_folder(folder: str) -> list[Problem]:
    """Return what is wrong with the catalog in a folder; nothing: ``[]``.

    Raises:
        CatalogError: the folder or a file in it cannot be read.
    """
    files: dict[str, bytes] = {}
    try:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".json"):
                with open(os.path.join(folder, name), "rb") as file:
                    files[name] = file.read()
    except OSError as error:
        raise CatalogError(f"cannot be read: {error.strerror}", path=folder) from error
    return check_files(files)
