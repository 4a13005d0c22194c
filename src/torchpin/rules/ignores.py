"""TP002: comments that silence nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchpin.documents.base import Document, line_starts, position
from torchpin.documents.suppressions import Suppression, suppressions
from torchpin.evidence import MEASURED
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, INFO, Because, Finding, Fix
from torchpin.rules.registry import Rule

_ACROSS = "TP5"
"""Rules that compare files: of one file alone they say nothing."""


class UnusedIgnore(Rule):
    """A comment that silences nothing.

    What it does: reports ``# torchpin: ignore[…]`` where no finding of these rules is, for each
    code apart. Codes of rules that did not run are left out: those that are not selected, and
    without a declared fleet all.

    Why it is bad: it outlived its reason, and will hide the next finding there.

    Example: ``torch==2.10.0  # torchpin: ignore[TP201] V100`` on nodes that it serves.

    Fix: remove the comment, or the code.

    Evidence: the findings of the run.
    """

    code = "TP002"
    name = "unused-ignore"
    severity = INFO

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield nothing: what is silenced is known when all rules have run."""
        yield from ()

    def unused(
        self,
        documents: Iterable[Document],
        told: Sequence[Finding],
        ran: Sequence[str],
        *,
        whole: bool,
    ) -> Iterator[Finding]:
        """Yield the comments that silence none of ``told``.

        ``ran``: the codes of the rules that ran; ``whole``: a folder was looked at, so that files
        were compared.
        """
        for document in documents:
            found = suppressions(document) if document.comments else ()
            if not found:
                continue
            starts = line_starts(document.text)
            here = [
                (one.code, position(starts, one.span.start).line)
                for one in told
                if one.document is not None and one.path == document.path
            ]
            for comment in found:
                yield from self.of(document, comment, here, ran, whole=whole)

    def of(
        self,
        document: Document,
        comment: Suppression,
        here: Sequence[tuple[str, int]],
        ran: Sequence[str],
        *,
        whole: bool,
    ) -> Iterator[Finding]:
        """Yield what one comment silences in vain."""
        idle = [
            code
            for code in comment.codes
            if any(rule.startswith(code) for rule in ran)
            and (whole or not code.startswith(_ACROSS))
            and not any(name.startswith(code) and comment.covers(name, line) for name, line in here)
        ]
        if comment.codes and not idle:
            return
        if not comment.codes and any(comment.covers(name, line) for name, line in here):
            return
        every = len(idle) == len(comment.codes)
        yield self.finding(
            document,
            comment.span,
            f"{', '.join(idle) if idle else 'this comment'} silences nothing here",
            because=(Because("the rules ran and find nothing there", MEASURED, "this run"),),
        )._replace(
            fix=Fix(DISPLAY, "remove the comment" if every else f"remove {', '.join(idle)}", ())
        )


RULES = (UnusedIgnore,)
