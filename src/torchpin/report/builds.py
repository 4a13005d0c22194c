"""Text reports of ``catalog show``: they fit 80 columns."""

from __future__ import annotations

import textwrap
from typing import Any

from torchpin.catalog.model import PLATFORMS
from torchpin.report.lines import unique
from torchpin.report.model import plural
from torchpin.report.style import Style, clean

WIDTH = 79
DETAILED = 2
"""Up to so many builds are told with all that is known of them."""
_COLUMNS = (("build", 11), ("Python", 15), ("kernels", 22), ("CUDA", 4), ("floor", 5), ("known", 9))
_LEGEND = (
    ("+t", "+t: free-threaded too"),
    ("?", "?: inferred"),
    (" *", "*: no label"),
    ("floor", "floor: lowest glibc or macOS"),
)

Row = dict[str, Any]


def builds(rows: list[Row], style: Style) -> str:
    """Return the builds of one version: a table a platform; all facts if they are few."""
    if not rows:
        return "The catalog knows no such build.\n"
    if len(rows) <= DETAILED:
        return "\n".join("\n".join(_details(row, style)) + "\n" for row in rows)
    package, version = rows[0]["package"], rows[0]["version"].partition("+")[0]
    out = [style.paint("bold", f"{package} {version}: {plural(len(rows), 'build')}")]
    for platform in PLATFORMS:
        here = [row for row in rows if row["platform"] == platform]
        if here:
            out += ["", style.paint("bold", platform), _head(style)]
            out += [line for row in here for line in _line(row)]
            out += [line for row in here for line in _libraries(row)]
    legend = [mark for sign, mark in _LEGEND if any(sign in line for line in out)]
    return "\n".join([*out, "", style.paint("dim", " · ".join(legend))]) + "\n"


def versions(rows: list[Row], style: Style) -> str:
    """Return one line a version: where its builds lie."""
    if not rows:
        return "The catalog knows no such build.\n"
    held: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        places = held.setdefault(row["version"].partition("+")[0], {"pypi": [], "channel": []})
        places[row["index"]].append(row["channel"])
    size = max(map(len, held))
    out = []
    for version, places in held.items():
        words = unique(filter(None, places["channel"]))
        if places["pypi"]:
            kinds = "\0".join(unique(filter(None, places["pypi"])))
            words.insert(0, f"PyPI\0({kinds})" if kinds else "PyPI")
        out += [
            line.replace("\0(", " (").replace("\0", ", ")
            for line in textwrap.wrap(
                ", ".join(words),
                WIDTH,
                initial_indent=f"{version:<{size}}  ",
                subsequent_indent=" " * (size + 2),
            )
        ]
    package = rows[0]["package"]
    out.append(f"{plural(len(rows), 'build')} of {plural(len(held), 'version')}.")
    last = next(reversed(held))
    out.append(style.paint("dim", f"`torchpin catalog show {package} {last}` tells more."))
    return "\n".join(out) + "\n"


def pythons(row: Row) -> str:
    """Return Python tags in short: ``3.10–3.14 +t?``, ``2.7 3.5–3.8``, ``3.9+``, ``any``."""
    tags: list[str] = row["pythons"]
    if any(tag == "py3" for tag in tags):
        return "any"
    words = []
    older = sorted({tag[2] + "." + tag[3] for tag in tags if tag.startswith("cp2")})
    words += older
    minors = sorted({int(tag[3:]) for tag in tags if tag[:3] == "cp3" and tag[3:].isdigit()})
    while minors:
        first = last = minors.pop(0)
        while minors and minors[0] == last + 1:
            last = minors.pop(0)
        words.append(f"3.{first}" if first == last else f"3.{first}–3.{last}")
    words += [f"3.{tag[3:-5]}+" for tag in tags if tag[:3] == "cp3" and tag.endswith("-abi3")]
    if any(tag.endswith("t") and tag.startswith("cp") for tag in tags):
        words.append("+t")
    return " ".join(words) + ("?" if row["pythons_inferred"] or not tags else "")


def kernels(lists: Row) -> str:
    """Return capabilities in short, ``75 90+PTX gfx942``; ``PTX 90`` where there is no SASS."""
    sass = [name.removeprefix("sm_") for name in lists["sass"]]
    ptx = [name.removeprefix("compute_") for name in lists["ptx"]]
    words = [f"{name}+PTX" if name in ptx else name for name in sass]
    words += [f"PTX {name}" for name in ptx if name not in sass]
    return " ".join([*words, *lists.get("gfx", ())])


def _place(row: Row) -> str:
    if row["index"] == "pypi":
        return f"PyPI {row['channel']}".rstrip()
    bare = not row["label"] and not row["platform"].startswith("macos")
    return f"{row['channel']} *" if bare else str(row["channel"])


def _head(style: Style) -> str:
    line = "  " + "  ".join(f"{name:<{size}}" for name, size in _COLUMNS)
    return style.paint("dim", line.rstrip())


def _line(row: Row) -> list[str]:
    """Return one build; what is longer than its column goes on in the next line."""
    known = row["evidence"]
    doubt = "?" if known["kernels"] == "inferred" else ""
    cells = (
        _place(row),
        pythons(row),
        kernels(row) + doubt,
        row["cuda"] or "",
        row["glibc"] or row["macos"] or "",
        "yanked" if row["yanked"] else known["exists"],
    )
    columns = [
        textwrap.wrap(cell, size) or [""] for cell, (_, size) in zip(cells, _COLUMNS, strict=True)
    ]
    out = []
    for at in range(max(map(len, columns))):
        parts = (
            f"{column[at] if at < len(column) else '':<{size}}"
            for column, (_, size) in zip(columns, _COLUMNS, strict=True)
        )
        out.append(f"  {'  '.join(parts)}".rstrip())
    return out


def _libraries(row: Row) -> list[str]:
    return [
        line
        for name, lists in row["libraries"].items()
        for line in textwrap.wrap(
            f"{name} of {_place(row)}: {kernels(lists) or 'no kernels'}",
            WIDTH,
            initial_indent="  ",
            subsequent_indent="    ",
        )
    ]


def _details(row: Row, style: Style) -> list[str]:
    where = "PyPI" if row["index"] == "pypi" else f"channel {row['channel']}"
    known = row["evidence"]
    names = " ".join((*row["sass"], *row["gfx"], *row["ptx"]))
    requires = row["requires"]
    facts = [
        ("built for", row["channel"]),
        ("CUDA", row["cuda"] or ("none" if row["channel"] else "not known")),
        (
            "Python",
            " ".join(f"{t}?" if t in row["pythons_inferred"] else t for t in row["pythons"]),
        ),
        (
            "requires torch",
            ("" if row["package"] == "torch" else "not known")
            if requires is None
            else {"": "no (METADATA names none)", ">=0": "any"}.get(requires, requires),
        ),
        ("requires Python", row["requires_python"] or "not known"),
        ("glibc", row["glibc"]),
        ("macOS", row["macos"]),
        ("released", row["released"]),
        ("yanked", "yes" if row["yanked"] else ""),
        (
            "kernels",
            f"{names} [{known['kernels']}]"
            if known["kernels"]
            else ("by library" if row["libraries"] else "none known"),
        ),
        *(
            (name, " ".join((*lists["sass"], *lists["ptx"])) or "none")
            for name, lists in row["libraries"].items()
        ),
        ("kernels from", row["kernels_source"]),
        ("exists", f"[{known['exists']}] {row['source']}"),
    ]
    title = f"{row['package']} {row['version']} on {where}, {row['platform']}"
    return [
        style.paint("bold", title),
        *(
            line
            for name, value in facts
            if value
            for line in textwrap.wrap(
                clean(f"{name}: {value}"),
                WIDTH,
                initial_indent="  ",
                subsequent_indent="    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        ),
    ]
