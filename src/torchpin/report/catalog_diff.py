"""Reports of ``catalog diff``: text, JSON, and Markdown for a pull request."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable

from torchpin.catalog.diff import ADDED, CHANGED, REMOVED, SUBJECTS, Diff, Entry, counts
from torchpin.report.model import plural
from torchpin.report.style import Style, clean

WIDTH = 79
VERSION = 1
LONGEST_BODY = 60_000
"""Characters of a Markdown report; GitHub takes 65,536 in the body of a pull request."""
_NAMED = 4
"""Of more versions with the same difference, the first and the last are named."""
_SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}
_COLORS = {ADDED: "good", REMOVED: "error", CHANGED: "warning"}
_FACTS = {
    "absence": ("absence", "absences"),
    "digest": ("digest", "digests"),
    "health": ("note on channels", "notes on channels"),
    "newest": ("newest release", "newest releases"),
}


def to_json(diff: Diff) -> str:
    """Return the report as JSON; its schema is ``catalog-diff.v1.json``."""
    value = {
        "version": VERSION,
        "old": {"name": diff.old.name, "date": diff.old.date, "digest": diff.old.digest},
        "new": {"name": diff.new.name, "date": diff.new.date, "digest": diff.new.digest},
        "differences": [
            {
                "kind": entry.kind,
                "subject": entry.subject,
                "package": entry.package or None,
                "name": entry.name,
                "fact": entry.fact or None,
                "before": entry.before or None,
                "after": entry.after or None,
                "grave": entry.grave,
            }
            for entry in diff.entries
        ],
        "summary": {
            kind: sum(entry.kind == kind for entry in diff.entries)
            for kind in (ADDED, REMOVED, CHANGED)
        },
    }
    return json.dumps(value, indent=2) + "\n"


def text(diff: Diff, style: Style) -> str:
    """Return the report for people; it fits 80 columns."""
    out = [style.paint("bold", _title(diff))]
    if not diff.entries:
        return f"{out[0]}\nNothing differs.\n"
    for package, entries in _by_package(diff.entries):
        out += ["", style.paint("bold", package or "for all packages")]
        for subject, kind, lines in _grouped(entries):
            for line in lines:
                wrapped = textwrap.wrap(
                    clean(f"{subject} {line}"),
                    WIDTH - 4,
                    subsequent_indent="    ",
                    break_long_words=False,
                    break_on_hyphens=False,
                )
                sign = style.paint(_COLORS[kind], _SIGNS[kind])
                out += [f"  {sign} {wrapped[0]}", *(f"    {rest}" for rest in wrapped[1:])]
    out += ["", _summary(diff)]
    return "\n".join(out) + "\n"


def markdown(diff: Diff) -> str:
    """Return the report for a pull request; what is too long for one is counted."""
    out = [f"## {_title(diff)}", ""]
    if not diff.entries:
        return "\n".join([*out, "Nothing differs.", ""])
    out += ["| package | what | added | removed | changed |", "|---|---|---:|---:|---:|"]
    for package, subjects in counts(diff.entries).items():
        for subject in (name for name in SUBJECTS if name in subjects):
            numbers = (subjects[subject].get(kind, 0) for kind in (ADDED, REMOVED, CHANGED))
            cells = " | ".join(str(number or "") for number in numbers)
            out.append(
                f"| {package or 'all'} | {_FACTS.get(subject, ('', subject))[1]} | {cells} |"
            )
    grave = [entry for entry in diff.entries if entry.grave]
    if grave:
        out += ["", f"### To look at: {len(grave)}", ""]
        out += [f"- {_code(_line(entry))}" for entry in grave]
    blocks = ["\n".join([*out, ""])]
    for package, entries in _by_package(diff.entries):
        lines = [
            f"- {_SIGNS[kind]} {subject} {_code(line)}"
            for subject, kind, found in _grouped(entries)
            for line in found
        ]
        count = plural(len(entries), "difference")
        head = f"<details><summary>{package or 'all packages'}: {count}</summary>"
        blocks.append("\n".join([head, "", *lines, "", "</details>", ""]))
    return _cut("\n".join(blocks))


def _cut(body: str) -> str:
    if len(body) <= LONGEST_BODY:
        return body
    kept = body[:LONGEST_BODY].rpartition("\n")[0]
    left = body[len(kept) :].count("\n- ")
    open_details = kept.count("<details>") > kept.count("</details>")
    close = "\n\n</details>" if open_details else ""
    return f"{kept}{close}\n\n… and {left} lines more: run `torchpin catalog diff`.\n"


def _code(line: str) -> str:
    return "`" + clean(line).replace("`", "'") + "`"


def _title(diff: Diff) -> str:
    old, new = diff.old, diff.new
    return (
        f"Catalog of {old.date} ({old.digest[:12]}, {old.name}) → "
        f"{new.date} ({new.digest[:12]}, {new.name})"
    )


def _summary(diff: Diff) -> str:
    words = [
        f"{sum(entry.kind == kind for entry in diff.entries)} {kind}"
        for kind in (ADDED, REMOVED, CHANGED)
    ]
    grave = sum(entry.grave for entry in diff.entries)
    tail = f" {grave} to look at: what went, or is known less well." if grave else ""
    return f"{', '.join(words)}.{tail}"


def _by_package(entries: Iterable[Entry]) -> list[tuple[str, list[Entry]]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.package, []).append(entry)
    return list(found.items())


def _line(entry: Entry) -> str:
    head = f"{entry.package} {entry.name}".strip()
    return f"{entry.subject} {head}: {_what(entry)}"


def _what(entry: Entry) -> str:
    if entry.kind == CHANGED:
        return f"{entry.fact}: {entry.before or 'not known'} → {entry.after or 'not known'}"
    told = entry.after if entry.kind == ADDED else entry.before
    return f"{entry.kind}{f': {told}' if told else ''}"


def _grouped(entries: list[Entry]) -> list[tuple[str, str, list[str]]]:
    """Return (subject, kind, lines); what happened alike to several things is told once."""
    out = []
    for subject in SUBJECTS:
        for kind in (ADDED, REMOVED, CHANGED):
            same: dict[str, list[str]] = {}
            for entry in entries:
                if (entry.subject, entry.kind) == (subject, kind):
                    told = _what(entry) if kind == CHANGED else _told(entry)
                    same.setdefault(told, []).append(entry.name)
            lines = [
                f"{_names(names)}{f': {told}' if told else ''}" for told, names in same.items()
            ]
            if lines:
                out.append((subject, kind, lines))
    return out


def _told(entry: Entry) -> str:
    if entry.subject == "digest":
        return ""
    return entry.after if entry.kind == ADDED else entry.before


def _names(names: list[str]) -> str:
    """Join names: ``2.14.0, 2.14.1 pypi linux-x86_64, windows-x86_64``.

    What lies in the same places is told together; of many, the first and the last are named.
    """
    tails: dict[str, list[str]] = {}
    for name in names:
        first, _, tail = name.partition(" ")
        tails.setdefault(tail, []).append(first)
    places: dict[tuple[str, ...], list[str]] = {}
    for tail, firsts in tails.items():
        places.setdefault(tuple(firsts), []).append(tail)
    shown = []
    for found, ends in places.items():
        text = ", ".join(found)
        if len(found) > _NAMED:
            text = f"{found[0]} … {found[-1]} ({len(found)})"
        shown.append(f"{text} {_tails(ends)}".strip())
    if len(shown) > 2 * _NAMED:
        shown = [*shown[:_NAMED], f"and {len(shown) - _NAMED} more"]
    return "; ".join(shown)


def _tails(ends: list[str]) -> str:
    heads: dict[str, list[str]] = {}
    for end in ends:
        head, _, last = end.rpartition(" ")
        heads.setdefault(head, []).append(last)
    return ", ".join(f"{head} {', '.join(last)}".strip() for head, last in heads.items())
