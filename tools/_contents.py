"""What the METADATA and ``version.py`` of PyPI's wheels say of torch and of their build."""

from __future__ import annotations

import ast
import email.parser
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version
from tools._common import project_files
from tools._facts import Wheel, pypi_wheels
from tools._zips import RemoteZip

PACKAGES = (
    "bitsandbytes",
    "torch",
    "torchao",
    "torchaudio",
    "torchcodec",
    "torchdata",
    "torchtext",
    "torchvision",
    "triton",
    "xformers",
)
BEFORE = {"torch": Version("1.8")}
"""Newer wheels of torch are read by ``_wheels``; their directories are long."""
BUILT = "cpp_lib.json"
"""Where xformers tells what it was built with."""
AT_ONCE = 4
TRIES = 3


class NoMetadataError(OSError):
    """A wheel without METADATA."""


class Content(NamedTuple):
    """What one wheel says."""

    package: str
    file: str
    sha256: str
    requires_torch: str | None
    """Specifier on torch; ``>=0`` without bounds, ``""`` where torch is not required; None
    without METADATA (torch 1.7.0 for Windows calls its folder ``.dist.info``)."""
    version: str | None
    """``__version__`` of its ``version.py``, with the local label; None if it has none."""
    cuda: str | None
    """``cuda`` of its ``version.py`` where that is a constant, or of xformers' ``cpp_lib.json``;
    None if it is not told."""


def metadata(file: dict[str, Any], remote: RemoteZip | None = None) -> str:
    """Return the METADATA of a wheel: its PEP 658 file, else read from the wheel."""
    if file.get("core-metadata"):
        try:
            with urllib.request.urlopen(file["url"] + ".metadata", timeout=60) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
    archive = remote or RemoteZip(file["url"], file.get("size"))
    for member in archive.members:
        if member.name.endswith(".dist-info/METADATA") and member.name.count("/") == 1:
            return archive.read(member).decode()
    raise NoMetadataError("no METADATA in the wheel")


def torch_specifier(text: str) -> str | None:
    """Return the unconditional specifier on torch, or None if torch is not required."""
    for line in email.parser.Parser().parsestr(text, headersonly=True).get_all("Requires-Dist", []):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if requirement.name == "torch" and "extra" not in str(requirement.marker or ""):
            return str(requirement.specifier)
    return None


def constants(source: str) -> dict[str, str]:
    """Return the names that a module sets to a string at its top level."""
    return {
        target.id: statement.value.value
        for statement in ast.parse(source).body
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
        if isinstance(target, ast.Name)
    }


def cuda_built(data: bytes) -> dict[str, str]:
    """Return the CUDA of a ``cpp_lib.json``: ``{"version": {"cuda": 1201}}`` is 12.1."""
    number = json.loads(data).get("version", {}).get("cuda")
    return {"cuda": f"{number // 100}.{number % 100}"} if isinstance(number, int) else {}


def read_content(package: str, file: dict[str, Any]) -> Content:
    """Read one wheel."""
    archive = RemoteZip(file["url"], file.get("size"))
    specifier: str | None
    try:
        required = torch_specifier(metadata(file, archive))
        specifier = "" if required is None else required or ">=0"
    except NoMetadataError:
        specifier = None
    member = archive.named(f"{package}/version.py")
    told = constants(archive.read(member).decode()) if member else {}
    built = archive.named(f"{package}/{BUILT}")
    if built is not None:
        told |= cuda_built(archive.read(built))
    return Content(
        package,
        file["filename"],
        file["hashes"]["sha256"],
        specifier,
        told.get("__version__"),
        told.get("cuda"),
    )


def patiently(package: str, file: dict[str, Any]) -> Content:
    """Read one wheel, again after a pause where the host is busy."""
    for attempt in range(1, TRIES + 1):
        try:
            return read_content(package, file)
        except urllib.error.HTTPError as error:
            if attempt == TRIES or error.code not in (429, 500, 502, 503, 504):
                raise
        except (urllib.error.URLError, TimeoutError):
            if attempt == TRIES:
                raise
        time.sleep(2**attempt)
    raise AssertionError


def chosen(wheels: Iterable[Wheel]) -> list[str]:
    """Return one file name a version and platform: the first that is not yanked."""
    best: dict[tuple[str, str], tuple[bool, str]] = {}
    for wheel in wheels:
        before = BEFORE.get(wheel.package)
        if before is not None and Version(wheel.version) >= before:
            continue
        for platform in wheel.platforms:
            place, rank = (wheel.version, platform), (wheel.yanked, wheel.name)
            best[place] = min(best.get(place, rank), rank)
    return sorted({name for _, name in best.values()})


def measure_contents(state: dict[str, Any]) -> dict[str, Any]:
    """Return a row a wheel; what was read of the same bytes before is not read again."""
    known = {(row[1], row[2]): row for row in state.get("contents", {}).get("rows", [])}
    rows = []
    for package in PACKAGES:
        listed = state["index"][package]["files"]
        names = chosen(pypi_wheels(package, listed))
        digests = {row[0]: row[1] for row in listed}
        new = [name for name in names if (name, digests[name]) not in known]
        rows += [known[name, digests[name]] for name in names if name not in set(new)]
        files = {f["filename"]: f for f in project_files(package)["files"]} if new else {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            read = list(pool.map(lambda n, p=package, f=files: patiently(p, f[n]), new))
        wrong = [c.file for c in read if c.sha256 != digests[c.file]]
        if wrong:
            raise OSError(f"{wrong[0]} is not what the index listed: measure index again")
        rows += [list(content) for content in read]
        print(package, len(names), "wheels,", len(new), "read", file=sys.stderr)
    return {"rows": sorted(rows, key=lambda row: row[:2])}
