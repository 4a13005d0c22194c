"""What is denied, and where channels begin and end (pure).

The rules are told in ``torchpin.catalog.existence``.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from packaging.version import Version
from tools._facts import Row

from torchpin.catalog.labels import kind_of_label
from torchpin.catalog.model import Build
from torchpin.evidence import INFERRED, ORDER, PROOF, PUBLISHED

PREVIOUS = "https://pytorch.org/get-started/previous-versions/"
FACTS_BEGIN = Version("1.8.0")
"""First torch release whose channels the facts hold."""


class Span(NamedTuple):
    """First and last proved release of a package on a channel; see ``spans``."""

    channel: str
    first: str
    last: str
    evidence: str
    source: str
    closed: bool
    begun: bool
    start: str
    """The source that proves the beginning, ``""`` if none does."""


def absences(package: str, rows: list[Row], health: list[dict[str, Any]]) -> list[list[Any]]:
    """Return the rows that deny a build or leave it open, off PyPI (whose list is complete)."""
    stated = {
        h["channel"]: f"{h['problem'].partition('. ')[0]} ({'; '.join(h['source'][:2])})"
        for h in health
        if h["kind"] == "companion" and f"No usable {package}:" in h["problem"]
    }
    out = []
    for row in rows:
        if row.exists or row.channel == "pypi":
            continue
        evidence, source = row.evidence, row.source
        if row.exists is False and evidence == INFERRED and row.channel in stated:
            evidence, source = PUBLISHED, stated[row.channel]
        out.append([row.version, row.channel, row.platform, row.exists, evidence, source])
    return sorted(out, key=lambda r: (Version(r[0]), r[1], r[2]))


def spans(
    package: str,
    builds: list[Build],
    absent: list[list[Any]],
    known: list[Version],
    health: list[dict[str, Any]],
) -> list[Span]:
    """Return the span of each channel; the rules are told in ``torchpin.catalog.store``."""
    out = []
    held = [b for b in builds if b.home == "channel" and b.channel != "root"]
    for channel in sorted({b.channel for b in held}):
        here = [b for b in held if b.channel == channel]
        proved = [b for b in here if b.evidence in PROOF]
        if not proved:
            continue
        first, last = proved[0], proved[-1]
        low, high = Version(first.version), Version(last.version)
        deny = {Version(r[0]): r for r in absent if r[1] == channel and r[2] == "*"}
        present = {Version(b.version) for b in here}
        irregular = any(low < v < high and r[3] is False for v, r in deny.items())
        after = [r for v, r in deny.items() if v > high]
        open_end = any(v > high for v in present) or any(r[3] is None for r in after)
        why = "" if open_end or irregular else closure(package, channel, last, after, known, health)
        before = [v for v in known if v < low]
        start = ""
        if before and not any(v < low for v in present):
            row = deny.get(before[-1])
            if row is not None and row[3] is False:
                start = row[5]
            elif old_cuda(package, channel, first) and low.micro == 0 and before[-1] >= FACTS_BEGIN:
                start = PREVIOUS
        out.append(
            Span(
                channel,
                first.version,
                last.version,
                max(first.evidence, last.evidence, key=ORDER.index),
                why or last.source,
                bool(why),
                bool(start),
                start,
            )
        )
    return out


def closure(
    package: str,
    channel: str,
    last: Build,
    after: list[list[Any]],
    known: list[Version],
    health: list[dict[str, Any]],
) -> str:
    """Return the source that proves the end of a channel for a package, or ``""``."""
    for row in sorted(after, key=lambda r: Version(r[0])):
        if row[3] is False and row[4] in PROOF:
            return str(row[5])
    for entry in health:
        named = re.search(rf"\b{package} {re.escape(last.version)}\b(?! seen)", entry["problem"])
        if entry["kind"] == "frozen" and entry["channel"] == channel and named:
            return f"{entry['problem'].partition('. ')[0]} ({'; '.join(entry['source'][:2])})"
    lines = {Version(r[0]).release[:2] for r in after if r[3] is False}
    lines.discard(Version(last.version).release[:2])
    if kind_of_label(channel) == "cuda" and len(lines) >= 2:
        first = min(after, key=lambda r: Version(r[0]))
        return f"absent from {len(lines)} later release lines: {first[5]}"
    later = {v.release[:2] for v in known if v > Version(last.version)}
    later.discard(Version(last.version).release[:2])
    if old_cuda(package, channel, last) and len(later) >= 2 and not after:
        return f"{PREVIOUS} (no later release names {channel})"
    return ""


def old_cuda(package: str, channel: str, build: Build) -> bool:
    """Return whether the page of previous versions tells all of a channel: torch, old CUDA."""
    return (
        package == "torch"
        and kind_of_label(channel) == "cuda"
        and Version(build.version) < Version("2.1")
        and build.evidence in PROOF
    )
