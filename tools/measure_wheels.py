"""Measure what public wheels say and hold; writes ``tools/measured.json``.

    python -m tools.measure_wheels index        file lists of the watched packages
    python -m tools.measure_wheels wheels       kernels and requirements of torch and companions
    python -m tools.measure_wheels internals    kernels of cuDNN, cuBLAS … that torch requires
    python -m tools.measure_wheels pins         Requires-Dist: torch of popular packages
    python -m tools.measure_wheels contents     METADATA and version.py of companions on PyPI

Each part replaces its own section and leaves the others. Standard library only: wheels are read
by HTTP ranges (central directory, then single members). ``build_catalog.py`` reads the result.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

if not __package__:  # run by its path, from any folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version
from tools._common import (
    MEASURED,
    FloorError,
    digest,
    index_url,
    project_files,
    replace_all,
)
from tools._contents import AT_ONCE, measure_contents, metadata, torch_specifier
from tools._wheels import measure_internals, measure_wheels

from torchpin.catalog.records import table as json_table

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
    "accelerate",
    "auto-gptq",
    "autoawq",
    "bitsandbytes",
    "botorch",
    "captum",
    "causal-conv1d",
    "chronos-forecasting",
    "compressed-tensors",
    "coqui-tts",
    "deepspeed",
    "demucs",
    "e3nn",
    "easyocr",
    "fairscale",
    "fairseq",
    "fastai",
    "flair",
    "flash-attn",
    "flashinfer-python",
    "gptqmodel",
    "gpytorch",
    "invokeai",
    "k-diffusion",
    "kornia",
    "lightning",
    "litgpt",
    "llmcompressor",
    "lmdeploy",
    "mamba-ssm",
    "monai",
    "nemo-toolkit",
    "open-clip-torch",
    "openai-whisper",
    "optimum",
    "outlines",
    "peft",
    "pyannote-audio",
    "pytorch-forecasting",
    "pytorch-lightning",
    "sentence-transformers",
    "sglang",
    "spandrel",
    "speechbrain",
    "stanza",
    "tensordict",
    "timm",
    "torch-geometric",
    "torch-tensorrt",
    "torchdiffeq",
    "torchmetrics",
    "torchrl",
    "torchsde",
    "torchtune",
    "transformers",
    "trl",
    "ultralytics",
    "unsloth",
    "unsloth-zoo",
    "vllm",
    "whisperx",
    "xformers",
    "xgrammar",
)
NEWEST = 25
"""How many of their newest releases are read."""
EXACT = {"sglang": 90, "vllm": 90, "xformers": 60}
"""Packages that pin torch exactly: old releases of them hold files to old releases of torch."""
SDISTS = 3
"""Of packages without wheels: how many source archives are read, whole."""


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


def measure_pins(state: dict[str, Any]) -> dict[str, Any]:
    """Read METADATA of the last versions of packages that depend on torch.

    What was read of the same bytes before is not read again. A package without wheels is read
    from the PKG-INFO of its newest source archives.
    """
    known = {row[3]: row for row in state.get("pins", {}).get("rows", [])}
    none = set(state.get("pins", {}).get("none", ()))
    rows: list[list[Any]] = []
    for package in DEPENDENTS:
        files = newest_files(package)
        fresh = [f for f in files if f["hashes"]["sha256"] not in {*known, *none}]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            texts = list(pool.map(described, fresh))
        for file, text in zip(fresh, texts, strict=True):
            specifier = torch_specifier(text)
            sha256 = file["hashes"]["sha256"]
            if not specifier:  # not required, or any release will do
                none.add(sha256)
            else:
                known[sha256] = [package, str(file["version"]), specifier, sha256]
        digests = [f["hashes"]["sha256"] for f in files]
        rows += [known[sha] for sha in digests if sha in known and sha not in none]
        print(package, sum(row[0] == package for row in rows), flush=True)
    return {"rows": sorted(rows, key=lambda row: (row[0], Version(row[1]))), "none": none}


def newest_files(package: str) -> list[dict[str, Any]]:
    """Return one file a release, newest first: wheels, or source archives where there are none."""
    wheels: dict[Version, dict[str, Any]] = {}
    sources: dict[Version, dict[str, Any]] = {}
    for file in project_files(package)["files"]:
        name = file["filename"]
        read = wheel(name) if name.endswith(".whl") else None
        version = read[0] if read else source_version(name)
        if version is not None and not version.is_prerelease and not file.get("yanked"):
            (wheels if read else sources).setdefault(version, {**file, "version": version})
    found, most = (wheels, EXACT.get(package, NEWEST)) if wheels else (sources, SDISTS)
    return [found[version] for version in sorted(found, reverse=True)[:most]]


def source_version(name: str) -> Version | None:
    """Return the version of a source archive; None if its name does not tell."""
    try:
        return parse_sdist_filename(name)[1] if name.endswith(".tar.gz") else None
    except (InvalidSdistFilename, InvalidVersion):
        return None


def described(file: dict[str, Any]) -> str:
    """Return the METADATA of a wheel, or the PKG-INFO of a source archive."""
    if file["filename"].endswith(".whl"):
        return metadata(file)
    with urllib.request.urlopen(file["url"], timeout=120) as answer:
        data = answer.read()
    if digest(data) != file["hashes"]["sha256"]:
        raise OSError(f"{file['filename']} is not what the index listed")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            if member.name.endswith("/PKG-INFO") and member.name.count("/") == 1:
                held = archive.extractfile(member)
                return held.read().decode("utf-8", "replace") if held else ""
    return ""


PARTS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "index": measure_index,
    "wheels": measure_wheels,
    "internals": measure_internals,
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
            "wheels": state.get("wheels", {}).get("rows", []),
            "internals": state.get("internals", {}).get("rows", []),
            "brings": state.get("internals", {}).get("brings", []),
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
        "wheels": {"rows": raw.get("wheels", [])},
        "internals": {"rows": raw.get("internals", []), "brings": raw.get("brings", [])},
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
