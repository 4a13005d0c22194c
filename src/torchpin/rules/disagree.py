"""TP5: several files of one project, and which torch each of them pins."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from torchpin.documents.base import Document, Span, line_starts, position
from torchpin.documents.pins import exact_version
from torchpin.evidence import PUBLISHED
from torchpin.rules.context import Context, Way, base_name
from torchpin.rules.model import WARNING, Because, Finding, Related
from torchpin.rules.registry import Rule

_PLAIN = frozenset(
    [
        "requirements",
        "requirement",
        "reqs",
        "constraints",
        "pyproject",
        "uv",
        "poetry",
        "pdm",
        "pylock",
        "lock",
        "txt",
        "in",
        "pip",
        "toml",
        "base",
        "main",
        "prod",
        "production",
    ]
)
"""Words of file names that say nothing about what a file is for."""


class FilesDisagree(Rule):
    """Two files of one project pin different versions of torch.

    What it does: compares the exact pins of torch in the project file, its lock and the
    requirements files of one folder. Files whose names speak of other hardware, systems or
    purposes (``requirements-gpu.txt``, ``requirements-dev.txt``) are compared with their like only.

    Why it is bad: what was tested is not what is installed; which file counts depends on who
    installs.

    Example: ``torch==2.11.0`` in ``pyproject.toml``, ``torch==2.9.1`` in ``requirements.txt``.

    Fix: one pin; compile the one file from the other.

    Evidence: the files.
    """

    code = "TP505"
    name = "files-disagree"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield files that pin another torch than the first of their kind."""
        ways = [one for one in context.ways if one.project == way.project]
        if way is not ways[0]:
            return
        first: dict[tuple[str, frozenset[str], frozenset[str]], list[tuple[Way, Document]]] = {}
        for one, document in documents_of(ways):
            key = (os.path.dirname(document.path), purpose_of(document.path), one.bound)
            first.setdefault(key, []).append((one, document))
        for some in first.values():
            known = [(one, document, pins_of(document)) for one, document in some]
            known = [one for one in known if one[2]]
            if len(known) > 1:
                yield from self.compare(known)

    def compare(self, known: list[tuple[Way, Document, dict[str, Span]]]) -> Iterator[Finding]:
        """Yield what differs from the first document."""
        base_way, base, pins = known[0]
        starts = line_starts(base.text)
        for other_way, document, others in known[1:]:
            if not pins.keys().isdisjoint(others):
                continue
            if other_way.install.root.path == base_way.install.root.path:
                continue  # one install: TP503, or a conflict of its own
            version, span = next(iter(others.items()))
            place = next(iter(pins.values()))
            yield self.finding(
                document,
                span,
                f"torch {version} here, {' and '.join(pins)} in {base_name(base.path)}",
                package="torch",
                because=(Because("both files pin it exactly", PUBLISHED, "the files"),),
                related=(Related(base.path, position(starts, place.start).line, "the other pin"),),
            )


def documents_of(ways: list[Way]) -> list[tuple[Way, Document]]:
    """Return the locks of some ways, then project files, then requirements files; each once."""
    found: dict[str, tuple[int, Way, Document]] = {}
    for way in ways:
        lock = way.install.lock
        for document in (*((lock,) if lock is not None else ()), *way.install.documents):
            rank = 0 if document.lock is not None else 1 if document.project is not None else 2
            found.setdefault(document.path, (rank, way, document))
    return [(way, one) for _, way, one in sorted(found.values(), key=lambda f: (f[0], f[2].path))]


def purpose_of(path: str) -> frozenset[str]:
    """Return the words of a file's name that say what it is for: ``{"gpu"}``."""
    words = re.split(r"[^a-z0-9]+", base_name(path).lower())
    return frozenset(words) - _PLAIN - {""}


def pins_of(document: Document) -> dict[str, Span]:
    """Return the public versions of torch that a file pins, and where."""
    if document.lock is not None:
        return {
            package.version.partition("+")[0]: package.version_span
            for package in document.lock.packages
            if package.name == "torch"
        }
    found: dict[str, Span] = {}
    for one in document.declarations:
        if one.name == "torch" and one.scope in ("", "constraint") and not one.from_variable:
            pin = exact_version(one.specifier)
            if pin is None:
                return {}  # whatever fits: no pin
            found.setdefault(pin[0], one.span)
    return found


RULES = (FilesDisagree,)
