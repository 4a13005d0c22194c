"""Files whose names do not tell what they are, and systems that only some parts are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.documents.discover import FoundFile, discover
from torchpin.documents.kinds import KINDS
from torchpin.documents.loader import load
from torchpin.documents.tox_names import marker_of
from torchpin.errors import UsageError

ENVIRONMENT = "name: x\nchannels: [conda-forge]\ndependencies:\n- pip:\n  - torch==2.7.0\n"


def test_an_environment_of_conda_is_told_by_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(ENVIRONMENT)
    assert discover([str(path)], KINDS).files == (FoundFile(str(path), "environment.yml"),)
    document = load(str(path), {})
    assert [one.name for part in document.parts for one in part.document.declarations] == ["torch"]


@pytest.mark.parametrize("text", ["channels: []\n", "dependencies:\n- torch\n", "a: 1\n"])
def test_other_yaml_files_are_still_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.yaml"
    path.write_text(text)
    with pytest.raises(UsageError):
        discover([str(path)], KINDS)


@pytest.mark.parametrize(
    ("pattern", "marker"),
    [
        ("linux", "sys_platform == 'linux'"),
        ("linux|darwin", "sys_platform == 'linux' or sys_platform == 'darwin'"),
        ("win32", "sys_platform == 'win32'"),
        ("lin", "sys_platform == 'linux'"),
        ("(?!win).*", "sys_platform == 'linux' or sys_platform == 'darwin'"),
        ("aix", "sys_platform == 'none of these'"),
        (".*", None),
        ("", None),
        ("[", None),
        ("{env:SYSTEM}", None),
    ],
)
def test_the_platform_of_tox_is_a_pattern(pattern: str, marker: str | None) -> None:
    assert marker_of(pattern) == marker
