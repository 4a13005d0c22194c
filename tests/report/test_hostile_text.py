"""What a report says of files whose text or name is made to mislead, or simply broken."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.effort import effort_below

from torchpin.report import diff
from torchpin.report.style import PLAIN, redact

EFFORT = 25
"""Far above what hiding takes on these texts (a tenth), far below a quadratic search (minutes)."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("u:s3cret@h.example/simple", "****@h.example/simple"),
        ("https:/u:s3cret@h.example", "https:/****@h.example"),
        ("//u:s3cret@h.example", "//****@h.example"),
        ("':s3cret@h.example' behind the name", "'****@h.example' behind the name"),
        ("https://u:s3cret @h.example", "https://**** @h.example"),
        ("https://u:s3cret", "https://****"),
        ("https://u:s3'cret@h.example/x", "https://****@h.example/x"),
        ('https://u:s3"cret@h.example/x', "https://****@h.example/x"),
        ("https://u:s3<cret@h.example/x", "https://****@h.example/x"),
        ("UV_INDEX_CORP_PASSWORD=s3cret pip install", "UV_INDEX_CORP_PASSWORD=**** pip install"),
        ("HF_TOKEN='s3cret' x", "HF_TOKEN='****' x"),
        ("{GH_TOKEN: s3cret}", "{GH_TOKEN: ****"),
        ('"AWS_SECRET_ACCESS_KEY": "s3cret",', '"AWS_SECRET_ACCESS_KEY": "****",'),
        ('-H "Authorization: Bearer s3cret"', '-H "Authorization: Bearer ****"'),
        ("TOKEN=https://u:s3cret@h.example/x y", "TOKEN=**** y"),
        ("TOKEN=**** y", "TOKEN=**** y"),
    ],
)
def test_half_a_url_is_hidden_too(text: str, shown: str) -> None:
    assert redact(f"index {text}") == f"index {shown}"


@pytest.mark.parametrize(
    "text",
    [
        "https://h.example:8080/simple",
        "https://[::1]:80/x",
        "https://h.example:${PORT}/x",
        "image: name:tag@sha256:12",
        "TOKENIZERS_PARALLELISM=false MAX_TOKENS=512",
        'HF_TOKEN=$TOKEN GH_TOKEN=${{ secrets.GH }} TOKEN="$X"',
        "TOKEN and PASSWORD are variables",
        "git+https://h.example/o/r@v1.0",
        "requirements.txt:1:1: mail me@h.example",
        "torch @ https://h.example/torch-1.0%2Bcu126-cp311-cp311-linux_x86_64.whl#egg=torch",
    ],
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000 + " https://u:p@h.example",
        "a:" * 150_000 + "@h.example",
        "://" * 100_000 + "@h.example",
        "://a:b" * 50_000 + "@",
        "a.b:" * 50_000 + "c@h.example",
        "TOKEN" * 60_000,
        "TOKEN=" * 50_000,
        "KEY_TOKEN" + " " * 300_000,
    ],
    ids=lambda text: text[:8],
)
def test_hiding_takes_time_that_grows_with_the_text(text: str) -> None:
    with effort_below(EFFORT):
        redact(text)


@pytest.mark.parametrize(
    "name",
    ["requirements-\x1b[31m.txt", "requirements\n::error::x.txt", 'a"b\r.txt', "é\u202e.txt"],
)
def test_a_name_in_a_patch_is_quoted_as_git_does(tmp_path: Path, name: str) -> None:
    patch = diff.render(name, "torch\n", "torch==2.9.1\n", PLAIN)
    head = patch.splitlines()[:2]
    assert len(patch.splitlines()) == 5
    assert [line[:7] for line in head] == ['--- "a/', '+++ "b/']
    assert all(line.isprintable() and line.isascii() for line in head)
    git = shutil.which("git")
    if git is None:
        pytest.skip("there is no git")
    (tmp_path / name).write_bytes(b"torch\n")
    subprocess.run([git, "apply"], cwd=tmp_path, input=patch.encode(), check=True)
    assert (tmp_path / name).read_bytes() == b"torch==2.9.1\n"


def test_a_plain_name_in_a_patch_stays(tmp_path: Path) -> None:
    patch = diff.render("a b/é.txt", "torch\n", "torch==2.9.1\n", PLAIN)
    assert patch.startswith("--- a/a b/é.txt\n+++ b/a b/é.txt\n")
