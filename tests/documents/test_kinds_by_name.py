"""Names that are told without the long pattern are told as the pattern tells them."""

from __future__ import annotations

import itertools

import pytest

from torchpin.documents.kinds import FILES_PATTERN, KINDS, REQUIREMENTS, kind_of

FOLDERS = (
    "",
    "a/",
    "requirements/",
    ".github/workflows/",
    ".gitlab/b/",
    ".circleci/",
    "Dockerfile/",
)
NAMES = (
    *("pyproject.toml", "uv.toml", "uv.lock", "poetry.lock", "pdm.lock", "setup.cfg", "setup.py"),
    *("requirements.txt", "dev-requirements-gpu.in", "constraints.txt", "requirements.txt.in"),
    *("Dockerfile.requirements.txt", "Makefile.constraints.in", "requirements.in.txt"),
)


@pytest.mark.parametrize(
    "path", [folder + name for folder, name in itertools.product(FOLDERS, NAMES)]
)
def test_what_is_told_by_name_is_what_the_pattern_tells(path: str) -> None:
    match = FILES_PATTERN.search(path)
    assert match is not None and match[1] is not None  # a list, a project or a lock: no parts
    base = path.rpartition("/")[2]
    assert kind_of(path) == (
        base if base in KINDS else {"pyproject.toml": "pyproject"}.get(base, REQUIREMENTS)
    )


@pytest.mark.parametrize("name", ["requirement.txt", "Requirements.txt", "requirements.txt.bak"])
def test_what_only_looks_like_it_is_left_to_the_pattern(name: str) -> None:
    assert kind_of(name) is None and FILES_PATTERN.search(name) is None
