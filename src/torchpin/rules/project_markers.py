"""Markers that are never true, in declarations and in sources."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Document, Edit, Span
from torchpin.documents.project import Project, Source
from torchpin.documents.requirement import canonical
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.rules.context import Context, Way
from torchpin.rules.model import SAFE, UNSAFE, WARNING, Because, FileEdits, Finding, Fix
from torchpin.rules.project_words import UV, UV_SOURCES, ProjectRule
from torchpin.rules.registry import Rule

MARKERS = "https://packaging.python.org/en/latest/specifications/dependency-specifiers/"
_RIGHT: dict[str, dict[str, tuple[str, ...]]] = {
    "sys_platform": {
        "win32": ("win", "win64", "windows", "nt"),
        "darwin": ("macos", "macosx", "mac", "osx", "os x", "mac os x"),
        "linux": ("linux2", "linux3", "linux32", "linux64", "linux_x86_64"),
    },
    "platform_system": {
        "Windows": ("win", "win32", "win64", "nt"),
        "Darwin": ("macos", "macosx", "mac", "osx", "os x", "mac os x"),
        "Linux": ("linux2",),
    },
    "os_name": {"nt": ("windows", "win32", "win")},
    "platform_machine": {"x86_64": ("x86-64", "x64"), "aarch64": (), "arm64": ()},
    "platform_python_implementation": {"CPython": (), "PyPy": ()},
    "implementation_name": {"cpython": (), "pypy": ()},
}
"""Value that Python gives → what is written for it by mistake; other capitals are, too."""
_NEVER = {"os_name": ("linux", "darwin", "macos", "posix system")}
"""Values that no system has and for which no single right one stands."""
_NAMES = "|".join(_RIGHT)
_COMPARED = re.compile(
    rf"\b(?P<name>{_NAMES})\s*(?P<op>===?|!=)\s*(?P<q>['\"])(?P<value>[^'\"]*)(?P=q)"
    rf"|(?P<q2>['\"])(?P<value2>[^'\"]*)(?P=q2)\s*(?P<op2>===?|!=)\s*(?P<name2>{_NAMES})\b"
)
_ON = re.compile(r"(sys_platform|platform_system)\s*===?\s*['\"](\w+)['\"]")


class Dead(NamedTuple):
    """One comparison with a value that the variable never has."""

    span: Span
    """Of the comparison."""
    value: Span
    """Of the value, without its quotes."""
    name: str
    written: str
    right: str | None
    negated: bool


def dead_comparisons(text: str, start: int, end: int) -> Iterator[Dead]:
    """Yield the comparisons in a marker (``text[start:end]``) that are never, or always, true."""
    marker = text[start:end]
    for match in _COMPARED.finditer(marker):
        group = "" if match["name"] else "2"
        name, written = match[f"name{group}"], match[f"value{group}"]
        found = right_value(name, written, marker)
        if found is None:
            continue
        at = match.start(f"value{group}")
        yield Dead(
            Span(start + match.start(), start + match.end()),
            Span(start + at, start + at + len(written)),
            name,
            written,
            found or None,
            match[f"op{group}"] == "!=",
        )


def right_value(name: str, written: str, marker: str) -> str | None:
    """Return the value that is meant by one that never occurs; ``""`` if it is not plain, None if
    the value does occur."""
    values = _RIGHT[name]
    low = written.lower()
    if name == "platform_machine" and low == "amd64":
        systems = {value.lower() for _, value in _ON.findall(marker)}
        if systems and systems <= {"linux", "darwin"}:
            return "x86_64"
        return "AMD64" if written != "AMD64" and systems & {"win32", "windows"} else None
    if written in values:
        return None
    if low in _NEVER.get(name, ()):
        return ""
    for value, mistakes in values.items():
        if low == value.lower() or low in mistakes:
            return value
    return None


class DeadMarker(Rule):
    """A marker that compares with a value that never occurs.

    What it does: reports ``sys_platform == 'windows'``, ``'macos'``, ``'linux2'``,
    ``platform_system == 'linux'``, ``platform_machine == 'x86-64'``, ``os_name == 'windows'`` and
    their like, in requirements and in sources of watched packages.

    Why it is bad: the comparison is never true (with ``!=`` always): the line or the source counts
    for no machine, and nobody says so.

    Example: ``torch==2.9.1+cu128; sys_platform == 'windows'``

    Fix: the value that Python gives: ``win32``, ``darwin``, ``linux``.

    Evidence: the specification of markers.
    """

    code = "TP410"
    name = "dead-marker"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield dead comparisons in markers of watched packages."""
        for document in (*way.install.documents,):
            for name, span in markers_of(document):
                for dead in dead_comparisons(document.text, span.start, span.end):
                    yield self.dead(document, name, dead)

    def dead(self, document: Document, package: str, dead: Dead) -> Finding:
        """Return the finding for one comparison."""
        ever = "always" if dead.negated else "never"
        real = f"; Python says {dead.right!r}" if dead.right else ""
        fix = None
        if dead.right:
            edits = (FileEdits(document, (Edit(dead.value, dead.right),)),)
            fix = Fix(UNSAFE, f"{dead.name}: {dead.right} instead of {dead.written}", edits)
        return self.finding(
            document,
            dead.span,
            f"{dead.name} is never {dead.written!r}, so this is {ever} true{real}",
            package=package,
            because=(
                Because(f"values of {dead.name} come from Python itself", PUBLISHED, MARKERS),
            ),
        )._replace(fix=fix)


def markers_of(document: Document) -> Iterator[tuple[str, Span]]:
    """Yield package and place of every marker of watched packages that stands as it reads."""
    for one in document.declarations:
        if one.name in WATCHED and one.marker_span is not None and not one.from_variable:
            yield one.name, one.marker_span
    for source in document.project.sources if document.project is not None else ():
        if source.package in WATCHED and source.marker_span is not None:
            yield source.package, source.marker_span


_EXTRA = re.compile(r"\bextra\s*==\s*(['\"])(?P<name>[^'\"]+)\1")
_ONLY = re.compile(r"\s*extra\s*==\s*(['\"])(?P<name>[^'\"]+)\1\s*\Z")


class ExtraAsMarker(ProjectRule):
    """An extra in the marker of a source.

    What it does: reports ``marker = "extra == 'cuda'"`` in ``[tool.uv.sources]``.

    Why it is bad: uv has a key for it, and only that key takes part in ``conflicts``. With the
    marker the index holds for the package in every extra, and never for the base dependencies.

    Example: ``torch = { index = "pytorch-cu126", marker = "extra == 'cuda'" }``

    Fix: ``torch = { index = "pytorch-cu126", extra = "cuda" }``

    Evidence: real uv: the lock of a project with the extras ``cpu`` and ``cuda`` holds the
    channel's build alone.
    """

    code = "TP411"
    name = "extra-as-marker"
    severity = WARNING

    def examine(
        self, root: Document, project: Project, way: Way, context: Context
    ) -> Iterator[Finding]:
        """Yield sources whose marker names an extra."""
        for source in project.sources:
            match = _EXTRA.search(source.marker or "")
            if match is None or source.marker_span is None:
                continue
            extra = match["name"]
            listed = any(
                one.name == source.package
                and one.scope.startswith("extra:")
                and canonical(one.scope[6:]) == canonical(extra)
                for one in root.declarations
            )
            text = f"use extra = {extra!r}: as a marker it holds for other extras too"
            if not listed:
                text = (
                    f"extra {extra!r} does not list {source.package}: "
                    "the marker is never true for it"
                )
            yield self.finding(
                root,
                source.marker_span,
                text.replace("'", '"') if listed else text,
                package=source.package,
                because=(
                    Because("without conflicts, one index serves all extras", MEASURED, UV),
                    Because("extra is a key of a source", PUBLISHED, UV_SOURCES),
                ),
            )._replace(fix=as_key(root, source, project) if listed else None)


def as_key(root: Document, source: Source, project: Project) -> Fix | None:
    """Return the fix that writes the extra as a key; None where the marker says more."""
    match = _ONLY.match(source.marker or "")
    if match is None or source.marker_span is None or source.extra or source.group:
        return None
    text, span = root.text, source.marker_span
    if text[span.start : span.end] != source.marker:
        return None
    key = re.search(r"(?<![\w.-])marker\s*=\s*(['\"])\Z", text[: span.start])
    if key is None or text[span.end : span.end + 1] != key[1]:
        return None
    edit = Edit(Span(key.start(), span.end + 1), f'extra = "{match["name"]}"')
    scoped = any(item.extra for one in project.conflicts for item in one.items)
    safety = UNSAFE if scoped else SAFE
    return Fix(safety, f'extra = "{match["name"]}"', (FileEdits(root, (edit,)),))


RULES = (DeadMarker, ExtraAsMarker)
