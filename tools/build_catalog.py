"""Build the catalog's data files from a folder of facts and from ``tools/measured.json``.

    python -m tools.build_catalog FACTS [--out FOLDER] [--allow-removal]

The result is deterministic: same facts, same bytes. Nothing is written unless every floor holds.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

if not __package__:  # run by its path, from any folder
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from tools._assemble import Assembly, Part, assemble
from tools._common import DATA, MEASURED, FloorError, digest, replace_all
from tools._facts import PLATFORMS, Facts, read_facts
from tools._internals import internals_file
from tools.measure_wheels import load as load_measured

from torchpin.catalog import records
from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import FAMILY, WATCHED, Build
from torchpin.catalog.records import package_text, table
from torchpin.catalog.schema import check_files
from torchpin.evidence import ORDER

FORMAT = 1
AT_LEAST = {"torch": 650, "torchvision": 600, "torchaudio": 450}
CHANNELS_AT_LEAST = 25
HASHED = (*FAMILY, "torchtext", "torchdata", "torchcodec")
"""Packages whose digests a fix may write."""


def check(assembly: Assembly) -> None:
    """Refuse what cannot be right.

    Raises:
        FloorError: a floor does not hold.
    """
    parts = {p.package: p for p in assembly.parts}
    for package, floor in AT_LEAST.items():
        count = len(parts[package].builds) if package in parts else 0
        if count < floor:
            raise FloorError(f"{count} builds of {package}, at least {floor} expected")
    channels = {b.channel for b in parts["torch"].builds if b.home == "channel"}
    if len(channels) < CHANNELS_AT_LEAST:
        raise FloorError(
            f"{len(channels)} channels of torch, at least {CHANNELS_AT_LEAST} expected"
        )
    for part in assembly.parts:
        for build in part.builds:
            check_build(build)
    measured = [b for b in parts["torch"].builds if b.kernels and b.kernels.evidence == "measured"]
    if len(measured) < 50:
        raise FloorError(f"{len(measured)} measured kernel lists of torch, at least 50 expected")


def check_build(build: Build) -> None:
    where = f"{build.package} {build.full_version} {build.channel} {build.platform}"
    try:
        Version(build.full_version)
        for text in (build.requires_torch, build.requires_python):
            SpecifierSet(text or "")
    except (InvalidVersion, InvalidSpecifier) as error:
        raise FloorError(f"{where}: {error}") from error
    if build.platform not in PLATFORMS:
        raise FloorError(f"{where}: unknown platform")
    if build.home == "channel" and build.channel != "root" and not kind_of_label(build.channel):
        raise FloorError(f"{where}: unknown channel")
    lists = [build.kernels, *(k for _, k in build.libraries)]
    for evidence in (build.evidence, *(k.evidence for k in lists if k)):
        if evidence not in ORDER:
            raise FloorError(f"{where}: unknown evidence {evidence!r}")
    if not build.source:
        raise FloorError(f"{where}: no source")


def package_file(part: Part) -> str:
    """Return the data file of one package."""
    return package_text(
        records.Part(
            part.package,
            part.pypi,
            part.elsewhere,
            list(part.sdists),
            [
                [
                    *(s.channel, s.first, s.last, s.evidence, s.source, s.closed),
                    s.start if s.begun else None,
                ]
                for s in part.spans
            ],
            part.builds,
            part.rows,
            [],
            None,
        )
    )


def hash_file(part: Part) -> str:
    """Return [full version, platform, channel, file name, sha256], one a line."""
    seen: dict[tuple[str, str, str], list[str]] = {}
    for w in part.files:
        full = f"{w.version}+{w.label}" if w.label else w.version
        for platform in w.platforms:
            seen.setdefault(
                (w.channel, platform, w.name), [full, platform, w.channel, w.name, w.sha256]
            )
    rows = sorted(seen.values(), key=lambda r: (Version(r[0]), r[1:]))
    return table({"package": part.package, "files": rows})


def plain(source: str) -> str:
    """Return a source without the name of the survey that read it."""
    return re.sub(r"\(\w+ (measurement of [^)]*)\)", r"(\1)", source)


def render(facts: Facts, measured_text: str, assembly: Assembly) -> dict[str, str]:
    """Return file name → text of all data files."""
    measured = load_measured(measured_text)
    files = {f"builds-{p.package}.json": package_file(p) for p in assembly.parts}
    files |= {
        f"hashes-{p.package}.json": hash_file(p) for p in assembly.parts if p.package in HASHED
    }
    files["partners.json"] = table(assembly.partners)
    files["pins.json"] = table({"pins": measured["pins"]["rows"]})
    stale = sorted(
        {n for h in facts.health for n in h.get("packages_seen_at_root", {})}
        - {n for h in facts.health for n in h.get("mirrored", [])}
    )
    columns = ("channel", "kind", "problem", "since", "status", "affects", "workaround")
    files["health.json"] = table(
        {
            "health": [
                [*(h[c] for c in columns), plain("; ".join(h["source"]))]
                for h in sorted(facts.health, key=lambda h: (h["channel"], h["kind"], h["problem"]))
            ],
            "stale": stale,
            "mirrored": sorted(
                {n for h in facts.health for n in h.get("mirrored", []) if "*" not in n}
                | {n for h in facts.health for n in h.get("mirrored_cuda_only", [])}
            ),
        }
    )
    whole = digest("".join(files[name] for name in sorted(files)).encode())
    files["catalog.json"] = table(
        {
            "format": FORMAT,
            "date": measured["dates"]["index"],
            "digest": whole,
            "facts": facts.digests,
            "measured": measured["dates"],
            "measured_sha256": digest(measured_text.encode()),
            "pinned": sorted({row[0] for row in measured["pins"]["rows"]}),
            "newest": {p.package: p.newest for p in assembly.parts},
            "builds": {p.package: len(p.builds) for p in assembly.parts},
        }
    )
    torch = next((p.builds for p in assembly.parts if p.package == "torch"), [])
    files["internals.json"] = internals_file(measured, torch)  # not part of the digest
    return files


def place(version: str, label: str, channel: str, home: str, platform: str) -> tuple[str, ...]:
    """Name a build; what a PyPI build really is may become known later."""
    return (version, label, channel if home == "channel" else home, platform)


def removed(folder: Path, assembly: Assembly) -> list[str]:
    """Return what the files in ``folder`` hold and the new ones do not."""
    out = []
    for part in assembly.parts:
        path = folder / f"builds-{part.package}.json"
        if not path.exists():
            continue
        old = json.loads(path.read_text(encoding="utf-8"))["builds"]
        before = {place(*record[:5]) for record in old}
        now = {place(b.version, b.label, b.channel, b.home, b.platform) for b in part.builds}
        out += [f"{part.package} {' '.join(k)}" for k in sorted(before - now)]
    return out


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("facts", type=Path)
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--measured", type=Path, default=MEASURED)
    parser.add_argument("--allow-removal", action="store_true")
    options = parser.parse_args(arguments)
    facts = read_facts(options.facts)
    if not options.measured.is_file():
        raise FloorError(f"{options.measured} is missing: run tools.measure_wheels first")
    text = options.measured.read_text(encoding="utf-8")
    assembly = assemble(facts, load_measured(text))
    check(assembly)
    missing = [p for p in WATCHED if p not in {part.package for part in assembly.parts}]
    if missing:
        raise FloorError(f"nothing is known of {', '.join(missing)}")
    gone = removed(options.out, assembly)
    if gone and not options.allow_removal:
        raise FloorError(f"{len(gone)} builds would go, as {gone[0]}; --allow-removal lets them")
    files = render(facts, text, assembly)
    problems = check_files({name: body.encode() for name, body in files.items()})
    if problems:
        raise FloorError(f"{len(problems)} wrong shapes, as {problems[0]}")
    replace_all({options.out / name: body for name, body in files.items()})
    for line in assembly.contradictions:
        print("contradiction:", line)
    for part in assembly.parts:
        print(f"{part.package}: {len(part.builds)} builds, {len(part.rows)} absences")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
