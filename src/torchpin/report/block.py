"""One finding of a text report, as rustc and ruff draw theirs.

The message comes first, then the place, the code with what is meant underlined, other places that
belong to it, the grounds, and the fix as a small diff. A fix that mends several findings is drawn
with the first of them, and so is a line that several findings are about: those that follow name the
place, and what of the line they mean if it is not what is underlined above.
"""

from __future__ import annotations

from torchpin.documents.base import Document, Edit, Span
from torchpin.named import NamedTuple
from torchpin.report.frame import Labels, frame, last_line, line_of, piece, place_frame
from torchpin.report.model import CheckView, Locator, cells_text, has_edits
from torchpin.report.patch import last_number, patch
from torchpin.report.style import Style, clean, width
from torchpin.report.wrap import wrap
from torchpin.rules.model import UNSAFE, Finding, Fix, Related

MOST_FRAMES = 3
"""Other places of one finding that are shown with their code; the others are named."""

LONGEST_PIECE = 60
"""Characters of a line that are quoted; of a longer piece the code is drawn again."""

Key = tuple[str, str, tuple[tuple[str, tuple[Edit, ...]], ...]]


class Drawn(NamedTuple):
    """The last frame that was drawn."""

    document: Document
    span: Span
    first: int
    """Number of the first line of the span."""
    last: int
    """Number of the last that is shown."""
    labels: Labels


class Blocks:
    """The findings of one report."""

    def __init__(self, view: CheckView, style: Style) -> None:
        self.style = style
        self.locator = Locator()
        self.documents = {document.path: document for document in view.documents}
        self.drawn: dict[Key, Finding] = {}
        """Each fix that was drawn, and the finding that it was drawn with."""
        self.framed: Drawn | None = None
        """The code that stands above the next finding."""

    def block(self, finding: Finding) -> str:
        """Return the lines of one finding, ending in a line end."""
        style, document = self.style, finding.document
        lines = head(finding, style)
        where = clean(finding.path)
        if document is None or not document.text:
            gutter, self.framed = 1, None
            place = f":{self.locator.finding(finding).line}:1" if document is not None else ""
            lines.append(f"{style.paint('blue', ' -->')} {where}{place}")
        else:
            gutter, shown = self._frames(finding, document)
            lines += shown
        bullet = f"{' ' * gutter} {style.paint('blue', '=')} "
        if finding.cells:
            lines += self._told(bullet, "in matrix", clean(cells_text(finding.cells)))
        for ground in finding.because:
            if ground.text != finding.message:
                known = style.paint("dim", f"[{ground.evidence}]")
                lines += self._told(bullet, "because", f"{clean(ground.text)} {known}")
        for related in self._unshown(finding):
            place = f"{clean(related.path)}:{related.line}:"
            lines += self._told(bullet, "see", f"{place} {clean(related.message)}")
        if finding.fix is not None:
            lines += self._fix(finding, finding.fix, bullet, gutter)
        return "\n".join(lines) + "\n"

    def _told(self, bullet: str, word: str, text: str, color: str = "bold") -> list[str]:
        lead = f"{bullet}{self.style.paint(color, f'{word}:')} "
        return wrap(text, self.style.columns, lead)

    def _frames(self, finding: Finding, document: Document) -> tuple[int, list[str]]:
        """Return the width of the line numbers, and the code of all places of a finding."""
        style, locator = self.style, self.locator
        labels, others = self._shown(finding)
        numbers = [last_line(document, finding.span, locator), last_number(finding, locator)]
        numbers += (number for number, _ in labels)
        numbers += (one.line for one in others)
        gutter = len(str(max(numbers)))
        place = locator.finding(finding)
        arrow = style.paint("blue", f"{' ' * gutter}-->")
        where = f"{arrow} {clean(finding.path)}:{place.line}:{place.column}"
        same = self._same(finding, document, labels, gutter)
        if same:
            lines = wrap(same, style.columns, f"{where}, ", gutter + 4)
        else:
            last = last_line(document, finding.span, locator)
            self.framed = Drawn(document, finding.span, place.line, last, labels)
            severity = finding.severity
            _, shown = frame(document, finding.span, locator, style, severity, labels, gutter)
            lines = [where, *shown]
        for one in others:
            other = self.documents[one.path]
            colons = style.paint("blue", f"{' ' * gutter}:::")
            lines.append(f"{colons} {clean(one.path)}:{one.line}")
            lines += place_frame(other, one.line, one.message, locator, style, gutter)
        return gutter, lines

    def _same(self, finding: Finding, document: Document, labels: Labels, gutter: int) -> str:
        """Return what is said of a place whose line stands in the frame above; ``""``: its code is
        drawn."""
        above, span = self.framed, finding.span
        if above is None or not {*labels} <= {*above.labels}:
            return ""
        # A file that is read once a cell of a matrix, or an environment, makes several documents.
        if (above.document.path, above.document.text) != (document.path, document.text):
            return ""
        if span == above.span:
            return "as above"
        first = self.locator.at(document, span.start).line
        last = self.locator.at(document, max(span.start, span.end - 1)).line
        if first != last or not above.first <= first <= above.last:
            return ""
        most = min(LONGEST_PIECE, self.style.columns - gutter - 6 if self.style.columns else 99)
        if not 0 < span.end - span.start <= most:
            return ""
        start, line = line_of(document, first, self.locator)
        quoted = piece(line, span.start - start, span.end - start)
        if "`" in quoted or not quoted.strip() or width(quoted) > most:
            return ""
        if line.count(document.text[slice(*span)]) > 1:
            return ""
        return f"same line: `{quoted}`"

    def _shown(self, finding: Finding) -> tuple[Labels, list[Related]]:
        """Return the related places that are shown with their code: lines of the same file, and
        those of other files."""
        document = finding.document
        labels: dict[int, str] = {}
        others: dict[tuple[str, int], Related] = {}
        if document is None or not document.text:
            return (), []
        begin = self.locator.at(document, finding.span.start).line
        end = self.locator.at(document, max(finding.span.start, finding.span.end - 1)).line
        for one in finding.related:
            if len(labels) + len(others) == MOST_FRAMES:
                break
            mine = one.path in (document.path, finding.path)
            read = document if mine else self.documents.get(one.path)
            if read is None or not line_of(read, one.line, self.locator)[1].strip():
                continue
            if one.line == 1 and read.path.endswith(".lock"):
                continue  # the lock as a whole is meant
            if not mine:
                others.setdefault((one.path, one.line), one)
            elif not begin <= one.line <= end:
                labels.setdefault(one.line, one.message)
        return tuple(sorted(labels.items())), list(others.values())

    def _unshown(self, finding: Finding) -> list[Related]:
        labels, others = self._shown(finding)
        shown = {("", *label) for label in labels}
        paths = {finding.path, finding.document.path if finding.document else ""}
        return [
            one
            for one in finding.related
            if one not in others
            and not (one.path in paths and ("", one.line, one.message) in shown)
        ]

    def _fix(self, finding: Finding, fix: Fix, bullet: str, gutter: int) -> list[str]:
        word, edits = fix_word(finding), has_edits(finding, unsafe=True)
        key = (fix.safety, fix.message, tuple((one.document.path, one.edits) for one in fix.edits))
        first = self.drawn.setdefault(key, finding)
        if first is not finding and (edits or len(fix.message) > LONG):
            line = self.locator.finding(first).line
            place = f"that of line {line}"
            if first.path != finding.path:
                place = f"that of {clean(first.path)}:{line}"
            elif line == self.locator.finding(finding).line:
                place = "that above"
            does = "mends this too" if edits else "is for this too"
            return self._told(bullet, word, f"{place} {does}", "good")
        lines = self._told(bullet, word, clean(fix.message), "good")
        if edits:
            lines += patch(finding, self.locator, self.style, gutter)
        if fix.command:
            lead = f"{bullet}{self.style.paint('good', 'then run:')} "
            lines.append(f"{lead}{clean(fix.command)}")
        return lines


LONG = 100
"""Characters of an advice that is not repeated."""


def fix_word(finding: Finding) -> str:
    """Return what the fix of ``finding`` is called: it is made, made if asked for, or only told."""
    if finding.fix is None or not has_edits(finding, unsafe=True):
        return "advice"
    return "fix (unsafe)" if finding.fix.safety == UNSAFE else "fix"


def head(finding: Finding, style: Style) -> list[str]:
    """Return severity, code and message of a finding; how it is known if that is its ground."""
    code = style.rule(finding.code, f"{finding.severity}[{finding.code}]")
    same = next((one.evidence for one in finding.because if one.text == finding.message), None)
    known = f" {style.paint('dim', f'[{same}]')}" if same is not None else ""
    lead = f"{style.paint(finding.severity, code)} "
    return wrap(f"{clean(finding.message)}{known}", style.columns, lead, 2)
