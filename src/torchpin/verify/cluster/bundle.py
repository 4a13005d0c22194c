"""torchpin in one zip file, as far as ``verify`` needs it: for machines that do not have it.

It holds torchpin's modules that ``verify`` imports, ``packaging``, and the facts of torch and its
companions. ``PROGRAM`` unpacks and runs it.
"""

from __future__ import annotations

import ast
import io
import os
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec

from torchpin.errors import UsageError

PART_BYTES = 180 * 1024
"""`kubectl apply` keeps an object, in base64, in an annotation: the API server takes 256 KiB."""
NAME = "torchpin.zip."
"""Of a part, before its digit."""
_MOST_PARTS = 10
_ROOTS = (
    "torchpin",
    "torchpin.__main__",
    "torchpin.cli.main",
    "torchpin.cli.verify",
    "torchpin.verify.worker",
)
_LEFT_OUT = (
    "torchpin.cli.verify_",
    "torchpin.verify.cluster",
    "torchpin.catalog.remote",
    "torchpin.catalog.http",
    "torchpin.engine",
    "torchpin.rules",
    "torchpin.rewrite",
    "torchpin.resolve",
    "torchpin.plugin",
)
"""What functions import for other commands, or for other options."""
_FACTS = (
    "catalog.json",
    "drivers.json",
    "internals.json",
    "partners.json",
    "health.json",
    "builds-torch.json",
    "builds-torchvision.json",
    "builds-torchaudio.json",
)
_DATE = (1980, 1, 1, 0, 0, 0)
"""Of every file: the same torchpin makes the same bytes."""

PROGRAM = """\
import atexit, os, shutil, signal, sys, tempfile, zipfile
signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
parts, then, options = sys.argv[1], sys.argv[2], sys.argv[3:]
if parts != "-":
    sys.dont_write_bytecode = True
    folder = tempfile.mkdtemp(prefix="torchpin-")
    atexit.register(shutil.rmtree, folder, True)
    whole = tempfile.TemporaryFile()
    for name in sorted(os.listdir(parts)):
        if name.startswith("torchpin.zip."):
            with open(os.path.join(parts, name), "rb") as part:
                whole.write(part.read())
    zipfile.ZipFile(whole).extractall(folder)
    sys.path.insert(0, folder)
from torchpin.cli.main import guarded
code = guarded(["verify", "--output-format=jsonl", "--isolated", *options])
sys.stdout.flush()
while then == "stay":
    signal.pause()
sys.exit(0 if code == 1 else code)
"""
"""Runs in the Python of an image: the folder of the parts or ``-``, ``stay`` or ``end``, options.

The child that tries torch sees nothing of the bundle. That something failed is told by the lines:
the pod itself then ends well, and is not run again.
"""


def build() -> bytes:
    """Return the zip file.

    Raises:
        UsageError: torchpin is not installed as files, or has grown too big.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, path in sorted(_files()):
            with open(path, "rb") as file:
                archive.writestr(zipfile.ZipInfo(name, _DATE), file.read(), zipfile.ZIP_DEFLATED, 9)
    data = made.getvalue()
    if len(data) > _MOST_PARTS * PART_BYTES:
        raise UsageError(
            f"torchpin takes {len(data) // 1024} KiB, more than ConfigMaps bring",
            hint="install torchpin in the image, and say --in-image",
        )
    return data


def parts(data: bytes) -> dict[str, bytes]:
    """Return the parts of a zip file, each for a ConfigMap of its own, by their names."""
    return {
        f"{NAME}{number}": data[begin : begin + PART_BYTES]
        for number, begin in enumerate(range(0, len(data), PART_BYTES))
    }


def _files() -> Iterator[tuple[str, str]]:
    """Yield names in the archive and paths."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    yield from _modules(root).items()
    data = os.path.join("catalog", "data")
    for name in _FACTS:
        yield f"torchpin/catalog/data/{name}", os.path.join(root, data, name)
    folder = os.path.join(root, "fleet", "data")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            yield f"torchpin/fleet/data/{name}", os.path.join(folder, name)
    yield from _package("packaging")


def _package(name: str) -> Iterator[tuple[str, str]]:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(f"{name} is not installed as files")
    (root,) = spec.submodule_search_locations
    for folder, _, files in os.walk(root):
        inner = os.path.relpath(folder, root).split(os.sep)
        place = "/".join((name, *(part for part in inner if part != ".")))
        yield from (
            (f"{place}/{one}", os.path.join(folder, one)) for one in files if one[-3:] == ".py"
        )


def _modules(root: str) -> dict[str, str]:
    """Return the files of the modules that ``verify`` may import, within functions too."""
    found: dict[str, str] = {}
    left = list(_ROOTS)
    while left:
        name = left.pop()
        path = _path(root, name)
        if path is None or path[0] in found:
            continue
        found[path[0]] = path[1]
        with open(path[1], encoding="utf-8") as file:
            tree = ast.parse(file.read())
        at_start = _imports(tree, within=False)
        later = [one for one in _imports(tree, within=True) if not one.startswith(_LEFT_OUT)]
        left += [name.rpartition(".")[0], *at_start, *later]
    return found


def _path(root: str, name: str) -> tuple[str, str] | None:
    """Return the name in the archive and the path of a module of torchpin."""
    if name != "torchpin" and not name.startswith("torchpin."):
        return None
    parts = name.split(".")[1:]
    for tail in ([*parts[:-1], f"{parts[-1]}.py"] if parts else [], [*parts, "__init__.py"]):
        path = os.path.join(root, *tail)
        if tail and os.path.isfile(path):
            return "/".join(("torchpin", *tail)), path
    return None


def _imports(tree: ast.AST, *, within: bool) -> list[str]:
    """Return what a module imports when it is imported itself, or (``within``) in functions too."""
    names: list[str] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.If) and _for_types(node):
            continue
        elif within or not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names += _imports(node, within=within)
    return names


def _for_types(node: ast.If) -> bool:
    """Tell whether a block is read by type checkers only; its ``else`` is then not looked at."""
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" and not node.orelse
