"""Record what the package index really serves for the PyTorch family: files, tags, METADATA.

The records feed the stub index of ``tests/clients``. They are read from the real index with
pip's own session and lazy wheel reader, wheel by wheel, and never from torchpin's catalog.

Usage: ``python tools/record_metadata.py [--only NAME …] [OUT.json]`` (needs the package index; some
minutes; ``--only`` reads these packages anew and keeps the records of all others).
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

FAMILY = {"torch": "1.8.0", "torchvision": "0.9.0", "torchaudio": "0.8.0"}
"""Package → first release to record (those of torch 1.8)."""
COMPANIONS = ("torchvision", "torchaudio")
FOLLOWERS = {"torchcodec": 20, "torchao": 8, "xformers": 12, "bitsandbytes": 15}
OTHERS = {"triton": 40, "numpy": 3, "requests": 3, "markupsafe": 2, "jinja2": 2, "packaging": 3}
OTHERS |= FOLLOWERS
"""Package → how many of its newest final releases to record, beside the last of each floor."""
FLOORS = (">=3.10", ">=3.11")
"""Values of Requires-Python whose last release is recorded too."""
KEPT = re.compile(r"torch|triton|nvidia-|cuda-|numpy$|jinja2$|markupsafe$")
"""Names of requirements that matter to the stub; all others are dropped from ``requires``."""
PYTHONS = re.compile(r"cp3(8|9|1\d)t?$|py39?$|py2$")
PLATFORM = re.compile(r"linux.*(x86_64|aarch64)$|win_amd64$|win_arm64$|macosx|any$")
JSON = "application/vnd.pypi.simple.v1+json"
LEAST = {"torch": 35, "torchvision": 35, "torchaudio": 28}
"""Sanity floor: fewer recorded releases than this means that the reading went wrong."""


def pip_module(name: str) -> Any:
    """Return a module of pip; its internals have no promise, so they are imported by name."""
    return import_module(f"pip._internal.{name}")


def index_url() -> str:
    """Return the index that pip is configured for, or pip's own default."""
    configuration = pip_module("configuration").Configuration(isolated=False)
    configuration.load()
    settings = dict(configuration.items())
    for name, value in settings.items():
        for key in ("global.index-url", ":env:.index-url"):
            if name == key:
                return str(value)
            if isinstance(value, dict) and key in value:
                return str(value[key])
    return str(pip_module("cli.cmdoptions").index_url().default)


def platform_kind(filename: str) -> str:
    """Return the platform word of a wheel file name: ``linux-x86_64``, ``any`` …"""
    tail = filename.removesuffix(".whl").rsplit("-", 1)[1]
    machine = "arm64" if "arm64" in tail else "aarch64" if "aarch64" in tail else "x86_64"
    if "linux" in tail:
        return f"linux-{machine}"
    if tail.startswith("win"):
        return f"windows-{machine}"
    return f"macos-{machine}" if tail.startswith("macosx") else "any"


def wanted(name: str, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the wheels to record, each with ``version`` set."""
    found = []
    for file in files:
        try:
            _, version, _, tags = parse_wheel_filename(file["filename"])
        except InvalidWheelFilename:
            continue
        if not any(PYTHONS.match(t.interpreter) and PLATFORM.search(t.platform) for t in tags):
            continue
        if name in FAMILY and version < Version(FAMILY[name]):
            continue
        found.append({**file, "version": version})
    if name in OTHERS:
        found = [
            f for f in found if not re.search(r"-(cp3[89]|pp\d+)-(?!abi3)|musllinux", f["filename"])
        ]
        finals = {f["version"]: f.get("requires-python") for f in found}
        order = sorted(v for v in finals if not v.is_prerelease)
        newest_for = {finals[version]: version for version in order if finals[version] in FLOORS}
        newest = {*order[-OTHERS[name] :], *newest_for.values()}
        found = [f for f in found if f["version"] in newest]
    return found


def metadata_wheels(name: str, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one wheel of each (version, platform) whose METADATA is read.

    Every platform of the companions, whose pins on torch differ between platforms up to torch
    1.13; else Linux x86_64 of every version, and the other platforms of every fourth.
    """
    chosen: dict[tuple[Version, str], dict[str, Any]] = {}
    for file in files:
        chosen.setdefault((file["version"], platform_kind(file["filename"])), file)
    versions = sorted({version for version, _ in chosen})
    out = []
    for number, version in enumerate(versions):
        kinds = sorted(kind for v, kind in chosen if v == version)
        main = "linux-x86_64" if "linux-x86_64" in kinds else kinds[0]
        everywhere = name in COMPANIONS or number % 4 == 3 or version == versions[-1]
        sampled = kinds if everywhere else [main]
        out += [chosen[version, kind] for kind in sampled]
    return out


def read_metadata(session: Any, name: str, file: dict[str, Any]) -> dict[str, Any]:
    """Read METADATA of one wheel by range requests and return its record."""
    reader = pip_module("network.lazy_wheel").dist_from_wheel_url
    metadata = reader(name, file["url"], session).metadata
    requires = []
    for text in metadata.get_all("Requires-Dist") or ():
        if KEPT.match(canonicalize_name(Requirement(text).name)):
            requires.append(str(Requirement(text)))
    return {
        "package": name,
        "metadata": file["filename"],
        "sha256": file["hashes"]["sha256"],
        "requires": requires,
        "extras": sorted(metadata.get_all("Provides-Extra") or ()),
    }


def main(out: Path, only: Sequence[str] = ()) -> None:
    session = pip_module("network.session").PipSession(retries=3)
    base = index_url().rstrip("/")
    records: list[tuple[Any, ...]] = []
    if only:
        for record in json.loads(out.read_text("utf-8")):
            if record["package"] not in only:
                file = record.get("file") or record["metadata"]
                version = parse_wheel_filename(file)[1]
                records.append((record["package"], version, "metadata" in record, file, record))
    for name in only or (*FAMILY, *OTHERS):
        page = session.get(f"{base}/{name}/", headers={"Accept": JSON}, timeout=60)
        page.raise_for_status()
        files = wanted(name, page.json()["files"])
        count = len({f["version"] for f in files})
        if count < LEAST.get(name, 1):
            raise SystemExit(f"{name}: only {count} releases read; nothing written")
        for file in files:
            record = {
                "package": name,
                "file": file["filename"],
                "sha256": file["hashes"]["sha256"],
                "requires-python": file.get("requires-python"),
                "uploaded": file.get("upload-time", "")[:19] + "Z",
                "yanked": file["yanked"],
            }
            records.append((name, file["version"], 0, file["filename"], record))
        chosen = metadata_wheels(name, files)
        with ThreadPoolExecutor(3) as pool:
            read = list(pool.map(lambda f, n=name: read_metadata(session, n, f), chosen))
        for file, record in zip(chosen, read, strict=True):
            records.append((name, file["version"], 1, file["filename"], record))
        print(f"{name}: {count} releases, {len(files)} wheels, {len(read)} METADATA")
    records.sort(key=lambda r: r[:4])
    lines = [json.dumps(r[4], separators=(",", ":"), sort_keys=True) for r in records]
    out.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    default = Path(__file__).parent.parent / "tests/clients/facts/pypi.json"
    parser.add_argument("out", nargs="?", type=Path, default=default)
    parser.add_argument("--only", nargs="+", default=())
    args = parser.parse_args()
    main(args.out, args.only)
