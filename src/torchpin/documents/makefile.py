"""Makefiles and justfiles: variables with defaults, and what their recipes install.

Sources: https://www.gnu.org/software/make/manual/ and https://just.systems/man/en/. Each recipe
line is a script of its own; a target is an environment of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping

from torchpin.documents.atoms import Atom, Source, Word, cut, span_of, text_of, unknown
from torchpin.documents.base import Document, Span
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.parts import Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import read_script
from torchpin.errors import TorchpinError
from torchpin.named import NamedTuple
from torchpin.patterns import regex

_ASSIGN = regex(
    r"(?P<mods>(?:(?:export|override|private)\s+)*)(?P<name>[A-Za-z_.][\w.-]*)\s*"
    r"(?P<op>::?:?=|\?=|\+=|!=|=)[ \t]*"
)
_EXPORT = regex(r"export\s+([A-Za-z_]\w*(?:\s+[A-Za-z_]\w*)*)\s*$")
_RULE = regex(r"(?P<targets>[^\s:=#][^:=#]*?)\s*&?::?(?!=)(?P<rest>.*)", re.DOTALL)
_DEFINE = regex(r"\s*(?:(?:override|export)\s+)*define\s+([A-Za-z_.][\w.-]*)\s*(?:[:?+]*=)?\s*$")
_ENDEF = regex(r"\s*endef\b")
_INCLUDE = regex(r"\s*(?:-|s)?include\s+")
_CONDITION = regex(r"\s*(ifeq|ifneq|ifdef|ifndef)\b")
_JUST_ASSIGN = regex(r"(?P<export>export\s+)?(?P<name>[A-Za-z_][\w-]*)\s*:=\s*")
_JUST_RECIPE = regex(r"@?(?P<name>[A-Za-z_][\w-]*)(?P<args>[^:]*):(?!=)")
_JUST_ARG = regex(
    r"[+*]*(?P<export>\$)?(?P<name>[A-Za-z_][\w-]*)\s*=\s*"
    r"(?:\"(?P<double>[^\"\\]*)\"|'(?P<single>[^']*)'|(?P<variable>[A-Za-z_][\w-]*)(?![\w(-]))"
)
_JUST_EXPORTS = regex(r"set\s+export\s*(?::=\s*(true|false)\s*)?(?:#.*)?")
_JUST_TEXT = regex(r"\"([^\"\\]*)\"|'([^']*)'")
_JUST_DEFAULT = regex(
    r"(?:env_var_or_default|env)\(\s*(?:\"[^\"]*\"|'[^']*')\s*,\s*(?:\"([^\"\\]*)\"|'([^']*)')\s*\)"
)
_JUST_USE = regex(r"\{\{\s*([^{}]*?)\s*\}\}")
_JUST_ATTRIBUTES = regex(r"\[(.*)\]\s*")
_JUST_SYSTEMS = {
    "linux": "sys_platform == 'linux'",
    "macos": "sys_platform == 'darwin'",
    "windows": "sys_platform == 'win32'",
    "unix": "sys_platform != 'win32'",
}
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

    def __init__(self, file: Document, load: Callable[[str], bytes] | None = None) -> None:
        self.file = file
        self.load = load
        """Gives the bytes of an included file."""
        self.text = file.text
        self.variables: dict[str, Word] = {}
        self.exported: set[str] = set()
        self.own: dict[str, dict[str, Word]] = {}
        """Target → its own variables."""
        self.own_exported: dict[str, set[str]] = {}
        """Target → those of them that its recipe sees in its environment."""
        self.readers: list[Reader] = []
        self.included = 0
        """Files that were taken in."""

    def read(self) -> Iterator[Part]:
        """Yield the parts of all recipes."""
        lines = list(_logical_lines(self.text))
        self.define(lines)
        target = ""
        reader: Reader | None = None
        defining = False
        for line in lines:
            if _DEFINE.match(line.text) and not line.recipe:
                defining = True
            if defining:
                defining = _ENDEF.match(line.text) is None
                continue
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
        scope = {**self.variables, **own}
        expanded = self.expanded(word, scope, 0)
        if len(expanded) > _LONGEST:
            return
        exported = self.exported | self.own_exported.get(target, set())
        environ = {
            name: self.expanded(value, scope, 0)
            for name, value in scope.items()
            if name in exported
        }
        for line in _lines_of(expanded):
            reader.fresh()
            reader.read(read_script(Source(line), environ))

    # -- variables

    def define(self, lines: list[_Line], depth: int = 0) -> None:
        """Take in the variables: recipes see what they are at the end of the file.

        ``depth``: of the conditions that an including file has put around it all.
        """
        block: tuple[str, int] | None = None
        for line in lines:
            text = line.text
            if block is not None:
                if _ENDEF.match(text):
                    name, begin = block
                    end = max(self.text.rfind("\n", 0, line.span.start), begin)
                    self.put(name, (Atom(self.text[begin:end], begin, end, True),), depth)
                    block = None
                continue
            if line.recipe:
                continue
            define = _DEFINE.match(text)
            if define is not None:
                at = self.text.find("\n", line.span.end)
                block = (define[1], at + 1 if at >= 0 else len(self.text))
                continue
            include = _INCLUDE.match(text)
            if include is not None:
                self.include(cut(line.atoms, include.end()), depth)
                continue
            if _CONDITION.match(text):
                depth += 1
                continue
            if re.match(r"\s*endif\b", text):
                depth = max(depth - 1, 0)
                continue
            export = _EXPORT.match(text.strip())
            if export is not None:
                self.exported.update(export[1].split())
                continue
            begin = len(text) - len(text.lstrip())
            match = _ASSIGN.match(text, begin)
            scope, exported = self.variables, self.exported
            if match is None:
                rule = _RULE.match(text)
                if rule is None:
                    continue
                start = rule.start("rest") + len(rule["rest"]) - len(rule["rest"].lstrip())
                match = _ASSIGN.match(text, start)
                if match is None:
                    continue
                target = rule["targets"].split()[0]
                scope = self.own.setdefault(target, {})
                exported = self.own_exported.setdefault(target, set())
            if "export" in match["mods"]:
                exported.add(match["name"])
            self.assign(line, match, scope, depth)

    def put(self, name: str, value: Word, depth: int) -> None:
        """Set a variable, maybe inside of a condition."""
        have = self.variables.get(name)
        if depth and have is not None and text_of(have) != text_of(value):
            at = span_of(value).start
            value = (unknown(name, at, at),)
        self.variables[name] = value

    def include(self, word: Word, depth: int) -> None:
        """Take in the variables of included files: they are judged, and edited nowhere from here.

        A file that cannot be read may be made by a rule: nothing is known of it.
        """
        names = self.expanded(word, self.variables, 0)
        at = span_of(word).start
        for path in text_of(names).split("#")[0].split():
            if self.load is None or self.included >= _DEEPEST or set("$*?[") & set(path):
                continue
            self.included += 1
            try:
                data = self.load(os.path.join(os.path.dirname(self.file.path), path))
            except TorchpinError:
                continue
            other = _Makefile(file_of(self.file.path, data, "makefile"), self.load)
            other.included = self.included
            other.variables = dict(self.variables)
            other.define(list(_logical_lines(other.text)), depth)
            self.included = other.included
            for name, value in other.variables.items():
                if value is not self.variables.get(name):
                    self.variables[name] = tuple(
                        Atom(one.value, at, at, False, None, name, one.known) for one in value
                    )
            self.exported |= other.exported

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

    def called(
        self, word: Word, scope: Mapping[str, Word], depth: int
    ) -> tuple[Word, Mapping[str, Word]] | None:
        """Return what ``call NAME,argument…`` stands for, and the scope in which; None: nothing
        that is known."""
        text = text_of(word)
        commas = [len("call")]
        level = 0
        for at, char in enumerate(text):
            level += (char in "({") - (char in ")}")
            if char == "," and level == 0:
                commas.append(at)
        pieces = [
            cut(word, begin + 1, end)
            for begin, end in zip(commas, [*commas[1:], len(text)], strict=True)
        ]
        value = scope.get(text_of(pieces[0]).strip())
        if value is None:
            return None
        given = {
            str(number): self.expanded(one, scope, depth + 1) for number, one in enumerate(pieces)
        }
        empty: dict[str, Word] = {str(number): () for number in range(1, 10)}
        return value, {**scope, **empty, **given}

    def expanded(self, word: Word, scope: Mapping[str, Word], depth: int) -> Word:
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
            inside: Mapping[str, Word] = scope
            value = scope.get(name)
            if name.startswith("call ") and depth <= _DEEPEST:
                begin = text.index("call ", index)
                call = self.called(cut(word, begin, stop - 1), scope, depth)
                value, inside = call if call is not None else (None, scope)
            if value is None or depth > _DEEPEST:
                shown = re.match(r"[\w.-]*", name)
                found.append(unknown(shown[0] if shown is not None else name, *span))
            else:
                inner = self.expanded(value, inside, depth + 1)
                found += [atom.used_at(*span, name) for atom in inner]
            if len(found) > _LONGEST:
                return tuple(found)
            at = index = stop
        found += cut(word, at)
        return tuple(found)


def _lines_of(word: Word) -> Iterator[Word]:
    """Yield the lines that a recipe line has become: a variable may hold several."""
    text = text_of(word)
    at = 0
    for match in re.finditer(r"(?<!\\)\n|\Z", text):
        lead = re.compile(r"[ \t]*[@+-]*[ \t]*").match(text, at)
        begin = lead.end() if lead is not None and at else at
        if begin < match.start():
            yield cut(word, begin, match.start())
        at = match.end()


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


def read_makefile(path: str, data: bytes, load: Callable[[str], bytes] | None = None) -> Document:
    """Return the document of a Makefile; never raises.

    ``load`` gives the bytes of the files that it includes; what cannot be read is passed over.
    """
    file = file_of(path, data, "makefile")
    if INSTALLS.search(file.text) is None:
        return file
    file = file._replace(comments=notes_in(file.text))
    return file._replace(parts=tuple(_Makefile(file, load).read()))


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
    recipes: list[tuple[str, str, re.Match[str], int, list[tuple[int, int]]]] = []
    all_exported = False
    systems: list[str] = []
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
        attributes = _JUST_ATTRIBUTES.fullmatch(body)
        if attributes is not None:
            named = [one.strip() for one in attributes[1].split(",")]
            systems += [_JUST_SYSTEMS[one] for one in named if one in _JUST_SYSTEMS]
            continue
        setting_line = _JUST_EXPORTS.fullmatch(body)
        if setting_line is not None:
            all_exported = setting_line[1] != "false"
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
            current = []
            recipes.append((recipe["name"], " or ".join(systems), recipe, line.start(), current))
            systems = []
    for name, marker, head, offset, body_lines in recipes:
        where = f"recipe {name} {marker}" if marker else f"recipe {name}"
        setting = Setting(file, prefix=f"recipe {name}, ", environment=where)
        reader = Reader(setting)
        own, given = _just_parameters(head, offset, variables)
        scope = {**variables, **own}
        seen = set(scope) if all_exported else exported | given
        environ = {key: value for key, value in scope.items() if key in seen}
        for word in _just_scripts(file.text, body_lines):
            reader.fresh()
            reader.read(read_script(Source(_interpolated(word, scope)), environ))
        parts += [one._replace(marker=marker or None) for one in reader.parts]
    return file._replace(parts=tuple(parts))


def _just_value(body: str, at: int, offset: int) -> Word | None:
    match = _JUST_TEXT.match(body, at) or _JUST_DEFAULT.match(body, at)
    if match is None or body[match.end() :].split("#")[0].strip():
        return None
    which = 1 if match[1] is not None else 2
    return (Atom(match[which], offset + match.start(which), offset + match.end(which), True),)


def _just_parameters(
    head: re.Match[str], offset: int, variables: Mapping[str, Word]
) -> tuple[dict[str, Word], set[str]]:
    """Return the defaults of a recipe's parameters, and which of these it exports (``$name``)."""
    own: dict[str, Word] = {}
    exported: set[str] = set()
    for one in _JUST_ARG.finditer(head["args"]):
        name, variable = one["name"], one["variable"]
        if variable is not None:
            value = own.get(variable) or variables.get(variable)
            start = offset + head.start("args") + one.start("variable")
            span = (start, start + len(variable))
            own[name] = (
                tuple(atom.used_at(*span, variable) for atom in value)
                if value
                else (unknown(variable, *span),)
            )
        else:
            which = "double" if one["double"] is not None else "single"
            start = offset + head.start("args") + one.start(which)
            own[name] = (Atom(one[which], start, start + len(one[which]), True),)
        if one["export"]:
            exported.add(name)
    return own, exported


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
