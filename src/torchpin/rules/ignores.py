"""Which findings a comment or a setting silences; TP002: comments that silence nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from torchpin.documents.base import Document, line_starts, position
from torchpin.documents.suppressions import Suppression, suppressions
from torchpin.evidence import MEASURED, PUBLISHED
from torchpin.named import NamedTuple
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, INFO, WARNING, Because, Finding, Fix
from torchpin.rules.registry import Rule, all_rules

COMMENT = "comment"
SETTING = "per-file-ignores"
BASELINE = "baseline"
ACROSS = "TP5"
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
            and (whole or not code.startswith(ACROSS))
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


class UnexplainedIgnore(Rule):
    """A silencing comment without a reason, where the profile asks for one.

    What it does: with ``require-reasons = true`` in the profile, reports ``# torchpin: ignore[…]``
    behind which nothing says why. Without that setting it tells nothing.

    Why it is bad: nobody knows when the comment may go, and who reviews a change cannot judge it.

    Example: ``torch==2.11.0  # torchpin: ignore[TP201]``

    Fix: write the reason behind the bracket: ``# torchpin: ignore[TP201] only CPU jobs run this``.

    Evidence: the comment. ``torchpin check --ignored`` lists what is silenced, with the reasons.
    """

    code = "TP004"
    name = "unexplained-ignore"
    severity = WARNING

    def check(self, way: Way, context: Context) -> Iterator[Finding]:
        """Yield nothing: comments belong to files."""
        yield from ()

    def check_document(self, document: Document, context: Context) -> Iterator[Finding]:
        """Yield the silencing comments that give no reason."""
        if not document.comments or not context.fleet.settings.require_reasons:
            return
        for comment in suppressions(document):
            if not comment.reason:
                yield self.finding(
                    document,
                    comment.span,
                    "this comment gives no reason",
                    because=(Because("require-reasons is set", PUBLISHED, "the profile"),),
                )._replace(fix=Fix(DISPLAY, "write the reason behind the bracket", ()))


class Ignored(NamedTuple):
    """A finding that is not told, and by whose word."""

    finding: Finding
    line: int | None
    """Where the comment stands; None: a setting, an option or a baseline silences it."""
    reason: str
    """What the comment gives as its reason, the pattern and the codes of the setting, or the path
    of the baseline."""
    by: str = COMMENT
    """``COMMENT``, ``SETTING`` or ``BASELINE``."""


_OF_COMMENTS = ("TP002", "TP004")
"""What these say of a comment, it silences only by their code."""


def ignored(finding: Finding, per_file: Iterable[tuple[str, tuple[str, ...]]]) -> Ignored | None:
    """Return by which comment or per-file setting the finding is silenced; None: it is told."""
    from fnmatch import fnmatch

    for pattern, codes in per_file:
        path = finding.path.replace(os.sep, "/")
        named = fnmatch(path, pattern) or fnmatch(os.path.basename(path), pattern)
        if (named or fnmatch(path, f"*/{pattern}")) and any(
            code == "ALL" or finding.code.startswith(code) for code in codes
        ):
            return Ignored(finding, None, f"{pattern}: {', '.join(codes)}", SETTING)
    if finding.document is None:
        return None
    if not finding.document.comments:
        return None
    line = position(line_starts(finding.document.text), finding.span.start).line
    bare = finding.code not in _OF_COMMENTS
    for one in suppressions(finding.document):
        if (one.codes or bare) and one.covers(finding.code, line):
            return Ignored(finding, one.line, one.reason)
    return None


def in_order(found: Iterable[Ignored]) -> tuple[Ignored, ...]:
    """Return what is silenced in reading order: by path, place, code."""
    return tuple(
        sorted(found, key=lambda one: (one.finding.path, one.finding.span.start, one.finding.code))
    )


def suppressed(finding: Finding, per_file: Iterable[tuple[str, tuple[str, ...]]]) -> bool:
    """True if a comment or a per-file setting silences the finding."""
    return ignored(finding, per_file) is not None


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


RULES = (UnusedIgnore, UnexplainedIgnore)
