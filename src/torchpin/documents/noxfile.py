"""``noxfile.py``: what sessions install, as far as it is written as literals; never executed.

``session.install("torch==2.11.0", "--index-url", "https://…")`` and
``session.run("pip", "install", …)`` each are a part; those of one session install one after the
other. Names that the module assigns once are followed, f-strings as far as they hold such names.
Source: https://nox.thea.codes/en/stable/config.html.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchpin.documents.base import Document
from torchpin.documents.install_words import Word, read_words
from torchpin.documents.parts import Part, file_of, part_of
from torchpin.documents.python_text import Python, called, names_of
from torchpin.documents.tox_names import range_of
from torchpin.patterns import regex

KIND = "noxfile.py"
_RUNS = (
    ("python", "-m", "pip", "install"),
    ("python3", "-m", "pip", "install"),
    ("uv", "pip", "install"),
    ("pip3", "install"),
    ("pip", "install"),
)


def read_noxfile(path: str, data: bytes) -> Document:
    """Return the document of a ``noxfile.py``; never raises."""
    file = file_of(path, data, KIND)
    if file.problems or "install" not in file.text:
        return file
    python = Python(file.text)
    if python.tree is None:  # perhaps of a newer Python than this one
        return file
    file = file._replace(comments=python.comments())
    reader = _Reader(file, python, python.tree)
    return file._replace(parts=tuple(reader.parts()))


class _Reader:
    def __init__(self, file: Document, python: Python, tree: ast.Module) -> None:
        self.file = file
        self.python = python
        self.tree = tree
        self.names = names_of(tree)

    def parts(self) -> Iterator[Part]:
        """Yield one part for each call that installs."""
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                session = _session(node)
                if session is not None:
                    yield from self.installs(node, session)

    def installs(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, session: str
    ) -> Iterator[Part]:
        """Yield the parts of one session in the order of its lines."""
        pythons, uv = self.chosen(function)
        branches = _conditional(function)
        calls = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and called(node.func).startswith(f"{session}.")
        ]
        for call in sorted(calls, key=lambda one: (one.lineno, one.col_offset)):
            method = called(call.func).partition(".")[2]
            arguments = list(call.args)
            client = "uv" if uv else "pip"
            if method in ("run", "run_install", "run_always"):
                cut, client = self.command(arguments, client)
                if cut == 0:
                    continue
                arguments = arguments[cut:]
            elif method != "install":
                continue
            words, unknown = self.words(arguments)
            if not words:
                continue
            read = read_words(words)
            span = self.python.span(call)
            part = part_of(
                self.file,
                read.lines,
                name=f"session {function.name}, line {call.lineno}",
                span=span,
                syntax="python",
                client=client,
            )
            why = unknown
            if why is None and call in branches:
                why = "the call stands in a branch that may not be taken"
            yield part._replace(
                options_at=self.options_at(call, arguments),
                python=range_of(pythons),
                pythons=pythons,
                uncertain=why,
                command=True,
                environment=function.name,
                upgrade=read.upgrade,
                torch_backend=read.torch_backend,
            )

    def command(self, arguments: list[ast.expr], client: str) -> tuple[int, str]:
        """Return how many words of ``session.run`` say ``pip install``, 0 if they do not."""
        heads = [self.python.string(one) for one in arguments[:4]]
        values = tuple(one.value if one is not None else "" for one in heads)
        for run in _RUNS:
            if values[: len(run)] == run:
                return len(run), "uv" if run[0] == "uv" else client
        return 0, client

    def words(self, arguments: list[ast.expr]) -> tuple[list[Word], str | None]:
        """Return the arguments as words, and why some of them are not known."""
        words: list[Word] = []
        unknown: str | None = None
        for node in arguments:
            if isinstance(node, ast.Starred):
                below = self.followed(node.value)
                if isinstance(below, (ast.List, ast.Tuple)):
                    some, why = self.words(list(below.elts))
                    words += some
                    unknown = unknown or why
                else:
                    unknown = "some of its arguments are computed"
                continue
            text = self.python.string(node)
            if text is not None:
                words.append(Word(text.value, text.span, text.plain))
                continue
            value = self.value(node)
            if value is not None:
                words.append(Word(value, self.python.span(node), plain=False))
            else:
                unknown = "some of its arguments are computed"
                written = self.file.text[slice(*self.python.span(node))]
                if "torch" not in written:
                    continue
        return words, unknown

    def value(self, node: ast.expr) -> str | None:
        """Return what a name or an f-string means, None if it is computed."""
        node = self.followed(node)
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            parts = []
            for one in node.values:
                inner = one.value if isinstance(one, ast.FormattedValue) else one
                plain = not isinstance(one, ast.FormattedValue) or (
                    one.conversion == -1 and one.format_spec is None
                )
                part = self.value(inner) if plain else None
                if part is None:
                    return None
                parts.append(part)
            return "".join(parts)
        return None

    def followed(self, node: ast.expr) -> ast.expr:
        """Return what a name stands for."""
        for _ in range(20):
            if not isinstance(node, ast.Name) or node.id not in self.names:
                break
            node = self.names[node.id]
        return node

    def chosen(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> tuple[tuple[str, ...], bool]:
        """Return the Pythons of a session, and whether uv makes its environment.

        Empty where they are not all known; other interpreters (PyPy) are left out.
        """
        pythons: tuple[str, ...] = ()
        uv = "nox.options.default_venv_backend" in self.file.text and _default_uv(self.tree)
        for decorator in function.decorator_list:
            if not isinstance(decorator, ast.Call):
                continue
            for keyword in decorator.keywords:
                value = self.followed(keyword.value)
                if keyword.arg in ("python", "py"):
                    items = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
                    found = [self.value(one) for one in items]
                    if None not in found:
                        pythons = tuple(_minor(one) for one in found if one and _minor(one))
                elif keyword.arg == "venv_backend":
                    backend = self.value(value)
                    uv = backend is not None and backend.split("|")[0] == "uv"
        return pythons, uv

    def options_at(self, call: ast.Call, arguments: list[ast.expr]) -> int | None:
        """Return where ``"--index-url", "URL", `` may be inserted: before the first argument."""
        if not arguments or isinstance(arguments[0], ast.Starred):
            return None
        return self.python.span(arguments[0]).start


def _session(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """Return the name of a function's session, None if it has none."""
    names = [one.arg for one in function.args.args]
    for decorator in function.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if called(target).rpartition(".")[2] in ("session", "nox_session") and names:
            return names[0]
    annotations = [one.annotation for one in function.args.args]
    for name, annotation in zip(names, annotations, strict=True):
        written = called(annotation) if annotation is not None else ""
        if name == "session" or written.rpartition(".")[2] == "Session":
            return name
    return None


def _conditional(function: ast.AST) -> set[ast.AST]:
    """Return every node of a function that stands in a branch or a loop."""
    found: set[ast.AST] = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.If, ast.For, ast.While, ast.Try, ast.IfExp)):
            for below in ast.walk(node):
                found.add(below)
    return found


def _minor(text: str) -> str:
    """Return the version of a CPython that nox looks for: ``3.11``, ``python3.11``, ``3.14t``."""
    found = regex(r"(?:python|cpython)?-?(3\.\d+)(?:\.\d+)?(t?)").fullmatch(text)
    return f"{found[1]}{found[2]}" if found is not None else ""


def _default_uv(tree: ast.Module) -> bool:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [called(target) for target in node.targets]
            if "nox.options.default_venv_backend" in names:
                return str(node.value.value).split("|")[0] == "uv"
    return False
