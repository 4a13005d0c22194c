"""What another file installs with the arguments of this one: builds, called workflows, actions.

Such a part is judged where its argument is written, as that is what decides.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from torchpin.documents.atoms import Atom, Word
from torchpin.documents.base import Declaration, Document, IndexLine, Span
from torchpin.documents.parts import Image, Part
from torchpin.named import NamedTuple


class Place(NamedTuple):
    """Where a file may hand over one argument more."""

    at: int
    lead: str
    """What is written before the value, ``{}`` for the name."""
    tail: str
    """What is written behind it."""


class Call(NamedTuple):
    """Where a file calls another one."""

    span: Span
    """What stands for all that is not an argument."""
    name: str
    """Of the caller: ``service web``; the part's own name is put behind it."""
    of: str
    """The file that is called."""
    folder: str = ""
    """Where its files lie, relative to the file that calls."""
    given: Mapping[str, Span] = {}
    """What it hands over, by name, and where that is written."""
    arguments: frozenset[str] = frozenset()
    """Names of what it may hand over."""
    more: Place | None = None


def outside(args: Mapping[str, Word]) -> dict[str, Word]:
    """Return arguments as values that stand outside of the called file, with their names."""
    return {
        name: tuple(
            Atom(
                one.value,
                one.start,
                one.end,
                False,
                Span(one.start, one.end) if one.plain else one.home,
                f"args {name}",
                one.known,
            )
            for one in word
        )
        for name, word in args.items()
    }


def moved(part: Part, file: Document, call: Call, *, reached: bool = False) -> Part | None:
    """Return a part of the called file as one of ``file``; None: no argument reaches it.

    ``reached``: the caller decides over it in another way.
    """
    words = dict(part.words)
    places: dict[Span, Span] = {}
    for line, word in words.items():
        spans = [
            one.home or call.given.get(one.name.removeprefix("args "), call.span)
            for one in word
            if one.name.startswith("args ")
        ]
        if spans:
            places[line] = Span(min(one.start for one in spans), max(one.end for one in spans))
    if not places and not reached:
        return None
    shown = next(iter(places.values()), call.span)
    lines = {line: Span(call.span.start, call.span.start + one) for one, line in enumerate(words)}

    def place(line: Span) -> Span:
        return places.get(line) or lines.get(line, call.span)

    def declaration(one: Declaration) -> Declaration:
        span = places.get(one.line_span, shown)
        return one._replace(
            span=span,
            line_span=place(one.line_span),
            name_span=span,
            specifier_span=span if one.specifier_span is not None else None,
            marker_span=span if one.marker_span is not None else None,
            url_span=span if one.url_span is not None else None,
            hashes=(),
            options=(),
            from_variable=True,
        )

    def index(one: IndexLine) -> IndexLine:
        span = places.get(one.line_span, shown)
        return one._replace(
            span=place(one.line_span),
            url_span=span,
            line_span=place(one.line_span),
            from_variable=True,
        )

    used = [place(line) for line in words]
    document = part.document._replace(
        path=file.path,
        text=file.text,
        encoding=file.encoding,
        bom=file.bom,
        newline=file.newline,
        declarations=tuple(map(declaration, part.document.declarations)),
        indexes=tuple(map(index, part.document.indexes)),
        includes=tuple(
            one._replace(
                path=one.path
                if os.path.isabs(one.path) or "://" in one.path
                else os.path.join(call.folder, one.path),
                span=call.span,
            )
            for one in part.document.includes
        ),
        options=tuple(
            one._replace(span=call.span, value_span=None) for one in part.document.options
        ),
        problems=(),
        comments=(),
    )
    return part._replace(
        document=document,
        name=f"{call.name}, {part.name} of {call.of}",
        span=call.span,
        options_at=None,
        image=Image(part.image.reference, places.get(part.image.span, call.span))
        if part.image is not None
        else None,
        runner=Image(part.runner.reference, call.span) if part.runner is not None else None,
        environment=f"{call.name}: {part.environment}",
        words=tuple(
            (place(line), tuple(_fixed(one, call) for one in word))
            for line, word in words.items()
            if used.count(place(line)) == 1
        ),
        backend=(),
        slips=(),
        written_in=call.of,
    )


def _fixed(atom: Atom, call: Call) -> Atom:
    """Return an atom of the called file as one that is not written in the calling one, but may be
    where it is the default of an argument."""
    span = call.span
    if atom.name.startswith("args "):
        home = atom.home or span
        return atom._replace(start=home.start, end=home.end)
    fixed = Atom(atom.value, span.start, span.end, False, None, atom.name, atom.known)
    more = call.more
    if more is None or atom.name not in call.arguments or not atom.known or atom.home is None:
        return fixed
    lead, tail = more.lead.replace("{}", atom.name), more.tail
    return fixed._replace(home=Span(more.at, more.at), lead=lead, tail=tail)
