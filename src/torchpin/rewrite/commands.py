"""Plans as edits of commands and sections inside files of another kind.

What stands in quotes keeps them: only versions and URLs change, which hold no character that any
shell, JSON, YAML, TOML or ini file treats as special. Options come and go as whole words, or as
whole lines of a list.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from torchpin.catalog.model import WATCHED
from torchpin.documents.atoms import Atom, Word, cut, is_known, text_of
from torchpin.documents.base import Declaration, Document, Edit, IndexLine, Span, apply_edits
from torchpin.documents.kinds import kind_of
from torchpin.documents.loader import kind_by_text, read_as, read_bytes
from torchpin.documents.parts import Part
from torchpin.documents.requirements import read_requirements
from torchpin.errors import RewriteError
from torchpin.patterns import regex
from torchpin.rules.context import Way
from torchpin.rules.model import FileEdits
from torchpin.select.installs import install_of
from torchpin.select.model import Install
from torchpin.select.parts import without_met

LISTS = frozenset(("ini", "requirements", "yaml"))
"""Syntaxes in which each requirement and each option has a line of its own."""


def reread(document: Document, text: str) -> Document:
    """Return the file that a new text of a file of parts makes."""
    data = document.encode(text)
    known = dict(document.called)

    def read(path: str) -> bytes:
        return known[path] if path in known else read_bytes(path)

    return read_as(kind_of(document.path) or kind_by_text(data), document.path, data, read)


def same_part(before: Document, part: Part, after: Document) -> Part | None:
    """Return what became of a part; None if the parts of the files are not the same."""
    if len(before.parts) != len(after.parts):
        return None
    for old, new in zip(before.parts, after.parts, strict=True):
        if old.span.start == part.span.start and old.name == part.name:
            return new
    return None


def edited_part(way: Way, edits: Sequence[FileEdits]) -> Install:
    """Return the install of a part with edits applied in memory.

    Raises:
        RewriteError: the edits make other parts of the file.
    """
    part = way.part
    assert part is not None
    root = part.document
    try:
        texts = {
            os.path.realpath(one.document.path): apply_edits(one.document.text, one.edits)
            for one in edits
        }
    except ValueError as error:  # one variable would need two values
        raise RewriteError(str(error), path=root.path) from error
    mine = os.path.realpath(root.path)
    old, new = reread(root, root.text), reread(root, texts.get(mine, root.text))
    after = same_part(old, part, new)
    if after is None:
        raise RewriteError("the file would hold other commands", path=root.path)
    shared = shared_list(old, part, [path for path in texts if path != mine], root)
    if shared:
        raise RewriteError(f"{shared} installs the same list from elsewhere", path=root.path)
    if part.settings:  # of a project file, which stays as it is
        after = after._replace(
            settings=part.settings, torch_backend=after.torch_backend or part.torch_backend
        )
    other = disagreement(old, new, part, after)
    if other:
        raise RewriteError(f"{other} uses the same variable for another install", path=root.path)
    return without_met(whole_install(way, after, texts), after, way.before)


def whole_install(way: Way, after: Part, texts: Mapping[str, str]) -> Install:
    """Return what a part asks for in place of that of a way, what is there already included.

    Args:
        texts: new texts of files that it includes, by their real paths.

    Raises:
        RewriteError: it includes a file that it did not before.
    """
    documents = {os.path.realpath(one.path): one for one in way.install.documents}
    mine = os.path.realpath(after.document.path)

    def load(path: str) -> Document:
        key = os.path.realpath(path)
        if key not in documents or key == mine:
            raise RewriteError("not part of the install", path=path)
        document = documents[key]
        if key in texts:
            return read_requirements(document.path, document.encode(texts[key]))
        return document

    return install_of(
        after.document,
        load,
        client=way.install.client,
        private=dict(way.private),
        extra_indexes=way.extra_indexes,
        part=after,
    )


def shared_list(old: Document, part: Part, edited: Sequence[str], root: Document) -> str:
    """Return which other part installs a list that is edited for one part, from other indexes;
    ``""`` if none does: what is right for one of them may be wrong for the other."""
    if not edited:
        return ""
    folder = os.path.dirname(root.path)

    def lists(one: Part) -> set[str]:
        return {
            os.path.realpath(os.path.join(folder, include.path))
            for include in one.document.includes
        } & set(edited)

    mine = {line.url for line in part.document.indexes}
    for other in old.parts:
        if (other.span, other.name) == (part.span, part.name) or not lists(other):
            continue
        if {line.url for line in other.document.indexes} != mine:
            return other.name
    return ""


# -- options of a command, lines of a list


def delete_option(part: Part, document: Document, span: Span) -> Edit:
    """Return the edit that takes an option with its value, or a requirement, out of a part."""
    text = document.text
    start, end = span
    if part.syntax == "argument-list":
        before = re.search(r",\s*$", text[:start])
        return Edit(Span(before.start() if before else start, end), "")
    if part.command:
        while start and text[start - 1] in " \t":
            start -= 1
        return Edit(Span(start, end), "")
    line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
    rest = re.match(r"[ \t]*(?:[#;][^\r\n]*)?(?:\r\n|\r|\n|$)", text[end:].lstrip("'\""))
    if part.syntax in LISTS and rest is not None and not text[line:start].strip(" \t-'\""):
        stop = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)").match(text, end)
        return Edit(Span(line, stop.end() if stop else end), "")
    return Edit(Span(start, end), "")


def add_options(part: Part, document: Document, lines: Sequence[str]) -> Edit | None:
    """Return the edit that adds options (``--extra-index-url URL``); None: there is no place."""
    at = part.options_at
    if at is None or not lines:
        return None
    text = document.text
    if part.syntax == "argument-list":
        words = [word for line in lines for word in line.split()]
        return Edit(Span(at, at), "".join(f', "{word}"' for word in words))
    if part.command:
        return Edit(Span(at, at), "".join(f" {line}" for line in lines))
    if part.syntax not in LISTS:
        return None
    begin = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    indent = text[begin:at]
    if indent.strip():
        return None
    dash = "- " if part.syntax == "yaml" else ""
    return Edit(Span(at, at), "".join(f"{dash}{line}{document.newline}{indent}" for line in lines))


def replace_option(part: Part, span: Span, lines: Sequence[str]) -> Edit | None:
    """Return the edit that puts options in the place of one; None: they do not go there."""
    if part.syntax == "argument-list":
        words = [word for line in lines for word in line.split()]
        return Edit(span, ", ".join(f'"{word}"' for word in words))
    if part.command:
        return Edit(span, " ".join(lines))
    return Edit(span, lines[0]) if len(lines) == 1 else None


# -- values that come from variables

SPECIFIER = regex(
    r"(?P<op>[=!<>~]+\s*)(?P<public>[0-9][A-Za-z0-9.!*]*)(?:\+(?P<label>[A-Za-z0-9.]+))?"
)
"""One clause."""
Change = tuple[int, int, str]
"""Replace ``value[start:end]`` of a word by a text."""


def word_of(part: Part, line: Span) -> Word | None:
    """Return the word that a declaration or index was read from; None outside of commands."""
    return next((word for span, word in part.words if span == line), None)


def specifier_edits(part: Part, declaration: Declaration, new: str) -> list[Edit] | None:
    """Return the edits that make the version of a declaration ``new`` (``==2.14.1+cu126``).

    Variables are changed where their one literal is written, text where it stands; a label that
    was not there is added behind the variable. None: some part has no one place.
    """
    word = word_of(part, declaration.line_span)
    if word is None:
        return None
    value = text_of(word)
    if not declaration.specifier:
        at = len(value) if declaration.marker is None else -1
        return changed(word, [(at, at, new)]) if at >= 0 else None
    start = value.find(declaration.specifier, len(declaration.name))
    old = SPECIFIER.fullmatch(declaration.specifier)
    wanted = SPECIFIER.fullmatch(new)
    if start < 0 or wanted is None:
        return None
    if old is None:
        return changed(word, [(start, start + len(declaration.specifier), new)])
    changes: list[Change] = []
    if old["op"].strip() != wanted["op"].strip():
        changes.append((start, start + old.end("op"), wanted["op"]))
    changes.append((start + old.start("public"), start + old.end("public"), wanted["public"]))
    if old["label"] is None and wanted["label"] is not None:
        end = start + old.end()
        changes.append((end, end, f"+{wanted['label']}"))
    elif old["label"] is not None and wanted["label"] is None:
        changes.append((start + old.start("label") - 1, start + old.end("label"), ""))
    elif old["label"] is not None:
        changes.append((start + old.start("label"), start + old.end("label"), wanted["label"]))
    return changed(word, changes)


def channel_edits(
    part: Part, line: IndexLine, pattern: re.Pattern[str], channel: str
) -> list[Edit] | None:
    """Return the edits that make the channel in a URL another; None: it has no one place."""
    word = word_of(part, line.line_span)
    match = pattern.search(text_of(word)) if word is not None else None
    if word is None or match is None:
        return None
    return changed(word, [(match.end(1), match.end(), channel)])


def changed(word: Word, changes: Sequence[Change]) -> list[Edit] | None:
    """Return the edits for changes of a word's value; None: some part has no one place."""
    edits: list[Edit] = []
    for start, end, new in changes:
        if start == end:
            place = insertion(word, start)
            if place is None:
                return None
            edits.append(Edit(Span(place, place), new))
            continue
        found = replaced(cut(word, start, end), new)
        if found is None:
            return None
        edits += found
    return edits


def insertion(word: Word, offset: int) -> int | None:
    """Return where in the file a text may be added behind ``value[:offset]``."""
    at = 0
    for atom in word:
        at += len(atom.value)
        if at == offset:
            return atom.end
        if at > offset:
            return atom.end - (at - offset) if atom.plain else None
    return None


def replaced(atoms: Word, new: str) -> list[Edit] | None:
    """Return the edits that make some atoms read ``new``."""
    if text_of(atoms) == new:
        return []
    if len(atoms) == 1:
        home = Span(atoms[0].start, atoms[0].end) if atoms[0].plain else atoms[0].home
        return [written(atoms[0], home, new)] if home is not None and atoms[0].known else None
    if not new or not is_known(atoms):
        return None
    pattern = "".join("(.+)" if atom.home is not None else re.escape(atom.value) for atom in atoms)
    match = re.fullmatch(pattern, new)
    if match is None:
        return None
    edits: list[Edit] = []
    homes = [(one, one.home) for one in atoms if one.home is not None]
    for (atom, home), text in zip(homes, match.groups(), strict=True):
        if atom.value != text:
            edits.append(written(atom, home, text))
    return edits


def written(atom: Atom, home: Span, new: str) -> Edit:
    """Return the edit that makes the value of an atom another."""
    return Edit(home, f"{atom.lead}{new}{atom.tail}")


def disagreement(old: Document, new: Document, part: Part, after: Part) -> str:
    """Return which other part an edit of a variable would give another version, ``""`` if none.

    What changes in the others must be what this part now says itself. Where cells of a matrix
    share the command, neither an index nor a pin must change for a cell that asks for another
    version.
    """
    mine = {(one.name, one.specifier) for one in after.document.declarations}
    named = {one.name for one in after.document.declarations if one.name in WATCHED}
    urls = {line.url for line in after.document.indexes}
    for before, then in zip(old.parts, new.parts, strict=True):
        if before.span == part.span and before.name == part.name:
            continue
        had = {(one.name, one.specifier) for one in before.document.declarations}
        has = {(one.name, one.specifier) for one in then.document.declarations}
        links = {line.url for line in before.document.indexes}
        if (
            not has - had <= mine
            or not {line.url for line in then.document.indexes} - links <= urls
            or (
                before.span == part.span
                and (links != {line.url for line in then.document.indexes} or has != had)
                and any((name, specifier) not in mine and name in named for name, specifier in has)
            )
        ):
            return before.name
    return ""


def used_elsewhere(way: Way, edits: Sequence[FileEdits]) -> bool:
    """True if an edit changes a variable that the file uses outside of installs, too."""
    part = way.part
    if part is None:
        return False
    text = part.document.text
    names = {
        atom.name
        for _, word in part.words
        for atom in word
        if atom.home is not None and atom.name
        for file in edits
        if file.document is part.document
        for edit in file.edits
        if edit.span.start < atom.home.end and atom.home.start <= edit.span.start
    }
    if not names:
        return False
    uses = frozenset(
        (atom.start, atom.end)
        for one in reread(part.document, text).parts
        for _, word in one.words
        for atom in word
        if not atom.plain
    )
    return any(_serves_more(text, name, uses, frozenset()) for name in names)


ASSIGNED = regex(
    r"[ \t]*(?:(?:export|override|ARG|ENV|local|readonly|declare)[ \t]+)*"
    r"([A-Za-z_][\w-]*)[ \t]*[:?+]{0,2}="
)


def _serves_more(
    text: str, name: str, uses: frozenset[tuple[int, int]], seen: frozenset[str]
) -> bool:
    """True if a variable stands outside of ``uses``, itself or by way of other variables."""
    written = re.escape(name)
    for match in re.finditer(rf"\$[({{]?{written}\b|\{{\{{\s*{written}\b", text):
        if any(start <= match.start() < end for start, end in uses):
            continue
        line = ASSIGNED.match(text, text.rfind("\n", 0, match.start()) + 1)
        if line is None or line.end() > match.start():
            return True
        other = line[1]
        new = other != name and other not in seen
        if new and _serves_more(text, other, uses, seen | {name}):
            return True
    return False
