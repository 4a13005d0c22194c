"""TP4: markers that are never true, in declarations and in sources."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchpin.catalog.model import WATCHED
from torchpin.documents.base import Document, Edit, Span
from torchpin.evidence import PUBLISHED
from torchpin.named import NamedTuple
from torchpin.rules.context import Context, Way
from torchpin.rules.model import UNSAFE, WARNING, Because, FileEdits, Finding, Fix
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
_COMPARED = (
    rf"\b(?P<name>{_NAMES})\s*(?P<op>===?|!=)\s*(?P<q>['\"])(?P<value>[^'\"]*)(?P=q)"
    rf"|(?P<q2>['\"])(?P<value2>[^'\"]*)(?P=q2)\s*(?P<op2>===?|!=)\s*(?P<name2>{_NAMES})\b"
)
_ON = r"(sys_platform|platform_system)\s*===?\s*['\"](\w+)['\"]"


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
    for match in re.finditer(_COMPARED, marker):
        group = "" if match["name"] else "2"
        name, written = match[f"name{group}"], match[f"value{group}"]
        found = right_value(name, written, marker)
        if found is None or (found and stands(name, found, marker)):
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


def stands(name: str, value: str, marker: str) -> bool:
    """True if the right value stands beside the wrong one: ``… == 'linux' or … == 'linux2'``."""
    quoted = rf"['\"]{re.escape(value)}['\"]"
    return (
        re.search(rf"{name}\s*[=!]==?\s*{quoted}|{quoted}\s*[=!]==?\s*{name}", marker) is not None
    )


def right_value(name: str, written: str, marker: str) -> str | None:
    """Return the value that is meant by one that never occurs; ``""`` if it is not plain, None if
    the value does occur."""
    values = _RIGHT[name]
    low = written.lower()
    if name == "platform_machine" and low == "amd64":
        systems = {value.lower() for _, value in re.findall(_ON, marker)}
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


RULES = (DeadMarker,)
