"""What the start of a run may cost, by what it imports and compiles: counted, not timed.

``benchmarks/run.py`` measures the budgets. Here stands what they rest on, so that no cost comes
back unseen: a plain check imports what reads, judges and reports its own kind of file, and no more.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "torchpin"
sys.path.insert(0, str(ROOT))

# what the budgets measure is what is guarded here
from benchmarks.run import CLEAN as REQUIREMENTS  # noqa: E402
from benchmarks.run import FLEET, LOCK, PROJECT  # noqa: E402

NEVER = (
    # of Python and of others
    *("argparse", "ast", "concurrent.*", "dataclasses", "difflib", "email*", "gettext", "hashlib"),
    *(
        "http.*",
        "importlib",
        "importlib.metadata*",
        "importlib.resources*",
        "inspect",
        "locale",
        "logging",
    ),
    *("multiprocessing*", "pathlib", "pickle", "shutil", "socket", "ssl", "subprocess", "tempfile"),
    *("threading", "tokenize", "traceback", "urllib.*", "zipfile"),
    *("packaging.markers", "packaging.requirements", "packaging.tags"),
    *("pip_requirements_parser", "resolvelib*", "rich*", "tomlkit*", "tree_sitter*", "yaml*"),
    # of torchpin: fixes and plans, clients foretold, other kinds of files, other commands
    *("torchpin.rewrite*", "torchpin.resolve.solve", "torchpin.resolve.provider"),
    *("torchpin.resolve.because", "torchpin.resolve.explain", "torchpin.resolve.split"),
    *("torchpin.resolve.follow", "torchpin.resolve.recipe"),
    *("torchpin.select.uv_project", "torchpin.select.uv_[lnprsv]*[!s]", "torchpin.select.forks"),
    *("torchpin.select.poetry_*", "torchpin.select.pdm_*", "torchpin.select.pubgrub"),
    *("torchpin.select.parts", "torchpin.select.image_torch", "torchpin.part_ways"),
    *("torchpin.catalog.images", "torchpin.catalog.refresh*", "torchpin.catalog.schema"),
    *("torchpin.catalog.remote", "torchpin.catalog.http", "torchpin.catalog.whole"),
    *("torchpin.documents.parts", "torchpin.documents.command*", "torchpin.documents.shell*"),
    *("torchpin.documents.python_*", "torchpin.documents.script*", "torchpin.documents.yaml*"),
    *("torchpin.documents.poetry_lock", "torchpin.documents.poetry_manifest"),
    *("torchpin.documents.pdm*", "torchpin.documents.pylock", "torchpin.documents.environment_yml"),
    *("torchpin.fleet.detect*", "torchpin.fleet.importers*"),
    *("torchpin.cli.fix", "torchpin.cli.parser", "torchpin.cli.prove*", "torchpin.plugin*"),
    *("torchpin.report.json_", "torchpin.report.sarif", "torchpin.report.diff"),
)
"""What a check of a file without findings does not import, in the words of ``fnmatch``."""
NOT_FOR_REQUIREMENTS = (
    *("torchpin.documents.project", "torchpin.documents.manifest", "torchpin.documents.pyproject"),
    *("torchpin.documents.toml_*", "torchpin.documents.lock_text", "torchpin.documents.uv_*"),
    *("torchpin.documents.conda", "torchpin.documents.poetry_*", "torchpin.documents.workspace"),
    *("torchpin.select.projects", "torchpin.select.lock*", "torchpin.select.whole_lock"),
    *("torchpin.select.uv_*", "torchpin.rules.lock?", "torchpin.rules.lock_markers"),
    *("torchpin.rules.lock_places", "torchpin.rules.lock_spellings"),
    *(
        "torchpin.rules.projects",
        "torchpin.rules.project_[!v]*",
        "torchpin.rules.conda",
        "torchpin.rules.containers",
    ),
    *("torchpin.rules.sources", "torchpin.rules.torch_backend"),
)
"""What a check of a list of requirements does not import besides."""


def imported(folder: Path, file: str) -> set[str]:
    """Return what a check of a file imports that Python and packaging had not imported."""
    (folder / "torchpin.toml").write_text(FLEET)
    probe = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "import packaging.specifiers, packaging.version\n"
        "before = {*sys.modules}\n"
        "from torchpin.cli.main import guarded\n"
        f"code = guarded(['check', {file!r}])\n"
        "print(*sorted({*sys.modules} - before), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", probe],
        cwd=folder,
        capture_output=True,
        text=True,
        env={key: value for key, value in os.environ.items() if key != "TORCHPIN_DEBUG"},
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = {*done.stderr.splitlines()[-1].split()}
    assert "torchpin.engine" in loaded
    return loaded


def among(loaded: set[str], patterns: tuple[str, ...]) -> list[str]:
    """Return what of the modules fits one of the patterns."""
    return sorted(name for name in loaded if any(fnmatch(name, one) for one in patterns))


def test_a_check_of_requirements_imports_no_more_than_it_uses(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    loaded = imported(tmp_path, "requirements.txt")
    assert among(loaded, (*NEVER, *NOT_FOR_REQUIREMENTS)) == [], "import these where they are used"
    ours = among(loaded, ("torchpin*",))
    assert len(ours) <= 105, f"each costs a five-hundredth of the run: {ours}"


def test_a_check_of_a_project_with_its_lock_imports_no_more_than_it_uses(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "uv.lock").write_text(LOCK)
    loaded = imported(tmp_path, "pyproject.toml")
    assert "torchpin.select.locked" in loaded
    assert among(loaded, NEVER) == [], "import these where they are used"
    ours = among(loaded, ("torchpin*",))
    assert len(ours) <= 140, f"each costs a five-hundredth of the run: {ours}"


def test_what_must_not_be_imported_exists() -> None:
    known = {
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for path in SOURCE.rglob("*.py")
    }
    for pattern in (*NEVER, *NOT_FOR_REQUIREMENTS):
        if pattern.startswith("torchpin"):
            assert among(known, (pattern,)), f"{pattern} names no module any more"


def at_import(tree: ast.Module) -> list[ast.AST]:
    """Return the nodes of a module that run when it is imported."""
    nodes: list[ast.AST] = []
    queue: list[ast.AST] = [tree]
    while queue:
        node = queue.pop()
        nodes.append(node)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                queue.append(child)
    return nodes


def test_no_module_compiles_anything_when_it_is_imported() -> None:
    told = []
    for path in SOURCE.rglob("*.py"):
        tree, name = ast.parse(path.read_bytes()), path.relative_to(SOURCE).as_posix()
        for node in at_import(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "re.compile":
                told.append(f"{name}:{node.lineno}: take the regex of torchpin.patterns")
        for node in ast.walk(tree) if name != "named.py" else ():
            taken = isinstance(node, ast.ImportFrom) and node.module == "typing" and node.names
            if any(one.name == "NamedTuple" for one in taken or ()):
                told.append(f"{name}: take the NamedTuple of torchpin.named")
    assert told == []
