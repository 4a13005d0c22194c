"""Python files as syntax trees with the places of their strings; nothing is ever executed."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings

from torchpin.documents.base import Problem, Span, line_starts
from torchpin.named import NamedTuple
from torchpin.patterns import regex

MAX_PYTHON = 2 * 1024 * 1024
"""Characters; generated tables may be larger and install nothing."""
_PREFIX = regex(r"[rRuUbBfFtT]{0,2}")


class Text(NamedTuple):
    """A string constant: its value, and the inside of its quotes."""

    value: str
    span: Span
    plain: bool
    """The text between the quotes is the value, letter for letter."""
    whole: Span
    """With prefix and quotes; several that stand side by side, from the first to the last."""


class Python:
    """A parsed file. ``tree`` is None where it is not valid Python; ``problem`` says why."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree: ast.Module | None = None
        self.problem: Problem | None = None
        self._starts = line_starts(text)
        if len(text) > MAX_PYTHON:
            message = f"is too large: more than {MAX_PYTHON // 1048576} MiB"
            self.problem = Problem(message, Span(0, 0), "python")
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # escapes such as "\\d" are no concern of ours
                self.tree = ast.parse(text)
        except SyntaxError as error:
            at = self.offset(error.lineno or 1, 0)
            self.problem = Problem(f"is not valid Python: {error.msg}", Span(at, at), "python")
        except (ValueError, RecursionError, MemoryError) as error:
            message = f"cannot be read as Python: {type(error).__name__}"
            self.problem = Problem(message, Span(0, 0), "python")

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a place as ``ast`` gives it: the column counts bytes of UTF-8."""
        if line < 1:
            return 0
        start = self._starts[min(line, len(self._starts)) - 1]
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        whole = self.text[start:end]
        if whole.isascii():
            return min(start + column, len(self.text))
        return start + len(
            whole.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "ignore")
        )

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Return where a node stands."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset
        return Span(
            self.offset(node.lineno, node.col_offset),
            self.offset(end_line, node.col_offset if end_column is None else end_column),
        )

    def string(self, node: ast.expr) -> Text | None:
        """Return a string constant, None if the node is none."""
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            return None
        whole = self.span(node)
        written = self.text[whole.start : whole.end]
        prefix = _PREFIX.match(written)
        lead = prefix.end() if prefix is not None else 0
        quote = written[lead : lead + 3]
        size = 3 if quote in ('"""', "'''") else 1
        inner = Span(whole.start + lead + size, max(whole.end - size, whole.start + lead + size))
        plain = self.text[inner.start : inner.end] == node.value
        return Text(node.value, inner if plain else whole, plain, whole)

    def comments(self) -> tuple[Span, ...]:
        """Return every comment; none where the file cannot be read as tokens."""
        if "#" not in self.text:
            return ()
        found = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text, newline="").readline):
                if token.type == tokenize.COMMENT:
                    start = self._starts[token.start[0] - 1] + token.start[1]
                    found.append(Span(start, start + len(token.string.rstrip("\r\n"))))
        except (tokenize.TokenError, SyntaxError, IndexError, ValueError):
            return tuple(found)
        return tuple(found)


def names_of(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the names that a module assigns exactly once, at its top level, with their values."""
    found: dict[str, ast.expr | None] = {}
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        if isinstance(node, ast.Assign):
            targets, value = list(node.targets), node.value
        elif isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        elif isinstance(node, (ast.AugAssign, ast.For)):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                known = target.id in found
                found[target.id] = None if known or node not in tree.body else value
    changed = {
        node.func.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.attr in _CHANGES
    }
    return {
        name: value for name, value in found.items() if value is not None and name not in changed
    }


_CHANGES = frozenset(
    ("append", "extend", "insert", "remove", "pop", "clear", "update", "setdefault", "sort")
)


def called(node: ast.expr) -> str:
    """Return a dotted name as it is written (``torch.utils.checkpoint``), ``""`` for others."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    parts.append(node.id)
    return ".".join(reversed(parts))
