"""From findings to fixes, and from fixes to the new bytes of files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from torchpin.catalog.model import FOLLOWERS, WATCHED
from torchpin.documents.base import Document, Edit, Span, apply_edits
from torchpin.errors import RewriteError
from torchpin.patterns import regex
from torchpin.rewrite.link_pages import link_page_fix
from torchpin.rewrite.plan import companion_advice, index_fix, plan_fix
from torchpin.rewrite.request import intended_targets
from torchpin.rewrite.requirement_indexes import whole_line
from torchpin.rules.context import Context, Way
from torchpin.rules.model import DISPLAY, INFO, SAFE, UNSAFE, FileEdits, Finding, Fix

NOTE = regex(r"[ \t]+#[^\r\n]*(?:\r\n|\r|\n|$)")
"""An indented comment line."""

PLANNED = frozenset(
    (
        *("TP101", "TP102", "TP103", "TP104", "TP105", "TP106", "TP107", "TP108"),
        *("TP201", "TP202", "TP203", "TP205", "TP207"),
        *("TP301", "TP302", "TP303", "TP306"),
        *("TP402", "TP412", "TP501", "TP507"),
    )
)
"""Codes that the plan of a way mends."""


LINES = frozenset(("TP305", "TP410", "TP411", "TP506"))
"""Codes whose fixes change one line each: several go together."""

PROJECT = frozenset(("TP405", "TP406", "TP408", "TP409", "TP411", "TP415", "TP503", "TP504"))
"""Codes that the plan of a project mends, or its lock made anew."""
TIDY = frozenset(("TP405", "TP406", "TP409", "TP411", "TP415", "TP416"))
"""Codes of a project that are mended without a plan, if that makes nothing worse."""
BESIDE = frozenset(("TP301", "TP302", "TP306", "TP702"))
"""Codes of what stands in a later command than the torch that it does not go with."""
INDEX = frozenset(("TP401", "TP407"))
"""Codes that are mended by pinning what is meant and by making the index an additional one."""


Mark = tuple[str, tuple[tuple[str, str], ...]]
"""What a fix says, and what it writes into which files."""


def attach_fixes(
    findings: tuple[Finding, ...],
    context: Context,
    policy: str,
    only: frozenset[str] | None = None,
    each: Callable[[Sequence[Finding]], Iterable[Finding]] = iter,
) -> tuple[Finding, ...]:
    """Return the findings with the fix of each, where there is one; with ``only``, those of these
    paths get theirs. ``each`` passes them on, and may tell how far it is."""
    maker = Maker(findings, context, policy)
    return tuple(
        finding._replace(fix=maker.fix(finding))
        if only is None or finding.path in only
        else finding
        for finding in each(findings)
    )


class Maker:
    """Makes the fixes of one report; a way in is planned once for all of its findings."""

    def __init__(self, findings: tuple[Finding, ...], context: Context, policy: str) -> None:
        self.findings = findings
        self.context = context
        self.policy = policy
        self._plans: dict[int, Fix | None] = {}
        self._projects: dict[str, tuple[Fix | None, Fix | None]] = {}
        self._ways: dict[str, list[tuple[int, Way]]] = {}
        for number, way in enumerate(context.ways):
            for path in way.paths:
                self._ways.setdefault(path, []).append((number, way))
        self._found: dict[str, list[Finding]] = {}
        for finding in findings:
            self._found.setdefault(finding.path, []).append(finding)

    def _telling(self, finding: Finding) -> Iterator[tuple[int, Way]]:
        """Yield the ways, with their numbers, that a finding is on."""
        found = [one for one in self._ways.get(finding.path, ()) if one[1].tells(finding)]
        if finding.python is None or len(found) < 2:
            return iter(found)
        # A list that several commands install: what one of them finds, its own plan mends.
        return iter([one for one in found if met_by(finding, one[1])] or found)

    def _on(self, way: Way) -> Iterator[Finding]:
        """Yield the findings on the files of a way."""
        return (one for path in way.paths for one in self._found.get(path, ()))

    def fix(self, finding: Finding) -> Fix | None:
        """Return the fix of one finding: its own, if the rule has made one."""
        if finding.fix is not None:
            return self._written(finding) or finding.fix
        if finding.code == "TP506":
            return drop_label(finding)
        if finding.code == "TP305":
            return self._dropped(finding) if finding.severity != INFO else None
        if finding.severity == INFO or finding.code not in (*PLANNED, *INDEX, *PROJECT):
            return None
        for number, way in self._telling(finding):
            if way.install.root.kind not in ("requirements", "part"):
                return self._project(way, finding.code)
            if finding.code in INDEX:
                fix = (
                    None
                    if computed(way)
                    else index_fix(way, self.context, self.policy, self._codes(way))
                )
            elif finding.code == "TP402" and self._codes(way) == {"TP402"}:
                fix = link_page_fix(way, self.context) or self._planned(number, way)
            else:
                fix = self._beside(finding) if "torch" in way.before else None
                fix = fix or self._planned(number, way)
                if finding.package in FOLLOWERS and (fix is None or fix.edits):
                    # What mends the others leaves it as it is, where no version of it fits.
                    fix = companion_advice(way, self.context, self.policy, finding.package) or fix
            if fix is not None and not self._left_aside(finding, way):
                return fix
        return None

    def _left_aside(self, finding: Finding, way: Way) -> bool:
        """True if a finding is only on Pythons of test environments that the plan does not serve,
        since it serves those of the fleet."""
        if way.part is None or not way.part.pythons or finding.python is None:
            return False
        planned = {str(one.python) for one in intended_targets(way, self.context)}
        return planned.isdisjoint(finding.python.split(", "))

    def _project(self, way: Way, code: str) -> Fix | None:
        from torchpin.rewrite.projects import ProjectFix, of_script

        root = way.install.root
        if root.project is None:
            return None
        if root.path not in self._projects:
            ways = tuple(
                one for _, one in self._ways[root.path] if one.install.root.path == root.path
            )
            codes = {one.code for one in self._on(way) if one.severity != INFO}
            fixer = ProjectFix(root, ways, self.context, self.policy, codes)
            self._projects[root.path] = of_script(fixer.tidy, root), of_script(fixer.fix(), root)
        tidy, planned = self._projects[root.path]
        return tidy if tidy is not None and code in TIDY else planned

    def _written(self, finding: Finding) -> Fix | None:
        """Return the edits that do what a rule advises, if the file allows them."""
        if finding.code in BESIDE and finding.severity != INFO:
            return self._beside(finding)
        if finding.code != "TP416" or finding.severity == INFO:
            return None
        from torchpin.rewrite.uv_references import OWN_SOURCE

        for _, way in self._telling(finding):
            if way.install.root.kind == "pyproject":
                fix = self._project(way, finding.code)
                return fix if fix is not None and OWN_SOURCE in fix.message else None
        return None

    def _beside(self, finding: Finding) -> Fix | None:
        """Return the edits that make a companion go with the torch of an earlier command, unless
        that command is to be mended itself."""
        from torchpin.rewrite.later import companion_fix, earlier_way

        for _, way in self._telling(finding):
            earlier = earlier_way(way, self.context) if not computed(way) else None
            if earlier is not None and not self._codes(earlier):
                return companion_fix(way, earlier, self.context)
        return None

    def _planned(self, number: int, way: Way) -> Fix | None:
        if number not in self._plans:
            self._plans[number] = (
                None
                if computed(way)
                else plan_fix(way, self.context, self.policy, self._codes(way))
            )
        return self._plans[number]

    def _codes(self, way: Way) -> set[str]:
        """Return the codes of the findings that a plan of the way is to mend."""
        return {
            one.code
            for one in self._on(way)
            if one.code in PLANNED and one.severity != INFO and way.tells(one)
        }

    def _dropped(self, finding: Finding) -> Fix | None:
        document = finding.document
        if document is None or document.kind != "part":
            return drop_line(finding)
        way = next((one for _, one in self._telling(finding)), None)
        if way is None or way.part is None or not (way.part.command or way.part.syntax == "ini"):
            return drop_line(finding)
        from torchpin.rewrite.commands import delete_option

        for declaration in document.declarations:
            if declaration.span.start == finding.span.start and not declaration.from_variable:
                edit = delete_option(way.part, document, declaration.line_span)
                return Fix(UNSAFE, f"remove {declaration.name}", (FileEdits(document, (edit,)),))
        return drop_line(finding)


def met_by(finding: Finding, way: Way) -> bool:
    """True if a way is for one of the targets on which a finding was made."""
    groups = (finding.group or "").split(", ")
    pythons = (finding.python or "").split(", ")
    return any(
        one.target.group.name in groups and str(one.target.python) in pythons for one in way.sets
    )


def computed(way: Way) -> bool:
    """True if a version of the family is not known: nothing can be planned around it."""
    return any(
        placed.declaration.from_variable
        and "$" in placed.declaration.specifier
        and placed.declaration.name in WATCHED
        for placed in (*way.install.requirements, *way.install.constraints)
    )


def drop_label(finding: Finding) -> Fix | None:
    """Return the fix of an ordered comparison with a label: the bound without it."""
    document = finding.document
    if document is None:
        return None
    text = document.text[finding.span.start : finding.span.end]
    new = re.sub(r"((?:>=|<=|~=|>|<)\s*[^\s,;+]+)\+[A-Za-z0-9._-]+", r"\1", text)
    if new == text:
        return None
    edit = Edit(finding.span, new)
    return Fix(SAFE, f"{new.strip()}", (FileEdits(document, (edit,)),))


def drop_line(finding: Finding) -> Fix | None:
    """Return the fix of a pinned internal: the line is left out, torch brings its own."""
    document = finding.document
    if document is None:
        return None
    for declaration in document.declarations:
        if declaration.span.start == finding.span.start:
            if document.kind != "requirements":
                return Fix(DISPLAY, f"remove {declaration.name}: torch brings its own")
            line = whole_line(document.text, declaration.line_span)
            edit = Edit(Span(line.start, end_of_notes(document, line.end)), "")
            return Fix(UNSAFE, f"remove {declaration.name}", (FileEdits(document, (edit,)),))
    return None


def end_of_notes(document: Document, offset: int) -> int:
    """Return where the indented comments at ``offset`` end.

    Compiled files say in such lines below a pin what asks for it (``    # via torch``).
    """
    while match := NOTE.match(document.text, offset):
        offset = match.end()
    return offset


def _turn(finding: Finding) -> tuple[bool, bool]:
    fix = finding.fix
    return fix is None or fix.safety != SAFE, finding.code in INDEX


def goes_beside(edits: FileEdits, others: FileEdits | None) -> bool:
    """True if edits of one command of a file leave those of its other commands alone."""
    if others is None:
        return True
    if edits.document.kind != "part" or others.document.kind != "part":
        return False
    return edits.document is not others.document and all(
        one == other or one.span.end < other.span.start or other.span.end < one.span.start
        for one in edits.edits
        for other in others.edits
    )


def mark_of(fix: Fix) -> Mark:
    """Return what tells a fix from others, wherever its lines stand by now."""
    return fix.message, tuple(
        (edits.document.path, edit.text) for edits in fix.edits for edit in edits.edits
    )


def apply_fixes(
    findings: Iterable[Finding],
    *,
    unsafe: bool,
    harmful: Collection[Mark] = (),
    made: list[Fix] | None = None,
) -> tuple[list[tuple[Document, bytes]], list[str]]:
    """Return the new bytes of every document that the allowed fixes change.

    One plan a document, or any number of fixes of single lines; the caller looks again for more.
    Safe fixes come first: allowing others must not lead to a worse end. A fix whose edits change
    more than they say is left out, in all of its files; the others are made.
    Also returned: why fixes were left out. ``harmful`` are marks of fixes that are not to be made;
    to ``made`` those that are made are appended.
    """
    findings = sorted(findings, key=_turn)
    without = [
        one.fix
        for one in findings
        if harmful and one.fix is not None and mark_of(one.fix) in harmful
    ]
    refused: list[str] = []
    while True:
        done = chosen_fixes(findings, without, unsafe=unsafe)
        try:
            changed = verified(done)
            if made is not None:
                made += done
            return changed, refused
        except RewriteError as error:
            one, reason = refused_of(done, error)
            without.append(one)
            refused.append(f"{reason.path}: not mended ({one.message}): {reason.message}")


def chosen_fixes(findings: Iterable[Finding], without: Sequence[Fix], *, unsafe: bool) -> list[Fix]:
    """Return the fixes that go together, in their order: all but those of ``without``."""
    taken: dict[str, FileEdits] = {}
    open_to_lines: set[str] = set()
    done: list[Fix] = []
    meant = [
        (finding, fix)
        for finding in findings
        if (fix := finding.fix) is not None
        and fix.edits
        and fix not in without
        and (unsafe or fix.safety != UNSAFE)
    ]
    changing = {edits.document.path for _, fix in meant for edits in fix.edits}
    for finding, fix in meant:
        if fix in done or rests_on(fix, changing):
            continue
        paths = {edits.document.path for edits in fix.edits}
        by_line = finding.code in LINES
        beside = all(goes_beside(edits, taken.get(edits.document.path)) for edits in fix.edits)
        if not beside and not (by_line and paths <= open_to_lines):
            continue
        done.append(fix)
        taken.update(edits_by_path([fix], taken))
        if by_line:
            open_to_lines |= paths
    return done


def rests_on(fix: Fix, changing: Collection[str]) -> bool:
    """True if a fix was planned with files that others change: it is to be planned again."""
    return any(
        os.path.normpath(path) in map(os.path.normpath, changing)
        for edits in fix.edits
        for path, _ in edits.document.called
    )


def edits_by_path(
    fixes: Iterable[Fix], taken: Mapping[str, FileEdits] | None = None
) -> dict[str, FileEdits]:
    """Return the edits of fixes, and of those that are ``taken`` already, document by document."""
    found = dict(taken or {})
    for fix in fixes:
        for edits in fix.edits:
            path = edits.document.path
            before = found[path].edits if path in found else ()
            found[path] = FileEdits(edits.document, (*before, *edits.edits))
    return found


def verified(fixes: Sequence[Fix]) -> list[tuple[Document, bytes]]:
    """Return the new bytes of every document that some fixes change together.

    Raises:
        RewriteError: an edit would change more than it says.
    """
    return [(one.document, changed_bytes(one)) for one in edits_by_path(fixes).values()]


def refused_of(fixes: Sequence[Fix], error: RewriteError) -> tuple[Fix, RewriteError]:
    """Return which of some fixes is to be left out, those before it being good, and why."""
    for number, fix in enumerate(fixes):
        try:
            verified(fixes[: number + 1])
        except RewriteError as why:
            return fix, why
    return fixes[-1], error


def changed_bytes(edits: FileEdits) -> bytes:
    """Return the new bytes of a document, read again by who checks its kind.

    Raises:
        RewriteError: the edits would change more than they say.
    """
    from torchpin.rewrite.verify import check_requirements_edit
    from torchpin.rewrite.verify_project import check_project_edit

    document = edits.document
    try:
        text = apply_edits(document.text, edits.edits)
    except ValueError as error:
        raise RewriteError(f"not edited: {error}", path=document.path) from error
    if document.kind == "part":
        from torchpin.rewrite.verify_part import check_part_edit

        check_part_edit(document, text, edits.edits)
    elif document.kind == "Pipfile":
        from torchpin.rewrite.pipfile_edit import check_pipfile_edit

        check_pipfile_edit(document, text, edits.edits)
    elif document.kind == "requirements":
        check_requirements_edit(document, text, edits.edits)
    else:
        check_project_edit(document, text, edits.edits)
    try:
        return document.encode(text)
    except UnicodeEncodeError as error:
        raise RewriteError(
            f"the new text does not fit the encoding {document.encoding}: {error}",
            path=document.path,
        ) from error
