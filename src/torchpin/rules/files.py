"""TP0: the file itself."""

from __future__ import annotations

from collections.abc import Iterator

from torchpin.documents.base import Span
from torchpin.evidence import PUBLISHED
from torchpin.rules.context import Context, Way
from torchpin.rules.model import ERROR, INFO, WARNING, Because, Finding
from torchpin.rules.registry import Rule

HARMLESS = frozenset(("misplaced", "encoding"))
"""Problems at which the installer does not stop: it ignores the text, or guesses the encoding."""
PIP_FORMAT = "https://pip.pypa.io/en/stable/reference/requirements-file-format/"


class UnreadableFile(Rule):
    """A line or a file that the installer refuses.

    What it does: reports text that cannot be decoded, and lines that pip or uv stop at: an option
    behind a requirement, two requirements on one line, ``torch=2.1``, a missing ``-r`` file.

    Why it is bad: one such line stops the whole install, and torchpin cannot judge what it cannot
    read. The file is never changed by a fix while it holds one.

    Example: ``torch==2.1 --index-url https://download.pytorch.org/whl/cu121``

    Fix: put the option on a line of its own, one requirement on a line.

    Evidence: pip's requirements file format.
    """

    code = "TP001"
    name = "unreadable-file"
    severity = ERROR

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield the problems of every document of the way."""
        for document in way.install.documents:
            for problem in document.problems:
                if problem.code == "specifier" and "+" in slice_of(document.text, problem.span):
                    continue  # TP506 says more
                ground = Because("the installer stops at this line", PUBLISHED, PIP_FORMAT)
                yield self.finding(
                    document,
                    problem.span,
                    problem.message,
                    severity=WARNING if problem.code in HARMLESS else ERROR,
                    because=() if problem.code in HARMLESS else (ground,),
                )
        for document, message, offset in way.install.problems:
            yield self.finding(document, Span(offset, offset), message)


def slice_of(text: str, span: tuple[int, int]) -> str:
    """Return the text of a span."""
    return text[span[0] : span[1]]


class NewerThanCatalog(Rule):
    """Something that the catalog cannot tell: a newer version, a vendor label, a private index.

    What it does: says that a declaration was not judged, and why.

    Why it is bad: it need not be. Vendor builds (``+nv23.6``), private rebuilds and releases newer
    than the catalog are real; torchpin does not guess about them.

    Example: ``torch==2.99.0``

    Fix: update torchpin, or map a private URL in ``[tool.torchpin.indexes]``.

    Evidence: none; that is the point.
    """

    code = "TP003"
    name = "newer-than-catalog"
    severity = INFO

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield one finding for each reason why selections are unknown."""
        said: set[str] = set()
        for judged_set, one in context.pairs(way):
            selection = one.selection
            if selection.status != "unknown" or selection.because in said:
                continue
            if selection.placed is not None and selection.placed.declaration.hashes:
                continue  # TP508 says more
            said.add(selection.because)
            document, span = judged_set.place(selection)
            yield self.finding(
                document,
                span,
                f"not judged: {selection.because}",
                package=selection.package,
                target=judged_set.target,
            )


RULES = (UnreadableFile, NewerThanCatalog)
