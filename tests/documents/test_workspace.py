"""Workspaces: the members that uv 0.13.9 takes, and who belongs to whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.documents.base import Document
from torchpin.documents.loader import load, locks_beside, siblings_of, workspace_root
from torchpin.documents.workspace import is_member, members
from torchpin.errors import TorchpinError

TREE = ("packages/a", "packages/b", "packages/x/deep", "libs/c", "libs/.hid", "nested/p/q/r")

# members, exclude, what `uv lock` of 0.13.9 takes in (packages/** without packages/x, on which
# it stops because that folder holds no project).
TABLE: list[tuple[list[str], list[str], set[str]]] = [
    (["packages/a", "libs/*"], [], {"packages/a", "libs/c", "libs/.hid"}),
    (["packages/*/*", "libs/c"], [], {"packages/x/deep", "libs/c"}),
    (["packages/**"], [], {"packages/a", "packages/b", "packages/x/deep"}),
    (["**/r", "packages/[ab]"], [], {"nested/p/q/r", "packages/a", "packages/b"}),
    (["packages/**", "libs/*"], ["packages/*"], {"libs/c", "libs/.hid"}),
    (["packages/a", "packages/x/deep"], ["packages/x"], {"packages/a", "packages/x/deep"}),
    (["packages/{a,b}"], [], set()),
    (["./packages/a/"], [], {"packages/a"}),
    (["packages/a"], ["**/a"], set()),
    (["packages/a", "packages/x/*"], ["packages/?"], {"packages/x/deep"}),
    (["nested/**/r"], [], {"nested/p/q/r"}),
    (["packages/[!b]"], [], {"packages/a"}),
    (["packages/[z-a]", "packages/["], [], set()),
    ([], [], set()),
]


def folders(path: str) -> list[str]:
    below = {
        member[len(path) :].lstrip("/").split("/")[0]
        for member in TREE
        if not path or member.startswith(path + "/")
    }
    return sorted(below - {""})


@pytest.mark.parametrize(("patterns", "exclude", "taken"), TABLE)
def test_members(patterns: list[str], exclude: list[str], taken: set[str]) -> None:
    assert {m for m in members(patterns, exclude, folders) if m in TREE} == taken
    assert {m for m in TREE if is_member(m, patterns, exclude)} == taken


def test_a_loop_of_folders_ends() -> None:
    calls = 0

    def endless(path: str) -> list[str]:
        nonlocal calls
        calls += 1
        return ["a", "b", "c"]

    assert members(["**/**/x"], [], endless)
    assert calls < 30_000


ROOT = """
[project]
name = "root"
[tool.uv.workspace]
members = ["packages/*", "gone"]
exclude = ["packages/old"]
[[tool.uv.index]]
name = "pytorch"
url = "https://download.pytorch.org/whl/cu126"
"""


def make(folder: Path, text: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(text)
    return str(path)


def test_siblings_and_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path, ROOT)
    a = make(tmp_path / "packages" / "a", '[project]\nname = "a"\n')
    make(tmp_path / "packages" / "own", "[tool.uv]\nmanaged = false\n")
    old = make(tmp_path / "packages" / "old", '[project]\nname = "old"\n')
    broken = make(tmp_path / "packages" / "broken", "[project\n")
    (tmp_path / "packages" / "empty").mkdir()
    cache: dict[str, Document] = {}
    assert siblings_of(root, cache) == (a, broken)
    assert siblings_of(a, cache) == ()
    assert workspace_root(a, cache) == root
    assert workspace_root(old, cache) is None
    assert workspace_root(root, cache) is None
    monkeypatch.chdir(tmp_path / "packages" / "a")
    assert workspace_root("pyproject.toml", {}) == "../../pyproject.toml"
    monkeypatch.chdir(tmp_path)
    assert siblings_of("pyproject.toml", {}) == (
        *("packages/a/pyproject.toml", "packages/broken/pyproject.toml"),
    )
    with pytest.raises(TorchpinError, match="does not exist"):
        siblings_of(str(tmp_path / "nowhere" / "pyproject.toml"), {})


def test_locks_beside(tmp_path: Path) -> None:
    root = make(tmp_path, ROOT)
    names = ("pylock.cu126.toml", "pylock.toml", "pdm.lock", "uv.lock", "poetry.lock", "x.lock")
    for name in names:
        (tmp_path / name).write_text("")
    (tmp_path / "requirements.lock").mkdir()
    assert [Path(path).name for path in locks_beside(root)] == [
        *("uv.lock", "poetry.lock", "pdm.lock", "pylock.cu126.toml", "pylock.toml")
    ]
    assert locks_beside(str(tmp_path / "nowhere" / "pyproject.toml")) == ()


def test_load_reads_each_kind_by_its_name(tmp_path: Path) -> None:
    root = make(tmp_path, ROOT)
    texts = {
        "uv.toml": 'torch-backend = "auto"\n',
        "requirements.txt": "torch\n",
        "uv.lock": 'version = 1\nrevision = 3\n\n[[package]]\nname = "x"\nversion = "1"\n',
        "poetry.lock": 'package = []\n\n[metadata]\nlock-version = "2.1"\n',
        "pdm.lock": '[metadata]\nlock_version = "4.5"\n',
        "pylock.toml": 'lock-version = "1.0"\ncreated-by = "uv"\npackages = []\n',
    }
    kinds = {}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        document = load(str(tmp_path / name), {})
        kinds[name] = document.kind
        assert document.text == text
        assert (document.lock is not None) == ("lock" in name)
    assert kinds == {**{name: name for name in texts}, "requirements.txt": "requirements",
                     "pylock.toml": "pylock"}  # fmt: skip
    assert load(root, {}).project is not None


def test_binary_project_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(b"\x7fELF\0\0\xff\xfe")
    with pytest.raises(TorchpinError, match="not UTF-8"):
        load(str(path), {})
