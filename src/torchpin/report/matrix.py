"""The matrix as text: a table that fits the terminal, as Markdown, as CSV."""

from __future__ import annotations

from collections.abc import Sequence

from torchpin.judge.model import FAILS, PARTLY, RUNS, RUNS_VIA_PTX, UNKNOWN
from torchpin.matrix.model import Cell, Judged, Line, Matrix
from torchpin.report.style import Style, clean, width

WIDTH = 80
"""Columns where there is no terminal."""
SIGNS = {RUNS: "+", RUNS_VIA_PTX: "~", PARTLY: "!", UNKNOWN: "?"}
NOTHING = "-"
MEANING = (
    (f"{SIGNS[RUNS]} runs", f"{SIGNS[RUNS_VIA_PTX]} runs by compiling PTX, slow at first use"),
    (f"{SIGNS[PARTLY]} partly: a library in it fails there", f"{SIGNS[UNKNOWN]} not known"),
    (f"{NOTHING} published, and nothing runs", ". not published", "* also, or only, on PyPI"),
)
_PAINT = {RUNS: "good", RUNS_VIA_PTX: "warning", PARTLY: "warning", UNKNOWN: "dim"}
_TITLE = 26
"""The widest title; a longer one is cut."""
_GAP = 2


def words(cell: Cell, *, gpus: bool = True) -> list[tuple[str, str]]:
    """Return what a cell says: (text, verdict) of each channel that does not fail.

    A release of which nothing that is known runs, and of which it is not known whether another
    channel holds it, is not known. A channel that PyPI serves as well is named once if both have
    the same verdict. Without ``gpus``, channels for GPUs are left out: their builds run and bring
    gigabytes for nothing.
    """
    if cell.doubt is not None:
        return [(SIGNS[UNKNOWN], UNKNOWN)]
    if not cell.builds:
        return [(".", "")]
    found: dict[tuple[str, str], bool] = {}
    for one in cell.builds:
        idle = not gpus and one.build.home != "pypi" and one.build.channel != "cpu"
        if one.status != FAILS and not idle:
            key = (one.build.channel or "PyPI", one.status)
            found[key] = found.get(key, False) or one.build.home == "pypi"
    if not found:
        return [(NOTHING, FAILS)]
    order = list(SIGNS)
    listed = sorted(found.items(), key=lambda one: order.index(one[0][1]))
    return [
        (f"{SIGNS[status]}{channel}{'*' if pypi else ''}", status)
        for (channel, status), pypi in listed
    ]


def _cells(line: Line) -> list[list[tuple[str, str]]]:
    """Return what the cells of a row say, newest release first."""
    gpus = bool(line.row.group.gpus)
    return [words(cell, gpus=gpus) for cell in reversed(line.cells)]


def text(matrix: Matrix, style: Style, columns: int = 0) -> str:
    """Return the table, in as many parts as the width asks for, newest releases first.

    ``columns``: the width of the terminal, 0 without one.
    """
    room = columns or WIDTH
    out: list[str] = []
    if not matrix.versions or not matrix.lines:
        out.append(f"No release of {clean(matrix.package)} is known here.")
    shown = [(line, _cells(line)) for line in matrix.lines]
    versions = matrix.versions[::-1]
    titles = [_cut(clean(title)) for line in matrix.lines for title in line.row.titles]
    first = max([width(title) for title in titles] + [len(matrix.package)]) + _GAP
    for part in _parts(versions, [cells for _, cells in shown], room - first):
        out += _part(matrix, [(line, cells[part]) for line, cells in shown], part, first, style)
        out.append("")
    out += [style.paint("dim", line) for line in _legend(room)]
    out.append(style.paint("dim", f"Catalog of {matrix.date}."))
    return "\n".join(out) + "\n"


def _cut(title: str) -> str:
    while width(title) > _TITLE:
        title = title[:-2] + "…"
    return title


def _parts(
    versions: Sequence[str], rows: Sequence[list[list[tuple[str, str]]]], room: int
) -> list[slice]:
    """Return which columns stand together: as many as fit, at least one."""
    parts: list[slice] = []
    start, used = 0, 0
    for at in range(len(versions)):
        wide = _column(versions[at], [cells[at] for cells in rows])
        if at > start and used + wide > room:
            parts.append(slice(start, at))
            start, used = at, 0
        used += wide
    if versions:
        parts.append(slice(start, len(versions)))
    return parts


def _column(version: str, cells: Sequence[list[tuple[str, str]]]) -> int:
    return max([len(version)] + [len(word) for cell in cells for word, _ in cell]) + _GAP


def _part(
    matrix: Matrix,
    rows: Sequence[tuple[Line, list[list[tuple[str, str]]]]],
    part: slice,
    first: int,
    style: Style,
) -> list[str]:
    versions = matrix.versions[::-1][part]
    sizes = [_column(v, [cells[at] for _, cells in rows]) for at, v in enumerate(versions)]
    head = "".join(f"{v:<{size}}" for v, size in zip(versions, sizes, strict=True))
    out = [style.paint("bold", f"{matrix.package:<{first}}{head}".rstrip())]
    apart = any(len(line.row.titles) > 1 for line, _ in rows)
    for line, cells in rows:
        if apart:
            out.append("")
        titles = [_cut(clean(title)) for title in line.row.titles]
        for row in range(max([len(titles), *map(len, cells)])):
            title = titles[row] if row < len(titles) else ""
            written = title + " " * (first - width(title))
            for cell, size in zip(cells, sizes, strict=True):
                word, status = cell[row] if row < len(cell) else ("", "")
                painted = style.paint(_PAINT.get(status, "dim"), word)
                written += painted + " " * (size - len(word))
            out.append(written.rstrip())
    return out


def _legend(room: int) -> list[str]:
    out: list[str] = []
    for parts in MEANING:
        for part in parts:
            if out and len(out[-1]) + 3 + len(part) <= room and part is not parts[0]:
                out[-1] += f"   {part}"
            else:
                out.append(part)
    return out


def markdown(matrix: Matrix) -> str:
    """Return a table of GitHub's Markdown, newest release first."""
    versions = matrix.versions[::-1]
    out = [
        f"| {matrix.package} | {' | '.join(versions)} |",
        f"|---|{'---|' * len(versions)}",
    ]
    for line in matrix.lines:
        title = "<br>".join(_escaped(clean(title)) for title in line.row.titles)
        cells = ["<br>".join(_code(word) for word, _ in cell) for cell in _cells(line)]
        out.append(f"| {title} | {' | '.join(cells)} |")
    legend = " · ".join(part for parts in MEANING for part in parts)
    return "\n".join([*out, "", f"{_escaped(legend)}. Catalog of {matrix.date}.", ""])


def _code(word: str) -> str:
    return word if word in (NOTHING, ".", SIGNS[UNKNOWN]) else f"`{word}`"


def _escaped(title: str) -> str:
    return "".join(f"&#{ord(c)};" if c in "\\`*_[]<>|~&" else c for c in title)


def csv(matrix: Matrix) -> str:
    """Return a line for each build on each row, those that fail too."""
    import csv as writer
    import io

    file = io.StringIO()
    lines = writer.writer(file, lineterminator="\n")
    lines.writerow(
        ("row", "gpus", "platform", "package", "version", "channel", "index", "verdict", "because")
    )
    for line in matrix.lines:
        group = line.row.group
        title = _cell("; ".join(line.row.titles[: 1 if len(group.gpus) > 1 else None]))
        gpus = "; ".join(dict.fromkeys(gpu.name for gpu in group.gpus))
        for cell in line.cells:
            if cell.doubt is not None:
                why = _cell(f"{cell.doubt.text} [{cell.doubt.evidence}]")
                place = (group.platform, matrix.package, cell.version)
                for channel in cell.maybe:
                    lines.writerow((title, _cell(gpus), *place, channel, "channel", UNKNOWN, why))
            for one in cell.builds:
                build = one.build
                lines.writerow(
                    (
                        title,
                        _cell(gpus),
                        group.platform,
                        matrix.package,
                        build.full_version,
                        build.channel,
                        build.home,
                        one.status,
                        _cell(because(one)),
                    )
                )
    return file.getvalue()


def _cell(words: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    words = clean(words)
    return f"'{words}" if words[:1] in ("=", "+", "-", "@") else words


def because(one: Judged) -> str:
    """Return the first ground of a verdict with its evidence; ``""`` for what runs."""
    if one.status == RUNS:
        return ""
    return next((f"{reason.text} [{reason.evidence}]" for reason in one.grounds), "")
