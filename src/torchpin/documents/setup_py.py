"""``setup.py`` by its syntax tree, never executed: what is written there as literals.

Lists may stand in the call of ``setup()``, in names that the module assigns once, be joined by
``+``, or be spread from another (``*BASE``). What is computed is left out: nothing is known of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchpin.documents.base import Declaration, Document, Problem
from torchpin.documents.lines import Logical
from torchpin.documents.parts import file_of, quoted
from torchpin.documents.python_text import Python, Text, called, names_of
from torchpin.documents.requirements import read_lines
from torchpin.documents.setup_cfg import library

KIND = "setup.py"
_DEPTH = 20
"""Names and sums that are followed one inside the other."""


def read_setup_py(path: str, data: bytes) -> Document:
    """Return the document of a ``setup.py``; never raises.

    A file that is no Python of the version that runs torchpin declares nothing; that is no problem
    of the file (it may be of Python 2).
    """
    file = file_of(path, data, KIND)
    if file.problems or "setup" not in file.text:
        return file
    python = Python(file.text)
    if python.tree is None:
        return file
    file = file._replace(comments=python.comments())
    call = next(
        (
            node
            for node in ast.walk(python.tree)
            if isinstance(node, ast.Call) and called(node.func).rpartition(".")[2] == "setup"
        ),
        None,
    )
    if call is None:
        return file
    reader = _Reader(file, python, python.tree)
    return reader.read(call)


class _Reader:
    def __init__(self, file: Document, python: Python, tree: ast.Module) -> None:
        self.file = file
        self.python = python
        self.names = names_of(tree)
        self.declarations: list[Declaration] = []
        self.problems: list[Problem] = []
        self.extras: list[str] = []

    def read(self, call: ast.Call) -> Document:
        """Return the document with what one call of ``setup()`` says."""
        given = dict(self.keywords(call))
        for key, scope in (("install_requires", ""), ("setup_requires", "build")):
            self.declare(given.get(key), scope)
        extras = self.resolved(given.get("extras_require"))
        for key, value in self.entries(extras):
            extra = key.partition(":")[0].strip()
            self.extras.append(extra)
            self.declare(value, f"extra:{extra}")
        name, wanted = self.text(given.get("name")), self.text(given.get("python_requires"))
        return self.file._replace(
            declarations=tuple(dict.fromkeys(sorted(self.declarations, key=lambda one: one.span))),
            problems=tuple(dict.fromkeys(self.problems)),
            project=library(
                name=name.value if name is not None else "",
                extras=tuple(dict.fromkeys(self.extras)),
                python=wanted.value if wanted is not None else None,
                python_span=wanted.span if wanted is not None else None,
            ),
        )

    def keywords(self, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
        """Yield the keywords of a call, those of ``**NAME`` too."""
        for keyword in call.keywords:
            if keyword.arg is not None:
                yield keyword.arg, keyword.value
                continue
            yield from self.entries(self.resolved(keyword.value))

    def entries(self, table: ast.expr | None, depth: int = 0) -> Iterator[tuple[str, ast.expr]]:
        """Yield the entries of a literal table, those that it takes over by ``**`` too."""
        if isinstance(table, ast.Dict) and depth <= _DEPTH:
            for key, value in zip(table.keys, table.values, strict=True):
                text = self.text(key)
                if key is None:
                    yield from self.entries(self.resolved(value), depth + 1)
                elif text is not None:
                    yield text.value, value
        elif isinstance(table, ast.Call) and called(table.func) == "dict":
            yield from ((one.arg, one.value) for one in table.keywords if one.arg is not None)

    def resolved(self, node: ast.expr | None) -> ast.expr | None:
        """Return what a name stands for, or an entry of a literal table."""
        for _ in range(_DEPTH):
            if isinstance(node, ast.Name) and node.id in self.names:
                node = self.names[node.id]
            elif isinstance(node, ast.Subscript):
                table, key = self.resolved(node.value), self.text(node.slice)
                if not isinstance(table, ast.Dict) or key is None:
                    return node
                found = [
                    value
                    for name, value in zip(table.keys, table.values, strict=True)
                    if isinstance(name, ast.Constant) and name.value == key.value
                ]
                if not found:
                    return node
                node = found[-1]
            else:
                return node
        return node

    def text(self, node: ast.expr | None) -> Text | None:
        """Return a literal string, None for anything else."""
        found = self.resolved(node) if isinstance(node, (ast.Name, ast.Subscript)) else node
        return self.python.string(found) if found is not None else None

    def strings(self, node: ast.expr | None, depth: int = 0) -> Iterator[Text]:
        """Yield the literal strings of a list."""
        node = self.resolved(node)
        if node is None or depth > _DEPTH:
            return
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            for item in node.elts:
                if isinstance(item, ast.Starred):
                    yield from self.strings(item.value, depth + 1)
                else:
                    text = self.text(item)
                    if text is not None:
                        yield text
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from self.strings(node.left, depth + 1)
            yield from self.strings(node.right, depth + 1)
        elif isinstance(node, ast.Constant):
            text = self.text(node)
            if text is not None:
                yield text

    def declare(self, node: ast.expr | None, scope: str) -> None:
        """Take in one list of requirements."""
        for text in self.strings(node):
            yielded = read_lines(_items(self.file.text, text))
            self.declarations += [one._replace(scope=scope) for one in yielded.declarations]
            self.problems += yielded.problems


def _items(text: str, found: Text) -> Iterator[Logical]:
    """Yield the lines of a string: setuptools takes one requirement a line."""
    if "\n" not in found.value or not found.plain:
        values = found.value.splitlines() if "\n" in found.value else [found.value]
        for value in values:
            if value.strip() and not value.strip().startswith("#"):
                yield quoted(value, text, *found.span)
        return
    at = found.span.start
    for line in text[found.span.start : found.span.end].splitlines(keepends=True):
        body = line.strip()
        if body and not body.startswith("#"):
            start = at + len(line) - len(line.lstrip())
            yield quoted(body, text, start, start + len(body))
        at += len(line)
