"""From a root document to what one command would install: the include tree and its indexes.

pip reads index lines as an ordered program (``pip._internal.req.req_file.handle_option_line`` of
pip 26.3): a later ``--index-url``, also in an included file, replaces every index and extra index
before it; ``--extra-index-url`` and ``--find-links`` add; ``--no-index`` drops all indexes for
good. uv collects them: extra indexes in order, ``--index-url`` last, and two different ones are
an error; lines inside constraints files do not count.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from torchpin.documents.base import Declaration, Document, Include, IndexLine, OptionText
from torchpin.errors import TorchpinError
from torchpin.select.asks import name_of
from torchpin.select.channels import index_kind, redact
from torchpin.select.model import Install, Placed, PlacedIndex, Unread

if TYPE_CHECKING:
    from torchpin.documents.parts import Part

DEEPEST = 100
"""Files that are followed one inside the other; pip and uv go deeper, people do not."""
MOST = 2000
"""Includes that are followed in one install: files that each include the next twice have no end."""

_INDEX_OPTIONS = {
    "-i": "--index-url",
    "--pypi-url": "--index-url",
    "--default-index": "--index-url",
    "-f": "--find-links",
    "--index": "--extra-index-url",
}


class _Walk:
    """State of one walk through an include tree."""

    def __init__(
        self, load: Callable[[str], Document], client: str, private: Mapping[str, str]
    ) -> None:
        self.load = load
        self.client = client
        self.private = private
        self.documents: list[Document] = []
        self.requirements: list[Placed] = []
        self.constraints: list[Placed] = []
        self.problems: list[tuple[Document, str, int]] = []
        self.unread: list[Unread] = []
        self.followed = 0
        self.urls: list[PlacedIndex] = []
        """pip: ``index_urls`` of its finder. uv: extra indexes."""
        self.default: PlacedIndex | None = None
        """uv only: the ``--index-url`` of the document that is read, its includes counted."""
        self.given: PlacedIndex | None = None
        """uv only: the ``--index-url`` of the command line, which wins."""
        self.broken: list[tuple[Document, str, int]] = []
        """uv only: each ``--index-url`` that leads nowhere, so that PyPI is not asked either."""
        self.links: list[PlacedIndex] = []
        self.discarded: list[PlacedIndex] = []
        self.no_index = False
        self.pre = False
        self.part: Part | None = None
        """What is installed, where it is a command or section of a file of another kind."""
        self._seen: set[tuple[str, int, bool]] = set()
        self._uv_visited: set[tuple[str, bool]] = set()

    def placed(
        self, document: Document | None, line: IndexLine | None, option: str, url: str
    ) -> PlacedIndex:
        kind = index_kind(url, self.private, option=option)
        return PlacedIndex(document, line, option, url, kind)

    def command_line(self, entries: Sequence[str]) -> None:
        """Take the indexes of the command line or the environment, before any file."""
        parsed: list[tuple[str, str]] = []
        for entry in entries:
            option, url = "--extra-index-url", entry.strip()
            if url.startswith("-"):
                head = url.replace("=", " ", 1).split(None, 1)
                option = _INDEX_OPTIONS.get(head[0], head[0])
                url = head[1].strip() if len(head) > 1 else ""
            parsed.append((option, url))
        defaults = [url for option, url in parsed if option == "--index-url"]
        default = self.placed(None, None, "--index-url" if defaults else "", (defaults or [""])[-1])
        extras = [self.placed(None, None, o, u) for o, u in parsed if o == "--extra-index-url"]
        self.links += [self.placed(None, None, o, u) for o, u in parsed if o == "--find-links"]
        self.no_index = any(option == "--no-index" for option, _ in parsed)
        if self.client == "uv":
            self.urls = extras
            self.given = default if defaults else None
        elif not self.no_index:
            self.urls = [default, *extras]

    # -- the tree

    def visit(self, document: Document, constraint: bool, stack: tuple[str, ...]) -> None:
        """Read ``document`` and what it includes, in the order of its lines."""
        command = self.part is not None and self.part.document is document and self.part.command
        if all(document is not known for known in self.documents):
            self.documents.append(document)
            if self.client == "uv" and document.kind != "part":
                from torchpin.select.uv_reading import problems_of, unclear_places

                self.problems += [(document, *one) for one in problems_of(document)]
                for because, at in unclear_places(document):
                    self.unread.append(Unread(document, because, at, False))
        if command:
            self._options(document)
            self._settings()
        events: list[tuple[int, int, Declaration | Include | tuple[IndexLine, ...] | OptionText]]
        events = [(d.span.start, 0, d) for d in document.declarations]
        events += [(include.order, 1, include) for include in document.includes]
        if not command:
            events += [(lines[0].span.start, 2, lines) for lines in _by_line(document)]
        events += [(option.span.start, 3, option) for option in document.options]
        events.sort(key=lambda event: event[:2])
        for _, _, what in events:
            if isinstance(what, Declaration):
                self._declare(document, what, constraint)
            elif isinstance(what, Include):
                self._include(document, what, constraint, stack)
            elif isinstance(what, OptionText):
                if what.name == "--pre" and self.client == "pip":
                    self.pre = True
            elif self.client == "pip":
                self._pip_line(document, what)
            else:
                self._uv_line(document, what, constraint)

    def _declare(self, document: Document, declaration: Declaration, constraint: bool) -> None:
        key = (document.path, declaration.span.start, constraint)
        if key not in self._seen:
            self._seen.add(key)
            placed = Placed(document, declaration)
            refused = self._no_limit(placed) if constraint else ""
            if refused:
                self.problems.append((document, refused, declaration.span.start))
            (self.constraints if constraint else self.requirements).append(placed)

    def _no_limit(self, placed: Placed) -> str:
        """Return why the client refuses a line in a constraints file."""
        declaration = placed.declaration
        if self.client == "uv":
            url = declaration.url_span
            unnamed = url is not None and url.start == declaration.span.start
            return "uv takes no constraint without a name" if unnamed else ""
        if not declaration.valid:
            return ""
        if not name_of(placed):
            return "pip takes no constraint without a name"
        if declaration.editable:
            return "pip takes no editable constraint"
        return "pip takes no constraint with an extra" if declaration.extras else ""

    def _include(
        self, document: Document, include: Include, constraint: bool, stack: tuple[str, ...]
    ) -> None:
        # pip reads `-r` inside a constraints file as requirements; uv keeps them constraints.
        inner = include.constraint or (constraint and self.client == "uv")
        at = include.span.start
        if self.client == "uv":
            from torchpin.select.uv_reading import value_of

            include = include._replace(path=value_of(document, at, include.path))
        if "://" in include.path:
            because = f"{redact(include.path)} is a URL and not read: name a local copy of it"
            self.unread.append(Unread(document, because, at, inner))
            return
        path = os.path.normpath(os.path.join(os.path.dirname(document.path), include.path))
        key = os.path.abspath(path)
        if self.client == "uv":
            # uv reads each file once as requirements and once as constraints.
            if (key, inner) in self._uv_visited:
                return
            self._uv_visited.add((key, inner))
        elif key in stack:
            self.problems.append((document, f"{include.path} includes itself; pip stops here", at))
            return
        self.followed += 1
        if len(stack) > DEEPEST or self.followed > MOST:
            what = f"{DEEPEST} files one in the other" if len(stack) > DEEPEST else f"{MOST} files"
            because = f"more than {what} are included: {include.path} is not followed"
            if len(self.unread) < MOST or all(one.constraint != inner for one in self.unread):
                self.unread.append(Unread(document, because, at, inner))
            return
        try:
            loaded = self.load(path)
        except TorchpinError as error:
            if document.kind == "part":
                because = f"{include.path} is not here: what it asks for is not known"
                self.unread.append(Unread(document, because, at, inner))
                return
            message = f"cannot read the included file {include.path}: {error.message}"
            self.problems.append((document, message, at))
            return
        outer, self.default = self.default, None
        self.visit(loaded, inner, (*stack, key))
        nested, self.default = self.default, outer
        if self.client != "uv" or inner or nested is None:
            return
        if outer is None:
            self.default = nested
        elif outer.url != nested.url:
            self._two_defaults(document, outer, nested, at)

    def _two_defaults(
        self, document: Document, one: PlacedIndex, other: PlacedIndex, at: int
    ) -> None:
        urls = f"{redact(one.url)} and {redact(other.url)}"
        self.problems.append((document, f"uv stops at two --index-url: {urls}", at))

    # -- index lines

    def _options(self, document: Document) -> None:
        """Take the index options of one command, which count before any file that it names.

        The last ``--index-url`` stands, every other option adds; the order among them is free.
        """
        lines = [line for line in document.indexes if not line.misplaced]
        placed = [self.placed(document, line, line.option, line.url) for line in lines]
        mains = [index for index in placed if index.option == "--index-url"]
        extras = [index for index in placed if index.option == "--extra-index-url"]
        self.links += [index for index in placed if index.option == "--find-links"]
        if any(index.option == "--no-index" for index in placed):
            self.no_index = True
            self.discarded += mains + extras
            self.urls = []
            return
        self.discarded += mains[:-1]
        if self.client == "uv":
            self.urls += extras
            self.given = mains[-1] if mains else self.given
            return
        if mains:
            self.urls = [mains[-1], *self.urls[1:]]
        self.urls += extras

    def _settings(self) -> None:
        """Take what a project file adds to a command of ``uv pip``: it counts behind the command's
        own options and before the files that it names."""
        if self.client != "uv" or self.part is None:
            return
        for option, url in self.part.settings:
            index = self.placed(None, None, option, url)
            if option == "--find-links":
                self.links.append(index)
            elif option == "--index-url":
                self.given = self.given or index
            elif not self.no_index:
                self.urls.append(index)

    def _pip_line(self, document: Document, lines: tuple[IndexLine, ...]) -> None:
        """Run one physical line as pip does: no-index, index-url, extras, the first link page."""
        included = any(
            lines[0].line_span.start <= include.order < lines[0].line_span.end
            for include in document.includes
        )
        placed = [self.placed(document, line, line.option, line.url) for line in lines]
        if included:  # pip follows the include and reads nothing else of the line
            self.discarded += placed
            return
        if any(index.option == "--no-index" for index in placed):
            self.no_index = True
            self.discarded += [index for index in self.urls if index.line is not None]
            self.urls = []
        mains = [index for index in placed if index.option == "--index-url"]
        extras = [index for index in placed if index.option == "--extra-index-url"]
        links = [index for index in placed if index.option == "--find-links"]
        if self.no_index:
            self.discarded += mains + extras
        else:
            if mains:
                self.discarded += [index for index in self.urls if index.line is not None]
                self.discarded += mains[:-1]
                self.urls = [mains[-1]]
            self.urls += extras
        self.links += links[:1]
        self.discarded += links[1:]

    def _uv_line(self, document: Document, lines: tuple[IndexLine, ...], constraint: bool) -> None:
        """Read one physical line as uv does: the first option with a value takes all of it.

        Lines of a constraints file do not count, but two default indexes are an error there too.
        """
        from torchpin.select.uv_reading import joined, rest_of_line, value_of

        begin = lines[0].line_span.start
        ordered = sorted(
            (line for line in document.indexes if line.line_span.start == begin),
            key=lambda line: line.span,
        )
        valued = [line for line in ordered if line.option != "--no-index"]
        if len(valued) < len(ordered) and (not valued or ordered[0].option == "--no-index"):
            self.no_index = self.no_index or not constraint
            ordered = valued
        if not ordered or (constraint and ordered[0].option != "--index-url"):
            return
        line = ordered[0]
        url = value_of(document, line.span.start, line.url)
        index = self.placed(document, line, line.option, url)
        if joined(document, line):
            because = "uv does not join the lines of an index as pip does"
            self.unread.append(Unread(document, because, line.span.start, False))
            return
        rest = rest_of_line(document, line.url_span.end)
        if rest:
            message = f"uv takes the rest of the line for a part of the URL of {line.option}"
            if line.option == "--find-links":
                self.problems.append((document, message, line.span.start))
                return
            # The URL with the rest of the line in it leads nowhere; uv goes on without it.
            self.discarded += [self.placed(document, x, x.option, x.url) for x in ordered]
            if line.option == "--extra-index-url":
                return
            self.broken += [] if constraint else [(document, message, line.span.start)]
            index = index._replace(url=f"{url} {rest}")
        if line.option == "--find-links":
            self.links.append(index)
        elif line.option == "--extra-index-url":
            self.urls.append(index)
        elif self.default is None:
            self.default = index
        else:
            self._two_defaults(document, self.default, index, line.span.start)

    def indexes(self) -> tuple[PlacedIndex, ...]:
        """Return the effective indexes in the order of the client."""
        if self.no_index:
            return _once(self.links)
        if self.client == "uv":
            if self.broken and not self.given:
                return _once([*self.urls, *self.links])
            last = self.given or self.default or self.placed(None, None, "", "")
            return _once([*self.urls, last, *self.links])
        return _once([*self.urls, *self.links])


def _once(indexes: Sequence[PlacedIndex]) -> tuple[PlacedIndex, ...]:
    """Return indexes without those of a line that was read before (a file included twice)."""
    found: dict[tuple[str, int, str], PlacedIndex] = {}
    for index in indexes:
        path = index.document.path if index.document is not None else ""
        start = index.line.span.start if index.line is not None else -1
        found.setdefault((path, start, index.url), index)
    return tuple(found.values())


def _by_line(document: Document) -> list[tuple[IndexLine, ...]]:
    """Return the index lines that the client reads, those of one line together."""
    groups: dict[int, list[IndexLine]] = {}
    for line in document.indexes:
        if not line.misplaced:
            groups.setdefault(line.line_span.start, []).append(line)
    return [tuple(lines) for lines in groups.values()]


def install_of(
    root: Document,
    load: Callable[[str], Document],
    *,
    client: str,
    private: Mapping[str, str] | None = None,
    extra_indexes: Sequence[str] = (),
    part: Part | None = None,
) -> Install:
    """Return what ``client`` (``pip`` or ``uv``) would install from ``root``.

    Args:
        root: the document given on the command line.
        load: reads an included document by its path; may raise a ``TorchpinError``.
        client: whose rules to follow.
        private: what the profile says about URLs (see ``channels.index_kind``).
        extra_indexes: indexes of the command line or environment, in order; an entry may
            begin with its option (``--index-url URL``), else it is an extra index.
        part: the command or section whose document ``root`` is.

    Missing includes, cycles and what the client refuses become problems of the install.
    """
    walk = _Walk(load, client, private or {})
    walk.part = part
    walk.command_line(extra_indexes)
    walk.visit(root, False, (os.path.abspath(root.path),))
    if walk.broken and not (walk.urls or walk.links or walk.given):
        walk.problems += walk.broken
    return Install(
        root=root,
        name=part.name if part is not None else None,
        client=client,
        documents=tuple(walk.documents),
        requirements=tuple(walk.requirements),
        constraints=tuple(walk.constraints),
        indexes=walk.indexes(),
        discarded=_once(walk.discarded),
        pre=walk.pre,
        no_index=walk.no_index,
        problems=tuple(walk.problems),
        unread=tuple(walk.unread),
        best_match=part.best_match if part is not None else False,
        torch_backend=part.torch_backend if part is not None else None,
    )
