"""Calls in Python code that a newer torch refuses or warns of, told from the text alone.

Only what is sure is reported: names are followed through imports, a name that the file binds in
another way is left alone, and so is a call that stands in a ``try`` or under a condition that asks
for a version or an attribute.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchpin.documents.base import Span
from torchpin.documents.python_text import Python, called
from torchpin.named import NamedTuple

CHECKPOINT = "torch.utils.checkpoint.checkpoint"
SELECTIVE = "torch.utils.checkpoint.create_selective_checkpoint_contexts"
HOOKS = frozenset(("torch.autograd.graph.saved_tensors_hooks", "torch.autograd.graph.save_on_cpu"))
PROFILERS = frozenset(("torch.profiler.profile", "torch.autograd.profiler.profile"))
_WORDS = ("cholesky", "qr", "use_cuda", "create_selective_checkpoint_contexts")
_GUARDS = ("version", "hasattr", "TORCH_", "torch_2", "is_torch")


class Use(NamedTuple):
    """One call that matters."""

    kind: str
    """``selective``, ``cholesky``, ``qr`` or ``use_cuda``."""
    span: Span
    """Of the function's name, or of the argument."""
    hooks: bool = False
    """``selective``: the file opens a context of saved-tensors hooks, too."""


def uses_of(text: str) -> tuple[Use, ...]:
    """Return the calls in a Python text, in order; none where it is not valid Python."""
    if "torch" not in text or not any(word in text for word in _WORDS):
        return ()
    python = Python(text)
    if python.tree is None:
        return ()
    names = _Names(python.tree)
    guarded = set(_guarded(python.tree))
    hooks = any(
        names.full(node.func) in HOOKS
        for node in ast.walk(python.tree)
        if isinstance(node, ast.Call)
    )
    found = [
        use._replace(hooks=hooks and use.kind == "selective")
        for node in ast.walk(python.tree)
        if isinstance(node, ast.Call) and node not in guarded
        for use in _of_call(node, names, python)
    ]
    return tuple(sorted(found, key=lambda use: use.span))


def _of_call(call: ast.Call, names: _Names, python: Python) -> Iterator[Use]:
    name = names.full(call.func)
    if name in ("torch.cholesky", "torch.qr"):
        yield Use(name.rpartition(".")[2], python.span(call.func))
    elif name in PROFILERS:
        for keyword in call.keywords:
            if keyword.arg == "use_cuda":
                start = python.offset(keyword.lineno, keyword.col_offset)
                yield Use("use_cuda", Span(start, python.span(keyword.value).end))
    elif name == CHECKPOINT:
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if None in given or "respect_saved_tensors_hooks" in given or "context_fn" not in given:
            return
        reentrant = given.get("use_reentrant")
        plain = isinstance(reentrant, ast.Constant) and reentrant.value is False
        if plain and names.selective(given["context_fn"]):
            yield Use("selective", python.span(call.func))


class _Names:
    """What the names of a file mean, as far as its imports tell."""

    def __init__(self, tree: ast.Module) -> None:
        self.imported: dict[str, str] = {}
        bound: set[str] = set()
        self.values: dict[str, ast.expr] = {}
        self.functions: dict[str, ast.AST] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for one in node.names:
                    if one.asname is not None:
                        self._import(one.asname, one.name, bound)
                    else:
                        head = one.name.partition(".")[0]
                        self._import(head, head, bound)
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    module = node.module if node.level == 0 else None
                    target = f"{module}.{one.name}" if module else f"?.{one.name}"
                    self._import(one.asname or one.name, target, bound)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
                bound.add(node.id)
            elif isinstance(node, ast.arg):
                bound.add(node.arg)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                bound.add(node.name)
                if not isinstance(node, ast.ClassDef):
                    self.functions[node.name] = node
            elif isinstance(node, ast.ExceptHandler) and node.name:
                bound.add(node.name)
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target_node = node.targets[0]
                if isinstance(target_node, ast.Name):
                    self.values[target_node.id] = node.value
        for name in bound:
            self.imported.pop(name, None)

    def _import(self, name: str, target: str, bound: set[str]) -> None:
        if self.imported.setdefault(name, target) != target:
            bound.add(name)

    def full(self, node: ast.expr) -> str:
        """Return the dotted name that an expression means, ``""`` if that is not sure."""
        written = called(node)
        head, dot, rest = written.partition(".")
        known = self.imported.get(head)
        if known is None or known.startswith("?"):
            return ""
        return f"{known}{dot}{rest}"

    def selective(self, node: ast.expr, depth: int = 0) -> bool:
        """Tell whether a ``context_fn`` is made by ``create_selective_checkpoint_contexts``."""
        if depth > 3:
            return False
        for below in ast.walk(node):
            if isinstance(below, (ast.Name, ast.Attribute)) and self.full(below) == SELECTIVE:
                return True
        if isinstance(node, ast.Name):
            if node.id in self.values:
                return self.selective(self.values[node.id], depth + 1)
            function = self.functions.get(node.id)
            if function is not None:
                return any(
                    isinstance(below, ast.Call) and self.full(below.func) == SELECTIVE
                    for below in ast.walk(function)
                )
        return False


def _guarded(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that may not run with every torch: in a ``try``, under a question."""
    for node in ast.walk(tree):
        inside: list[ast.AST] = []
        if isinstance(node, ast.Try) and node.handlers:
            inside = [*node.body, *node.handlers]
        elif isinstance(node, (ast.If, ast.IfExp)) and _asks(node.test):
            inside = [node]
        for one in inside:
            yield from ast.walk(one)


def _asks(test: ast.expr) -> bool:
    written = ast.dump(test)
    return any(word.lower() in written.lower() for word in _GUARDS)
