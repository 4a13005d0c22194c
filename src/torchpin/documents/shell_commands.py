"""What a shell script runs: simple commands, their redirections and the files they write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchpin.documents.atoms import Word
from torchpin.documents.base import Span
from torchpin.documents.shell_words import Text, Words
from torchpin.named import NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

STATEMENTS = ("command", "list", "pipeline", "redirected_statement")
"""What follows on the line of a here-document's mark."""


class Redirect(NamedTuple):
    """A file that a command writes to, where its name looks like a version: ``>=2.0``."""

    text: str
    before: Text
    span: Span


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


class Redirections(Words):
    """Reads what the redirections of a command say."""

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
                if child.type not in ("heredoc_start", "heredoc_body", "heredoc_end", *STATEMENTS)
                for text in (
                    self.behind(child) if child.type.endswith("redirect") else self.words(child)
                )
            ]
        if node.type != "file_redirect":
            return []
        names = [child for child in node.named_children if child.type != "file_descriptor"]
        return [text for child in names[1:] for text in self.words(child)]
