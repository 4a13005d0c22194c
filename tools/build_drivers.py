"""Build ``catalog/data/drivers.json`` from the gathered facts about NVIDIA drivers and CUDA.

Usage: ``python tools/build_drivers.py FACTS_DIR [OUT]``

Reads ``cuda_drivers.json``; writes one record a line, sorted, each with its evidence and sources.
The same input gives the same bytes. Stops with a message if the input holds less than it should.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

Record = dict[str, Any]

OUT = Path(__file__).parent.parent / "src" / "torchpin" / "catalog" / "data" / "drivers.json"
LEAST = {"branch": 24, "compat": 12, "floor": 7, "gpu": 18, "jetpack": 7, "toolkit": 40}
"""Fewest records of each kind; fewer means that the input lost something."""


def version_key(text: str) -> tuple[int, ...]:
    """Split ``550.54.15`` into numbers."""
    return tuple(int(part) for part in text.split("."))


def clean(sources: list[str]) -> list[str]:
    """Drop remarks on where a copy was read; keep what a reader can look up."""
    out = []
    for source in sources:
        text = re.sub(r" \(stored code index id \d+\)", "", source)
        text = re.sub(r"\(a public file on GitHub, copy \d+\)", "(as quoted on GitHub)", text)
        text = re.sub(r"; read from a stored third-party copy;[^)]*", "", text)
        text = text.replace("general knowledge; unverified here", "general knowledge, not verified")
        if text not in out:
            out.append(text)
    return out


def branches(facts: Record) -> list[Record]:
    """Driver branch → the CUDA version that it brings."""
    rows: dict[str, Record] = {}
    for row in facts["driver_branches"]:
        cuda = re.match(r"\d+\.\d+", row["cuda"])
        assert cuda, row
        known = not any("unverified" in s or "third-party notes" in s for s in row["source"])
        rows[row["branch"]] = {
            "kind": "branch",
            "branch": row["branch"],
            "cuda": cuda[0],
            "evidence": "published" if known else "inferred",
            "sources": clean(row["source"]),
        }
    for row in facts["toolkits"]:  # R455 is known from its toolkit only
        rows.setdefault(
            row["driver_branch"],
            {
                "kind": "branch",
                "branch": row["driver_branch"],
                "cuda": row["cuda"],
                "evidence": "published",
                "sources": clean(row["source"]),
            },
        )
    return list(rows.values())


def floors(facts: Record) -> list[Record]:
    """CUDA family → lowest driver by minor-version compatibility."""
    rows: list[Record] = []
    for row in facts["minor_version_compatibility"]:
        base = {
            "kind": "floor",
            "cuda": row["cuda_major"],
            "evidence": "published",
            "sources": clean(row["source"]),
        }
        rows.append({**base, "os": "linux", "driver": row["linux_min"]})
        rows.append({**base, "os": "windows", "driver": row["windows_min"]})
        lower = re.search(r"CUDA (\d+\.\d+) itself shipped with ([\d.]+)", row.get("exception", ""))
        if lower:
            rows.append({**base, "os": "linux", "cuda": lower[1], "driver": lower[2]})
    return rows


def toolkits(facts: Record) -> list[Record]:
    """CUDA toolkit → the driver that its first release came with (knows its PTX), by platform.

    Where NVIDIA gives no figure, the number of the branch stands, with weaker evidence on Windows.
    """
    rows: dict[tuple[str, str], Record] = {}
    columns = {
        "linux-x86_64": "linux_x86_64",
        "linux-aarch64": "linux_sbsa",
        "windows-x86_64": "windows_x86_64",
    }
    for row in facts["toolkits"]:
        if "Preview" in row["release"]:
            continue
        for platform, column in columns.items():
            driver = row[column]
            exact = driver is not None
            if driver is None:
                if platform == "linux-aarch64":
                    driver = row["linux_x86_64"]
                else:
                    driver = row["driver_branch"]
            record = {
                "kind": "toolkit",
                "cuda": row["cuda"],
                "platform": platform,
                "driver": driver,
                "branch": row["driver_branch"],
                "evidence": "published" if exact else "inferred",
                "sources": clean(row["source"]),
            }
            key = (row["cuda"], platform)
            held = rows.get(key)
            if held is None or version_key(driver) < version_key(held["driver"]):
                rows[key] = record
    return list(rows.values())


TEGRA = ("5.3", "6.2", "7.2", "8.7", "10.1", "11.0")
"""Their driver comes with the board's system, so branches say nothing about them."""


def first_toolkit(text: str, capability: str) -> str | None:
    """Read ``11.0 (8.0) / 11.1 (8.6)``, ``11.8 (sm_90), 12.0 (sm_90a)``, ``12.8``."""
    named = re.search(rf"(\d+\.\d+) \({re.escape(capability)}\)", text)
    plain = re.match(r"\d+\.\d+", text)
    return named[1] if named else plain[0] if plain else None


def gpus(facts: Record) -> list[Record]:
    """Compute capability → first and last driver branch."""
    branch_of = {row["cuda"]: row["driver_branch"] for row in reversed(facts["toolkits"])}
    rows: list[Record] = []
    for row in facts["last_support_by_architecture"]:
        for written in row["compute_capability"]:
            capability = written.split()[0]
            tegra = capability in TEGRA
            toolkit = first_toolkit(row["first_toolkit"], capability)
            first = row.get("min_driver_branch")
            evidence = "published"
            if first is None and not tegra and toolkit is not None:
                first = branch_of.get(toolkit)
                evidence = "inferred"
            sources = clean(row["source"])
            rows.append(
                {
                    "kind": "gpu",
                    "capability": capability,
                    "architecture": row["architecture"],
                    "first": first,
                    "first_evidence": evidence if first else None,
                    "first_toolkit": toolkit,
                    "last": None if tegra else row["last_driver_branch"],
                    "last_toolkit": row["last_toolkit"],
                    "evidence": "published",
                    "sources": sources,
                }
            )
    return rows


def compat(facts: Record) -> list[Record]:
    """Forward-compatibility package × branch of the kernel driver → what NVIDIA's table says."""
    table = facts["forward_compatibility"]
    sources = clean(table["source"])
    return [
        {
            "kind": "compat",
            "package": package,
            "base": row,
            "evidence": "published",
            "sources": sources,
        }
        for package, row in table["matrix_package_by_base_branch"].items()
    ]


def jetpacks(facts: Record) -> list[Record]:
    """JetPack release → CUDA of its driver. Developer previews are left out."""
    rows: list[Record] = []
    for row in facts["jetson"]:
        for version in row["jetpack"].split(", "):
            if "DP" in version:
                continue
            noted = re.match(r"\d+\.\d+", row.get("cuda_note", ""))
            rows.append(
                {
                    "kind": "jetpack",
                    "jetpack": version,
                    "l4t": row["l4t"],
                    "cuda": row["cuda"] or (noted[0] if noted else None),
                    "capabilities": row["compute_capability"],
                    "evidence": "published" if row["cuda"] else "inferred",
                    "sources": clean(row["source"]),
                }
            )
    return rows


def build(facts_dir: Path) -> str:
    """Return the text of ``drivers.json``."""
    facts = json.loads((facts_dir / "cuda_drivers.json").read_text(encoding="utf-8"))
    records = [
        record
        for part in (branches, compat, floors, gpus, jetpacks, toolkits)
        for record in part(facts)
    ]
    for kind, least in LEAST.items():
        count = sum(record["kind"] == kind for record in records)
        if count < least:
            raise SystemExit(f"only {count} records of kind {kind!r}, at least {least} expected")
    lines = sorted(
        json.dumps(record, ensure_ascii=False, sort_keys=False, separators=(",", ":"))
        for record in records
    )
    head = json.dumps({"kind": "date", "date": facts["as_of"]}, separators=(",", ":"))
    return "[\n" + ",\n".join([head, *lines]) + "\n]\n"


def main(arguments: list[str]) -> int:
    """Write the file and say how much it holds."""
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    out = Path(arguments[1]) if len(arguments) == 2 else OUT
    text = build(Path(arguments[0]))
    out.write_text(text, encoding="utf-8", newline="\n")
    print(f"{out}: {text.count(chr(10)) - 2} records")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
