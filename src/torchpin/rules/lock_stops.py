"""Where ``uv lock`` stops: each such fault is told once, by the rule whose fault it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.documents.base import Document, Span
from torchpin.rules.context import Context, Judged, JudgedSet, Way
from torchpin.select.channels import redact
from torchpin.select.model import Miss, Selection

INDEX_CONFLICT = (
    r"(?:the markers of two sources|several sources) of (?P<package>[\w-]+) |"
    r"(?P<routed>[\w-]+) has two indexes"
)
"""Why uv stops at sources (TP409), as ``select`` words it."""
NO_SOLUTION = "no solution for "
"""How ``select`` begins where versions exclude each other (TP301) or are missing (TP1)."""
CLASH = "are declared to conflict"
"""A fleet asks for extras that the project keeps apart."""


def is_first(way: Way, context: Context, clients: tuple[str, ...]) -> bool:
    """True for the first way in of a project that one of the clients installs."""
    if way.install.root.kind != "pyproject" or way.install.client not in clients:
        return False
    return way is next(
        one for one in ways_of(way.install.root, context) if one.install.client in clients
    )


def ways_of(root: Document, context: Context) -> list[Way]:
    """Return the ways in of a project."""
    return [one for one in context.ways if one.install.root.path == root.path]


def lead_path(way: Way) -> str:
    """Return the path of the manifest that leads the workspace of a way: its own outside of one."""
    from torchpin.select.uv_settings import lead_of

    return lead_of(way.install.root, way.install.siblings).path


def speaks_for_all(way: Way, context: Context) -> bool:
    """True for the one manifest of a workspace that tells what concerns all of it."""
    if not way.install.siblings:
        return True
    lead = lead_path(way)
    roots = [one.install.root.path for one in context.ways if lead_path(one) == lead]
    return way.install.root.path == (lead if lead in roots else roots[0])


def default_python(way: Way) -> str:
    """Return the ``requires-python`` that selection takes where the project has none."""
    python = way.sets[0].target.python if way.sets else None
    return "" if python is None else f">={python.major}.{python.minor}"


def is_stopped(way: Way, judged_set: JudgedSet) -> bool:
    """True if ``uv lock`` stops: what the way installs is not known, and other rules say why."""
    return (
        way.install.client == "uv"
        and way.install.root.kind == "pyproject"
        and judged_set.chosen.conflict is not None
    )


def missing_elsewhere(way: Way, context: Context) -> Iterator[tuple[JudgedSet, Judged, Miss]]:
    """Yield what stops ``uv lock`` in parts of the project that no way in of the fleet installs."""
    if not is_first(way, context, ("uv",)) or not way.sets or not is_stopped(way, way.sets[0]):
        return
    if not speaks_for_all(way, context):
        return
    from torchpin.select.uv_prediction import lock_of

    told = {
        one.selection.package
        for other in context.ways
        if lead_path(other) == lead_path(way)
        for judged_set in other.sets
        for one in judged_set.judged
        if one.selection.status == "none"
    }
    judged_set = way.sets[0]
    for one in lock_of(way.install, context.catalog, default_python(way)).missing:
        if one.package in told or not one.placed:
            continue
        selection = Selection(
            package=one.package,
            placed=one.placed[0],
            implied_by=None,
            target=judged_set.target,
            status="none",
            build=None,
            chosen_from=None,
            miss=one.miss,
            because=one.miss.message,
        )
        yield judged_set, Judged(selection, None), one.miss


def refusals(way: Way, context: Context) -> Iterator[tuple[Document, Span, str]]:
    """Yield why uv refuses a project file before it resolves anything."""
    if not is_first(way, context, ("uv",)):
        return
    root = way.install.root
    text = conflict_of(way, context) if speaks_for_all(way, context) else ""
    if text and not re.search(INDEX_CONFLICT, text) and not text.startswith(NO_SOLUTION):
        yield root, refusal_place(root, text), f"uv stops: {hidden(text)}"
    for other in ways_of(root, context):
        for judged_set in other.sets:
            clash = judged_set.chosen.conflict or ""
            if clash.endswith(CLASH):
                yield root, clash_place(other, root), f"uv stops: {hidden(clash)}"


def conflict_of(way: Way, context: Context) -> str:
    """Return why ``uv lock`` stops at a project; ``""`` if it does not.

    Beside a lock, which was made, only what uv refuses before it solves anything is looked for.
    """
    if way.install.lock is None:
        from torchpin.select.uv_prediction import lock_of

        return lock_of(way.install, context.catalog, default_python(way)).conflict or ""
    project = way.install.root.project
    if project is None or not project.sources:
        return ""
    from torchpin.select.grid import UnknownMarkerError
    from torchpin.select.uv_lowering import Refused
    from torchpin.select.uv_needs import needs_of

    try:
        needs = needs_of(way.install, default_python(way))
        for unit in needs.units():
            needs.declared(unit)
    except Refused as refused:
        return str(refused)
    except UnknownMarkerError:
        return ""
    return ""


def clash_place(way: Way, root: Document) -> Span:
    """Return the conflict set of which a fleet asks for two members."""
    sets = root.project.conflicts if root.project is not None else ()
    enabled = {*way.install.extras, *way.install.groups}
    for one in sets:
        if len({item.extra or item.group for item in one.items} & enabled) > 1:
            return one.span
    return sets[0].span if sets else first_line(root)


def refusal_place(root: Document, text: str) -> Span:
    """Return the source, default group or environment that a refusal speaks of."""
    sources = root.project.sources if root.project is not None else ()
    for source in sources:
        named = source.kind == "index" and f"named {source.value}," in text
        if named or re.search(rf"\bsource of {re.escape(source.package)}\b", text):
            return source.span
    for part in re.findall(r"[\w.]+ *[=!<>]=? *'[^']+'(?: (?:and|or) [^,]+)?", text):
        at = root.text.find(part)
        if at >= 0:
            return Span(at, at + len(part))
    for table in root.project.tables if root.project is not None else ():
        if table.path == ("tool", "uv"):
            return table.header
    return first_line(root)


def first_line(document: Document) -> Span:
    """Return the first line of a document."""
    return Span(0, max(len(document.text.split("\n", 1)[0].rstrip()), 1))


def hidden(text: str) -> str:
    """Return a sentence with the secrets of its URLs hidden."""
    return re.sub(r"(?<![\w+.-])\w[\w+.-]*://[^\s,]+", lambda match: redact(match[0]), text)
