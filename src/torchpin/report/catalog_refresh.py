"""The JSON report of ``catalog refresh``."""

from __future__ import annotations

import json

from torchpin.catalog.refresh.settings import Result
from torchpin.report.style import redact

VERSION = 1


def to_json(result: Result, *, dry_run: bool) -> str:
    """Return the report as JSON; its schema is ``catalog-refresh.v1.json``."""
    value = {
        "version": VERSION,
        "catalog": {"date": result.date, "digest": result.digest, "folder": result.folder},
        "dry_run": dry_run,
        "changes": [change._asdict() for change in result.changes],
        "failed": [
            {"part": one.part, "reason": redact(one.why), "kept": one.kept or None}
            for one in result.failed
        ],
        "summary": {
            "pages": result.pages,
            "unchanged": result.unchanged,
            "wheels": result.wheels,
            "requests": result.requests,
            "fetched": result.fetched,
            "seconds": round(result.seconds, 1),
        },
    }
    return json.dumps(value, indent=2) + "\n"
