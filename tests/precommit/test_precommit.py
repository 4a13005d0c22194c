"""The hooks of this checkout in a real git repository, run by the real pre-commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.clients
CHECKOUT = Path(__file__).parents[2]
FLEET = """\
[fleet.training]
gpus = ["Tesla V100-SXM2-16GB"]
driver = "580.65.06"
python = "3.11"
platform = "linux-x86_64"
glibc = "2.31"
"""
GOOD = """\
--extra-index-url https://download.pytorch.org/whl/cu126
torch==2.14.1+cu126
"""
BAD = """\
--extra-index-url https://download.pytorch.org/whl/cu130
torch==2.14.1+cu130
"""


class Repository:
    """A git repository of a user, with the hooks installed."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        self.environment = {
            **kept,
            "PRE_COMMIT_HOME": str(cache),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A User",
            "GIT_AUTHOR_EMAIL": "user@corp.example",
            "GIT_COMMITTER_NAME": "A User",
            "GIT_COMMITTER_EMAIL": "user@corp.example",
            "NO_COLOR": "1",
        }
        folder.mkdir(exist_ok=True)

    def run(self, *command: str, ok: bool = True) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=600,
            check=False,
        )
        assert (done.returncode == 0) is ok, done.stdout
        return done.stdout

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        self.run("git", "add", name)

    def commits(self) -> int:
        return int(self.run("git", "rev-list", "--count", "--all"))


def snapshot(folder: Path, cache: Path) -> tuple[Path, str]:
    """Copy the checkout as it is now (tracked and new files) to a repository with one commit."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    repository = Repository(folder, cache)
    wanted = ("src", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
    for name in filter(None, listed.split("\0")):
        if name.split("/")[0] in wanted and (CHECKOUT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / name, target)
    repository.run("git", "init", "-q")
    repository.run("git", "add", ".")
    repository.run("git", "commit", "-q", "-m", "snapshot")
    return folder, repository.run("git", "rev-parse", "HEAD").strip()


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Path]:
    """The snapshot, its commit, and pre-commit's cache, so that the hook is installed once."""
    cache = tmp_path_factory.mktemp("pre-commit-cache")
    path, revision = snapshot(tmp_path_factory.mktemp("checkout"), cache)
    return path, revision, cache


def repository(folder: Path, hooks: tuple[Path, str, Path], hook: str) -> Repository:
    path, revision, cache = hooks
    made = Repository(folder / "project", cache)
    made.run("git", "init", "-q")
    made.write("torchpin.toml", FLEET)
    made.write(
        ".pre-commit-config.yaml",
        f"repos:\n- repo: {path}\n  rev: {revision}\n  hooks:\n  - id: {hook}\n",
    )
    made.run(sys.executable, "-m", "pre_commit", "install")
    return made


def test_check_blocks_what_breaks_the_fleet(tmp_path: Path, hooks: tuple[Path, str, Path]) -> None:
    project = repository(tmp_path, hooks, "torchpin-check")
    project.write("requirements.txt", GOOD)
    project.write("notes.txt", "torch==0.0.1 is no requirement here\n")
    said = project.run("git", "commit", "-m", "good")
    assert "Passed" in said
    assert project.commits() == 1
    project.write("requirements.txt", BAD)
    said = project.run("git", "commit", "-m", "bad", ok=False)
    assert "TP201" in said
    assert "requirements.txt:2" in said
    assert project.commits() == 1
    project.write("requirements.txt", GOOD)
    project.write("notes.txt", "not a requirements file: no hook runs\n")
    said = project.run("git", "commit", "-m", "other files")
    assert "no files to check" in said
    assert project.commits() == 2


def test_a_changed_fleet_is_held_against_every_file(
    tmp_path: Path, hooks: tuple[Path, str, Path]
) -> None:
    project = repository(tmp_path, hooks, "torchpin-check")
    project.write("requirements.txt", GOOD)
    project.run("git", "commit", "-m", "good")
    project.write("torchpin.toml", FLEET.replace('"', '"RTX 5090", "', 1))
    said = project.run("git", "commit", "-m", "new machines", ok=False)
    assert "TP201" in said
    project.write("torchpin.toml", "[fleet\n")
    assert "torchpin.toml" in project.run("git", "commit", "-m", "no fleet", ok=False)


def test_fix_mends_and_the_second_commit_passes(
    tmp_path: Path, hooks: tuple[Path, str, Path]
) -> None:
    project = repository(tmp_path, hooks, "torchpin-fix")
    project.write("requirements.txt", BAD)
    said = project.run("git", "commit", "-m", "bad", ok=False)
    assert "files were modified by this hook" in said
    assert (project.folder / "requirements.txt").read_text("utf-8") == GOOD
    project.run("git", "add", "requirements.txt")
    assert "Passed" in project.run("git", "commit", "-m", "mended")
