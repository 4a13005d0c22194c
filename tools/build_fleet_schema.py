"""Write the JSON Schema of the profile: ``src/torchpin/fleet/schema.json``.

    python tools/build_fleet_schema.py [OUT_FILE]

The schema is the same for ``torchpin.toml`` and for the table ``[tool.torchpin]``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from torchpin.fleet.profile import fleet_schema_path
from torchpin.fleet.profile_reader import GROUP_KEYS, TOP_KEYS

STRINGS: dict[str, Any] = {"type": "array", "items": {"type": "string", "pattern": r"\S"}}
CODES: dict[str, Any] = {
    "type": "array",
    "items": {"type": "string", "pattern": r"^(ALL|TP[0-9]{0,3})$"},
}
RELEASE = r"^[0-9]{1,2}(\.[0-9]{1,2}){1,2}$"


def strings(description: str) -> dict[str, Any]:
    return {"description": description, **STRINGS}


def text(description: str, pattern: str | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": description, "type": "string"}
    if pattern:
        schema["pattern"] = pattern
    return schema


def text_or_list(description: str, least: int) -> dict[str, Any]:
    item = {"type": "string", "pattern": r"\S"}
    return {
        "description": description,
        "anyOf": [item, {"type": "array", "items": item, "minItems": least}],
    }


GROUP = {
    "gpus": text_or_list(
        "The kinds of GPU of these machines: product names as tools print them, sm_70, 7.0, "
        "gfx942, cloud instance types. An empty array: CPU only.",
        0,
    ),
    "driver": text(
        "NVIDIA driver: a version (550.54.15) or a branch (550).",
        r"^\s*[rR]?[3-9][0-9]{2}(\.[0-9]{1,3}){0,2}\s*$",
    ),
    "python": text_or_list(
        "A version (3.11, 3.14t), a specifier (>=3.10,<3.13), or a list of these.", 1
    ),
    "platform": {
        "description": "linux-x86_64 (default), linux-aarch64, windows-x86_64, windows-arm64, "
        "macos-arm64, macos-x86_64; other common spellings are accepted.",
        "type": "string",
        "examples": ["linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-arm64"],
    },
    "glibc": text("glibc version, e.g. 2.31 (Linux).", r"2[._][0-9]{1,2}\s*$"),
    "libc": {"description": "C library (Linux).", "enum": ["glibc", "musl"]},
    "cuda-compat": text("CUDA version of an installed forward-compatibility package.", RELEASE),
    "macos": text("macOS version, e.g. 14 or 15.2.", r"^[0-9]{2}(\.[0-9]{1,2}){0,2}$"),
    "wsl": {"description": "Linux inside WSL 2.", "type": "boolean"},
    "jetpack": text("JetPack release of Jetson boards, e.g. 7.2.", RELEASE),
    "rocm": text("ROCm release of AMD machines, e.g. 7.2.", RELEASE),
    "files": strings("Dependency files that this group installs."),
    "extras": strings("Extras of the project that this group installs."),
    "groups": strings("Dependency groups (PEP 735) that this group installs."),
    "client": {"description": "The installer of this group.", "enum": ["pip", "uv"]},
    "indexes": strings("Index URLs of its command line or environment, in order."),
}

TOP = {
    "policy": {
        "description": "Which version resolve prefers.",
        "enum": ["nearest", "newest"],
        "default": "nearest",
    },
    "indexes": {
        "description": "What private index URLs hold: a channel, pypi or private.",
        "type": "object",
        "additionalProperties": {
            "type": "string",
            "pattern": r"^(cpu|xpu|cu[0-9]{2,3}|rocm[0-9]+(\.[0-9]+)*|pypi|private)$",
        },
    },
    "select": {"description": "Rule codes or families to check.", **CODES},
    "ignore": {"description": "Rule codes or families to leave out.", **CODES},
    "per-file-ignores": {
        "description": "File pattern to the rule codes that are ignored there.",
        "type": "object",
        "additionalProperties": CODES,
    },
    "catalog-max-age": {
        "description": "Days after which the catalog is called old, e.g. 90d; 0 or false: never.",
        "anyOf": [
            {"type": "string", "pattern": "^[0-9]{1,5}d$"},
            {"type": "integer", "minimum": 0, "maximum": 99999},
            {"const": False},
        ],
        "default": "90d",
    },
    "sources": {
        "description": (
            "Folders and files of Python code that the TP9 rules read, relative to this file."
        ),
        "type": "array",
        "items": {"type": "string", "minLength": 1},
    },
    "require-reasons": {
        "description": "Whether each comment that silences a rule must say why (TP004).",
        "type": "boolean",
        "default": False,
    },
    "baseline": text(
        "Findings that are known and wait (torchpin baseline create), relative to this file.", r"\S"
    ),
    "fleet": {
        "description": "Node groups: sets of like machines, by name.",
        "type": "object",
        "propertyNames": {"pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]*$"},
        "additionalProperties": {"$ref": "#/$defs/group"},
    },
}


def build() -> str:
    """Return the text of the schema."""
    if tuple(GROUP) != GROUP_KEYS or tuple(TOP) != TOP_KEYS:
        raise SystemExit("build_fleet_schema: the keys are not those that torchpin reads")
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "torchpin profile",
        "description": "torchpin.toml, or the table tool.torchpin of pyproject.toml.",
        "type": "object",
        "additionalProperties": False,
        "properties": TOP,
        "$defs": {
            "group": {
                "type": "object",
                "additionalProperties": False,
                "required": ["gpus"],
                "properties": GROUP,
            }
        },
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    out = Path(arguments[0]) if arguments else Path(fleet_schema_path())
    out.write_text(build(), encoding="utf-8", newline="\n")
    print(out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
