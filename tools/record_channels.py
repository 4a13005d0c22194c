"""Turn wheel URLs proved by public lock files into the channel facts of the stub index.

Usage: ``python tools/record_channels.py LOCKFILE_WHEELS.json [OUT.json]``. The input is a list of
records with ``url``, ``sha256`` and ``kind``; only those with a digest count. Nothing comes from
torchpin's catalog.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

PACKAGES = ("torch", "torchvision", "torchaudio")
SKIPPED = ("variant",)
"""Folders below ``/whl`` that are no channel."""
LEAST = 1500
"""Sanity floor of proved wheels."""


def proved(records: list[dict[str, Any]]) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Return (channel, package, file name) → (sha256, first source)."""
    found: dict[tuple[str, str, str], tuple[str, str]] = {}
    for record in records:
        if not record["sha256"]:
            continue
        parts = unquote(urlsplit(record["url"]).path).split("/")
        if len(parts) != 4 or parts[1] != "whl" or parts[2] in SKIPPED:
            continue
        try:
            name, _, _, _ = parse_wheel_filename(parts[3])
        except InvalidWheelFilename:
            continue
        if name in PACKAGES:
            key = (parts[2], str(name), parts[3])
            found.setdefault(key, (record["sha256"], record["seen_in"][0]))
    return found


def main(facts: Path, out: Path) -> None:
    found = proved(json.loads(facts.read_text("utf-8")))
    if len(found) < LEAST:
        raise SystemExit(f"only {len(found)} proved wheels; nothing written")

    def order(key: tuple[str, str, str]) -> tuple[str, str, Version, str]:
        return key[0], key[1], parse_wheel_filename(key[2])[1], key[2]

    lines = [
        json.dumps(
            {"channel": c, "package": p, "file": f, "sha256": digest, "seen-in": seen},
            separators=(",", ":"),
        )
        for (c, p, f), (digest, seen) in sorted(found.items(), key=lambda item: order(item[0]))
    ]
    out.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
    print(f"{len(lines)} wheels")


if __name__ == "__main__":
    default = Path(__file__).parent.parent / "tests/clients/facts/channels.json"
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else default)
