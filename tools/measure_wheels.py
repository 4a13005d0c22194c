"""Measure what public wheels say and hold; writes ``tools/measured.json``.

    python -m tools.measure_wheels index        file lists of the watched packages
    python -m tools.measure_wheels linalg       kernels of libtorch_cuda_linalg.so
    python -m tools.measure_wheels pins         Requires-Dist: torch of popular packages
    python -m tools.measure_wheels contents     METADATA and version.py of companions on PyPI

Each part replaces its own section and leaves the others. Standard library only: wheels are read
by HTTP ranges (central directory, then single members). ``build_catalog.py`` reads the result.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import urllib.error
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

if not __package__:  # run by its path, from any folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from tools._common import (
    MEASURED,
    FloorError,
    index_url,
    project_files,
    replace_all,
)
from tools._common import table as json_table
from tools._contents import measure_contents, metadata, torch_specifier
from tools._zips import RemoteZip

from torchpin.catalog.bounded import Held
from torchpin.catalog.elf import read_elf
from torchpin.catalog.fatbin import read_fatbins

WATCHED = (
    "torch",
    "torchvision",
    "torchaudio",
    "torchtext",
    "torchdata",
    "torchcodec",
    "torchao",
    "triton",
    "pytorch-triton-rocm",
    "pytorch-triton-xpu",
    "triton-rocm",
    "triton-xpu",
    "xformers",
    "bitsandbytes",
)
DEPENDENTS = (
    "vllm",
    "xformers",
    "lightning",
    "pytorch-lightning",
    "torchmetrics",
    "accelerate",
    "flash-attn",
    "fairseq",
    "transformers",
    "sentence-transformers",
    "timm",
    "ultralytics",
    "bitsandbytes",
    "torchrl",
    "tensordict",
    "fastai",
)
LINALG = "torch/lib/libtorch_cuda_linalg.so"
LINALG_VERSIONS = ("2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.12.1", "2.13.0", "2.14.0", "2.14.1")
LINALG_NEWEST = "2.15.0"


def wheel(name: str) -> tuple[Version, list[str], list[str]] | None:
    """Return version, Python tags and platform tags of a wheel name; None if it is none."""
    try:
        _, version, _, tags = parse_wheel_filename(name)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    return version, sorted({t.interpreter for t in tags}), sorted({t.platform for t in tags})


def measure_index(_: dict[str, Any]) -> dict[str, Any]:
    """Return versions, and files as [name, sha256, date, yanked, Requires-Python]."""
    out: dict[str, Any] = {}
    for package in WATCHED:
        try:
            page = project_files(package)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            out[package] = {"versions": [], "files": []}
            continue
        known = {Version(v): v for v in page["versions"] if is_version(v)}
        for file in page["files"]:  # an index may list a file of a version that it does not list
            read = wheel(file["filename"]) if file["filename"].endswith(".whl") else None
            if read:
                known.setdefault(read[0], str(read[0]))
        versions = [known[v] for v in sorted(known)]
        files = [
            [
                f["filename"],
                f["hashes"].get("sha256", ""),
                f.get("upload-time", "")[:10],
                f.get("yanked") or False,
                f.get("requires-python"),
            ]
            for f in page["files"]
        ]
        out[package] = {"versions": versions, "files": sorted(files)}
        print(package, len(versions), "versions", len(files), "files")
    return out


def is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def kernels_of(data: bytes) -> dict[str, Any]:
    """Count, for an ELF library, in how many of its fatbins each arch occurs."""
    held = Held(data)
    found = read_fatbins(held, read_elf(held).fatbins)
    sass: Counter[str] = Counter()
    ptx: Counter[str] = Counter()
    for part in found.parts:
        sass.update(dict.fromkeys(part.sass, part.fatbins))
        ptx.update(dict.fromkeys(part.ptx, part.fatbins))
    return {
        "fatbins": found.total + found.others,
        "sass": dict(sorted(sass.items())),
        "ptx": dict(sorted(ptx.items())),
    }


def measure_linalg(_: dict[str, Any]) -> dict[str, Any]:
    """Read libtorch_cuda_linalg.so of one PyPI wheel a release and machine."""
    rows = []
    files = project_files("torch")["files"]
    for version in (*LINALG_VERSIONS, LINALG_NEWEST):
        for machine in ("x86_64", "aarch64"):
            names = [
                f
                for f in files
                if f["filename"].startswith(f"torch-{version}-cp312-cp312-manylinux")
                and f["filename"].endswith(f"{machine}.whl")
            ]
            if not names:
                continue
            file = names[0]
            archive = RemoteZip(file["url"], file.get("size"))
            found = archive.named(LINALG)
            row: dict[str, Any] = {
                "version": version,
                "platform": f"linux-{machine}",
                "file": file["filename"],
                "sha256": file["hashes"]["sha256"],
                "library": LINALG.rpartition("/")[2],
                "present": found is not None,
            }
            if found is not None:
                row |= kernels_of(archive.read(found))
            rows.append(row)
            print(row)
    return {"rows": rows}


def measure_pins(_: dict[str, Any]) -> dict[str, Any]:
    """Read METADATA of the last versions of packages that depend on torch."""
    rows = []
    for package in DEPENDENTS:
        wheels: dict[Version, dict[str, Any]] = {}
        for file in project_files(package)["files"]:
            read = wheel(file["filename"]) if file["filename"].endswith(".whl") else None
            if read and not read[0].is_prerelease and not file.get("yanked"):
                wheels.setdefault(read[0], file)
        for version in sorted(wheels, reverse=True)[:12]:
            file = wheels[version]
            specifier = torch_specifier(metadata(file))
            if specifier is not None:
                rows.append([package, str(version), specifier, file["hashes"]["sha256"]])
        print(package, sum(row[0] == package for row in rows))
    return {"rows": sorted(rows, key=lambda row: (row[0], Version(row[1])))}


PARTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "index": measure_index,
    "linalg": measure_linalg,
    "pins": measure_pins,
    "contents": measure_contents,
}


def render(state: dict[str, Any]) -> str:
    """Return measured.json: one file, row or version list a line."""
    index = state.get("index", {})
    flat = [[p, "versions", *index[p]["versions"]] for p in sorted(index)]
    flat += [[p, "file", *row] for p in sorted(index) for row in index[p]["files"]]
    return json_table(
        {
            "dates": state.get("dates", {}),
            "index": flat,
            "linalg": state.get("linalg", {}).get("rows", []),
            "pins": state.get("pins", {}).get("rows", []),
            "contents": state.get("contents", {}).get("rows", []),
        }
    )


def load(text: str) -> dict[str, Any]:
    """Return what ``render`` wrote, as the parts see it."""
    raw = json.loads(text)
    index: dict[str, Any] = {}
    for package, kind, *rest in raw["index"]:
        entry = index.setdefault(package, {"versions": [], "files": []})
        if kind == "versions":
            entry["versions"] = rest
        else:
            entry["files"].append(rest)
    return {
        "dates": raw["dates"],
        "index": index,
        "linalg": {"rows": raw["linalg"]},
        "pins": {"rows": raw["pins"]},
        "contents": {"rows": raw.get("contents", [])},
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    chosen = parser.parse_args(arguments).parts
    state = load(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    index_url()
    for part in chosen:
        state[part] = PARTS[part](state)
        today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
        state.setdefault("dates", {})[part] = today
    if len(state.get("index", {}).get("torch", {}).get("files", [])) < 500:
        raise FloorError("fewer than 500 files of torch: the index answered with something else")
    replace_all({MEASURED: render(state)})
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
