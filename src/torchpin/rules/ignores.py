"""Which findings a comment or a setting silences; TP002: comments that silence nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from torchpin.documents.base import Document, line_starts, position
from torchpin.documents.suppressions import Suppression, suppressions
from torchpin.evidence import MEASURED
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, INFO, Because, Finding, Fix
from torchpin.rules.registry import Rule, all_rules

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
            f"{', '.join(idle) or 'this comment'} silence{'s'[: len(idle) < 2]} nothing here",
            because=(Because("the rules ran and find nothing there", MEASURED, "this run"),),
        )._replace(
            fix=Fix(DISPLAY, "remove the comment" if every else f"remove {', '.join(idle)}", ())
        )


def suppressed(finding: Finding, per_file: Iterable[tuple[str, tuple[str, ...]]]) -> bool:
    """True if a comment or a per-file setting silences the finding."""
    from fnmatch import fnmatch

    for pattern, codes in per_file:
        path = finding.path.replace(os.sep, "/")
        named = fnmatch(path, pattern) or fnmatch(os.path.basename(path), pattern)
        if (named or fnmatch(path, f"*/{pattern}")) and any(
            code == "ALL" or finding.code.startswith(code) for code in codes
        ):
            return True
    if finding.document is None:
        return False
    if not finding.document.comments:
        return False
    line = position(line_starts(finding.document.text), finding.span.start).line
    bare = finding.code != "TP002"  # that a comment silences nothing, it does not silence
    return any(
        (one.codes or bare) and one.covers(finding.code, line)
        for one in suppressions(finding.document)
    )


def idle_ignores(
    documents: Iterable[Document],
    rules: Sequence[Rule],
    told: tuple[Finding, ...],
    asked: Sequence[str],
) -> Iterable[Finding]:
    """Return the silencing comments that silence nothing of what is told; ``asked``: the paths that
    were to be looked at."""
    commented = [one for one in documents if one.comments]
    if not commented:
        return ()
    from torchpin.seen import is_folder

    whole = any(map(is_folder, asked))
    ran = [rule.code for rule in rules]
    mine = [rule for rule in rules if isinstance(rule, UnusedIgnore)]
    return [one for rule in mine for one in rule.unused(commented, told, ran, whole=whole)]


def unknown_codes(documents: Iterable[Document]) -> tuple[str, ...]:
    """Return a note for each code in a silencing comment that no rule has: it silences nothing."""
    found = [
        (f"{document.path}:{one.line}", code)
        for document in documents
        if document.comments
        for one in suppressions(document)
        for code in one.codes
    ]
    known = [rule.code for rule in all_rules()] if found else []
    return tuple(
        f"{place}: no rule begins with {code!r}: it silences nothing"
        for place, code in found
        if not any(rule.startswith(code) for rule in known)
    )


RULES = (UnusedIgnore,)
