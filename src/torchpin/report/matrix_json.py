"""The matrix as JSON; ``schemas/matrix.v1.json`` is its contract."""

from __future__ import annotations

import json
from typing import Any

from torchpin.judge.model import RUNS, Reason
from torchpin.matrix.model import Cell, Line, Matrix
from torchpin.report.style import redact

VERSION = 1


def render(matrix: Matrix) -> str:
    """Return the matrix; what runs has no ``because``."""
    return (
        json.dumps(
            {
                "version": VERSION,
                "catalog": {
                    "date": matrix.date,
                    "digest": matrix.digest,
                    "stale": matrix.stale,
                },
                "package": matrix.package,
                "releases": list(matrix.versions),
                "rows": [_row(line) for line in matrix.lines],
            },
            indent=2,
        )
        + "\n"
    )


def _row(line: Line) -> dict[str, Any]:
    group = line.row.group
    return {
        "titles": list(line.row.titles),
        "group": group.name,
        "gpus": list(dict.fromkeys(gpu.name for gpu in group.gpus)),
        "platform": group.platform,
        "python": [str(python) for python in group.pythons],
        "driver": group.driver,
        "glibc": group.glibc,
        "cells": [_cell(cell) for cell in line.cells],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "release": cell.version,
        "doubt": _reason(cell.doubt) if cell.doubt is not None else None,
        "maybe": list(cell.maybe),
        "builds": [
            {
                "version": one.build.full_version,
                "channel": one.build.channel,
                "index": one.build.home,
                "verdict": one.status,
                "because": [
                    _reason(reason) for reason in (one.grounds if one.status != RUNS else ())
                ],
            }
            for one in cell.builds
        ],
    }


def _reason(reason: Reason) -> dict[str, str]:
    return {
        "text": redact(reason.text),
        "evidence": reason.evidence,
        "source": redact(reason.source),
    }
