"""Makefiles and justfiles: variables with defaults, and what their recipes install.

Sources: https://www.gnu.org/software/make/manual/ and https://just.systems/man/en/. Each recipe
line is a script of its own; a target is an environment of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from torchpin.documents.atoms import Atom, Source, Word, cut, span_of, text_of, unknown
from torchpin.documents.base import Document, Span
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.parts import Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import read_script
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_ASSIGN = regex(
    r"(?P<mods>(?:(?:export|override|private)\s+)*)(?P<name>[A-Za-z_.][\w.-]*)\s*"
    r"(?P<op>::?:?=|\?=|\+=|!=|=)[ \t]*"
)
_EXPORT = regex(r"export\s+([A-Za-z_]\w*(?:\s+[A-Za-z_]\w*)*)\s*$")
_RULE = regex(r"(?P<targets>[^\s:=#][^:=#]*?)\s*&?::?(?!=)(?P<rest>.*)", re.DOTALL)
_CONDITION = regex(r"\s*(ifeq|ifneq|ifdef|ifndef)\b")
_JUST_ASSIGN = regex(r"(?P<export>export\s+)?(?P<name>[A-Za-z_][\w-]*)\s*:=\s*")
_JUST_RECIPE = regex(r"@?(?P<name>[A-Za-z_][\w-]*)(?P<args>[^:]*):(?!=)")
_JUST_ARG = regex(r"[$+*]*([A-Za-z_][\w-]*)\s*=\s*(?:\"([^\"\\]*)\"|'([^']*)')")
_JUST_TEXT = regex(r"\"([^\"\\]*)\"|'([^']*)'")
_JUST_DEFAULT = regex(
    r"(?:env_var_or_default|env)\(\s*(?:\"[^\"]*\"|'[^']*')\s*,\s*(?:\"([^\"\\]*)\"|'([^']*)')\s*\)"
)
_JUST_USE = regex(r"\{\{\s*([^{}]*?)\s*\}\}")
_DEEPEST = 12
_LONGEST = 2_000
"""Atoms that a value may grow to."""


class _Line(NamedTuple):
    """A logical line: continuations joined as ``make`` joins them outside recipes."""

    atoms: Word
    text: str
    span: Span
    recipe: bool


class _Makefile:
    """Follows one Makefile."""

    def __init__(self, file: Document) -> None:
        self.file = file
        self.text = file.text
        self.variables: dict[str, Word] = {}
        self.exported: set[str] = set()
        self.own: dict[str, dict[str, Word]] = {}
        """Target → its own variables."""
        self.readers: list[Reader] = []
        self.ambiguous: set[str] = set()

    def read(self) -> Iterator[Part]:
        """Yield the parts of all recipes."""
        lines = list(_logical_lines(self.text))
        self.define(lines)
        target = ""
        reader: Reader | None = None
        for line in lines:
            if not line.recipe:
                match = _RULE.match(line.text)
                if match is None or _ASSIGN.match(line.text):
                    continue
                target = match["targets"].split()[0]
                reader = None
                inline = match["rest"].find(";")
                if inline < 0:
                    continue
                begin = match.start("rest") + inline + 1
                source = Source(cut(line.atoms, begin))
            else:
                source = Source(line.atoms)
            if INSTALLS.search(source.text) is None and "$" not in source.text:
                continue
            if reader is None:
                setting = Setting(
                    self.file,
                    prefix=f"target {target}, " if target else "",
                    environment=f"target {target}",
                )
                reader = Reader(setting)
                self.readers.append(reader)
            self.recipe(source, target, reader)
        for one in self.readers:
            yield from one.parts

    def recipe(self, source: Source, target: str, reader: Reader) -> None:
        """Take in a recipe line."""
        lead = re.match(r"[ \t]*[@+-]*[ \t]*", source.text)
        word = source.cut(lead.end() if lead is not None else 0, len(source.text))
        own = self.own.get(target, {})
        expanded = self.expanded(word, {**self.variables, **own}, 0, recipe=True)
        if len(expanded) > _LONGEST:
            return
        environ = {
            name: self.expanded(value, self.variables, 0)
            for name, value in self.variables.items()
            if name in self.exported
        }
        reader.fresh()
        reader.read(read_script(Source(expanded), environ))

    # -- variables

    def define(self, lines: list[_Line]) -> None:
        """Take in the variables: recipes see what they are at the end of the file."""
        depth = 0
        skipping = False
        for line in lines:
            if line.recipe:
                continue
            text = line.text
            if _CONDITION.match(text):
                depth += 1
                continue
            if re.match(r"\s*endif\b", text):
                depth = max(depth - 1, 0)
                continue
            if re.match(r"\s*define\b", text):
                skipping = True
            if re.match(r"\s*endef\b", text):
                skipping = False
                continue
            if skipping:
                continue
            export = _EXPORT.match(text.strip())
            if export is not None:
                self.exported.update(export[1].split())
                continue
            begin = len(text) - len(text.lstrip())
            match = _ASSIGN.match(text, begin)
            scope = self.variables
            if match is None:
                rule = _RULE.match(text)
                if rule is None:
                    continue
                start = rule.start("rest") + len(rule["rest"]) - len(rule["rest"].lstrip())
                match = _ASSIGN.match(text, start)
                if match is None:
                    continue
                scope = self.own.setdefault(rule["targets"].split()[0], {})
            self.assign(line, match, scope, depth)

    def assign(self, line: _Line, match: re.Match[str], scope: dict[str, Word], depth: int) -> None:
        """Take in one assignment."""
        name, operator = match["name"], match["op"]
        end = len(line.text)
        comment = re.compile(r"(?<!\\)#").search(line.text, match.end())
        if comment is not None:
            end = comment.start()
        while end > match.end() and line.text[end - 1].isspace():
            end -= 1
        value = cut(line.atoms, match.end(), end)
        if "export" in match["mods"]:
            self.exported.add(name)
        at = line.span.start
        if operator == "!=":
            scope[name] = (unknown(name, at, at),)
        elif operator == "?=" and name in scope:
            return
        elif operator == "+=" and name in scope:
            scope[name] = (*scope[name], Atom(" ", at, at, False), *value)
        elif depth and name in scope and text_of(scope[name]) != text_of(value):
            scope[name] = (unknown(name, at, at),)
        elif depth:
            scope[name] = value
        else:
            if name in scope and operator.endswith(":="):
                value = self.expanded(value, scope, 0)
            scope[name] = value

    def expanded(
        self, word: Word, scope: Mapping[str, Word], depth: int, *, recipe: bool = False
    ) -> Word:
        """Return a word with make's variables replaced."""
        text = text_of(word)
        if "$" not in text:
            return word
        found: list[Atom] = []
        at = index = 0
        while True:
            index = text.find("$", index)
            if index < 0 or index + 1 >= len(text):
                break
            following = text[index + 1]
            found += cut(word, at, index)
            if following == "$":
                dollar = cut(word, index, index + 1)
                found += dollar
                at = index = index + 2
                continue
            if following in "({":
                close = _closing(text, index + 1)
                if close < 0:
                    at = index
                    index += 1
                    break
                name, stop = text[index + 2 : close].strip(), close + 1
            else:
                name, stop = following, index + 2
            span = span_of(cut(word, index, stop))
            value = scope.get(name)
            if value is None or depth > _DEEPEST:
                shown = re.match(r"[\w.-]*", name)
                found.append(unknown(shown[0] if shown is not None else name, *span))
            else:
                inner = self.expanded(value, scope, depth + 1)
                found += [atom.used_at(*span, name) for atom in inner]
            if len(found) > _LONGEST:
                return tuple(found)
            at = index = stop
        found += cut(word, at)
        return tuple(found)


def _closing(text: str, start: int) -> int:
    """Return the offset of the bracket that closes the one at ``start``, -1 if none does."""
    pairs = {"(": ")", "{": "}"}
    opening = text[start]
    closing = pairs[opening]
    depth = 0
    for at in range(start, min(len(text), start + 2000)):
        if text[at] == opening:
            depth += 1
        elif text[at] == closing:
            depth -= 1
            if depth == 0:
                return at
    return -1


def _logical_lines(text: str) -> Iterator[_Line]:
    """Yield the lines of a Makefile; a recipe line keeps its continuations for the shell."""
    physical = list(re.finditer(r"[^\n]*(?:\n|\Z)", text))
    at = 0
    while at < len(physical):
        first = physical[at]
        body = first[0].rstrip("\r\n")
        recipe = body.startswith("\t")
        begin = first.start() + (1 if recipe else 0)
        atoms: list[Atom] = []
        end = begin
        while at < len(physical):
            line = physical[at]
            body = line[0].rstrip("\r\n")
            start = line.start() if atoms or not recipe else begin
            if atoms and recipe and body.startswith("\t"):
                start = line.start() + 1
            end = line.start() + len(body)
            slashes = len(body) - len(body.rstrip("\\"))
            at += 1
            if slashes % 2 and at < len(physical):
                if recipe:
                    stop = line.start() + len(line[0])
                    atoms.append(Atom(text[start:stop], start, stop, True))
                else:
                    atoms.append(Atom(text[start : end - 1], start, end - 1, True))
                    atoms.append(Atom(" ", end - 1, end, False))
                continue
            atoms.append(Atom(text[start:end], start, end, True))
            break
        word = tuple(atom for atom in atoms if atom.value)
        value = text_of(word)
        if value.strip() and not (not recipe and value.lstrip().startswith("#")):
            yield _Line(word, value, Span(begin, end), recipe)


def read_makefile(path: str, data: bytes) -> Document:
    """Return the document of a Makefile; never raises."""
    file = file_of(path, data, "makefile")
    if INSTALLS.search(file.text) is None:
        return file
    file = file._replace(comments=notes_in(file.text))
    return file._replace(parts=tuple(_Makefile(file).read()))


# -- just


def read_justfile(path: str, data: bytes) -> Document:
    """Return the document of a justfile; never raises."""
    file = file_of(path, data, "justfile")
    if INSTALLS.search(file.text) is None:
        return file
    file = file._replace(comments=notes_in(file.text))
    parts: list[Part] = []
    variables: dict[str, Word] = {}
    exported: set[str] = set()
    recipes: list[tuple[str, dict[str, Word], list[tuple[int, int]]]] = []
    lines = list(re.finditer(r"[^\n]*(?:\n|\Z)", file.text))
    current: list[tuple[int, int]] | None = None
    for line in lines:
        body = line[0].rstrip("\r\n")
        if not body.strip():
            continue
        if body[0] in " \t":
            if current is not None:
                current.append((line.start(), line.start() + len(body)))
            continue
        current = None
        if body.startswith("#"):
            continue
        match = _JUST_ASSIGN.match(body)
        if match is not None:
            value = _just_value(body, match.end(), line.start())
            at = line.start()
            variables[match["name"]] = value or (unknown(match["name"], at, at),)
            if match["export"]:
                exported.add(match["name"])
            continue
        recipe = _JUST_RECIPE.match(body)
        if recipe is not None:
            own: dict[str, Word] = {}
            for argument in _JUST_ARG.finditer(recipe["args"]):
                which = 2 if argument[2] is not None else 3
                start = line.start() + recipe.start("args") + argument.start(which)
                own[argument[1]] = (
                    Atom(argument[which], start, start + len(argument[which]), True),
                )
            current = []
            recipes.append((recipe["name"], own, current))
    for name, own, body_lines in recipes:
        setting = Setting(file, prefix=f"recipe {name}, ", environment=f"recipe {name}")
        reader = Reader(setting)
        scope = {**variables, **own}
        environ = {key: variables[key] for key in exported if key in variables}
        for word in _just_scripts(file.text, body_lines):
            reader.fresh()
            reader.read(read_script(Source(_interpolated(word, scope)), environ))
        parts += reader.parts
    return file._replace(parts=tuple(parts))


def _just_value(body: str, at: int, offset: int) -> Word | None:
    match = _JUST_TEXT.match(body, at) or _JUST_DEFAULT.match(body, at)
    if match is None or body[match.end() :].split("#")[0].strip():
        return None
    which = 1 if match[1] is not None else 2
    return (Atom(match[which], offset + match.start(which), offset + match.end(which), True),)


def _just_scripts(text: str, lines: list[tuple[int, int]]) -> Iterator[Word]:
    """Yield the scripts of a recipe: one a line, or all of it where it begins with ``#!``."""
    if lines and text[lines[0][0] : lines[0][1]].lstrip().startswith("#!"):
        first = text[lines[0][0] : lines[0][1]]
        if re.search(r"\b(?:ba|da|z|k)?sh\b", first):
            yield (Atom(text[lines[0][1] : lines[-1][1]], lines[0][1], lines[-1][1], True),)
        return
    at = 0
    while at < len(lines):
        start, end = lines[at]
        while text[end - 1] == "\\" and at + 1 < len(lines):
            at += 1
            end = lines[at][1]
        lead = re.match(r"[ \t]*[@-]*[ \t]*", text[start:end])
        start += lead.end() if lead is not None else 0
        yield (Atom(text[start:end], start, end, True),)
        at += 1


def _interpolated(word: Word, scope: Mapping[str, Word]) -> Word:
    """Return a recipe line with ``{{name}}`` replaced."""
    text = text_of(word)
    found: list[Atom] = []
    at = 0
    for match in _JUST_USE.finditer(text):
        found += cut(word, at, match.start())
        span = span_of(cut(word, match.start(), match.end()))
        value = scope.get(match[1])
        if value is None:
            found.append(unknown(match[1], *span))
        else:
            found += [atom.used_at(*span, match[1]) for atom in value]
        at = match.end()
    found += cut(word, at)
    return tuple(found)
