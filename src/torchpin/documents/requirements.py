"""Requirements files: every declaration, index line, include and option, with its place.

What pip accepts is read as pip 26.3 reads it. What pip refuses or ignores is kept too and listed
in ``Document.problems``, whose codes are:

========== ===================================================================================
decode     the bytes are no text in the encoding that pip would use; the document is empty
binary     the file holds NUL bytes; the document is empty
encoding   read with the encoding of the locale (only where the caller gave one)
syntax     the line is no requirement
specifier  the version specifier is invalid
marker     the environment marker is invalid
option     pip refuses the option
misplaced  pip ignores what stands here: an index behind a requirement, a name behind an option
========== ===================================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torchpin.documents.base import (
    Declaration,
    Document,
    Hash,
    Include,
    IndexLine,
    OptionText,
    Problem,
    Span,
)
from torchpin.documents.decode import decode
from torchpin.documents.lines import Logical, logical_lines
from torchpin.documents.options import Option, parse_options, split_options
from torchpin.documents.requirement import Part, parse_parts
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_HASH = regex(r"--hash=sha256:([0-9a-f]{64})")
_HASHES = regex(r"(?:--hash=sha256:[0-9a-f]{64}(?: +|$))+")
"""What machines write behind a requirement, by the thousand: needs no reading option by option."""
_INDEX_OPTIONS = ("--no-index", "--index-url", "--extra-index-url", "--find-links")
"""In the order in which pip lets those of one line take effect."""


def read_requirements(
    path: str,
    data: bytes,
    environ: Mapping[str, str] | None = None,
    *,
    fallback: str | None = None,
) -> Document:
    """Return the document in ``data``; never raises, problems are listed in it.

    ``environ`` gives the values of ``${VARIABLES}`` (default: none is known; the text then keeps
    ``${NAME}`` and ``from_variable`` is set). ``fallback`` is the encoding of the locale, which
    pip uses for files that are not UTF-8; None to report these.
    """
    decoded = decode(data, fallback)
    reader = _Reader()
    if decoded.problem:
        reader.problems.append(Problem(decoded.message, Span(0, 0), decoded.problem))
    for line in logical_lines(decoded.text, environ or {}):
        reader.read(line)
    return Document(
        path=path,
        kind="requirements",
        text=decoded.text,
        encoding=decoded.encoding,
        bom=decoded.bom,
        newline=newline_of(decoded.text),
        declarations=tuple(reader.declarations),
        indexes=tuple(reader.indexes),
        includes=tuple(reader.includes),
        options=tuple(reader.options),
        problems=tuple(reader.problems),
        comments=tuple(reader.comments),
    )


class Lines(NamedTuple):
    """What some logical lines of a requirements file say."""

    declarations: tuple[Declaration, ...]
    indexes: tuple[IndexLine, ...]
    includes: tuple[Include, ...]
    options: tuple[OptionText, ...]
    problems: tuple[Problem, ...]
    comments: tuple[Span, ...]


def read_lines(lines: Iterable[Logical]) -> Lines:
    """Return what lines say that stand as requirements in a file of another kind; never raises."""
    reader = _Reader()
    for line in lines:
        reader.read(line)
    return Lines(
        tuple(reader.declarations),
        tuple(reader.indexes),
        tuple(reader.includes),
        tuple(reader.options),
        tuple(reader.problems),
        tuple(reader.comments),
    )


def newline_of(text: str) -> str:
    """Return the line end that most lines of a text use."""
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    cr = text.count("\r") - crlf
    if crlf > lf and crlf >= cr:
        return "\r\n"
    return "\r" if cr > lf else "\n"


class _Reader:
    """Collects what the lines of one document say."""

    def __init__(self) -> None:
        self.declarations: list[Declaration] = []
        self.indexes: list[IndexLine] = []
        self.includes: list[Include] = []
        self.options: list[OptionText] = []
        self.problems: list[Problem] = []
        self.comments: list[Span] = []

    def read(self, line: Logical) -> None:
        """Take in one logical line."""
        if line.comment is not None:
            self.comments.append(line.comment)
        text = line.text
        if not text:
            return
        options_start = split_options(text)
        if options_start == len(text):
            self._requirement(line, options_start, [])
            return
        if options_start and _HASHES.fullmatch(text, options_start) is not None:
            span = line.span
            hashes = [
                Hash("sha256", match[1], span(match.start(), match.end()))
                for match in _HASH.finditer(text, options_start)
            ]
            self._requirement(line, options_start, [], hashes)
            return
        parsed = parse_options(text, options_start)
        if parsed.error:
            self._problem(line, options_start, len(text), f"the options hold {parsed.error}")
        for option in parsed.options:
            if option.error:
                self._problem(line, option.start, option.end, option.error)
        if text[:options_start].strip():
            self._requirement(line, options_start, parsed.options)
        else:
            self._option_line(line, parsed.options)
        for word in parsed.words:
            self._problem(
                line, word.start, word.end,
                f"pip ignores {word.value[:60]!r} behind an option", "misplaced",
            )  # fmt: skip
        if parsed.words and not text[:options_start].strip():
            first, last = parsed.words[0], parsed.words[-1]
            for part in parse_parts(text, first.start, last.end):
                if part.start >= first.start and text[part.start] != "-":
                    self._declare(line, part._replace(problem="", code=""), [], valid=False)
                    break

    def _problem(
        self, line: Logical, start: int, end: int, message: str, code: str = "option"
    ) -> None:
        self.problems.append(Problem(message, line.span(start, end), code))

    def _requirement(
        self, line: Logical, end: int, options: list[Option], hashes: Sequence[Hash] = ()
    ) -> None:
        parts = parse_parts(line.text, 0, end)
        if not parts:
            shown = line.text[:end].strip()[:60]
            self._problem(line, 0, end, f"{shown!r} is no requirement", "syntax")
        for part in parts:
            if part is parts[-1]:
                self._declare(line, part, options, known=hashes)
            else:
                self._declare(line, part, [])
        for option in options:
            if option.name in _INDEX_OPTIONS:
                self._index(line, option, misplaced=True)
            if option.name not in ("--hash", "--config-settings") and not option.error:
                self._ignored(line, option)

    def _ignored(self, line: Logical, option: Option) -> None:
        message = f"pip ignores {option.name} here: it must stand on a line of its own"
        self._problem(line, option.start, option.end, message, "misplaced")

    def _option_line(self, line: Logical, options: list[Option]) -> None:
        """Take in a line that begins with an option; pip lets ``-e`` and ``-r`` rule the line."""
        names = {option.name for option in options if option.value is not None}
        ruling = next(
            (name for name in ("--editable", "--requirement", "--constraint") if name in names), ""
        )
        found = False
        last_url = None
        for option in options:
            if option.name == "--index-url":
                last_url = option
        first_links = False
        for kind in ("", *_INDEX_OPTIONS):
            for option in options:
                if (option.name if option.name in _INDEX_OPTIONS else "") != kind:
                    continue
                if ruling:
                    if option.name == ruling and not found and option.value is not None:
                        found = True
                        self._rule(line, option, options)
                    elif kind:
                        self._index(line, option, misplaced=True)
                        self._ignored(line, option)
                    elif not option.error and not (
                        option.name == "--config-settings" and ruling == "--editable"
                    ):
                        self._ignored(line, option)
                elif kind:
                    lost = (kind == "--index-url" and option is not last_url) or (
                        kind == "--find-links" and first_links
                    )
                    first_links = first_links or kind == "--find-links"
                    self._index(line, option, misplaced=lost)
                    if lost:
                        self._ignored(line, option)
                else:
                    self.options.append(_option_text(line, option))
                    if option.name in ("--hash", "--config-settings"):
                        message = f"pip ignores {option.name} without a requirement"
                        self._problem(line, option.start, option.end, message, "misplaced")

    def _rule(self, line: Logical, option: Option, options: list[Option]) -> None:
        """Take in the one ``-e``, ``-r`` or ``-c`` that counts on a line."""
        assert option.value is not None
        if option.name != "--editable":
            self.includes.append(
                Include(
                    option.value,
                    option.name == "--constraint",
                    line.span(option.start, option.end),
                    line.start(option.start),
                )
            )
            return
        start, end = option.value_start, option.value_end
        if line.text[start:end] != option.value:  # odd quoting inside: the place stays rough
            parts = parse_parts(option.value, 0, len(option.value), editable=True)
            parts = [_at(part, start, end) for part in parts]
        else:
            parts = parse_parts(line.text, start, end, editable=True)
        settings = [other for other in options if other.name == "--config-settings"]
        for part in parts:
            self._declare(line, part, settings, editable=True)
        if not parts:
            self._problem(line, start, end, f"{option.value[:60]!r} is no requirement", "syntax")

    def _index(self, line: Logical, option: Option, misplaced: bool) -> None:
        if option.value is None and option.name != "--no-index":
            return
        url = line.span(option.value_start, option.value_end)
        self.indexes.append(
            IndexLine(
                option.name,
                option.value or "",
                line.span(option.start, option.end),
                url,
                line.line_span,
                line.touches_variable(option.start, option.end),
                misplaced,
            )
        )

    def _declare(
        self,
        line: Logical,
        part: Part,
        options: list[Option],
        editable: bool = False,
        valid: bool = True,
        known: Sequence[Hash] = (),
    ) -> None:
        hashes = list(known)
        others: list[OptionText] = []
        for option in options:
            if option.name == "--hash" and option.value is not None:
                algorithm, _, digest = option.value.partition(":")
                hashes.append(Hash(algorithm, digest, line.span(option.start, option.end)))
            elif option.name not in _INDEX_OPTIONS:
                others.append(_option_text(line, option))
            if option.error:
                valid = False
        if part.problem:
            valid = False
            self._problem(line, part.start, part.end, part.problem, part.code)
        self.declarations.append(
            Declaration(
                name=part.name,
                specifier=part.specifier,
                extras=part.extras,
                url=part.url,
                marker=part.marker,
                scope="",
                span=line.span(part.start, part.end),
                line_span=line.line_span,
                name_span=line.span(part.name_start, part.name_end),
                specifier_span=_span(line, part.specifier_start, part.specifier_end),
                marker_span=_span(line, part.marker_start, part.marker_end),
                url_span=_span(line, part.url_start, part.url_end),
                hashes=tuple(hashes),
                options=tuple(others),
                editable=editable,
                from_variable=line.touches_variable(part.start, part.end),
                valid=valid,
            )
        )


def _at(part: Part, start: int, end: int) -> Part:
    """Move a part that was read from an unquoted copy to the place of the quoted original."""

    def place(offset: int, fallback: int) -> int:
        return -1 if offset < 0 else fallback

    return part._replace(
        start=start, end=end, name_start=start, name_end=end,
        specifier_start=place(part.specifier_start, start),
        specifier_end=place(part.specifier_end, end),
        url_start=place(part.url_start, start), url_end=place(part.url_end, end),
        marker_start=place(part.marker_start, start), marker_end=place(part.marker_end, end),
    )  # fmt: skip


def _span(line: Logical, start: int, end: int) -> Span | None:
    return line.span(start, end) if start >= 0 else None


def _option_text(line: Logical, option: Option) -> OptionText:
    value_span = (
        line.span(option.value_start, option.value_end) if option.value is not None else None
    )
    return OptionText(option.name, option.value, line.span(option.start, option.end), value_span)
