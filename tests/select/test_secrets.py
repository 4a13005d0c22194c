"""Secrets of URLs: what is hidden in every output, and what is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.record_golden import torchpin  # noqa: E402

from torchpin.cli.parser import FORMATS  # noqa: E402
from torchpin.report.style import redact as redact_text  # noqa: E402
from torchpin.select.channels import holds_token, redact  # noqa: E402

TOKEN = "1AbC9d8E7f6G5h4I3j2K"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SECRET = [
    (f"https://pypi.fury.example/{TOKEN}/user/", "https://pypi.fury.example/****/user/"),
    (f"https://{TOKEN}@pypi.fury.example/user/", "https://****@pypi.fury.example/user/"),
    (f"https://h.example/{TOKEN}/simple", "https://h.example/****/simple"),
    ("https://h.example/glpat-abcdefghijklmnopqrst/x", "https://h.example/****/x"),
    ("https://h.example/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9/x", "https://h.example/****/x"),
    (
        "https://dl.cloudsmith.io/AbCdEfGhIjKlMnOp/org/repo/python/simple/",
        "https://dl.cloudsmith.io/****/org/repo/python/simple/",
    ),
    (
        f"https://packagecloud.io/priv/{COMMIT}/u/r/pypi/simple",
        "https://packagecloud.io/priv/****/u/r/pypi/simple",
    ),
    ("https://g.example/api/v4/simple?job_token=abc", "https://g.example/api/v4/simple?****"),
    ("https://g.example/s#access_token=abc&a=b", "https://g.example/s#access_token=****&a=b"),
]
PLAIN = [
    "https://dl.cloudsmith.io/basic/organisation/repo/python/simple/",
    "https://pkgs.dev.azure.com/o/0f8fad5b-d9cb-469f-a165-70867728950e/_packaging/f/pypi/simple/",
    f"https://wheels.example/{COMMIT}/simple",
    f"https://files.example/packages/2b/3c/{COMMIT}{COMMIT[:20]}/torch-2.14.1-cp311-cp311-x.whl",
    "https://h.example/pytorch-nightly-cuda126-builder-x86-64/simple",
    "https://h.example/MyCompanyPythonPackagesRepository2024/simple",
    "https://h.example/torch-2.14.1-cp311-cp311-manylinux_2_28_x86_64.whl#sha256=" + COMMIT,
    "https://download.pytorch.org/whl/cu126/torch/",
    "https://h.example/artifactory/api/pypi/pypi-local/simple",
]


@pytest.mark.parametrize(("url", "shown"), SECRET)
def test_a_token_is_hidden(url: str, shown: str) -> None:
    assert redact(url) == shown
    assert redact_text(f"index {url} here") == f"index {shown} here"


@pytest.mark.parametrize("url", PLAIN)
def test_what_is_no_token_stays(url: str) -> None:
    assert redact(url) == url
    assert not holds_token(url)


@given(st.text(max_size=300))
def test_hiding_twice_is_hiding_once(text: str) -> None:
    once = redact("https://h.example/" + text)
    assert redact(once) == once


def test_long_paths_take_linear_time() -> None:
    redact("https://h.example/" + "a1" * 500_000)
    redact("https://h.example/" + "a1b/" * 250_000)


@pytest.mark.parametrize("kind", FORMATS)
def test_no_report_shows_a_token(tmp_path: Path, kind: str) -> None:
    line = f"--extra-index-url https://pypi.fury.example/{TOKEN}/team/\n"
    path = tmp_path / "requirements.txt"
    path.write_text(line + "torch==2.15.0\n", "utf-8")
    gpu = ("--gpu", "V100", "--driver", "580.82.07", "--python", "3.11")
    for words in (
        ("check", "--output-format", kind),
        ("fix", "--diff", "--unsafe-fixes"),
        ("show",),
    ):
        done = torchpin(*words, *gpu, str(tmp_path))
        assert TOKEN not in done.stdout + done.stderr
    assert torchpin("fix", "--unsafe-fixes", *gpu, str(tmp_path)).returncode in (0, 1)
    assert path.read_text("utf-8").startswith(line)  # the file itself keeps it
