"""Which files are found."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from torchpin.documents.discover import FILES_PATTERN, discover, kind_of, load
from torchpin.documents.discover import KINDS as ALL
from torchpin.errors import UsageError

YES = [
    "requirements.txt", "requirements.in", "requirements-gpu.txt", "requirements_cu126.txt",
    "dev-requirements.txt", "a/b/requirements.txt", "requirements/gpu.txt",
    "x/requirements/base.in",
    "constraints.txt", "constraints-cu126.txt", "requirements.lock", "requirements-dev.lock",
    "requirments_cu118_py312.txt",
]  # fmt: skip
NO = [
    "README.txt", "requirements.md", "docs/requirements",
    "requirements/gpu.md", "requirements/a/b.txt",
    "requirements.txt.bak", "notes/torch.txt", "pylock.txt", "uv.lock.bak",
    "Cargo.lock", "my-pyproject.toml", "pylock.a.b.toml",
]  # fmt: skip


@pytest.mark.parametrize("path", YES)
def test_names(path: str) -> None:
    assert kind_of(path) == "requirements"
    assert FILES_PATTERN.search(path)


KINDS = {
    "pyproject.toml": "pyproject", "a/pyproject.toml": "pyproject", "uv.toml": "uv.toml",
    "uv.lock": "uv.lock", "a/poetry.lock": "poetry.lock", "pdm.lock": "pdm.lock",
    "pylock.toml": "pylock", "pylock.cu126.toml": "pylock", "requirements.lock": "requirements",
}  # fmt: skip


@pytest.mark.parametrize(("path", "kind"), KINDS.items())
def test_kinds(path: str, kind: str) -> None:
    assert kind_of(path) == kind
    assert FILES_PATTERN.search(path)


@pytest.mark.parametrize("path", NO)
def test_other_names(path: str) -> None:
    assert kind_of(path) is None


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("torch\n")


def test_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, *YES, *NO)
    make(
        tmp_path, ".git/requirements.txt", ".tox/requirements.txt", "node_modules/requirements.txt",
        "env/pyvenv.cfg", "env/requirements.txt", "env/lib/x/requirements.txt",
        "lib/site-packages/x/requirements.txt", "__pycache__/requirements.txt",
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert [file.path for file in discover(["."]).files] == sorted(YES)
    assert {file.kind for file in discover(["."]).files} == {"requirements"}
    monkeypatch.chdir(tmp_path / "requirements")
    assert [file.path for file in discover(["."]).files] == ["gpu.txt"]


def test_projects_and_locks_come_where_they_are_wanted(tmp_path: Path) -> None:
    make(tmp_path, *KINDS, "docs/uv.toml")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "pyproject.toml").write_text("[project]\ndependencies = ['requests']\n")
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / "pyproject.toml").write_text("[project]\ndependencies = ['x']\n")
    (tmp_path / "locked" / "uv.lock").write_text("version = 1\n")
    (tmp_path / "implied").mkdir()
    (tmp_path / "implied" / "pyproject.toml").write_text("[project]\ndependencies = ['vllm']\n")
    found = discover([str(tmp_path)], ALL)
    names = {Path(file.path).relative_to(tmp_path).as_posix(): file.kind for file in found.files}
    assert names == {
        **KINDS, "docs/uv.toml": "uv.toml", "locked/pyproject.toml": "pyproject",
        "locked/uv.lock": "uv.lock", "implied/pyproject.toml": "pyproject",
    }  # fmt: skip
    assert [file.kind for file in discover([str(tmp_path)]).files] == ["requirements"]
    # A file that is named is taken, whatever it holds.
    named = str(tmp_path / "plain" / "pyproject.toml")
    assert [file.kind for file in discover([named], ALL).files] == ["pyproject"]
    with pytest.raises(UsageError, match="no kind of file"):
        discover([named])


def test_named_paths_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "gpu.list", ".hidden/requirements.txt", "env/pyvenv.cfg", "env/requirements.txt")
    monkeypatch.chdir(tmp_path)
    found = discover(["gpu.list", ".hidden", "env", "gpu.list", "./gpu.list"])
    assert [file.path for file in found.files] == [
        *("gpu.list", ".hidden/requirements.txt", "env/requirements.txt")
    ]


def test_links_and_overlap_give_each_file_once(tmp_path: Path) -> None:
    make(tmp_path, "a/requirements.txt")
    (tmp_path / "a" / "requirements-link.txt").symlink_to(tmp_path / "a" / "requirements.txt")
    found = discover([str(tmp_path / "a"), str(tmp_path)])
    assert len(found.files) == 1


@pytest.mark.parametrize("name", ["Cargo.toml", "train.ipynb"])
def test_other_kinds_are_refused(name: str, tmp_path: Path) -> None:
    make(tmp_path, name)
    with pytest.raises(UsageError, match="no kind of file"):
        discover([str(tmp_path / name)])


def test_unreadable_folder_below_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a/requirements.txt", "b/requirements.txt")
    import os

    real = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("b"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = discover([str(tmp_path)])
    assert [file.path for file in found.files] == [str(tmp_path / "a" / "requirements.txt")]
    assert found.skipped == ((str(tmp_path / "b"), "Permission denied"),)


def test_what_git_ignores_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("build/\n/local-requirements.txt\nkept-requirements.txt\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".gitignore").write_text("!build/\nold/\n")
    for name in (
        *("requirements.txt", "build/requirements.txt", "local-requirements.txt"),
        *("sub/build/requirements.txt", "sub/old/requirements.txt", "kept-requirements.txt"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("torch\n")
    subprocess.run(["git", "-C", str(tmp_path), "add", "-f", "kept-requirements.txt"], check=True)
    monkeypatch.chdir(tmp_path)
    every = ["kept-requirements.txt", "requirements.txt", "sub/build/requirements.txt"]
    assert [one.path for one in discover(["."]).files] == every
    assert [one.path for one in discover(["build"]).files] == ["build/requirements.txt"]
    assert [one.path for one in discover(["local-requirements.txt"]).files] == [
        "local-requirements.txt"
    ]
    # Inside of a hook git names a repository of its own.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert [one.path for one in discover([str(tmp_path / "sub")]).files] == [
        str(tmp_path / "sub/build/requirements.txt")
    ]


def test_without_git_everything_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("requirements.txt\n")
    (tmp_path / "requirements.txt").write_text("torch\n")
    monkeypatch.setenv("PATH", "")
    assert len(discover([str(tmp_path)]).files) == 1


def test_hidden_folders_of_ci_systems_are_looked_into(tmp_path: Path) -> None:
    for name in (".github/workflows/ci.yml", ".circleci/config.yml", ".cache/requirements.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("run: pip install torch\n")
    found = discover([str(tmp_path)], ALL).files
    assert [one.kind for one in found] == ["circleci", "github-workflow"]


def test_a_named_profile_stands_for_its_folder(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.14.1\n")
    profile = tmp_path / "torchpin.toml"
    profile.write_text("[fleet.a]\ngpus = []\n")
    found = discover([str(profile)], ALL)
    assert [Path(one.path).name for one in found.files] == ["requirements.txt"]


ENVIRONMENT = (
    "channels: [conda-forge]\ndependencies:\n  - python=3.11\n  - pip:\n    - torch==2.9.1\n"
)
WITHOUT_CHANNELS = "name: x\ndependencies:\n  - pip:\n      - torch==2.9.1\n"
CHART = "name: x\ndependencies:\n  - name: torch\n    version: 1.0.0\n"


@pytest.mark.parametrize(
    ("name", "text", "taken"),
    [
        ("conda/gpu.yml", ENVIRONMENT, True),
        ("envs/train-env.yaml", ENVIRONMENT, True),
        ("env_cuda.yml", ENVIRONMENT, True),
        ("gpu.yml", ENVIRONMENT, True),
        ("deploy/pytorch.yaml", WITHOUT_CHANNELS, True),
        ("requirements/dev.yml", ENVIRONMENT, True),
        ("py311.yml", ENVIRONMENT.replace("torch", "numpy"), False),
        ("charts/torchserve.yaml", CHART, False),
        ("gpu.yaml", "image: torch\n", False),
        ("values.yaml", ENVIRONMENT, False),
    ],
)
def test_odd_names_are_told_by_their_keys(
    tmp_path: Path, name: str, text: str, taken: bool
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    found = discover([str(tmp_path)], ALL).files
    assert [(one.path, one.kind) for one in found] == (
        [(str(path), "environment.yml")] if taken else []
    )


@pytest.mark.parametrize("below", ["", ".github", ".github/workflows"])
def test_ci_files_are_known_wherever_one_stands(
    tmp_path: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".github" / "workflows" / "ci.yml"
    path.parent.mkdir(parents=True)
    path.write_text("jobs:\n  a:\n    steps:\n      - run: pip install torch\n", "utf-8")
    monkeypatch.chdir(tmp_path / below)
    (found,) = discover(["."], ALL).files
    assert found.kind == "github-workflow"
    assert load(found.path, {}).kind == "github-workflow"
    (named,) = discover([found.path], ALL).files
    assert named.kind == "github-workflow"
    (given,) = discover([str(tmp_path / ".github" / "workflows")], ALL).files
    assert given.kind == "github-workflow"
