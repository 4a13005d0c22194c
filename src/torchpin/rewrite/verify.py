"""Is the edited file what was meant? Read it again, twice, and compare; else nothing is written.

First with our own reader: every part outside the edited places must have stayed, every edited
specifier and URL must now read as it was written, and no new problem may have come. Then with
pip-requirements-parser (a frozen copy of pip's parser) as a second opinion: it must see the same
requirements, indexes and includes come and go as our reader does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

from torchpin.documents.base import Declaration, Document, Edit, Span, apply_edits
from torchpin.documents.requirements import read_requirements
from torchpin.errors import RewriteError
from torchpin.named import NamedTuple

Atom = tuple[str, Span, tuple[object, ...]]
"""Kind, place and content of one part of a document."""
_LONG = 4096
"""Characters of untouched lines from which on the second reader is spared them."""


class _Moves(NamedTuple):
    """Where the text went: edits in order, and the region that each became."""

    edits: tuple[Edit, ...]
    regions: tuple[Span, ...]
    ends: tuple[int, ...]
    """Where the edits end in the old text."""
    shifts: tuple[int, ...]
    """By how much the text behind the first n edits moves."""

    def moved(self, span: Span) -> Span:
        """Return the new place of a span that no edit touches."""
        start = self.shifts[bisect_right(self.ends, span.start)]
        count = bisect_right(self.ends, span.end)
        while count and self.edits[count - 1].span.start == span.end:
            count -= 1  # an insertion behind the span
        end = self.shifts[count]
        return Span(span.start + start, max(span.end + end, span.start + start))


def check_requirements_edit(before: Document, after_text: str, edits: tuple[Edit, ...]) -> Document:
    """Return the document that ``after_text`` makes, if it is ``before`` with these edits.

    Raises:
        RewriteError: anything but the edited places changed its meaning, an edited place does not
            read as intended, or the second opinion differs. The caller then writes nothing.
    """
    try:
        expected = apply_edits(before.text, edits)
    except ValueError as error:
        raise _refuse(before, str(error)) from error
    if expected != after_text:
        raise _refuse(before, "the text is not what the edits give")
    try:
        data = before.encode(after_text)
    except UnicodeEncodeError as error:
        raise _refuse(
            before, f"a character does not exist in the file's encoding ({before.encoding})"
        ) from error
    by_locale = any(problem.code == "encoding" for problem in before.problems)
    after = read_requirements(before.path, data, fallback=before.encoding if by_locale else None)
    if (after.text, after.encoding, after.bom) != (after_text, before.encoding, before.bom):
        raise _refuse(before, "its encoding would change")
    _check_own_reading(before, after, edits)
    _check_second_reading(*_near(before, after, edits))
    return after


def _refuse(document: Document, reason: str) -> RewriteError:
    return RewriteError(
        f"the fix was not applied: {reason}",
        path=document.path,
        hint="nothing was changed; please edit the file by hand",
    )


def _check_own_reading(before: Document, after: Document, edits: tuple[Edit, ...]) -> None:
    moves = _moves(edits)
    spans = [edit.span for edit in moves.edits]
    stayed = Counter(
        (kind, moves.moved(span), content)
        for kind, span, content in _atoms(before)
        if not _touched(kind, span, spans)
    )
    found = Counter(atom for atom in _atoms(after) if not _touched(atom[0], atom[1], moves.regions))
    for (kind, span, content), _ in ((stayed - found) + (found - stayed)).items():
        shown = " ".join(str(part) for part in content if part)
        raise _refuse(before, f"the {kind} {shown!r} would change (offset {span.start})")
    _check_problems(before, after, spans, moves.regions)
    _check_intended(before, after, moves)


def _moves(edits: tuple[Edit, ...]) -> _Moves:
    ordered = tuple(sorted(set(edits)))
    regions: list[Span] = []
    shifts = [0]
    for edit in ordered:
        start = edit.span.start + shifts[-1]
        regions.append(Span(start, start + len(edit.text)))
        shifts.append(shifts[-1] + len(edit.text) - (edit.span.end - edit.span.start))
    ends = tuple(edit.span.end for edit in ordered)
    return _Moves(ordered, tuple(regions), ends, tuple(shifts))


def _touched(kind: str, span: Span, places: Sequence[Span]) -> bool:
    """Tell whether an edit reaches a part; ``places`` are in order and apart.

    What only borders on an edit counts as touched, since it may grow; but never a name: no
    intended edit beside a name alters it.
    """
    low = bisect_left(places, span.start, key=_end_of)
    places = places[low : bisect_right(places, span.end, key=_start_of)]
    if kind == "name":
        return any(
            place.start < span.end and span.start < place.end
            if place.end > place.start
            else span.start < place.start < span.end
            for place in places
        )
    return any(place.start <= span.end and span.start <= place.end for place in places)


def _atoms(document: Document) -> list[Atom]:
    """Take a document apart."""
    atoms: list[Atom] = []
    for declaration in document.declarations:
        name = declaration.name
        atoms.append(("name", declaration.name_span, (name,)))
        if declaration.extras:
            at = Span(declaration.name_span.start, declaration.name_span.end + 1)
            atoms.append(("extras", at, (name, declaration.extras)))
        if declaration.specifier_span is not None:
            atoms.append(("specifier", declaration.specifier_span, (name, declaration.specifier)))
        if declaration.marker_span is not None:
            atoms.append(("marker", declaration.marker_span, (name, declaration.marker)))
        if declaration.url_span is not None:
            atoms.append(("URL", declaration.url_span, (name, declaration.url)))
        atoms += (
            ("hash", digest.span, (name, digest.algorithm, digest.digest))
            for digest in declaration.hashes
        )
        atoms += (("option", o.span, (name, o.name, o.value)) for o in declaration.options)
        atoms.append(
            ("line of", declaration.line_span, (name, declaration.editable, declaration.valid))
        )
    atoms += (
        ("index", line.span, (line.option, line.url, line.misplaced)) for line in document.indexes
    )
    atoms += (("include", i.span, (i.path, i.constraint)) for i in document.includes)
    atoms += (("option", o.span, (o.name, o.value)) for o in document.options)
    atoms += (
        ("comment", span, (document.text[span.start : span.end],)) for span in document.comments
    )
    return atoms


def _check_problems(
    before: Document, after: Document, spans: list[Span], regions: tuple[Span, ...]
) -> None:
    """Refuse an edit that brings a problem which the file did not have."""
    had = Counter(problem.code for problem in before.problems)
    has = Counter(problem.code for problem in after.problems)
    new = has - had
    for problem in after.problems:
        if new[problem.code] and _touched("problem", problem.span, regions):
            raise _refuse(before, f"the result would not be valid: {problem.message}")
    if new:
        message = next(p.message for p in after.problems if new[p.code])
        raise _refuse(before, f"the result would not be valid: {message}")


def _end_of(span: Span) -> int:
    return span.end


def _start_of(span: Span) -> int:
    return span.start


def _check_intended(before: Document, after: Document, moves: _Moves) -> None:
    """Check that an edit of a whole specifier or URL reads as it was written."""
    now: dict[Span | None, list[Declaration]] = {}
    for one in after.declarations:
        now.setdefault(one.specifier_span, []).append(one)
    specifiers = {d.specifier_span: d for d in before.declarations if d.specifier_span is not None}
    urls = {line.url_span: line for line in before.indexes if line.option != "--no-index"}
    for edit, region in zip(moves.edits, moves.regions, strict=True):
        if not edit.text or edit.text != edit.text.strip() or edit.span.start == edit.span.end:
            continue
        declaration = specifiers.get(edit.span)
        if declaration is not None and not any(
            (d.name, d.specifier, d.extras) == (declaration.name, edit.text, declaration.extras)
            and d.valid
            for d in now.get(region, ())
        ):
            raise _refuse(
                before, f"{declaration.name}{edit.text} would not be read as that requirement"
            )
        line = urls.get(edit.span)
        if line is not None and not any(
            other.url_span == region and (other.option, other.url) == (line.option, edit.text)
            for other in after.indexes
        ):
            raise _refuse(before, f"{edit.text!r} would not be read as the value of {line.option}")


def _near(before: Document, after: Document, edits: tuple[Edit, ...]) -> tuple[Document, Document]:
    """Return both documents without the long runs of whole lines that no edit touches.

    The second reader takes half a millisecond a line, and says the same of these in both. A run
    ends where a line does that no backslash continues; the first lines stay for their encoding.
    """
    text = before.text
    head = text.find("\n", text.find("\n") + 1) + 1
    cuts: list[Edit] = []
    at = head or len(text)
    for edit in (*sorted(set(edits)), Edit(Span(len(text), len(text)), "")):
        start, end = _line_after(text, at), _line_before(text, edit.span.start)
        if start is not None and end is not None and end - start > _LONG:
            cuts.append(Edit(Span(start, end), ""))
        at = max(at, edit.span.end)
    if not cuts:
        return before, after
    short = [
        read_requirements(before.path, before.encode(one), fallback=before.encoding)
        for one in (apply_edits(text, tuple(cuts)), apply_edits(text, (*edits, *cuts)))
    ]
    if any((one.encoding, one.bom) != (before.encoding, before.bom) for one in short):
        return before, after
    return short[0], short[1]


def _line_after(text: str, at: int) -> int | None:
    """Return the first start of a line behind ``at`` that continues no line; None if none does."""
    end = text.find("\n", at)
    while end >= 0:
        if not text[max(end - 2, 0) : end].rstrip("\r").endswith("\\"):
            return end + 1
        end = text.find("\n", end + 1)
    return None


def _line_before(text: str, at: int) -> int | None:
    """Return the last start of a line up to ``at`` that continues no line; None if none does."""
    end = text.rfind("\n", 0, at)
    while end >= 0:
        if not text[max(end - 2, 0) : end].rstrip("\r").endswith("\\"):
            return end + 1
        end = text.rfind("\n", 0, end)
    return None


def _check_second_reading(before: Document, after: Document) -> None:
    """Compare what came and went with what pip-requirements-parser sees come and go."""
    from torchpin.rewrite.second import facts_of, facts_of_own

    ours_before, ours_after = facts_of_own(before), facts_of_own(after)
    try:
        theirs_before, theirs_after = facts_of(before), facts_of(after)
    except Exception as error:  # whatever stops the other parser stops the fix
        raise _refuse(before, f"a second reading of the result failed: {error}") from error
    for ours, theirs in (
        (ours_after - ours_before, theirs_after - theirs_before),
        (ours_before - ours_after, theirs_before - theirs_after),
    ):
        if ours != theirs:
            odd = next(iter((ours - theirs) + (theirs - ours)))
            shown = " ".join(str(part) for part in odd if part)
            raise _refuse(before, f"a second reading of the result disagrees about {shown!r}")
