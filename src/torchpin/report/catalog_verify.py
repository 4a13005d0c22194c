"""Reports of ``catalog verify``: text and JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

from torchpin.catalog.diff import name_of
from torchpin.catalog.verify import DIFFERS, HOLDS, UNREAD, Outcome
from torchpin.named import NamedTuple
from torchpin.report.model import plural
from torchpin.report.style import Style, clean, redact

WIDTH = 79
VERSION = 1


class Run(NamedTuple):
    """What was asked for, and what it cost."""

    date: str
    digest: str
    seed: int | None
    """None: all were measured."""
    measured: int
    """How many builds the catalog calls measured."""
    requests: int
    fetched: int
    seconds: float


def to_json(outcomes: Sequence[Outcome], run: Run) -> str:
    """Return the report as JSON; its schema is ``catalog-verify.v1.json``."""
    value = {
        "version": VERSION,
        "catalog": {"date": run.date, "digest": run.digest},
        "seed": run.seed,
        "builds": [
            {
                "package": one.unit.build.package,
                "version": one.unit.build.full_version,
                "channel": one.unit.build.channel,
                "index": one.unit.build.home,
                "platform": one.unit.build.platform,
                "file": one.file or None,
                "sha256": one.sha256 or None,
                "status": one.status,
                "checked": list(one.checked),
                "differences": [difference._asdict() for difference in one.differences],
                "reason": redact(one.reason) or None,
                "notes": list(one.notes),
            }
            for one in outcomes
        ],
        "summary": {
            "measured": run.measured,
            "checked": len(outcomes),
            **{
                status: sum(one.status == status for one in outcomes)
                for status in (HOLDS, DIFFERS, UNREAD)
            },
            "facts": sum(len(one.checked) for one in outcomes),
            "requests": run.requests,
            "fetched": run.fetched,
            "seconds": round(run.seconds, 1),
        },
    }
    return json.dumps(value, indent=2) + "\n"


def text(outcomes: Sequence[Outcome], run: Run, style: Style) -> str:
    """Return the report for people: what does not hold, what could not be read, and a count."""
    out: list[str] = []
    for one in outcomes:
        title = f"{one.unit.build.package} {name_of(one.unit.build)}"
        if one.status == DIFFERS or one.differences:
            out.append(style.paint("bad", f"{title}: does not hold"))
            out += _lines(f"wheel: {one.file}" if one.file else "")
            for difference in one.differences:
                out += _lines(f"{difference.fact}: the catalog says {difference.catalog}")
                out += _lines(f"{difference.fact}: the wheel says {difference.wheel}")
        if one.status == UNREAD:
            out.append(style.paint("warning", f"{title}: could not be read"))
            out += _lines(f"{one.file}: {redact(one.reason)}" if one.file else redact(one.reason))
        for note in one.notes:
            out.append(style.paint("dim", f"{title}: odd, but as the catalog says"))
            out += _lines(f"{one.file}: {note}")
    if out:
        out.append("")
    return "\n".join([*out, *textwrap.wrap(_summary(outcomes, run), WIDTH)]) + "\n"


def _lines(told: str) -> list[str]:
    return textwrap.wrap(
        clean(told),
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(outcomes: Sequence[Outcome], run: Run) -> str:
    counts = {s: sum(one.status == s for one in outcomes) for s in (HOLDS, DIFFERS, UNREAD)}
    facts = sum(len(one.checked) for one in outcomes)
    seed = f" (seed {run.seed})" if run.seed is not None else ""
    words = f"{counts[HOLDS]} of {plural(len(outcomes), 'build')} hold, {plural(facts, 'fact')}"
    if counts[DIFFERS]:
        words += f"; {counts[DIFFERS]} do not"
    if counts[UNREAD]:
        words += f"; {counts[UNREAD]} could not be read"
    return (
        f"{words}. The catalog of {run.date} calls {run.measured} measured{seed}. "
        f"{run.fetched / 1e6:.1f} MB in {plural(run.requests, 'request')}, {run.seconds:.0f} s."
    )
