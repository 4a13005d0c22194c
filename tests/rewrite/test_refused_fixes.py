"""A fix that would change more than it says is left out and told of; the others are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.cli.main import guarded
from torchpin.documents.base import Document, Edit
from torchpin.errors import RewriteError
from torchpin.rewrite import verify_part

DOCKERFILE = """\
FROM python:3.11-slim AS one
RUN pip install torch==2.7.0 --index-url https://download.pytorch.org/whl/cu124
FROM python:3.11-slim AS two
RUN pip install torch==2.8.0 --index-url https://download.pytorch.org/whl/cu124
"""


@pytest.fixture
def wary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the check of edits refuse those of the first command."""
    real = verify_part.check_part_edit

    def check(before: Document, after_text: str, edits: tuple[Edit, ...]) -> Document:
        if before.declarations[0].specifier == "==2.7.0":
            raise RewriteError("not edited: it would install others", path=before.path)
        if any(one.span.start < DOCKERFILE.index("AS two") for one in edits):
            raise RewriteError("not edited: it would install others", path=before.path)
        return real(before, after_text, edits)

    monkeypatch.setattr(verify_part, "check_part_edit", check)


@pytest.mark.usefixtures("wary")
def test_one_bad_fix_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "Dockerfile"
    path.write_text(DOCKERFILE)
    other = tmp_path / "requirements.txt"
    other.write_text("--index-url https://download.pytorch.org/whl/cu124\ntorch==2.7.0\n")
    code = guarded(["fix", "--unsafe-fixes", str(path), str(other)])
    told = capsys.readouterr().err
    assert code == 1
    assert "whl/cu124" in path.read_text().splitlines()[1]
    assert "whl/cu124" not in path.read_text().splitlines()[3]
    assert "whl/cu124" not in other.read_text()
    assert told.count("not mended") == 1 and "Dockerfile: not mended (" in told
    assert "not edited: it would install others" in told


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("setup.cfg", "[options]\ninstall_requires =\n    torch==2.14.0\n"),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=['torch==2.14.0'])\n"),
    ],
)
def test_uv_keeps_no_index_where_no_toml_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    """uv reads them too, but what it would need cannot be written there: advice, no edit."""
    path = tmp_path / name
    path.write_text(text)
    fleet = ["--isolated", "--gpu", "V100", "--driver", "550.54.15", "--python", "3.11"]
    assert guarded(["fix", "--unsafe-fixes", *fleet, "--client", "uv", str(path)]) == 1
    told = capsys.readouterr()
    assert "torch 2.14.0 (channel cu126); not written into this file" in told.out
    assert "internal" not in told.err
    assert path.read_text() == text
    new = ["upgrade", "--isolated", "--to", "2.15", "--gpu", "A100", "--driver", "590.44.01"]
    assert guarded([*new, "--python", "3.11", "--client", "uv", str(path)]) in (0, 1)
