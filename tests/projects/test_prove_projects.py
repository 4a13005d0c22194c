"""``fix --prove`` on projects: the real owner of the lock says yes before anything is written."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.clients.installs import catalog_wheels, plain_wheel  # noqa: E402
from tests.clients.stub_server import Stub  # noqa: E402
from tests.projects.project_oracle import UvLock  # noqa: E402
from tests.projects.surroundings import uv_knows_only  # noqa: E402
from tools.record_golden import torchpin  # noqa: E402

V100 = '[fleet.volta]\ngpus = ["Tesla V100"]\ndriver = "580.82.07"\npython = "3.11"\n'
B200 = '[fleet.new]\ngpus = ["B200"]\ndriver = "580.82.07"\npython = "3.11"\n'
HEAD = '[project]\nname = "app"\nversion = "0.1.0"\nrequires-python = ">=3.11"\n'
TAIL = """
[tool.uv]
package = false

[[tool.uv.index]]
name = "pt"
url = "{base}/whl/cu130"
explicit = true

[tool.uv.sources]
torch = {{ index = "pt", marker = "sys_platform == 'linux'" }}
"""


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with Stub(wheels=[*catalog_wheels(), plain_wheel("numpy", "1.0")]) as running:
        yield running


@pytest.fixture
def world(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment in which uv knows nothing but the stub."""
    uv_knows_only(stub, tmp_path, monkeypatch)
    work = tmp_path / "project"
    work.mkdir()
    return work


def write(work: Path, text: str, fleet: str = V100) -> dict[str, bytes]:
    (work / "torchpin.toml").write_text(fleet, "utf-8")
    (work / "pyproject.toml").write_text(text, "utf-8", newline="\n")
    return contents(work)


def contents(work: Path) -> dict[str, bytes]:
    files = (path for path in work.rglob("*") if path.is_file())
    return {str(path.relative_to(work)): path.read_bytes() for path in files}


@pytest.mark.clients
def test_uv_locks_and_syncs_the_copy(world: Path, stub: Stub) -> None:
    text = HEAD + 'dependencies = ["torch>=2.11", "numpy"]\n' + TAIL.format(base=stub.base)
    before = write(world, text)
    done = torchpin("fix", "--unsafe-fixes", "--prove", str(world))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "proved by the owners of the locks: 1 lock, 1 sync" in done.stderr
    after = contents(world)
    assert set(after) == set(before)  # no lock, no environment, nothing else
    assert b"/whl/cu126" in after["pyproject.toml"]


@pytest.mark.clients
def test_each_group_of_a_split_is_synced_by_its_extra(world: Path, stub: Stub) -> None:
    text = HEAD + 'dependencies = ["torch>=2.11"]\n[tool.uv]\npackage = false\n'
    write(world, text, V100 + B200)
    manifest = world / "pyproject.toml"
    # The new indexes are PyTorch's own: let them be the stub's in the copy that uv gets.
    done = torchpin("fix", "--unsafe-fixes", str(world))
    assert done.returncode in (0, 1)
    fixed = manifest.read_text("utf-8").replace("https://download.pytorch.org", stub.base)
    assert fixed.count("extra = ") >= 4
    from torchpin.cli.prove_project import prove_projects
    from torchpin.documents.pyproject import read_pyproject
    from torchpin.fleet.profile import load_profile

    document = read_pyproject(str(manifest), manifest.read_bytes())
    fleet = load_profile(str(world / "torchpin.toml"))
    proved = prove_projects([(document, fixed.encode())], [document], fleet.targets(), None)
    assert (proved.locks, proved.syncs) == (1, 2)


@pytest.mark.clients
def test_what_uv_refuses_is_not_written(world: Path, stub: Stub) -> None:
    """Another requirement has no solution: that is not torchpin's to mend, but uv stops."""
    text = HEAD + 'dependencies = ["torch>=2.11", "numpy>=2"]\n' + TAIL.format(base=stub.base)
    before = write(world, text)
    done = torchpin("fix", "--unsafe-fixes", "--prove", str(world))
    assert done.returncode == 2, done.stdout
    assert "uv refuses the mended project (`uv lock`); nothing was written" in done.stderr
    assert "numpy" in done.stderr
    assert contents(world) == before


@pytest.mark.clients
def test_a_lock_is_moved_only_where_the_fix_moves_it(world: Path, stub: Stub) -> None:
    text = HEAD + 'dependencies = ["torch>=2.11"]\n' + TAIL.format(base=stub.base)
    write(world, text)
    with UvLock(stub) as uv:
        assert uv.run(world, "lock").returncode == 0
    before = contents(world)
    done = torchpin("fix", "--unsafe-fixes", "--prove", str(world))
    assert done.returncode == 1, done.stdout + done.stderr  # the lock is still the old one
    assert "1 lock, 1 sync" in done.stderr
    assert contents(world)["uv.lock"] == before["uv.lock"]
    assert contents(world)["pyproject.toml"] != before["pyproject.toml"]


@pytest.mark.clients
def test_secrets_of_an_index_are_not_shown(world: Path, stub: Stub) -> None:
    secret = "hunter2hunter2"
    text = HEAD + 'dependencies = ["torch>=2.11", "numpy>=2"]\n' + TAIL.format(base=stub.base)
    url = stub.pypi.replace("://", f"://someone:{secret}@") + "/"
    text += f'\n[[tool.uv.index]]\nname = "own"\nurl = "{url}"\n'
    before = write(world, text)
    done = torchpin("fix", "--unsafe-fixes", "--prove", str(world))
    assert "nothing was written" in done.stderr
    assert secret not in done.stdout + done.stderr
    assert contents(world) == before


POETRY = """\
[tool.poetry]
name = "app"
version = "0.1.0"
package-mode = false

[tool.poetry.dependencies]
python = ">=3.11,<3.13"
torch = "^2.11"
"""


def fake(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_poetry_is_asked_in_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, tools = tmp_path / "project", tmp_path / "bin"
    work.mkdir()
    fake(
        tools, "poetry", 'echo "$PWD $*" > "$LOG"; cat pyproject.toml >> "$LOG"; touch poetry.lock'
    )
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    write(work, POETRY)
    done = torchpin("fix", "--unsafe-fixes", "--prove", str(work))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "proved by the owners of the locks: 1 lock" in done.stderr
    place, _, rest = (tmp_path / "log").read_text("utf-8").partition(" lock\n")
    assert place != str(work)
    assert "pytorch-cu126" in rest
    assert sorted(contents(work)) == ["pyproject.toml", "torchpin.toml"]


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_poetry_says_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, tools = tmp_path / "project", tmp_path / "bin"
    work.mkdir()
    url = "https://me:s3cr3ts3cr3t@pypi.example/simple"
    fake(tools, "poetry", f"echo 'no version for numpy on {url}' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin")
    before = write(work, POETRY)
    done = torchpin("fix", "--unsafe-fixes", "--prove", str(work))
    assert done.returncode == 2
    assert "poetry refuses the mended project (`poetry lock`)" in done.stderr
    assert "no version for numpy" in done.stderr
    assert "s3cr3t" not in done.stderr
    assert contents(work) == before


def test_a_missing_tool_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "project"
    work.mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    before = write(work, POETRY)
    done = torchpin("fix", "--unsafe-fixes", "--prove", str(work))
    assert done.returncode == 2
    assert "--prove needs poetry, which is not installed" in done.stderr
    assert contents(work) == before


@pytest.mark.parametrize(
    ("tool", "expected"),
    [("pdm", ("pdm", "lock")), ("poetry", ("poetry", "lock")), ("uv", ("uv", "lock"))],
)
def test_a_project_without_a_lock_is_locked_whole(tool: str, expected: tuple[str, ...]) -> None:
    from torchpin.cli.prove_project import Workspace, lock_command

    assert lock_command(Workspace("/x", tool, (), None), ["torch"]) == expected


def test_sources_that_a_backend_reads_are_copied(tmp_path: Path) -> None:
    from torchpin.cli.prove_project import Workspace, lay_out
    from torchpin.documents.pyproject import read_pyproject

    work = tmp_path / "work" / "app"
    (work / "src" / "app").mkdir(parents=True)
    (work / ".venv").mkdir()
    (work / ".venv" / "big").write_text("x", "utf-8")
    (work / "src" / "app" / "__init__.py").write_text("__version__ = '1'\n", "utf-8")
    (tmp_path / "work" / "lib").mkdir()
    (tmp_path / "work" / "lib" / "pyproject.toml").write_text("", "utf-8")
    text = (
        '[project]\nname = "app"\ndynamic = ["version"]\ndependencies = ["torch", "lib"]\n'
        '[tool.uv.sources]\nlib = { path = "../lib" }\n'
    )
    manifest = work / "pyproject.toml"
    manifest.write_text(text, "utf-8")
    document = read_pyproject(str(manifest), text.encode())
    place = Workspace(str(work), "uv", (document,), None)
    folder = Path(lay_out(place, [(document, b"mended")], str(tmp_path / "copy")))
    assert (folder / "pyproject.toml").read_bytes() == b"mended"
    assert (folder / "src" / "app" / "__init__.py").is_file()
    assert (folder.parent / "lib" / "pyproject.toml").is_file()
    assert not (folder / ".venv").exists()
