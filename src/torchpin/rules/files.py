"""TP0: the file itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from torchpin.documents.base import Document, Problem, Span
from torchpin.documents.pins import exact_version
from torchpin.evidence import PUBLISHED
from torchpin.rules.context import Context, Way
from torchpin.rules.lock_stops import hidden, is_stopped, refusals
from torchpin.rules.model import ERROR, INFO, WARNING, Because, Finding
from torchpin.rules.registry import Rule
from torchpin.select.model import Selection

TWO_DEFAULTS = "uv stops at two --index-url"
MANY = 5
"""So many refused lines of one file are told one by one; the rest are counted."""
HARMLESS = frozenset(("misplaced", "encoding"))
"""Problems at which the installer does not stop: it ignores the text, or guesses the encoding."""
UV_SETTINGS = "https://docs.astral.sh/uv/reference/settings/"
TOML = "https://toml.io/en/v1.0.0"
FORMATS = {
    "requirements": "https://pip.pypa.io/en/stable/reference/requirements-file-format/",
    "uv.toml": "https://docs.astral.sh/uv/reference/settings/",
    "script": "https://packaging.python.org/en/latest/specifications/inline-script-metadata/",
    "setup.cfg": "https://setuptools.pypa.io/en/latest/userguide/declarative_config.html",
    "setup.py": "https://packaging.python.org/en/latest/specifications/dependency-specifiers/",
    "environment.yml": "https://yaml.org/spec/1.2.2/",
    "pre-commit": "https://yaml.org/spec/1.2.2/",
    "Pipfile.lock": "https://www.json.org/",
}
"""Where formats are described; of all others TOML is."""
WHOLE = frozenset(("toml", "yaml", "json", "decode", "binary"))
"""Problems because of which nothing of a document can be read."""
PIP_FORMAT = "https://pip.pypa.io/en/stable/reference/requirements-file-format/"


class UnreadableFile(Rule):
    """A line or a file that the installer refuses.

    What it does: reports text that cannot be decoded, and lines that pip or uv stop at: two
    requirements on one line, ``torch=2.1``, a missing ``-r`` file. An option behind a requirement,
    which pip passes over without a word, is a warning.

    Why it is bad: one such line stops the whole install, and torchpin cannot judge what it cannot
    read. The file is never changed by a fix while it holds one.

    Example: ``torch==2.9.1 torchvision==0.24.1`` on one line.

    Fix: put the option on a line of its own, one requirement on a line.

    Evidence: pip's requirements file format.
    """

    code = "TP001"
    name = "unreadable-file"
    severity = ERROR

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield the problems of every document of the way."""
        for document, span, text in refusals(way, context):
            yield self.finding(
                document,
                span,
                text,
                because=(Because("uv stops here", PUBLISHED, UV_SETTINGS),),
            )
        lock = way.install.lock
        for document in dict.fromkeys((*way.install.documents, *((lock,) if lock else ()))):
            yield from self.of(document, document.problems)
        for document, message, offset in way.install.problems:
            if message.startswith(TWO_DEFAULTS):
                continue  # TP414 says it
            yield self.finding(
                document,
                option_at(document, offset),
                message,
                because=(Because("the installer stops here", PUBLISHED, PIP_FORMAT),),
            )

    def of(self, document: Document, problems: Iterable[Problem]) -> Iterator[Finding]:
        """Yield some problems of a document."""
        refused = [one for one in problems if one.code not in (*HARMLESS, "specifier")]
        for problem in refused[MANY : MANY + 1]:
            yield self.finding(
                document,
                whole_line(document, problem),
                f"and {len(refused) - MANY} more lines cannot be read: is this the right file?",
                because=(Because("the installer stops here", PUBLISHED, format_of(document)),),
            )
        for problem in problems:
            if problem in refused[MANY:]:
                continue
            if problem.code == "specifier" and "+" in slice_of(document.text, problem.span):
                continue  # TP506 says more
            harmless = problem.code in HARMLESS
            text = "the installer goes on without it" if harmless else "the installer stops here"
            yield self.finding(
                document,
                whole_line(document, problem),
                hidden(problem.message),
                severity=WARNING if harmless else ERROR,
                because=(Because(text, PUBLISHED, format_of(document)),),
            )

    def orphans(self, context: Context) -> Iterator[Finding]:
        """Yield why documents cannot be read that are no way in, since they cannot be read."""
        paths = {path for way in context.ways for path in way.paths}
        for document in context.documents:
            if document.path not in paths:
                whole = [
                    one
                    for one in document.problems
                    if one.code in WHOLE or document.kind == "uv.toml"
                ]
                yield from self.of(document, whole)


def format_of(document: Document) -> str:
    """Return where the format of a document is described."""
    return FORMATS.get(document.kind, PIP_FORMAT if document.kind == "part" else TOML)


def nightly_day(specifier: str) -> str | None:
    """Return the day of the dated nightly that a specifier pins: ``20250311``, else None."""
    pin = exact_version(specifier)
    _, dev, day = pin[0].rpartition(".dev") if pin else ("", "", "")
    return day if dev and len(day) == 8 and day.startswith("20") else None


def whole_line(document: Document, problem: Problem) -> Span:
    """Return the place of a problem; problems that say the same of one line have one place."""
    same = [
        one.span
        for one in document.problems
        if one.message == problem.message
        and "\n" not in document.text[min(one.span[0], problem.span[0]) : problem.span[0]]
        and "\n" not in document.text[problem.span[0] : max(one.span[0], problem.span[0])]
    ]
    start, end = min(span.start for span in same), max(span.end for span in same)
    if start < end:
        return Span(start, end)
    rest = re.match(r"[^\r\n]+", document.text[start:])
    if rest is not None:
        return Span(start, start + rest.end())
    start = max(start - 1, 0)
    return Span(start, min(start + 1, len(document.text)))


def option_at(document: Document, offset: int) -> Span:
    """Return the include or option line that starts at an offset, else the rest of the line."""
    for include in document.includes:
        if include.span.start == offset:
            return include.span
    rest = document.text[offset:].split("\n", 1)[0].rstrip()
    return Span(offset, offset + len(rest))


def slice_of(text: str, span: tuple[int, int]) -> str:
    """Return the text of a span."""
    return text[span[0] : span[1]]


class NewerThanCatalog(Rule):
    """Something that the catalog cannot tell: a newer version, a vendor label, a private index.

    What it does: says that a declaration was not judged, and why.

    Why it is bad: it need not be. Vendor builds (``+nv23.6``), private rebuilds and releases newer
    than the catalog are real; torchpin does not guess about them.

    Example: ``torch==2.99.0``

    Fix: update torchpin or run ``torchpin catalog refresh``; or say in
    ``[tool.torchpin.indexes]`` what a private URL holds.

    Evidence: none; that is the point.
    """

    code = "TP003"
    name = "newer-than-catalog"
    severity = INFO

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield one finding for each reason why selections are unknown."""
        said: set[str] = set()
        for unread in way.install.unread:
            if unread.because not in said:
                said.add(unread.because)
                span = option_at(unread.document, unread.offset)
                yield self.finding(unread.document, span, f"not judged: {unread.because}")
        for judged_set, one in context.pairs(way):
            selection = one.selection
            if selection.status != "unknown" or selection.because in said:
                continue
            if is_stopped(way, judged_set):
                continue  # TP001, TP1, TP301 or TP409 say why
            if selection.placed is not None and (
                selection.placed.declaration.hashes
                or nightly_day(selection.placed.declaration.specifier)
            ):
                continue  # TP508, TP108 say more
            if any(index.kind.kind == "legacy" for index in way.install.indexes):
                continue  # TP402 says it
            if not context.declared and not unknown_everywhere(way, selection):
                continue
            said.add(selection.because)
            document, span = judged_set.place(selection)
            yield self.finding(
                document,
                span,
                f"not judged: {selection.because}{hint(way, selection.because)}",
                package=selection.package,
                target=judged_set.target,
            )


def hint(way: Way, because: str = "") -> str:
    """Return how to make an unknown index, or a version newer than the catalog, known."""
    if because.startswith("the catalog of ") and " does not know " in because:
        return " (`torchpin catalog refresh` asks the indexes)"
    unknown = any(index.kind.kind == "unknown" for index in way.install.indexes)
    return "; say what it is in [tool.torchpin.indexes]" if unknown else ""


def unknown_everywhere(way: Way, selection: Selection) -> bool:
    """True if no platform knows what a declaration selects, and this is the first to ask."""
    same = [
        one.selection
        for judged_set in way.sets
        for one in judged_set.judged
        if one.selection.package == selection.package
        and one.selection.placed == selection.placed
        and one.selection.status != "skipped"
    ]
    return same[0] is selection and all(one.status == "unknown" for one in same)


RULES = (UnreadableFile, NewerThanCatalog)
