"""Text and JSON reports of ``inspect``; the text fits 80 columns."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Sequence
from typing import Any

from torchpin.catalog.inspection import NO_CUDA, NOT_FETCHED, Inspection, Library
from torchpin.fleet.options import UNNAMED
from torchpin.judge.model import FAILS, PARTLY, RUNS, RUNS_VIA_PTX
from torchpin.judge.words import name_gpu
from torchpin.report.inspect_fleet import NO_CODE, GpuFit, LibraryFit
from torchpin.report.model import plural
from torchpin.report.style import Style, clean, visible

VERSION = 1
WIDTH = 79
_NAME, _SASS, _PTX = 28, 28, 8
_PAINT = {RUNS: "good", RUNS_VIA_PTX: "good", FAILS: "bad", PARTLY: "warning"}
_WORDS = {NO_CODE: "no device code: a GPU is neither needed nor used"}


def text(inspection: Inspection, rows: tuple[GpuFit, ...] | None, style: Style) -> str:
    """Return the report for people; ``rows`` None: no fleet is declared."""
    out = [style.paint("bold", clean(_title(inspection)))]
    out += _facts(inspection)
    out += _table(inspection, style)
    for row in rows or ():
        out += ["", *_gpu(row, style)]
    return "\n".join(out) + "\n"


def _title(inspection: Inspection) -> str:
    size = _bytes(inspection.size)
    if inspection.requests:
        size += f"; {_bytes(inspection.fetched)} read in {plural(inspection.requests, 'request')}"
    if inspection.kind == "library" or not inspection.package:
        return f"{inspection.file} ({size})"
    return f"{inspection.package} {inspection.version or '(no version)'} ({size})"


def _facts(inspection: Inspection) -> list[str]:
    arches = inspection.arches
    stated = ""
    if arches is not None:
        names = (*arches.sass, *(f"PTX {name}" for name in arches.ptx), *arches.gfx)
        stated = f"{' '.join(names)} ({os.path.basename(arches.library)})"
    machines = dict.fromkeys(
        f"{library.layout.format} {library.layout.machine}"
        for library in inspection.libraries
        if library.layout is not None
    )
    needs = sorted({name for library in inspection.libraries for name in library.needs})
    facts = [
        ("built as", inspection.built or ""),
        ("CUDA", inspection.cuda or ""),
        ("ROCm", inspection.hip or ""),
        ("tags", " ".join(inspection.tags)),
        ("requires Python", inspection.requires_python or ""),
        ("binaries", ", ".join(machines)),
        ("GPUs that torch states", stated),
        ("needs", " ".join(needs)),
        *(("note", note) for note in inspection.notes),
    ]
    return [
        line for name, value in facts if value for line in _wrap(clean(f"{name}: {value}"), "  ")
    ]


def _wrap(words: str, indent: str) -> list[str]:
    return textwrap.wrap(
        words,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _table(inspection: Inspection, style: Style) -> list[str]:
    shown = [library for library in inspection.libraries if library.fatbins.parts or library.note]
    rest = len(inspection.libraries) - len(shown)
    out: list[str] = []
    if any(library.fatbins.parts for library in shown):
        head = f"  {'library':<{_NAME}}  {'SASS':<{_SASS}}  {'PTX':<{_PTX}}"
        out += ["", style.paint("dim", f"{head}  fatbins")]
    elif shown:
        out.append("")
    names = _names([library.name for library in shown])
    for library, name in zip(shown, names, strict=True):
        out += _library(library, name)
    if not inspection.libraries:
        return [*out, "", "It holds no libraries."]
    if rest:
        more = " more" if shown else ""
        word = "library" if rest == 1 else "libraries"
        out.append(f"  {rest}{more} {word} without device code")
    return out


def _names(paths: Sequence[str]) -> list[str]:
    """Return file names, with as many folders before them as tell them apart."""
    out = []
    for path in paths:
        pieces = path.split("/")
        tails = ("/".join(pieces[-count:]) for count in range(1, len(pieces) + 1))
        out.append(
            next(
                (
                    tail
                    for tail in tails
                    if sum(p == path or p.endswith(f"/{tail}") for p in paths) == 1
                ),
                path,
            )
        )
    return [visible(name) for name in out]


def _library(library: Library, name: str) -> list[str]:
    if library.note:
        tail = ": --all reads it too" if library.note in (NOT_FETCHED, NO_CUDA) else ""
        return _wrap(f"{name} ({_bytes(library.packed)}) {library.note}{tail}", "  ")
    fatbins = library.fatbins
    columns = [
        _cell(name, _NAME),
        textwrap.wrap(" ".join(fatbins.sass), _SASS) or ["none"],
        textwrap.wrap(" ".join(fatbins.ptx), _PTX) or ["none"],
        [str(fatbins.total)],
    ]
    sizes = (_NAME, _SASS, _PTX, 7)
    return [
        "  "
        + "  ".join(
            f"{column[at] if at < len(column) else '':<{size}}"
            for column, size in zip(columns, sizes, strict=True)
        ).rstrip()
        for at in range(max(map(len, columns)))
    ]


def _cell(name: str, size: int) -> list[str]:
    return [name[at : at + size] for at in range(0, len(name), size)] or [""]


def _gpu(row: GpuFit, style: Style) -> list[str]:
    title = clean(name_gpu(row.gpu) + ("" if row.group == UNNAMED else f" in {row.group}"))
    status = style.paint(_PAINT.get(row.status, "bold"), _WORDS.get(row.status, row.status))
    out = [f"{style.paint('bold', title)}: {status}"]
    out += [line for because in row.because for line in _wrap(clean(because), "  ")]
    names = _names([fit.library for fit in row.libraries])
    size = max(map(len, names), default=0)
    for name, fit in zip(names, row.libraries, strict=True):
        out.append(f"  {name:<{size}}  {_fit(fit)}")
    return out


def _fit(fit: LibraryFit) -> str:
    words = [fit.status]
    if fit.code:
        words.append(f"({fit.code})")
    if fit.status == FAILS and fit.special:
        words.append("(made for single GPUs, not this one)")
    elif 0 < fit.covered < fit.total:
        words.append(f"in {fit.covered} of {plural(fit.total, 'fatbin')}")
    return " ".join(words)


def _bytes(count: int) -> str:
    if count >= 1_000_000:
        return f"{count / 1_000_000:,.1f} MB"
    return f"{count / 1000:,.1f} kB" if count >= 1000 else f"{count} B"


def to_json(inspection: Inspection, rows: tuple[GpuFit, ...] | None) -> str:
    """Return the report for programs: ``inspect.v1.json``."""
    arches = inspection.arches
    value = {
        "version": VERSION,
        "source": inspection.source,
        "kind": inspection.kind,
        "file": inspection.file,
        "size": inspection.size,
        "requests": inspection.requests,
        "fetched": inspection.fetched,
        "package": inspection.package,
        "package_version": inspection.version,
        "tags": list(inspection.tags),
        "requires_python": inspection.requires_python,
        "requires": list(inspection.requires),
        "built": inspection.built,
        "cuda": inspection.cuda,
        "hip": inspection.hip,
        "arches": None
        if arches is None
        else {
            "sass": _sass(arches.sass),
            "ptx": _ptx(arches.ptx),
            "gfx": list(arches.gfx),
            "library": arches.library,
        },
        "libraries": [_json_library(library) for library in inspection.libraries],
        "fleet": None if rows is None else [_json_gpu(row) for row in rows],
        "notes": list(inspection.notes),
    }
    return json.dumps(value, indent=2, ensure_ascii=True) + "\n"


def _sass(targets: tuple[str, ...]) -> list[str]:
    return [f"sm_{target}" for target in targets]


def _ptx(targets: tuple[str, ...]) -> list[str]:
    return [f"compute_{target}" for target in targets]


def _json_library(library: Library) -> dict[str, Any]:
    layout = library.layout
    return {
        "name": library.name,
        "size": library.size,
        "packed": library.packed,
        "format": layout.format if layout else None,
        "machine": layout.machine if layout else None,
        "sass": _sass(library.fatbins.sass),
        "ptx": _ptx(library.fatbins.ptx),
        "parts": [
            {"sass": _sass(part.sass), "ptx": _ptx(part.ptx), "fatbins": part.fatbins}
            for part in library.fatbins.parts
        ],
        "needed": list(layout.needed) if layout else [],
        "needs": list(library.needs),
        "note": library.note or None,
    }


def _json_gpu(row: GpuFit) -> dict[str, Any]:
    return {
        "group": row.group,
        "gpu": row.gpu.name,
        "arch": row.gpu.arch or None,
        "status": row.status,
        "because": list(row.because),
        "libraries": [
            {
                "library": fit.library,
                "status": fit.status,
                "code": fit.code or None,
                "covered": fit.covered,
                "fatbins": fit.total,
                "special": fit.special,
            }
            for fit in row.libraries
        ],
    }
