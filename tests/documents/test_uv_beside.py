"""Which file's settings uv takes, and which keys make it pass over all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.documents.base import Document
from torchpin.documents.loader import load
from torchpin.documents.pyproject import read_pyproject, read_uv_toml
from torchpin.documents.uv_beside import settings_beside

PROJECT = '[project]\nname = "app"\nversion = "0"\n'


def beside(folder: Path) -> str | None:
    """Return the file that gives the settings, relative to the folder above the project."""
    cache: dict[str, Document] = {}
    found = settings_beside(str(folder / "sub" / "pyproject.toml"), lambda path: load(path, cache))
    return None if found is None else str(Path(found.path).relative_to(folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "pyproject.toml").write_text(PROJECT, "utf-8")
    return tmp_path


def test_nothing_above(folder: Path) -> None:
    assert beside(folder) is None


def test_a_uv_toml_wins_over_the_project_beside_it(folder: Path) -> None:
    (folder / "sub" / "uv.toml").write_text("", "utf-8")
    (folder / "sub" / "pyproject.toml").write_text(PROJECT + "[tool.uv]\n", "utf-8")
    assert beside(folder) == str(Path("sub", "uv.toml"))


@pytest.mark.parametrize("own", ["", "[tool.uv]\nno-such-key = 1\n"])
def test_the_next_above_serves_a_project_without_settings(folder: Path, own: str) -> None:
    (folder / "sub" / "pyproject.toml").write_text(PROJECT + own, "utf-8")
    (folder / "pyproject.toml").write_text("[tool.uv]\n", "utf-8")
    assert beside(folder) == "pyproject.toml"
    (folder / "uv.toml").write_text("", "utf-8")
    assert beside(folder) == "uv.toml"


def test_own_settings_end_the_search(folder: Path) -> None:
    (folder / "sub" / "pyproject.toml").write_text(PROJECT + "[tool.uv.sources]\n", "utf-8")
    (folder / "uv.toml").write_text("", "utf-8")
    assert beside(folder) is None


def test_keys_that_uv_does_not_know() -> None:
    text = PROJECT + "[tool.uv]\nno-such-key = 1\n[tool.uv.pip]\nfoo = 1\n"
    document = read_pyproject("pyproject.toml", text.encode())
    assert document.project is not None
    assert "no-such-key" in document.project.ignored
    assert [problem.code for problem in document.problems] == ["misplaced", "misplaced"]
    alone = read_uv_toml("uv.toml", b"no-such-key = 1\n")
    assert [problem.code for problem in alone.problems] == ["option"]


def test_what_uv_stops_at() -> None:
    text = PROJECT + '[tool.uv]\nconflicts = [[{ extra = "a" }]]\n[tool.uv.sources]\n'
    text += 'torch = { index = "x", foo = 1 }\n'
    document = read_pyproject("pyproject.toml", text.encode())
    assert [problem.code for problem in document.problems] == ["shape", "shape"]
    assert document.project is not None and not document.project.ignored


def test_settings_for_single_packages() -> None:
    text = PROJECT + (
        '[tool.uv]\nexclude-dependencies = ["Torch_Vision", { package = { name = "a", version = '
        '"1" }, dependencies = ["torch"] }]\nexclude-newer-package = { torch = false }\n'
        'dependency-groups = { Dev = { requires-python = ">=3.12" } }\n'
        '[[tool.uv.dependency-metadata]]\nname = "x"\nversion = "2"\nrequires-dist = ["a", "b<1"]\n'
    )
    project = read_pyproject("pyproject.toml", text.encode()).project
    assert project is not None and not project.ignored
    assert {setting.key: setting.value for setting in project.settings} == {
        "uv.exclude-dependencies.torch-vision": "",
        "uv.exclude-dependencies-of.a==1": "torch",
        "uv.exclude-newer-package.torch": "false",
        "uv.dependency-groups.dev.requires-python": ">=3.12",
        "uv.dependency-metadata.x==2": "a\nb<1",
    }
