"""Shell scripts to the commands that they run: words with their places, variables replaced.

tree-sitter-bash finds what is a command, a quote, an expansion; this follows assignments in the
order of the text. What cannot be known (a command's output, a variable that nothing sets, what a
loop or an untaken branch leaves) is a stand-in, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from torchpin.documents.atoms import Atom, Source, Word, unknown
from torchpin.documents.base import Span
from torchpin.documents.shell_commands import STATEMENTS, Command, Redirect, Redirections
from torchpin.documents.shell_words import DEEPEST, Text, Variable
from torchpin.patterns import regex

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LARGEST = 512 * 1024
"""Characters of a script; a longer one carries data."""
_MANY = 20_000
"""Nodes with commands that are looked at in one script."""
_JOINED = regex(r"(?<=[^\s\\;&|])\\\n(?=[^\s#])")
"""A word that goes on in the next line, which the grammar takes for two."""
_TESTS = frozenset(("[", "[[", "test", "command", "which", "type", "grep", "hash", "nvidia-smi"))

_parser: Parser | None = None


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


class Shell(Redirections):
    """Follows a script."""

    def __init__(self) -> None:
        super().__init__()
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
        if depth > DEEPEST:
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
        if depth > DEEPEST:
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
                    if after.type in STATEMENTS:
                        yield from self.statement(after, branch, unsure, depth)

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


def _joined(source: Source) -> Source:
    """Return a script with its words that two lines share made whole."""
    atoms: list[Atom] = []
    at = 0
    for match in _JOINED.finditer(source.text):
        atoms += source.cut(at, match.start())
        at = match.end()
    return Source((*atoms, *source.cut(at, len(source.text))))
