"""A ``Pipfile`` gets pins and a source, and nothing else of it changes; pipenv locks it anew."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from torchpin.cli.main import guarded
from torchpin.documents.base import Edit, Span, apply_edits
from torchpin.documents.pipfile import read_pipfile
from torchpin.errors import RewriteError
from torchpin.rewrite.pipfile_edit import check_pipfile_edit

PYPI = '[[source]]\nurl = "https://pypi.example/simple"\nverify_ssl = true\nname = "pypi"\n'
SOURCE = (
    '\n[[source]]\nname = "pytorch-cu126"\nurl = "https://download.pytorch.org/whl/cu126"\n'
    "verify_ssl = true\n"
)
FLEET = ("--gpu", "V100", "--driver", "580.82.07", "--python", "3.12", "--platform", "linux-x86_64")


def fixed(folder: Path, text: str, *more: str) -> str:
    path = folder / "Pipfile"
    path.write_bytes(text.encode())
    guarded(["fix", "--isolated", "--unsafe-fixes", "-q", *FLEET, *more, str(folder)])
    return path.read_bytes().decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('torch = "*"', 'torch = {version = "==2.14.1+cu126", index = "pytorch-cu126"}'),
        ("torch = '==2.11.0' # why", 'torch = {version = "==2.11.0+cu126", index = '
         '"pytorch-cu126"} # why'),
        ('numpy = "*"\n"torch" = {version = "==2.11.0", extras = ["opt-einsum"]}\nrich="*"',
         'numpy = "*"\n"torch" = {version = "==2.11.0+cu126", index = "pytorch-cu126", '
         'extras = ["opt-einsum"]}\nrich="*"'),
        ('torch = {index = "pypi", version = "==2.11.0"}',
         'torch = {index = "pytorch-cu126", version = "==2.11.0+cu126"}'),
        ('numpy = "*"\n[packages.torch]\nversion = "==2.11.0"\nmarkers = "os_name != \'nt\'"',
         'numpy = "*"\n[packages.torch]\nversion = "==2.11.0+cu126"\nindex = "pytorch-cu126"\n'
         'markers = "os_name != \'nt\'"'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pins_and_a_source_are_written(before: str, after: str, end: str, tmp_path: Path) -> None:
    text = f"{PYPI}\n[packages]\n{before}\n".replace("\n", end)
    assert fixed(tmp_path, text) == f"{PYPI}{SOURCE}\n[packages]\n{after}\n".replace("\n", end)


def test_a_source_of_the_channel_that_is_there_is_taken(tmp_path: Path) -> None:
    own = '\n[[source]]\nname = "pt"\nurl = "https://download.pytorch.org/whl/cu126/"\n'
    text = f'{PYPI}{own}\n[packages]\ntorch = "==2.11.0"\nnumpy = "*"\n'
    new = text.replace('"==2.11.0"', '{version = "==2.11.0+cu126", index = "pt"}')
    assert fixed(tmp_path, text) == new


def test_a_category_and_sources_at_the_end_without_a_line_end(tmp_path: Path) -> None:
    text = f'[gpu]\ntorch = "==2.11.0"\n\n{PYPI}'.rstrip("\n")
    new = text.replace('"==2.11.0"', '{version = "==2.11.0+cu126", index = "pytorch-cu126"}')
    assert fixed(tmp_path, text) == f"{new}\n{SOURCE}"


@pytest.mark.parametrize(
    "text",
    [
        f'{PYPI}\n[packages]\ntorchvision = "==0.26.0"\n',  # torch has no entry for the pin
        '[packages]\ntorch = "==2.11.0"\n',  # pipenv's own default would be lost
        f'{PYPI}\n[packages]\ntorch = "\\u003d=2.11.0"\n',
    ],
)
def test_what_has_no_place_is_left(text: str, tmp_path: Path) -> None:
    assert fixed(tmp_path, text) == text


def lock_of(folder: Path) -> bytes:
    lock = {
        "_meta": {
            "hash": {"sha256": "0" * 64},
            "pipfile-spec": 6,
            "requires": {},
            "sources": [{"name": "pypi", "url": "https://pypi.example/simple", "verify_ssl": True}],
        },
        "default": {"torch": {"hashes": [], "index": "pypi", "version": "==2.11.0"}},
        "develop": {},
    }
    data = json.dumps(lock, indent=4).encode()
    (folder / "Pipfile.lock").write_bytes(data)
    return data


def pipenv_that(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    folder.mkdir()
    program = folder / "pipenv"
    program.write_text(f"#!{sys.executable}\nimport json, sys\n{code}", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for pipenv is a script")
@pytest.mark.parametrize("works", [True, False])
def test_relock_runs_pipenv_or_changes_nothing(
    works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f'{PYPI}\n[packages]\ntorch = "==2.11.0"\n'
    work = tmp_path / "work"
    work.mkdir()
    before = lock_of(work)
    pipenv_that(
        tmp_path / "bin",
        monkeypatch,
        "assert sys.argv[1:] == ['lock'] and '+cu126' in open('Pipfile').read()\n"
        "open('Pipfile.lock', 'a').write('\\n')\n"
        + ("" if works else "sys.exit('no wheel was found')\n"),
    )
    after = fixed(work, text, "--relock")
    lock = (work / "Pipfile.lock").read_bytes()
    if works:
        assert "pytorch-cu126" in after
        assert lock == before + b"\n"
    else:
        assert (after, lock) == (text, before)
        assert "`pipenv lock` failed; nothing was changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new"),
    [('"rich"', '"rice"'), ('name = "pypi"', 'name = "other"'), ("]]", "]"), ('"*"', '">1"')],
)
def test_an_edit_that_changes_more_is_refused(old: str, new: str) -> None:
    text = f'{PYPI}\n[packages]\n"rich" = "*"\ntorch = "==2.11.0"\n'
    at = text.index(old)
    edit = Edit(Span(at, at + len(old)), new)
    document = read_pipfile("Pipfile", text.encode())
    with pytest.raises(RewriteError):
        check_pipfile_edit(document, apply_edits(text, (edit,)), (edit,))
