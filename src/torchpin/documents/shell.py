"""Shell scripts to the commands that they run: words with their places, variables replaced.

tree-sitter-bash finds what is a command, a quote, an expansion; this follows assignments in the
order of the text. What cannot be known (a command's output, a variable that nothing sets, what a
loop or an untaken branch leaves) is a stand-in, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchpin.documents.atoms import Atom, Source, Word, is_known, span_of, text_of, unknown
from torchpin.documents.base import Span
from torchpin.named import NamedTuple
from torchpin.patterns import regex

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LARGEST = 512 * 1024
"""Characters of a script; a longer one carries data."""
_DEEPEST = 60
_LONGEST = 300
"""Atoms of one word or value."""
_MANY = 20_000
"""Nodes with commands that are looked at in one script."""
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_OPERATOR = regex(r":?[-=+?]")
_REPLACE = regex(r"(//?)([A-Za-z0-9._-]+)/?([A-Za-z0-9._-]*)$")
_SPECIAL = regex(r"['\"\\$`]")
_IN_QUOTES = regex(r"[\\$`]")
_JOINED = regex(r"(?<=[^\s\\;&|])\\\n(?=[^\s#])")
"""A word that goes on in the next line, which the grammar takes for two."""
_TESTS = frozenset(("[", "[[", "test", "command", "which", "type", "grep", "hash", "nvidia-smi"))

_parser: Parser | None = None


class Text(NamedTuple):
    """A word of a command."""

    atoms: Word
    span: Span
    """With its quotes."""

    @property
    def value(self) -> str:
        """The word as the command sees it."""
        return text_of(self.atoms)

    @property
    def known(self) -> bool:
        """False if some part of it cannot be known."""
        return is_known(self.atoms)


class Redirect(NamedTuple):
    """A file that a command writes to, where its name looks like a version: ``>=2.0``."""

    text: str
    before: Text
    span: Span


_STATEMENTS = ("command", "list", "pipeline", "redirected_statement")
"""What follows on the line of a here-document's mark."""


class Written(NamedTuple):
    """``cat > FILE <<EOF``: a file that a script makes itself."""

    path: Text
    lines: tuple[Text, ...]
    """Without comments and blank lines."""
    literal: bool
    """The shell replaces nothing in it: the mark is quoted."""
    more: bool
    """``>>``: it is added to what is there."""


class Command(NamedTuple):
    """One simple command."""

    words: tuple[Text, ...]
    environ: Mapping[str, Word]
    """Variables that the command finds in its environment, as far as the script sets them."""
    span: Span
    branch: str
    """Where it stands: ``""``, or a path of branches (``if 12/else``), loops and functions."""
    unsure: str | None
    """Why it may not run: one sentence."""
    slips: tuple[Redirect, ...] = ()
    written: Written | None = None
    """The file that it writes a here-document into."""


class Variable(NamedTuple):
    """What a variable holds: words, of which all but arrays have one."""

    words: tuple[Word, ...]
    exported: bool = False


def parser() -> Parser:
    """Return the parser, made once."""
    global _parser
    if _parser is None:
        import tree_sitter
        import tree_sitter_bash

        _parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    return _parser


def read_script(
    source: Source,
    environ: Mapping[str, Word] | None = None,
    *,
    shell: Shell | None = None,
) -> Iterator[Command]:
    """Yield the commands of a script in the order of the text; never raises.

    Args:
        source: the script, and where in the file it is written.
        environ: variables of the environment that it starts in.
        shell: one that has read scripts before, whose variables go on (steps of one job).
    """
    if len(source.text) > LARGEST:
        return
    shell = shell if shell is not None else Shell()
    if _JOINED.search(source.text) is not None:
        source = _joined(source)
    shell.start(source, environ or {})
    # One byte a character, so that offsets agree; the values are cut from the text itself.
    tree = parser().parse(source.text.encode("ascii", "replace"))
    yield from shell.walk(tree.root_node, "", None, 0)


class Shell:
    """Follows a script."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.source = Source(())
        self.text = ""
        self.seen = 0
        self.handlers: dict[str, Callable[[Node, str, str | None, int], Iterator[Command]]] = {
            "command": self.command,
            "redirected_statement": self.redirected,
            "variable_assignment": self.assignment_node,
            "declaration_command": self.declaration,
            "if_statement": self.branches,
            "case_statement": self.branches,
            "for_statement": self.loop,
            "c_style_for_statement": self.loop,
            "while_statement": self.loop,
            "list": self.chain,
            "function_definition": self.function,
            "subshell": self.subshell,
        }

    def start(self, source: Source, environ: Mapping[str, Word]) -> None:
        """Begin a script; variables of an earlier one stay."""
        self.source = source
        self.text = source.text
        self.seen = 0
        for name, word in environ.items():
            self.variables[name] = Variable((word,), True)

    # -- statements

    def walk(self, node: Node, branch: str, unsure: str | None, depth: int) -> Iterator[Command]:
        """Yield the commands below a node."""
        if depth > _DEEPEST:
            return
        for child in node.named_children:
            self.seen += 1
            if self.seen > _MANY:
                return
            yield from self.statement(child, branch, unsure, depth)

    def statement(
        self, node: Node, branch: str, unsure: str | None, depth: int
    ) -> Iterator[Command]:
        """Yield the commands of one statement."""
        if depth > _DEEPEST:
            return
        handler = self.handlers.get(node.type)
        if handler is not None:
            yield from handler(node, branch, unsure, depth + 1)
        elif node.type not in ("comment", "heredoc_body", "test_command"):
            yield from self.walk(node, branch, unsure, depth + 1)

    def chain(self, node: Node, branch: str, unsure: str | None, depth: int) -> Iterator[Command]:
        """Follow ``a && b`` and ``a || b``."""
        before: Node | None = None
        operator = ""
        for child in node.children:
            if child.type in ("&&", "||"):
                operator = child.type
                continue
            if not child.is_named or child.type == "comment":
                continue
            why = unsure
            if operator == "||":
                why = why or "it runs only if the command before it fails"
            elif operator == "&&" and before is not None and self.is_test(before):
                why = why or "it runs only if a test holds"
            yield from self.statement(child, branch, why, depth)
            before = child

    def is_test(self, node: Node) -> bool:
        """True for a statement that only asks."""
        last = node
        while last.type == "list" and last.named_children:
            last = last.named_children[-1]
        if last.type == "redirected_statement" and last.named_children:
            last = last.named_children[0]
        if last.type in ("test_command", "negated_command"):
            return True
        first = self.text[last.start_byte : last.end_byte].split(None, 1)
        return bool(first) and first[0] in _TESTS

    def branches(
        self, node: Node, branch: str, unsure: str | None, depth: int
    ) -> Iterator[Command]:
        """Follow an ``if`` or ``case``: what a branch leaves in variables is not known after it."""
        before = dict(self.variables)
        condition = self.text[node.start_byte : node.end_byte].split("\n", 1)[0][:200]
        place = f"{branch}/{node.type[:2]}{node.start_byte}" if branch else f"if{node.start_byte}"
        why = unsure or "it stands in a branch that may not run"
        states: list[dict[str, Variable]] = []
        number = 0
        body = False
        for child in node.children:
            if child.type in ("then", "in"):
                body = True
                continue
            if not child.is_named:
                continue
            if child.type in ("else_clause", "elif_clause", "case_item"):
                states.append(self.variables)
                self.variables = dict(before)
                number += 1
                yield from self.walk(child, f"{place}.{number}", why, depth)
            elif body:
                yield from self.statement(child, f"{place}.0", why, depth)
            else:
                yield from self.statement(child, branch, unsure, depth)
        states.append(self.variables)
        self.variables = before
        guarded = re.search(r"-z\b|!\s*-n\b", condition) is not None and len(states) == 1
        for state in states:
            for name, value in state.items():
                old = before.get(name)
                if value == old:
                    continue
                if guarded and old is None:
                    self.variables[name] = value
                    continue
                at = self.source.start(node.start_byte)
                stand_in = unknown(name, at, at)
                self.variables[name] = Variable(((stand_in,),), value.exported)

    def loop(self, node: Node, branch: str, unsure: str | None, depth: int) -> Iterator[Command]:
        """Follow a loop once, its variable unknown."""
        name = node.child_by_field_name("variable")
        if name is not None:
            text = self.text[name.start_byte : name.end_byte]
            at = self.source.start(name.start_byte)
            self.variables[text] = Variable(((unknown(text, at, at),),))
        why = unsure or "it stands in a loop"
        yield from self.walk(node, branch, why, depth)

    def function(
        self, node: Node, branch: str, unsure: str | None, depth: int
    ) -> Iterator[Command]:
        """Follow the body of a function where it is defined, as if it were called there."""
        name = node.child_by_field_name("name")
        text = self.text[name.start_byte : name.end_byte] if name is not None else ""
        place = f"{branch}/{text}()" if branch else f"{text}()"
        body = node.child_by_field_name("body")
        if body is not None:
            why = unsure or f"it stands in the shell function {text[:40]}"
            yield from self.statement(body, place, why, depth)

    def subshell(
        self, node: Node, branch: str, unsure: str | None, depth: int
    ) -> Iterator[Command]:
        """Follow ``( … )``: its variables end with it."""
        before = dict(self.variables)
        yield from self.walk(node, branch, unsure, depth)
        self.variables = before

    # -- commands

    def redirected(
        self, node: Node, branch: str, unsure: str | None, depth: int
    ) -> Iterator[Command]:
        """Follow a command with redirections; words behind one are the command's as well."""
        body = node.named_children[0] if node.named_children else None
        more: list[Text] = []
        slips: list[Span] = []
        for child in node.named_children[1:]:
            more += self.behind(child)
            if child.type == "file_redirect":
                at, end = child.start_byte, child.end_byte
                if re.match(r">=\d", self.text[at:end]) and self.text[at - 1 : at].strip():
                    stop = next(
                        (n.end_byte for n in child.named_children if n.type != "file_descriptor"),
                        end,
                    )
                    slips.append(Span(at, stop))
        if body is None:
            return
        commands = list(self.statement(body, branch, unsure, depth))
        # A redirection behind ``a && b`` stands above the whole list in the tree: it is b's.
        yield from commands[:-1]
        for command in commands[-1:]:
            found = tuple(
                Redirect(self.text[span.start : span.end], before, self.source.span(*span))
                for span in slips
                for before in command.words
                if before.span.end == self.source.start(span.start)
            )
            end = max((word.span.end for word in more), default=command.span.end)
            yield command._replace(
                words=(*command.words, *more),
                slips=(*command.slips, *found),
                span=Span(command.span.start, max(command.span.end, end)),
                written=self.written(node, command),
            )
        for child in node.named_children[1:]:
            if child.type == "heredoc_redirect":
                for after in child.named_children:  # ``cat > FILE <<EOF && pip install -r FILE``
                    if after.type in _STATEMENTS:
                        yield from self.statement(after, branch, unsure, depth)

    def written(self, node: Node, command: Command) -> Written | None:
        """Return the file that ``cat`` or ``tee`` writes a here-document into, None if it does
        not."""
        document = next(
            (one for one in node.named_children if one.type == "heredoc_redirect"), None
        )
        program = command.words[0].value
        if document is None or program not in ("cat", "tee"):
            return None
        parts = {one.type: one for one in document.named_children}
        body, start = parts.get("heredoc_body"), parts.get("heredoc_start")
        if body is None or start is None:
            return None
        path, more = command.words[-1], "-a" in [one.value for one in command.words]
        if program == "cat":
            targets = [
                one
                for one in (*node.named_children, *document.named_children)
                if one.type == "file_redirect" and self.text[one.start_byte] == ">"
            ]
            if len(targets) != 1 or len(command.words) != 1:
                return None
            named = [one for one in targets[0].named_children if one.type != "file_descriptor"]
            words = self.words(named[0]) if named else []
            if not words:
                return None
            path, more = words[0], self.text[targets[0].start_byte :].startswith(">>")
        elif len([one for one in command.words if not one.value.startswith("-")]) != 2:
            return None
        lines: list[Text] = []
        at = body.start_byte
        for line in self.text[body.start_byte : body.end_byte].split("\n"):
            begin = at + len(line) - len(line.lstrip())
            end = at + len(re.sub(r"(?:^|\s)#.*", "", line).rstrip())
            if begin < end:
                lines.append(Text(self.source.cut(begin, end), self.source.span(begin, end)))
            at += len(line) + 1
        literal = self.text[start.start_byte : start.start_byte + 1] in ("'", '"', "\\")
        return Written(path, tuple(lines), literal, more)

    def behind(self, node: Node) -> list[Text]:
        """Return the words of a redirection that are arguments: all behind its file."""
        if node.type == "heredoc_redirect":
            return [
                text
                for child in node.named_children
                if child.type not in ("heredoc_start", "heredoc_body", "heredoc_end", *_STATEMENTS)
                for text in (
                    self.behind(child) if child.type.endswith("redirect") else self.words(child)
                )
            ]
        if node.type != "file_redirect":
            return []
        names = [child for child in node.named_children if child.type != "file_descriptor"]
        return [text for child in names[1:] for text in self.words(child)]

    def command(self, node: Node, branch: str, unsure: str | None, depth: int) -> Iterator[Command]:
        """Yield one simple command."""
        words: list[Text] = []
        own: dict[str, Word] = {}
        stretches: list[tuple[int, int]] = []
        for child in node.children:
            if child.type == "variable_assignment" and not stretches:
                name, values = self.value_of(child)
                if name and values:
                    own[name] = values[0]
            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                words += self.behind(child)
            elif child.type != "comment":
                begin, end = child.start_byte, child.end_byte
                if stretches and stretches[-1][1] == begin:  # the grammar cuts some words in two
                    begin = stretches.pop()[0]
                stretches.append((begin, end))
        words = [one for stretch in stretches for one in self.words_at(*stretch)] + words
        if not words:
            return
        environ = {
            name: variable.words[0]
            for name, variable in self.variables.items()
            if variable.exported and len(variable.words) == 1
        }
        if words[0].value in ("export", "unset", "readonly"):  # behind a redirection, in a list
            return
        yield Command(
            tuple(words),
            {**environ, **own},
            self.source.span(node.start_byte, node.end_byte),
            branch,
            unsure,
        )

    # -- variables

    def assignment_node(
        self, node: Node, branch: str, unsure: str | None, depth: int
    ) -> Iterator[Command]:
        """Take in ``NAME=value``."""
        self.assign(node, exported=False)
        yield from ()

    def declaration(
        self, node: Node, branch: str, unsure: str | None, depth: int
    ) -> Iterator[Command]:
        """Take in ``export``, ``declare``, ``local`` and ``readonly``."""
        flags = self.text[node.start_byte : node.end_byte].split(None, 2)
        exported = flags[0] == "export" or (len(flags) > 1 and flags[1].startswith("-x"))
        for child in node.named_children:
            if child.type == "variable_assignment":
                self.assign(child, exported=exported)
            elif child.type == "variable_name" and exported:
                name = self.text[child.start_byte : child.end_byte]
                if name in self.variables:
                    self.variables[name] = self.variables[name]._replace(exported=True)
        yield from ()

    def assign(self, node: Node, *, exported: bool) -> None:
        """Set a variable."""
        name, values = self.value_of(node)
        if not name:
            return
        old = self.variables.get(name)
        if self.text[node.start_byte : node.end_byte].startswith(f"{name}+="):
            have = old.words if old is not None else ()
            is_list = any(child.type == "array" for child in node.named_children)
            if is_list or not have or not values:
                values = (*have, *values)
            else:
                values = (*have[:-1], (*have[-1], *values[0]))
        self.variables[name] = Variable(
            tuple(values), exported or (old is not None and old.exported)
        )

    def value_of(self, node: Node) -> tuple[str, Sequence[Word]]:
        """Return name and value of an assignment; values of arrays are several words."""
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        if name is None or name.type != "variable_name":
            return "", ()
        text = self.text[name.start_byte : name.end_byte]
        if value is None:
            return text, ((),)
        if value.type == "array":
            return text, [one.atoms for child in value.named_children for one in self.words(child)]
        found = self.lexed(value.start_byte, max(value.end_byte, node.end_byte), 0)
        return text, (tuple(atom for atom, _ in found),)

    # -- words

    def words(self, node: Node) -> list[Text]:
        """Return the words that one argument becomes."""
        return self.words_at(node.start_byte, node.end_byte)

    def words_at(self, start: int, end: int) -> list[Text]:
        """Return the words that a stretch without bare blanks becomes: variables without quotes
        may be several, an array is one an element."""
        span = self.source.span(start, end)
        text = self.text[start:end]
        listed = re.fullmatch(r"\"?\$\{([A-Za-z_]\w*)\[[@*]\]\}\"?", text)
        if listed is not None and listed[1] in self.variables:
            return [
                Text(tuple(atom.used_at(*span, atom.name) for atom in word), span)
                for word in self.variables[listed[1]].words
            ]
        if "{" in text and "," in text and "$" not in text:
            braced = self.braces(start, end, span)
            if braced is not None:
                return [Text(word, span) for word in braced]
        found = self.lexed(start, end, 0)
        if not any(char.isspace() for atom, loose in found if loose for char in atom.value):
            return [Text(tuple(atom for atom, _ in found), span)]
        return [Text(word, span) for word in _split(found)]

    def braces(self, start: int, end: int, span: Span) -> list[Word] | None:
        """Return the words of ``torch{vision,audio}``; None if there are no such braces."""
        match = re.fullmatch(
            r"([^{}'\"\\`]*)\{([^{}'\"\\`]*,[^{}'\"\\`]*)\}([^{}'\"\\`]*)", self.text[start:end]
        )
        if match is None:
            return None
        # The parts around the braces stand for several words: none of them is edited.
        return [
            (Atom(f"{match[1]}{piece}{match[3]}", span.start, span.end, False),)
            for piece in match[2].split(",")
        ]

    def lexed(self, start: int, end: int, depth: int) -> list[tuple[Atom, bool]]:
        """Return the value of a stretch as atoms, each with whether blanks in it split words.

        Source: https://www.gnu.org/software/bash/manual/html_node/Quoting.html and the pages
        behind it.
        """
        text = self.text
        found: list[tuple[Atom, bool]] = []
        at = start
        while at < end:
            if len(found) > _LONGEST:  # values that are made of themselves grow without end
                return [(self.stand_in("value", start, end), False)]
            char = text[at]
            if char == "'":
                close = text.find("'", at + 1, end)
                close = close if close >= 0 else end
                found += [(atom, False) for atom in self.source.cut(at + 1, close)]
                at = close + 1
            elif char == '"':
                close = _closing_quote(text, at, end)
                found += [(atom, False) for atom in self.quoted(at + 1, close, depth)]
                at = close + 1
            elif char == "\\":
                if at + 1 < end and text[at + 1] != "\n":
                    found += [(atom, False) for atom in self.source.cut(at + 1, at + 2)]
                at += 2
            elif char in "$`":
                value, at = self.dollar(at, end, depth)
                found += [(atom, True) for atom in value]
            else:
                stop = _SPECIAL.search(text, at, end)
                begin, at = at, stop.start() if stop is not None else end
                found += [(atom, False) for atom in self.source.cut(begin, at)]
        return found

    def quoted(self, start: int, end: int, depth: int) -> Word:
        """Return the value of what stands in double quotes."""
        text = self.text
        found: list[Atom] = []
        at = start
        while at < end:
            if len(found) > _LONGEST:
                return (self.stand_in("value", start, end),)
            if text[at] == "\\" and at + 1 < end and text[at + 1] in '"$`\\\n':
                if text[at + 1] != "\n":
                    found += self.source.cut(at + 1, at + 2)
                at += 2
            elif text[at] in "$`":
                value, at = self.dollar(at, end, depth)
                found += value
            else:
                stop = _IN_QUOTES.search(text, at + 1, end)
                begin, at = at, stop.start() if stop is not None else end
                found += self.source.cut(begin, at)
        return tuple(found)

    def dollar(self, at: int, end: int, depth: int) -> tuple[Word, int]:
        """Return the value of the expansion at an offset, and where it ends."""
        text = self.text
        if text[at] == "`":
            close = at + 1
            while close < end and text[close] != "`":
                close += 2 if text[close] == "\\" else 1
            close = min(close + 1, end)
            return (self.stand_in("command", at, close),), close
        following = text[at + 1] if at + 1 < end else ""
        if following == "{":
            close = _closing(text, at + 1, end)
            if depth > _DEEPEST:
                return (self.stand_in("nested", at, close),), close
            return self.expansion(at, close, depth + 1), close
        if following == "(":
            close = _closing(text, at + 1, end)
            return (self.stand_in("command", at, close),), close
        if following == "'":
            close = at + 2
            while close < end and text[close] != "'":
                close += 2 if text[close] == "\\" else 1
            close = min(close, end)
            if "\\" in text[at + 2 : close]:
                return (self.stand_in("escapes", at, min(close + 1, end)),), close + 1
            return self.source.cut(at + 2, close), close + 1
        if following == '"':
            return (), at + 1
        match = _NAME.match(text, at + 1, end)
        if match is None:
            return self.source.cut(at, at + 1), at + 1
        stop = match.end() if not match[0].isdigit() else at + 2
        return self.variable(text[at + 1 : stop], at, stop), stop

    def stand_in(self, name: str, start: int, end: int) -> Atom:
        """Return the atom of a value that cannot be known."""
        return unknown(name, *self.source.span(start, end))

    def variable(self, name: str, start: int, end: int) -> Word:
        """Return the value of a variable where it is used."""
        have = self.variables.get(name)
        if have is None or len(have.words) != 1 or len(have.words[0]) > _LONGEST:
            return (self.stand_in(name, start, end),)
        span = self.source.span(start, end)
        return tuple(atom.used_at(*span, name) for atom in have.words[0])

    def expansion(self, begin: int, stop: int, depth: int) -> Word:
        """Return the value of ``${…}``."""
        start, end = begin + 2, stop - 1
        text = self.text[start:end]
        match = _NAME.match(text)
        if match is None:
            return (self.stand_in(text, begin, stop),)
        name, rest = match[0], text[match.end() :]
        if not rest:
            return self.variable(name, begin, stop)
        have = self.variables.get(name)
        operator = _OPERATOR.match(rest)
        if operator is not None:
            at = start + match.end() + operator.end()
            return self.with_default(begin, stop, name, operator[0], Span(at, end), depth)
        if have is None or len(have.words) != 1 or not is_known(have.words[0]):
            return (self.stand_in(name, begin, stop),)
        value = _changed(text_of(have.words[0]), rest)
        if value is None:
            return (self.stand_in(name, begin, stop),)
        span = self.source.span(begin, stop)
        return (Atom(value, span.start, span.end, False, None, name),)

    def with_default(
        self, begin: int, stop: int, name: str, operator: str, default: Span, depth: int
    ) -> Word:
        """Return the value of ``${NAME:-default}`` and its like."""
        have = self.variables.get(name)
        is_set = have is not None and (
            not operator.startswith(":") or any(text_of(word) for word in have.words)
        )
        kind = operator[-1]
        if kind == "?" or (is_set and kind != "+"):
            return self.variable(name, begin, stop)
        if kind == "+" and not is_set:
            return ()
        found = tuple(atom for atom, _ in self.lexed(default.start, default.end, depth))
        if kind == "=":
            self.variables[name] = Variable((found,))
        span = self.source.span(begin, stop)
        return tuple(atom.used_at(*span, name) for atom in found)


def _closing_quote(text: str, start: int, end: int) -> int:
    """Return the offset of the double quote that closes the one at ``start``."""
    at = start + 1
    while at < end and text[at] != '"':
        if text[at] == "\\":
            at += 2
        elif text[at] == "$" and text[at + 1 : at + 2] in ("{", "("):
            at = _closing(text, at + 1, end)
        else:
            at += 1
    return min(at, end)


def _closing(text: str, start: int, end: int) -> int:
    """Return the offset behind the bracket that closes the one at ``start``."""
    opening = text[start]
    closing = {"(": ")", "{": "}"}[opening]
    depth = 0
    at = start
    while at < end:
        char = text[at]
        if char == "\\":
            at += 2
            continue
        if char == "'" and opening == "(":
            close = text.find("'", at + 1, end)
            at = close if close >= 0 else end - 1
        elif char == opening:
            depth += 1
        elif char == closing:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return end


def _joined(source: Source) -> Source:
    """Return a script with its words that two lines share made whole."""
    atoms: list[Atom] = []
    at = 0
    for match in _JOINED.finditer(source.text):
        atoms += source.cut(at, match.start())
        at = match.end()
    return Source((*atoms, *source.cut(at, len(source.text))))


def _changed(value: str, rest: str) -> str | None:
    """Return what ``//a/b``, ``%.*``, ``%%.*`` and ``#v`` make of a value; None: not followed."""
    replace = _REPLACE.fullmatch(rest)
    if replace is not None:
        count = -1 if replace[1] == "//" else 1
        return value.replace(replace[2], replace[3], count)
    if rest in ("//.", "//./"):
        return value.replace(".", "")
    if rest in ("%.*", "%%.*"):
        head, dot, _ = value.partition(".") if rest == "%%.*" else value.rpartition(".")
        return head if dot else value
    if re.fullmatch(r"##?[A-Za-z0-9._-]+", rest):
        return value.removeprefix(rest.lstrip("#"))
    if re.fullmatch(r"%%?[A-Za-z0-9._-]+", rest):
        return value.removesuffix(rest.lstrip("%"))
    return None


def _split(atoms: Sequence[tuple[Atom, bool]]) -> list[Word]:
    """Return the words that blanks make in the values that stand without quotes (True)."""
    found: list[Word] = []
    current: list[Atom] = []
    for atom, loose in atoms:
        at = 0
        for match in re.finditer(r"\s+", atom.value) if loose else ():
            if match.start() > at:
                current.append(atom.cut(at, match.start()))
            if current:
                found.append(tuple(current))
                current = []
            at = match.end()
        if at < len(atom.value):
            current.append(atom.cut(at, len(atom.value)))
    if current:
        found.append(tuple(current))
    return found


def place(words: Sequence[Text]) -> Span:
    """Return from the first to the last of some words."""
    return span_of(tuple(Atom("", *word.span, False) for word in words))
