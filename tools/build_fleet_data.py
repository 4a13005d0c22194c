"""Build the fleet's data files from a folder of gathered facts.

    python tools/build_fleet_data.py FACTS_DIR [OUT_DIR]

Reads ``gpus.json``, ``gpu_ambiguous_names.json``, ``amd_gpus.json``, ``cloud_instances.json`` and
``cuda_drivers.json``; writes ``gpus.json``, ``instances.json`` and ``architectures.json``: sorted,
one record a line, each with its sources. The same facts always give the same bytes. Stops with a
message if the facts look damaged.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "src" / "torchpin" / "fleet" / "data"

FLOORS = {"nvidia": 330, "amd": 85, "intel": 10, "keys": 1300, "ambiguous": 13, "instances": 175}
"""Fewer records than these mean that the facts are damaged."""

ARM_ONLY = {
    "T4G",
    "GH200",
    "GB200",
    "GB300",
    "DGX Spark (GB10)",
    "RTX Spark N1X",
}
"""Products that exist in Arm machines only, beside everything of the Jetson line."""

XPU = "https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html"
INTEL = {
    "Intel GPU": ("xpu", "Intel XPU"),
    "Intel Arc A310": (),
    "Intel Arc A380": (),
    "Intel Arc A580": (),
    "Intel Arc A750": (),
    "Intel Arc A770": (),
    "Intel Arc B570": (),
    "Intel Arc B580": (),
    "Intel Arc Pro B50": (),
    "Intel Arc Pro B60": (),
    "Intel Data Center GPU Max 1100": ("Intel Max 1100", "Ponte Vecchio 1100"),
    "Intel Data Center GPU Max 1550": ("Intel Max 1550", "Ponte Vecchio", "PVC"),
    "Intel Arc Graphics": ("Intel Core Ultra", "Meteor Lake", "Lunar Lake", "Arrow Lake"),
}
"""Intel GPUs that PyTorch's XPU notes name; they have no architecture list in wheels."""


LLVM = "llvm/llvm-project@llvm/docs/AMDGPUUsage.rst (table of processors)"
AMD_MORE = {
    "Radeon VII": "gfx906",
    "Radeon Pro VII": "gfx906",
    "Radeon RX Vega 56": "gfx900",
    "Radeon RX Vega 64": "gfx900",
    "Radeon R9 Nano": "gfx803",
    "Radeon R9 Fury": "gfx803",
    "Radeon R9 Fury X": "gfx803",
    "Radeon RX 460": "gfx803",
    "Radeon RX 470": "gfx803",
    "Radeon RX 480": "gfx803",
}
"""AMD's cards that LLVM's table of processors names, beside those of the facts."""


def normal(text: str) -> str:
    """Return the look-up key of a name: lower-case letters and digits only."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def clean_source(text: str) -> str:
    """Return a source without the numbers of stored copies, which nobody else can look up."""
    text = re.sub(r" \(copy [0-9]+\)|, cop(?:y|ies) [0-9][0-9, ]*", "", text)
    text = re.sub(r" \((?:stored )?code index id [0-9]+\)", "", text)
    return re.sub(r"\s+", " ", text).strip()


def product_class(name: str) -> str:
    """Return the product class by NVIDIA's and AMD's naming."""
    if name.startswith("Jetson"):
        return "jetson"
    if name.startswith("DRIVE"):
        return "embedded"
    if name == "A800 40GB Active":  # sold as a workstation card
        return "workstation"
    if re.match(
        r"(GeForce|Titan|CMP|P10[0-9]-|Radeon (RX|R9|Vega|VII)|Radeon [0-9]{3,4}[MS]$)", name
    ):
        return "consumer"
    if re.match(
        r"(Quadro|RTX|NVS|Matrox|DGX Spark|T[0-9]{3,4}|Radeon (AI )?PRO (R|W|VII))", name, re.I
    ):
        return "workstation"
    if re.match(r"(Tesla|AX?[0-9]|T4|L[0-9]|H[0-9]|B[0-9]|G[BH][0-9]|Rubin|MI[0-9])", name):
        return "datacenter"
    if re.match(r"Radeon PRO V", name, re.I):
        return "datacenter"
    raise SystemExit(f"build_fleet_data: no product class for {name!r}: teach product_class()")


class Sources:
    """Numbered sources, in the order of first use."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def refs(self, sources: list[str]) -> list[int]:
        return [
            self.numbers.setdefault(clean_source(source), len(self.numbers)) for source in sources
        ]


def gpu_records(facts: Path, sources: Sources) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for row in load(facts, "gpus.json"):
        record: dict[str, Any] = {"name": row["name"], "vendor": "nvidia"}
        record["capability"] = row["compute_capability"]
        record["product"] = product_class(row["name"])
        if record["product"] == "jetson" or row["name"] in ARM_ONLY:
            record["host"] = "aarch64"
        if record["product"] == "jetson":
            record["tegra"] = True
        record["keys"] = keys(row["name"], row["aliases"])
        record["source"] = sources.refs(row["source"])
        records.append(record)
    for row in load(facts, "amd_gpus.json"):
        records.append(
            {
                "name": row["name"],
                "vendor": "amd",
                "gfx": row["gfx"],
                "product": product_class(row["name"]),
                "keys": keys(row["name"], row["aliases"]),
                "source": sources.refs(row["source"]),
            }
        )
    for name, gfx in AMD_MORE.items():
        short = name.removeprefix("Radeon ")
        extra = [short] if re.search(r"[0-9]", short) else []
        records.append(
            {
                "name": name,
                "vendor": "amd",
                "gfx": gfx,
                "product": product_class(name),
                "keys": keys(name, (f"AMD {name}", *extra)),
                "source": sources.refs([LLVM]),
            }
        )
    for name, aliases in INTEL.items():
        short = name.removeprefix("Intel ")
        extra = [short] if re.search(r"[0-9]", short) else []
        records.append(
            {
                "name": name,
                "vendor": "intel",
                "product": "datacenter" if "Data Center" in name else "",
                "keys": keys(name, [*aliases, *extra]),
                "source": sources.refs([XPU]),
            }
        )
    return sorted(
        records,
        key=lambda r: (r["vendor"], natural(r.get("capability") or r.get("gfx") or ""), r["name"]),
    )


def keys(name: str, aliases: list[str] | tuple[str, ...]) -> list[str]:
    return sorted({normal(name), *map(normal, aliases)})


def natural(text: str) -> list[tuple[int, str]]:
    return [
        (int(part), "") if part.isdigit() else (0, part)
        for part in re.findall(r"[0-9]+|[^0-9]+", text)
    ]


def settle(records: list[dict[str, Any]]) -> None:
    """Give a key that two products claim to one of them; only like hardware may share a key."""
    owners: dict[str, dict[str, Any]] = {}
    for record in sorted(records, key=lambda r: (len(r["name"]), r["name"])):
        for key in list(record["keys"]):
            owner = owners.setdefault(key, record)
            if owner is record:
                continue
            if [owner.get(f) for f in ("vendor", "capability", "gfx")] != [
                record.get(f) for f in ("vendor", "capability", "gfx")
            ]:
                raise SystemExit(
                    f"build_fleet_data: {key!r} names {owner['name']} and {record['name']}"
                )
            record["keys"].remove(key)


def ambiguous_records(facts: Path, sources: Sources) -> list[dict[str, Any]]:
    records = []
    for row in load(facts, "gpu_ambiguous_names.json"):
        records.append(
            {
                "key": normal(row["name"]),
                "name": row["name"],
                "candidates": [[c["name"], c["compute_capability"]] for c in row["candidates"]],
                "source": sources.refs([s for s in row["source"] if "gpus.json" not in s]),
            }
        )
    return sorted(records, key=lambda r: str(r["key"]))


def instance_records(facts: Path, sources: Sources, known: set[str]) -> list[dict[str, Any]]:
    records = []
    for row in load(facts, "cloud_instances.json"):
        if row["gpu"] not in known:
            raise SystemExit(
                f"build_fleet_data: instance {row['instance']} has an unknown GPU {row['gpu']!r}"
            )
        if "*" in row["instance"]:  # "n1-* + ACCELERATOR": the accelerator type is a GPU alias
            continue
        records.append(
            {
                "provider": row["provider"],
                "instance": row["instance"],
                "aliases": row.get("aliases", []),
                "gpus": [row["gpu"]],
                "host": row["host_arch"],
                "source": sources.refs(row["source"]),
            }
        )
    return sorted(records, key=lambda r: (r["provider"], natural(str(r["instance"]).lower())))


def architecture_records(facts: Path, sources: Sources) -> list[dict[str, Any]]:
    """Return one record a compute capability, with the branches between which drivers know it.

    ``min_driver_branch`` with evidence ``published`` is stated by a source. Where none states it,
    it is the branch *before* the one that came with the first toolkit for the capability: a
    driver older than that cannot know the GPU (evidence ``bounded``).
    """
    drivers = load_dict(facts, "cuda_drivers.json")
    branches = {row["branch"] for row in drivers["driver_branches"]}
    branch_of: dict[str, str] = {}
    for row in drivers["toolkits"]:
        branches.add(row["driver_branch"])
        branch_of.setdefault(row["cuda"], row["driver_branch"])
    ordered = sorted(branches, key=int)
    records = []
    for row in drivers["last_support_by_architecture"]:
        for text in row["compute_capability"]:
            capability = text.split()[0]
            floor, evidence = row.get("min_driver_branch"), "published"
            if floor is None:
                first = first_toolkit(row["first_toolkit"], capability)
                branch = branch_of.get(first)
                at = ordered.index(branch) if branch else 0
                floor, evidence = (ordered[at - 1], "bounded") if at else (None, "")
            records.append(
                {
                    "capability": capability,
                    "architecture": re.sub(r" ?\(.*\)", "", row["architecture"]),
                    "min_driver_branch": floor,
                    "min_evidence": evidence,
                    "last_driver_branch": row["last_driver_branch"],
                    "source": sources.refs(row["source"]),
                }
            )
    return sorted(records, key=lambda r: natural(r["capability"]))


def first_toolkit(text: str, capability: str) -> str:
    """Return the toolkit for a capability out of ``11.0 (8.0) / 11.1 (8.6)`` and the like."""
    for part in text.split("/"):
        if f"({capability})" in part:
            return part.split()[0]
    return text.split()[0].rstrip(",")


def jetpack_records(facts: Path, sources: Sources) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for row in load_dict(facts, "cuda_drivers.json")["jetson"]:
        for version in row["jetpack"].split(", "):
            records.append(
                {
                    "jetpack": version.removesuffix(" DP").removesuffix(".x"),
                    "capabilities": row["compute_capability"],
                    "l4t": row["l4t"],
                    "source": sources.refs(row["source"]),
                }
            )
    return sorted(records, key=lambda r: natural(r["jetpack"]))


def load(facts: Path, name: str) -> list[dict[str, Any]]:
    value: list[dict[str, Any]] = json.loads((facts / name).read_text(encoding="utf-8"))
    return value


def load_dict(facts: Path, name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((facts / name).read_text(encoding="utf-8"))
    return value


def render(as_of: str, sources: Sources, tables: dict[str, list[dict[str, Any]]]) -> str:
    def line(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    parts = [f'"as_of":{line(as_of)}']
    parts.append('"sources":[\n' + ",\n".join(map(line, sources.numbers)) + "\n]")
    for name, records in tables.items():
        parts.append(f'"{name}":[\n' + ",\n".join(map(line, records)) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def floor(what: str, count: int) -> None:
    if count < FLOORS[what]:
        raise SystemExit(f"build_fleet_data: only {count} {what}, expected {FLOORS[what]} or more")


def build(facts: Path) -> dict[str, str]:
    """Return file name → text of every data file."""
    as_of = load_dict(facts, "cuda_drivers.json")["as_of"]
    sources = Sources()
    gpus = gpu_records(facts, sources)
    settle(gpus)
    ambiguous = ambiguous_records(facts, sources)
    for vendor in ("nvidia", "amd", "intel"):
        floor(vendor, sum(r["vendor"] == vendor for r in gpus))
    floor("keys", sum(len(r["keys"]) for r in gpus))
    floor("ambiguous", len(ambiguous))
    every_key = {key for r in gpus for key in r["keys"]}
    for record in ambiguous:
        if record["key"] in every_key:
            raise SystemExit(f"build_fleet_data: {record['name']!r} is ambiguous and a name")
    text = {"gpus.json": render(as_of, sources, {"gpus": gpus, "ambiguous": ambiguous})}
    sources = Sources()
    instances = instance_records(facts, sources, {r["name"] for r in gpus})
    floor("instances", len(instances))
    text["instances.json"] = render(as_of, sources, {"instances": instances})
    sources = Sources()
    architectures = architecture_records(facts, sources)
    jetpacks = jetpack_records(facts, sources)
    declared = {r["capability"] for r in architectures}
    used = {r["capability"] for r in gpus if "capability" in r}
    if not used <= declared:
        raise SystemExit(f"build_fleet_data: no architecture for {sorted(used - declared)}")
    text["architectures.json"] = render(
        as_of, sources, {"architectures": architectures, "jetpacks": jetpacks}
    )
    return text


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    out = Path(arguments[1]) if len(arguments) > 1 else OUT
    out.mkdir(parents=True, exist_ok=True)
    for name, text in build(Path(arguments[0])).items():
        (out / name).write_text(text, encoding="utf-8", newline="\n")
        print(f"{out / name}: {len(text)} characters")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
