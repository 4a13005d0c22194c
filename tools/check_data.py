"""Check the shape of all data that ship: the catalog, the driver tables, the fleet tables.

    python -m tools.check_data [--catalog FOLDER] [--fleet FOLDER]

Prints each problem with its file and place. Exit code 0: none.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

if not __package__:  # run by its path, from any folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from tools._common import DATA, ROOT

from torchpin.catalog.schema import CAPABILITY, DRIVER, EVIDENCE, GFX, check_folder, or_null
from torchpin.catalog.shape import (
    DATE,
    SOME,
    TEXT,
    TRUTH,
    Problem,
    Shape,
    columns,
    either,
    faults,
    numbers,
    one_of,
    rows,
    sequence_problems,
    table,
    text,
)

FLEET = ROOT / "src" / "torchpin" / "fleet" / "data"
KEY = text(r"[a-z0-9]+", "a look-up key (lower-case letters and digits)")
LEAST = {"gpus": 400, "ambiguous": 10, "instances": 150, "architectures": 24, "jetpacks": 8}
"""Fewest records of each fleet table."""


def fleet_shape(name: str, sources: int) -> Shape:
    """Return the shape of a fleet table with so many sources."""
    source = rows(numbers(sources))
    head = {"as_of": DATE, "sources": rows(SOME, least=1)}
    gpu = table(
        {
            "name": SOME,
            "vendor": one_of("nvidia", "amd", "intel"),
            "product": TEXT,
            "keys": rows(KEY, least=1),
            "source": rows(numbers(sources), least=1),
        },
        {
            "capability": CAPABILITY,
            "gfx": GFX,
            "host": one_of("x86_64", "aarch64"),
            "tegra": TRUTH,
        },
    )
    ambiguous = table(
        {
            "key": KEY,
            "name": SOME,
            "candidates": rows(columns({"name": SOME, "capability": either(GFX, CAPABILITY)})),
            "source": source,
        }
    )
    instance = table(
        {
            "provider": SOME,
            "instance": SOME,
            "aliases": rows(SOME),
            "gpus": rows(SOME, least=1),
            "host": one_of("x86_64", "aarch64"),
            "source": source,
        }
    )
    architecture = table(
        {
            "capability": CAPABILITY,
            "architecture": TEXT,
            "min_driver_branch": or_null(DRIVER),
            "min_evidence": either(one_of(""), EVIDENCE),
            "last_driver_branch": or_null(DRIVER),
            "source": source,
        }
    )
    jetpack = table(
        {
            "jetpack": DRIVER,
            "capabilities": rows(CAPABILITY, least=1),
            "l4t": TEXT,
            "source": source,
        }
    )
    fields = {
        "gpus.json": {"gpus": gpu, "ambiguous": ambiguous},
        "instances.json": {"instances": instance},
        "architectures.json": {"architectures": architecture, "jetpacks": jetpack},
    }[name]
    return table(head | {key: rows(item, least=LEAST[key]) for key, item in fields.items()})


def check_fleet(folder: Path) -> list[Problem]:
    """Return what is wrong with the fleet tables in a folder."""
    out: list[Problem] = []
    read: dict[str, Any] = {}
    for name in ("gpus.json", "instances.json", "architectures.json"):
        try:
            read[name] = json.loads((folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            out.append(Problem(name, "", f"cannot be read: {error}"))
            continue
        sources = read[name].get("sources") if isinstance(read[name], dict) else None
        count = len(sources) if isinstance(sources, list) else 0
        out += faults(name, read[name], fleet_shape(name, count))
    if out:
        return out
    gpus = read["gpus.json"]["gpus"]
    out += sequence_problems("gpus.json", "gpus", [gpu["name"] for gpu in gpus])
    for at, gpu in enumerate(gpus):
        if ("capability" in gpu) != (gpu["vendor"] == "nvidia"):
            out.append(Problem("gpus.json", f"gpus[{at}]", "NVIDIA alone has capabilities"))
    names = {gpu["name"] for gpu in gpus}
    for at, instance in enumerate(read["instances.json"]["instances"]):
        for name in instance["gpus"]:
            if name not in names:
                place = f"instances[{at}].gpus"
                out.append(Problem("instances.json", place, f"no GPU is called {name!r}"))
    return out


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--catalog", type=Path, default=DATA)
    parser.add_argument("--fleet", type=Path, default=FLEET)
    options = parser.parse_args(arguments)
    problems = [*check_folder(str(options.catalog)), *check_fleet(options.fleet)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
