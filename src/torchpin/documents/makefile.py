"""Makefiles: variables with defaults, and what their recipes install.

Source: https://www.gnu.org/software/make/manual/. Each recipe line is a script of its own; a target
is an environment of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping

from torchpin.documents.atoms import Atom, Source, Word, cut, span_of, text_of, unknown
from torchpin.documents.base import Document
from torchpin.documents.command_parts import Setting
from torchpin.documents.commands import Reader
from torchpin.documents.make_lines import Line, closing_bracket, lines_of, logical_lines
from torchpin.documents.parts import Part, file_of
from torchpin.documents.scripts import INSTALLS, notes_in
from torchpin.documents.shell import read_script
from torchpin.errors import TorchpinError
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
_DEEPEST = 12
_LONGEST = 2_000
"""Atoms that a value may grow to."""


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
        lines = list(logical_lines(self.text))
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
        for line in lines_of(expanded):
            reader.fresh()
            reader.read(read_script(Source(line), environ))

    # -- variables

    def define(self, lines: list[Line], depth: int = 0) -> None:
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
            other.define(list(logical_lines(other.text)), depth)
            self.included = other.included
            for name, value in other.variables.items():
                if value is not self.variables.get(name):
                    self.variables[name] = tuple(
                        Atom(one.value, at, at, False, None, name, one.known) for one in value
                    )
            self.exported |= other.exported

    def assign(self, line: Line, match: re.Match[str], scope: dict[str, Word], depth: int) -> None:
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
                close = closing_bracket(text, index + 1)
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


def read_makefile(path: str, data: bytes, load: Callable[[str], bytes] | None = None) -> Document:
    """Return the document of a Makefile; never raises.

    ``load`` gives the bytes of the files that it includes; what cannot be read is passed over.
    """
    file = file_of(path, data, "makefile")
    if INSTALLS.search(file.text) is None:
        return file
    file = file._replace(comments=notes_in(file.text))
    return file._replace(parts=tuple(_Makefile(file, load).read()))
