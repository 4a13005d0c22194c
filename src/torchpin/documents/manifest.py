"""What the readers of project files share: collecting declarations, sources, indexes, settings."""

from __future__ import annotations

from torchpin.documents.base import Declaration, Include, IndexLine, OptionText, Problem, Span
from torchpin.documents.project import ConflictSet, Enriched, ProjectIndex, Setting, Source
from torchpin.documents.requirement import Part, canonical, parse_parts
from torchpin.documents.toml_view import View
from torchpin.named import NamedTuple


class Asked(NamedTuple):
    """A requirement as a tool writes it in a table of its own."""

    name: str
    specifier: str
    extras: tuple[str, ...] = ()
    url: str | None = None
    marker: str | None = None
    name_span: Span = Span(0, 0)
    specifier_span: Span | None = None
    marker_span: Span | None = None
    url_span: Span | None = None
    options: tuple[OptionText, ...] = ()
    fixed: bool = False
    """Never edited: some part of it is not written as it reads."""
    valid: bool = True


class Manifest:
    """Collects what a project file says, part by part."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.declarations: list[Declaration] = []
        self.includes: list[Include] = []
        self.problems: list[Problem] = []
        self.sources: list[Source] = []
        self.indexes: list[ProjectIndex] = []
        self.conflicts: list[ConflictSet] = []
        self.settings: list[Setting] = []
        self.extras: list[str] = []
        self.groups: list[str] = []
        self.group_includes: list[tuple[str, tuple[str, ...]]] = []
        self.default_groups: tuple[str, ...] | None = None
        self.environments: tuple[str, ...] = ()
        self.required_environments: tuple[str, ...] = ()
        self.workspace_members: tuple[str, ...] = ()
        self.workspace_exclude: tuple[str, ...] = ()
        self.name = ""
        self.requires_python: str | None = None
        self.requires_python_span: Span | None = None
        self.package = True
        self.ignored = ""
        self.uv_table = False
        self.enriched: list[Enriched] = []

    def problem(self, message: str, span: Span, code: str = "shape") -> None:
        """Note something that the owning tool refuses."""
        self.problems.append(Problem(message, span, code))

    def harmless(self, since: int, why: str) -> None:
        """Mark the problems from number ``since`` on as such that no installer stops at."""
        self.problems[since:] = [
            one._replace(message=f"{one.message}: {why}", code="misplaced")
            for one in self.problems[since:]
        ]

    def line_span(self, span: Span) -> Span:
        """Return the whole lines on which a span stands, without the last line end."""
        start = self.text.rfind("\n", 0, span.start) + 1
        end = self.text.find("\n", span.end)
        if end < 0:
            end = len(self.text)
        elif end > start and self.text[end - 1] == "\r":
            end -= 1
        return Span(start, max(end, start))

    def extra(self, name: str) -> None:
        """Take in the name of an extra."""
        if name not in self.extras:
            self.extras.append(name)

    def group(self, name: str) -> None:
        """Take in the name of a dependency group."""
        if name not in self.groups:
            self.groups.append(name)

    def setting(self, key: str, view: View) -> None:
        """Take in a single setting; lists are joined by commas."""
        self.settings.append(Setting(key, setting_text(view.value), view.entry))

    def put(self, key: str, value: str, view: View) -> None:
        """Take in a setting that the value of ``view`` amounts to."""
        self.settings.append(Setting(key, value, view.entry))

    def requirement(self, view: View, scope: str, *, lenient: bool = False) -> None:
        """Take in one PEP 508 requirement, given as a string.

        ``lenient``: the tool takes other forms as well, so that what is not understood is left
        out without a problem.
        """
        text, span = self.text, view.span
        plain = view.plain
        if plain:
            parts = parse_parts(text, span.start, span.end)
        else:  # escapes: the places inside are not known
            parts = [_at(part, span) for part in parse_parts(view.value, 0, len(view.value))]
        if lenient and (not parts or any(part.problem for part in parts)):
            return
        if not parts:
            self.problem(f"{view.value[:60]!r} is no requirement", span, "syntax")
            return
        for part in parts:
            problem, code = part.problem, part.code
            bare = part.url is not None and part.url_start == part.start and plain
            if bare and lenient:
                continue
            if bare and not problem:
                problem = "a URL or path needs a name before it here: NAME @ URL"
                code = "syntax"
            if problem:
                self.problem(problem, Span(part.start, part.end), code)
            variable = "$" in part.specifier or (part.url is not None and "${" in part.url)
            self.declarations.append(
                Declaration(
                    name=part.name,
                    specifier=part.specifier,
                    extras=part.extras,
                    url=part.url,
                    marker=part.marker,
                    scope=scope,
                    span=Span(part.start, part.end),
                    line_span=self.line_span(span),
                    name_span=Span(part.name_start, part.name_end),
                    specifier_span=_span(part.specifier_start, part.specifier_end),
                    marker_span=_span(part.marker_start, part.marker_end),
                    url_span=_span(part.url_start, part.url_end),
                    from_variable=variable or not plain,
                    valid=not problem,
                )
            )

    def ask(self, asked: Asked, span: Span, scope: str) -> None:
        """Take in a requirement that a tool writes as key and value."""
        self.declarations.append(
            Declaration(
                name=canonical(asked.name),
                specifier=asked.specifier,
                extras=asked.extras,
                url=asked.url,
                marker=asked.marker,
                scope=scope,
                span=span,
                line_span=self.line_span(span),
                name_span=asked.name_span,
                specifier_span=asked.specifier_span,
                marker_span=asked.marker_span,
                url_span=asked.url_span,
                options=asked.options,
                from_variable=asked.fixed,
                valid=asked.valid,
            )
        )


def setting_text(value: object) -> str:
    """Return the value of a setting as one text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(setting_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} = {setting_text(item)}" for key, item in value.items())
    return str(value)


def index_line(text: str, index: ProjectIndex) -> IndexLine:
    """Return an index of a project as an index line, for those that know only these."""
    start = text.rfind("\n", 0, index.url_span.start) + 1
    end = text.find("\n", index.url_span.end)
    if end < 0:
        end = len(text)
    elif text[end - 1] == "\r":
        end -= 1
    return IndexLine(
        option=index.option,
        url=index.url,
        span=index.span,
        url_span=index.url_span,
        line_span=Span(start, end),
        from_variable=text[index.url_span.start : index.url_span.end] != index.url,
    )


def _span(start: int, end: int) -> Span | None:
    return Span(start, end) if start >= 0 else None


def _at(part: Part, span: Span) -> Part:
    """Place a part that was read from a string with escapes on the whole of the string."""
    start, end = span

    def low(offset: int) -> int:
        return -1 if offset < 0 else start

    def high(offset: int) -> int:
        return -1 if offset < 0 else end

    return part._replace(
        start=start, end=end, name_start=start, name_end=end,
        specifier_start=low(part.specifier_start), specifier_end=high(part.specifier_end),
        url_start=low(part.url_start), url_end=high(part.url_end),
        marker_start=low(part.marker_start), marker_end=high(part.marker_end),
    )  # fmt: skip
